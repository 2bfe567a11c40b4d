"""Products of matrices by the kernel: NumPy's, whatever the sizes and wherever numbers lie."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail_cpu.kernel_library import has_long_vectors, library

KERNEL = "dovetail_products"

pytestmark = pytest.mark.skipif(
    library() is None, reason="no kernels were built: there is no C++ compiler"
)


def product_of(turned: str) -> Callable[[Any, Any], Any]:
    """A product whose operands and result are transposed as the letters say."""

    def multiply(x: Any, y: Any) -> Any:
        product = (x.T if "x" in turned else x) @ (y.T if "y" in turned else y)
        return product.T if "z" in turned else product

    return multiply


def close(found: Any, expected: Any, summed: int, scale: float = 1.0) -> None:
    """Errors are no larger than those of sums in the same precision."""
    bound = 4 * float(np.finfo(found.dtype).eps) * summed**0.5 * scale
    np.testing.assert_allclose(found, expected, rtol=bound, atol=4 * bound)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("rows", "summed", "columns"),
    [
        (16, 16, 16),
        (64, 64, 64),
        (8, 300, 10),  # one vector
        (33, 257, 77),  # several parts of the sums
        (71, 200, 96),  # copied columns
        (71, 600, 109),
        (300, 7, 15),
        (15, 130, 512),  # rows at distances of powers of two
        (130, 256, 250),
        (40, 250, 330),  # several blocks of columns, the last of which ends within a vector
        (130, 330, 301),  # several blocks of rows and sums
        (45, 400, 390),  # columns that are asked for ahead
        (1500, 30, 10),  # rows that are
    ],
)
@pytest.mark.parametrize("turned", ["", "x", "y", "xy", "z", "xyz"])
def test_layouts(
    rows: int, summed: int, columns: int, turned: str, dtype: str, drawn: Any, by_kernel: Any
) -> None:
    multiply = product_of(turned)
    x = drawn(dtype, *((summed, rows) if "x" in turned else (rows, summed)))
    y = drawn(dtype, *((columns, summed) if "y" in turned else (summed, columns)))
    found = by_kernel(multiply, x, y)
    assert found.dtype == dtype
    close(found, multiply(x.astype(np.longdouble), y.astype(np.longdouble)), summed)


def test_blocks_that_end_anywhere_on_one_thread() -> None:
    # Several share the columns, so that there is one block for each.
    code = """
import numpy as np
import dovetail as dt
import dovetail.numpy as jnp

generator = np.random.default_rng(0)
for dtype in ("float32", "float64"):
    for columns in (*range(8, 36), *range(250, 340, 7), 511, 530, 641, 1030, 2061):
        sizes = ((8, 300), (43, 250), (70, 40))
        for rows, summed in sizes if columns < 2000 else ((250, 330),):
            x = generator.standard_normal((rows, summed)).astype(dtype)
            y = generator.standard_normal((summed, columns)).astype(dtype)
            found = np.asarray(dt.jit(jnp.matmul)(x, y))
            assert found.dtype == dtype
            error = abs(found - x.astype(np.longdouble) @ y.astype(np.longdouble)).max()
            assert error < 4 * summed * np.finfo(dtype).eps, (dtype, rows, summed, columns)
