"""What a backend needs of the processes that compute together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from dovetail._core.base.records import record

__all__ = ["ProcessGroup"]


@record
class ProcessGroup:
    """The processes that compute together, for a backend whose devices know each other.

    Attributes:
        process_index: the number of this process, from 0 on.
        process_count: the number of processes.
        client: jaxlib's client of its coordination service, connected: the key-value store and the
            barriers by which clients find each other's devices.
        hostname: the address at which the other processes reach this one.
        local_device_ids: numbers of the devices of this machine that belong to this process; None
            if nothing was said.
        slice_index: the slice of the hardware that this process belongs to; None to find out.
        disconnectors: a list to which a backend may add functions. They are called, from any
            thread, when a process has died and this one's devices wait for it: each ends what
            they exchange with other processes, such that waits become errors, and programs over
            the devices that are left can run.
    """

    process_index: int
    process_count: int
    client: Any
    hostname: str
    local_device_ids: tuple[int, ...] | None = None
    slice_index: int | None = None
    disconnectors: list[Callable[[], object]] = field(
        default_factory=list, compare=False, repr=False
    )
