"""The group of processes that this one belongs to: joining it and leaving it."""

from __future__ import annotations

import atexit
import contextlib
import dataclasses
import json
import os
import platform
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import jaxlib.version

from dovetail._core.base import source
from dovetail._core.base.bindings import _jax
from dovetail._core.base.errors import DistributedError
from dovetail._core.plugins.process_group import ProcessGroup
from dovetail._core.runtime.processes.channel import Channel, Introduction, connect
from dovetail._core.runtime.processes.clusters import Place
from dovetail._core.runtime.processes.coordinator import Settings

__all__ = ["Timeouts", "check", "current", "join", "leave", "leave_at_exit", "meet", "on_start"]


@dataclasses.dataclass(frozen=True, slots=True)
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


class _Membership:
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


_member: _Membership | None = None
_lock: Final = threading.Lock()
_start_functions: Final[list[Callable[[], object]]] = []
_counts: Final[dict[str, int]] = {}


def current() -> ProcessGroup | None:
    """The group, None if this process computes alone."""
    return None if _member is None else _member.processes


def on_start(function: Callable[[], object]) -> None:
    """Register a function to be called when this process joins a group, or at once if it has."""
    _start_functions.append(function)
    if _member is not None:
        function()


def join(place: Place, timeouts: Timeouts) -> None:
    """Join a group; process 0 starts its coordinator.

    Args:
        place: where this process is in the group, everything filled in.
        timeouts: how long processes wait for each other.

    Raises:
        DistributedError: not all processes have come.
        RuntimeError: the coordinator cannot listen.
    """
    global _member
    address, number, count = place.coordinator_address, place.process_id, place.num_processes
    assert address is not None
    assert number is not None
    assert count is not None
    with _lock:
        if number == 0:
            _start_coordinator(place, timeouts)
        own = Introduction(
            number,
            count,
            f"process {number} (pid {os.getpid()} on {socket.gethostname()})",
            f"jaxlib {jaxlib.version.__version__}, Python {platform.python_version()[:4]}",
        )
        connection = connect(address, own, timeouts.start)
        hostname = connection.getsockname()[0]
        client = _jax.get_distributed_runtime_client(
            address,
            number,
            init_timeout=timeouts.start,
            shutdown_timeout=timeouts.shutdown,
            heartbeat_timeout=timeouts.heartbeat,
            shutdown_on_destruction=False,
            use_compression=True,
        )
        client.connect()
        ids = place.local_device_ids
        processes = ProcessGroup(number, count, client, hostname, ids, place.slice_index)
        channel = Channel(connection, number, timeouts.heartbeat)
        _member = _Membership(processes, channel, timeouts)
        _counts.clear()
    atexit.register(leave_at_exit)
    for function in _start_functions:
        function()


def _start_coordinator(place: Place, timeouts: Timeouts) -> None:
    assert place.coordinator_bind_address is not None
    assert place.num_processes is not None
    settings = Settings(
        place.coordinator_bind_address,
        place.num_processes,
        timeouts.start,
        timeouts.heartbeat,
        timeouts.shutdown,
    )
    code = (
        "import sys, json; sys.path[:] = json.loads(sys.argv.pop()); import runpy; "
        "runpy.run_module('dovetail._core.runtime.processes.coordinator', run_name='__main__', "
        "alter_sys=False)"
    )
    words = [json.dumps(dataclasses.asdict(settings)), json.dumps(list(map(str, sys.path)))]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        # The log of jaxlib's service belongs to nobody.
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        start_new_session=True,
        text=True,
    )
    _coordinators.append(process)
    assert process.stdout is not None
    with process.stdout as told:
        text = told.readline().strip()
    if text != "listening":
        process.wait()
        reason = text or f"it ended with status {process.returncode}"
        raise RuntimeError(
            f"distributed.initialize: the coordinator cannot listen on {settings.bind} ({reason}): "
            "choose another port for coordinator_address, or give coordinator_bind_address"
        )


# Kept, since Python warns of a process that is still running when its object goes.
_coordinators: Final[list[subprocess.Popen[str]]] = []


def _member_or_raise() -> _Membership:
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
