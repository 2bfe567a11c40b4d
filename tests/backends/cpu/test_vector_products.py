"""The kernel of vectors times matrices, beside NumPy in float64."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail_cpu.kernel_library import has_long_vectors, library

pytestmark = pytest.mark.skipif(
    library() is None, reason="no kernels were built: there is no C++ compiler"
)

KERNEL: Final = "dovetail_vector_product"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape", [(256, 256), (64, 1025), (1023, 67), (71, 9001), (3001, 64), (500, 777)]
)
def test_vector_by_matrix(dtype: str, shape: tuple[int, int], by_kernel: Any, drawn: Any) -> None:
    x, matrix = drawn(dtype, shape[0]), drawn(dtype, *shape)
    expected = x.astype(float) @ matrix
    bound = 20 * np.finfo(dtype).eps * np.abs(expected).max()
    found = by_kernel(lambda x, y: x @ y, x, matrix)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound)
    turned = by_kernel(lambda y, x: lax.dot_general(y, x, (((0,), (0,)), ((), ()))), matrix, x)
    np.testing.assert_array_equal(turned, found)


@pytest.mark.skipif(not has_long_vectors(), reason="the compiler's own is not slower")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1024, 1024), (64, 16385), (16387, 67), (1023, 1031)])
def test_matrix_by_vector(dtype: str, shape: tuple[int, int], drawn: Any) -> None:
    matrix, x = drawn(dtype, *shape), drawn(dtype, shape[1])
    matrix[5, 3], matrix[-1, 0], matrix[7, 1], matrix[7, 2] = np.nan, np.inf, np.inf, -np.inf
    x[:3] = 1
    with dt.enable_x64(True), np.errstate(all="ignore"):
        for function in (lambda y, x: y @ x, lambda y, x: x @ y.T):
            jitted = dt.jit(function)
            assert "dovetail_matrix_vector" in jitted.lower(matrix, x).as_text()
            found, expected = np.asarray(jitted(matrix, x)), matrix.astype(float) @ x
            bound = 20 * np.finfo(dtype).eps * np.abs(expected[8:-1]).max()
            assert found.dtype == dtype
            np.testing.assert_allclose(found, expected, rtol=0, atol=bound)


def test_not_finite(by_kernel: Any, drawn: Any) -> None:
    x, matrix = drawn("float32", 300), drawn("float32", 300, 301)
    matrix[299, 0], matrix[8, 7], matrix[3, 300], matrix[5, 300] = np.nan, np.inf, np.inf, -np.inf
    x[3] = x[5] = 1
    found = by_kernel(lambda x, y: x @ y, x, matrix)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(found)), [0, 300])
    np.testing.assert_array_equal(np.flatnonzero(np.isinf(found)), [7])


def test_transformations(by_kernel: Any, drawn: Any) -> None:
    x, matrix = drawn("float64", 300), drawn("float64", 300, 301)
    gradient = by_kernel(dt.grad(lambda y: jnp.sum((x @ y) ** 2)), matrix)
    np.testing.assert_allclose(gradient, 2 * np.outer(x, x @ matrix), rtol=1e-10, atol=1e-10)
    many = drawn("float64", 4, 300)
    mapped = by_kernel(dt.vmap(lambda x: x @ matrix), many, kernel=False)
    np.testing.assert_allclose(mapped, many @ matrix, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y: y @ x,
        lambda x, y: x[:100] @ y[:100, :100],
        lambda x, y: x @ y[:, :60],
        lambda x, y: x[:, None] * y,
        lambda x, y: jnp.dot(x, x) * y,
        lambda x, y: jnp.stack([x, x]) @ y,
        lambda x, y: x.astype(jnp.bfloat16) @ y.astype(jnp.bfloat16),
        lambda x, y: jnp.einsum("i,ij->ij", x, y),
    ],
)
def test_other_products_are_left_as_they_are(function: Any, by_kernel: Any, drawn: Any) -> None:
    by_kernel(function, drawn("float32", 1100), drawn("float32", 1100, 1100), kernel=False)
