"""Clients, devices, shardings."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest

import dovetail as dt
from dovetail._core.plugins.manager import PluginManager
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.sharding import as_sharding
from dovetail.errors import BackendUnavailableError
from dovetail.extend import BackendInfo, hookimpl
from dovetail.extend.arrays import default_sharding
from dovetail.sharding import Sharding, SingleDeviceSharding


def test_devices():
    devices = dt.devices()
    assert [d.id for d in devices] == sorted(d.id for d in devices)
    assert dt.devices("cpu") == devices
    assert dt.local_devices() == devices
    assert dt.local_devices(process_index=0, backend="cpu") == devices
    with pytest.warns(UserWarning, match="old name of process_index"):
        assert dt.local_devices(host_id=0) == devices
    assert dt.device_count() == dt.local_device_count() == len(devices)
    assert dt.default_backend() == "cpu"
    assert (dt.process_index(), dt.process_count()) == (0, 1)
    assert clients.process_indices() == [0]
    assert clients.platform_of(devices[0]) == "cpu"
    assert clients.backend(devices[0].client) is devices[0].client


def test_the_list_is_the_callers():
    dt.devices().clear()
    assert dt.devices()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: dt.devices("abacus"), BackendUnavailableError, "unknown platform 'abacus'"),
        (lambda: dt.devices("cpux"), BackendUnavailableError, "Did you mean 'cpu'"),
        (lambda: dt.devices(3), TypeError, "platform's name"),
        (lambda: dt.local_devices(process_index=5), ValueError, "no process 5"),
        (lambda: dt.local_devices(0, host_id=0), ValueError, "not both"),
    ],
)
def test_what_is_not_there(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_default_device_option():
    device = dt.devices()[1]
    with dt.default_device(device):
        assert clients.default_device() is device
        assert default_sharding() is SingleDeviceSharding(device)
    with dt.default_device(SingleDeviceSharding(device)):
        assert clients.default_device() is device
    with dt.default_device("cpu"):
        assert clients.default_device() is dt.devices("cpu")[0]
    assert clients.default_device() is dt.devices()[0]
    with pytest.raises(BackendUnavailableError), dt.default_device("abacus"):
        dt.device_put(1)


def test_single_device_sharding():
    device = dt.devices()[0]
    sharding = SingleDeviceSharding(device)
    assert sharding is SingleDeviceSharding(device)
    assert sharding is SingleDeviceSharding(device, "device")
    assert sharding is not SingleDeviceSharding(dt.devices()[1])
    assert sharding != SingleDeviceSharding(dt.devices()[1])
    assert sharding == sharding
    assert isinstance(sharding, Sharding)
    assert sharding.device_set == {device}
    assert sharding.num_devices == 1
    assert sharding.addressable_devices == {device}
    assert sharding.is_fully_addressable
    assert sharding.is_fully_replicated
    assert sharding.shard_shape((2, 3)) == (2, 3)
    assert sharding.devices_indices_map((2,)) == {device: (slice(None),)}
    assert sharding.memory_kind == "device"
    pinned = SingleDeviceSharding(device, "pinned_host")
    assert pinned.memory_kind == "pinned_host"
    assert sharding.with_memory_kind("pinned_host") is pinned
    assert repr(sharding) == f"SingleDeviceSharding({device!r})"
    assert "memory_kind='pinned_host'" in repr(pinned)
    for one in (sharding, pinned):
        assert pickle.loads(pickle.dumps(one)) is one
    assert as_sharding(device) is sharding


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("cpu",), TypeError, "takes a device"),
        ((0,), TypeError, "takes a device"),
        ((None, "device"), TypeError, "takes a device"),
    ],
)
def test_shardings_that_are_none(arguments, error, message):
    with pytest.raises(error, match=message):
        SingleDeviceSharding(*arguments)


def test_unknown_memory_kind():
    with pytest.raises(ValueError, match="no memory of kind 'attic'; it has device"):
        SingleDeviceSharding(dt.devices()[0], "attic")


def test_sharding_is_interned_across_threads():
    device = dt.devices()[3]
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(SingleDeviceSharding(device, "unpinned_host")))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(one) for one in found}) == 1


class Broken:
    """A backend whose driver does not start."""

    calls = 0

    @hookimpl
    def dovetail_backend_info(self):
        return BackendInfo(platform="brittle", api=(1, 0), priority=-1)

    @hookimpl
    def dovetail_make_client(self, platform, options):
        Broken.calls += 1
        raise OSError("the driver said no")


def test_a_failure_to_start_is_kept(monkeypatch):
    plugins = PluginManager()
    plugins.register(Broken(), "brittle plug-in")
    monkeypatch.setattr(clients, "manager", lambda: plugins)
    try:
        for _ in range(2):
            with pytest.raises(BackendUnavailableError, match="the driver said no") as caught:
                dt.devices("brittle")
            assert isinstance(caught.value.__cause__, OSError)
        assert Broken.calls == 1
        assert dt.device_put(1).tolist() == 1
    finally:
        clients._failures.pop("brittle")


def test_client_is_made_once_under_concurrency():
    found = []
    barrier = threading.Barrier(6)

    def start():
        barrier.wait()
        found.append(clients.backend("cpu"))

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(client) for client in found}) == 1
    np.testing.assert_array_equal(np.asarray(dt.device_put(np.arange(3))), [0, 1, 2])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on this system")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # Python 3.12's own
def test_forking_with_a_client_is_warned_about():
    dt.device_put(1)
    with pytest.warns(RuntimeWarning, match="spawn"):
        child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    subprocess.run([sys.executable, "-c", ""], check=True)  # warns of nothing
