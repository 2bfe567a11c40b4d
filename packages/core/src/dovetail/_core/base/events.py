"""One stream of events: what the framework does on a user's behalf, why, and how long it takes.

Nothing is recorded, and no line of the user's code is looked up, unless somebody listens: where
something happens there is one test of `listeners`.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from typing import Any, Final, Literal, get_args

from dovetail._core.base.counting import counted
from dovetail._core.base.records import record
from dovetail._core.base.restoring import Restoring
from dovetail._core.base.source import UserFrame, user_frame

__all__ = [
    "KINDS",
    "Cause",
    "Event",
    "Kind",
    "add_listener",
    "announce",
    "because",
    "current_cause",
    "emit",
    "happening",
    "listeners",
    "print_level",
    "remove_listener",
    "watched",
]

Kind = Literal[
    "compile",
    "donation",
    "trace",
    "eager",
    "load",
    "transfer",
    "wait",
    "lower",
    "reuse",
    "garbage",
]

#: The kinds of events, those that cost most first.
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

#: The kinds that each level of the option ``debug`` adds.
_LEVELS: Final[tuple[tuple[Kind, ...], ...]] = (
    (),
    ("compile", "donation"),
    ("trace", "eager", "load"),
    ("transfer", "wait"),
    ("lower", "reuse", "garbage"),
)


@record
class Cause:
    """Why something has to be done.

    Attributes:
        reason: a sentence.
        remedy: what to write to avoid it; empty where nothing is wrong.
        argument: the argument that makes the difference, by its path; empty if none does.
        before: what that was in earlier calls.
        after: what it is now.
        eager: whether an operation outside of `jit` asks for it.
        again: whether it was done before, for other arguments, options or devices.
    """

    reason: str
    remedy: str = ""
    argument: str = ""
    before: str = ""
    after: str = ""
    eager: bool = False
    again: bool = False

    @property
    def text(self) -> str:
        """The reason, and what to do about it."""
        return f"{self.reason}. To avoid it, {self.remedy}" if self.remedy else self.reason


@record
class Event:
    """Something that the framework has done.

    Attributes:
        kind: ``"trace"`` (a jitted function was run with tracers), ``"eager"`` (the same of an
            operation outside of `jit`), ``"lower"`` (a program was written in StableHLO),
            ``"compile"``, ``"load"`` (a program was read from the cache on disk), ``"reuse"`` (an
            equal program was in memory), ``"transfer"``, ``"wait"`` (the host waited for a result),
            ``"donation"`` (an argument's memory could not be used for a result), or ``"garbage"``
            (Python looked for garbage).
        name: the function, operation or array that it was done for.
        cause: why: the reason, the argument, what that was before and is now, what to write.
        seconds: how long it took.
        start: when it began, by `time.perf_counter`.
        frame: the user's line; None if there is none.
        thread: the number of the thread, by `threading.get_ident`.
        nbytes: how much was moved.
    """

    kind: Kind
    name: str
    cause: Cause
    seconds: float
    start: float
    frame: UserFrame | None
    thread: int = field(default_factory=threading.get_ident)
    nbytes: int = 0

    @property
    def reason(self) -> str:
        """Why it was done."""
        return self.cause.reason

    @property
    def remedy(self) -> str:
        """What to write to avoid it; empty where nothing is wrong."""
        return self.cause.remedy

    @property
    def argument(self) -> str:
        """The argument that makes the difference, by its path; empty if none does."""
        return self.cause.argument

    @property
    def before(self) -> str:
        """What the argument was in earlier calls."""
        return self.cause.before

    @property
    def after(self) -> str:
        """What the argument is now."""
        return self.cause.after

    @property
    def eager(self) -> bool:
        """Whether an operation outside of `jit` asked for it."""
        return self.cause.eager

    @property
    def where(self) -> str:
        """The user's line in short, such as ``train.py:12 (loss)``."""
        return "an unknown place" if self.frame is None else str(self.frame)

    @property
    def milliseconds(self) -> float:
        """How long it took."""
        return self.seconds * 1e3

    def __str__(self) -> str:
        return (
            f"{self.kind} {self.name}, at {self.where}, {self.milliseconds:.1f} ms: "
            f"{self.cause.text}"
        )


#: Functions that are called with each event, in the thread where it happens. A tuple, which is
#: replaced.
listeners: tuple[Callable[[Event], object], ...] = ()


class _Threads(threading.local):
    """What a thread is doing.

    Attributes:
        cause: why it does it.
        name: the function or operation that it does it for.
        watchers: functions that are called with a name and a cause before something is done; what
            they raise prevents it.
    """

    cause: Cause | None = None
    name: str = ""
    watchers: tuple[Callable[[str, Cause], object], ...] = ()


_threads: Final = _Threads()
#: How many threads have watchers.
_watching: int = 0
_lock: Final = threading.Lock()


def happening() -> bool:
    """Whether anybody wants to know causes: somebody listens, or this thread is watched."""
    return bool(listeners or (_watching and _threads.watchers))


def emit(
    kind: Kind,
    name: str,
    seconds: float,
    cause: Cause | None = None,
    *,
    nbytes: int = 0,
) -> None:
    """Tell those that listen of something that was just done.

    Args:
        kind: what it was.
        name: what it was done for; a program's name gives way to that of its function.
        seconds: how long it took.
        cause: why; that of the scope of `because` if None.
        nbytes: how much was moved.
    """
    if not listeners:
        return
    if cause is None:
        name = _threads.name or name
    told = cause or _threads.cause or Cause(f"{name} asked for it")
    start = time.perf_counter() - seconds
    event = Event(kind, name, told, seconds, start, user_frame(), nbytes=nbytes)
    for listener in listeners:
        listener(event)


@contextmanager
def because(cause: Cause | None, name: str = "") -> Iterator[None]:
    """A scope in which what this thread does has a cause.

    Args:
        cause: the cause; None leaves that of the scope around.
        name: the function or operation that it is for; that of the scope around if empty.
    """
    if cause is None:
        yield
        return
    before = _threads.cause, _threads.name
    _threads.cause, _threads.name = cause, name or before[1]
    try:
        yield
    finally:
        _threads.cause, _threads.name = before


def current_cause() -> Cause | None:
    """Why this thread does what it does; None if that is unknown."""
    return _threads.cause


def announce(name: str, cause: Cause) -> None:
    """Tell the watchers of this thread of something that is about to be done again.

    Raises:
        Exception: what a watcher raises.
    """
    for watcher in _threads.watchers:
        watcher(name, cause)


# ---------------------------------------------------------------------------------------------
# listening


def add_listener(listener: Callable[[Event], object]) -> None:
    """Call a function with each event, once even if it is added several times."""
    global listeners
    with _lock:
        if listener not in listeners:
            listeners = (*listeners, listener)
        if _garbage not in gc.callbacks:
            gc.callbacks.append(_garbage)


def remove_listener(listener: Callable[[Event], object]) -> None:
    """Stop calling a function, if it was called."""
    global listeners
    with _lock:
        listeners = tuple([each for each in listeners if each != listener])
        if not listeners and _garbage in gc.callbacks:
            gc.callbacks.remove(_garbage)


def watched(watcher: Callable[[str, Cause], object]) -> Restoring[None]:
    """A scope in which a function is called before this thread traces or compiles something again.

    Args:
        watcher: called with a name and a cause; what it raises prevents what was to be done.
    """
    return Restoring(
        lambda: _threads.watchers,
        lambda: _watch((*_threads.watchers, watcher)),
        _watch,
    )


def _watch(watchers: tuple[Callable[[str, Cause], object], ...]) -> None:
    global _watching
    with _lock:
        _watching += bool(watchers) - bool(_threads.watchers)
        _threads.watchers = watchers


#: Seconds; the youngest objects are looked at hundreds of times a second, and in less.
_LONG: Final = 0.001
_began: float = 0.0


def _garbage(phase: str, info: dict[str, Any]) -> None:
    global _began
    if phase == "start":
        _began = time.perf_counter()
        return
    generation, seconds = info["generation"], time.perf_counter() - _began
    if generation < 2 and seconds < _LONG:
        return
    cause = Cause(
        f"Python looked for garbage of generation {generation}, and freed "
        f"{counted(info['collected'], 'object')}"
    )
    emit("garbage", f"generation {generation}", seconds, cause)


# ---------------------------------------------------------------------------------------------
# printing


def _write(event: Event) -> None:
    if event.kind in _printed:
        sys.stderr.write(f"dovetail: {event}\n")


_printed: frozenset[Kind] = frozenset()


def print_level(level: int) -> None:
    """Print events to stderr, those of more kinds at higher levels.

    Args:
        level: 0 prints none; 1 compilations and donations that failed; 2 traces, eager programs and
            programs read from disk, too; 3 transfers and waits, too; 4 everything.
    """
    global _printed
    _printed = frozenset([kind for added in _LEVELS[: level + 1] for kind in added])
    if _printed:
        add_listener(_write)
    else:
        remove_listener(_write)
