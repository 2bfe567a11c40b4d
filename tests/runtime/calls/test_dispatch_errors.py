"""Programs that call back into Python: their errors, their executables, their threads."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail._core.base import config
from dovetail._core.runtime.programs import compilation
from dovetail.dlpack import from_dlpack
from dovetail.errors import JaxRuntimeError
from dovetail.extend import Primitive

host_call = Primitive("test_host_call")
host_call.define("abstract", lambda x, *, function: x)


@host_call.define("lower")
def _lower(context, x, *, function):
    context.host_callbacks.append(lambda value: (np.asarray(function(value), value.dtype),))
    number = len(context.host_callbacks) - 1
    return context.custom_call(
        "xla_ffi_python_cpu_callback",
        [x],
        context.avals_out,
        {"index": np.uint64(number)},
        has_side_effect=True,
    )


def fail(value):
    time.sleep(0.05)
    raise ValueError("the callback is not in the mood")


def test_callbacks_run():
    f = dt.jit(lambda x: lax.add(host_call.bind(x, function=np.sin), 1.0))
    for _ in range(3):
        np.testing.assert_allclose(f(np.float32([0, 1])), np.sin([0, 1]) + 1, rtol=1e-6)


def test_programs_with_callbacks_are_not_shared(tmp_path):
    with config.compilation_cache_dir(str(tmp_path / "cache")):
        for function, value in ((np.cos, 1.0), (np.exp, 1.0), (np.sin, 0.0)):
            f = dt.jit(lambda x, function=function: host_call.bind(x, function=function))
            assert f(np.zeros(2, np.float32)).tolist() == [value] * 2
    # What is compiled is kept without the functions.
    assert len(list(tmp_path.rglob("*.program"))) == 1


READ = {
    "asarray": np.asarray,
    "tolist": lambda x: x.tolist(),
    "repr": repr,
    "block_until_ready": dt.block_until_ready,
    "its method": lambda x: x.block_until_ready(),
    "device_get": dt.device_get,
    "a tree": lambda x: dt.device_get([x, x]),
    "iteration": list,
    "a later computation": lambda x: np.asarray(lax.add(x, x)),
    "numpy.from_dlpack": np.from_dlpack,
}


@pytest.mark.parametrize("read", READ.values(), ids=READ)
def test_errors_surface_where_the_value_is_read(read):
    big = np.ones(100_000, np.float32)
    f = dt.jit(lambda x: host_call.bind(x, function=fail))
    for _ in range(2):
        # XLA runs some programs at once; then the call itself raises.
        with pytest.raises((JaxRuntimeError, ValueError, RuntimeError), match="not in the mood"):
            read(f(big))


def test_the_process_goes_on_after_an_error():
    broken = [True]

    def sometimes(value):
        if broken[0]:
            raise ValueError("not yet")
        return value

    f = dt.jit(lambda x: host_call.bind(x, function=sometimes))
    with pytest.raises((JaxRuntimeError, ValueError), match="not yet"):
        f(np.float32([1])).block_until_ready()
    broken[0] = False
    assert f(np.float32([1])).tolist() == [1]


def test_statistics_count_programs_with_callbacks():
    before = compilation.statistics().compiled
    with config.enable_compilation_cache(False):
        dt.jit(lambda x: host_call.bind(x, function=np.tan))(np.float32([1]))
    assert compilation.statistics().compiled == before + 1


def test_nothing_looks_for_jax():
    tries = []
    before = "jax" in sys.modules

    class Recorder:
        def find_spec(self, name, path=None, target=None):
            if name.split(".")[0] == "jax":
                tries.append(name)

    recorder = Recorder()
    sys.meta_path.insert(0, recorder)
    try:
        for x in (
            dt.device_put(np.ones(3, np.float32)),
            dt.device_put(1.0),
            lax.add(np.float32([1]), np.float32([2])),
            dt.device_put(np.ones(3), dt.devices()[1]),
        ):
            moved = dt.device_put(x, dt.devices()[2])
            for y in (x, moved, dt.jit(lambda v: lax.add(v, 1.0))(x)):
                repr(y)
                dt.device_get([y, y])
                y.copy_to_host_async()
                y.unsafe_buffer_pointer()
                y.on_device_size_in_bytes()
                np.from_dlpack(y)
                from_dlpack(np.asarray(y))
                hasattr(y, "__cuda_array_interface__")
                assert y.addressable_shards[0].data is y
                y.delete()
    finally:
        sys.meta_path.remove(recorder)
    assert tries == []
    assert ("jax" in sys.modules) == before
