"""Devices are arranged along the links of the hardware, each of them once."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail.experimental import mesh_utils

Sizes = tuple[int, ...]


@dataclass(eq=False)
class Fake:
    """A device that is described and not there."""

    id: int
    platform: str = "tpu"
    device_kind: str = "TPU v5 lite"
    coords: Sizes | None = None
    core_on_chip: int = 0
    process_index: int = 0
    slice_index: int = 0

    def __repr__(self) -> str:
        return f"Fake({self.id})"


def torus(
    sizes: Sizes,
    host: Sizes = (2, 2, 1),
    cores: int = 1,
    corner: Sizes = (0, 0, 0),
    slices: int = 1,
) -> list[Fake]:
    """The chips of a torus, host by host, as libtpu counts them."""
    places = itertools.product(*(range(n) for n in sizes), range(cores))
    by_host = sorted(
        places,
        key=lambda p: ([p[i] // host[i] for i in (2, 1, 0)], [p[i] for i in (2, 1, 0, 3)]),
    )
    per_host = math.prod(host) * cores
    return [
        Fake(
            number,
            coords=tuple(a + b for a, b in zip(place[:3], corner, strict=True)),
            core_on_chip=place[3],
            process_index=number // per_host,
            slice_index=part,
        )
        for part in range(slices)
        for number, place in enumerate(by_host, part * len(by_host))
    ]


def gpus(count: int, hosts: int = 1, platform: str = "gpu") -> list[Fake]:
    per_host = count // hosts
    return [Fake(i, platform, "H200", process_index=i // per_host) for i in range(count)]


def ids(mesh: Any) -> Any:
    return np.vectorize(lambda device: device.id, otypes=[int])(mesh)


def lines(mesh: Any) -> Iterator[list[Any]]:
    """The devices along each axis."""
    for axis in range(mesh.ndim):
        if mesh.shape[axis] > 1:
            yield from map(list, np.moveaxis(mesh, axis, -1).reshape(-1, mesh.shape[axis]))


def are_neighbours(a: Fake, b: Fake, sizes: Sizes) -> bool:
    assert a.coords is not None
    assert b.coords is not None
    far = 0
    for x, y, n in zip(a.coords, b.coords, sizes, strict=True):
        far += min(abs(x - y), n - abs(x - y))
    return far + (a.core_on_chip != b.core_on_chip) == 1


#: Torus, cores of a chip, mesh, and whether each line is a closed ring (with the torus' own wires).
WHOLE: list[tuple[Sizes, int, Sizes, bool]] = [
    ((4, 4, 1), 1, (4, 4), True),
    ((4, 4, 1), 1, (16,), True),
    ((2, 4, 1), 1, (8,), True),
    ((16, 16, 1), 1, (16, 16), True),
    ((16, 16, 1), 1, (256,), True),
    ((16, 16, 1), 1, (1, 16, 1, 16), True),
    ((2, 2, 4), 1, (2, 8), True),
    ((2, 2, 4), 1, (4, 4), True),
    ((2, 2, 4), 1, (4, 2, 2), True),
    ((2, 2, 4), 1, (2, 2, 4), True),
    ((2, 2, 4), 1, (16,), True),
    ((4, 4, 8), 1, (8, 16), True),
    ((4, 4, 4), 1, (64,), True),
    ((3, 5, 1), 1, (15,), False),
    ((3, 4, 1), 1, (12,), True),
    ((2, 2, 1), 2, (8,), True),
    ((2, 2, 1), 2, (4, 2), True),
    ((2, 2, 1), 2, (2, 4), True),
    ((1, 1, 1), 1, (1,), True),
    ((1, 1, 1), 1, (), True),
]


@pytest.mark.parametrize(("sizes", "cores", "shape", "closed"), WHOLE)
def test_neighbours_along_an_axis_are_neighbours_on_the_torus(
    sizes: Sizes, cores: int, shape: Sizes, closed: bool
) -> None:
    for corner in ((0, 0, 0), (4, 2, 1)):
        devices = torus(sizes, cores=cores, corner=corner)
        mesh = mesh_utils.create_device_mesh(shape, devices[::-1])
        assert mesh.shape == shape
        assert sorted(ids(mesh).flat) == [device.id for device in devices]
        for line in lines(mesh):
            pairs = [*itertools.pairwise(line), *([(line[-1], line[0])] if closed else [])]
            assert all(are_neighbours(a, b, sizes) for a, b in pairs), line


def test_axes_that_communicate_most_get_most_axes_of_the_torus() -> None:
    mesh = mesh_utils.create_device_mesh((4, 4), torus((2, 2, 4)))
    assert [len({device.coords[2] for device in row}) for row in mesh] == [1] * 4
    cores = mesh_utils.create_device_mesh((4, 2), torus((2, 2, 1), cores=2))
    assert [[device.core_on_chip for device in row] for row in cores] == [[0, 1]] * 4


#: Torus, mesh: each axis of the torus is divided between axes of the mesh.
DIVIDED: list[tuple[Sizes, Sizes]] = [
    ((4, 4, 1), (2, 8)),
    ((4, 4, 1), (2, 2, 4)),
    ((4, 4, 1), (8, 2)),
    ((16, 16, 1), (4, 8, 8)),
    ((4, 6, 1), (8, 3)),
    ((4, 4, 4), (2, 4, 8)),
    ((6, 10, 15), (30, 30)),
]


@pytest.mark.parametrize(("sizes", "shape"), DIVIDED)
def test_axes_of_the_torus_are_divided_if_they_may_be(sizes: Sizes, shape: Sizes) -> None:
    devices = torus(sizes)
    with pytest.raises(NotImplementedError, match="allow_split_physical_axes=True"):
        mesh_utils.create_device_mesh(shape, devices)
    mesh = mesh_utils.create_device_mesh(shape, devices, allow_split_physical_axes=True)
    assert mesh.shape == shape
    assert sorted(ids(mesh).flat) == list(range(len(devices)))
    for line in mesh.reshape(-1, shape[-1]):
        assert all(are_neighbours(a, b, sizes) for a, b in itertools.pairwise(line)), "the last"
    # What can be whole is: the same mesh as without leave to divide.
    whole = (math.prod(sizes),)
    a, b = (
        mesh_utils.create_device_mesh(whole, devices, allow_split_physical_axes=may)
        for may in (False, True)
    )
    np.testing.assert_array_equal(ids(a), ids(b))


def test_the_tpus_of_a_host_may_be_divided_unasked() -> None:
    for shape in ((2, 2, 2), (1, 2, 2, 2)):
        mesh = mesh_utils.create_device_mesh(shape, torus((2, 4, 1)))
        assert mesh.shape == shape
        assert sorted(ids(mesh).flat) == list(range(8))
    old = [dataclasses.replace(d, device_kind="TPU v3") for d in torus((4, 4, 1), cores=2)]
    assert mesh_utils.create_device_mesh((2, 2, 8), old).shape == (2, 2, 8)


def is_block(mesh: Any, process: int) -> bool:
    own = np.vectorize(lambda device: device.process_index == process, otypes=[bool])(mesh)
    block = tuple(slice(int(i.min()), int(i.max()) + 1) for i in np.nonzero(own))
    return bool(own[block].all())


@pytest.mark.parametrize(
    ("sizes", "cores", "shape"),
    [
        ((4, 4, 1), 1, (4, 4)),
        ((4, 4, 1), 1, (16,)),
        ((4, 4, 1), 1, (8, 2)),
        ((4, 4, 4), 1, (4, 16)),
        ((2, 2, 4), 1, (4, 4)),
        ((4, 4, 1), 2, (2, 2, 8)),
    ],
)
def test_the_devices_of_a_process_are_a_block_on_demand(
    sizes: Sizes, cores: int, shape: Sizes
) -> None:
    devices = torus(sizes, cores=cores)
    mesh = mesh_utils.create_device_mesh(
        shape, devices, contiguous_submeshes=True, allow_split_physical_axes=True
    )
    assert sorted(ids(mesh).flat) == [device.id for device in devices]
    assert all(is_block(mesh, device.process_index) for device in devices)


def test_other_devices() -> None:
    by_id = np.arange(8).reshape(4, 2)
    mesh = mesh_utils.create_device_mesh((4, 2), gpus(8, 2)[::-1], contiguous_submeshes=True)
    np.testing.assert_array_equal(ids(mesh), by_id)
    others = gpus(8, platform="cpu")[::-1]
    np.testing.assert_array_equal(
        ids(mesh_utils.create_device_mesh((4, 2), others)), np.arange(8)[::-1].reshape(4, 2)
    )
    own = mesh_utils.create_device_mesh((np.int64(2), 2), np.array(dt.devices()[:4]))
    assert own.tolist() == [dt.devices()[:2], dt.devices()[2:4]], "as JAX orders devices of a CPU"
    assert mesh_utils.create_device_mesh((len(dt.devices()),)).tolist() == dt.devices()


def test_a_function_for_a_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def arrange(shape: Any, devices: Any, *, contiguous_submeshes: bool) -> Any:
        asked.append((shape, len(devices), contiguous_submeshes))
        return None if contiguous_submeshes else np.array(devices[::-1]).reshape(shape)

    monkeypatch.setitem(mesh_utils.device_kind_handler_dict, "H200", arrange)
    create = mesh_utils.create_device_mesh
    assert ids(create((2, 2), gpus(4))).tolist() == [[3, 2], [1, 0]]
    assert ids(create((2, 2), gpus(4), contiguous_submeshes=True)).tolist() == [[0, 1], [2, 3]]
    assert asked == [((2, 2), 4, False), ((2, 2), 4, True)]


def test_slices() -> None:
    create = mesh_utils.create_hybrid_device_mesh
    two = torus((4, 4, 1), slices=2)
    mesh = create((4, 4), (2, 1), two[::-1])
    assert mesh.shape == (8, 4)
    assert [{d.slice_index for d in row} for row in mesh] == [{0}] * 4 + [{1}] * 4
    np.testing.assert_array_equal(
        ids(mesh[:4]), ids(mesh_utils.create_device_mesh((4, 4), two[:16]))
    )
    unsorted = create((4, 4), (1, 2), two[::-1], should_sort_granules_by_key=False)
    assert unsorted.shape == (4, 8)
    assert [d.slice_index for d in unsorted[0]] == [1] * 4 + [0] * 4
    hosts = gpus(8, 2)
    by_process = create((2, 2), (2, 1), hosts[::-1], process_is_granule=True)
    assert ids(by_process).tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert ids(create((2, 2), (2,), hosts, process_is_granule=True)).tolist() == [
        [0, 1, 4, 5],
        [2, 3, 6, 7],
    ]
    assert create((2, 8), (2, 1), two, allow_split_physical_axes=True).shape == (4, 8)


V5E = torus((4, 4, 1))

WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "count": (
        lambda: mesh_utils.create_device_mesh((4, 3), V5E),
        ValueError,
        "a mesh (4, 3) has 12 devices, and there are 16",
    ),
    "int": (
        lambda: mesh_utils.create_device_mesh(16, V5E),  # type: ignore[arg-type]
        TypeError,
        "mesh_shape is a sequence of integers, such as (4, 2); got 16",
    ),
    "float": (
        lambda: mesh_utils.create_device_mesh((4.0, 4), V5E),  # type: ignore[arg-type]
        TypeError,
        "mesh_shape is a sequence of integers",
    ),
    "negative": (
        lambda: mesh_utils.create_device_mesh((-4, -4), V5E),
        ValueError,
        "the sizes in mesh_shape are positive; got (-4, -4)",
    ),
    "one device": (
        lambda: mesh_utils.create_device_mesh((1,), V5E[0]),  # type: ignore[arg-type]
        TypeError,
        "devices is a sequence of devices",
    ),
    "ids": (
        lambda: mesh_utils.create_device_mesh((2,), [0, 1]),
        TypeError,
        "devices is a sequence of devices, such as dovetail.devices(); got [0, 1]",
    ),
    "twice": (
        lambda: mesh_utils.create_device_mesh((2,), [V5E[0], V5E[0]]),
        ValueError,
        "a device occurs twice",
    ),
    "no block": (
        lambda: mesh_utils.create_device_mesh((3,), V5E[:3]),
        ValueError,
        "the 3 devices are not a whole block of the torus, which would be 2x2x1 chips",
    ),
    "slices": (
        lambda: mesh_utils.create_device_mesh((4, 8), torus((4, 4, 1), slices=2)),
        ValueError,
        "have the same coordinates (0, 0, 0); devices of several slices are arranged by "
        "create_hybrid_device_mesh",
    ),
    "no coordinates": (
        lambda: mesh_utils.create_device_mesh((2,), [Fake(0), Fake(1)]),
        ValueError,
        "Fake(0) has no coordinates (coords)",
    ),
    "contiguous": (
        lambda: mesh_utils.create_device_mesh(
            (3, 12), torus((6, 6, 1)), contiguous_submeshes=True, allow_split_physical_axes=True
        ),
        ValueError,
        "on a torus 6x6 no mesh (3, 12) was found in which the devices of each process are a block",
    ),
    "contiguous GPUs": (
        lambda: mesh_utils.create_device_mesh((4, 3), gpus(12, 6)[:12], contiguous_submeshes=True),
        ValueError,
        "in the mesh (4, 3) the devices of a process are no block",
    ),
    "no slices": (
        lambda: mesh_utils.create_hybrid_device_mesh(
            (2, 2),
            (1, 1),
            [Fake(i, slice_index=None) for i in range(4)],  # type: ignore[arg-type]
        ),
        ValueError,
        "Fake(0) does not say its slice_index; take processes for slices with "
        "process_is_granule=True",
    ),
    "number of slices": (
        lambda: mesh_utils.create_hybrid_device_mesh((4, 4), (2, 1), V5E),
        ValueError,
        "dcn_mesh_shape (2, 1) goes over 2 slices, and the devices are of 1",
    ),
    "devices of a slice": (
        lambda: mesh_utils.create_hybrid_device_mesh((4, 2), (1, 1), V5E),
        ValueError,
        "mesh_shape (4, 2) has 8 devices, and those with slice_index 0 are 16",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments(case: str) -> None:
    call, error, message = WRONG[case]
    with pytest.raises(error, match=re.escape(message)):
        call()


def test_a_function_for_a_kind_that_returns_another_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        mesh_utils.device_kind_handler_dict, "H200", lambda shape, devices, **_: np.array(devices)
    )
    with pytest.raises(ValueError, match=r"returned an array of shape \(4,\), not \(2, 2\)"):
        mesh_utils.create_device_mesh((2, 2), gpus(4))
