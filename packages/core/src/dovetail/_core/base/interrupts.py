"""Exceptions that a signal handler has raised: nobody may take one for a failure of what ran."""

from __future__ import annotations

import signal

__all__ = ["is_interrupt"]


def is_interrupt(error: BaseException) -> bool:
    """Whether a signal handler has raised an exception, which then must not be swallowed.

    A time-out is often an ordinary `Exception`, and arises wherever the program happens to be. Its
    traceback goes through the handler.
    """
    if isinstance(error, KeyboardInterrupt):
        return True
    handlers = {
        code
        for number in signal.valid_signals()
        if (code := getattr(signal.getsignal(number), "__code__", None)) is not None
    }
    traceback = error.__traceback__ if handlers else None
    while traceback is not None:
        if traceback.tb_frame.f_code in handlers:
            return True
        traceback = traceback.tb_next
    return False
