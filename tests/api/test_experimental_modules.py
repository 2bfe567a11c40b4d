"""Modules of dovetail.experimental that are other names or small: compute_on, pjit, shard_map."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, profiler
from dovetail.experimental.compilation_cache import compilation_cache
from dovetail.experimental.compute_on import compute_on
from dovetail.experimental.pjit import pjit
from dovetail.experimental.profiler import get_profiled_instructions_proto
from dovetail.experimental.shard_map import shard_map
from dovetail.memory import Space
from dovetail.sharding import AxisType

PLACES = {
    "device_host": '_xla_compute_type = "host"',
    "device": '_xla_compute_type = "dense"',
    "tpu_sparsecore": '_xla_compute_type = "sparseoffload"',
    "gpu_stream:12": '_xla_stream_annotation = "12", inlineable = "false"',
}


def wave(x: Any, *, y: float = 1.0) -> Any:
    return {"sum": jnp.sin(x) + y, "x": (x,)}


@pytest.mark.parametrize("place", PLACES)
def test_compute_on(place: str) -> None:
    """XLA is told of the call and of the operations."""
    for f in (
        compute_on(wave, compute_type=place, out_memory_spaces=Space.Device),
        compute_on(compute_type=place, out_memory_spaces={"sum": Space.Any, "x": Space.Device})(
            wave
        ),
    ):
        text = dt.jit(f).lower(2.0).as_text()
        told = re.escape(PLACES[place])
        assert re.search(rf"call @\w+\(%arg0\) {{mhlo.frontend_attributes = {{{told}}}}}", text)
        assert re.search(rf"sine %arg0 {{mhlo.frontend_attributes = {{{told}}}}}", text)


def test_compute_on_the_host() -> None:
    f = compute_on(wave, compute_type="device_host", out_memory_spaces=Space.Device)
    for run in (f, dt.jit(f)):
        result = run(2.0, y=3.0)
        np.testing.assert_allclose(result["sum"], np.sin(2.0) + 3, rtol=1e-6)
        assert float(result["x"][0]) == 2
    np.testing.assert_allclose(dt.grad(lambda x: f(x)["sum"])(2.0), np.cos(2.0), rtol=1e-6)
    np.testing.assert_allclose(
        dt.vmap(f)(jnp.arange(3.0))["sum"], np.sin(np.arange(3)) + 1, rtol=1e-6
    )
    options = {"a": "b"}
    told = compute_on(
        wave, compute_type="device_host", out_memory_spaces=Space.Device, compiler_options=options
    )
    assert r"backend_config = " in dt.jit(told).lower(2.0).as_text()


def test_results_in_the_memory_of_the_host() -> None:
    f = compute_on(lambda x: 2 * x, compute_type="device_host", out_memory_spaces=Space.Host)
    result = dt.jit(f)(jnp.ones(3))
    assert result.sharding.memory_kind in ("pinned_host", "unpinned_host")
    np.testing.assert_array_equal(result, [2, 2, 2])


def test_older_names_over_meshes() -> None:
    assert float(pjit(lambda x, n: x * n, static_argnums=1)(3.0, 2)) == 6
    mesh = dt.make_mesh((2, 2), ("i", "j"), (AxisType.Auto,) * 2, devices=dt.devices("cpu")[:4])
    x = np.arange(8, dtype=np.float32).reshape(4, 2)

    def total(x: Any) -> Any:
        return lax.psum(x, "i")

    spec = dt.P("i")
    summed = shard_map(total, mesh=mesh, in_specs=(spec,), out_specs=dt.P())(x)
    np.testing.assert_array_equal(summed, x[:2] + x[2:])
    same = shard_map(total, mesh, (spec,), spec, check_rep=False)(x)
    np.testing.assert_array_equal(same, np.concatenate([summed, summed]))
    partly = shard_map(total, mesh, (spec,), dt.P(), auto=frozenset({"j"}))
    np.testing.assert_array_equal(dt.jit(partly)(x), summed)


def test_compilation_cache(tmp_path: Path) -> None:
    before = dt.config.compilation_cache_dir
    unusable = tmp_path / "file"
    unusable.write_text("")
    try:
        with dt.config.option("enable_compilation_cache")(True):
            compilation_cache.set_cache_dir(tmp_path / "programs")
            dt.jit(lambda x: x * 61 - 1)(2.0)
            assert len(list((tmp_path / "programs").iterdir())) == 1
            compilation_cache.set_cache_dir(unusable)
            warned = []
            for reset in (False, False, True):
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    if reset:
                        compilation_cache.reset_cache()
                    dt.clear_caches()
                    dt.jit(lambda x: x * 67 - 1)(2.0)
                warned.append(any("is not used" in str(w.message) for w in caught))
            assert warned == [True, False, True]
    finally:
        dt.config.update("compilation_cache_dir", before)


def test_profiled_instructions(tmp_path: Path) -> None:
    with profiler.trace(tmp_path):
        jnp.sin(jnp.ones(3)).block_until_ready()
    (folder,) = (tmp_path / "plugins" / "profile").iterdir()
    assert isinstance(get_profiled_instructions_proto(str(folder)), bytes)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (
            lambda: compute_on(wave, compute_type="moon", out_memory_spaces=Space.Device),
            ValueError,
            "compute_type is 'device_host'.*'moon'",
        ),
        (
            lambda: compute_on(wave, compute_type="gpu_stream:x", out_memory_spaces=Space.Device),
            ValueError,
            "with a number",
        ),
        (
            lambda: compute_on(wave, compute_type="device", out_memory_spaces="device"),
            TypeError,
            "holds dovetail.memory.Space",
        ),
        (
            lambda: compute_on(3, compute_type="device", out_memory_spaces=Space.Device),
            TypeError,
            "compute_on",
        ),
    ],
)
def test_mistakes(call: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        call()
