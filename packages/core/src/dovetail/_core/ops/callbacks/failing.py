"""Exceptions of callbacks in programs over several devices.

Where a call of Python fails, XLA ends the part of the program that runs on that device. The other
devices then wait for it in the next operation that they have in common, and a minute later the
process ends. So the call returns something instead, NaN where there is one, and the program, which
is waited for, raises.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

__all__ = ["Failures", "answering", "check_devices_are_free", "watching"]

_thread: Final = threading.local()


class Failures:
    """Where the exceptions of one callback go while a program runs that calls it."""

    __slots__ = ("_raised",)

    def __init__(self) -> None:
        self._raised: list[BaseException] | None = None

    def add(self, error: BaseException) -> bool:
        """Note an exception; whether a program is there to raise it."""
        raised = self._raised
        if raised is not None:
            raised.append(error)
        return raised is not None


@contextmanager
def watching(places: Sequence[Failures], one_at_a_time: threading.Lock) -> Iterator[None]:
    """A scope that a program runs in from beginning to end.

    Args:
        places: those of its callbacks.
        one_at_a_time: the lock of the program, as nothing tells the calls of one run from those of
            another.

    Raises:
        BaseException: the exception that one of them raised.
    """
    raised: list[BaseException] = []
    with one_at_a_time:
        try:
            for place in places:
                place._raised = raised
            yield
        finally:
            for place in places:
                place._raised = None
    if raised:
        raise raised[0]


@contextmanager
def answering(failures: Failures | None) -> Iterator[None]:
    """A scope for the call of a callback; if it has a place for failures, devices wait for it."""
    before = getattr(_thread, "awaited", False)
    _thread.awaited = before or failures is not None
    try:
        yield
    finally:
        _thread.awaited = before


def check_devices_are_free(program: str) -> None:
    """Raise where a program over several devices would wait for itself.

    Args:
        program: the name of the one to be run.

    Raises:
        RuntimeError: a callback runs it, for which devices wait.
    """
    if getattr(_thread, "awaited", False):
        raise RuntimeError(
            f"{program} runs on several devices, and is called in a callback of a program that "
            "does, too: its devices wait for the callback, and would never come to it. Compute on "
            "one device there, with NumPy or on arrays that are not placed, or return the values "
            "and go on in the program"
        )
