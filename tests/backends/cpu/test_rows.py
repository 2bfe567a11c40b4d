"""Rows at positions known at run time, by a native kernel, against NumPy's."""

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

KERNEL = "dovetail_take_rows"
DTYPES = ("bool", "int8", "uint16", "int32", "float32", "complex64", "int64", "float64")
SHAPES = ((1000, 32), (3, 33), (1, 79), (50, 4, 5), (70_000, 64))
"""The last on several threads."""


def case(dtype, shape):
    generator = np.random.default_rng(len(shape))
    x = generator.integers(-100, 100, shape).astype(dtype)
    if x.dtype.kind in "fc":
        x.flat[0], x.flat[-1] = np.nan, -0.0
    positions = generator.integers(-shape[0], shape[0], 1500 if shape[0] < 10_000 else 60_000)
    positions[:2] = shape[0] - 1, -shape[0]
    return x, positions


@pytest.mark.parametrize("dtype", [*DTYPES, ml_dtypes.bfloat16], ids=str)
def test_rows(dtype, by_kernel):
    for shape in SHAPES:
        x, positions = case(dtype, shape)
        for index in (positions, positions.astype("int32").reshape(-1, 2)):
            found = by_kernel(lambda x, i: x[i], x, index)
            assert found.dtype == x.dtype
            assert found.shape == x[index].shape
            assert found.tobytes() == x[index].tobytes()


@pytest.mark.parametrize("dtype", ["bool", "int32", "uint8", "float32", ml_dtypes.bfloat16])
def test_rows_out_of_bounds(dtype, by_kernel):
    x, positions = case(dtype, (100, 40))
    positions[5:10] = 100, -101, 2**31 - 1, -(2**31), 1000
    near = by_kernel(lambda x, i: jnp.take(x, i, 0, mode="clip"), x, positions)
    np.testing.assert_array_equal(near, x[np.clip(positions, 0, 99)])
    outside = (positions < -100) | (positions >= 100)
    expected = x[np.where(outside, 0, positions)]
    expected[outside] = x.dtype.type(1)
    found = by_kernel(lambda x, i: jnp.take(x, i, 0, mode="fill", fill_value=1), x, positions)
    np.testing.assert_array_equal(found, expected)
    # Without a value: NaN, the least or the greatest number, as for other rows.
    wide = np.concatenate([x, x, x], 1)
    default = by_kernel(lambda x, i: jnp.take(x, i, 0, mode="fill"), x, positions)
    other = by_kernel(lambda x, i: jnp.take(x, i, 0, mode="fill"), wide, positions, kernel=False)
    assert default.tobytes() == other[:, :40].tobytes()


def test_transformations(by_kernel):
    x, positions = case("float32", (50, 30))
    x = np.nan_to_num(x)
    np.testing.assert_array_equal(
        by_kernel(dt.vmap(lambda i: jnp.asarray(x)[i]), positions.reshape(3, -1)),
        x[positions.reshape(3, -1)],
    )
    batched = by_kernel(dt.vmap(lambda x, i: x[i]), x[None], positions[None], kernel=False)
    np.testing.assert_array_equal(batched[0], x[positions])
    gradient = by_kernel(dt.grad(lambda x, i: (x[i] ** 2).sum()), x, positions)
    counts = np.bincount(positions % 50, minlength=50)
    np.testing.assert_allclose(gradient, 2 * x * counts[:, None], 1e-5)


@pytest.mark.parametrize("columns", [8, 19, 80, 200])
def test_other_rows_are_left_to_the_compiler(columns, by_kernel):
    x, positions = case("float32", (1000, columns))
    found = by_kernel(lambda x, i: x[i], x, positions, kernel=False)
    np.testing.assert_array_equal(found, x[positions])
