"""Memory that does not suffice: what an error about it says."""

from __future__ import annotations

import contextlib
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from math import prod
from typing import Any, Final

from dovetail._core.base import caches, dtypes
from dovetail._core.base.bindings import JaxRuntimeError
from dovetail._core.base.counting import counted
from dovetail._core.base.runtime_errors import OutOfMemoryError
from dovetail._core.base.source import describe

__all__ = [
    "byte_count",
    "explained",
    "in_words",
    "is_shortage",
    "later_shortage",
    "named",
    "note_started",
    "placing",
]

_LISTED: Final = 4


def is_shortage(error: BaseException) -> bool:
    """Whether an error of NumPy or jaxlib says that there is not enough memory."""
    if isinstance(error, MemoryError):
        return True
    return isinstance(error, JaxRuntimeError) and (
        "RESOURCE_EXHAUSTED" in str(error) or "Out of memory allocating" in str(error)
    )


def byte_count(aval: Any) -> int:
    """The bytes of an array of this type; 0 of what is no array."""
    shape, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    if shape is None or dtype is None or dtype == dtypes.float0:
        return 0
    return int(prod(shape)) * int(getattr(dtype, "itemsize", 0))


def in_words(count: int) -> str:
    """A number of bytes, such as ``3.2 GiB``."""
    amount, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{count} B" if unit == "B" else f"{amount:.1f} {unit}"


def explained(error: BaseException, facts: Iterable[str]) -> OutOfMemoryError:
    """The error to raise in place of NumPy's or jaxlib's.

    Args:
        error: the error, of which `is_shortage` is true.
        facts: lines that say what the memory was wanted for.
    """
    if isinstance(error, OutOfMemoryError):
        return error
    message = str(error) or "no memory is left"
    if "RESOURCE_EXHAUSTED" not in message:
        message = f"RESOURCE_EXHAUSTED: {message}"
    notes = [f"  {note}" for note in getattr(error, "__notes__", ())]
    return OutOfMemoryError("\n".join([message, *notes, *facts, _alive()]))


def placing(error: BaseException, doing: str, aval: Any) -> BaseException:
    """The error to raise where data was placed, moved or read; itself if it is about another thing.

    Args:
        error: the error.
        doing: what was done, such as ``placing on the device``.
        aval: the type of the data.
    """
    if not is_shortage(error) or isinstance(error, OutOfMemoryError):
        return error
    what = f"{aval.short_name()} of {in_words(byte_count(aval))}"
    return explained(error, [f"  for:   {doing} {what}, at {describe()}"])


def named(error: OutOfMemoryError, what: str) -> OutOfMemoryError:
    """An error of `placing` that also says which argument or leaf it was."""
    first, *rest = str(error).splitlines()
    return OutOfMemoryError("\n".join([first, f"  value: {what}", *rest]))


def _alive() -> str:
    """Lines about the arrays that are alive: the lines that made the most of them first."""
    from dovetail._core.runtime.devices import live_buffers  # deferred: seldom needed

    lines = [line for line in live_buffers.lines_of(live_buffers.alive()) if line.bytes]
    if not lines:
        return "  alive: no other arrays"
    total, count = sum(line.bytes for line in lines), sum(line.count for line in lines)
    text = [f"  alive: {counted(count, 'array')} of {in_words(total)}, by the line that made it:"]
    text += [
        f"    {in_words(line.bytes)} in {line.count} of {', '.join(line.largest)}, {line.source}"
        for line in lines[:_LISTED]
    ]
    if len(lines) > _LISTED:
        left = in_words(sum(line.bytes for line in lines[_LISTED:]))
        text.append(
            f"    {left} from {len(lines) - _LISTED} other lines (dovetail.memory() has all)"
        )
    return "\n".join(text)


# The programs that were started last. One may fail after its call has returned, and all that jaxlib
# says then is the size of its temporaries.
_MOST: Final = 128
_started: Final[OrderedDict[Any, Callable[[int], list[str]]]] = OrderedDict()
_allocating: Final = r"Out of memory allocating (\d+) bytes|allocate (\d+) bytes"
caches.register(_started.clear)


def note_started(key: Any, facts: Callable[[int], list[str]]) -> None:
    """Remember a program that was started, in case that it fails for lack of memory.

    Args:
        key: the program, weakly; a repeated call takes the place of the one before.
        facts: gives the lines about it if its temporaries have this many bytes; holds on to no
            array and no program.
    """
    _started[key] = facts
    if len(_started) > _MOST:
        with contextlib.suppress(KeyError):  # another thread was faster
            _started.popitem(last=False)


def later_shortage(error: BaseException) -> BaseException:
    """The error to raise where a result is waited for; itself if it is not about memory."""
    if not is_shortage(error) or isinstance(error, OutOfMemoryError):
        return error
    found = re.search(_allocating, str(error))
    count = int(found[1] or found[2]) if found is not None else 0
    lines = ["  for:   a program that was started earlier"]
    for facts in reversed(list(_started.values())):
        if count and (known := facts(count)):
            lines = known
            break
    return explained(error, [*lines, f"  seen:  at {describe()}"])
