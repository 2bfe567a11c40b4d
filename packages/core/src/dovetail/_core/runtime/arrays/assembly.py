"""Arrays over several devices, put together from their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.errors import NonArrayArgumentError, ShapeError
from dovetail._core.base.typing import ArrayLike, DTypeLike, PyTree, ShapeLike
from dovetail._core.ir.avals import physical_aval
from dovetail._core.ops.shape.dimensions import canonical_shape
from dovetail._core.runtime.arrays import buffers
from dovetail._core.runtime.arrays.array import Array, KeyArray, wrap_as
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
    sizes = canonical_shape(shape, function)
    made: dict[str, Any] = {}
    parts = []
    for device, index in _local_parts(place, sizes):
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
    sizes = canonical_shape(shape, function)
    listed = isinstance(arrays, (list, tuple))
    if not listed or not all(type(x) in (Array, KeyArray) for x in arrays):
        kinds = [type(x).__name__ for x in arrays] if listed else arrays
        raise NonArrayArgumentError(
            f"{function}: arrays must be a list of arrays on devices, got {kinds!r:.80}; "
            "dovetail.device_put(x, device) places one"
        )
    by_device = {array.device: array for array in arrays}
    expected = [device for device, _ in _local_parts(place, sizes)]
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
    return wrap_as(first, make(joined[0] if len(joined) == 1 else joined))


def make_array_from_process_local_data(
    sharding: PyTree, local_data: PyTree, global_shape: PyTree = None
) -> PyTree:
    """Arrays over several devices, of the data that each process has.

    Args:
        sharding: how they are divided over devices: a sharding, or a tree of them.
        local_data: what this process has; with one process, all: an array or a tree of arrays.
        global_shape: the shapes of the arrays, None or those of `local_data`.

    Returns:
        `local_data` as arrays, committed to their devices.

    Raises:
        ValueError: an array cannot be divided so, or `global_shape` is another one.

    Example:
        >>> from dovetail.sharding import Mesh, NamedSharding, PartitionSpec as P
        >>> whole = NamedSharding(Mesh(dt.devices(), "x"), P())
        >>> print(dt.make_array_from_process_local_data(whole, np.arange(3)))
        [0 1 2]
    """
    leaves, tree = pytree.flatten(local_data)
    if global_shape is not None:
        shapes = [global_shape] if tree.num_leaves == 1 else tree.flatten_up_to(global_shape)
        for leaf, shape in zip(leaves, shapes, strict=True):
            if shape is not None and tuple(shape) != np.shape(leaf):
                raise ShapeError(
                    "make_array_from_process_local_data: with one process, global_shape is that of "
                    f"the data, {np.shape(leaf)}, or None; got {shape}"
                )
    return device_put(local_data, sharding)


def _checked_place(function: str, sharding: Any) -> Any:
    place = in_own_order(sharding, function) if type(sharding) is Format else sharding
    if not isinstance(place, Sharding):
        raise TypeError(
            f"{function}: sharding must be a sharding, such as NamedSharding(mesh, spec), got "
            f"{sharding!r:.80}"
        )
    return place


def _local_parts(place: Any, shape: tuple[int, ...]) -> list[tuple[Any, Index]]:
    """The devices that this process can address, in their order, with their parts."""
    local = place.addressable_devices
    return [item for item in place.devices_indices_map(shape).items() if item[0] in local]
