"""Extremes of arrays with NaN are NaN, whatever does the reduction: a library that XLA calls from
4,096 elements on leaves NaN out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax, ops

pytestmark = pytest.mark.tables

SHAPES = ((64, 63), (64, 64), (576, 9), (9, 576), (5000, 3), (1, 10000), (8, 20, 50))
DTYPES = ("float32", "float64", "float16", "bfloat16")
# Each maps an array to the extremes along an axis.
FUNCTIONS: dict[str, Callable[[Any, int], Any]] = {
    "max": lambda x, axis: jnp.max(x, axis=axis),
    "min": lambda x, axis: jnp.min(x, axis=axis),
    "max of what is computed": lambda x, axis: jnp.max(jnp.exp(-x) * 2, axis=axis),
    "norm": lambda x, axis: jnp.linalg.norm(x.astype(jnp.float32), np.inf, axis=axis),
    "reduce": lambda x, axis: lax.reduce(
        x, jnp.asarray(0, x.dtype), lambda a, b: lax.max(lax.max(a, b), b), (axis,)
    ),
    "windows": lambda x, axis: lax.reduce_window(
        x, -np.inf, lax.max, _all_of(x, axis), _all_of(x, axis), "VALID"
    ),
}


def _all_of(x: Any, axis: int) -> tuple[int, ...]:
    return tuple(n if i == axis else 1 for i, n in enumerate(x.shape))


def data(shape: tuple[int, ...], dtype: str, axis: int) -> Any:
    """Numbers with one NaN along the axis at each second place."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(np.float32)
    lines = np.moveaxis(x, axis, -1)
    wanted = np.arange(lines[..., 0].size).reshape(lines.shape[:-1]) % 2 == 0
    lines[..., lines.shape[-1] // 2][wanted] = np.nan
    return jnp.asarray(x, dtype), wanted


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_nan_stays(name: str, dtype: str, shape: tuple[int, ...]) -> None:
    with dt.enable_x64(True):
        for axis in range(len(shape)):
            x, wanted = data(shape, dtype, axis)
            compiled = dt.jit(FUNCTIONS[name], static_argnums=1)(x, axis)
            result = np.asarray(compiled, np.float64).reshape(wanted.shape)
            np.testing.assert_array_equal(np.isnan(result), wanted)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_positions_are_those_of_nan(dtype: str, shape: tuple[int, ...]) -> None:
    with dt.enable_x64(True):
        for axis in range(len(shape)):
            x, _ = data(shape, dtype, axis)
            for function in ("argmax", "argmin"):
                result = getattr(jnp, function)(x, axis=axis)
                host = np.asarray(x, np.float64)
                np.testing.assert_array_equal(result, getattr(np, function)(host, axis=axis))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("steps", [13, 135])
def test_nan_in_any_step_of_columns(dtype: str, steps: int) -> None:
    """Of every second column, each in another step."""
    x = np.random.default_rng(0).standard_normal((steps, 603)).astype(dtype)
    columns = np.arange(0, 603, 2)
    x[columns // 2 % steps, columns] = np.nan
    with dt.enable_x64(True):
        for function in ("max", "min"):
            found = dt.jit(lambda x, name=function: getattr(jnp, name)(x, axis=0))(x)
            np.testing.assert_array_equal(found, getattr(np, function)(x, axis=0))


def test_other_extremes() -> None:
    x = np.random.default_rng(1).standard_normal(20000).astype(np.float32)
    x[17] = np.nan
    segments = np.arange(x.size) // 100
    for function in (jnp.max, jnp.ptp, dt.nn.logsumexp):
        assert np.isnan(function(x))
    assert np.isnan(ops.segment_max(x, segments, 200)).tolist() == [True] + [False] * 199
    assert np.isnan(lax.cummax(x)).sum() == x.size - 17
    pooled = lax.reduce_window(x.reshape(100, 200), -np.inf, lax.max, (50, 50), (50, 50), "VALID")
    assert np.isnan(pooled).tolist() == [[True, False, False, False], [False] * 4]
    np.testing.assert_array_equal(jnp.nanmax(x), np.nanmax(x))


@pytest.mark.parametrize("function", ["max", "min"])
@pytest.mark.parametrize("size", [4000, 5000])
def test_infinities_and_derivatives(function: str, size: int) -> None:
    x = np.random.default_rng(2).standard_normal(size).astype(np.float32)
    x[7], x[8] = np.inf, -np.inf
    extreme = getattr(jnp, function)
    assert float(extreme(x)) == getattr(np, function)(x)
    gradient = np.asarray(dt.grad(extreme)(x))
    assert gradient[7 if function == "max" else 8] == 1
    assert gradient.sum() == 1
    assert np.all(np.isneginf(extreme(np.full((2, size), -np.inf, np.float32), axis=1)))
