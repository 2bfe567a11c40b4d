"""Many short rows times a vector: NumPy's, whichever comes first, with derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail._core.base import native
from dovetail._core.runtime.arrays.held_values import held_value
from dovetail_cpu import host_functions
from dovetail_cpu.kernel_library import library

pytestmark = pytest.mark.tables

RANDOM = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(512, 2), (20, 30, 3), (7, 8, 11, 5), (1000, 8), (600, 9)])
def test_products(shape: tuple[int, ...], dtype: str) -> None:
    x, w = (RANDOM.normal(size=s).astype(dtype) for s in (shape, shape[-1:]))
    with dt.enable_x64(True):
        product = dt.jit(lambda x, w: (x @ w, jnp.tensordot(w, x, (0, x.ndim - 1))))
        for y in product(x, w):
            assert y.dtype == dtype
            np.testing.assert_allclose(np.asarray(y), x @ w, atol=16 * float(np.finfo(dtype).eps))
        slopes: Any = dt.jit(dt.grad(lambda x, w: jnp.sum(jnp.sin(x @ w)), (0, 1)))(x, w)
        slope = np.cos(x.astype(float) @ w.astype(float))[..., None]
        tolerance = 64 * float(np.finfo(dtype).eps)
        np.testing.assert_allclose(slopes[0], slope * w, atol=tolerance)
        wanted = (slope * x).reshape(-1, shape[-1]).sum(0)
        np.testing.assert_allclose(slopes[1], wanted, atol=tolerance * np.sqrt(slope.size))
        batched = dt.vmap(jnp.matmul, (0, None))(x, w) if x.ndim > 2 else x @ w
        np.testing.assert_allclose(np.asarray(batched), x @ w, atol=16 * float(np.finfo(dtype).eps))


@pytest.mark.skipif(library() is None, reason="no kernels were built: there is no C++ compiler")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [2, 3, 4, 5, 6, 7, 8])
def test_products_of_many_alone(size: int, dtype: str) -> None:
    """By a kernel, where nothing that could be fused follows."""
    x, w = (RANDOM.normal(size=s).astype(dtype) for s in ((70_001, size), size))
    x[5, 0], x[77, -1], x[64 * 9 : 64 * 9 + 70] = np.nan, np.inf, -0.0
    with dt.enable_x64(True):
        product = dt.jit(jnp.matmul)
        assert "dovetail_matrix_vector" in product.lower(x, w).as_text()
        assert "dovetail_matrix_vector" not in dt.jit(lambda x, w: -(x @ w)).lower(x, w).as_text()
        found = np.asarray(product(x, w))
        tolerance = 16 * float(np.finfo(dtype).eps)
        np.testing.assert_allclose(found, x @ w, rtol=tolerance, atol=tolerance)


@pytest.mark.skipif(library() is None, reason="no kernels were built: there is no C++ compiler")
@pytest.mark.skipif(native.calls is None, reason="calls need the C extension")
@pytest.mark.usefixtures("directly")
@pytest.mark.parametrize("size", [2, 3, 4, 7, 8])
@pytest.mark.parametrize("rows", [(), (1,), (5, 13), (70_001,)])
def test_calls_without_a_program_are_what_the_kernel_says(
    rows: tuple[int, ...], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_functions, "_threads", lambda: 2)  # more would run a program for many
    x, w = (RANDOM.normal(size=s).astype(np.float32) for s in ((*rows, size), size))
    x.flat[0], x.flat[-1] = np.inf, 1e-40
    direct, by_program = dt.jit(lambda x, w: x @ w), dt.jit(lambda x, w: x @ w)
    found = direct(jnp.asarray(x), jnp.asarray(w))
    assert held_value(found) is not None
    with dt.direct_calls("none"):
        wanted = np.asarray(by_program(x, w))
    if len(rows) == 1 and rows[0] > 1:
        np.testing.assert_array_equal(np.asarray(found), wanted)
    np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-5, atol=1e-5)


def test_numbers_that_are_not_finite() -> None:
    x = np.ones((600, 3), np.float32)
    x[3, 1], x[5, 0], x[7] = np.nan, np.inf, -0.0
    w = np.array([0, 1, 2], np.float32)
    with np.errstate(invalid="ignore"):
        want = x @ w
    np.testing.assert_array_equal(np.asarray(dt.jit(jnp.matmul)(x, w)), want)


def test_columns_are_combined() -> None:
    x, w = np.ones((600, 3), np.float32), np.ones(3, np.float32)
    assert "dot_general" not in dt.jit(jnp.matmul).lower(x, w).as_text()
    assert "dot_general" in dt.jit(jnp.matmul).lower(x[:100], w).as_text()


@pytest.mark.skipif(library() is None, reason="no kernels were built: there is no C++ compiler")
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("size", [2, 3, 5, 7, 8])
def test_the_kernel_combines_as_xla_does(size: int, dtype: str) -> None:
    x = (RANDOM.normal(size=(517, size)) * 30).astype(dtype)
    if dtype != "int64":
        x[5, -1] = x[7, 0] = np.nan
        x[9, 0] = np.inf
    with dt.enable_x64(True):
        for name in ("sum", "prod", "max", "min"):
            reduce = dt.jit(lambda x, name=name: getattr(jnp, name)(x, -1))
            assert "dovetail_reduce" in reduce.lower(x).as_text()
            found = np.asarray(reduce(x))
            with dt.cpu_kernels(False):
                np.testing.assert_array_equal(found, np.asarray(reduce(x)))
