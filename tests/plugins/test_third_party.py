"""Real PJRT plug-ins that were not written for dovetail, at work beside the CPU backend."""

from __future__ import annotations

import json
import os
import pickle

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.runtime.devices import clients
from dovetail.errors import BackendUnavailableError, DeletedArrayError
from dovetail.experimental import serialize_executable

DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
    *("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "int4", "uint4"),
]


def _values(name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    return np.arange(6).reshape(2, 3).astype(dtype)


@pytest.fixture
def device(xla_cpu):
    """The second device of the plug-in in the wheel xla-cpu-pjrt."""
    return dt.devices("xla_cpu_pjrt")[1]


def test_it_is_a_platform_of_its_own(device):
    assert clients.platform_of(device) == "xla_cpu_pjrt"
    assert device.platform == "cpu", "by the library's name, which nobody may go by"
    assert dt.default_backend() == "cpu"
    assert device not in dt.devices("cpu")
    there, here = dt.device_put(1.0, device), dt.device_put(1.0, dt.devices("cpu")[0])
    assert (there.platform(), here.platform()) == ("xla_cpu_pjrt", "cpu")
    assert there.device is device
    with pytest.raises(ValueError, match="device"):
        there + here
    assert float(there + dt.device_put(here, device)) == 2.0


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_goes_there_and_back(device, name):
    with dt.enable_x64(True):
        values = _values(name)
        array = dt.device_put(values, device)
        assert array.dtype == values.dtype
        np.testing.assert_array_equal(np.asarray(array), values)
        np.testing.assert_array_equal(np.asarray(dt.jit(lambda x: x.T)(array)), values.T)
        back = dt.device_put(array, dt.devices("cpu")[0])
        np.testing.assert_array_equal(np.asarray(back), values)


def test_transformations(device):
    def energy(w, xs):
        def step(state, x):
            return jnp.tanh(w @ state + x), state.sum()

        last, sums = lax.scan(step, jnp.zeros(3), xs)
        return (last**2).sum() + sums.sum()

    w, xs = np.eye(3, dtype=np.float32) / 2, np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)
    program = dt.jit(dt.vmap(dt.grad(energy), in_axes=(None, 0)))
    batch = np.stack([xs, 2 * xs])
    there = program(dt.device_put(w, device), dt.device_put(batch, device))
    assert there.device is device
    np.testing.assert_allclose(there, program(w, batch), rtol=1e-5)


def test_devices_that_look_alike_are_told_apart(device):
    """The library calls its devices as that of `cpu` does."""
    x = dt.device_put(np.ones(3, np.float32), device)
    compiled = dt.jit(jnp.sin).lower(np.ones(3, np.float32)).compile()
    for call in (lambda: x + dt.device_put(np.ones(3), dt.devices("cpu")[0]), lambda: compiled(x)):
        with pytest.raises(ValueError, match=r"CpuDevice.* of the platform 'xla_cpu_pjrt'"):
            call()


def test_donation(device):
    program = dt.jit(lambda x: x + 1, donate_argnums=0)
    x = dt.device_put(np.ones(1000, np.float32), device)
    place = x.unsafe_buffer_pointer()
    y = program(x)
    assert y.unsafe_buffer_pointer() == place
    with pytest.raises(DeletedArrayError):
        np.asarray(x)


def test_linear_algebra_without_lapack(device):
    rng = np.random.default_rng(0)
    a = rng.normal(size=(4, 4)) + 1j * rng.normal(size=(4, 4))
    positive = (a @ a.conj().T).astype(np.complex64)
    # Imaginary parts of the diagonal are not read.
    strange = dt.device_put(positive + 1j * np.eye(4, dtype=np.complex64), device)
    root = lax.linalg.cholesky(strange, symmetrize_input=False)
    np.testing.assert_allclose(root, np.linalg.cholesky(positive), rtol=1e-4, atol=1e-4)
    values = jnp.linalg.eigvalsh(dt.device_put(positive, device))
    np.testing.assert_allclose(values, np.linalg.eigvalsh(positive), rtol=1e-4, atol=1e-4)
    with pytest.raises(NotImplementedError, match="LAPACK"):
        jnp.linalg.eig(dt.device_put(positive, device))


def test_dlpack_gives_a_copy_on_the_host(device):
    x = dt.device_put(np.arange(3, dtype=np.float32), device)
    assert x.__dlpack_device__() == (1, 0)
    copied = np.from_dlpack(x)
    np.testing.assert_array_equal(copied, [0, 1, 2])
    with pytest.raises(BufferError, match="does not reach the host without a copy"):
        x.__dlpack__(copy=False)


def test_callbacks_outside_of_programs_are_given_arrays_of_the_host(device):
    seen = []
    dt.pure_callback(
        lambda x: seen.append(x.platform()) or np.asarray(x),
        dt.ShapeDtypeStruct((3,), np.float32),
        dt.device_put(np.ones(3, np.float32), device),
    )
    assert seen == ["cpu"]


