"""Two processes whose devices are one list, for backends that declare ``processes``."""

from __future__ import annotations

import os
import socket
import subprocess
import sys

import pytest

from dovetail.testing.backend import BackendUnderTest

Backend = BackendUnderTest
pytestmark = pytest.mark.dovetail_needs("processes")

#: Seconds that the processes may take.
PATIENCE = 120
PROGRAM = """
import sys
import numpy as np
import dovetail as dt
from dovetail.sharding import Mesh, NamedSharding, PartitionSpec as P

dt.distributed.initialize(initialization_timeout=60)
number, devices = dt.process_index(), dt.devices()
assert dt.process_count() == 2, dt.process_count()
assert dt.default_backend() == sys.argv[1], dt.default_backend()
assert {device.process_index for device in devices} == {0, 1}, devices
assert dt.local_devices() == [d for d in devices if d.process_index == number], dt.local_devices()
assert [d.id for d in devices] == sorted({d.id for d in devices}), devices
rows = NamedSharding(Mesh(np.array(devices), "d"), P("d"))
value = np.arange(4.0 * len(devices), dtype=np.float32)
x = dt.make_array_from_callback(value.shape, rows, lambda index: value[index])
assert not x.is_fully_addressable
for shard in x.addressable_shards:
    assert np.asarray(shard.data).tolist() == value[shard.index].tolist()
assert float(dt.jit(lambda x: x.sum())(x)) == value.sum()
assert dt.jit(lambda x: x + 1)(dt.device_put(2.0, dt.local_devices()[0])).tolist() == 3
print("all is well")
"""


def test_two_processes(dovetail_backend: Backend) -> None:
    """Each has its own devices and knows those of the other, and a program runs over all."""
    platform = dovetail_backend.platform
    if platform != "cpu" and len(dovetail_backend.devices) < 2:
        pytest.skip(f"the backend {platform!r} has one device here; two processes take two")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    group = {
        "DOVETAIL_COORDINATOR_ADDRESS": address,
        "DOVETAIL_NUM_CPU_DEVICES": "1",
        "DOVETAIL_NUM_PROCESSES": "2",
        "DOVETAIL_PLATFORMS": platform,
    }
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, platform],
            env={
                **os.environ,
                **group,
                "DOVETAIL_PROCESS_ID": str(number),
                "DOVETAIL_LOCAL_DEVICE_IDS": str(number),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for number in range(2)
    ]
    try:
        texts = [process.communicate(timeout=PATIENCE)[0] for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
    for process, text in zip(processes, texts, strict=True):
        assert process.returncode == 0, text
        assert "all is well" in text, text
