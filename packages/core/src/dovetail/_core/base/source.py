"""Locations in the user's code."""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from types import CodeType
from typing import TYPE_CHECKING, Any

from dovetail._core.base.records import record

if TYPE_CHECKING:
    from dovetail._core.base.bindings import Traceback

__all__ = [
    "Note",
    "SourceLocation",
    "Transformation",
    "UserFrame",
    "add_internal_folder",
    "describe",
    "frame_at",
    "is_internal",
    "location_within",
    "short_file",
    "shown_file",
    "stack_level",
    "user_frame",
    "user_frames",
    "warn",
]

# NumPy's functions in Python may stand between the user's line and a tracer.
_NOT_THE_USERS = ("dovetail", "dovetail_cpu", "dovetail_cuda", "dovetail_tpu", "numpy")
# Helpers through which the framework's own decorators and hooks run.
_HELPERS = frozenset(filter(None, (contextlib.__file__, functools.__file__, importlib.__file__)))
_extra_folders: list[str] = []


@record
class UserFrame:
    """A place in the user's code.

    Attributes:
        file: the path of the file.
        line: the line, counted from 1.
        column: the column, counted from 1; None if unknown.
        function: the name of the function, qualified by its class.
    """

    file: str
    line: int
    column: int | None
    function: str

    @property
    def place(self) -> str:
        """The file and the line, for messages."""
        return f"{shown_file(self.file)}:{self.line}"

    def __str__(self) -> str:
        return f"{short_file(self.file)}:{self.line} ({self.function})"


def shown_file(file: str) -> str:
    """A file in messages: its path, and for a cell of a notebook ``Cell In[3]``, as IPython says.

    Args:
        file: the path, or what stands in its place.
    """
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    name: Callable[[str], tuple[str, str] | None] | None = getattr(
        getattr(shell, "compile", None), "format_code_name", None
    )
    found = None if name is None else name(file)
    return file if found is None else " ".join(found)


def short_file(file: str) -> str:
    """A file in messages, as `shown_file` says, without its folder."""
    shown = shown_file(file)
    return os.path.basename(shown) or shown


class Transformation(str):
    """The name of a transformation, which encloses the name of the next scope."""

    __slots__ = ()


class Metadata(str):
    """What the compiler is told of operations, in the place of the name of a scope.

    Args:
        pairs: names and values.
    """

    __slots__ = ("pairs",)
    pairs: tuple[tuple[str, str], ...]

    def __new__(cls, pairs: tuple[tuple[str, str], ...]) -> Metadata:
        self = super().__new__(cls, repr(pairs))
        self.pairs = pairs
        return self


class Note(str):
    """What tools for users are told of operations, in the place of the name of a scope.

    Compilers are not: programs are the same without it.

    Args:
        name: what it is about.
        facts: numbers that belong to it.
    """

    __slots__ = ("facts",)
    facts: tuple[int, ...]

    def __new__(cls, name: str, facts: tuple[int, ...] = ()) -> Note:
        self = super().__new__(cls, name)
        self.facts = facts
        return self


