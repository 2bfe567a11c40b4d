"""Exceptions raised by callbacks, kept until the failure of their program is met.

jaxlib passes on nothing but text, in which the number of the exception stands.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections import OrderedDict
from typing import Final

__all__ = ["keep", "original", "was_raised"]

# An exception holds the frames that it went through, with all their values.
_MOST: Final = 16

_lock: Final = threading.Lock()
_numbers: Final = itertools.count(1)
_kept: Final[OrderedDict[int, BaseException]] = OrderedDict()
_raised: Final[set[int]] = set()
_mark: Final = re.compile(r"\[dovetail callback failure (\d+)\]")


class CallbackFailure(Exception):
    """What jaxlib is told in place of the exception that a callback raised."""


def keep(error: BaseException) -> CallbackFailure:
    """Keep an exception.

    Args:
        error: what a callback raised.

    Returns:
        What is to be raised in its place.
    """
    with _lock:
        number = next(_numbers)
        _kept[number] = error
        while len(_kept) > _MOST:
            _raised.discard(_kept.popitem(last=False)[0])
    said = "\n".join([f"{type(error).__name__}: {error}", *getattr(error, "__notes__", ())])
    return CallbackFailure(f"[dovetail callback failure {number}] {said}")


def original(error: BaseException) -> BaseException:
    """The exception that a callback raised, where that is why a program failed; else the error.

    The caller is about to raise it.
    """
    found = _mark.search(str(error))
    if found is None:
        return error
    number = int(found[1])
    with _lock:
        if number in _kept:
            _raised.add(number)
        return _kept.get(number, error)


def was_raised(error: BaseException) -> bool:
    """Whether `original` has given the exception behind an error before."""
    found = _mark.search(str(error))
    return found is not None and int(found[1]) in _raised
