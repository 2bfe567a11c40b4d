"""Small calls of programs that were compiled ahead of time, which need not run them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail._core.runtime.arrays.held_values import held_value
from dovetail._core.runtime.devices.host_functions import host_functions

pytestmark = [
    pytest.mark.usefixtures("directly"),
    pytest.mark.skipif(not host_functions(), reason="every call here needs a program"),
]

X = np.arange(35, dtype=np.float32).reshape(7, 5)
ROW = np.float32([1, -2, 0, 4, 0.5])


def test_small_calls_of_what_was_compiled_ahead_of_time() -> None:
    def function(tree: Any, *, y: Any) -> Any:
        return {"sum": tree[0] + y, "row": (tree[1] * 2,)}

    tree, y = [jnp.asarray(X), jnp.asarray(ROW)], jnp.asarray(ROW + 1)
    compiled = dt.jit(function).lower(tree, y=y).compile()
    for made in (jnp.asarray, np.asarray, jnp.asarray):
        result = compiled([made(X), made(ROW)], y=made(ROW + 1))
        assert held_value(result["sum"]) is not None
        np.testing.assert_array_equal(result["sum"], X + (ROW + 1))
        np.testing.assert_array_equal(result["row"][0], ROW * 2)
    with pytest.raises(TypeError, match=r"takes f32\[5\] for its argument y, got f32\[4\]"):
        compiled(tree, y=y[:4])
    with pytest.raises(TypeError, match=r"takes f32\[5\] for its argument y, got i32\[5\]"):
        compiled(tree, y=jnp.arange(5))
    with pytest.raises(TypeError, match="arguments of another structure"):
        compiled(tree, y)


@pytest.mark.parametrize("options", [{"xla_cpu_enable_fast_min_max": False}, None])
def test_programs_that_are_asked_for_run(options: dict[str, Any] | None) -> None:
    device = dt.devices()[-1]
    sharding = dt.sharding.SingleDeviceSharding(device) if options is None else None
    jitted = dt.jit(lambda v: v + 1, out_shardings=sharding)
    compiled = jitted.lower(ROW).compile(compiler_options=options)
    for _ in range(3):
        result = compiled(ROW)
        assert held_value(result) is None
        np.testing.assert_array_equal(result, ROW + 1)


@pytest.mark.parametrize("wanted", ["none", "eager"])
def test_programs_run_where_the_option_says_so(wanted: str) -> None:
    with dt.direct_calls(wanted):
        compiled = dt.jit(lambda v: v + 1).lower(ROW).compile()
        assert held_value(compiled(jnp.asarray(ROW))) is None


@pytest.mark.parametrize("writes", [False, True])
def test_references_are_arguments(writes: bool) -> None:
    def function(ref: Any, x: Any) -> Any:
        before = ref[...]
        if writes:
            ref[...] = before + x
        return before * x

    ref, x = dt.new_ref(jnp.asarray(ROW)), jnp.asarray(ROW + 1)
    compiled = dt.jit(function).lower(ref, x).compile()
    expected = ROW
    for _ in range(3):
        np.testing.assert_array_equal(compiled(ref, x), expected * (ROW + 1))
        expected = expected + (ROW + 1) if writes else expected
        np.testing.assert_array_equal(ref[...], expected)
