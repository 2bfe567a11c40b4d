"""Arrays moved between shardings hold what they held, whichever way they take."""

from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import random
from dovetail._core.runtime.arrays import moving, parts
from dovetail.errors import DeletedArrayError, ShapeError
from dovetail.sharding import Mesh, NamedSharding, SingleDeviceSharding
from dovetail.sharding import PartitionSpec as P

DEVICES = dt.devices("cpu")[:4]
MESH = Mesh(np.array(DEVICES).reshape(2, 2), ("x", "y"))
LINE = Mesh(np.array(DEVICES), "i")
BACK = Mesh(np.array(DEVICES[::-1]), "i")
PAIR = Mesh(np.array(DEVICES[1:3]), "i")
OTHERS = Mesh(np.array(DEVICES[2:]), "i")
VALUE = np.arange(8 * 12, dtype=np.float32).reshape(8, 12)

PLACES: dict[str, Any] = {
    "one": SingleDeviceSharding(DEVICES[0]),
    "another": SingleDeviceSharding(DEVICES[3]),
    "both": NamedSharding(MESH, P("x", "y")),
    "some rows": NamedSharding(MESH, P("y")),
    "some columns": NamedSharding(MESH, P(None, "x")),
    "whole": NamedSharding(MESH, P()),
    "rows": NamedSharding(LINE, P("i")),
    "columns": NamedSharding(LINE, P(None, "i")),
    "rows backwards": NamedSharding(BACK, P("i")),
    "rows of two": NamedSharding(PAIR, P("i")),
    "rows of others": NamedSharding(OTHERS, P("i")),
    "rows on the host": NamedSharding(LINE, P("i"), memory_kind="pinned_host"),
    "two on the host": NamedSharding(PAIR, P("i"), memory_kind="pinned_host"),
}
DTYPES = ["bool", "int4", "uint8", "float8_e4m3fn", "bfloat16", "float32", "complex64"]


@pytest.fixture(params=["in the host's memory", "on devices", "unseen by jax"])
def way(request: Any, monkeypatch: Any) -> str:
    """The ways that arrays take."""
    if request.param == "on devices":
        monkeypatch.setattr(moving, "is_on_host", lambda sharding: False)
    if request.param == "unseen by jax":
        if "jax.core" in sys.modules:
            pytest.skip("jax is loaded")
        parts.is_free(PLACES["rows"])
        monkeypatch.setattr(parts, "_jax_is_installed", True)
    name: str = request.param
    return name


def check(x: Any, place: Any, expected: Any) -> None:
    """An array is where it should be, as a whole and in parts."""
    assert x.sharding is place
    assert x.committed
    assert x.dtype == expected.dtype
    assert (np.asarray(x) == expected).all()
    shards = x.addressable_shards
    assert [shard.device for shard in shards] == list(place._device_list)
    for shard in shards:
        assert shard.data.devices() == {shard.device}
        assert shard.data.committed
        assert (np.asarray(shard.data) == expected[shard.index]).all()


@pytest.mark.parametrize("source", PLACES)
def test_every_way(source: str, way: str) -> None:
    for place in PLACES.values():
        x = dt.device_put(VALUE, PLACES[source])
        y = dt.device_put(x, place)
        check(y, place, VALUE)
        if y is not x:
            x.delete()
            assert (np.asarray(y) == VALUE).all()
    assert (np.asarray(y + y) == 2 * VALUE).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str, way: str) -> None:
    value = (VALUE % 2).astype(np.dtype(getattr(ml_dtypes, dtype, dtype)))
    for source, target in [
        ("rows", "columns"),
        ("rows", "whole"),
        ("whole", "both"),
        ("one", "some rows"),
        ("some columns", "another"),
        ("columns", "rows of others"),
        ("rows", "rows backwards"),
    ]:
        check(
            dt.device_put(dt.device_put(value, PLACES[source]), PLACES[target]),
            PLACES[target],
            value,
        )


def test_what_has_few_elements(way: str) -> None:
    rows, whole = PLACES["rows"], PLACES["whole"]
    check(dt.device_put(dt.device_put(np.float32(3), DEVICES[1]), whole), whole, np.float32(3))
    for shape in ((0,), (0, 4), (4, 0)):
        empty = dt.device_put(np.zeros(shape, np.float32), rows)
        check(dt.device_put(empty, whole), whole, np.zeros(shape, np.float32))
        check(dt.device_put(dt.device_put(empty, whole), rows), rows, np.zeros(shape, np.float32))
    keys = random.split(random.key(7), 8)
    there = dt.device_put(dt.device_put(keys, NamedSharding(LINE, P("i"))), whole)
    assert there.sharding is whole
    assert (random.key_data(there) == random.key_data(keys)).all()
    weak = dt.device_put(dt.device_put(2.0, whole), DEVICES[2])
    assert weak.weak_type


def test_large_parts(way: str) -> None:
    value = np.random.default_rng(0).standard_normal((512, 2, 512)).astype(np.float32)
    places = [
        NamedSharding(MESH, spec)
        for spec in (P("x"), P(None, None, ("y", "x")), P("y", "x"), P(None, "x", "y"), P())
    ]
    host = [dt.device_put(value, place) for place in places]
    for x in host:
        assert (np.asarray(x) == value).all()
        for place in places:
            assert (np.asarray(dt.device_put(x, place)) == value).all()


def test_memory_that_is_shared_is_never_written_to() -> None:
    double = dt.jit(lambda x: 2 * x, donate_argnums=0)
    for source, target in [("whole", "rows"), ("rows", "whole"), ("one", "whole")]:
        for donated_first in (True, False):
            x = dt.device_put(VALUE, PLACES[source])
            y = dt.device_put(x, PLACES[target])
            z = double(x if donated_first else y)
            kept = y if donated_first else x
            assert (np.asarray(z) == 2 * VALUE).all()
            assert (np.asarray(kept) == VALUE).all()
            assert (np.asarray(double(z)) == 4 * VALUE).all()
            assert (np.asarray(kept) == VALUE).all()
    value = VALUE.copy()
    x = dt.device_put(value, PLACES["whole"])
    value[:] = 0
    assert (np.asarray(x) == VALUE).all()


def test_may_alias() -> None:
    value = np.zeros((64, 64), np.float32)
    x = dt.device_put(value, PLACES["whole"])

    def address(array: Any) -> int:
        start: int = array.addressable_shards[0].data.unsafe_buffer_pointer()
        return start

    assert address(dt.device_put(x, PLACES["rows"])) == address(x)
    assert address(dt.device_put(x, PLACES["rows"], may_alias=False)) != address(x)
    assert address(dt.device_put(x, PLACES["whole"], may_alias=False)) != address(x)
    assert dt.device_put(x, PLACES["whole"]) is x


def test_donation(way: str) -> None:
    tree = {"a": dt.device_put(VALUE, PLACES["rows"]), "b": dt.device_put(VALUE, PLACES["whole"])}
    moved = dt.device_put(tree, PLACES["columns"], donate={"a": True, "b": False})
    for leaf in moved.values():
        check(leaf, PLACES["columns"], VALUE)
    assert tree["a"].is_deleted()
    with pytest.raises(DeletedArrayError, match="donated to device_put"):
        tree["a"] + 1
    assert (np.asarray(tree["b"]) == VALUE).all()


def test_what_cannot_be_divided(way: str) -> None:
    x = dt.device_put(np.zeros((6, 5), np.float32), DEVICES[0])
    for target in ("rows", "columns"):
        with pytest.raises(ShapeError, match="no multiple of 4"):
            dt.device_put(x, PLACES[target])


def test_programs_that_move_are_kept_until_caches_are_cleared(monkeypatch: Any) -> None:
    monkeypatch.setattr(moving, "is_on_host", lambda sharding: False)
    dt.clear_caches()
    x = dt.device_put(VALUE, PLACES["rows"])
    for _ in range(3):
        dt.device_put(x, PLACES["columns"])
        dt.device_put(x, NamedSharding(BACK, P(None, "i")))
    assert moving._identity.cache_info().currsize == 1
    assert moving._identity.cache_info().hits == 5
    dt.clear_caches()
    assert moving._identity.cache_info().currsize == 0


def test_guards() -> None:
    x = dt.device_put(VALUE, PLACES["rows"])
    refused = pytest.raises(RuntimeError, match="Disallowed device-to-device transfer")
    with dt.transfer_guard_device_to_device("disallow_explicit"), refused:
        dt.device_put(x, PLACES["columns"])
    with (
        dt.transfer_guard_device_to_device("disallow"),
        dt.transfer_guard_host_to_device("disallow_explicit"),
    ):
        y = dt.device_put(x, PLACES["columns"])
    check(y, PLACES["columns"], VALUE)


def test_failed_computations_are_told_where_they_are_moved() -> None:
    def fail(x: Any) -> Any:
        raise ValueError("no value")

    def compute(x: Any) -> Any:
        return dt.pure_callback(fail, dt.ShapeDtypeStruct(x.shape, x.dtype), x)

    x = dt.device_put(VALUE, DEVICES[0])
    with pytest.raises(ValueError, match="no value"):
        np.asarray(dt.device_put(dt.jit(compute)(x), PLACES["rows"]))


def test_parts_are_the_memory_of_the_array() -> None:
    x = dt.device_put(VALUE, PLACES["both"]) + 1
    first = x.addressable_shards[0].data
    again = x.addressable_data(0)
    assert first.unsafe_buffer_pointer() == again.unsafe_buffer_pointer()
    assert (jnp.sum(first) == (VALUE[:4, :6] + 1).sum()).all()
    joined = dt.make_array_from_single_device_arrays(
        x.shape, PLACES["both"], [shard.data for shard in x.addressable_shards]
    )
    check(joined, PLACES["both"], VALUE + 1)