def test_serialized_programs_know_their_library(device):
    compiled = dt.jit(lambda x: x * 2).lower(dt.device_put(np.float32(3), device)).compile()
    data, in_tree, out_tree = serialize_executable.serialize(compiled)
    loaded = serialize_executable.deserialize_and_load(data, in_tree, out_tree)
    result = loaded(dt.device_put(np.float32(4), dt.devices("xla_cpu_pjrt")[0]))
    assert (float(result), result.platform()) == (8.0, "xla_cpu_pjrt")
    assert b'"library": "xla_cpu_pjrt.so ' in data
    with pytest.raises(ValueError, match="the serialized program is for platform 'xla_cpu_pjrt'"):
        serialize_executable.deserialize_and_load(data, in_tree, out_tree, backend="cpu")


def test_pickled_arrays_forget_their_device(device):
    array = pickle.loads(pickle.dumps(dt.device_put(np.ones(3, np.float32), device)))
    assert array.platform() == "cpu"


def test_options_that_are_wrong(manager, xla_cpu):
    with pytest.raises(BackendUnavailableError) as caught:
        manager.make_client("xla_cpu_pjrt", {"cpu_device_count": "two"})
    assert "failed at client: PjrtError: the PJRT plug-in 'xla_cpu_pjrt'" in str(caught.value)
    assert "an option has another type than it expects" in str(caught.value)
    client = manager.make_client("xla_cpu_pjrt", {"cpu_device_count": 3})
    assert len(client.devices()) == 3


# --------------------------------------------------------- a platform that jaxlib has no name for

AT_WORK = """
import gc, json, resource, sys
import ml_dtypes
import numpy as np
import dovetail as dt
import dovetail.numpy as jnp
from dovetail._core.runtime.devices import clients

def grown(device):
    "Megabytes that reading many arrays takes for ever."
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(60):
        np.asarray(dt.device_put(np.ones((1000, 1000), np.float32), device))
    gc.collect()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024

dt.config.update("enable_x64", True)
read = {}
for name in sys.argv[1:]:
    values = np.arange(3).astype(getattr(ml_dtypes, name, name))
    read[name] = bool((np.asarray(dt.device_put(values, dt.devices("board")[0])) == values).all())
x = jnp.arange(3.0)
y = dt.jit(dt.grad(lambda x: (x**3).sum()))(x)
print(json.dumps({
    "default": dt.default_backend(),
    "devices": len(dt.devices()),
    "options": sorted(clients.backend("acme").platform_version.split()[-4:]),
    "platform": y.platform(),
    "gradient": y.tolist(),
    "text": str(y),
    "beside": dt.device_put(y, dt.devices("cpu")[0]).platform(),
    "read": read,
    "grown": grown(dt.devices("acme")[0]),
}))
"""


@pytest.mark.parametrize("memory", ["NEAR_MEMORY", "FAR_MEMORY"])
def test_a_platform_of_its_own_name(answer_of, proxy, tmp_path, memory):
    """Its memory is the host's, or it says that it is not; arrays are read either way."""
    library = proxy(memory.lower(), 'PLATFORM_NAME="acme"', memory, works=True)
    description = {
        "library_path": str(library),
        "create_options": {"cpu_device_count": 3, "note": "hi", "ratio": 0.5, "flag": True},
        "aliases": ["board"],
    }
    file = tmp_path / "acme.json"
    file.write_text(json.dumps(description))
    variable = f"acme{os.pathsep}{file}"
    found = answer_of(AT_WORK, *DTYPES, PJRT_NAMES_AND_LIBRARY_PATHS=variable)
    assert found.pop("read") == dict.fromkeys(DTYPES, True)
    assert found.pop("grown") < 100, "60 arrays of 4 MB"
    assert found == {
        "default": "acme",
        "devices": 3,
        "options": ["cpu_device_count=3", "flag=true", 'note="hi"', "ratio=0.5"],
        "platform": "acme",
        "gradient": [0.0, 3.0, 12.0],
        "text": "[ 0.  3. 12.]",
        "beside": "cpu",
    }


LEFT_OUT = """
import json
import dovetail as dt
found = {"default": dt.default_backend(), "sum": float(dt.jit(lambda x: x + 1)(1.0))}
try:
    dt.devices("acme")
except RuntimeError as error:
    found["error"] = str(error)
found["opened"] = "proxy" in open("/proc/self/maps").read()
print(json.dumps(found))
"""


def test_what_is_left_out_is_not_opened(answer_of, proxy):
    variable = f"acme{os.pathsep}{proxy('proxy_left_out', works=True)}"
    found = answer_of(LEFT_OUT, PJRT_NAMES_AND_LIBRARY_PATHS=variable, DOVETAIL_PLATFORMS="cpu")
    assert (found["default"], found["sum"], found["opened"]) == ("cpu", 2.0, False)
    assert "DOVETAIL_PLATFORMS=cpu leaves it out" in found["error"]
