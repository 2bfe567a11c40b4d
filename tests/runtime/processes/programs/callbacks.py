"""Callbacks of programs over the devices of several processes."""

import numpy as np

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.experimental import io_callback
from dovetail.sharding import Mesh, NamedSharding, SingleDeviceSharding
from dovetail.sharding import PartitionSpec as P

dt.distributed.initialize()
NUMBER, COUNT = dt.process_index(), dt.process_count()
DEVICES, EACH = dt.devices(), dt.local_device_count()
ROWS = NamedSharding(Mesh(np.array(DEVICES), "x"), P("x"))
VALUE = np.arange(2 * len(DEVICES), dtype=np.float32)
RESULT = dt.ShapeDtypeStruct(VALUE.shape, VALUE.dtype)
LAST = SingleDeviceSharding(DEVICES[-1])
x = dt.make_array_from_callback(VALUE.shape, ROWS, lambda index: VALUE[index])
seen = []


def double(x):
    seen.append(x.shape)
    return np.asarray(jnp.asarray(x) * 2)


# One device calls, and all have the result.
for function, caller in (
    (lambda x: dt.pure_callback(double, RESULT, x), 0),
    (lambda x: dt.pure_callback(double, RESULT, x, sharding=LAST), COUNT - 1),
    (lambda x: io_callback(double, RESULT, x, ordered=True), 0),
    (lambda x: io_callback(double, RESULT, x, sharding=LAST), COUNT - 1),
):
    seen.clear()
    result = dt.jit(function)(x)
    dt.effects_barrier()
    assert result.is_fully_replicated
    assert result.tolist() == (VALUE * 2).tolist()
    assert seen == [VALUE.shape] * (caller == NUMBER), (seen, caller)

# Each device shows its part.
seen.clear()
dt.jit(lambda x: dt.debug.callback(double, x, partitioned=True))(x)
dt.effects_barrier()
assert seen == [(2,)] * EACH, seen

# Stacks of matrices stay where they are.
stack = np.stack([np.eye(3, dtype=np.float32) * 4 * (n + 1) for n in range(len(VALUE))])
matrices = dt.make_array_from_callback(stack.shape, ROWS, lambda index: stack[index])
program = dt.jit(jnp.linalg.cholesky).lower(matrices).compile()
assert "all-gather" not in program.as_text()
for shard in program(matrices).addressable_shards:
    np.testing.assert_allclose(shard.data, np.sqrt(stack[shard.index]), rtol=1e-6)


def fail(x):
    raise KeyError("no such row")


# The process that calls raises; the others get numbers that are none.
try:
    result = dt.jit(lambda x: dt.pure_callback(fail, RESULT, x, sharding=LAST))(x)
    assert NUMBER != COUNT - 1
    assert np.isnan(result).all()
except KeyError:
    assert NUMBER == COUNT - 1
print("all is well")
