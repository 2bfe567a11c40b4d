"""The parts of an array that its devices hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dovetail._core.base.records import record
from dovetail._core.runtime.arrays import buffers
from dovetail._core.runtime.arrays.parts import is_local

if TYPE_CHECKING:
    from dovetail._core.runtime.arrays.array import Array

__all__ = ["Shard", "shards_of"]


@record(eq=False)
class Shard:
    """The part of an array that one device holds.

    Attributes:
        device: the device.
        sharding: the sharding of the whole array.
        global_shape: the shape of the whole array.
        data: the part, as an array on that device; None if this process does not hold it.
    """

    device: Any
    sharding: Any
    global_shape: tuple[int, ...]
    data: Array | None = None

    @property
    def index(self) -> tuple[slice, ...]:
        """The part's position in the whole array: one slice for each dimension."""
        index: tuple[slice, ...] = self.sharding.devices_indices_map(self.global_shape)[self.device]
        return index

    @property
    def replica_id(self) -> int:
        """The index of this copy among the copies of the same part, in the order of the devices."""
        seen: Counter[str] = Counter()
        for device, index in self.sharding.devices_indices_map(self.global_shape).items():
            if device is self.device:
                return seen[str(index)]
            seen[str(index)] += 1
        raise ValueError(f"{self.device} holds no part of the array")

    def __repr__(self) -> str:
        return (
            f"Shard(device={self.device}, index={self.index}, replica_id={self.replica_id}, "
            f"data={self.data})"
        )


def shards_of(array: Array, wrap: Callable[[Any], Array], everywhere: bool = False) -> list[Shard]:
    """The parts of an array, in the order of the devices.

    Args:
        array: the array.
        wrap: makes an array of a buffer.
        everywhere: whether those on devices of other processes are in the list, without their data.
    """
    sharding, shape = array.sharding, array.shape
    if len(sharding._device_list) == 1:
        return [Shard(sharding._device, sharding, shape, array)]
    if is_local(sharding):
        return [
            Shard(device, sharding, shape, wrap(part))
            for device, part in zip(
                sharding._device_list, buffers.parts(array._buffer), strict=True
            )
        ]
    parts = iter(buffers.parts(array._buffer))
    local = sharding.addressable_devices
    return [
        Shard(device, sharding, shape, wrap(next(parts)) if device in local else None)
        for device in sharding._device_list
        if everywhere or device in local
    ]
