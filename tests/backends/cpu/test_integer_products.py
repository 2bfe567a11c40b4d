"""Products of matrices of integers and complex numbers: NumPy's, with and without the kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax
from dovetail_cpu.kernel_library import library
from dovetail_cpu.lowerings import contraction, matrix_products

pytestmark = pytest.mark.tables

DTYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
#: Shapes of operands, and contracting and batch dimensions.
PRODUCTS: dict[str, Any] = {
    "rows and columns": ((33, 41), (41, 70), (((1,), (0,)), ((), ()))),
    "transposed": ((41, 33), (70, 41), (((0,), (1,)), ((), ()))),
    "batches in other places": ((9, 3, 16), (16, 5, 3), (((2,), (0,)), ((1,), (2,)))),
    "several of all": ((2, 3, 4, 5), (5, 2, 6, 3), (((0, 3), (1, 0)), ((1,), (3,)))),
    "over nothing": ((17, 1), (1, 40), (((1,), (0,)), ((), ()))),
    "matrix and vector": ((17, 30), (30,), (((1,), (0,)), ((), ()))),
    "long sums": ((2, 5000), (5000, 2), (((1,), (0,)), ((), ()))),
    "empty": ((0, 4), (4, 3), (((1,), (0,)), ((), ()))),
    "over an empty dimension": ((2, 0), (0, 3), (((1,), (0,)), ((), ()))),
}


def operand(shape: tuple[int, ...], dtype: str) -> Any:
    """Integers of all bits."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    bits = np.random.default_rng(len(shape)).integers(0, 256, size, np.uint8)
    return bits.view(dtype).reshape(shape)


def letters(x: Any, y: Any, numbers: Any) -> str:
    """The product as a sum over indices."""
    (over_x, over_y), (batch_x, batch_y) = numbers
    names = "abcdefgh"[: x.ndim]
    at = dict(zip([*batch_y, *over_y], [*batch_x, *over_x], strict=True))
    others = [names[at[d]] if d in at else "uvwxyz"[d] for d in range(y.ndim)]
    free_x = [names[d] for d in range(x.ndim) if d not in (*over_x, *batch_x)]
    free_y = [others[d] for d in range(y.ndim) if d not in at]
    result = [names[d] for d in batch_x] + free_x + free_y
    return f"{names},{''.join(others)}->{''.join(result)}"


@pytest.mark.parametrize("native", [True, False], ids=["kernel", "without"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_wrap_around(native: bool, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if native and library() is None:
        pytest.skip("no kernels were built: there is no C++ compiler")
    monkeypatch.setattr(contraction, "MANY", 1)
    x_shape, y_shape, numbers = PRODUCTS[name]
    pairs = [(operand(x_shape, dtype), operand(y_shape, dtype)) for dtype in DTYPES]

    # A function for each test: the option is no part of what was compiled.
    def products(pairs: Any) -> Any:
        return [lax.dot_general(x, y, numbers) for x, y in pairs]

    with dt.enable_x64(True), dt.cpu_kernels(native):
        compiled = dt.jit(products)
        calls = compiled.lower(pairs).as_text().count("dovetail_convolve_integers")
        found = compiled(pairs)
    matrices = name not in ("matrix and vector", "empty", "over an empty dimension")
    assert calls == (6 if native and matrices else 0)
    for (x, y), product in zip(pairs, found, strict=True):
        want = np.einsum(letters(x, y, numbers), x, y)
        assert product.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(product), want)


@pytest.mark.parametrize("native", [True, False], ids=["kernel", "without"])
@pytest.mark.parametrize(
    ("dtype", "sums"),
    [("int8", "int32"), ("int8", "int16"), ("uint8", "uint32"), ("int16", "int64")],
)
def test_wider_sums(native: bool, dtype: str, sums: str) -> None:
    if native and library() is None:
        pytest.skip("no kernels were built: there is no C++ compiler")
    x, y = operand((64, 80), dtype), operand((80, 48), dtype)

    def product(x: Any, y: Any) -> Any:
        return lax.dot(x, y, preferred_element_type=sums)

    with dt.enable_x64(True), dt.cpu_kernels(native):
        found = dt.jit(product)(x, y)
    assert found.dtype == sums
    np.testing.assert_array_equal(np.asarray(found), x.astype(sums) @ y.astype(sums))


@pytest.mark.parametrize("native", [True, False], ids=["kernel", "without"])
@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_complex_products(
    name: str, dtype: str, native: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if native and library() is None:
        pytest.skip("no kernels were built: there is no C++ compiler")
    monkeypatch.setattr(contraction, "MANY_FOR_COPIES", 1)
    monkeypatch.setattr(matrix_products, "MANY", 1 << 40)  # The kernel of products has its own.
    x_shape, y_shape, numbers = PRODUCTS[name]
    random = np.random.default_rng(3)
    x, y = (
        (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(dtype)
        for shape in (x_shape, y_shape)
    )
    with dt.enable_x64(True), dt.cpu_kernels(native):
        compiled = dt.jit(lambda x, y: lax.dot_general(x, y, numbers))
        text = compiled.lower(x, y).as_text()
        found = compiled(x, y)
    matrices = name not in ("matrix and vector", "empty", "over an empty dimension")
    assert text.count("stablehlo.dot_general") == (4 if matrices else 1)
    assert text.count("@dovetail_complex_parts") == (2 if matrices and native else 0)
    expected = np.einsum(letters(x, y, numbers), x.astype(complex), y.astype(complex))
    assert (found.dtype, found.shape) == (dtype, expected.shape)
    size = np.abs(expected).max(initial=1)
    np.testing.assert_allclose(found, expected, rtol=0, atol=20 * np.finfo(dtype).eps * size)


def test_complex_products_of_many_numbers_and_of_wider_sums() -> None:
    random = np.random.default_rng(4)
    x, y = (
        (random.normal(size=(300, 300)) + 1j * random.normal(size=(300, 300))).astype(np.complex64)
        for _ in range(2)
    )
    expected = x.astype(complex) @ y
    with dt.enable_x64(True):
        found = dt.jit(lambda x, y: x @ y)(x, y)
        wide = dt.jit(lambda x, y: lax.dot(x, y, preferred_element_type=np.complex128))(x, y)
    assert (found.dtype, wide.dtype) == (np.complex64, np.complex128)
    for product in (found, wide):
        np.testing.assert_allclose(product, expected, rtol=0, atol=1e-3)
