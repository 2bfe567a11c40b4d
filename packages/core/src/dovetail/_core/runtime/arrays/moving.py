"""Moving arrays to and between shardings over several devices.

Where devices compute in the host's memory, the parts of the result are views of those of the
operand, or are put together out of them on the host. Elsewhere a compiled identity divides the
array anew, and parts are copied from device to device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from dovetail._core.base import caches
from dovetail._core.base.bindings import JaxRuntimeError, _jax, is_unreadable
from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.runtime.arrays import buffers, guards
from dovetail._core.runtime.arrays.global_arrays import dividing_program
from dovetail._core.runtime.arrays.memory import placing
from dovetail._core.runtime.arrays.parts import is_free, is_local, is_on_host, parts_of
from dovetail._core.runtime.devices import process_ends
from dovetail._core.runtime.devices.mesh import Mesh
from dovetail._core.runtime.devices.named_sharding import NamedSharding
from dovetail._core.runtime.devices.sharding import memory_kinds

__all__ = ["move_parts"]

#: For each dimension, where a part of an array begins and ends.
Box = tuple[tuple[int, int], ...]

_ALWAYS_COPY: Final = _jax.ArrayCopySemantics.ALWAYS_COPY
_COPY_DURING_CALL: Final = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL


def move_parts(
    buffer: Any, sharding: Any, committed: bool, *, donate: bool = False, share: bool = True
) -> Any:
    """The data of a buffer under another sharding; one of the two is over several devices.

    Args:
        buffer: the buffer.
        sharding: the sharding, of devices of the same client.
        committed: whether the data is committed to its devices.
        donate: whether the memory of the buffer may be used for the result.
        share: whether the result may share memory with the buffer.
    """
    aval, present = buffer.aval, buffer._sharding
    process_ends.check()
    sharding.shard_shape(aval.shape)  # raises where it cannot be divided
    guards.check("device-to-device", aval, sharding)
    try:
        with guards.suspended():
            return _moved(buffer, present, sharding, committed, donate, share)
    except (JaxRuntimeError, MemoryError) as error:
        raise placing(error, "moving", aval) from None


def _moved(
    buffer: Any, present: Any, sharding: Any, committed: bool, donate: bool, share: bool
) -> Any:
    aval = buffer.aval
    local = is_local(present) and is_local(sharding)
    if local and not aval.size:
        return buffers.put(np.zeros(aval.shape, aval.dtype), aval, sharding, committed)
    if _divide_alike(present, sharding, aval.ndim):
        return _copied(buffer, sharding, committed)
    if local and is_on_host(present) and _is_readable(present, aval.dtype):
        return _moved_on_host(buffer, sharding, committed, share)
    computing = present.with_memory_kind(memory_kinds(present._device)[0])
    if computing is not present:
        buffer, present, donate = _copied(buffer, computing, committed), computing, True
    if len(present._device_list) == len(sharding._device_list):
        divided = _divided_anew(buffer, _on_devices_of(present, sharding), committed, donate)
        same = divided._sharding is sharding
        return divided if same else _copied(divided, sharding, committed)
    if local:
        return _cut(buffer, sharding, committed)
    return buffers.put(buffers.read(buffer), aval, sharding, committed)


def _is_readable(sharding: Any, dtype: Any) -> bool:
    """Whether the host sees the memory of parts."""
    return (len(sharding._device_list) == 1 or is_free(sharding)) and not is_unreadable(dtype)


def _divide_alike(one: Any, other: Any, ndim: int) -> bool:
    """Whether the parts on the devices of one sharding are those on the devices of another."""
    return len(one._device_list) == len(other._device_list) and bool(
        one._to_xla_hlo_sharding(ndim) == other._to_xla_hlo_sharding(ndim)
    )


def _copied(buffer: Any, sharding: Any, committed: bool) -> Any:
    """A copy of each part on the device that is at its place in another sharding."""
    (copied,) = _jax.batched_copy_array_to_devices_with_sharding(
        [buffer], [sharding._internal_device_list], [sharding], [_ALWAYS_COPY]
    )
    return buffers.rewrap(copied, buffer.aval, sharding, committed)


# --------------------------------------------------------------------------------- in host memory


class _Piece(NamedTuple):
    """Where a part of the operand and a part of the result overlap.

    Attributes:
        number: which of the operand's parts.
        source: the place in it.
        target: the place in the part of the result; None if it fills that.
    """

    number: int
    source: tuple[slice, ...]
    target: tuple[slice, ...] | None


class _Plan(NamedTuple):
    """How the parts of a result are put together.

    Attributes:
        sources: for each different part of the operand, the place in the list of its devices.
        targets: for each different part of the result, its shape and pieces.
        numbers: for each device of the result, which of the parts it gets.
    """

    sources: tuple[int, ...]
    targets: tuple[tuple[tuple[int, ...], tuple[_Piece, ...]], ...]
    numbers: tuple[int, ...]


@caches.lru_cache(maxsize=1024)
def _plan(shape: tuple[int, ...], present: Any, sharding: Any) -> _Plan:
    sources = _different(_boxes(shape, present))
    boxes = _boxes(shape, sharding)
    targets = _different(boxes)
    order = {box: number for number, box in enumerate(targets)}
    return _Plan(
        tuple(sources.values()),
        tuple((_sizes(box), tuple(_pieces(box, list(sources)))) for box in targets),
        tuple(order[box] for box in boxes),
    )


def _boxes(shape: tuple[int, ...], sharding: Any) -> list[Box]:
    """The part of each device, in the order of the devices."""
    if len(sharding._device_list) == 1:
        return [tuple((0, n) for n in shape)]
    return [
        tuple((part.start or 0, n if part.stop is None else part.stop) for part, n in pairs)
        for pairs in (zip(index, shape, strict=True) for index in sharding._indices(shape))
    ]


def _different(boxes: Sequence[Box]) -> dict[Box, int]:
    """The different ones of some boxes, with the place of the first of each."""
    found: dict[Box, int] = {}
    for number, box in enumerate(boxes):
        found.setdefault(box, number)
    return found


def _sizes(box: Box) -> tuple[int, ...]:
    return tuple(stop - start for start, stop in box)


def _pieces(box: Box, sources: Sequence[Box]) -> Iterator[_Piece]:
    for number, source in enumerate(sources):
        common = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(box, source, strict=True)]
        if any(start >= stop for start, stop in common):
            continue
        fills = common == list(box)
        yield _Piece(number, _within(common, source), None if fills else _within(common, box))
        if fills:
            return


def _within(common: Sequence[tuple[int, int]], box: Box) -> tuple[slice, ...]:
    return tuple(
        slice(start - first, stop - first)
        for (start, stop), (first, _) in zip(common, box, strict=True)
    )


def _moved_on_host(buffer: Any, sharding: Any, committed: bool, share: bool) -> Any:
    aval = buffer.aval
    plan = _plan(aval.shape, buffer._sharding, sharding)
    targets = plan.targets
    if len(targets) == 1 < len(plan.sources):
        values = [buffers.read(buffer)]
        targets = ((aval.shape, (_Piece(0, (), None),)),)
    else:
        several = len(buffer._sharding._device_list) > 1
        own = parts_of(buffer, plan.sources) if several else [buffer]
        values = list(map(buffers.read, own))
    made = []
    for shape, pieces in targets:
        first = pieces[0]
        if first.target is None:
            value = values[first.number][first.source]
            if not share or not value.flags.c_contiguous:
                value = buffers.private(value)
        else:
            value = buffers.aligned(shape, aval.dtype)
            for piece in pieces:
                assert piece.target is not None
                buffers.fill(value, piece.target, values[piece.number][piece.source])
        made.append(value)
    return buffers.put_parts([made[n] for n in plan.numbers], aval, sharding, committed)


# -------------------------------------------------------------------------------- on the devices


def _on_devices_of(present: Any, sharding: Any) -> Any:
    """A sharding that divides as another one does, over devices of which there are as many."""
    same = present._device_list == sharding._device_list
    if same and present.memory_kind == sharding.memory_kind:
        return sharding
    mesh = sharding.mesh
    devices = np.empty(len(present._device_list), object)
    devices[:] = present._device_list
    own = Mesh(devices.reshape(mesh.devices.shape), mesh.axis_names, axis_types=mesh.axis_types)
    return NamedSharding(own, sharding.spec, present.memory_kind)


def _divided_anew(buffer: Any, sharding: Any, committed: bool, donate: bool) -> Any:
    """The data of a buffer divided in another way over the same devices in the same order."""
    program = dividing_program(buffer.aval, buffer._sharding, sharding, donate)
    (result,) = program.executable.execute_sharded([buffer]).consume_with_handlers(
        [buffers.handler(buffer.aval, sharding, committed)]
    )
    return result


def _cut(buffer: Any, sharding: Any, committed: bool) -> Any:
    """The data of a buffer over another number of devices, by parts that are copied to them."""
    aval, present = buffer.aval, buffer._sharding
    sources = _different(_boxes(aval.shape, present))
    boxes = _boxes(aval.shape, sharding)
    if not all(any(_contains(source, box) for source in sources) for box in boxes):
        # Then every device of the operand holds all of it.
        buffer = _divided_anew(buffer, present.update(spec=PartitionSpec()), committed, False)
        sources = _different(_boxes(aval.shape, buffer._sharding))
    own = parts_of(buffer) if len(present._device_list) > 1 else [buffer]
    made: dict[Box, Any] = {}
    for box in boxes:
        if box not in made:
            source, number = next(item for item in sources.items() if _contains(item[0], box))
            made[box] = _sliced(own[number], _within(box, source))
    return _jax.batched_device_put(
        buffers.typed(aval, sharding),
        sharding,
        [made[box] for box in boxes],
        sharding._device_list,
        committed,
        False,
        _COPY_DURING_CALL,
        True,
    )


def _contains(box: Box, other: Box) -> bool:
    return all(a <= c and d <= b for (a, b), (c, d) in zip(box, other, strict=True))


def _sliced(buffer: Any, index: tuple[slice, ...]) -> Any:
    """A part of a buffer on its device."""
    from dovetail._core.ops.shape.slicing import slice_p  # deferred: rare
    from dovetail._core.runtime.arrays.array import array_from_buffer  # deferred: cycle
    from dovetail._core.trace.state import evaluation_trace  # deferred: rare

    starts = tuple(part.start for part in index)
    stops = tuple(part.stop for part in index)
    if all(start == 0 for start in starts) and stops == buffer.aval.shape:
        return buffer
    params = {"start_indices": starts, "limit_indices": stops, "strides": None}
    return evaluation_trace.process(slice_p, [array_from_buffer(buffer)], params)._buffer
