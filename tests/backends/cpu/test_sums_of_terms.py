"""Reductions of long rows that need no program, and of bytes; sums whose terms are not written."""

from __future__ import annotations

from collections.abc import Callable
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

SPECIAL = np.float32([0, -0.0, 1, np.nan, 1e-40, -1e-40, 1e38, 3.5, -2.5])


def by_program(function: Callable[..., Any], x: Any) -> dt.Array:
    with dt.direct_calls("none"):
        result: dt.Array = dt.jit(function).lower(x).compile()(x)
    return result


def check(function: Callable[..., Any], x: np.ndarray[Any, Any]) -> None:
    """A function gives what its program gives, and no program is run."""
    expected, compiled = by_program(function, x), dt.jit(function)
    for array in (x, jnp.asarray(x)):
        result = compiled(array)
        assert held_value(result) is not None, "a program was run"
        assert (result.shape, result.dtype) == (expected.shape, expected.dtype)
        np.testing.assert_allclose(result, expected, rtol=2e-6)


SUMS_OF_TERMS = {
    **{name: getattr(jnp, name) for name in ("nansum", "nanmean", "count_nonzero")},
    "squares": lambda x, axis: jnp.sum(jnp.square(jnp.where(jnp.isfinite(x), x, 3)), axis),
    "numbers counted": lambda x, axis: jnp.sum((x == x).astype(x.dtype), axis),
    "two sums": lambda x, axis: jnp.nansum(x, axis) + jnp.sum(jnp.where(x == x, 0, x), axis),
    "another array": lambda x, axis: jnp.sum(jnp.where(x == x, x + 1, 0), axis),
    "another number": lambda x, axis: jnp.sum((x != 2).astype(int), axis),
}


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", SUMS_OF_TERMS)
def test_sums_of_terms(name: str, x64: bool) -> None:
    with dt.enable_x64(x64):
        for shape in ((), (33,), (5003,), (3, 4100), (7, 5), (0,)):
            values = np.resize(SPECIAL, shape)
            integers = np.resize([3, 0, -1, 0, 2], shape)
            arrays = [integers.astype(np.int32), values, values.astype(np.float64)]
            for x in arrays if x64 else arrays[:2]:
                for axis in (None, *range(x.ndim)):
                    function = dt.jit(lambda x, axis=axis: SUMS_OF_TERMS[name](x, axis=axis))
                    expected = by_program(function, x)
                    found = function(x)
                    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
                    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_terms_are_not_written() -> None:
    """Nor what else a program would compute of a long row."""
    x = np.random.default_rng(0).standard_normal(100_000, np.float32)
    x[::7] = np.nan
    for function in (jnp.nansum, jnp.nanmean, jnp.count_nonzero, jnp.mean, jnp.linalg.norm):
        check(function, x)
    check(jnp.linalg.norm, np.nan_to_num(x))
    check(jnp.count_nonzero, np.arange(100_000, dtype=np.int32) % 3)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_extremes_of_bytes(dtype: str) -> None:
    limits = np.iinfo(dtype)
    for shape in ((1,), (33,), (9001,), (5, 70), (2, 3, 5)):
        numbers = np.random.default_rng(0).integers(limits.min + 1, limits.max, shape)
        for x in (numbers, numbers * 0 + limits.min, numbers * 0 + limits.max):
            for axis in (None, *range(x.ndim)):
                for name in ("max", "min"):
                    check(lambda x, n=name, a=axis: getattr(jnp, n)(x, axis=a), x.astype(dtype))
