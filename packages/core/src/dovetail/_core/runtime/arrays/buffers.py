"""jaxlib's buffer objects: creating them from host values, moving, copying and reading them.

A buffer (jaxlib's ``ArrayImpl``) carries an aval, a sharding and a committed flag. Users never see
one: an `Array` holds it. Nothing here makes jaxlib look for jax, and only `put_shared` aliases
memory that a caller can write to.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

import numpy as np

from dovetail._core.base import caches, events
from dovetail._core.base.bindings import (
    JaxRuntimeError,
    _jax,
    host_copy,
    is_unreadable,
    reads_parts_alone,
    result_handler,
)
from dovetail._core.plugins import protocols
from dovetail._core.runtime.arrays import guards
from dovetail._core.runtime.arrays.failures import original
from dovetail._core.runtime.arrays.global_arrays import (
    check_own,
    lost,
    put_own,
    redivided,
    unreadable,
    wait_until_ready,
)
from dovetail._core.runtime.arrays.memory import later_shortage, placing
from dovetail._core.runtime.arrays.parts import is_free, is_local, is_on_host, parts_of
from dovetail._core.runtime.devices import clients, process_ends
from dovetail._core.runtime.devices.plugin_buffers import PluginBuffer
from dovetail._core.runtime.devices.sharding import SingleDeviceSharding
from dovetail._core.runtime.processes import group

__all__ = [
    "Buffer",
    "aligned",
    "block_until_ready",
    "copy",
    "fill",
    "handler",
    "is_buffer",
    "move",
    "parts",
    "place",
    "private",
    "put",
    "put_parts",
    "put_shared",
    "read",
    "rewrap",
    "typed",
    "wait",
]

Buffer = Any

_batched_device_put = _jax.batched_device_put
_batched_copy = _jax.batched_copy_array_to_devices_with_sharding
_batched_block = _jax.batched_block_until_ready
_buffer_class: Final = _jax.ArrayImpl
# The default would share aligned memory with the NumPy array; its owner may write to it later.
_COPY_DURING_CALL: Final = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_SHARE: Final = _jax.HostBufferSemantics.ZERO_COPY
_ALWAYS_COPY: Final = _jax.ArrayCopySemantics.ALWAYS_COPY
#: Bytes of an array that is worth a thought about how it is copied.
_LARGE: Final = 2**18
#: That of XLA's memory on the CPU, in bytes.
_ALIGNMENT: Final = 64
_NO_MEMORY: Final = (
    "no data can be placed on it",
    "describe arguments by dovetail.ShapeDtypeStruct(shape, dtype, sharding=...), or place them on "
    "a device out of dovetail.devices()",
)


def typed(aval: Any, sharding: Any) -> Any:
    """The aval of an array that has a sharding: it says how it is divided over explicit axes."""
    return sharding._typed(aval)


@caches.lru_cache(maxsize=8192)
def handler(aval: Any, sharding: Any, committed: bool = False) -> Any:
    """A function that sets the aval, sharding and committed flag of a program's result."""
    aval = typed(aval, sharding)
    if sharding._plugin_client is None:
        return result_handler(aval, sharding, committed)
    return lambda cell: _from_backend(cell, aval, sharding, committed, "Executable.execute")


def _from_backend(
    cell: list[Any], aval: Any, sharding: Any, committed: bool, method: str
) -> PluginBuffer:
    """Wrap a buffer that a backend written in Python returned.

    Args:
        cell: a list that holds the backend's buffer.
        aval: the abstract value.
        sharding: where it is.
        committed: whether the data is committed to the device.
        method: the method that returned it, for the message.

    Raises:
        TypeError: it does not satisfy the protocol `Buffer`.
    """
    missing = protocols.missing_members(cell[0], protocols.Buffer)
    if missing:
        raise TypeError(
            f"{method} of the platform {clients.platform_of(sharding._device)!r} gave "
            f"{cell[0]!r:.80}, which is no Buffer: it lacks {', '.join(missing)}"
        )
    return PluginBuffer(cell, aval, sharding, committed)


def is_buffer(value: object) -> bool:
    """Whether a value is one of jaxlib's buffers: ours, or an array of jax."""
    return type(value) is _buffer_class


