"""Waiting for a compiler so that Ctrl-C and time-outs are heard meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

__all__ = ["LARGE", "interruptibly"]

R = TypeVar("R")

#: From this size on, in bytes of bytecode, a program may take long to compile. Smaller ones, such
#: as those of single operations, are not worth the tenth of a millisecond that a thread costs.
LARGE: Final = 16384


def interruptibly(function: Callable[..., R], *args: Any) -> R:
    """Call a C++ function that may take long, and let signal handlers run while it does.

    Python runs them in the main thread alone, between two instructions, so that thread must not be
    the one that is in C++. What the function computes after a handler has raised is dropped; a
    process that exits waits for it.

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
    threading.Thread(target=run, name="dovetail compiler").start()
    running.acquire()  # a handler that raises ends this
    if errors:
        raise errors.pop()
    return results.pop()
