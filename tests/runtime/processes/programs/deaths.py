"""Computes while one process dies; the others go on without it."""

import os
import signal
import sys
import time

import numpy as np

import dovetail as dt
from dovetail.experimental.multihost_utils import live_devices
from dovetail.sharding import Mesh, NamedSharding
from dovetail.sharding import PartitionSpec as P

victim, how, size, ahead = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
STEPS = 6 * ahead
dt.distributed.initialize(heartbeat_timeout_seconds=3 if how == "stop" else 60)
step = dt.jit(lambda x: x + 0 * (x @ x).sum())
saved, done, failures = np.eye(size, dtype=np.float32), 0, 0
while done < STEPS:
    try:
        with live_devices(dt.devices()) as devices:
            whole = NamedSharding(Mesh(np.array(devices), "x"), P())
            rows = whole.update(spec=P("x"))
            print("devices", len(devices), flush=True)
            # Some may have failed before a step, and others after it.
            own = np.full(len(dt.local_devices()), done)
            done = int(dt.make_array_from_process_local_data(rows, own).min())
            x = dt.make_array_from_callback(saved.shape, rows, lambda index: saved[index])
            while done < STEPS:
                if failures and how == "raise":
                    time.sleep(0.05)  # longer in all than until connections to the dead are ended
                x = step(x)
                done += 1
                if dt.process_index() == victim and done == 2 * ahead + ahead // 3:
                    if how == "raise":
                        raise ValueError("enough")
                    os.kill(os.getpid(), signal.SIGKILL if how == "kill" else signal.SIGSTOP)
                if done % ahead == 0:
                    x.block_until_ready()
    except dt.errors.DistributedError as error:
        failures += 1
        print("error", error.processes, str(error), flush=True)
        done -= done % ahead
        if failures > 1:
            break
print("end", done, "of", STEPS, flush=True)