def put(value: Any, aval: Any, sharding: Any, committed: bool = False) -> Buffer:
    """Copy a host value to a device.

    Args:
        value: a NumPy array or scalar of exactly the aval's shape and dtype, in native byte order.
        aval: its (physical) abstract value.
        sharding: where to place it.
        committed: whether the data is committed to its devices.

    Raises:
        BackendUnavailableError: the device is compile-only.
        TypeError: a backend written in Python returned something other than a buffer.
    """
    if not events.listeners:
        return place(value, aval, sharding, committed)
    start = time.perf_counter()
    buffer = place(value, aval, sharding, committed)
    _tell_moved(aval, start, f"a value of the host was copied to {sharding._device}")
    return buffer


def _tell_moved(aval: Any, start: float, reason: str) -> None:
    """Tell those that listen of data that has moved."""
    cause = events.current_cause()
    if cause is None or not cause.argument:
        cause = events.Cause(reason)
    seconds = time.perf_counter() - start
    count = math.prod(aval.shape) * aval.dtype.itemsize
    events.emit("transfer", aval.short_name(), seconds, cause, nbytes=count)


def place(value: Any, aval: Any, sharding: Any, committed: bool = False) -> Buffer:
    """As `put`, but none of those that listen is told."""
    if sharding._plugin_client is not None:
        clients.check_runs(sharding._device, *_NO_MEMORY)
        guards.check("host-to-device", aval, sharding)
        data = sharding._plugin_client.put(np.asarray(value, aval.dtype), sharding._device)
        return _from_backend([data], aval, sharding, committed, "Client.put")
    aval = typed(aval, sharding)
    if not is_local(sharding):
        clients.check_runs(sharding._device, *_NO_MEMORY)
        return put_own(value, aval, sharding, committed)
    parts, semantics = [value], _COPY_DURING_CALL
    if len(sharding._device_list) > 1:
        parts, semantics = _parts(value, sharding)
    try:
        return _batched_device_put(
            aval, sharding, parts, sharding._device_list, committed, False, semantics, True
        )
    except JaxRuntimeError as error:
        clients.check_runs(sharding._device, *_NO_MEMORY)
        if guards.is_none(error):
            with guards.suspended():
                return place(value, aval, sharding, committed)
        raise placing(error, "placing on the device", aval) from None


def _parts(value: Any, sharding: Any) -> tuple[list[Any], Any]:
    """The parts of a host value for each device, and what jaxlib may do with their memory."""
    value = np.asarray(value)
    indices, first, numbers = _different_parts(sharding, value.shape)
    if not value.size:
        return [np.array(value[index]) for index in indices], _SHARE
    if len(first) == len(numbers):
        values = [value[index] for index in indices]
        strided = value.nbytes >= _LARGE and not values[0].flags.c_contiguous
        # Parts of a broadcast value share memory.
        apart = len({part.__array_interface__["data"][0] for part in values}) == len(values)
        if apart and not (strided and is_on_host(sharding)):
            return values, _COPY_DURING_CALL
        return list(map(private, values)), _SHARE
    if len(first) == 1 and not is_on_host(sharding):
        return [value] * len(numbers), _COPY_DURING_CALL
    # jaxlib does not copy parts that share memory. Devices in the host's memory share a copy; XLA
    # never writes to what it does not own.
    own = [private(value[indices[n]]) for n in first]
    return [own[n] for n in numbers], _SHARE


@caches.lru_cache(maxsize=1024)
def _different_parts(
    sharding: Any, shape: tuple[int, ...]
) -> tuple[tuple[Any, ...], list[int], list[int]]:
    """The parts of the devices.

    Returns:
        Their indices, the devices that are the first to have theirs, and for each device, the
        number of its part among those of the first.
    """
    indices = sharding._indices(shape)
    first: dict[str, int] = {}
    for number, index in enumerate(indices):
        first.setdefault(str(index), number)
    order = {key: number for number, key in enumerate(first)}
    return indices, list(first.values()), [order[str(index)] for index in indices]


def aligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """New memory that a CPU device takes as it is."""
    count = math.prod(shape) * dtype.itemsize
    memory = np.empty(count + _ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % _ALIGNMENT
    array: np.ndarray[Any, Any] = memory[start : start + count].view(dtype).reshape(shape)
    return array


def fill(target: np.ndarray[Any, Any], index: tuple[slice, ...], value: Any) -> None:
    """Write ``target[index] = value``, a part of an array divided evenly.

    NumPy copies fastest where what lies together is one element.
    """
    if target.nbytes >= _LARGE and value.strides[-1] == value.dtype.itemsize:
        count = value.shape[-1]
        start, stop, _ = index[-1].indices(target.shape[-1])
        if count == stop - start and not start % count and not target.shape[-1] % count:
            run = np.dtype((np.void, count * value.dtype.itemsize))
            whole = target.view(run)
            whole[*index[:-1], start // count : stop // count] = value.view(run)
            return
    target[index] = value


def private(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy in memory that nobody will write to, and that a CPU device takes as it is."""
    made = aligned(value.shape, value.dtype)
    if value.ndim:
        fill(made, (slice(None),) * value.ndim, value)
    else:
        made[...] = value
    return made


def put_parts(values: Sequence[Any], aval: Any, sharding: Any, committed: bool) -> Buffer:
    """Place parts on the devices of a sharding, in their order, and share their memory.

    Args:
        values: NumPy arrays that nobody will write to.
        aval: the abstract value of the whole.
        sharding: where to place them.
        committed: whether the data is committed to its devices.
    """
    aval = typed(aval, sharding)
    return _batched_device_put(
        aval, sharding, list(values), sharding._device_list, committed, False, _SHARE, True
    )


def put_shared(value: np.ndarray[Any, Any], aval: Any, sharding: Any, committed: bool) -> Buffer:
    """Like `put`, but share the NumPy array's memory if the device can (it must be aligned)."""
    if sharding._plugin_client is not None or len(sharding._device_list) > 1:
        return put(value, aval, sharding, committed)
    clients.check_runs(sharding._device, *_NO_MEMORY)
    aval = typed(aval, sharding)
    return _batched_device_put(
        aval, sharding, [value], sharding._device_list, committed, False, _SHARE, True
    )


def rewrap(buffer: Buffer, aval: Any, sharding: Any, committed: bool) -> Buffer:
    """The same memory under another aval, sharding object or committed flag."""
    if sharding._plugin_client is not None:
        return PluginBuffer(buffer.cell, aval, sharding, committed)
    return handler(aval, sharding, committed)(buffer)


def move(
    buffer: Buffer, sharding: Any, committed: bool, *, donate: bool = False, share: bool = True
) -> Buffer:
    """The data of a buffer on another device, or the buffer itself if it is already there.

    Args:
        buffer: the buffer.
        sharding: where the data is to be.
        committed: whether it is committed to its devices.
        donate: whether the memory of the buffer may be used for a result over several devices.
        share: whether such a result may share memory with the buffer.
    """
    if not events.listeners or buffer._sharding is sharding:
        return _move(buffer, sharding, committed, donate, share)
    start = time.perf_counter()
    moved = _move(buffer, sharding, committed, donate, share)
    places = f"from {buffer._sharding} to {sharding}"
    _tell_moved(buffer.aval, start, f"an array was moved {places}")
    return moved


def _move(buffer: Buffer, sharding: Any, committed: bool, donate: bool, share: bool) -> Buffer:
    present = buffer._sharding
    if present is sharding:
        if buffer._committed is committed:
            return buffer
        return rewrap(buffer, buffer.aval, sharding, committed)
    if present._device.client is not sharding._device.client:
        return put(read(buffer), buffer.aval, sharding, committed)
    if not type(present) is type(sharding) is SingleDeviceSharding:
        if present.is_equivalent_to(sharding, buffer.aval.ndim):
            return rewrap(buffer, buffer.aval, sharding, committed)
        if not is_local(present):
            return redivided(buffer, sharding, committed)
        if not is_local(sharding):
            return put(read(buffer), buffer.aval, sharding, committed)
        from dovetail._core.runtime.arrays.moving import move_parts  # deferred: it uses this module

        return move_parts(buffer, sharding, committed, donate=donate, share=share)
    check_own(sharding)
    if sharding._plugin_client is not None:
        guards.check("device-to-device", buffer.aval, sharding)
        data = sharding._plugin_client.copy(buffer.data, sharding._device)
        return _from_backend([data], buffer.aval, sharding, committed, "Client.copy")
    try:
        (moved,) = _batched_copy(
            [buffer], [sharding._internal_device_list], [sharding], [_ALWAYS_COPY]
        )
    except JaxRuntimeError as error:
        if guards.is_none(error):
            with guards.suspended():
                return _move(buffer, sharding, committed, donate, share)
        raise placing(error, "moving", buffer.aval) from None
    return rewrap(moved, buffer.aval, sharding, committed)


def parts(buffer: Buffer) -> list[Buffer]:
    """The parts of a buffer on the devices that this process can address, in their order."""
    sharding = buffer._sharding
    if len(sharding._device_list) == 1:
        return [buffer]
    if is_local(sharding):
        return parts_of(buffer)
    aval = buffer.aval
    part = aval.update(shape=sharding.shard_shape(aval.shape), weak_type=aval.weak_type)
    devices = list(filter(clients.is_addressable, sharding._device_list))
    return [
        rewrap(own, part, SingleDeviceSharding(device, sharding.memory_kind), True)
        for device, own in zip(devices, buffer._arrays, strict=True)
    ]


def copy(buffer: Buffer) -> Buffer:
    """A copy of the data in new memory on the same device."""
    sharding = buffer._sharding
    if sharding._plugin_client is not None:
        data = sharding._plugin_client.copy(buffer.data, sharding._device)
        return _from_backend([data], buffer.aval, sharding, buffer._committed, "Client.copy")
    if not is_local(sharding):
        make = handler(buffer.aval, sharding, buffer._committed)
        return make([copy(part) for part in parts(buffer)])
    try:
        with guards.suspended():  # nothing leaves the device
            (copied,) = _batched_copy(
                [buffer], [sharding._internal_device_list], [sharding], [_ALWAYS_COPY]
            )
    except JaxRuntimeError as error:
        raise placing(error, "copying", buffer.aval) from None
    return rewrap(copied, buffer.aval, sharding, buffer._committed)


def read(buffer: Buffer) -> np.ndarray[Any, Any]:
    """The value of a buffer as a read-only NumPy array; waits until it is computed.

    The array is a view if the memory is the host's; otherwise the host copy is cached with the
    buffer.

    Raises:
        JaxRuntimeError: the computation of the value failed, or the buffer is deleted.
    """
    # Check for errors first: NumPy silently turns a failed buffer into an array of objects.
    wait(buffer)
    cached = buffer._npy_value
    if cached is not None:
        host_value: np.ndarray[Any, Any] = cached
        return host_value
    start = time.perf_counter() if events.listeners else 0.0
    if type(buffer) is PluginBuffer:
        guards.check("device-to-host", buffer.aval, buffer._sharding)
        value, copied = buffer.read(), True
    elif is_unreadable(buffer.aval.dtype):
        value, copied = _read_converted(buffer), True
    elif _is_apart(buffer._sharding) and (reads_parts_alone or is_free(buffer._sharding)):
        value, copied = _joined(buffer), True
    else:
        place = buffer._sharding
        if not (is_local(place) or place.is_fully_replicated):
            raise unreadable(buffer.aval, place)
        try:
            value, copied = host_copy(buffer)
        except (JaxRuntimeError, MemoryError) as error:
            raise placing(error, "copying to the host", buffer.aval) from None
    if value.flags.writeable:
        value.flags.writeable = False
    if copied:  # a cached view would form a reference cycle with the buffer
        buffer._npy_value = value
        if start:
            _tell_moved(buffer.aval, start, f"the host read it from {buffer._sharding._device}")
    return value


def _is_apart(sharding: Any) -> bool:
    return len(sharding._device_list) > 1 and is_local(sharding)


def _joined(buffer: Buffer) -> np.ndarray[Any, Any]:
    """The value of a buffer over several devices, put together on the host."""
    aval = buffer.aval
    indices, first, _ = _different_parts(buffer._sharding, aval.shape)
    values = [host_copy(own)[0] for own in parts_of(buffer, first)]
    if len(values) == 1:
        return values[0]
    whole = aligned(aval.shape, aval.dtype)
    for number, value in zip(first, values, strict=True):
        fill(whole, indices[number], value)
    return whole


def _read_converted(buffer: Buffer) -> np.ndarray[Any, Any]:
    """The value of a buffer with a sub-byte dtype, read by way of a wider dtype."""
    from dovetail._core.basis.elementwise import convert_element_type_p  # deferred: rare
    from dovetail._core.runtime.arrays.array import array_from_buffer  # deferred: cycle
    from dovetail._core.trace.state import evaluation_trace  # deferred: rare

    dtype = buffer.aval.dtype
    wide: np.dtype[Any] = np.dtype(np.uint8 if dtype.name.startswith("u") else np.int8)
    if dtype.name.startswith("float"):
        wide = np.dtype(np.float32)
    params = {"new_dtype": wide, "weak_type": False, "sharding": None}
    converted = evaluation_trace.process(
        convert_element_type_p, [array_from_buffer(buffer)], params
    )
    return read(converted._buffer).astype(dtype)


def block_until_ready(buffers: Sequence[Buffer]) -> None:
    """Wait until buffers are computed.

    Raises:
        JaxRuntimeError: one of the computations failed; if a callback caused it, its exception.
    """
    if not events.listeners:
        _block(buffers)
        return
    waits, start = [b for b in buffers if not _is_done(b)], time.perf_counter()
    _block(buffers)
    if waits:
        _tell_waited(waits[0], start, len(waits) - 1)


def _block(buffers: Sequence[Buffer]) -> None:
    failure = None
    try:
        for buffer in buffers:
            if type(buffer) is PluginBuffer:
                buffer.block_until_ready()
        _batched_block([buffer for buffer in buffers if type(buffer) is not PluginBuffer])
    except JaxRuntimeError as error:
        failure = error
    if failure is not None:
        _raise_cause(failure)


def wait(buffer: Buffer) -> None:
    """Wait until a buffer is computed.

    Raises:
        JaxRuntimeError: the computation failed; if a callback caused it, its exception.
    """
    start = time.perf_counter() if events.listeners and not _is_done(buffer) else 0.0
    failure = None
    try:
        buffer.block_until_ready()
    except JaxRuntimeError as error:
        failure = error
    if failure is not None:  # not above: Ctrl-C, which is noticed now, is no consequence of it
        _raise_cause(failure)
    if start:
        _tell_waited(buffer, start)


def _is_done(buffer: Buffer) -> bool:
    return bool(buffer.is_deleted() or buffer.is_ready())


def _tell_waited(buffer: Buffer, start: float, more: int = 0) -> None:
    """Tell those that listen that the host has waited for a buffer, and perhaps for more."""
    others = f", and of {more} others" if more else ""
    cause = events.Cause(f"the host asked for it before it was computed{others}")
    events.emit("wait", buffer.aval.short_name(), time.perf_counter() - start, cause)


def _checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of jaxlib behind `process_ends.check`."""

    def call(*args: Any) -> Any:
        process_ends.check()
        return function(*args)

    return call


def _wait_checked(buffer: Buffer) -> None:
    # In the child of a fork what is computed can be read, and what is not never will be.
    if not process_ends.in_child() or not (buffer.is_deleted() or buffer.is_ready()):
        process_ends.check()
    _wait(buffer)


def _wait_watched(buffer: Buffer) -> None:
    if type(buffer) is not PluginBuffer:
        wait_until_ready([buffer])
    _wait(buffer)


def _block_watched(buffers: Sequence[Buffer]) -> None:
    wait_until_ready(buffers)
    _jax.batched_block_until_ready(buffers)


def _watch_from_now_on() -> None:
    global _batched_block, wait
    _batched_block, wait = _block_watched, _wait_watched


def _check_from_now_on() -> None:
    global _batched_device_put, _batched_copy, _batched_block, wait
    _batched_device_put = _checked(_batched_device_put)
    _batched_copy = _checked(_batched_copy)
    _batched_block = _checked(_batched_block)
    wait = _wait_checked


_wait: Final = wait
process_ends.on_end(_check_from_now_on)
group.on_start(_watch_from_now_on)


def _raise_cause(error: BaseException) -> NoReturn:
    cause = original(error)
    if cause is error:
        cause = later_shortage(error)
    if cause is error:
        cause = lost(error)
    if cause is error:
        raise error
    raise cause from cause.__cause__
