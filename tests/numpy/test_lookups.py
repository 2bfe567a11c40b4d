"""Parts of floats, membership, bins, interpolation and indices against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

pytestmark = pytest.mark.tables

RNG = np.random.default_rng(3)
SPECIAL = [0.0, -0.0, 1.0, -1.5, 3.7e8, -2e-6, np.inf, -np.inf, np.nan, 1e-40, 6e-8]


def same(actual: Any, expected: Any) -> None:
    assert isinstance(actual, jnp.ndarray)
    assert actual.shape == np.shape(expected)
    actual, expected = np.asarray(actual), np.asarray(expected)
    if actual.dtype == expected.dtype and actual.dtype.isbuiltin != 1:  # unknown nan
        actual, expected = actual.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_parts_of_floats(dtype: str) -> None:
    with dt.enable_x64(dtype == "float64"), np.errstate(all="ignore"):
        x = np.array(SPECIAL).astype(dtype)
        normal = x if dtype != "float32" else x[:-2]  # XLA flushes subnormal numbers of 32 bits
        same(jnp.signbit(x), np.signbit(x))
        for y in (x[::-1], np.array(-0.0, dtype), np.array(1.0, dtype)):
            same(jnp.copysign(x, y), np.copysign(x, y))
        same(jnp.nextafter(normal, np.array(2, dtype)), np.nextafter(normal, np.array(2, dtype)))
        smallest = np.finfo(dtype).smallest_subnormal
        for value in (*x, smallest, -smallest, 7 * smallest, np.finfo(dtype).tiny - smallest):
            expected = np.frexp(value)
            for run in (jnp.frexp, dt.jit(jnp.frexp), dt.vmap(jnp.frexp)):
                mantissa, exponent = run(value.reshape(1))
                same(mantissa, expected[0].reshape(1))
                if np.isfinite(value):
                    same(exponent, expected[1].reshape(1))
        for power in (-300, -20, -1, 0, 3, 15, 40, 300):
            for value in (1.0, -1.5, 0.75, 0.0, np.inf):
                number = np.array(value, dtype)
                expected = np.ldexp(number, power)
                if dtype != "float32" or not 0 < abs(expected) < 2e-38:
                    same(jnp.ldexp(number, power), expected)


NARROW = ("float16", "bfloat16", "float8_e4m3", "float8_e3m4", "float8_e4m3fn", "float8_e5m2")
#: Their exponents have other biases than those of IEEE.
NARROW_OTHERS = ("float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz")


@pytest.mark.parametrize("dtype", [*NARROW, *NARROW_OTHERS])
def test_the_parts_of_every_number(dtype: str) -> None:
    target = np.dtype(getattr(ml_dtypes, dtype, dtype))
    bits = 8 * target.itemsize
    numbers = np.arange(2**bits, dtype=f"uint{bits}").view(target)
    with np.errstate(all="ignore"):
        expected = np.frexp(numbers.astype(np.float32))
        mantissa, exponent = jnp.frexp(numbers)
        same(mantissa, expected[0].astype(target))
        finite = np.isfinite(expected[0])
        same(exponent, np.where(finite, expected[1], 0))
        for power in (-9, -1, 0, 2, 7) if dtype != "bfloat16" else ():
            same(jnp.ldexp(numbers, power), np.ldexp(numbers.astype(float), power).astype(target))


@pytest.mark.parametrize("dtype", [*NARROW, *NARROW_OTHERS])
def test_the_spacing_of_every_number(dtype: str) -> None:
    target = np.dtype(getattr(ml_dtypes, dtype, dtype))
    bits = 8 * target.itemsize
    numbers = np.arange(2**bits, dtype=f"uint{bits}").view(target)
    with np.errstate(all="ignore"):
        # For negative numbers NumPy gives float16 the spacing towards zero, which differs in sign,
        # and at powers of two in size.
        positive = numbers[: 2 ** (bits - 1)]
        expected = np.spacing(positive)
        same(jnp.spacing(positive), expected)
        expected[0] = -expected[0]
        same(dt.jit(jnp.spacing)(-positive), -expected)


def test_the_spacing_of_small_and_large_numbers() -> None:
    numbers = np.array([0.0, 1e-40, 1e-38, 1.0, 3.4028235e38, np.inf, np.nan], np.float32)
    numbers = np.concatenate([numbers, -numbers])
    with np.errstate(all="ignore"):
        same(jnp.spacing(numbers), np.spacing(numbers))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_powers_of_two_of_every_integer(dtype: str) -> None:
    with dt.enable_x64(True), np.errstate(all="ignore"):
        limits = np.iinfo(dtype)
        powers = np.array([0, 1, 3, limits.max, limits.min, limits.max - 1, limits.min + 1], dtype)
        expected = np.ldexp(1.5, np.clip(powers.astype(object), -(2**31), 2**31 - 1).astype("i4"))
        same(jnp.ldexp(1.5, powers), expected)


def test_parts_of_other_numbers() -> None:
    same(jnp.signbit(np.array([-1, 0, 2])), [True, False, False])
    same(jnp.signbit(np.array([1, 0], "uint8")), [False, False])
    same(jnp.copysign(np.array([1, 2]), -1), [-1.0, -2.0])
    same(jnp.ldexp(np.array([1, 2]), np.array([[1], [2]])), [[2.0, 4.0], [4.0, 8.0]])
    assert jnp.signbit(jnp.array(-0.0, "bfloat16")).tolist() is True
    assert float(dt.grad(lambda x: jnp.ldexp(x, 3))(1.5)) == 8.0
    assert float(dt.grad(lambda x: jnp.frexp(x)[0])(3.0)) == 0.25
    assert float(dt.grad(lambda x: jnp.copysign(x, -1.0))(2.0)) == -1.0


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool"])
def test_isin(dtype: str) -> None:
    x = RNG.integers(0, 9, (3, 4)).astype(dtype)
    for y in (np.array([1, 4, 7, 7]), np.array([[2], [3]]), np.array([]), np.array(3)):
        y = y.astype(dtype)
        same(jnp.isin(x, y), np.isin(x, y))
        same(jnp.isin(x, y, invert=True), np.isin(x, y, invert=True))
        same(dt.jit(jnp.isin)(x, y), np.isin(x, y))
        for method in ("auto", "binary_search", "sort", "compare_all"):
            same(jnp.isin(x, y, method=method), np.isin(x, y))
    same(jnp.isin(np.array([np.nan, 1.0]), np.array([np.nan, 1.0])), [False, True])


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("edges", [[0.0, 1.0, 2.5], [2.5, 1.0, 0.0], [1.0], []])
def test_digitize(edges: list[float], right: bool) -> None:
    x = np.array([[-1.0, 0.0, 0.5], [1.0, 2.5, 9.0]])
    bins = np.array(edges)
    same(jnp.digitize(x, bins, right), np.digitize(x, bins, right))


def test_bincount() -> None:
    x = np.array([1, 3, 1, 0])
    weights = np.array([0.5, 1.0, 2.0, 4.0], np.float32)
    same(jnp.bincount(x), np.bincount(x))
    same(jnp.bincount(x, weights), np.bincount(x, weights))
    many = np.full(300, 1, "int8")
    same(jnp.bincount(many, many), np.bincount(many, many))
    same(jnp.bincount(x, x > 0), np.bincount(x, x > 0))
    same(jnp.bincount(x, minlength=6), np.bincount(x, minlength=6))
    same(jnp.bincount(np.array([], int)), np.bincount(np.array([], int)))
    same(dt.jit(lambda v: jnp.bincount(v, length=3))(x), [1, 2, 0])
    same(jnp.bincount(np.array([-5, 9]), length=3), [1, 0, 0])
    same(jnp.bincount(x, minlength=7, length=2), [1, 2])
    same(jnp.bincount(x, length=0), np.zeros(0, int))
    same(dt.grad(lambda w: (jnp.bincount(x, w) ** 2).sum())(weights), [5.0, 2.0, 5.0, 8.0])


def test_interp() -> None:
    xp = np.array([0.0, 1.0, 3.0, 4.5])
    fp = np.array([1.0, -2.0, 5.0, 0.5])
    x = np.array([[-1.0, 0.0, 0.25], [2.0, 4.5, 9.0]])

    def close(actual: Any, expected: Any) -> None:
        np.testing.assert_allclose(np.asarray(actual), expected, rtol=1e-5, atol=1e-5)

    close(jnp.interp(x, xp, fp), np.interp(x, xp, fp))
    close(dt.jit(jnp.interp)(x, xp, fp), np.interp(x, xp, fp))
    close(jnp.interp(x, xp, fp, left=7, right=-7), np.interp(x, xp, fp, left=7, right=-7))
    close(jnp.interp(x, xp[::-1], fp, period=5.0), np.interp(x, xp[::-1], fp, period=5.0))
    for period in (5.0, -2.5):
        found = dt.jit(lambda p: jnp.interp(x, xp, fp, period=p))(period)
        close(found, np.interp(x, xp, fp, period=period))
    close(jnp.interp(x, xp[:1], fp[:1]), np.interp(x, xp[:1], fp[:1]))
    close(jnp.interp(x, xp, fp + 1j), np.interp(x, xp, fp + 1j))
    assert float(dt.grad(lambda v: jnp.interp(v, xp, fp))(2.0)) == pytest.approx(3.5)
    # The lines through the first two points and the last two, at -1 and at 9.
    for left, right, ends in (
        ("extrapolate", None, (4.0, 0.5)),
        (7, "extrapolate", (7.0, -13.0)),
        ("extrapolate", "extrapolate", (4.0, -13.0)),
    ):
        expected = np.interp(x, xp, fp, ends[0], ends[1])
        close(jnp.interp(x, xp, fp, left, right), expected)
        close(dt.jit(lambda v: jnp.interp(v, xp, fp, left, right))(x), expected)  # noqa: B023
        close(jnp.interp(x, xp[:1], fp[:1], right="extrapolate"), np.interp(x, xp[:1], fp[:1]))
        close(jnp.interp(x, xp, fp, left, right, 5.0), np.interp(x, xp, fp, period=5.0))


def test_positions_and_indices() -> None:
    shape = (3, 4, 2)
    positions = np.array([[0, 5], [23, 7]])
    for actual, expected in zip(
        jnp.unravel_index(positions, shape), np.unravel_index(positions, shape), strict=True
    ):
        same(actual, expected)
    same(jnp.unravel_index(-1, shape)[0], 2)
    index = np.unravel_index(positions, shape)
    for order in ("C", "F"):
        same(
            jnp.ravel_multi_index(index, shape, order=order),
            np.ravel_multi_index(index, shape, order=order),
        )
    for mode in ("clip", "wrap"):
        far = (np.array([5, -1]), np.array([9, 2]), np.array([0, 7]))
        expected = np.ravel_multi_index(far, shape, mode=mode)
        same(jnp.ravel_multi_index(far, shape, mode=mode), expected)
        same(dt.jit(lambda *i: jnp.ravel_multi_index(i, shape, mode=mode))(*far), expected)  # noqa: B023  # called at once
    same(jnp.diag_indices(3)[1], [0, 1, 2])
    same(jnp.diag_indices_from(np.ones((2, 2, 2)))[2], [0, 1])
    for a, b in zip(
        jnp.tril_indices_from(np.ones((2, 3)), 1), np.tril_indices(2, 1, 3), strict=True
    ):
        same(a, b)
    for a, b in zip(jnp.triu_indices_from(np.ones((2, 3))), np.triu_indices(2, 0, 3), strict=True):
        same(a, b)


def test_polynomials_and_products() -> None:
    p, x = np.array([1.0, -2.0, 0.5]), np.array([[0.0, 1.5], [-2.0, 3.0]])
    np.testing.assert_allclose(np.asarray(jnp.polyval(p, x)), np.polyval(p, x), rtol=1e-6)
    same(jnp.polyval(np.array([], int), np.array([1, 2])), [0, 0])
    matrix, vector = RNG.normal(size=(5, 2, 3)), RNG.normal(size=(5, 3))
    np.testing.assert_allclose(
        np.asarray(jnp.matvec(matrix, vector)),
        np.einsum("bij,bj->bi", matrix, vector),
        rtol=1e-4,
        atol=1e-5,
    )
    np.testing.assert_allclose(
        np.asarray(jnp.vecmat(vector[:, :2], matrix)),
        np.einsum("bi,bij->bj", vector[:, :2], matrix),
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.signbit(1j), TypeError, "signbit"),
        (lambda: jnp.ldexp(1.0, 2.0), TypeError, "ldexp.*integer"),
        (lambda: jnp.frexp(1j), TypeError, "frexp"),
        (lambda: jnp.isin([1], np.ones(2)), TypeError, "isin.*list"),
        (lambda: jnp.bincount(np.ones(2, int), length=-1), ValueError, "length"),
        (lambda: jnp.isin(np.ones(2), np.ones(2), method="foo"), ValueError, "method"),
        (lambda: jnp.digitize(np.ones(2), np.ones((2, 2))), ValueError, "digitize.*vector"),
        (lambda: jnp.bincount(np.ones(2)), TypeError, "bincount.*integers"),
        (lambda: jnp.bincount(np.ones((2, 2), int)), ValueError, "vector"),
        (lambda: jnp.bincount(np.ones(2, int), np.ones(3)), ValueError, "weights"),
        (
            lambda: dt.jit(jnp.bincount)(np.ones(2, int)),
            dt.errors.ConcretizationTypeError,
            "length=",
        ),
        (lambda: jnp.interp(1.0, np.ones(2), np.ones(3)), ValueError, "equal size"),
        (lambda: jnp.interp(1.0, np.ones(2), np.ones(2), period=0), ValueError, "period"),
        (lambda: jnp.interp(1.0, np.ones(2), np.ones(2), left="a"), ValueError, "left.*'a'"),
        (
            lambda: jnp.interp(1.0, np.ones(2), np.ones(2), left=np.ones(2)),
            ValueError,
            "left.*scalar",
        ),
        (lambda: jnp.interp(1.0, np.ones(2), np.ones(2), right="b"), ValueError, "right.*'b'"),
        (lambda: jnp.unravel_index(1.5, (2, 2)), TypeError, "integer"),
        (lambda: jnp.ravel_multi_index((np.array([5]),), (3,)), ValueError, "out of bounds"),
        (lambda: jnp.ravel_multi_index((np.array([1]),), (3, 2)), ValueError, "1 index for 2"),
        (lambda: jnp.polyval(2.0, 1.0), ValueError, "vector"),
        (lambda: jnp.diag_indices_from(np.ones((2, 3))), ValueError, "equal sizes"),
        (lambda: jnp.tril_indices_from(np.ones(3)), ValueError, "matrix"),
        (lambda: jnp.digitize(1j, np.ones(2)), TypeError, "digitize.*complex"),
        (lambda: jnp.digitize(1.0, np.ones(2) + 1j), TypeError, "digitize.*complex"),
        (lambda: jnp.interp(1j, np.ones(2), np.ones(2)), TypeError, "interp.*complex"),
        (lambda: jnp.interp(1.0, np.ones(2), np.ones(2), period="1"), TypeError, "interp.*period"),
        (lambda: jnp.ravel_multi_index(None, (2,)), TypeError, "multi_index.*NoneType"),
        (lambda: jnp.ravel_multi_index((1,), None), TypeError, "dims.*NoneType"),
        (lambda: jnp.mask_indices(2, "triu"), TypeError, "mask_indices.*mask_func.*str"),
        (lambda: jnp.power(2, np.array(["a"])), TypeError, "x2 of power.*text"),
        (lambda: jnp.take(np.array(["a"]), 0), TypeError, "a of take.*text"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
