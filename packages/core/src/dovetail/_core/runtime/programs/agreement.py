"""Programs of several processes: that all of them are about to run the same one."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Callable, Set
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dovetail._core.base.bindings import JaxRuntimeError
from dovetail._core.base.config import process_timeout
from dovetail._core.runtime.arrays.global_arrays import processes_of
from dovetail._core.runtime.processes import group

if TYPE_CHECKING:
    from dovetail._core.lower.equations import EquationProgram
    from dovetail._core.lower.lowering import LoweredModule

__all__ = ["Meeting", "agree", "call_apart", "exchanges", "may_block", "meeting_of"]

_MOST_ARGUMENTS: Final = 6
#: The CPU's client runs programs of fewer operations than half of this in the calling thread.
_FEW: Final = 2000
#: Seconds until a call gets the error of a connection that was shut down.
_LATEST: Final = 10.0


class Meeting(NamedTuple):
    """What processes that run a program meet by.

    Attributes:
        digest: of the program; equal in all processes.
        text: the program in words.
    """

    digest: str
    text: str


def meeting_of(lowered: LoweredModule | EquationProgram) -> Meeting | None:
    """What processes that run a program meet by; None if it holds what only one process has."""
    if group.current() is None or not lowered.cacheable:
        return None
    digest = lowered.key().hex()
    shown = [aval.short_name() for aval in lowered.in_avals[:_MOST_ARGUMENTS]]
    if len(lowered.in_avals) > _MOST_ARGUMENTS:
        shown.append("...")
    return Meeting(digest, f"the program {lowered.name}({', '.join(shown)}) {digest[:6]}")


def agree(meeting: Meeting, sharding: Any) -> None:
    """Wait until the other processes are about to run the same program, or have done so before.

    Raises:
        DistributedError: one of them does something else, has died or left, or does not come
            within the option ``process_timeout``; the message says what each is about to do.
    """
    devices = sharding._device_list
    members = sorted(processes_of(sharding))
    ids = ",".join([str(device.id) for device in devices]).encode()
    place = f"program {meeting.digest} {hashlib.sha256(ids).hexdigest()}"
    group.agree(place, meeting.text, process_timeout.value, members)


_COLLECTIVE: Final = re.compile(
    r"all-gather|all-reduce|all-to-all|collective|reduce-scatter|custom-call|\bsend\(|\brecv\("
)


def exchanges(executable: Any) -> bool:
    """Whether a program exchanges data between devices, so that it waits for other processes."""
    try:
        texts = [module.to_string() for module in executable.hlo_modules()]
    except (JaxRuntimeError, AttributeError):
        return True
    return any(map(_COLLECTIVE.search, texts))


def may_block(executable: Any, sharding: Any) -> bool:
    """Whether each call of a program that exchanges data may wait for other processes.

    The first one may in any case, since connections are made. Later, only what the CPU's client
    computes in the calling thread does: small programs, where it has one device.
    """
    own = sharding._internal_device_list.addressable_device_list
    if len(own) > 1 or sharding._device.platform != "cpu":
        return False
    try:
        return bool(executable.cost_analysis().get("flops", 0) < _FEW)
    except (JaxRuntimeError, AttributeError):
        return True


_Work = tuple[Callable[[Any], Any], Any, list[Any], Any]


class _Caller:
    """A thread that calls functions of C++, one after the other."""

    def __init__(self) -> None:
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="dovetail programs", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            function, argument, results, ended = work
            try:
                results.append((function(argument), None))
            except BaseException as error:
                results.append((None, error))
            del function, argument, work
            ended.release()

    def start(self, function: Callable[[Any], Any], argument: Any) -> tuple[list[Any], Any]:
        """Begin a call; gives where its result will be, and what is released then."""
        results: list[Any] = []
        ended = threading.Lock()
        ended.acquire()
        self._work.put((function, argument, results, ended))
        return results, ended

    def end(self) -> None:
        """End the thread, after what it has begun."""
        self._work.put(None)


# Those that wait for nothing. One that waits for a process that has died is none of them until that
# process's connections are closed.
_callers: Final[list[_Caller]] = []


def _end_callers() -> None:
    while _callers:
        _callers.pop().end()


group.on_leave(_end_callers)


def call_apart(function: Callable[[Any], Any], argument: Any, members: Set[int]) -> Any:
    """Call a function of C++ that waits for other processes, in a thread that can be left.

    Args:
        function: the function.
        argument: its argument.
        members: the numbers of the processes that it waits for.

    Raises:
        DistributedError: one of them has died.
    """
    try:
        caller = _callers.pop()
    except IndexError:
        caller = _Caller()
    results, ended = caller.start(function, argument)
    since, apart = 0.0, False
    try:
        while not ended.acquire(timeout=0.1):
            if not group.dead().keys() & members:
                continue
            since = since or time.monotonic()
            seconds = time.monotonic() - since
            if not apart and seconds > group.GRACE:
                apart = group.disconnect()
            if seconds > (_LATEST if apart else group.GRACE):
                group.check(members)
    except BaseException:
        # It comes back when the process that it waits for has ended, and is waited for at exit: see
        # `process_ends`.
        caller.end()
        raise
    _callers.append(caller)
    ((result, error),) = results
    if error is not None:
        raise error
    return result
