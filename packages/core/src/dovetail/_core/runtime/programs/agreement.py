"""Programs of several processes: that all of them are about to run the same one."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Set
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dovetail._core.base.bindings import JaxRuntimeError
from dovetail._core.base.config import process_timeout
from dovetail._core.runtime.arrays.global_arrays import processes_of
from dovetail._core.runtime.processes import group

if TYPE_CHECKING:
    from dovetail._core.lower.equations import EquationProgram
    from dovetail._core.lower.lowering import LoweredModule

__all__ = ["Meeting", "agree", "call_apart", "may_block", "meeting_of"]

_MOST_ARGUMENTS: Final = 6
#: The CPU's client runs programs of fewer operations than half of this in the calling thread.
_FEW: Final = 2000
#: Seconds that a call may take after the death of a process that it waits for.
_GRACE: Final = 1.0


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


def may_block(executable: Any, sharding: Any) -> bool:
    """Whether each call of a program of several processes may wait for the others.

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


def call_apart(function: Callable[[Any], Any], argument: Any, members: Set[int]) -> Any:
    """Call a function of C++ that waits for other processes, in a thread that can be left.

    Args:
        function: the function.
        argument: its argument.
        members: the numbers of the processes that it waits for.

    Raises:
        DistributedError: one of them has died.
    """
    results: list[Any] = []
    errors: list[BaseException] = []
    ended = threading.Event()

    def call() -> None:
        try:
            results.append(function(argument))
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=call, name="dovetail program", daemon=True)
    thread.start()
    since = 0.0
    # If it is left, it comes back when the process that it waits for has ended, and is waited for
    # at exit: see `process_ends`.
    while not ended.wait(0.1):
        if group.dead().keys() & members:
            since = since or time.monotonic()
            if time.monotonic() - since > _GRACE:
                group.check(members)
    if errors:
        raise errors[0]
    return results[0]