class SourceLocation:
    """A captured stack together with named scopes; usable in place of the stack.

    Args:
        traceback: the stack.
        scopes: names of scopes and of transformations, outermost first.
    """

    __slots__ = ("scopes", "traceback")

    def __init__(self, traceback: Any, scopes: tuple[str, ...]) -> None:
        self.traceback = traceback
        self.scopes = scopes

    def raw_frames(self) -> Any:
        """The stack's own code objects and instruction offsets."""
        return self.traceback.raw_frames()

    @property
    def prefix(self) -> str:
        """The prefix of operation names, such as ``model/vmap(jvp(layer))/``."""
        written, around = "", ""
        for name in self.scopes:
            if type(name) is Metadata or type(name) is Note:
                continue
            if type(name) is Transformation:
                around += f"{name}("
            else:
                written += f"{around}{name}{')' * around.count('(')}/"
                around = ""
        return written

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What the compiler is told of the operation; inner scopes come last."""
        return tuple([p for name in self.scopes if type(name) is Metadata for p in name.pairs])

    @property
    def notes(self) -> list[Note]:
        """What tools are told of the operation."""
        return [name for name in self.scopes if type(name) is Note]


def location_within(around: Any, place: Any) -> Any:
    """The location of an operation that is part of another one, inside the other's scopes.

    Args:
        around: the location of the other operation.
        place: the operation's own location.
    """
    if type(around) is not SourceLocation or place is None:
        return place
    if type(place) is SourceLocation:
        return SourceLocation(place.traceback, around.scopes + place.scopes)
    return SourceLocation(place, around.scopes)


def add_internal_folder(folder: str) -> None:
    """Treat the files below ``folder``, or a file, as part of the framework; for plug-ins."""
    prefix = folder if os.path.isfile(folder) else os.path.join(folder, "")
    if prefix not in _extra_folders:
        _extra_folders.append(prefix)
        is_internal.cache_clear()


@functools.cache
def is_internal(filename: str) -> bool:
    """Whether a file belongs to the framework or NumPy, but not to `dovetail.testing`."""
    if filename in _HELPERS or filename.startswith("<frozen "):
        return True
    for package in _NOT_THE_USERS:
        module = sys.modules.get(package)
        for folder in getattr(module, "__path__", ()):
            if filename.startswith(os.path.join(folder, "")):
                return not filename.startswith(os.path.join(folder, "testing", ""))
    return any(filename.startswith(folder) for folder in _extra_folders) or (
        os.path.join("site-packages", "pluggy", "") in filename
    )


def _stack(traceback: Traceback | None) -> Iterator[tuple[CodeType, int]]:
    """Code objects and instruction offsets, innermost first."""
    if traceback is not None:
        codes, offsets = traceback.raw_frames()
        yield from zip(codes, offsets, strict=True)
        return
    frame = sys._getframe(1)
    while frame is not None:
        yield frame.f_code, frame.f_lasti
        frame = frame.f_back  # type: ignore[assignment]


def frame_at(code: CodeType, offset: int) -> UserFrame:
    """The place of an instruction, which is at an offset in bytes."""
    # Instruction offsets are in bytes, two per instruction; -1 if a frame has not started.
    here = itertools.islice(code.co_positions(), max(offset, 0) // 2, None)
    line, _, column, _ = next(here, (None, None, None, None))
    return UserFrame(
        code.co_filename,
        code.co_firstlineno if line is None else line,
        None if column is None else column + 1,
        code.co_qualname,
    )


def user_frames(
    traceback: Traceback | None = None, limit: int = 1, within: CodeType | None = None
) -> list[UserFrame]:
    """The innermost ``limit`` frames of the user's code, innermost first.

    Args:
        traceback: a captured stack; the current one if None.
        limit: the maximum number of frames.
        within: the code at whose innermost frame to stop.
    """
    frames = []
    for code, offset in _stack(traceback):
        if code is within:
            break
        if not is_internal(code.co_filename):
            frames.append(frame_at(code, offset))
            if len(frames) == limit:
                break
    return frames


def user_frame(traceback: Traceback | None = None) -> UserFrame | None:
    """The innermost frame of the user's code, or None if there is none.

    Args:
        traceback: a captured stack; the current one if None.
    """
    frames = user_frames(traceback, 1)
    return frames[0] if frames else None


def describe(traceback: Traceback | None = None) -> str:
    """The user's line in short, such as ``train.py:12 (loss)``.

    Args:
        traceback: a captured stack; the current one if None.
    """
    frame = user_frame(traceback)
    return "an unknown place" if frame is None else str(frame)


def stack_level() -> int:
    """The ``stacklevel`` with which the caller's `warnings.warn` points at the user's line."""
    level, frame = 1, sys._getframe(1)
    while frame is not None and is_internal(frame.f_code.co_filename):
        level, frame = level + 1, frame.f_back  # type: ignore[assignment]
    return level


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Emit a warning that points at the user's line.

    Args:
        message: the text.
        category: the class of the warning.
    """
    warnings.warn(message, category, stacklevel=stack_level())
