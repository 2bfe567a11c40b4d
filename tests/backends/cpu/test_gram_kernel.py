"""The kernel of a matrix times its own transpose, beside NumPy in float64."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail_cpu.kernel_library import library
from dovetail_cpu.lowerings import contraction

pytestmark = pytest.mark.skipif(
    library() is None, reason="no kernels were built: there is no C++ compiler"
)

KERNEL: Final = "dovetail_gram"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape", [(64, 64), (65, 257), (1000, 200), (97, 1), (130, 9000), (4097, 65), (79, 512)]
)
def test_products(
    dtype: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch, by_kernel: Any, drawn: Any
) -> None:
    monkeypatch.setattr(contraction, "MANY_FOR_COPIES", 1)
    rows = drawn(dtype, *shape)
    expected = rows.astype(float) @ rows.astype(float).T
    bound = 20 * np.finfo(dtype).eps * np.abs(expected).max()
    for function, x in (
        (lambda x: x @ x.T, rows),
        (lambda x: x.T @ x, rows.T.copy()),
        (lambda x: jnp.einsum("ik,jk", x, x), rows),
        (lambda x: jnp.einsum("ki,kj", x, x), rows.T.copy()),
    ):
        found = by_kernel(function, x)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, found.T)
        np.testing.assert_allclose(found, expected, rtol=0, atol=bound)


def test_not_finite(by_kernel: Any, drawn: Any) -> None:
    x = drawn("float32", 200, 300)
    x[7, 299], x[150, 3] = np.nan, np.inf
    expected = np.isfinite(x).all(1)
    found = by_kernel(lambda x: x @ x.T, x)
    np.testing.assert_array_equal(np.isfinite(found), expected[:, None] & expected)
    assert found[150, 150] == np.inf


def test_transformations(by_kernel: Any, drawn: Any) -> None:
    x = drawn("float64", 200, 150)
    gradient = by_kernel(dt.grad(lambda x: jnp.sum((x.T @ x) ** 2)), x)
    np.testing.assert_allclose(gradient, 4 * x @ (x.T @ x), rtol=1e-10, atol=1e-9)
    found = by_kernel(dt.vmap(lambda x: x.T @ x), np.stack([x, x]), kernel=False)
    np.testing.assert_allclose(found[1], x.T @ x, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x @ x,
        lambda x: x.T @ x.T,
        lambda x: (x + 1) @ x.T,
        lambda x: x[:60] @ x[:60].T,
        lambda x: x[:100, :100] @ x[:100, :100].T,
        lambda x: jnp.einsum("ij,ij->i", x, x),
        lambda x: jnp.einsum("ij,ij", x, x),
        lambda x: jnp.sum(x, 0)[:, None] @ jnp.sum(x, 0)[None],
        lambda x: x.astype(jnp.int32) @ x.T.astype(jnp.int32),
        lambda x: x.astype(jnp.bfloat16) @ x.T.astype(jnp.bfloat16),
    ],
)
def test_other_products_are_left_as_they_are(function: Any, by_kernel: Any, drawn: Any) -> None:
    by_kernel(function, drawn("float32", 200, 200), kernel=False)