"""
    environment = {**os.environ, "DOVETAIL_NUM_THREADS": "1", "DOVETAIL_ENABLE_X64": "1"}
    command = [sys.executable, "-c", code]
    subprocess.run(command, check=True, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("turned", ["", "x", "y", "xyz"])
@pytest.mark.parametrize(
    ("rows", "summed", "columns"), [(16, 16, 16), (71, 200, 109), (250, 330, 261)]
)
def test_complex_numbers(
    rows: int, summed: int, columns: int, turned: str, dtype: str, drawn: Any, by_kernel: Any
) -> None:
    multiply = product_of(turned)

    def numbers(*shape: int) -> Any:
        return (drawn("float64", *shape) + 1j * drawn("float64", *shape[::-1]).T).astype(dtype)

    x = numbers(*((summed, rows) if "x" in turned else (rows, summed)))
    y = numbers(*((columns, summed) if "y" in turned else (summed, columns)))
    found = by_kernel(multiply, x, y)
    assert found.dtype == dtype
    close(found, multiply(x.astype(complex), y.astype(complex)), summed, 2)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("out", [None, "float32"])
def test_narrow_floats_are_multiplied_in_float32(
    out: str | None, dtype: str, drawn: Any, by_kernel: Any
) -> None:
    x, y = (jnp.asarray(drawn("float32", *shape), dtype) for shape in ((33, 100), (70, 100)))
    found = by_kernel(
        lambda x, y: jnp.matmul(x, y.T, preferred_element_type=out),
        x,
        y,
        kernel=not has_long_vectors(),
    )
    assert found.dtype == (out or dtype)
    exact = np.asarray(x, np.float64) @ np.asarray(y, np.float64).T
    bound = float(jnp.finfo(out or dtype).eps) * (20 if out is None else 200)
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=bound / 10, atol=bound)


@pytest.mark.parametrize(
    ("formula", "x", "y"),
    [
        ("bij,bjk->bik", (5, 40, 33), (5, 33, 40)),
        ("bij,bkj->bik", (50, 33, 20), (50, 28, 20)),
        ("bqhd,bkhd->bhqk", (2, 33, 3, 17), (2, 40, 3, 17)),
        ("bhqk,bkhd->bhqd", (2, 3, 33, 40), (2, 40, 3, 30)),
        ("abij,bjk->abik", (3, 2, 70, 65), (2, 65, 32)),
        ("ijk,kl->ijl", (5, 40, 33), (33, 64)),
        ("jik,kl->ijl", (5, 40, 33), (33, 64)),
        ("ijk,jkl->il", (33, 5, 40), (5, 40, 64)),
        ("ikj,jkl->il", (33, 40, 5), (5, 40, 64)),
    ],
)
def test_batches_and_several_dimensions(
    formula: str, x: tuple[int, ...], y: tuple[int, ...], drawn: Any
) -> None:
    a, b = drawn("float32", *x), drawn("float32", *y)
    found = np.asarray(dt.jit(lambda a, b: jnp.einsum(formula, a, b))(a, b))
    close(found, np.einsum(formula, a.astype(np.float64), b.astype(np.float64)), 200)


def test_special_numbers_stay_in_their_rows_and_columns(drawn: Any, by_kernel: Any) -> None:
    x, y = drawn("float32", 70, 300), drawn("float32", 300, 50)
    x[5, 2], x[69, 299], y[7, 49], x[9] = np.nan, np.inf, -np.inf, -0.0
    found = by_kernel(lambda x, y: x @ y, x, y)
    with np.errstate(invalid="ignore"):
        expected = x @ y
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)
    assert np.isnan(found[5]).all()
    assert np.isnan(found[9, 49])
    assert np.isfinite(found[:5, :49]).all()
    assert not found[9, :49].any()


def test_sums_are_as_exact_as_the_compilers(drawn: Any) -> None:
    x, y = abs(drawn("float32", 64, 16000)), abs(drawn("float32", 16000, 64))
    exact = x.astype(np.float64) @ y.astype(np.float64)

    def error(kernels: bool) -> float:
        with dt.cpu_kernels(kernels):
            return float(abs(np.asarray(dt.jit(lambda x, y: x @ y)(x, y)) / exact - 1).max())

    assert error(True) <= 1.2 * error(False)


def test_vmap_and_grad(drawn: Any, by_kernel: Any) -> None:
    x, y = drawn("float64", 9, 33, 32), drawn("float64", 9, 32, 40)
    close(by_kernel(dt.vmap(lambda x, y: x @ y), x, y), x @ y, 32)

    def total(x: Any, y: Any) -> Any:
        return jnp.sin(x @ y).sum()

    found = by_kernel(dt.grad(total, (0, 1)), x[0], y[0])
    slope = np.cos(x[0] @ y[0])
    close(found[0], slope @ y[0].T, 40, 4)
    close(found[1], x[0].T @ slope, 33, 4)


def test_a_product_that_is_used_again_is_computed_once(drawn: Any) -> None:
    x = drawn("float32", 64, 64)

    def symmetric(x: Any, y: Any) -> Any:
        product = x @ y
        return product + product.T

    jitted = dt.jit(symmetric)
    assert jitted.lower(x, x).as_text().count(f"@{KERNEL}") == 1
    close(np.asarray(jitted(x, x)), symmetric(x.astype(np.float64), x), 64)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ((4, 1000), (1000, 1000)),  # few rows
        ((1000, 64), (64, 5)),  # few columns
        ((1000, 4), (4, 1000)),  # little is summed
        ((8, 9000), (9000, 16)),  # much is summed
        ((200, 20, 20), (200, 20, 20)),
        ((0, 64), (64, 64)),
        ((64, 0), (0, 64)),
    ],
)
def test_others_are_left_to_the_compiler(
    x: tuple[int, ...], y: tuple[int, ...], drawn: Any, by_kernel: Any
) -> None:
    a, b = drawn("float32", *x), drawn("float32", *y)
    found = by_kernel(lambda x, y: x @ y, a, b, kernel=False)
    np.testing.assert_allclose(found, a @ b, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("preset", ["BF16_BF16_F32", "BF16_BF16_F32_X3"])
def test_asked_algorithms_are_left_to_the_compiler(preset: str, drawn: Any, by_kernel: Any) -> None:
    x = drawn("float32", 256, 256)
    algorithm = lax.DotAlgorithmPreset[preset]
    for multiply in (
        lambda x, y: lax.dot(x, x, precision=algorithm),
        lambda x, y: lax.dot(x, x.T, precision=algorithm),
        lambda x, y: lax.dot(y[0], x, precision=algorithm),
    ):
        by_kernel(multiply, x, x[::-1], kernel=False)
    by_kernel(lambda x: lax.dot(x, x, precision=lax.Precision.HIGHEST), x)
