"""Trains while one process dies; those of one device each go on without it."""

import os
import signal
import sys

import numpy as np

import dovetail as dt
from dovetail.experimental.multihost_utils import live_devices
from dovetail.sharding import Mesh, NamedSharding
from dovetail.sharding import PartitionSpec as P

victim, how, size = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
STEPS = 60
dt.distributed.initialize(heartbeat_timeout_seconds=2)
step = dt.jit(lambda x: x + 0 * (x @ x).sum())
saved, done, failures = np.eye(size, dtype=np.float32), 0, 0
while done < STEPS:
    try:
        with live_devices(dt.devices()) as devices:
            whole = NamedSharding(Mesh(np.array(devices), "x"), P())
            rows = whole.update(spec=P("x"))
            print("devices", len(devices), flush=True)
            x = dt.make_array_from_callback(saved.shape, rows, lambda index: saved[index])
            while done < STEPS:
                x = step(x)
                done += 1
                if dt.process_index() == victim and done == STEPS // 2:
                    if how == "raise":
                        raise ValueError("enough")
                    os.kill(os.getpid(), signal.SIGKILL if how == "kill" else signal.SIGSTOP)
                if done % 10 == 0:
                    x.block_until_ready()
    except dt.errors.DistributedError as error:
        failures += 1
        print("error", error.processes, str(error), flush=True)
        done -= done % 10
        if failures > 1:
            break
print("end", done, flush=True)
if failures:
    os._exit(0) if how == "stop" else None
