"""Options of JAX's that change what programs are, or what is refused."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import random
from dovetail._core.base import config
from dovetail._core.runtime.programs.compilation import compile_options
from dovetail.extend import hookimpl
from dovetail.extend import manager as plugins
from dovetail.sharding import AxisType

X = np.arange(20).reshape(4, 5)


def option(name: str, value: Any) -> Any:
    return dt.config.option(name)(value)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize(
    ("index", "wrong"),
    [
        (4, True),
        (-5, True),
        (3, False),
        (-4, False),
        ((0, 5), True),
        ((..., -6), True),
        ((None, slice(1, 9), 4), False),
        ((np.array([0, 9]), 4), False),
        ((np.array([0, 9]), 5), True),
        (slice(2, 10), False),
        (np.int64(7), True),
    ],
)
def test_check_static_indices(index: Any, wrong: bool, traced: bool) -> None:
    def read(x: Any) -> Any:
        return x[index]

    function = dt.jit(read) if traced else read
    expected = np.asarray(function(X if traced else jnp.asarray(X)))
    with option("check_static_indices", True):
        if wrong:
            with pytest.raises(IndexError, match=r"out of bounds for axis \d.*check_static"):
                function(jnp.asarray(X))
        else:
            np.testing.assert_array_equal(function(jnp.asarray(X)), expected)


def test_unknown_indices_are_not_checked() -> None:
    with option("check_static_indices", True):
        assert int(dt.jit(lambda i: jnp.arange(5)[i])(9)) == 4
        assert int(jnp.arange(5).at[9].get(mode="fill", fill_value=-1)) == -1
        np.testing.assert_array_equal(jnp.arange(3).at[9].set(1), [0, 1, 2])


@pytest.mark.parametrize("draw", ["gumbel", "categorical"])
def test_high_dynamic_range_gumbel(draw: str) -> None:
    def drawn(mode: str | None) -> Any:
        if draw == "gumbel":
            return random.gumbel(random.key(0), (50,), mode=mode)
        return random.categorical(random.key(0), jnp.zeros((50, 20)), mode=mode)

    low, high = drawn("low"), drawn("high")
    assert (low != high).any()
    np.testing.assert_array_equal(drawn(None), low)
    with option("high_dynamic_range_gumbel", True):
        np.testing.assert_array_equal(drawn(None), high)
        np.testing.assert_array_equal(drawn("low"), low)


@pytest.mark.parametrize(("most", "arguments"), [(4096, 1), (39, 2), (40, 1), (0, 2)])
def test_embedded_constants(most: int, arguments: int) -> None:
    table = np.arange(10, dtype=np.float32)  # 40 bytes
    with option("embedded_constants_max_bytes", most):
        lowered = dt.jit(lambda x: x + jnp.asarray(table)).lower(1.0)
        signature = next(line for line in lowered.as_text().splitlines() if "@main" in line)
        assert signature.count("%arg") == arguments
        np.testing.assert_array_equal(lowered.compile()(1.0), table + 1)


def test_meshes_as_context_managers() -> None:
    mesh = dt.make_mesh((1,), ("i",), (AxisType.Auto,), devices=dt.devices()[:1])
    with mesh:
        assert dt.get_abstract_mesh().axis_names == ("i",)
    with option("disallow_mesh_context_manager", True):
        with pytest.raises(RuntimeError, match=r"set_mesh\(mesh\)"), mesh:
            pass
        with dt.set_mesh(mesh):
            assert dt.get_abstract_mesh().axis_names == ("i",)
    assert dt.get_abstract_mesh().axis_names == ()


@pytest.mark.parametrize("apart", [False, True])
def test_names_in_the_keys_of_the_disk_cache(apart: bool, tmp_path: Path) -> None:
    with (
        option("compilation_cache_dir", str(tmp_path)),
        option("enable_compilation_cache", True),
        option("compilation_cache_include_metadata_in_key", apart),
    ):
        for function in (lambda x: x * 59 - 3, lambda x: x * 59 - 3):
            dt.jit(function)(2.0)
            dt.clear_caches()
    assert len(list(tmp_path.iterdir())) == 1 + apart


def test_rematerialization() -> None:
    """XLA is told to leave its pass out, in programs of their own."""
    compiled: list[bool] = []

    class Watch:
        @hookimpl
        def dovetail_compile_options(self, platform: str) -> None:
            compiled.append(config.compiler_enable_remat_pass.value)

    plugins().register(Watch(), "tests-remat")
    try:
        double = dt.jit(lambda x: x * 2)
        for value in (True, False, True):
            with option("compiler_enable_remat_pass", value):
                assert float(double(71.0)) == 142
                options, _ = compile_options("cpu", dt.devices()[:1])
                passes = dict(options.env_option_overrides).get("xla_disable_hlo_passes", "")
                assert ("rematerialization" in passes.split(",")) == (not value)
                compiled.pop()  # of these options
    finally:
        plugins().unregister("tests-remat")
    assert sorted(set(compiled)) == [False, True]
    assert compiled == sorted(compiled, reverse=True)


@pytest.mark.parametrize("frames", [0, 1, -1])
def test_reports_of_constants(frames: int) -> None:
    large, small = jnp.arange(1000.0), jnp.arange(3.0)

    def inner(x: Any) -> Any:
        return x * large[:3] + small

    with (
        option("captured_constants_warn_bytes", 100),
        option("captured_constants_report_frames", frames),
        pytest.warns(UserWarning, match="has captured 2 arrays of 4,012 bytes") as caught,
    ):
        dt.jit(lambda x: inner(x))(1.0)
    first, *others = str(caught[0].message).splitlines()
    assert "captured_constants_warn_bytes" in first
    if not frames:
        assert others == []
        return
    assert [line.split(",")[0].strip() for line in others] == ["f32[1000]", "f32[3]"]
    assert all("test_option_effects.py" in line for line in others)
    assert all(("called from" in line) == (frames < 0) for line in others)


@pytest.mark.parametrize("wanted", [False, True])
@pytest.mark.parametrize("terminal", [False, True])
def test_colours(wanted: bool, terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.stdout", SimpleNamespace(isatty=lambda: terminal))
    jaxpr = dt.make_jaxpr(jnp.sin)(1.0)
    with option("pprint_use_color", wanted):
        for printed in (str(jaxpr), str(jaxpr.jaxpr)):
            assert ("\x1b[34;1mlambda" in printed) == (wanted and terminal)
        assert "\x1b" not in jaxpr.pretty_print()


@pytest.mark.parametrize(
    "name", ["jax2tf_associative_scan_reductions", "remove_size_one_mesh_axis_from_type"]
)
def test_scopes_of_options_that_there_are_not(name: str) -> None:
    scope = getattr(dt, name)
    assert scope.value is False
    with scope(False):
        assert dt.config.read(name) is False
    assert scope(False)(lambda: 3)() == 3
    for call in (lambda: scope(True), scope):
        with pytest.raises(NotImplementedError, match=name):
            call()
