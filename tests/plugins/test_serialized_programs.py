"""Programs of backends in Python as bytes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail._core.runtime.devices import clients
from dovetail.experimental.serialize_executable import deserialize_and_load, serialize
from dovetail.extend import BackendInfo, evaluate, hookimpl, manager

_numbers = itertools.count()
_written: dict[bytes, Executable] = {}


class Buffer:
    def __init__(self, value):
        self.value = np.asarray(value)
        self.nbytes = self.value.nbytes

    def to_numpy(self):
        return self.value

    def is_ready(self):
        return True

    def block_until_ready(self):
        pass

    def delete(self):
        self.value = None


class Executable:
    def __init__(self, jaxpr):
        self.jaxpr = jaxpr

    def execute(self, arguments):
        values = [buffer.value for buffer in arguments]
        return [Buffer(r) for r in evaluate(self.jaxpr, values, platform="writer")]

    def serialize(self):
        """Stands for a compiler's output."""
        key = str(next(_numbers)).encode()
        _written[key] = self
        return key


class Device:
    id = process_index = 0
    platform = device_kind = "writer"

    def __init__(self, client):
        self.client = client

    def memory_stats(self):
        return None


class Client:
    platform_version = "1"

    def __init__(self):
        self._devices = [Device(self)]

    def devices(self):
        return self._devices

    local_devices = devices

    def process_index(self):
        return 0

    def put(self, value, device):
        return Buffer(np.array(value))

    def copy(self, buffer, device):
        return Buffer(buffer.value.copy())

    def compile(self, request):
        return Executable(request.jaxpr)


class Loader(Client):
    def deserialize_executable(self, data, devices, options):
        return _written[data]


@pytest.fixture
def device(request):
    class Plugin:
        @hookimpl
        def dovetail_backend_info(self):
            return BackendInfo("writer", api=(1, 1), priority=-1, programs="jaxpr")

        @hookimpl
        def dovetail_make_client(self, platform, options):
            return request.param()

    manager().register(Plugin(), "writer of the test")
    yield dt.devices("writer")[0]
    manager().unregister("writer of the test")
    clients._clients.pop("writer", None)
    dt.clear_caches()


def program(device, function, **options):
    x = dt.device_put(np.arange(3, dtype=np.float32), device)
    return dt.jit(function, **options).lower(x, x).compile()


@pytest.mark.parametrize("device", [Loader], indirect=True)
def test_round_trip(device):
    table = np.arange(5000, dtype=np.float32)
    loaded = deserialize_and_load(
        *serialize(program(device, lambda x, y: (x + table[:3], y * 2), donate_argnums=1))
    )
    x, y = (dt.device_put(np.ones(3, np.float32), device) for _ in range(2))
    left, right = loaded(x, y)
    np.testing.assert_array_equal(left, [1, 2, 3])
    np.testing.assert_array_equal(right, [2, 2, 2])
    assert left.device is device
    assert (x.is_deleted(), y.is_deleted()) == (False, True)


@pytest.mark.parametrize("device", [Client], indirect=True)
def test_a_client_that_loads_nothing(device):
    parts = serialize(program(device, lambda x, y: jnp.sin(x)))
    with pytest.raises(ValueError, match="'writer' has no deserialize_executable"):
        deserialize_and_load(*parts)


@pytest.mark.parametrize("device", [Loader], indirect=True)
def test_programs_that_call_python(device):
    """Within a branch, too; the functions are in the equations."""
    compiled = program(
        device,
        lambda x, y: dt.lax.cond(
            x[0] > 0, lambda: dt.pure_callback(np.sin, x, x), lambda: jnp.sin(x)
        ),
    )
    with pytest.raises(ValueError, match="calls Python functions"):
        serialize(compiled)
