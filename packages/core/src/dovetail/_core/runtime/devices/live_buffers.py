"""What live arrays take of the devices' memory, by the user's line that made them.

jaxlib keeps with every buffer the stack at which it was made, so that nothing has to be recorded.
Arrays whose buffers were made later know it themselves.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

from dovetail._core.base.bindings import JaxRuntimeError
from dovetail._core.base.records import record
from dovetail._core.base.source import user_frame
from dovetail._core.ir.avals import ShapedArray
from dovetail._core.runtime.devices import clients

__all__ = ["LiveLine", "bytes_by_device", "everything", "know_makers", "lines_of"]

NO_LINE = "no line of the user's"


@record
class LiveLine:
    """The live arrays that one line has made.

    Attributes:
        source: the line, ``train.py:12 (init)``; ``"no line of the user's"`` for what the framework
            keeps for itself.
        file: the path of the file; nothing without a line.
        line: its number, counted from 1; 0 without a line.
        count: how many arrays there are.
        bytes: what they take of all devices together.
        largest: the types of the largest of them, the largest first, such as ``f32[512,512]``.
        devices: the devices that they are on.
    """

    source: str
    file: str
    line: int
    count: int
    bytes: int
    largest: tuple[str, ...]
    devices: tuple[str, ...]


#: How many types a line names.
_TYPES = 3


def size_of(buffer: Any) -> int:
    """The bytes that a buffer takes of all devices of this process together."""
    measure = getattr(buffer, "on_device_size_in_bytes", None)
    if measure is None:  # of a backend in Python
        aval = buffer.aval
        return int(prod(aval.shape)) * int(getattr(aval.dtype, "itemsize", 0))
    try:
        return int(measure())
    except JaxRuntimeError:  # its computation has failed
        return 0


_makers: Final[list[Callable[[], dict[int, Any]]]] = []


def know_makers(function: Callable[[], dict[int, Any]]) -> None:
    """Have a function asked which buffers have other makers than jaxlib knows, by their `id`.

    It makes the buffers of arrays that have none yet.
    """
    _makers.append(function)


def everything(platform: str | None = None) -> list[Any]:
    """The live buffers of a platform, or of all platforms that have a client."""
    for function in _makers:
        function()
    return clients.live_buffers(platform)


def alive(platform: str | None = None) -> list[Any]:
    """The live buffers that hold arrays, each once."""
    found = []
    places: set[tuple[int, int]] = set()
    for buffer in everything(platform):
        if buffer.is_deleted() or not isinstance(buffer.aval, ShapedArray):
            continue
        place = _address(buffer)
        if place is not None:
            if place in places:
                continue  # two arrays share their memory
            places.add(place)
        found.append(buffer)
    return found


def _address(buffer: Any) -> tuple[int, int] | None:
    """Where a buffer on one device is; None if that is not known without waiting."""
    if not buffer.aval.size or not hasattr(buffer, "unsafe_buffer_pointer"):
        return None
    devices = _devices(buffer)
    try:
        if len(devices) != 1 or not buffer.is_ready():
            return None
        return devices[0].id, int(buffer.unsafe_buffer_pointer())
    except (JaxRuntimeError, ValueError, NotImplementedError):
        return None


def _devices(buffer: Any) -> Sequence[Any]:
    """The devices of this process that a buffer is on."""
    devices: Sequence[Any] = buffer._sharding._device_list
    return [device for device in devices if clients.is_addressable(device)]


def lines_of(buffers: Sequence[Any]) -> list[LiveLine]:
    """The lines that made buffers, those that made the most bytes first."""
    by_line: dict[tuple[str, int], list[Any]] = {}
    sources: dict[tuple[str, int], str] = {}
    others = {key: place for function in _makers for key, place in function().items()}
    for buffer in buffers:
        place = others.get(id(buffer), getattr(buffer, "traceback", None))
        frame = None if place is None else user_frame(place)
        key = ("", 0) if frame is None else (frame.file, frame.line)
        sources.setdefault(key, NO_LINE if frame is None else str(frame))
        by_line.setdefault(key, []).append(buffer)
    lines = []
    for (file, line), made in by_line.items():
        ranked = sorted(made, key=size_of, reverse=True)
        types = dict.fromkeys(buffer.aval.short_name() for buffer in ranked)
        places = {describe_place(device) for buffer in made for device in _devices(buffer)}
        total = sum(map(size_of, made))
        largest = tuple(list(types)[:_TYPES])
        where = tuple(sorted(places))
        source = sources[file, line]
        lines.append(LiveLine(source, file, line, len(made), total, largest, where))
    return sorted(lines, key=lambda entry: (-entry.bytes, entry.source))


def describe_place(device: Any) -> str:
    """A device in short, such as ``cpu:0``."""
    return f"{clients.platform_of(device)}:{device.id}"


def bytes_by_device(buffers: Sequence[Any]) -> tuple[Counter[Any], Counter[Any], dict[Any, int]]:
    """For each device the bytes of its arrays, their number, and the bytes of the largest."""
    sizes: Counter[Any] = Counter()
    counts: Counter[Any] = Counter()
    largest: dict[Any, int] = {}
    for buffer in buffers:
        devices = _devices(buffer)
        for device in devices:
            share = size_of(buffer) // len(devices)
            sizes[device] += share
            counts[device] += 1
            largest[device] = max(largest.get(device, 0), share)
    return sizes, counts, largest
