"""What processes exchange, and what is said where they do not do the same."""

import sys
import time

import numpy as np

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.experimental import multihost_utils as utils
from dovetail.sharding import Mesh, NamedSharding
from dovetail.sharding import PartitionSpec as P

dt.distributed.initialize()
NUMBER, COUNT = dt.process_index(), dt.process_count()
DEVICES, EACH = dt.devices(), dt.local_device_count()
MESH = Mesh(np.array(DEVICES), "x")
ROWS = NamedSharding(MESH, P("x"))
NUMBERS = np.arange(COUNT)


def raised(kind, function):
    try:
        function()
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


# All to all: small ones by way of the coordinator, large ones by that of the devices.
for size in (1, 3, 100_000):
    own = np.full(size, NUMBER)
    stacked = utils.process_allgather(own)
    assert stacked.dtype == own.dtype
    assert stacked.tolist() == np.tile(NUMBERS[:, None], size).tolist()
    assert utils.process_allgather(own, tiled=True).tolist() == np.repeat(NUMBERS, size).tolist()
tree = utils.process_allgather({"a": jnp.arange(2) + NUMBER, "b": 0.5}, tiled=True)
assert tree["a"].tolist() == [n + i for n in range(COUNT) for i in (0, 1)]
assert tree["b"].tolist() == [0.5] * COUNT
assert tree["b"].dtype == np.float32
x = dt.make_array_from_process_local_data(ROWS, np.arange(2 * EACH) + 2 * EACH * NUMBER)
assert utils.process_allgather(x, tiled=True).tolist() == list(range(2 * len(DEVICES)))
assert "tiled=True" in raised(ValueError, lambda: utils.process_allgather(x))
said = raised(ValueError, lambda: utils.process_allgather(np.zeros(2 + (NUMBER == 1))))
assert "process 1 has float64[3]" in said, said
assert "process 0 has float64[2]" in said, said

# One to all.
for size in (2, 100_000):
    told = utils.broadcast_one_to_all(np.full(size, NUMBER), is_source=NUMBER == 1)
    assert told.tolist() == [1] * size
assert utils.broadcast_one_to_all({"seed": 3 + NUMBER})["seed"] == 3
assert "none of" in raised(ValueError, lambda: utils.broadcast_one_to_all(1, is_source=False))
assert "have" in raised(ValueError, lambda: utils.broadcast_one_to_all(1, is_source=True))

# Equal or not.
utils.assert_equal({"a": 1, "b": np.arange(2)})
said = raised(AssertionError, lambda: utils.assert_equal({"b": NUMBER == 1}, "seeds"))
assert said == "seeds: process 1 has another value of ['b'] than process 0", said

# One's and all's.
x = utils.host_local_array_to_global_array(np.arange(EACH) + EACH * NUMBER, MESH, P("x"))
assert x.shape == (len(DEVICES),)
assert x.sharding is ROWS
own = utils.global_array_to_host_local_array(x, MESH, P("x"))
assert own.is_fully_addressable
assert own.tolist() == [EACH * NUMBER + i for i in range(EACH)]
assert utils.global_array_to_host_local_array(x, MESH, P()).tolist() == list(range(len(DEVICES)))
with utils.live_devices(DEVICES) as living:
    assert living == DEVICES
assert utils.reached_preemption_sync_point(1) is False

# Different places, different programs, and who does not come.
for _ in range(2):
    utils.sync_global_devices("together")
said = raised(dt.errors.DistributedError, lambda: utils.sync_global_devices(f"place {NUMBER}"))
assert f"process {NUMBER} waited at" in said, said
assert said.count("sync_global_devices") == COUNT, said
utils.sync_global_devices("again")
sizes = (len(DEVICES) * (2 + (NUMBER == 0)),)
x = dt.make_array_from_callback(sizes, ROWS, lambda index: np.ones(sizes, np.float32)[index])
said = raised(dt.errors.DistributedError, lambda: dt.jit(lambda v: v.sum())(x))
assert f"(f32[{sizes[0]}])" in said, said
assert said.count("the program jit__lambda_") == 2, said
dt.config.update("process_timeout", 1)
if NUMBER == 0:
    said = raised(dt.errors.DistributedError, lambda: utils.sync_global_devices("alone"))
    assert "process 1 did not come within 1 s" in said, said
else:
    time.sleep(1.6)
dt.config.update("process_timeout", 30)
utils.sync_global_devices("the end")
if "fail" in sys.argv and NUMBER == 1:
    sys.exit(7)
print("all is well")
