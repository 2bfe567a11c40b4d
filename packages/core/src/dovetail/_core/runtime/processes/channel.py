"""The connection of one process to the coordinator: meetings, and news of deaths."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

from dovetail._core.base.errors import DistributedError
from dovetail._core.base.records import record
from dovetail._core.runtime.processes import waits
from dovetail._core.runtime.processes.coordinator import MAGIC, keep_alive, send

__all__ = ["Channel", "Introduction", "connect"]

#: Seconds by which the coordinator's answer to a meeting may be later than its time-out.
_GRACE: Final = 10.0
#: Seconds from one look at what devices do to the next.
_LOOK: Final = 2.0


@record
class Introduction:
    """What a process says of itself.

    Attributes:
        number: its number.
        count: the number of processes that it expects.
        text: the process in words, for messages of others.
        versions: what must be the same in all processes.
    """

    number: int
    count: int
    text: str
    versions: str


class _Answer:
    __slots__ = ("message", "there")

    def __init__(self) -> None:
        self.there = threading.Event()
        self.message: dict[str, Any] = {}


class Channel:
    """A connection to the coordinator, on which the other processes have been seen.

    Args:
        connection: the socket.
        number: the number of this process.
        heartbeat: seconds after which a silent process counts as dead.
    """

    def __init__(self, connection: socket.socket, number: int, heartbeat: float) -> None:
        self._connection = connection
        self._number = number
        self._interval = min(heartbeat / 4, 10.0)
        self._told: Any = None
        self._sending = threading.Lock()
        self._meeting = threading.Lock()
        self._answers: dict[str, list[_Answer]] = {}
        self._closed = False
        self.dead: dict[int, str] = {}
        """How processes have died, by their numbers."""
        self.on_death: Callable[[], object] | None = None
        """Called when a process has died."""
        self.astray: tuple[str, int] | None = None
        """That devices wait for a process that has called other programs, and its number."""
        self.on_mismatch: Callable[[], object] | None = None
        """Called when that is known."""
        self._news = threading.Event()
        self._reader = threading.Thread(target=self._read, name="dovetail processes", daemon=True)
        _open.add(self)
        self._reader.start()

    def meet(
        self,
        key: str,
        text: str,
        members: Sequence[int],
        seconds: float,
        *,
        value: str = "",
        lasting: bool = False,
    ) -> dict[int, str]:
        """Wait until other processes come to the same place.

        Args:
            key: the place.
            text: the place in words.
            members: the numbers of the processes that are to come; this one is among them.
            seconds: how long to wait.
            value: what this process tells the others.
            lasting: whether who comes later need not wait.

        Returns:
            What the processes have told, by their numbers; nothing from those that came before.

        Raises:
            DistributedError: not all have come; the message says who is missing, and why.
        """
        answer = _Answer()
        with self._meeting:
            self._answers.setdefault(key, []).append(answer)  # others: threads at the same place
        message = {
            "meet": key,
            "text": text,
            "members": list(members),
            "seconds": seconds,
            "value": value,
            "lasting": lasting,
        }
        try:
            self._say(message)
            until = time.monotonic() + seconds + _GRACE
            while not answer.there.wait(0.5):  # in parts, so that Ctrl-C is noticed
                if self._closed or time.monotonic() > until:
                    raise DistributedError(f"the coordinator does not answer ({text})", (0,))
        finally:
            with self._meeting:
                self._answers[key].remove(answer)
                if not self._answers[key]:
                    del self._answers[key]
        if "apart" in answer.message:
            raise DistributedError(
                str(answer.message["text"]), tuple(map(int, answer.message["absent"]))
            )
        return {int(number): value for number, value in answer.message["values"].items()}

    def wait_for_news(self, seconds: float) -> None:
        """Wait until a process has died, for so many seconds at most."""
        self._news.wait(seconds)

    def leave(self, reason: str, *, failed: bool) -> None:
        """Say goodbye.

        Args:
            reason: why, as the end of a sentence about the process.
            failed: whether the others count it as dead.
        """
        with contextlib.suppress(DistributedError):
            self._say({"leave": reason, "failed": failed})
        self.close()

    def close(self) -> None:
        """Close the connection; without a goodbye, the others count this process as dead."""
        self._closed = True
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()
        if threading.current_thread() is not self._reader:
            self._reader.join(5)

    def forget(self) -> None:
        """Close the copy of the connection in the child of a fork."""
        self._closed = True
        self._connection.close()

    def _say(self, message: Any) -> None:
        try:
            with self._sending:
                send(self._connection, message)
        except OSError as error:
            raise DistributedError(
                "the coordinator, which process 0 has started, does not answer: "
                f"{error.strerror or error}",
                (0,),
            ) from None

    def _read(self) -> None:
        received, beaten = b"", 0.0
        self._connection.settimeout(min(self._interval, _LOOK))
        while not self._closed:
            try:
                data = self._connection.recv(1 << 16)
            except TimeoutError:
                data = None
            except OSError:
                data = b""
            if data == b"":
                break
            if data:
                *lines, received = (received + data).split(b"\n")
                for line in lines:
                    self._take(json.loads(line))
            with contextlib.suppress(DistributedError):
                if data is None:
                    self._tell_of_calls()
                if time.monotonic() - beaten > self._interval - _LOOK / 2:
                    beaten = time.monotonic()
                    self._say({"beat": True})
        if not self._closed:
            self._closed = True
            self._note(0, "the coordinator, which process 0 has started, has ended")

    def _tell_of_calls(self) -> None:
        """Tell the coordinator what was called, if this process waits."""
        calls = waits.state()
        busy = any(made["state"] == "busy" for made in calls.values())
        if calls == self._told and (busy or self._answers):
            self._say({"calls": calls})
        self._told = calls

    def _take(self, message: dict[str, Any]) -> None:
        if "gone" in message:
            if message["died"]:  # of this one, too: it was silent for too long
                self._note(int(message["gone"]), str(message["text"]))
            return
        if "astray" in message:
            self.astray = str(message["astray"]), int(message["other"])
            if self.on_mismatch is not None:
                self.on_mismatch()
            return
        for answer in tuple(self._answers.get(message.get("met", message.get("apart", "")), ())):
            answer.message = message
            answer.there.set()

    def _note(self, number: int, text: str) -> None:
        self.dead[number] = text
        self._news.set()
        if self.on_death is not None:
            self.on_death()


_open: Final[weakref.WeakSet[Channel]] = weakref.WeakSet()


def _forget_all() -> None:
    # Else the connection would outlive this process's parent, whose death nobody would notice.
    for channel in list(_open):
        channel.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


def connect(address: str, own: Introduction, patience: float) -> socket.socket:
    """Register with the coordinator, and wait until all processes have.

    Args:
        address: where it listens, ``host:port``.
        own: what this process says of itself.
        patience: seconds to wait for the coordinator, and then for the other processes.

    Returns:
        The connection.

    Raises:
        DistributedError: there is no coordinator, a process has not come, or they do not fit
            together.
    """
    until = time.monotonic() + patience
    connection = _reach(address, until, patience)
    try:
        keep_alive(connection)
        hello = {
            "hello": MAGIC,
            "number": own.number,
            "count": own.count,
            "text": own.text,
            "versions": own.versions,
        }
        send(connection, hello)
        # The coordinator keeps the time, so that it can say who is missing.
        answer = _line(connection, until + _GRACE)
        if not isinstance(answer, dict):
            raise ValueError
        if "refused" in answer:
            raise DistributedError(f"distributed.initialize: {answer['refused']}", ())
        return connection
    except (OSError, ValueError):
        connection.close()
        raise DistributedError(
            f"distributed.initialize: what listens at coordinator_address={address!r} is no "
            "coordinator of dovetail that waits for processes: all of its group have come already, "
            "or it has ended before, see what process 0 says",
            (0,),
        ) from None
    except BaseException:
        connection.close()
        raise


def _reach(address: str, until: float, patience: float) -> socket.socket:
    host, _, port = address.rpartition(":")
    pause = 0.02
    while True:
        try:
            rest = max(until - time.monotonic(), 0.1)
            return socket.create_connection((host.strip("[]"), int(port)), min(rest, 10.0))
        except OSError as error:
            if time.monotonic() + pause > until:
                raise DistributedError(
                    f"distributed.initialize: no coordinator answers at "
                    f"coordinator_address={address!r} within {patience:g} s "
                    f"({error.strerror or error}): start process 0 on that machine, or correct the "
                    "address",
                    (0,),
                ) from None
        time.sleep(pause)
        pause = min(2 * pause, 0.5)


def _line(connection: socket.socket, until: float) -> Any:
    """The next message, and not a byte of what follows; None if there is none in time."""
    received = b""
    while not received.endswith(b"\n"):
        connection.settimeout(0.5)  # so that Ctrl-C is noticed
        try:
            data = connection.recv(1)
        except TimeoutError:
            if time.monotonic() > until:
                return None
            send(connection, {"beat": True})
            continue
        if not data:
            return None
        received += data
    return json.loads(received)
