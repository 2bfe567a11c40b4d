"""Looking, many times a second, at which line of the user's code a thread is."""

from __future__ import annotations

import functools
import os
import sys
import sysconfig
import threading
import time
from types import CodeType, FrameType
from typing import Final, NamedTuple

from dovetail._core.base.source import is_internal, short_file

__all__ = ["Line", "Sampler", "users_line"]


class Line(NamedTuple):
    """A line of the user's code.

    Attributes:
        file: the path of the file.
        line: the line, counted from 1.
        function: the name of the function, qualified by its class.
    """

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        if not self.line:
            return self.function
        return f"{short_file(self.file)}:{self.line} ({self.function})"


#: Where no line of the user's own code runs.
NOWHERE: Final = Line("", 0, "elsewhere")

_LIBRARIES: Final = tuple(
    os.path.join(folder, "")
    for folder in {
        sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")
    }
    if folder
)


@functools.lru_cache(maxsize=4096)
def _is_the_users(code: CodeType) -> bool:
    file = code.co_filename
    made = file == "<string>" or file.startswith("<frozen ")  # by libraries, such as dataclasses
    return not (made or is_internal(file) or file.startswith(_LIBRARIES))


def users_line(frame: FrameType | None) -> Line:
    """The innermost line that is in the user's own files, not in the framework or a library."""
    while frame is not None:
        code = frame.f_code
        if _is_the_users(code):
            return Line(code.co_filename, frame.f_lineno or code.co_firstlineno, code.co_qualname)
        frame = frame.f_back
    return NOWHERE


class Sampler:
    """Notes the line of the calling thread in regular intervals, from a thread of its own.

    Args:
        interval: seconds between two looks.

    Attributes:
        samples: the time at which each look was due, by `time.perf_counter`, and the line.
    """

    def __init__(self, interval: float) -> None:
        self.samples: list[tuple[float, Line]] = []
        self._interval = interval
        self._target = threading.get_ident()
        self._stopped = threading.Event()
        self._switch_interval = sys.getswitchinterval()
        self._thread = threading.Thread(target=self._run, name="dovetail profile", daemon=True)

    def start(self) -> None:
        """Start to look."""
        # Otherwise a thread that computes in Python is only interrupted every 5 ms.
        sys.setswitchinterval(min(self._switch_interval, self._interval / 4))
        self._thread.start()

    def stop(self) -> None:
        """Stop, and wait until the thread has ended."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()
        sys.setswitchinterval(self._switch_interval)

    def _run(self) -> None:
        while True:
            before = time.perf_counter()
            if self._stopped.wait(self._interval):
                return
            # Since this was due, the thread may have worked on in C++ that lets no other run.
            due = min(before + self._interval, time.perf_counter())
            frame = sys._current_frames().get(self._target)
            self.samples.append((due, users_line(frame)))
            del frame
