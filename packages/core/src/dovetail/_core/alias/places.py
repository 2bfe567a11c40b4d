"""Places in the user's code: `jax.extend.source_info_util`."""

from __future__ import annotations

from typing import Any, NamedTuple

from dovetail._core.base.bindings import get_traceback
from dovetail._core.base.restoring import Restoring
from dovetail._core.base.source import user_frames
from dovetail._core.ir.jaxpr import SourceInfo
from dovetail._core.trace.state import state


class Frame(NamedTuple):
    """A place in the user's code, of which only the beginning is known.

    Attributes:
        file_name: the path of the file.
        function_name: the name of the function.
        start_line: the line, counted from 1.
        start_column: the column, counted from 0.
        end_line: the line.
        end_column: the column.
    """

    file_name: str
    function_name: str
    start_line: int
    start_column: int
    end_line: int
    end_column: int


def new_source_info() -> SourceInfo:
    """An unknown place."""
    return SourceInfo(None, "")


def current() -> SourceInfo:
    """The place that is being executed."""
    return SourceInfo.of_place(get_traceback() if state.place is None else state.place)


def user_frame(traceback: Any) -> Frame | None:
    """The innermost frame of the user's code in a traceback; None if there is none.

    Args:
        traceback: jaxlib's traceback, or a `SourceInfo` that has one.
    """
    found = _frames(traceback, 1)
    return found[0] if found else None


def _frames(traceback: Any, limit: int) -> list[Frame]:
    if isinstance(traceback, SourceInfo):
        traceback = traceback.traceback
    if traceback is None:
        return []
    frames = []
    for found in user_frames(traceback, limit):
        column = (found.column or 1) - 1
        frames.append(Frame(found.file, found.function, found.line, column, found.line, column))
    return frames


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """A place in short, innermost frame first.

    Args:
        source_info: the place.
        num_frames: how many frames of the user's code to name.
    """
    frames = _frames(source_info, num_frames)
    lines = [f"{f.file_name}:{f.start_line}:{f.start_column} ({f.function_name})" for f in frames]
    return "\n".join(lines) if lines else "unknown"


def user_context(traceback: Any, *, name_stack: object = None) -> Restoring[None]:
    """A scope in which what is traced has a place of its own.

    Args:
        traceback: jaxlib's traceback of the place; None for the line that is executed.
        name_stack: accepted for JAX's sake: scopes are named by `jax.named_scope`.
    """
    place = traceback.traceback if isinstance(traceback, SourceInfo) else traceback

    def change() -> None:
        if place is not None:
            _set_place(place)

    return Restoring(lambda: state.place, change, _set_place)


def _set_place(place: Any) -> None:
    state.place = place
