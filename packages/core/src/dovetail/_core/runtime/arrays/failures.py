"""Exceptions raised by callbacks, kept until the failure of their program is noticed.

jaxlib passes on only text, so the text carries the number of the exception.
"""

from __future__ import annotations

import itertools
import re
from collections import OrderedDict
from typing import Final

from dovetail._core.base.locks import shared_lock
from dovetail._core.base.progress_bars import end_lines
from dovetail._core.base.runtime_errors import raised_by_callback

__all__ = ["CallbackFailure", "keep", "original", "was_raised"]

# Few, since an exception keeps its frames and all their values alive.
_MOST: Final = 16

_lock: Final = shared_lock()
_numbers: Final = itertools.count(1)
_kept: Final[OrderedDict[int, BaseException]] = OrderedDict()
# The numbers of those that were raised, in their order; more of them, since they take no memory.
_raised: Final[dict[int, None]] = {}
_MOST_RAISED: Final = 1024
_mark: Final = r"\[dovetail callback failure (\d+)\]"


class CallbackFailure(Exception):
    """Raised to jaxlib in place of the exception that a callback raised."""


def keep(error: BaseException) -> CallbackFailure:
    """Store an exception.

    Args:
        error: the exception that a callback raised.

    Returns:
        The exception to raise in its place.
    """
    end_lines()
    with _lock:
        number = next(_numbers)
        _kept[number] = error
        while len(_kept) > _MOST:
            # Those that threads have yet to notice stay longest.
            oldest = next((n for n in _kept if n in _raised), next(iter(_kept)))
            del _kept[oldest]
    text = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    return CallbackFailure(f"[dovetail callback failure {number}] {text}")


def original(error: BaseException) -> BaseException:
    """What is raised if the exception of a callback made a program fail, else the error itself.

    Marks the exception as raised, since the caller is about to raise it.
    """
    match = re.search(_mark, str(error))
    if match is None:
        return error
    number = int(match[1])
    with _lock:
        if number in _kept:
            _raised[number] = None
            if len(_raised) > _MOST_RAISED:
                del _raised[next(iter(_raised))]
        kept = _kept.get(number)
    return error if kept is None else raised_by_callback(kept)


def was_raised(error: BaseException) -> bool:
    """Whether `original` has already returned the exception behind an error."""
    match = re.search(_mark, str(error))
    return match is not None and int(match[1]) in _raised
