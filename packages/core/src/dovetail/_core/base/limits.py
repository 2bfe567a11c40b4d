"""The interpreter's limits while a program is traced: recursion depth and garbage collection.

In nested calls of jitted functions, each level takes a dozen Python frames, nearly all of them the
framework's own. Python's limit is meant for the user's frames, so it is raised by the number of the
framework's frames and no further: infinite recursion is still an error. All of this is undone when
the last trace ends.
"""

from __future__ import annotations

import gc
import sys
import threading
from contextlib import ContextDecorator
from typing import Final

__all__ = ["deeper", "enter_level", "leave_level"]

# The limit is raised for this many levels of nesting at a time.
_LEVELS_AT_ONCE: Final = 16
# The most frames that the framework uses between two levels.
_FRAMES_PER_LEVEL: Final = 14
# A level takes some 4 kB of C stack, and a thread usually has 8 MB: infinite recursion must reach
# this limit first.
_MOST_LEVELS: Final = 512


class _Nesting(threading.local):
    depth = 0


_nesting: Final = _Nesting()
_lock: Final = threading.Lock()
# The depth of each thread that needs the raised limit.
_raised: Final[dict[int, int]] = {}
_users_limit = 0
_present_limit = 0


def enter_level() -> None:
    """Record that this thread enters another, nested transformation."""
    depth = _nesting.depth = _nesting.depth + 1
    if depth == 1:
        _pause_full_collections()
    elif not depth % _LEVELS_AT_ONCE:
        _raise_limit(depth)


def leave_level() -> None:
    """Record that this thread leaves its innermost transformation."""
    depth = _nesting.depth
    _nesting.depth = depth - 1
    if depth == 1:
        _resume_full_collections()
    elif not depth % _LEVELS_AT_ONCE:
        _raise_limit(depth - _LEVELS_AT_ONCE)


class deeper(ContextDecorator):
    """Context manager for code that traverses programs, and recurses as deeply as they do."""

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
            _users_limit = present  # the user may change it at any time
        # All threads share one limit.
        limit = _users_limit + _FRAMES_PER_LEVEL * max(_raised.values(), default=0)
        if limit != present:
            try:
                sys.setrecursionlimit(limit)
            except RecursionError:  # this thread is currently deeper than that
                limit = present
        _present_limit = limit


# A traced program has some five objects per equation. While it grows, Python scans all objects
# again whenever their number has grown by a quarter, and finds no garbage.
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
