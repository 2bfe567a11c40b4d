"""The group of processes that this one belongs to, if any. For one that is alone it loads nothing.

How it is joined stands in `joining`.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.base import source
from dovetail._core.base.errors import DistributedError
from dovetail._core.plugins.process_group import ProcessGroup

if TYPE_CHECKING:
    from dovetail._core.runtime.processes.channel import Channel

__all__ = [
    "Membership",
    "Timeouts",
    "agree",
    "check",
    "current",
    "dead",
    "enter",
    "leave",
    "leave_at_exit",
    "meet",
    "note_failure",
    "on_leave",
    "on_start",
    "wait_for_news",
]


@dataclass(frozen=True, slots=True)
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
    """

    __slots__ = ("channel", "processes", "timeouts")

    def __init__(self, processes: ProcessGroup, channel: Channel, timeouts: Timeouts) -> None:
        self.processes = processes
        self.channel = channel
        self.timeouts = timeouts


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
