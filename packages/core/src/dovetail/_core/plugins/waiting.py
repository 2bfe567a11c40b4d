"""Waiting for a compiler so that Ctrl-C and time-outs are heard meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["interruptibly"]

R = TypeVar("R")


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
