"""Data in other memories of devices than the one in which they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail.ad_checkpoint import checkpoint_name
from dovetail.errors import DeviceMismatchError
from dovetail.experimental import serialize_executable
from dovetail.memory import Space
from dovetail.sharding import Mesh, NamedSharding, SingleDeviceSharding
from dovetail.sharding import PartitionSpec as P

DEVICES = dt.devices("cpu")[:4]
MESH = Mesh(np.array(DEVICES), "i")
VALUE = np.arange(8, dtype=np.float32)
PLACES = {
    "one device": SingleDeviceSharding(DEVICES[0]),
    "rows": NamedSharding(MESH, P("i")),
    "replicated": NamedSharding(MESH, P()),
}


@pytest.fixture(params=PLACES)
def place(request: Any) -> Any:
    return PLACES[request.param]


def check(x: Any, place: Any, kind: str, expected: Any) -> None:
    """An array is under a sharding in a memory."""
    assert x.sharding is place.with_memory_kind(kind)
    assert x.sharding.memory_kind == kind
    for shard in x.addressable_shards:
        assert shard.data.sharding.memory_kind == kind
    np.testing.assert_allclose(x, expected, rtol=1e-6)


def test_moves_between_memories(place: Any) -> None:
    there = place.with_memory_kind("pinned_host")
    assert there.with_memory_kind("device") is place
    assert "pinned_host" in repr(there)
    x = dt.device_put(VALUE, there)
    check(x, place, "pinned_host", VALUE)
    check(dt.device_put(x, place), place, "device", VALUE)
    check(dt.device_put(x, Space.Device), place, "device", VALUE)
    check(dt.device_put(dt.device_put(VALUE, place), Space.Host), place, "pinned_host", VALUE)
    assert dt.device_put(x, Space.Host) is x
    for other in PLACES.values():
        for kind in ("device", "pinned_host", "unpinned_host"):
            check(dt.device_put(x, other.with_memory_kind(kind)), other, kind, VALUE)
    with pytest.raises(ValueError, match="has no memory of kind 'tape'"):
        place.with_memory_kind("tape")
    assert dt.device_put(VALUE, Space.Host).sharding.memory_kind == "pinned_host"
    assert dt.device_put({"a": x}, {"a": Space.Any})["a"] is x


#: By name: a function of (x on the device, h on the host, a sharding), and the memories of results.
PROGRAMS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "arguments": (lambda x, h, to: (x, h), ("device", "pinned_host")),
    "computed where the operands are": (
        lambda x, h, to: (jnp.sin(x) + 1, 2 * h.reshape(2, 4), jnp.zeros(3)),
        ("device", "pinned_host", "device"),
    ),
    "fetched": (lambda x, h, to: (dt.device_put(h, to) + x,), ("device",)),
    "fetched by space": (lambda x, h, to: (dt.device_put(h, Space.Device) + x,), ("device",)),
    "put away": (
        lambda x, h, to: (dt.device_put(x * 2, to.with_memory_kind("pinned_host")) + h,),
        ("pinned_host",),
    ),
    "put away by space": (lambda x, h, to: (dt.device_put(x * 2, Space.Host),), ("pinned_host",)),
    "where it is": (
        lambda x, h, to: (dt.device_put(x, Space.Device), dt.device_put(h, Space.Host)),
        ("device", "pinned_host"),
    ),
    "inside a call": (
        lambda x, h, to: (dt.jit(lambda y: dt.device_put(y, Space.Device) * x)(h),),
        ("device",),
    ),
    "out of a call": (
        lambda x, h, to: (dt.jit(lambda y: dt.device_put(y, Space.Host))(x) - h,),
        ("pinned_host",),
    ),
    "inside a loop": (
        lambda x, h, to: (
            lax.scan(lambda c, y: (c + dt.device_put(y, Space.Device), None), jnp.zeros(()), h)[0],
        ),
        ("device",),
    ),
    "vmap": (
        lambda x, h, to: (dt.vmap(lambda y, z: dt.device_put(y, Space.Device) * z)(h, x),),
        ("device",),
    ),
    "grad": (
        lambda x, h, to: (dt.grad(lambda y: (dt.device_put(y, Space.Device) * x).sum())(h),),
        ("device",),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name: str, place: Any) -> None:
    function, kinds = PROGRAMS[name]
    x = dt.device_put(VALUE, place)
    h = dt.device_put(VALUE + 1, place.with_memory_kind("pinned_host"))
    expected = function(jnp.asarray(VALUE), jnp.asarray(VALUE) + 1, place)
    f = dt.jit(lambda x, h: function(x, h, place))
    compiled = f.lower(x, h).compile()
    for found in (f(x, h), f(x, h), compiled(x, h)):
        assert tuple(y.sharding.memory_kind for y in found) == kinds
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)
    shardings = dt.tree.leaves(compiled.output_shardings)
    assert tuple(sharding.memory_kind for sharding in shardings) == kinds


def test_serialized_programs(place: Any) -> None:
    x = dt.device_put(VALUE, place)
    h = dt.device_put(VALUE, place.with_memory_kind("pinned_host"))
    f = dt.jit(lambda x, h: (dt.device_put(h, Space.Device) + x, dt.device_put(x, Space.Host)))
    written = serialize_executable.serialize(f.lower(x, h).compile())
    total, kept = serialize_executable.deserialize_and_load(*written)(x, h)
    check(total, place, "device", 2 * VALUE)
    check(kept, place, "pinned_host", VALUE)


def test_shardings_that_are_asked_for(place: Any) -> None:
    there = place.with_memory_kind("pinned_host")
    for given, asked in [(place, there), (there, place), (there, there)]:
        f = dt.jit(lambda x: 2 * x + 1, in_shardings=given, out_shardings=asked)
        for value in (VALUE, dt.device_put(VALUE, given)):
            check(f(value), place, asked.memory_kind, 2 * VALUE + 1)
        assert f.lower(VALUE).compile().output_shardings is asked
    with pytest.raises(DeviceMismatchError, match="in_shardings asks for"):
        dt.jit(lambda x: x, in_shardings=place)(dt.device_put(VALUE, there))


def test_operands_in_several_memories(place: Any) -> None:
    x, h = dt.device_put(VALUE, place), dt.device_put(VALUE, place.with_memory_kind("pinned_host"))
    text = "add gets operands in the memories device and pinned_host"
    for call in (lambda: x + h, lambda: dt.jit(lambda a, b: a + b)(h, x)):
        with pytest.raises(DeviceMismatchError, match=text):
            call()
    for other in (2, np.float32(2), jnp.float32(2), 2 * np.ones(8, np.float32)):
        check(h * other, place, "pinned_host", 2 * VALUE)


POLICIES = {
    "names": dt.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["y"],
        offload_src="device",
        offload_dst="pinned_host",
    ),
    "dots": dt.checkpoint_policies.offload_dot_with_no_batch_dims("device", "pinned_host"),
}


@pytest.mark.parametrize("name", POLICIES)
def test_residuals_that_are_offloaded(name: str, place: Any) -> None:
    weights = dt.device_put(np.eye(8, dtype=np.float32) + 0.1, PLACES["replicated"])
    if place is PLACES["one device"]:
        weights = dt.device_put(weights, place)

    def loss(w: Any, x: Any) -> Any:
        y = checkpoint_name(jnp.sin(jnp.outer(x, x) @ w), "y")
        return jnp.sin(y).sum()

    x = dt.device_put(VALUE, place)
    found = dt.jit(dt.grad(dt.checkpoint(loss, policy=POLICIES[name])))(weights, x)
    np.testing.assert_allclose(found, dt.grad(loss)(weights, x), rtol=1e-4, atol=1e-4)
    assert found.sharding.memory_kind == "device"


def test_modules_name_the_memories(place: Any) -> None:
    there = place.with_memory_kind("pinned_host")
    text = dt.jit(lambda x: x + 1, in_shardings=there, out_shardings=place).lower(VALUE).as_text()
    assert text.count('mhlo.memory_kind = "pinned_host"') == 1
    assert "memory" not in dt.jit(lambda x: x + 1, in_shardings=place).lower(VALUE).as_text()


def test_residuals_that_are_offloaded_outside_of_compiled_functions() -> None:
    loss = dt.checkpoint(
        lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "y")).sum(), policy=POLICIES["names"]
    )
    found = dt.grad(loss)(jnp.asarray(VALUE))
    np.testing.assert_allclose(found, np.cos(np.sin(VALUE)) * np.cos(VALUE), rtol=1e-4, atol=1e-4)
    assert found.sharding.memory_kind == "device"
    assert not found.committed
    with dt.disable_jit():
        x = dt.jit(lambda x: dt.device_put(x, Space.Host))(jnp.asarray(VALUE))
    assert x.sharding.memory_kind == "pinned_host"
