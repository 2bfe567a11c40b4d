"""Waiting: for a compiler, so that Ctrl-C is heard meanwhile; for a plug-in, which is named."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

__all__ = ["ANNOUNCER", "announce_later", "interruptibly"]

R = TypeVar("R")

ANNOUNCER: Final = "dovetail waiting"
"""The name of threads that wait until something is to be announced."""


def interruptibly(function: Callable[..., R], *args: Any) -> R:
    """Call a C++ function that may take long, and let signal handlers run while it does.

    Python runs them in the main thread alone, between two instructions, so that thread must not be
    the one that is in C++. What the function computes after a handler has raised is dropped; a
    process that exits waits for it. The thread costs some 50 us; the smallest program takes
    milliseconds to compile. In the main thread, jaxlib would give up a compilation that a signal
    interrupts, and leave it to threads of its own, which a process that ends then crashes with.

    Args:
        function: a function that releases the interpreter's lock, and uses nothing of its thread.
        *args: its arguments.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*args)
    results: list[R] = []
    errors: list[BaseException] = []
    running = threading.Lock()

    def run() -> None:
        try:
            results.append(function(*args))
        except BaseException as error:
            errors.append(error)
        finally:
            running.release()

    running.acquire()
    try:
        threading.Thread(target=run, name="dovetail compiler").start()
    except RuntimeError:  # no more threads, or the interpreter is shutting down
        return function(*args)
    running.acquire()  # a handler that raises ends this
    if errors:
        raise errors.pop()
    return results.pop()


def announce_later(text: str, seconds: float) -> threading.Timer | None:
    """Write a line on stderr after some time, for somebody who wonders what takes so long.

    A plug-in that waits in native code, and holds the interpreter's lock, keeps the line back.

    Args:
        text: the line.
        seconds: after how long; 0 for never.

    Returns:
        What to call `cancel` of when the wait is over; None if nothing will be written.
    """
    if not seconds or sys.stderr is None:
        return None
    timer = threading.Timer(seconds, _announce, (sys.stderr, text))
    timer.name = ANNOUNCER
    timer.daemon = True
    try:
        timer.start()
    except RuntimeError:  # no more threads, or the interpreter is shutting down
        return None
    return timer


def _announce(stream: Any, text: str) -> None:
    with suppress(Exception):  # the stream may be closed
        stream.write(f"{text}\n")
        stream.flush()
