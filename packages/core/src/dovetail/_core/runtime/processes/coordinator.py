"""The coordinator: a process of its own, in which all processes of a group register and meet.

Process 0 starts it, so it outlives any of them, process 0 too; it ends when the last one is gone.
It holds jaxlib's coordination service, in which devices find each other, and beside it a channel
to each process: a connection that ends when its process does, so that a death is known at once.

On the channel each message is a line of JSON. First every process says who it is, on the port that
jaxlib's service takes over when all are there: to register with jaxlib too early ends a process.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dovetail._core.base.bindings import _jax
from dovetail._core.base.records import record
from dovetail._core.runtime.processes.mismatches import Report, mismatches

__all__ = ["BEATS", "MAGIC", "Settings", "keep_alive", "main", "send"]

MAGIC: Final = "dovetail 1"
"""What every process says first."""
BEATS: Final = 10
"""How many times as long as processes may be silent here before jaxlib ends one for its silence."""
_LONGEST_LINE: Final = 1 << 24
_TICK: Final = 0.1
#: Seconds for which processes may wait for each other at different places: one of several threads
#: may still come.
_SETTLING: Final = 1.0
#: Seconds for which what devices do must be the same for it to count, and for which it counts.
_STUCK: Final = 4.0
_VALID: Final = 5.0
#: Seconds for which the coordinator stays after everybody has said goodbye.
_LINGERING: Final = 1.0
#: Seconds in which whoever is connected must say who it is.
_INTRODUCTION: Final = 10.0


@record
class Settings:
    """What the coordinator is started with.

    Attributes:
        bind: the address to listen on, with its port.
        count: the number of processes.
        patience: seconds in which all of them have to come.
        heartbeat: seconds after which a silent process counts as dead.
        shutdown: seconds for which jaxlib's service waits at the end.
    """

    bind: str
    count: int
    patience: float
    heartbeat: int
    shutdown: int


def send(connection: socket.socket, message: Any) -> None:
    """Write a message as a line of JSON."""
    connection.sendall(json.dumps(message).encode() + b"\n")


def keep_alive(connection: socket.socket) -> None:
    """Have the system notice that the machine at the other end is gone, in half a minute."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@dataclass(slots=True, eq=False)
class _Peer:
    """A connection.

    Attributes:
        connection: its socket.
        number: the number of the process; -1 until it has said so.
        text: the process in words.
        heard: when something came from it.
        left: why it has left; None as long as it is there.
        received: what is no whole line yet.
    """

    connection: socket.socket
    number: int = -1
    text: str = ""
    heard: float = field(default_factory=time.monotonic)
    left: str | None = None
    received: bytes = b""


@dataclass(slots=True)
class _Meeting:
    """A place where some processes wait for each other.

    Attributes:
        members: the numbers of those that are to come.
        text: what it is, in words.
        values: what those that are there have brought, by their numbers.
        since: when the first one came.
        until: when the first one gives up.
        lasting: whether it is passed for good once all have come.
    """

    members: frozenset[int]
    text: str
    since: float
    until: float
    lasting: bool
    values: dict[int, str] = field(default_factory=dict)


