"""Columns at positions known at run time, by a native kernel, against NumPy's."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail_cpu.kernel_library import library

pytestmark = [
    pytest.mark.tables,
    pytest.mark.skipif(library() is None, reason="no kernels were built: there is no C++ compiler"),
]

KERNEL = "dovetail_take_columns"
DTYPES = ("bool", "int8", "uint16", "int32", "float32", "complex64", "float64", "complex128")
SHAPES = ((1000, 32), (20, 1), (33, 3), (5, 6, 7), (2000, 300))
"""The last on several threads."""


def case(dtype, shape):
    generator = np.random.default_rng(len(shape))
    x = generator.integers(-100, 100, shape).astype(dtype)
    if x.dtype.kind in "fc":
        x.flat[0], x.flat[-1] = np.nan, -0.0
    positions = generator.integers(-shape[-1], shape[-1], 900)
    positions[:2] = shape[-1] - 1, -shape[-1]
    return x, positions


@pytest.mark.parametrize("dtype", [*DTYPES, ml_dtypes.bfloat16], ids=str)
def test_columns(dtype, by_kernel):
    for shape in SHAPES:
        x, positions = case(dtype, shape)
        for index in (positions, positions.astype("int32").reshape(-1, 2)):
            found = by_kernel(lambda x, i: x[..., i], x, index)
            assert found.dtype == x.dtype
            assert found.shape == x[..., index].shape
            assert found.tobytes() == x[..., index].tobytes()


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "float32", ml_dtypes.bfloat16])
def test_columns_out_of_bounds(dtype, by_kernel):
    x, positions = case(dtype, (40, 100))
    positions[5:10] = 100, -101, 2**31 - 1, -(2**31), 1000
    near = by_kernel(lambda x, i: jnp.take(x, i, 1, mode="clip"), x, positions)
    np.testing.assert_array_equal(near, x[:, np.clip(positions, 0, 99)])
    outside = (positions < -100) | (positions >= 100)
    expected = x[:, np.where(outside, 0, positions)]
    expected[:, outside] = x.dtype.type(1)
    found = by_kernel(lambda x, i: jnp.take(x, i, 1, mode="fill", fill_value=1), x, positions)
    np.testing.assert_array_equal(found, expected)


def test_transformations(by_kernel):
    x, positions = case("float32", (50, 30))
    x = np.nan_to_num(x)
    gradient = by_kernel(dt.grad(lambda x, i: (x[:, i] ** 2).sum()), x, positions)
    counts = np.bincount(positions % 30, minlength=30)
    np.testing.assert_allclose(gradient, 2 * x * counts, 1e-5)


@pytest.mark.parametrize("rows", [8, 19])
def test_columns_of_few_rows_are_left_to_the_compiler(rows, by_kernel):
    x, positions = case("float32", (rows, 1000))
    positions = np.concatenate([positions] * 3)
    found = by_kernel(lambda x, i: x[:, i], x, positions, kernel=False)
    np.testing.assert_array_equal(found, x[:, positions])
