"""The module `jax._src.traceback_util`."""

from collections.abc import Callable as _Callable
from types import FrameType as _FrameType
from types import TracebackType as _TracebackType
from typing import TypeVar as _TypeVar

from dovetail._core.base.source import add_internal_folder as register_exclusion
from dovetail._core.base.source import is_internal as _is_internal

_F = _TypeVar("_F", bound=_Callable[..., object])


def api_boundary(function: _F, **options: object) -> _F:
    """The function itself: tracebacks need no boundaries here."""
    return function


def include_frame(f: _FrameType) -> bool:
    """Whether a frame is the user's, and not one of the framework's or of what is excluded."""
    return not _is_internal(f.f_code.co_filename)


def filter_traceback(tb: _TracebackType) -> _TracebackType | None:
    """A traceback without the frames of the framework; None if there are no others."""
    own = []
    found: _TracebackType | None = tb
    while found is not None:
        if include_frame(found.tb_frame):
            own.append(found)
        found = found.tb_next
    filtered = None
    for entry in reversed(own):
        filtered = _TracebackType(filtered, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return filtered
