"""The inverse of the error function by a kernel: its accuracy, and what ends blocks and vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.extend.random_keys import erf_inv_fast_p
from dovetail_cpu.kernel_library import library

pytestmark = [
    pytest.mark.tables,
    pytest.mark.skipif(library() is None, reason="no kernels were built: there is no C++ compiler"),
]

SPECIAL = [0, -0.0, 1, -1, 2, -3, np.inf, -np.inf, np.nan, 0.85, -0.85, 0.996, -0.997, 1e-30]


def called(x: Any) -> Any:
    compiled = dt.jit(erf_inv_fast_p.bind)
    assert "@dovetail_erf_inv_fast" in compiled.lower(x).as_text()
    return np.asarray(compiled(x))


def numbers(size: int, dtype: str) -> Any:
    """Numbers between -1 and 1, many of them near the ends."""
    rng = np.random.default_rng(size)
    x = rng.uniform(-1, 1, size)
    ends = np.copysign(1 - 10 ** -rng.uniform(0, 16, size), x)
    return np.where(rng.random(size) < 0.3, ends, x).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1024, 1031, 70_003])
def test_accuracy(dtype: str, size: int) -> None:
    with dt.enable_x64(True):
        x = numbers(size, dtype)
        before = x.copy()
        placed = jnp.asarray(x)
        found = called(placed)
        expected = scipy.special.erfinv(x.astype(np.float64))
        if dtype == "float64":
            np.testing.assert_allclose(found, expected, rtol=2e-15)
        else:
            near = abs(x) < 0.9
            np.testing.assert_allclose(found[near], expected[near], rtol=5e-7)
            with dt.cpu_kernels(False):  # published streams have the rounding of the tails
                by_xla = np.asarray(dt.jit(erf_inv_fast_p.bind)(placed))
            np.testing.assert_allclose(found, by_xla, rtol=2e-6)
            np.testing.assert_array_equal(dt.jit(dt.lax.erf_inv)(placed), found)
        np.testing.assert_array_equal(placed, before)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_numbers(dtype: str) -> None:
    with dt.enable_x64(True):
        values = np.array(SPECIAL, dtype)
        x = numbers(1500, dtype)
        x[100:1500:100] = values
        result = called(x)[100:1500:100]
        np.testing.assert_allclose(result, scipy.special.erfinv(values), rtol=5e-7)
        np.testing.assert_array_equal(np.signbit(result[:2]), [False, True])


def test_what_was_computed_is_written_over() -> None:
    x = numbers(5000, "float32")
    compiled = dt.jit(lambda x: (erf_inv_fast_p.bind(x * 0.5), x * 0.5))
    found, half = compiled(x)
    np.testing.assert_array_equal(half, x * np.float32(0.5))
    np.testing.assert_allclose(found, scipy.special.erfinv(x * 0.5), rtol=5e-7)
