"""Arrays over several devices, put together from their parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.counting import counted
from dovetail._core.base.errors import NonArrayArgumentError, ShapeError
from dovetail._core.base.typing import ArrayLike, DTypeLike, PyTree, ShapeLike
from dovetail._core.ir.avals import physical_aval
from dovetail._core.ops.shape.dimensions import canonical_shape
from dovetail._core.runtime.arrays import buffers
from dovetail._core.runtime.arrays.array import Array, KeyArray, wrap_as
from dovetail._core.runtime.arrays.global_arrays import check_own, own_parts
from dovetail._core.runtime.arrays.host import checked_ndarray
from dovetail._core.runtime.arrays.parts import is_local
from dovetail._core.runtime.arrays.transfer import device_put
from dovetail._core.runtime.devices.layout import Format, in_own_order
from dovetail._core.runtime.devices.sharding import Index, Sharding, SingleDeviceSharding

__all__ = [
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
]


def make_array_from_callback(
    shape: ShapeLike,
    sharding: Sharding | Format,
    data_callback: Callable[[Index], ArrayLike],
    dtype: DTypeLike | None = None,
) -> Array:
    """An array over several devices, of parts that a function returns.

    No process needs the whole of it.

    Args:
        shape: the shape of the array.
        sharding: how it is divided over devices.
        data_callback: takes the place of a part in the array, a slice for each dimension, and
            returns it. It is called once for each different part that this process can address.
        dtype: the dtype that the parts must have; that of the first one if None.

    Returns:
        The array, committed to its devices.

    Raises:
        TypeError: `sharding` is not a sharding, `data_callback` not a function, or parts have other
            dtypes than `dtype` or each other.
        ValueError: the array cannot be divided so, or a part has another shape than it must have.

    Differs:
        The function is called once for each part, in JAX once for each device.

        >>> from dovetail.sharding import Mesh, NamedSharding, PartitionSpec as P
        >>> mesh = Mesh(np.array(dt.devices()[:2]).reshape(1, -1), ("x", "y"))
        >>> places = []
        >>> def part(index):
        ...     places.append(index)
        ...     return np.arange(4)[index]
        >>> x = dt.make_array_from_callback((4,), NamedSharding(mesh, P("x")), part)
        >>> len(places)
        1

    Example:
        >>> from dovetail.sharding import Mesh, NamedSharding, PartitionSpec as P
        >>> rows = NamedSharding(Mesh(dt.devices(), "x"), P("x"))
        >>> count = rows.num_devices
        >>> x = dt.make_array_from_callback((count, 2), rows, lambda i: np.ones((count, 2))[i])
        >>> x.sharding is rows, x.shape[1]
        (True, 2)
    """
    function = "make_array_from_callback"
    place = _checked_place(function, sharding)
    if not callable(data_callback):
        raise TypeError(f"{function}: data_callback must be a function, got {data_callback!r:.80}")
    check_own(place, "parts of an array")
    sizes = canonical_shape(shape, function)
    made: dict[str, Any] = {}
    parts = []
    for device, index in own_parts(place, sizes):
        key = str(index)
        if key not in made:
            made[key] = data_callback(index)
        parts.append(device_put(made[key], SingleDeviceSharding(device, place.memory_kind)))
    return make_array_from_single_device_arrays(sizes, place, parts, dtype=dtype)


def make_array_from_single_device_arrays(
    shape: ShapeLike,
    sharding: Sharding,
    arrays: Sequence[Array],
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """An array over several devices, of arrays that lie on them, without a copy.

    Parts that are to be the same on several devices must be: that is not looked at.

    Args:
        shape: the shape of the array.
        sharding: how it is divided over devices.
        arrays: one array on each of the devices that this process can address, in any order.
        dtype: the dtype that they must have; that of the first one if None.

    Returns:
        The array, committed to its devices.

    Raises:
        TypeError: `arrays` is not a list or tuple of arrays, or their dtypes differ.
        ValueError: there is not one on each device, or one has another shape than it must have.

    Example:
        >>> from dovetail.sharding import Mesh, NamedSharding, PartitionSpec as P
        >>> devices = dt.devices()
        >>> parts = [dt.device_put(np.full(2, i), d) for i, d in enumerate(devices)]
        >>> rows = NamedSharding(Mesh(devices, "x"), P("x"))
        >>> x = dt.make_array_from_single_device_arrays((2 * len(devices),), rows, parts)
        >>> print(x[:2])
        [0 0]
    """
    function = "make_array_from_single_device_arrays"
    place = _checked_place(function, sharding)
    check_own(place, "parts of an array")
    sizes = canonical_shape(shape, function)
    listed = isinstance(arrays, (list, tuple))
    if not listed or not all(type(x) in (Array, KeyArray) for x in arrays):
        kinds = [type(x).__name__ for x in arrays] if listed else arrays
        raise NonArrayArgumentError(
            f"{function}: arrays must be a list of arrays on devices, got {kinds!r:.80}; "
            "dovetail.device_put(x, device) places one"
        )
    by_device = {array.device: array for array in arrays}
    expected = [device for device, _ in own_parts(place, sizes)]
    if len(by_device) != len(arrays) or set(by_device) != set(expected):
        raise ShapeError(
            f"{function}: one array must lie on each of the {len(expected)} devices {expected}; "
            f"got {len(arrays)}, on {[array.device for array in arrays]}"
        )
    parts = [by_device[device] for device in expected]
    own = place.shard_shape(sizes)
    first = parts[0]
    wanted = first.dtype if dtype is None else dtypes.check_user_dtype(dtype, function)
    for part in parts:
        if part.shape != own:
            raise ShapeError(
                f"{function}: the parts of an array of shape {sizes} have the shape {own}, and the "
                f"one on {part.device} has {part.shape}"
            )
        if part.dtype != wanted:
            raise TypeError(
                f"{function}: the parts have the dtype {wanted}, and the one on {part.device} has "
                f"{part.dtype}"
            )
    aval = physical_aval(first.aval.update(shape=sizes, weak_type=False))
    make = buffers.handler(aval, place, True)
    joined = [part._buffer for part in parts]
    alone = len(place._device_list) == 1
    return wrap_as(first, make(joined[0] if alone else joined))


def make_array_from_process_local_data(
    sharding: PyTree, local_data: PyTree, global_shape: PyTree = None
) -> PyTree:
    """Arrays over the devices of several processes, of the data that each process has.

    Along a dimension that processes share, the data of one are what its devices hold of it,
    together; along others each process has all. With one process, its data are the array.

    Args:
        sharding: how they are divided over devices: a sharding, or a tree of them.
        local_data: what this process has: an array or a tree of arrays.
        global_shape: the shapes of the whole arrays, a tree of them; None to find out. Along a
            dimension in which it equals the data, each process has all of it.

    Returns:
        The arrays, committed to their devices.

    Raises:
        ValueError: an array cannot be divided so, the data have another size than the devices of
            this process hold, or processes share a dimension unevenly and `global_shape` is not
            given.

    Example:
        >>> from dovetail.sharding import Mesh, NamedSharding, PartitionSpec as P
        >>> whole = NamedSharding(Mesh(dt.devices(), "x"), P())
        >>> print(dt.make_array_from_process_local_data(whole, np.arange(3)))
        [0 1 2]
    """
    function = "make_array_from_process_local_data"
    leaves, tree = pytree.flatten(local_data)
    places = pytree.flatten_up_to_prefix(f"sharding of {function}", sharding, tree)
    shapes: list[Any] = [None] * len(leaves)
    if global_shape is not None:
        shapes = [global_shape] if tree.num_leaves == 1 else tree.flatten_up_to(global_shape)
    made = []
    for leaf, given, shape in zip(leaves, places, shapes, strict=True):
        place = _checked_place(function, given)
        wanted = None if shape is None else canonical_shape(shape, function)
        check_own(place, "parts of an array")
        made.append(_of_local_data(function, place, leaf, wanted))
    return tree.unflatten(made)


def _of_local_data(function: str, place: Any, data: Any, shape: tuple[int, ...] | None) -> Array:
    if is_local(place):
        if shape is not None and shape != np.shape(data):
            raise ShapeError(
                f"{function}: where all devices are this process's, global_shape is that of the "
                f"data, {np.shape(data)}, or None; got {shape}"
            )
        placed: Array = device_put(data, place)
        return placed
    value = checked_ndarray(np.asarray(data), f"local_data of {function}")
    place.check_compatible_aval(value.shape)
    offsets: list[dict[int, int]] = []
    sizes: list[int] = []
    for number, held in enumerate(_held(place, value.ndim)):
        size, own = value.shape[number], sorted(held[place._device.client.process_index()])
        count = _parts_along(place, value.ndim)[number]
        wanted = None if shape is None else shape[number]
        if wanted == size or len(own) == count:
            sizes.append(size)
            step = size // count
            offsets.append({part * step: part * step for part in range(count)})
            continue
        if wanted is None and len({len(parts) for parts in held.values()}) > 1:
            raise ShapeError(
                f"{function}: processes share dimension {number} unevenly under {place}, so "
                "global_shape must be given"
            )
        if size % len(own) or (wanted is not None and wanted * len(own) != size * count):
            held_text = f"{len(own)} of {counted(count, 'part')}"
            raise ShapeError(
                f"{function}: this process holds {held_text} of dimension {number} under {place}, "
                f"and its data have the size {size} there"
                + ("" if wanted is None else f", while global_shape has {wanted}")
            )
        step = size // len(own)
        sizes.append(step * count)
        offsets.append({part * step: n * step for n, part in enumerate(own)})
    whole = tuple(sizes)

    def part(index: Index) -> Any:
        return value[tuple(map(_shifted, index, offsets))]

    return make_array_from_callback(whole, place, part, value.dtype)


def _shifted(part: slice, offsets: dict[int, int]) -> slice:
    """Where a part of the whole lies in the data of this process."""
    if part.start is None:
        return part
    start = offsets[part.start]
    return slice(start, start + part.stop - part.start)


def _parts_along(place: Any, ndim: int) -> tuple[int, ...]:
    """Into how many parts a sharding divides each dimension."""
    size = math.prod(place.mesh.shape.values()) if hasattr(place, "mesh") else 1
    large = (size,) * ndim
    shard = place.shard_shape(large)
    return tuple(n // own for n, own in zip(large, shard, strict=True))


def _held(place: Any, ndim: int) -> list[dict[int, set[int]]]:
    """For each dimension, the numbers of the parts of it that each process holds."""
    counts = _parts_along(place, ndim)
    held: list[dict[int, set[int]]] = [{} for _ in range(ndim)]
    for device, index in place.devices_indices_map(counts).items():
        for number, part in enumerate(index):
            held[number].setdefault(device.process_index, set()).add(part.start or 0)
    return held


def _checked_place(function: str, sharding: Any) -> Any:
    place = in_own_order(sharding, function) if type(sharding) is Format else sharding
    if not isinstance(place, Sharding):
        raise TypeError(
            f"{function}: sharding must be a sharding, such as NamedSharding(mesh, spec), got "
            f"{sharding!r:.80}"
        )
    return place
