"""The older name of `dovetail.jit`, for programs over several devices."""

from dovetail._core.api.jit import pjit as pjit
from dovetail._core.base.tracebacks import publish as _publish

__all__ = ["pjit"]

_publish(globals())
