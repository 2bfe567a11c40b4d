"""Products of many small matrices: NumPy's, for all numbers of rows and columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail_cpu.kernel_library import library

KERNEL = "dovetail_small_products"

pytestmark = pytest.mark.skipif(
    library() is None, reason="no kernels were built: there is no C++ compiler"
)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", range(2, 17))
def test_products(columns: int, dtype: str, drawn: Any, by_kernel: Any) -> None:
    for batch, rows, summed in (((256,), 4, 2), ((300,), 7, 16), ((2, 3, 50), 16, 5)):
        x, y = drawn(dtype, *batch, rows, summed), drawn(dtype, *batch, summed, columns)
        found = by_kernel(lambda x, y: x @ y, x, y)
        assert found.dtype == dtype
        expected = x.astype(np.longdouble) @ y.astype(np.longdouble)
        bound = 20 * float(np.finfo(dtype).eps)
        np.testing.assert_allclose(found, expected.astype(dtype), rtol=bound, atol=bound)


def test_many_on_several_threads_with_special_numbers(drawn: Any, by_kernel: Any) -> None:
    x, y = drawn("float32", 20000, 8, 8), drawn("float32", 20000, 8, 7)
    x[5, 2, 3], x[7, 1, 1], y[19999, 7, 6], x[9] = np.nan, np.inf, -np.inf, -0.0
    found = by_kernel(lambda x, y: x @ y, x, y)
    with np.errstate(invalid="ignore"):
        expected = x @ y
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert np.isnan(found[5, 2]).all()
    assert np.isfinite(found[5, 3]).all()


def test_vmap_and_grad(drawn: Any, by_kernel: Any) -> None:
    x, y = drawn("float64", 400, 5, 4), drawn("float64", 400, 4, 6)
    mapped = by_kernel(dt.vmap(lambda x, y: x @ y), x, y)
    np.testing.assert_allclose(mapped, x @ y, rtol=1e-12, atol=1e-12)

    def total(x: Any, y: Any) -> Any:
        return jnp.sin(x @ y).sum()

    gradient = by_kernel(dt.grad(total), x, y)
    np.testing.assert_allclose(
        gradient, np.cos(x @ y) @ np.swapaxes(y, 1, 2), rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((255, 4, 4), (255, 4, 4)),  # few
        ((300, 3, 3), (300, 3, 3)),  # tiny
        ((300, 17, 4), (300, 4, 4)),  # large
        ((300, 4, 4), (300, 4, 1)),  # vectors
        ((0, 4, 4), (0, 4, 4)),
    ],
)
def test_others_are_left_to_the_compiler(
    x: tuple[int, ...], y: tuple[int, ...], drawn: Any, by_kernel: Any
) -> None:
    a, b = drawn("float32", *x), drawn("float32", *y)
    found = by_kernel(lambda x, y: x @ y, a, b, kernel=False)
    np.testing.assert_allclose(found, a @ b, rtol=1e-4, atol=1e-5)
