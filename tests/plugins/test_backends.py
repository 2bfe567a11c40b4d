"""The three backends of the project, on a machine without accelerators."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

import dovetail_cuda.capabilities
import dovetail_cuda.plugin
import dovetail_tpu.plugin
from dovetail._core.plugins.protocols import is_pjrt, missing_members
from dovetail.errors import BackendUnavailableError
from dovetail.extend import Device


@pytest.mark.parametrize("count", [1, 3])
def test_cpu_devices(manager, count):
    client = manager.make_client("cpu", {"num_devices": count, "asynchronous": False})
    assert [device.id for device in client.devices()] == list(range(count))
    assert is_pjrt(client)
    assert missing_members(client.devices()[0], Device) == []


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"num_device": 2}, "the cpu backend has no option num_device; it has asynchronous, num_d"),
        ({"num_devices": 0}, "num_devices must be a positive int or None, got 0"),
        ({"num_devices": True}, "num_devices must be a positive int or None, got True"),
        ({"num_devices": "2"}, "num_devices must be a positive int or None, got '2'"),
        ({"num_threads": 0}, "num_threads must be a positive int or None, got 0"),
        ({"num_threads": 1.5}, "num_threads must be a positive int or None, got 1.5"),
        ({"asynchronous": 1}, "asynchronous must be True, False or None, got 1"),
        ({"retained_memory": -1}, "retained_memory must be a number of bytes, got -1"),
        ({"retained_memory": 0.5}, "retained_memory must be a number of bytes, got 0.5"),
    ],
)
def test_cpu_options_are_checked(manager, options, expected):
    with pytest.raises(BackendUnavailableError) as caught:
        manager.make_client("cpu", options)
    assert expected in str(caught.value)


PAGE_FAULTS = """
import resource
import numpy as np
import dovetail.numpy as jnp

x = jnp.asarray(np.ones(10_000_000, np.float32))

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        (x + x).block_until_ready()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

print(min(faults() for _ in range(6)))
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has mallopt")
def test_freed_memory_is_kept():
    counts = [
        int(
            subprocess.run(
                [sys.executable, "-c", PAGE_FAULTS],
                env=os.environ | {"DOVETAIL_CPU_RETAINED_MEMORY": str(limit)},
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        for limit in (0, 1 << 30)
    ]
    assert counts[1] < counts[0] / 2


@pytest.mark.parametrize(
    ("name", "expected"),
    {
        "cuda": "there is no NVIDIA GPU with a loaded driver (none of ",
        "tpu": "there is no TPU on this machine (no TPU chip under ",
    }.items(),
)
def test_without_hardware_they_say_so(monkeypatch, manager, name, expected):
    monkeypatch.setattr(dovetail_cuda.capabilities, "DEVICE_FILES", ("/nowhere/nvidia0",))
    monkeypatch.setattr(dovetail_tpu.plugin, "count_chips", lambda: 0)
    with pytest.raises(BackendUnavailableError) as caught:
        manager.make_client(name)
    assert f"platform {name!r} cannot run on this machine: {expected}" in str(caught.value)
    assert manager.failures == ()


@pytest.mark.parametrize("value", ["", "-1"])
def test_a_hidden_gpu_is_not_broken(monkeypatch, tmp_path, value):
    monkeypatch.setattr(dovetail_cuda.capabilities, "DEVICE_FILES", (str(tmp_path),))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    assert "hides every GPU" in dovetail_cuda.plugin.dovetail_probe("cuda")
