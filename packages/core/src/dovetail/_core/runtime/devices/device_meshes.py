"""Arrays of devices for meshes, in an order that follows the links between them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.torus import arranged, has_contiguous_processes, in_place

__all__ = ["create_device_mesh", "create_hybrid_device_mesh", "device_kind_handler_dict"]

Device = Any
Devices = np.ndarray[Any, Any]

device_kind_handler_dict: Final[dict[str, Callable[..., Devices | None]]] = {}
"""Functions of users that arrange devices of a kind, by its name (`device_kind`).

They are called as ``f(mesh_shape, devices, contiguous_submeshes=...)``, and return an array of
devices of the shape, or None to leave it to `create_device_mesh`.
"""

_BY_NUMBER: Final = ("gpu", "cuda", "rocm")
_HOST: Final = 8


def create_device_mesh(
    mesh_shape: Sequence[int],
    devices: Sequence[Device] | None = None,
    *,
    contiguous_submeshes: bool = False,
    allow_split_physical_axes: bool = False,
) -> Devices:
    """Arrange devices for a mesh so that neighbours along its axes are neighbours in the hardware.

    TPUs are chips on a torus. Each axis of the mesh takes whole axes of the torus, whose sizes
    multiplied are its own. The last axis of the mesh is served first. Along an axis that takes
    several axes of the torus, each device is a neighbour of the one before, and the last one of the
    first, if a closed walk exists. GPUs are in the order of their ids, other devices in the order
    in which they are given.

    Args:
        mesh_shape: the size of each axis of the mesh; those that communicate most come last, such
            as ``(replicas, data, model)``.
        devices: the devices; by default all of the default platform.
        contiguous_submeshes: whether the devices of each process must be a block of the mesh.
        allow_split_physical_axes: whether an axis of the torus may be divided between axes of the
            mesh; then only the last of these has next neighbours. Among eight TPUs or fewer, and
            TPUs of the second and third generation, it always may.

    Returns:
        The devices, in an array of the shape `mesh_shape`.

    Raises:
        TypeError: `mesh_shape` is not a sequence of integers.
        ValueError: the number of devices is not the product of `mesh_shape`; TPUs are not a whole
            block of a torus; or `contiguous_submeshes` cannot be had.
        NotImplementedError: the axes of the mesh are not products of axes of the torus, and
            `allow_split_physical_axes` is false.

    Differs:
        Along an axis over several axes of a torus, TPUs are in the order of a walk over neighbours
        for all shapes, and the devices of a process can be a block in more of them. JAX orders so
        for some shapes only.

        >>> from types import SimpleNamespace
        >>> from dovetail.experimental import mesh_utils
        >>> chips = [
        ...     SimpleNamespace(platform="tpu", device_kind="TPU v5 lite", coords=(x, y, 0),
        ...                     core_on_chip=0, process_index=0, id=4 * y + x)
        ...     for y in range(2) for x in range(4)
        ... ]
        >>> [chip.coords[:2] for chip in mesh_utils.create_device_mesh((8,), chips)]
        [(0, 0), (0, 1), (1, 1), (2, 1), (3, 1), (3, 0), (2, 0), (1, 0)]

    Example:
        >>> from dovetail.experimental import mesh_utils
        >>> from dovetail.sharding import Mesh
        >>> devices = mesh_utils.create_device_mesh((1, 1), dt.devices()[:1])
        >>> Mesh(devices, ("data", "model")).shape["model"]
        1
    """
    shape = _sizes("create_device_mesh", "mesh_shape", mesh_shape)
    given = _given("create_device_mesh", devices)
    if len(given) != math.prod(shape):
        raise ValueError(
            f"create_device_mesh: a mesh {shape} has {math.prod(shape)} devices, and there are "
            f"{len(given)}"
        )
    if not given:
        return np.empty(shape, object)
    first = given[0]
    handler = device_kind_handler_dict.get(first.device_kind)
    if handler is not None:
        found = handler(shape, given, contiguous_submeshes=contiguous_submeshes)
        if found is not None:
            return _handled(found, shape, first.device_kind)
    if first.platform == "tpu":
        block = in_place(given)
        split = allow_split_physical_axes or _is_close(block)
        return arranged(block, shape, split, contiguous_submeshes)
    if first.platform in _BY_NUMBER:
        given = sorted(given, key=lambda device: device.id)
    mesh = _array(given, shape)
    if contiguous_submeshes and not has_contiguous_processes(mesh):
        raise ValueError(
            f"create_device_mesh: in the mesh {shape} the devices of a process are no block "
            "(contiguous_submeshes=True); choose other sizes, or order the devices by process"
        )
    return mesh


def create_hybrid_device_mesh(
    mesh_shape: Sequence[int],
    dcn_mesh_shape: Sequence[int],
    devices: Sequence[Device] | None = None,
    *,
    process_is_granule: bool = False,
    should_sort_granules_by_key: bool = True,
    allow_split_physical_axes: bool = False,
) -> Devices:
    """Arrange devices of several slices or processes, between which a slower network runs.

    Each axis of the mesh runs over ``dcn_mesh_shape[i]`` slices, and within each of them over
    ``mesh_shape[i]`` devices, which are arranged by `create_device_mesh`.

    Args:
        mesh_shape: the shape of the part of the mesh within a slice; axes that communicate most
            come last. If it and `dcn_mesh_shape` differ in length, the shorter is as if it began
            with ones.
        dcn_mesh_shape: how many slices each axis runs over.
        devices: the devices; by default all of the default platform.
        process_is_granule: whether the devices of a process (`process_index`) take the place of a
            slice (`slice_index`), for platforms without slices.
        should_sort_granules_by_key: whether slices are in the order of their number, or in that in
            which they occur in `devices`.
        allow_split_physical_axes: see `create_device_mesh`.

    Returns:
        The devices, in an array whose shape is the product of both.

    Raises:
        TypeError: a shape is not a sequence of integers.
        ValueError: the number of slices is not the product of `dcn_mesh_shape`, the number of
            devices of a slice not that of `mesh_shape`; or a device does not say its slice.
        NotImplementedError: see `create_device_mesh`.

    Example:
        >>> from dovetail.experimental import mesh_utils
        >>> one = dt.devices()[:1]
        >>> mesh_utils.create_hybrid_device_mesh((1, 1), (1, 1), one, process_is_granule=True).shape
        (1, 1)
    """
    name = "create_hybrid_device_mesh"
    inner = _sizes(name, "mesh_shape", mesh_shape)
    outer = _sizes(name, "dcn_mesh_shape", dcn_mesh_shape)
    rank = max(len(inner), len(outer))
    inner, outer = ((1,) * (rank - len(sizes)) + sizes for sizes in (inner, outer))
    attribute = "process_index" if process_is_granule else "slice_index"
    granules: dict[int, list[Device]] = {}
    for device in _given(name, devices):
        key = getattr(device, attribute, None)
        if key is None:
            hint = (
                ""
                if process_is_granule
                else "; take processes for slices with " + ("process_is_granule=True")
            )
            raise ValueError(f"{name}: {device!r} does not say its {attribute}{hint}")
        granules.setdefault(key, []).append(device)
    what = "processes" if process_is_granule else "slices"
    if len(granules) != math.prod(outer):
        raise ValueError(
            f"{name}: dcn_mesh_shape {outer} goes over {math.prod(outer)} {what}, and the devices "
            f"are of {len(granules)}"
        )
    keys = sorted(granules) if should_sort_granules_by_key else list(granules)
    for key in keys:
        if len(granules[key]) != math.prod(inner):
            raise ValueError(
                f"{name}: mesh_shape {inner} has {math.prod(inner)} devices, and those with "
                f"{attribute} {key} are {len(granules[key])}"
            )
    meshes = [
        create_device_mesh(
            inner, granules[key], allow_split_physical_axes=allow_split_physical_axes
        )
        for key in keys
    ]
    stacked = np.stack(meshes).reshape(outer + inner)
    axes = [axis for pair in zip(range(rank), range(rank, 2 * rank), strict=True) for axis in pair]
    sizes = tuple(n * m for n, m in zip(outer, inner, strict=True))
    return stacked.transpose(axes).reshape(sizes)


def _sizes(name: str, argument: str, shape: Any) -> tuple[int, ...]:
    try:
        sizes = tuple(operator.index(size) for size in shape)
    except TypeError:
        raise TypeError(
            f"{name}: {argument} is a sequence of integers, such as (4, 2); got {shape!r}"
        ) from None
    if any(size < 1 for size in sizes):
        raise ValueError(f"{name}: the sizes in {argument} are positive; got {sizes}")
    return sizes


def _given(name: str, devices: Any) -> list[Device]:
    if devices is None:
        return list(clients.devices())
    try:
        given = list(devices.flat if isinstance(devices, np.ndarray) else devices)
    except TypeError:
        given = [None]
    for device in given:
        if not (hasattr(device, "platform") and hasattr(device, "device_kind")):
            raise TypeError(
                f"{name}: devices is a sequence of devices, such as dovetail.devices(); got "
                f"{devices!r:.80}"
            )
    if len({id(device) for device in given}) != len(given):
        raise ValueError(f"{name}: a device occurs twice in devices")
    return given


def _is_close(block: Devices) -> bool:
    """Whether no axis of a mesh is far from the wires: as many TPUs as the largest host has."""
    return block.size <= _HOST or block.flat[0].device_kind in ("TPU v2", "TPU v3")


def _array(devices: Sequence[Device], shape: tuple[int, ...]) -> Devices:
    array = np.empty(len(devices), object)
    array[:] = devices
    return array.reshape(shape)


def _handled(found: Any, shape: tuple[int, ...], kind: str) -> Devices:
    array = np.asarray(found, object)
    if array.shape != shape:
        raise ValueError(
            f"create_device_mesh: the function for {kind!r} in device_kind_handler_dict returned "
            f"an array of shape {array.shape}, not {shape}"
        )
    return array
