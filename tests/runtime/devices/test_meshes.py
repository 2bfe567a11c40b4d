"""Meshes of devices, shardings over them, and arrays that are divided so."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import random
from dovetail.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, SingleDeviceSharding
from dovetail.sharding import PartitionSpec as P

DEVICES = dt.devices("cpu")[:4]
MESH = Mesh(np.array(DEVICES).reshape(2, 2), ("x", "y"))
ENTRIES = (None, "x", "y", ("x", "y"), ("y", "x"))
EXPLICIT = dt.make_mesh((4,), ("x",), axis_types=(AxisType.Explicit,))
SPECS = [P(e) for e in ENTRIES] + [P(None, e) for e in ENTRIES[1:]] + [P("x", "y"), P("y", "x")]
VALUE = np.arange(64, dtype=np.float32).reshape(8, 8)


def sharding(*entries: Any, mesh: Any = MESH) -> NamedSharding:
    return NamedSharding(mesh, P(*entries))


def test_meshes_are_one_object() -> None:
    assert Mesh(np.array(DEVICES).reshape(2, 2), ("x", "y")) is MESH
    assert pickle.loads(pickle.dumps(MESH)) is MESH
    assert MESH.update() is MESH
    assert MESH.update(axis_names=("a", "b")) is not MESH
    assert (MESH.size, MESH.shape["x"], MESH.axis_sizes, MESH.empty) == (4, 2, (2, 2), False)
    assert MESH.device_ids.tolist() == [[d.id for d in row] for row in MESH.devices]
    assert MESH.local_mesh is MESH
    assert not MESH.is_multi_process
    assert MESH.local_devices == DEVICES
    assert MESH.abstract_mesh.shape == MESH.shape
    assert MESH.abstract_mesh.abstract_device.platform == "cpu"
    assert Mesh(DEVICES[0], ()).is_scalar
    empty = Mesh([], ())
    assert empty.empty
    assert pickle.loads(pickle.dumps(empty)) is empty
    with pytest.raises(ValueError, match="read-only"):
        MESH.devices[0, 0] = None


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: Mesh(DEVICES, ("x", "y")), ValueError, "got 2 names for 1 axis"),
        (lambda: Mesh([DEVICES[0]] * 2, "x"), ValueError, "a device occurs twice"),
        (lambda: Mesh([1, 2], "x"), TypeError, "takes devices"),
        (lambda: Mesh(DEVICES, "x", (AxisType.Auto,) * 2), ValueError, "got 2 types for 1 axis"),
        (lambda: NamedSharding(MESH, P("z")), ValueError, r"names the axis 'z', which Mesh\("),
        (lambda: NamedSharding(MESH, P("x", "x")), ValueError, "two dimensions over the axis 'x'"),
        (lambda: NamedSharding(MESH, ("x",)), TypeError, r"write PartitionSpec\('x'\)"),
        (lambda: NamedSharding("mesh", P("x")), TypeError, "mesh must be a Mesh"),
        (lambda: NamedSharding(MESH, P(), "attic"), ValueError, "no memory of kind 'attic'"),
        (lambda: NamedSharding(MESH, P("x", unreduced={"y"})), ValueError, "type Auto"),
        (lambda: NamedSharding(Mesh([], ()), P()), ValueError, "has no devices"),
        (lambda: sharding("x").update(axis="y"), TypeError, "not 'axis'"),
        (lambda: sharding("x", "y").shard_shape((4,)), ValueError, "entries for 2 dimensions"),
        (
            lambda: dt.device_put(np.ones(4), NamedSharding(EXPLICIT, P(unreduced={"x"}))),
            NotImplementedError,
            "a part of a sum that has not been added up",
        ),
        (
            lambda: dt.jit(lambda x: x, in_shardings=NamedSharding(EXPLICIT, P(unreduced={"x"})))(
                1
            ),
            dt.errors.ShardingTypeError,
            "says that it is unreduced along 'x'",
        ),
        (
            lambda: sharding("x").shard_shape(()),
            ValueError,
            "a scalar goes with PartitionSpec",
        ),
        (
            lambda: sharding(None, ("x", "y")).shard_shape((3, 6)),
            ValueError,
            "dimension 1 of an array of shape .3, 6. cannot .* over the axes 'x' of 2, 'y' of 2 .*"
            "6 is no multiple of 4. Pad it to 8",
        ),
    ],
)
def test_what_cannot_be(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()


def test_shardings_are_one_object() -> None:
    own = sharding("x")
    assert sharding("x") is own
    assert pickle.loads(pickle.dumps(own)) is own
    assert own.update() is own
    assert own.update(spec=P("y")) is sharding("y")
    assert own.with_memory_kind("device") is own
    assert own.with_memory_kind("pinned_host").memory_kind == "pinned_host"
    assert "memory_kind" not in repr(own)
    assert isinstance(own, NamedSharding)
    assert isinstance(own, dt.sharding.Sharding)
    assert own.device_set == set(DEVICES)
    assert own.is_fully_addressable
    assert own.replicated_axes == {"y"}
    assert dt.P is P


def test_equivalent_shardings() -> None:
    flat = Mesh(DEVICES, "z")
    assert sharding("x").is_equivalent_to(sharding("x", None), 2)
    assert sharding(("x", "y")).is_equivalent_to(sharding("z", mesh=flat), 1)
    assert not sharding(("y", "x")).is_equivalent_to(sharding("z", mesh=flat), 1)
    assert not sharding("x").is_equivalent_to(sharding(None, "x"), 2)
    assert not sharding().is_equivalent_to(sharding(mesh=Mesh(DEVICES[::-1], "z")), 1)
    assert not sharding().is_equivalent_to(sharding().with_memory_kind("pinned_host"), 1)
    alone, one = SingleDeviceSharding(DEVICES[0]), sharding(mesh=Mesh(DEVICES[:1], "x"))
    assert alone.is_equivalent_to(one, 1)
    assert one.is_equivalent_to(alone, 1)
    assert not alone.is_equivalent_to(sharding(), 1)


def test_shardings_over_abstract_meshes() -> None:
    abstract = NamedSharding(AbstractMesh((2, 3), ("x", "y")), P("y", "x"))
    assert pickle.loads(pickle.dumps(abstract)) is abstract
    assert abstract.shard_shape((6, 6)) == (2, 3)
    assert isinstance(abstract, NamedSharding)
    with pytest.raises(ValueError, match="its mesh is abstract"):
        assert abstract.device_set
    with pytest.raises(ValueError, match="its mesh is abstract"):
        dt.device_put(VALUE, NamedSharding(MESH.abstract_mesh, P("x")))


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_parts_make_up_the_array(spec: P) -> None:
    place = NamedSharding(MESH, spec)
    x = dt.device_put(VALUE, place)
    assert x.sharding is place
    assert x.committed
    assert x.devices() == set(DEVICES)
    np.testing.assert_array_equal(x, VALUE)
    seen = np.zeros(VALUE.shape, int)
    copies: dict[str, list[int]] = {}
    for shard, device in zip(x.addressable_shards, DEVICES, strict=True):
        assert shard.device is device
        assert shard.data.shape == place.shard_shape(VALUE.shape)
        assert shard.data.sharding is SingleDeviceSharding(device)
        np.testing.assert_array_equal(shard.data, VALUE[shard.index])
        seen[shard.index] += 1
        copies.setdefault(str(shard.index), []).append(shard.replica_id)
    assert len(set(seen.flat)) == 1
    assert all(ids == list(range(len(ids))) for ids in copies.values())
    assert x.is_fully_replicated == (len(copies) == 1)
    assert len(x.global_shards) == 4
    np.testing.assert_array_equal(x.addressable_data(2), VALUE[x.addressable_shards[2].index])


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_host_values_of_any_strides(spec: P) -> None:
    row, column = VALUE[:1], VALUE[:, 1:2]
    for value in (
        *(np.broadcast_to(x, (8, 8)) for x in (row, column, np.float32(3))),
        *(VALUE.T, VALUE[::-1, ::-1], np.arange(256.0, dtype=np.float32).reshape(16, 16)[::2, ::2]),
    ):
        np.testing.assert_array_equal(dt.device_put(value, sharding(*spec)), value)


@pytest.mark.parametrize("spec", SPECS[::3], ids=str)
def test_moves_between_shardings(spec: P) -> None:
    x = dt.device_put(VALUE, NamedSharding(MESH, spec))
    others = [NamedSharding(MESH, other) for other in SPECS[::4]]
    others += [SingleDeviceSharding(DEVICES[3]), sharding("z", mesh=Mesh(DEVICES[2:], "z"))]
    for other in others:
        moved = dt.device_put(x, other)
        assert moved.sharding is other
        np.testing.assert_array_equal(moved, VALUE)
        np.testing.assert_array_equal(dt.device_put(moved, x.sharding), VALUE)
    for again in (copy.copy(x), dt.device_put(x, x.sharding, may_alias=False)):
        assert again.sharding is x.sharding
        np.testing.assert_array_equal(again, VALUE)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(x)), VALUE)
    np.testing.assert_array_equal(dt.device_get(x), VALUE)
    assert repr(x) == repr(dt.numpy.asarray(VALUE))


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint16", "float16", "bfloat16", "float8_e4m3fn", "complex64"]
)
def test_dtypes(dtype: str) -> None:
    value = VALUE.astype(dt.numpy.dtype(dtype))
    x = dt.device_put(value, sharding("y", "x"))
    np.testing.assert_array_equal(np.asarray(x).astype(complex), value.astype(complex))


def test_the_owner_may_write_afterwards() -> None:
    for spec in SPECS:
        own = VALUE.copy()
        x = dt.device_put(own, NamedSharding(MESH, spec))
        own[:] = -1
        np.testing.assert_array_equal(x, VALUE)


def test_keys_and_empty_arrays() -> None:
    keys = random.split(random.key(0), 4)
    placed = dt.device_put(keys, sharding("x"))
    assert placed.sharding is sharding("x")
    np.testing.assert_array_equal(random.key_data(placed), random.key_data(keys))
    np.testing.assert_array_equal(
        random.key_data(placed.addressable_shards[2].data), random.key_data(keys)[2:]
    )
    empty = dt.device_put(np.zeros((0, 4), np.int32), sharding("x", "y"))
    assert empty.addressable_shards[0].data.shape == (0, 2)
    assert np.asarray(empty).shape == (0, 4)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.arange(6), "dimension 0 of an array of shape .6,. cannot be divided evenly"),
        (np.float32(1), "entries for 1 dimension"),
        (3.0, "entries for 1 dimension"),
    ],
)
def test_arrays_that_cannot_be_divided(value: Any, text: str) -> None:
    four = sharding(("x", "y"))
    with pytest.raises(ValueError, match=text):
        dt.device_put(value, four)
    with pytest.raises(ValueError, match=text):
        dt.device_put(dt.numpy.asarray(value), four)


def test_arrays_of_parts() -> None:
    places = []

    def part(index: Any) -> Any:
        places.append(index)
        return VALUE[index]

    for spec in SPECS:
        place = NamedSharding(MESH, spec)
        places.clear()
        x = dt.make_array_from_callback((8, 8), place, part)
        np.testing.assert_array_equal(x, VALUE)
        assert x.sharding is place
        assert x.committed
        assert len(places) == len({str(i) for i in place.devices_indices_map((8, 8)).values()})
        parts = [shard.data for shard in x.addressable_shards]
        again = dt.make_array_from_single_device_arrays((8, 8), place, parts[::-1])
        np.testing.assert_array_equal(again, VALUE)
        np.testing.assert_array_equal(again + 1, VALUE + 1)
        tree = dt.make_array_from_process_local_data(place, {"a": VALUE})
        assert tree["a"].sharding is place
    one = dt.make_array_from_callback((8, 8), SingleDeviceSharding(DEVICES[1]), part)
    assert one.devices() == {DEVICES[1]}
    keys = random.split(random.key(0), 4)
    placed = dt.make_array_from_callback((4,), sharding("x"), lambda index: keys[index])
    np.testing.assert_array_equal(random.key_data(placed), random.key_data(keys))
    typed = dt.make_array_from_callback((8, 8), sharding("x"), part, dtype="float32")
    assert typed.dtype == "float32"


PARTS = [dt.device_put(np.arange(2, dtype=np.int32), device) for device in DEVICES]
FLAT = sharding(("x", "y"))


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: dt.make_array_from_callback((8,), "x", abs), TypeError, "sharding must be"),
        (lambda: dt.make_array_from_callback((8,), FLAT, 3), TypeError, "must be a function"),
        (
            lambda: dt.make_array_from_callback((6,), FLAT, lambda i: np.ones(2)),
            ValueError,
            "cannot be divided evenly",
        ),
        (
            lambda: dt.make_array_from_callback((8,), FLAT, lambda i: np.ones(3)),
            ValueError,
            r"have the shape \(2,\), and the one on .* has \(3,\)",
        ),
        (lambda: dt.make_array_from_callback((8,), FLAT, lambda i: None), TypeError, "NoneType"),
        (
            lambda: dt.make_array_from_callback((8,), FLAT, lambda i: np.ones(2), dtype=int),
            TypeError,
            "have the dtype int32, and the one on .* has float32",
        ),
        (
            lambda: dt.make_array_from_single_device_arrays((8,), FLAT, PARTS[:3]),
            ValueError,
            "one array must lie on each of the 4 devices",
        ),
        (
            lambda: dt.make_array_from_single_device_arrays((8,), FLAT, [PARTS[0]] * 4),
            ValueError,
            "got 4, on",
        ),
        (
            lambda: dt.make_array_from_single_device_arrays((8,), FLAT, [np.arange(2)] * 4),
            TypeError,
            "must be a list of arrays on devices",
        ),
        (
            lambda: dt.make_array_from_single_device_arrays((8,), FLAT, PARTS[0]),
            TypeError,
            "must be a list of arrays on devices",
        ),
        (
            lambda: dt.make_array_from_process_local_data(FLAT, np.arange(8), (16,)),
            ValueError,
            "global_shape is that of the data",
        ),
    ],
)
def test_parts_that_make_up_nothing(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        make()
