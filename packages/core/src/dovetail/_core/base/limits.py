"""The interpreter's limits while a program is traced: how deep calls go, when garbage is collected.

A traced function that calls a jitted one that calls a jitted one takes a dozen of Python's frames
for each of them, nearly all of them the framework's own. Python's limit is meant for the user's
frames, so it is raised by what the framework takes, and no further: a recursion without end is
still an error. All of this is undone when the last trace ends.
"""

from __future__ import annotations

import gc
import sys
import threading
from contextlib import ContextDecorator
from typing import Final

__all__ = ["deeper", "enter_level", "leave_level"]

# The limit is raised for so many levels of nesting at a time.
_LEVELS_AT_ONCE: Final = 16
# The most that the framework puts on Python's stack between two levels.
_FRAMES_PER_LEVEL: Final = 14
# A level takes some 4 kB of the stack of C, of which a thread usually has 8 MB: recursion without
# end must meet the limit before that.
_MOST_LEVELS: Final = 512


class _Nesting(threading.local):
    depth = 0


_nesting: Final = _Nesting()
_lock: Final = threading.Lock()
# How deep each thread is for which the limit was raised.
_raised: Final[dict[int, int]] = {}
_users_limit = 0
_present_limit = 0


def enter_level() -> None:
    """Note that a transformation begins inside those that this thread is in."""
    depth = _nesting.depth = _nesting.depth + 1
    if depth == 1:
        _pause_full_collections()
    elif not depth % _LEVELS_AT_ONCE:
        _raise_limit(depth)


def leave_level() -> None:
    """Note that the innermost transformation of this thread has ended."""
    depth = _nesting.depth
    _nesting.depth = depth - 1
    if depth == 1:
        _resume_full_collections()
    elif not depth % _LEVELS_AT_ONCE:
        _raise_limit(depth - _LEVELS_AT_ONCE)


class deeper(ContextDecorator):
    """Context manager for what goes through programs, and is as deep or as long as they are."""

    def __enter__(self) -> None:
        enter_level()

    def __exit__(self, *error: object) -> None:
        leave_level()


def _raise_limit(depth: int) -> None:
    global _users_limit, _present_limit
    with _lock:
        if depth:
            _raised[threading.get_ident()] = min(depth, _MOST_LEVELS)
        else:
            _raised.pop(threading.get_ident(), None)
        present = sys.getrecursionlimit()
        if present != _present_limit:
            _users_limit = present  # who may change it at any time
        # The limit is one for all threads.
        wanted = _users_limit + _FRAMES_PER_LEVEL * max(_raised.values(), default=0)
        if wanted != present:
            try:
                sys.setrecursionlimit(wanted)
            except RecursionError:  # this thread is deeper than that at present
                wanted = present
        _present_limit = wanted


# A recorded program has some five objects for each equation. Python goes through all objects again
# whenever they have become a quarter more, and finds no garbage, for as long as recording takes.
_RARE: Final = 1000

_tracing_threads = 0
_thresholds = (0, 0, 0)


def _pause_full_collections() -> None:
    global _tracing_threads, _thresholds
    with _lock:
        _tracing_threads += 1
        if _tracing_threads == 1:
            _thresholds = gc.get_threshold()
            youngest, middle, oldest = _thresholds
            if youngest and oldest < _RARE:
                gc.set_threshold(youngest, middle, _RARE)


def _resume_full_collections() -> None:
    global _tracing_threads
    with _lock:
        _tracing_threads -= 1
        if not _tracing_threads and gc.get_threshold() == (*_thresholds[:2], _RARE):
            gc.set_threshold(*_thresholds)
