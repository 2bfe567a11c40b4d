"""How the axes of a mesh are laid along the links of a torus of chips."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

__all__ = ["arranged", "has_contiguous_processes", "in_place"]

Devices = np.ndarray[Any, Any]
Sizes = tuple[int, ...]
Parts = list[Sizes]

_MOST: Final = 200
"""How many ways are tried to have the devices of each process in a block."""


def in_place(devices: Sequence[Any]) -> Devices:
    """The devices where they are: an array over their coordinates, and over the cores of a chip.

    Args:
        devices: devices with the attributes `coords` and `core_on_chip`.

    Raises:
        ValueError: a device has no coordinates, two have the same, or they are not a whole block.
    """
    places = []
    for device in devices:
        coordinates = getattr(device, "coords", None)
        if coordinates is None:
            raise ValueError(
                f"create_device_mesh: {device!r} has no coordinates (coords), by which TPUs are "
                "arranged; put the devices into an array yourself: "
                "numpy.array(devices).reshape(mesh_shape)"
            )
        places.append((*coordinates, getattr(device, "core_on_chip", 0) or 0))
    corner = tuple(map(min, zip(*places, strict=True)))
    sizes = tuple(
        max(along) - low + 1 for along, low in zip(zip(*places, strict=True), corner, strict=True)
    )
    block = np.full(sizes, None, object)
    for place, device in zip(places, devices, strict=True):
        index = tuple(at - low for at, low in zip(place, corner, strict=True))
        if block[index] is not None:
            raise ValueError(
                f"create_device_mesh: {block[index]!r} and {device!r} have the same coordinates "
                f"{place[:-1]}; devices of several slices are arranged by "
                "create_hybrid_device_mesh"
            )
        block[index] = device
    if math.prod(sizes) != len(devices):
        raise ValueError(
            f"create_device_mesh: the {len(devices)} devices are not a whole block of the torus, "
            f"which would be {'x'.join(map(str, sizes[:-1]))} chips from {corner[:-1]} on; put "
            "them into an array yourself: numpy.array(devices).reshape(mesh_shape)"
        )
    return block


def arranged(block: Devices, shape: Sizes, split: bool, contiguous: bool) -> Devices:
    """The devices of a torus in the shape of a mesh.

    Each axis of the mesh takes whole axes of the torus; those that come last are served first, and
    take as many axes as they can. Along an axis of the mesh that takes several, the devices are in
    the order of a walk over neighbours, closed if there is one.

    Args:
        block: the devices, by their coordinates.
        shape: the shape of the mesh; it has as many devices.
        split: whether axes of the torus may be divided between axes of the mesh.
        contiguous: whether the devices of each process are to be a block of the mesh.

    Raises:
        NotImplementedError: the axes of the torus have no such products.
        ValueError: no mesh is found in which the devices of each process are a block.
    """
    candidates: Iterator[tuple[Parts, bool]] = (
        (parts, True) for parts in _assignments(block.shape, shape, whole=True)
    )
    if split:
        divided = ((parts, False) for parts in _assignments(block.shape, shape, whole=False))
        candidates = itertools.chain(candidates, divided)
    host = _host(block) if contiguous else None
    found = None
    for parts, whole in itertools.islice(candidates, _MOST):
        found = _placed(block, parts)
        if not contiguous or has_contiguous_processes(found):
            return found
        if whole and host is not None:
            found = _placed(block, parts, host)
            if has_contiguous_processes(found):
                return found
    sizes = "x".join(str(n) for n in block.shape if n > 1)
    if found is None:
        raise NotImplementedError(
            f"create_device_mesh: the axes of the mesh {shape} are not products of axes of the "
            f"torus {sizes}; choose other sizes, or let axes of the torus be divided with "
            "allow_split_physical_axes=True"
        )
    raise ValueError(
        f"create_device_mesh: on a torus {sizes} no mesh {shape} was found in which the devices of "
        "each process are a block (contiguous_submeshes=True)"
    )


def _assignments(torus: Sequence[int], shape: Sizes, *, whole: bool) -> Iterator[Parts]:
    """For each axis of a mesh, the sizes of its part of each axis of the torus, the best first.

    Args:
        torus: the sizes of the axes of the torus, of which the last is that of a chip's cores.
        shape: the shape of the mesh.
        whole: whether parts are all of an axis, or nothing.
    """
    if not shape:
        yield []
        return

    def pieces(part: Sizes) -> int:
        return sum(1 < n < own for n, own in zip(part, torus, strict=True))

    parts = [part for part in _factors(shape[-1], torus) if not (whole and pieces(part))]
    # As few pieces as possible, then as many axes, then the cores, which are nearest.
    parts.sort(key=lambda part: (pieces(part), -sum(n > 1 for n in part), -part[-1]))
    for part in parts:
        left = [own // n for n, own in zip(part, torus, strict=True)]
        for others in _assignments(left, shape[:-1], whole=whole):
            yield [*others, part]


def _factors(size: int, axes: Sequence[int]) -> Iterator[Sizes]:
    """The ways to write a size as a product of divisors of the sizes of axes."""
    if not axes:
        if size == 1:
            yield ()
        return
    for divisor in range(math.gcd(size, axes[0]), 0, -1):
        if size % divisor == 0 and axes[0] % divisor == 0:
            for rest in _factors(size // divisor, axes[1:]):
                yield (divisor, *rest)


def _placed(torus: Devices, parts: Parts, host: Sizes | None = None) -> Devices:
    """The devices in a mesh whose axes take these parts of the axes of the torus.

    Args:
        torus: the devices by their coordinates.
        parts: for each axis of the mesh, the sizes of its part of each axis of the torus.
        host: the block of each process, to be walked through before the next; None for no regard.
    """
    place: Any = np.zeros((1,) * len(parts) + (torus.ndim,), int)
    stride = np.ones(torus.ndim, int)
    for axis in reversed(range(len(parts))):  # the last axis has next neighbours
        part = parts[axis]
        steps = _walk(part) if host is None else _walk_by_blocks(part, host)
        along = [1] * len(parts) + [torus.ndim]
        along[axis] = len(steps)
        place = place + (steps * stride).reshape(along)
        stride = stride * np.array(part)
    shape = place.shape[:-1]
    index = tuple(np.moveaxis(place, -1, 0).reshape(torus.ndim, -1))
    mesh: Devices = torus[index].reshape(shape)
    return mesh


def _walk_by_blocks(sizes: Sizes, host: Sizes) -> np.ndarray[Any, Any]:
    """The places of a block, in which those of each process follow each other."""
    inner = tuple(min(n, own) for n, own in zip(sizes, host, strict=True))
    outer = _walk(tuple(n // own for n, own in zip(sizes, inner, strict=True)))
    steps: np.ndarray[Any, Any] = outer[:, None, :] * np.array(inner) + _walk(inner)[None, :, :]
    return steps.reshape(-1, len(sizes))


def _walk(sizes: Sizes) -> np.ndarray[Any, Any]:
    """The places of a block in the order of a walk from neighbour to neighbour.

    It ends beside its start if it can: if there are two axes or more, and one of even size.
    """
    axes = [axis for axis, n in enumerate(sizes) if n > 1]
    even = next((axis for axis in axes if sizes[axis] % 2 == 0), None)
    if len(axes) < 2 or even is None:
        return _to_and_fro(sizes)
    # Rows to and fro beside the first column, by which it comes back.
    row = _to_and_fro(tuple(1 if axis == even else n for axis, n in enumerate(sizes)))
    down = np.eye(len(sizes), dtype=int)[even]
    rows = [
        (row[1:] if number % 2 == 0 else row[:0:-1]) + number * down
        for number in range(sizes[even])
    ]
    back = [row[:1] + number * down for number in range(sizes[even] - 1, 0, -1)]
    return np.concatenate([row[:1], *rows, *back])


def _to_and_fro(sizes: Sizes) -> np.ndarray[Any, Any]:
    """The places of a block line by line, every other line backwards."""
    if not sizes:
        return np.zeros((1, 0), int)
    rest = _to_and_fro(sizes[1:])
    lines = [
        np.column_stack((np.full(len(rest), number), rest if number % 2 == 0 else rest[::-1]))
        for number in range(sizes[0])
    ]
    return np.concatenate(lines)


def _host(torus: Devices) -> Sizes | None:
    """The sizes of the block of each process; None if they differ, or are no blocks."""
    found: set[Sizes] = set()
    for block in _blocks(torus):
        if block is None:
            return None
        found.add(block)
    return found.pop() if len(found) == 1 else None


def has_contiguous_processes(mesh: Devices) -> bool:
    """Whether the devices of each process are a block of the mesh."""
    return None not in set(_blocks(mesh))


def _blocks(devices: Devices) -> Iterator[Sizes | None]:
    """The sizes of the block of each process, None for one whose devices are none."""
    owner = np.array([device.process_index for device in devices.flat]).reshape(devices.shape)
    for process in np.unique(owner):
        own = np.nonzero(owner == process)
        sizes = tuple(int(along.max() - along.min()) + 1 for along in own)
        yield sizes if math.prod(sizes) == int((owner == process).sum()) else None
