"""What holds the memory of the devices now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dovetail._core.base import notebooks
from dovetail._core.base.bindings import JaxRuntimeError
from dovetail._core.base.records import record
from dovetail._core.runtime.arrays.memory import in_words
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.live_buffers import (
    LiveLine,
    alive,
    bytes_by_device,
    describe_place,
    lines_of,
)
from dovetail._core.runtime.reports import tables

__all__ = ["DeviceUse", "LiveMemory", "live_memory"]

_SHOWN: Final = 20
_HEAD: Final = ("size", "arrays", "largest", "on", "made at")
_SIDES: Final = ("right", "right", "left", "left", "left")


@record
class DeviceUse:
    """What is used of a device's memory.

    Attributes:
        device: the device, such as ``cuda:0``.
        array_bytes: the live arrays on it.
        statistics: what the device says, by the names of ``device.memory_stats()``; nothing if it
            says nothing.
    """

    device: str
    array_bytes: int
    statistics: Mapping[str, int]

    def __str__(self) -> str:
        parts = [f"{self.device}: {in_words(self.array_bytes)} in arrays"]
        names = (("bytes_in_use", "in use"), ("peak_bytes_in_use", "at the most"))
        for name, words in names:
            count = self.statistics.get(name)
            if count is not None and (name, count) != ("bytes_in_use", self.array_bytes):
                parts.append(f"{in_words(count)} {words}")
        limit = self.statistics.get("bytes_limit")
        return ", ".join(parts) + (f", of {in_words(limit)}" if limit else "")


@record
class LiveMemory:
    """What holds the memory of the devices, made by `dovetail.memory`; prints as a table.

    Attributes:
        lines: the lines whose arrays are alive, those with the most bytes first.
        devices: the devices of this process.
    """

    lines: tuple[LiveLine, ...]
    devices: tuple[DeviceUse, ...]

    @property
    def count(self) -> int:
        """How many arrays are alive."""
        return sum(line.count for line in self.lines)

    @property
    def bytes(self) -> int:
        """What they take of all devices together."""
        return sum(line.bytes for line in self.lines)

    def __str__(self) -> str:
        table = tables.aligned(self._rows(), _SIDES) if self.lines else ""
        below = "\n".join(map(str, self.devices))
        return "\n\n".join(filter(None, [self._title(), table, below]))

    def _repr_html_(self) -> str:
        below = "; ".join(map(str, self.devices))
        return notebooks.boxed(self._title(), "") + notebooks.table(self._rows(), _SIDES, below)

    def _title(self) -> str:
        return f"{self.count} live array{'' if self.count == 1 else 's'} of {in_words(self.bytes)}"

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [_HEAD]
        for line in self.lines[:_SHOWN]:
            types, places = ", ".join(line.largest), ", ".join(line.devices)
            if len(line.devices) > 2:
                places = f"{len(line.devices)} devices"
            rows.append((in_words(line.bytes), str(line.count), types, places, line.source))
        left = self.lines[_SHOWN:]
        if left:
            size, count = sum(line.bytes for line in left), sum(line.count for line in left)
            rows.append((in_words(size), str(count), "", "", f"{len(left)} more lines"))
        return rows


def live_memory(platform: str | None = None) -> LiveMemory:
    """What holds the memory of the devices: the live arrays, by the line that made them.

    Nothing is recorded for it: every array knows where it was made, also by a compiled function.
    What programs take while they run is not among it; `dovetail.stages.Lowered.memory` says that
    beforehand, and the peak that a device tells has it.

    Args:
        platform: the platform; all platforms in use if None.

    Returns:
        The lines and the devices; ``print`` shows them as a table.

    Raises:
        BackendUnavailableError: there is no such platform.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> weights = jnp.zeros((512, 512))
        >>> held = dt.memory("cpu")
        >>> held.lines[0].bytes >= weights.nbytes, held.lines[0].devices
        (True, ('cpu:0',))
    """
    buffers = alive(platform)
    sizes = bytes_by_device(buffers)[0]
    names = clients.started() if platform is None else [platform]
    found: dict[int, Any] = {}
    for name in names:
        for device in clients.backend(name).local_devices():
            found[id(device)] = device
    devices = [
        DeviceUse(describe_place(device), sizes[device], _statistics(device))
        for device in found.values()
    ]
    return LiveMemory(tuple(lines_of(buffers)), tuple(devices))


def _statistics(device: Any) -> dict[str, int]:
    try:
        return dict(device.memory_stats() or {})
    except (JaxRuntimeError, AttributeError, NotImplementedError):
        return {}
