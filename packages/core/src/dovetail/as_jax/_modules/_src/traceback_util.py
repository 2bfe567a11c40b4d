"""The module `jax._src.traceback_util`."""

from collections.abc import Callable as _Callable
from types import FrameType as _FrameType
from typing import TypeVar as _TypeVar

from dovetail._core.base.source import add_internal_folder as register_exclusion
from dovetail._core.base.tracebacks import boundary as _boundary
from dovetail._core.base.tracebacks import is_hidden as _is_hidden
from dovetail._core.base.tracebacks import without_hidden as filter_traceback

_F = _TypeVar("_F", bound=_Callable[..., object])


def api_boundary(function: _F, **options: object) -> _F:
    """The function, with tracebacks that hold the user's frames alone."""
    wrapped: _F = _boundary(function)  # type: ignore[assignment]
    return wrapped


def include_frame(f: _FrameType) -> bool:
    """Whether a frame is the user's, and not one of the framework's or of what is excluded."""
    return not _is_hidden(f.f_code.co_filename)
