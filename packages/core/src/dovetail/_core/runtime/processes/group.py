"""The group of processes that this one belongs to, if any. For one that is alone it loads nothing.

How it is joined stands in `joining`.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.base import source
from dovetail._core.base.errors import DistributedError
from dovetail._core.base.records import record
from dovetail._core.plugins.process_group import ProcessGroup
from dovetail._core.runtime.processes import waits

if TYPE_CHECKING:
    from dovetail._core.runtime.processes.channel import Channel

__all__ = [
    "GRACE",
    "Membership",
    "Timeouts",
    "agree",
    "check",
    "check_calls",
    "current",
    "dead",
    "disconnect",
    "enter",
    "leave",
    "leave_at_exit",
    "meet",
    "note_failure",
    "on_leave",
    "on_start",
    "settle",
    "wait_for_news",
]


GRACE: Final = 1.0
"""Seconds that what a process has begun with another one may take after the death of that one."""


@record
class Timeouts:
    """How long processes wait for each other, in seconds.

    Attributes:
        start: for all to come.
        heartbeat: until a silent process counts as dead.
        shutdown: at the end.
    """

    start: int
    heartbeat: int
    shutdown: int


class Membership:
    """What this process holds of its group.

    Attributes:
        processes: what backends get.
        channel: the connection to the coordinator.
        timeouts: how long processes wait for each other.
        left: set when this process leaves.
    """

    __slots__ = (
        "_apart",
        "_news",
        "_settled",
        "_settling",
        "_watching",
        "channel",
        "left",
        "processes",
        "timeouts",
    )

    def __init__(self, processes: ProcessGroup, channel: Channel, timeouts: Timeouts) -> None:
        self.processes = processes
        self.channel = channel
        self.timeouts = timeouts
        self.left = threading.Event()
        self._news = 0.0
        self._settling = threading.RLock()
        self._settled: set[int] = set()
        self._apart: set[int] = set()
        self._watching: threading.Thread | None = None
        channel.on_death = self._hear
        channel.on_mismatch = self._part

    def _hear(self) -> None:
        self._news = time.monotonic()
        if self._watching is None or not self._watching.is_alive():
            # Others may be inside of C++, waiting for the dead.
            watching = threading.Thread(target=self._watch, name="dovetail deaths", daemon=True)
            with contextlib.suppress(RuntimeError):  # the interpreter exits
                watching.start()
                self._watching = watching

    def _watch(self) -> None:
        while self.is_unsettled() and not self.left.wait(GRACE):
            self.settle()

    def _part(self) -> None:
        """End what devices wait for, which will never come."""
        for function in self.processes.disconnectors:
            function()

    def is_unsettled(self) -> bool:
        """Whether a process has died, and devices may wait for it."""
        return len(self.channel.dead) > len(self._settled)

    def settle(self) -> None:
        """See that devices wait for nobody who has died.

        New connections are made after that: they would be shut down, too.
        """
        with self._settling:
            new = self.channel.dead.keys() - self._settled
            until = self._news + GRACE
            while waits.may_last(new):
                if time.monotonic() > until:
                    self.disconnect()
                    break
                time.sleep(0.02)
            self._settled |= new

    def disconnect(self) -> bool:
        """End what devices exchange with others, once for each death; whether the backend can."""
        with self._settling:
            dead = set(self.channel.dead)
            if dead - self._apart:
                for function in self.processes.disconnectors:
                    function()
                self._apart |= dead
                self._settled |= dead
        return bool(self.processes.disconnectors)

    def end(self) -> None:
        """Wait for the thread that watches devices, if there is one."""
        self.left.set()
        if self._watching is not None:
            self._watching.join(5)


_member: Membership | None = None
_lock: Final = threading.Lock()
_start_functions: Final[list[Callable[[], object]]] = []
_leave_functions: Final[list[Callable[[], object]]] = []
_counts: Final[dict[str, int]] = {}


def _leave_in_child() -> None:
    # The child of a fork is none of the group: its threads, and those of jaxlib, do not exist.
    global _member
    _member = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_in_child)


def current() -> ProcessGroup | None:
    """The group, None if this process computes alone."""
    return None if _member is None else _member.processes


def on_start(function: Callable[[], object]) -> None:
    """Register a function to be called when this process joins a group, or at once if it has."""
    _start_functions.append(function)
    if _member is not None:
        function()


def on_leave(function: Callable[[], object]) -> None:
    """Register a function to be called when this process has left a group."""
    _leave_functions.append(function)


def enter(member: Membership) -> None:
    """Have this process belong to a group until it leaves it, at exit at the latest."""
    global _member
    with _lock:
        _member = member
        _counts.clear()
    atexit.register(leave_at_exit)
    for function in _start_functions:
        function()


def _member_or_raise() -> Membership:
    if _member is None:
        raise RuntimeError("this process belongs to no group: call distributed.initialize() first")
    return _member


def meet(
    place: str,
    text: str,
    seconds: float,
    members: Sequence[int] | None = None,
    *,
    value: str = "",
) -> dict[int, str]:
    """Wait until other processes come to the same place, as often as this one.

    Args:
        place: the place.
        text: the place in words, for messages.
        seconds: how long to wait.
        members: the numbers of the processes that are to come; all if None.
        value: what this process tells the others.

    Returns:
        What the processes have told, by their numbers.

    Raises:
        DistributedError: not all have come; the message says who is missing, and why.
    """
    member = _member_or_raise()
    chosen = range(member.processes.process_count) if members is None else members
    place = f"{place} of {','.join(map(str, chosen))}"
    count = _counts[place] = _counts.get(place, 0) + 1
    return member.channel.meet(f"{place} #{count}", text, chosen, seconds, value=value)


def agree(place: str, text: str, seconds: float, members: Sequence[int]) -> None:
    """`meet` where who comes later, or again, need not wait."""
    _member_or_raise().channel.meet(place, text, members, seconds, lasting=True)


def check(members: Iterable[int] | None = None) -> None:
    """Raise if a process of the group has died.

    Args:
        members: the numbers of the processes that matter; all if None.

    Raises:
        DistributedError: one has; the message names it.
    """
    known = dead()
    found = sorted(known if members is None else known.keys() & members)
    if found:
        raise DistributedError("; ".join(known[number] for number in found), tuple(found))


def dead() -> dict[int, str]:
    """How processes of the group have died, by their numbers."""
    return {} if _member is None else dict(_member.channel.dead)


def disconnect() -> bool:
    """End what the devices of this process exchange with others; whether the backend can.

    To be called when a process has died and devices wait for it: the waits become errors.
    """
    return _member is not None and _member.disconnect()


def check_calls() -> None:
    """Raise if devices wait for a process that has called other programs than this one.

    Raises:
        DistributedError: they do; the message says what each has called.
    """
    if _member is not None and _member.channel.astray is not None:
        text, other = _member.channel.astray
        raise DistributedError(text, (other,))


def settle() -> None:
    """See that the devices of this process wait for nobody who has died."""
    if _member is not None and _member.is_unsettled():
        _member.settle()


def wait_for_news(seconds: float) -> None:
    """Wait until a process of the group has died, for so many seconds at most."""
    if _member is not None:
        _member.channel.wait_for_news(seconds)


def leave(*, waiting: bool = True, reason: str = "") -> None:
    """Leave the group, if there is one, when the others do.

    Args:
        waiting: whether to wait for the others.
        reason: how this process fails, as the end of a sentence; nothing if it does not.
    """
    global _member
    with _lock:
        member, _member = _member, None
    if member is None:
        return
    member.end()
    channel = member.channel
    if waiting and not reason and not channel.dead:
        everyone = range(member.processes.process_count)
        try:
            channel.meet("shutdown", "distributed.shutdown()", everyone, member.timeouts.shutdown)
        except DistributedError as error:
            source.warn(f"distributed.shutdown: {error}", RuntimeWarning)
    with contextlib.suppress(RuntimeError):
        member.processes.client.shutdown()
    channel.leave(reason or "has left the group", failed=bool(reason))
    waits.forget()
    for function in _leave_functions:
        function()


_failure: str = ""


def note_failure(reason: str) -> None:
    """Have this process leave its group at once when it ends.

    Args:
        reason: how it fails, as the end of a sentence.
    """
    global _failure
    _failure = reason


def leave_at_exit() -> None:
    """Leave the group before the interpreter exits; at once if it does for an exception."""
    error: Any = getattr(sys, "last_value", None)
    ended = "" if error is None else f"has ended with {type(error).__name__}: {error}"[:500]
    leave(reason=_failure or ended)
