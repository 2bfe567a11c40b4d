"""Mutable references: arrays that are read and written in place."""

from dovetail._core.api.mutable_references import addupdate as addupdate
from dovetail._core.api.mutable_references import empty_ref as empty_ref
from dovetail._core.api.mutable_references import free_ref as free_ref
from dovetail._core.api.mutable_references import freeze as freeze
from dovetail._core.api.mutable_references import get as get
from dovetail._core.api.mutable_references import new_ref as new_ref
from dovetail._core.api.mutable_references import set as set
from dovetail._core.api.mutable_references import swap as swap
from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.trace.mutable_references import AbstractRef as AbstractRef
from dovetail._core.trace.mutable_references import Ref as Ref
from dovetail._core.trace.mutable_references import TransformedRef as TransformedRef

__all__ = [
    "AbstractRef",
    "Ref",
    "TransformedRef",
    "addupdate",
    "empty_ref",
    "free_ref",
    "freeze",
    "get",
    "new_ref",
    "set",
    "swap",
]

_publish(globals())
