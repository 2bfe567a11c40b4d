"""Ctrl-C ends running kernels, where it raises KeyboardInterrupt."""

from __future__ import annotations

import atexit
import ctypes
import signal
from typing import Final

# What C calls must not be freed.
_kept: Final[list[object]] = []


def end_kernels(library: ctypes.CDLL) -> None:
    """Let Ctrl-C end the kernels of a library that are running, in whatever thread they run.

    Not where another handler was set for it, or none: that may not raise, and runs once the kernel
    has ended. The library notices when handlers are changed, and then asks again.
    """

    def count_if_default() -> None:
        library.dovetail_count_interrupts(_raises())
        if not _raises():  # another thread has just set a handler
            library.dovetail_count_interrupts(False)

    asked = ctypes.CFUNCTYPE(None)(count_if_default)
    _kept.append(asked)
    count_if_default()
    library.dovetail_ask_python(asked)
    atexit.register(library.dovetail_ask_python, None)


def _raises() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler
