"""Arrays over all processes, and programs over them; each process checks what it sees."""

import pickle
import re
import sys

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.sharding import Mesh, NamedSharding, SingleDeviceSharding
from dovetail.sharding import PartitionSpec as P

dt.distributed.initialize()
NUMBER, COUNT = dt.process_index(), dt.process_count()
DEVICES, OWN = dt.devices(), dt.local_devices()
EACH = len(OWN)
assert len(DEVICES) == dt.device_count() == COUNT * EACH
assert [d.process_index for d in DEVICES] == [n // EACH for n in range(len(DEVICES))]
assert dt.local_devices(process_index=1) == DEVICES[EACH : 2 * EACH]
MESH = Mesh(np.array(DEVICES), "x")
ROWS, WHOLE = NamedSharding(MESH, P("x")), NamedSharding(MESH, P())
SIZE = len(DEVICES)
VALUE = np.arange(4.0 * SIZE * 3, dtype=np.float32).reshape(4 * SIZE, 3)


def raises(kind, text, function):
    with pytest.raises(kind, match=re.escape(text)):
        function()


def here(x):
    """This process's parts, which must be those of a NumPy array of the same shape."""
    return [(shard.index, np.asarray(shard.data)) for shard in x.addressable_shards]


def is_equal(x, value):
    return all(np.allclose(part, value[index], rtol=1e-6) for index, part in here(x))


x = dt.make_array_from_callback(VALUE.shape, ROWS, lambda index: VALUE[index])


def arrays():
    """How arrays are made, what they are, and what they cannot be."""
    part = VALUE[NUMBER * 4 * EACH : (NUMBER + 1) * 4 * EACH]
    places = ROWS.addressable_devices_indices_map(VALUE.shape)
    for made in (
        x,
        dt.make_array_from_process_local_data(ROWS, part),
        dt.make_array_from_process_local_data(ROWS, part, VALUE.shape),
        dt.make_array_from_process_local_data(ROWS, VALUE, VALUE.shape),
        dt.device_put(VALUE, ROWS),
        dt.device_put(jnp.asarray(VALUE), ROWS),
        dt.make_array_from_single_device_arrays(
            VALUE.shape,
            ROWS,
            [dt.device_put(VALUE[index], device) for device, index in places.items()],
        ),
    ):
        assert made.shape == VALUE.shape, made
        assert made.sharding is ROWS
        assert is_equal(made, VALUE)
    tree = dt.make_array_from_process_local_data(ROWS, {"a": part, "b": part[:, 0]})
    assert tree["b"].shape == (4 * SIZE,)
    assert is_equal(tree["b"], VALUE[:, 0])
    columns = NamedSharding(MESH, P(None, "x"))
    wide = np.arange(2 * SIZE).reshape(1, -1)
    mine = wide[:, NUMBER * 2 * EACH : (NUMBER + 1) * 2 * EACH]
    assert is_equal(dt.make_array_from_process_local_data(columns, mine), wide)

    # What they are.
    assert not x.is_fully_addressable
    assert not x.is_fully_replicated
    assert [shard.device for shard in x.addressable_shards] == OWN
    assert [shard.data is not None for shard in x.global_shards] == [d in OWN for d in DEVICES]
    assert repr(x) == str(x) == f"Array(shape={VALUE.shape}, dtype=float32)"
    for read in (np.asarray, dt.device_get, pickle.dumps, lambda x: x.tolist()):
        raises(
            RuntimeError, "multihost_utils.process_allgather(x, tiled=True)", lambda r=read: r(x)
        )
    whole = dt.device_put(np.arange(3), WHOLE)
    assert whole.tolist() == [0, 1, 2]
    assert not whole.is_fully_addressable

    # What they cannot be.
    other = DEVICES[(NUMBER + 1) % COUNT * EACH]
    raises(ValueError, "belongs to process", lambda: dt.device_put(1.0, other))
    raises(ValueError, "belongs to process", lambda: dt.device_put(jnp.ones(2), other))
    raises(ValueError, "stays on them", lambda: dt.device_put(x, OWN[0]))
    raises(
        ValueError,
        "the same in all processes",
        lambda: dt.device_put(np.arange(SIZE) + NUMBER, ROWS),
    )
    raises(
        ValueError,
        "its data have the size",
        lambda: dt.make_array_from_process_local_data(ROWS, VALUE[:5], VALUE.shape),
    )


if "programs" not in sys.argv:
    arrays()

# Programs.
assert float(dt.jit(lambda x: x.sum())(x)) == VALUE.sum()
assert is_equal(dt.jit(lambda a, b: a @ b.T)(x, x), VALUE @ VALUE.T)
product = dt.jit(lambda a, b: a.T @ b, out_shardings=WHOLE)(x, x)
assert np.allclose(product, VALUE.T @ VALUE)
assert is_equal(dt.jit(lambda x, y: x * y)(x, np.arange(3, dtype=np.float32)), VALUE * np.arange(3))
assert np.array_equal(dt.device_put(x, WHOLE), VALUE)
assert is_equal(dt.device_put(dt.device_put(x, WHOLE), ROWS), VALUE)
assert is_equal(x + 1, VALUE + 1)
assert x[2].tolist() == VALUE[2].tolist()
assert is_equal(x.copy(), VALUE)
assert is_equal(-(x.at[0].set(1)), -np.vstack([[1] * 3, VALUE[1:]]))


def loss(w, x, y):
    return ((x @ w - y) ** 2).mean()


step = dt.jit(lambda w, x, y: w - 1e-4 * dt.grad(loss)(w, x, y), out_shardings=WHOLE)
w, expected = dt.device_put(np.ones(3, np.float32), WHOLE), np.ones(3)
y = dt.make_array_from_callback((4 * SIZE,), ROWS, lambda index: VALUE[:, 0][index])
for _ in range(3):
    w = step(w, x, y)
    expected -= 1e-4 * 2 * VALUE.T @ (VALUE @ expected - VALUE[:, 0]) / len(VALUE)
assert np.allclose(w, expected, rtol=1e-4), (w, expected)
with dt.debug_nans():
    raises(FloatingPointError, "nan", lambda: dt.jit(jnp.log)(x - 100).block_until_ready())
local = dt.jit(lambda x: x * 2)(jnp.ones(3))
assert local.tolist() == [2, 2, 2]
assert local.is_fully_addressable
assert SingleDeviceSharding(DEVICES[-1]).device_set == {DEVICES[-1]}
print("all is well")
