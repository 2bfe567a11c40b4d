"""The older name of `dovetail.jit`, for programs over several devices."""

from dovetail._core.api.jit import pjit as pjit

__all__ = ["pjit"]
