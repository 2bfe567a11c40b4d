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
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

from dovetail._core.base.locks import shared_lock
from dovetail._core.base.restoring import Restoring, within

__all__ = ["deeper", "enter_level", "leave_level", "level"]

P = ParamSpec("P")
R = TypeVar("R")

# The limit is raised for this many levels of nesting at a time.
_LEVELS_AT_ONCE: Final = 16
# The most frames that the framework uses between two levels.
_FRAMES_PER_LEVEL: Final = 14
# A level takes some 4 kB of C stack, and a thread usually has 8 MB: infinite recursion must reach
# this limit first.
_MOST_LEVELS: Final = 512


class _Level(threading.local):
    #: How many nested transformations this thread is in.
    depth = 0
    #: The depth for which this thread has the limit raised.
    raised = 0


level: Final = _Level()
# A signal handler may compute while its thread holds this.
_lock: Final = shared_lock()
# The depth of each thread that needs the raised limit.
_raised: Final[dict[int, int]] = {}
_users_limit = 0
# The limit that was set here last, and the one before if that could not be finished.
_own_limits = (0, 0)


def enter_level() -> None:
    """Record that this thread enters another, nested transformation."""
    depth = level.depth = level.depth + 1
    if depth == 1:
        _pause_full_collections()
    elif not depth % _LEVELS_AT_ONCE:
        level.raised = depth
        _raise_limit(depth)


def leave_level(depth: int) -> None:
    """Record that this thread is back where `level.depth` was `depth`; right to call again."""
    level.depth = depth
    if not depth:
        _resume_full_collections()
    if depth < level.raised:
        depth -= depth % _LEVELS_AT_ONCE
        _raise_limit(depth)
        level.raised = depth


def _depth() -> int:
    return level.depth


class deeper(Restoring[None]):
    """Context manager and decorator for code that traverses programs, as deeply as they nest."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(_depth, enter_level, leave_level)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Run every call of a function one level deeper."""
        return within(deeper, function)


def _raise_limit(depth: int) -> None:
    global _users_limit, _own_limits
    with _lock:
        if depth:
            _raised[threading.get_ident()] = min(depth, _MOST_LEVELS)
        else:
            _raised.pop(threading.get_ident(), None)
        present = sys.getrecursionlimit()
        if present not in _own_limits:
            _users_limit = present  # the user may change it at any time
        # All threads share one limit.
        limit = _users_limit + _FRAMES_PER_LEVEL * max(_raised.values(), default=0)
        _own_limits = (limit, present)
        if limit != present:
            try:
                sys.setrecursionlimit(limit)
            except RecursionError:  # this thread is currently deeper than that
                limit = present
        _own_limits = (limit, limit)


# A traced program has some five objects per equation. While it grows, Python scans all objects
# again whenever their number has grown by a quarter, and finds no garbage.
_RARE: Final = 1000

_tracing_threads: Final[set[int]] = set()
_thresholds = (0, 0, 0)


def _pause_full_collections() -> None:
    global _thresholds
    with _lock:
        if not _tracing_threads:
            _thresholds = gc.get_threshold()
            youngest, middle, oldest = _thresholds
            _tracing_threads.add(threading.get_ident())
            if youngest and oldest < _RARE:
                gc.set_threshold(youngest, middle, _RARE)
        else:
            _tracing_threads.add(threading.get_ident())


def _resume_full_collections() -> None:
    with _lock:
        _tracing_threads.discard(threading.get_ident())
        if not _tracing_threads and gc.get_threshold() == (*_thresholds[:2], _RARE):
            gc.set_threshold(*_thresholds)
