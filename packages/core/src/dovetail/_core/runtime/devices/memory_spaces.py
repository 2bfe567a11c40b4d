"""The memories of devices by what they are for, whatever a platform calls them."""

from __future__ import annotations

import enum
from typing import Any

from dovetail._core.runtime.devices.sharding import memory_kinds

__all__ = ["Space"]


class Space(enum.Enum):
    """A memory for `device_put`, wherever the data is.

    Attributes:
        Device: the memory in which the device computes.
        Host: the host's memory, pinned where the device reads it directly.
        Any: the memory in which the data is.

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = dt.device_put(jnp.ones(3), dt.memory.Space.Host)
        >>> x.sharding.memory_kind, dt.device_put(x, dt.memory.Space.Device).sharding.memory_kind
        ('pinned_host', 'device')
    """

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"Space.{self.name}"

    __str__ = __repr__


#: What the memories are called in programs.
KINDS = {Space.Device: "device", Space.Host: "pinned_host"}


def within(sharding: Any, space: Space) -> Any:
    """A sharding in another memory of its devices.

    Raises:
        ValueError: the devices have no such memory.
    """
    if space is Space.Any:
        return sharding
    kinds = memory_kinds(sharding._device)
    if space is Space.Device:
        return sharding.with_memory_kind(kinds[0])
    for kind in ("pinned_host", "unpinned_host"):
        if kind in kinds:
            return sharding.with_memory_kind(kind)
    raise ValueError(
        f"{sharding._device!r} has no memory of the host's for {space}; it has {', '.join(kinds)}"
    )