class _Coordinator:
    def __init__(self, settings: Settings, listener: socket.socket) -> None:
        self.settings = settings
        self.listener: socket.socket | None = listener
        self.selector = selectors.DefaultSelector()
        self.selector.register(listener, selectors.EVENT_READ)
        self.strangers: set[_Peer] = set()
        self.peers: dict[int, _Peer] = {}
        self.gone: dict[int, str] = {}
        self.meetings: dict[str, _Meeting] = {}
        self.passed: set[str] = set()
        self.versions: dict[int, str] = {}
        self.reports: dict[int, Report] = {}
        self.told: set[int] = set()
        self.service: Any = None
        self.deadline = time.monotonic() + settings.patience
        self.started = time.monotonic()

    # ---------------------------------------------------------------------------- the connections

    def run(self) -> None:
        """Serve until all have gone, or not all have come."""
        while self.service is None or self.peers:
            for key, _ in self.selector.select(_TICK):
                if key.data is None:
                    self._accept()
                else:
                    self._receive(key.data)
            if self.service is None:
                if not self._gather():
                    return
            else:
                self._look_at_beats()
                self._look_at_calls()
                self._look_at_meetings()
        time.sleep(_LINGERING)
        self.service.shutdown()

    def _accept(self) -> None:
        assert self.listener is not None
        with contextlib.suppress(OSError):
            connection, _ = self.listener.accept()
            connection.settimeout(10)
            keep_alive(connection)
            peer = _Peer(connection)
            self.strangers.add(peer)
            self.selector.register(connection, selectors.EVENT_READ, peer)

    def _receive(self, peer: _Peer) -> None:
        try:
            data = peer.connection.recv(1 << 16)
        except OSError:
            data = b""
        if not data or len(peer.received) > _LONGEST_LINE:
            self._drop(peer)
            return
        peer.heard = time.monotonic()
        *lines, peer.received = (peer.received + data).split(b"\n")
        for line in lines:
            try:
                self._take(peer, json.loads(line))
            except (ValueError, KeyError, TypeError):
                if peer.number < 0:  # whoever it is, it is none of ours
                    self._drop(peer)
                    return

    def _drop(self, peer: _Peer) -> None:
        """Forget a connection; it was a death unless the process had said goodbye."""
        with contextlib.suppress(KeyError):
            self.selector.unregister(peer.connection)
        peer.connection.close()
        self.strangers.discard(peer)
        if self.peers.get(peer.number) is peer:
            del self.peers[peer.number]
            if self.service is not None and peer.left is None:
                self._tell_of(peer, "has died", died=True)

    def _tell_of(self, peer: _Peer, what: str, *, died: bool) -> None:
        self.gone[peer.number] = f"{peer.text} {what}"
        note = {"gone": peer.number, "text": self.gone[peer.number], "died": died}
        for other in list(self.peers.values()):
            self._say(other, note)

    def _say(self, peer: _Peer, message: Any) -> None:
        try:
            send(peer.connection, message)
        except OSError:
            self._drop(peer)

    # ---------------------------------------------------------------------------------- the start

    def _gather(self) -> bool:
        """Start when all have come; whether to go on."""
        now = time.monotonic()
        for peer in [p for p in self.strangers if now - p.heard > _INTRODUCTION]:
            self._drop(peer)
        missing = sorted(set(range(self.settings.count)) - set(self.peers))
        if not missing:
            return self._start()
        if (0 in self.versions and 0 in missing) or (now - self.started > 30 and not self.versions):
            self._refuse("process 0 has gone")
            return False
        if now > self.deadline:
            self._refuse(
                f"{_numbers(missing)} of {self.settings.count} did not come within "
                f"{self.settings.patience:g} s (initialization_timeout)"
            )
            return False
        return True

    def _refuse(self, text: str) -> None:
        for peer in (*self.peers.values(), *self.strangers):
            with contextlib.suppress(OSError):
                send(peer.connection, {"refused": text})

    def _start(self) -> bool:
        """Give the port to jaxlib's service, and let all register there; whether that was right."""
        assert self.listener is not None
        for number, versions in sorted(self.versions.items()):
            if versions != self.versions[0]:
                self._refuse(
                    f"process {number} has {versions}, and process 0 has {self.versions[0]}: "
                    "install the same versions everywhere"
                )
                return False
        self.selector.unregister(self.listener)
        self.listener.close()
        self.listener = None
        for peer in list(self.strangers):
            self._drop(peer)
        settings = self.settings
        try:
            self.service = _jax.get_distributed_runtime_service(
                settings.bind,
                settings.count,
                heartbeat_timeout=BEATS * settings.heartbeat,
                shutdown_timeout=settings.shutdown,
                recoverable=True,  # or jaxlib ends all processes with the first that dies
            )
        except RuntimeError as error:
            self._refuse(f"jaxlib's service did not start at {settings.bind}: {error}")
            return False
        for peer in list(self.peers.values()):
            self._say(peer, {"go": True})
        return True

    def _register(self, peer: _Peer, message: Any) -> None:
        if message["hello"] != MAGIC:
            raise ValueError(message["hello"])
        number, count, settings = int(message["number"]), int(message["count"]), self.settings
        refusal = ""
        if count != settings.count:
            refusal = (
                f"process {number} was given num_processes={count}, and process 0 "
                f"num_processes={settings.count}"
            )
        elif number in self.peers:
            refusal = (
                f"two processes have process_id={number}: {self.peers[number].text} and "
                f"{message['text']}"
            )
        if refusal:
            with contextlib.suppress(OSError):
                send(peer.connection, {"refused": refusal})
            self._drop(peer)
            return
        self.versions[number] = str(message["versions"])
        peer.number, peer.text = number, str(message["text"])
        self.strangers.discard(peer)
        self.peers[number] = peer

    # -------------------------------------------------------------------------------- the service

    def _take(self, peer: _Peer, message: Any) -> None:
        if peer.number < 0:
            self._register(peer, message)
        elif "calls" in message:
            self._note_calls(peer.number, message["calls"])
        elif "meet" in message:
            self._meet(peer, message)
        elif "leave" in message:
            peer.left = str(message["leave"])
            self._tell_of(peer, peer.left, died=bool(message["failed"]))

    def _look_at_beats(self) -> None:
        now, patience = time.monotonic(), self.settings.heartbeat
        for peer in list(self.peers.values()):
            if now - peer.heard > patience and peer.left is None:
                peer.left = f"has not answered for {patience} s"
                self._tell_of(peer, peer.left, died=True)
                for meeting in self.meetings.values():
                    meeting.values.pop(peer.number, None)

    # ---------------------------------------------------------------------- what devices wait for

    def _note_calls(self, number: int, calls: Any) -> None:
        now = time.monotonic()
        known = self.reports.get(number)
        since = known.since if known and known.calls == calls and known.until > now else now
        self.reports[number] = Report(calls, since, now + _VALID)

    def _look_at_calls(self) -> None:
        now = time.monotonic()
        reports = {
            number: report
            for number, report in self.reports.items()
            if report.until > now > report.since + _STUCK and number not in self.gone
        }
        waiting = {
            number: (meeting.text, meeting.members - meeting.values.keys())
            for meeting in self.meetings.values()
            for number in meeting.values
        }
        for number, other, text in list(mismatches(reports, waiting)):
            if number not in self.told and number in self.peers:
                self.told.add(number)
                self._say(self.peers[number], {"astray": text, "other": other})
                for key, meeting in self._places_of(other):
                    apart = {"apart": key, "text": text, "absent": [number]}
                    self._end(key, meeting, apart)

    # ------------------------------------------------------------------------------- the meetings

    def _meet(self, peer: _Peer, message: Any) -> None:
        key, text = str(message["meet"]), str(message["text"])
        if key in self.passed:
            self._say(peer, {"met": key, "values": {}})
            return
        if peer.number in self.gone:  # the others go on without it
            self._say(peer, {"apart": key, "text": self.gone[peer.number], "absent": [peer.number]})
            return
        now = time.monotonic()
        meeting = self.meetings.get(key)
        if meeting is None:
            members = frozenset(map(int, message["members"]))
            until = now + float(message["seconds"])
            meeting = _Meeting(members, text, now, until, bool(message["lasting"]))
            self.meetings[key] = meeting
        meeting.values[peer.number] = str(message["value"])
        if meeting.members <= meeting.values.keys():
            del self.meetings[key]
            if meeting.lasting:
                self.passed.add(key)
            self._end(key, meeting, {"met": key, "values": meeting.values})

    def _end(self, key: str, meeting: _Meeting, message: Any) -> None:
        self.meetings.pop(key, None)
        for number in meeting.values:
            if number in self.peers:
                self._say(self.peers[number], message)

    def _look_at_meetings(self) -> None:
        """End the meetings to which somebody will not come, or has not come in time."""
        now = time.monotonic()
        ends = []  # all are looked at as they are now, so that each hears where the others are
        for key, meeting in self.meetings.items():
            missing = sorted(meeting.members - meeting.values.keys())
            gone = [number for number in missing if number in self.gone]
            if gone:
                why, absent = "; ".join(self.gone[number] for number in gone), gone
            elif now > meeting.until:
                seconds = meeting.until - meeting.since
                why, absent = f"{_numbers(missing)} did not come within {seconds:g} s", missing
                others = [self._place_of(number) for number in missing]
                why += "".join(f"; {place}" for place in others if place)
            elif now - meeting.since > _SETTLING:
                absent = [number for number in missing if self._waits_elsewhere(number, key)]
                why = "; ".join(self._place_of(number) for number in absent)
            else:
                absent = []
            if absent:
                text = f"{_numbers(sorted(meeting.values))} waited at {meeting.text}, and {why}"
                ends.append((key, meeting, {"apart": key, "text": text, "absent": absent}))
        for key, meeting, message in ends:
            self._end(key, meeting, message)

    def _places_of(self, number: int) -> list[tuple[str, _Meeting]]:
        return [item for item in self.meetings.items() if number in item[1].values]

    def _place_of(self, number: int) -> str:
        places = [meeting.text for _, meeting in self._places_of(number)]
        return f"process {number} waited at {' and '.join(places)}" if places else ""

    def _waits_elsewhere(self, number: int, key: str) -> bool:
        """Whether a process has waited for one of those that wait for it, somewhere else."""
        here = self.meetings[key].values.keys()
        return any(
            other.members & here - other.values.keys()
            and time.monotonic() - other.since > _SETTLING
            for name, other in self._places_of(number)
            if name != key
        )


def _numbers(numbers: Sequence[int]) -> str:
    listed = ", ".join(map(str, numbers))
    return f"process{'es' if len(numbers) > 1 else ''} {listed}"


def _listener(bind: str) -> socket.socket:
    host, _, port = bind.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if family is socket.AF_INET6 and not socket.has_ipv6:
        family, host = socket.AF_INET, ""
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family is socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind((host, int(port)))
        made.listen(1024)
    except BaseException:
        made.close()
        raise
    return made


def main() -> int:
    """Run the coordinator; its settings are the first argument, as JSON."""
    # Ctrl-C in a terminal reaches all of its processes, which still have to say goodbye.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    settings = Settings(**json.loads(sys.argv[1]))
    try:
        listener = _listener(settings.bind)
    except OSError as error:
        sys.stdout.write(f"{error.strerror or error}\n")
        return 1
    sys.stdout.write("listening\n")
    sys.stdout.flush()
    os.close(1)  # whoever reads it would wait for its end
    _Coordinator(settings, listener).run()
    return 0


if __name__ == "__main__":
    code = main()
    os._exit(code)  # nothing is left to be cleaned up, and stdout is closed
