"""The two ends of computing in a process: the child of a fork, and the exit of the interpreter.

A client has threads, and locks that they hold. They do not exist in the child of a fork, where
programs would wait for ever, or be aborted by the locks' own checks. So nothing computes there, and
whatever would raises one error.

A daemon thread that comes back from C++ while the interpreter is finalized is ended by Python in
the midst of C++, which aborts the process. So before that, running calls may end, and a thread that
begins another one stays where it is until the process ends.

At both ends C++ forgets the programs that it runs without Python, and `check` is called wherever
Python enters C++. Until then that costs nothing: see `on_end`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any, Final

from dovetail._core.base.errors import BackendUnavailableError

__all__ = [
    "check",
    "end_calls_at_exit",
    "end_in_child",
    "ended",
    "hold",
    "in_child",
    "on_end",
    "settle",
]

_FORKED: Final = (
    "this process was forked from one in which dovetail had started threads, which do not exist "
    "here, so nothing can be computed: start processes with "
    'multiprocessing.get_context("spawn") or multiprocessing.get_context("forkserver")'
)
#: Seconds that calls of daemon threads have to end.
_PATIENCE: Final = 60.0
#: Seconds after which a thread outside of dovetail's functions is taken not to be in C++.
_SETTLING: Final = 0.05

_functions: Final[list[Callable[[], object]]] = []
_forked = False
# Where Linux tells what each thread does, and how much of that is read: the number, the name, and
# the state.
_THREADS: Final = "/proc/self/task"
_LENGTH: Final = 64
# For how long a fork waits for other threads: steps, in microseconds.
_STEP: Final = 500
_MOST_STEPS: Final = 400
#: The daemon threads that were there when the exit began, and the call that each was in.
_daemons: Mapping[int, FrameType | None] | None = None
_held: Final[set[int]] = set()
_never: Final = threading.Lock()  # held from the exit on, and never released

#: Whether an end has come: C++ must not run programs without Python.
ended = False


def on_end(function: Callable[[], object]) -> None:
    """Register a function to be called when an end has come.

    It puts `check` before what runs without it, or drops what belongs to threads.
    """
    _functions.append(function)


def in_child() -> bool:
    """Whether this is the child of a process with clients."""
    return _forked


def check() -> None:
    """Called before C++ is entered: raise in the child of a fork, hold a daemon thread at exit.

    Raises:
        BackendUnavailableError: this is the child of a process with clients.
    """
    if _forked:
        raise BackendUnavailableError(_FORKED)
    hold()


def hold(forget: Callable[[], object] | None = None) -> None:
    """Hold a daemon thread that begins a call while the interpreter exits, until the process ends.

    Args:
        forget: called before; drops what other threads would wait for.
    """
    own = threading.get_ident()
    if _daemons is None or own not in _daemons:
        return
    began = _daemons[own]
    if began is not None and began in _calls(sys._getframe()):
        return
    if forget is not None:
        forget()
    _held.add(own)
    _never.acquire()


def settle() -> None:
    """Before a fork, let other threads leave the locks of C++: in the child they would stay locked.

    They hold them for microseconds, and without the GIL, but for longer where the system stops a
    thread meanwhile. So this waits, with the GIL, until no other thread wants to run. One that
    computes for longer than the wait holds no lock that a call in the child would take.
    """
    import ctypes  # deferred: most processes do not fork

    library = ctypes.PyDLL(None)  # its functions keep the GIL
    text = ctypes.create_string_buffer(_LENGTH)

    def runs(path: bytes) -> bool:
        file = library.open(path, os.O_RDONLY | os.O_CLOEXEC)
        if file < 0:
            return False  # it has ended
        length = library.read(file, text, _LENGTH)
        library.close(file)
        return text.raw[:length].rpartition(b") ")[2].startswith(b"R")

    others: list[bytes] = []
    if os.path.isdir(_THREADS):
        names = {*os.listdir(_THREADS)} - {str(threading.get_native_id())}
        others = [f"{_THREADS}/{name}/stat".encode() for name in names]
    interval = sys.getswitchinterval()
    try:
        sys.setswitchinterval(1)
        for _ in range(_MOST_STEPS):
            library.usleep(_STEP)
            if not any(map(runs, others)):
                break
    finally:
        sys.setswitchinterval(interval)


def end_in_child() -> None:
    """From now on nothing computes in this process, the child of a fork.

    What was garbage before the fork stays: C++ would end it, and wait for threads that are gone.
    """
    global _forked
    _forked = True
    gc.freeze()
    _end()


def _end() -> None:
    global ended
    ended = True
    for function in _functions:
        function()


@functools.cache
def end_calls_at_exit() -> None:
    """Have `end_calls_of_daemons` called when the interpreter exits."""
    atexit.register(end_calls_of_daemons)


def end_calls_of_daemons() -> None:
    """Let the calls of daemon threads end, and have no others begin; before the interpreter exits.

    A call that takes longer than some seconds, such as one whose callback waits for ever, is not
    waited for.
    """
    global _daemons
    if _forked:
        return
    own = threading.get_ident()
    stacks = {ident: frame for ident, frame in sys._current_frames().items() if ident != own}
    calls = {ident: _calls(frame) for ident, frame in stacks.items()}
    # The runtime's own threads run callbacks, from the first frame on.
    daemons = {
        ident: frames[-1] if frames else None
        for ident, frames in calls.items()
        if not frames or frames[-1].f_back is not None
    }
    if not daemons:
        return
    _never.acquire()
    _daemons = daemons
    _end()
    places = {ident: _place(stacks[ident]) for ident in daemons}
    del stacks, calls
    with contextlib.suppress(KeyboardInterrupt):
        _wait_for(daemons, places)


def _wait_for(daemons: Mapping[int, FrameType | None], places: Mapping[int, Any]) -> None:
    start = time.monotonic()
    while (seconds := time.monotonic() - start) < _PATIENCE:
        time.sleep(0.002)
        present = sys._current_frames()
        for ident in daemons:
            frame = present.get(ident)
            if frame is None or ident in _held:
                continue
            unmoved = places[ident] == _place(frame)
            if _calls(frame) or (unmoved and seconds < _SETTLING):
                break
        else:
            return


def _calls(frame: FrameType | None) -> list[FrameType]:
    """The frames of dovetail's functions in a stack, the innermost first."""
    frames = []
    while frame is not None:
        if str(frame.f_globals.get("__name__")).partition(".")[0] == "dovetail":
            frames.append(frame)
        frame = frame.f_back
    return frames


def _place(frame: FrameType) -> tuple[int, int]:
    return id(frame), frame.f_lasti
