"""Helpers for `dovetail.lax.dot_general_p`."""

from dovetail._core.ops.contraction.dot_general import dot_precision as dot_precision
from dovetail._core.ops.contraction.dot_general import multiplied as multiplied

__all__ = [
    "dot_precision",
    "multiplied",
]
