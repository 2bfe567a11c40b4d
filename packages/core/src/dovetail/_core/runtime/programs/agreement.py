"""Programs of several processes: that all of them are about to run the same one."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

from dovetail._core.base.config import process_timeout
from dovetail._core.runtime.processes import group

if TYPE_CHECKING:
    from dovetail._core.lower.equations import EquationProgram
    from dovetail._core.lower.lowering import LoweredModule

__all__ = ["Meeting", "agree", "meeting_of"]

_MOST_ARGUMENTS = 6


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
    members = sorted({device.process_index for device in devices})
    ids = ",".join([str(device.id) for device in devices]).encode()
    place = f"program {meeting.digest} {hashlib.sha256(ids).hexdigest()}"
    group.agree(place, meeting.text, process_timeout.value, members)
