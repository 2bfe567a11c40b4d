"""Polynomials against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp

pytestmark = pytest.mark.tables

RNG = np.random.default_rng(5)
PAIRS = [
    (np.array([1, 2, 3]), np.array([1, 2])),
    (np.array([1.0, 2, 3], np.float32), np.array([2], np.int8)),
    (np.array([1], np.float32), np.array([1, 2, 3], np.float32)),
    (np.array([1, 2, 3, 4, 5, 6], np.uint8), np.array([2, 1, 7], np.uint8)),
    (np.array([1j, 2], np.complex64), np.array([1, 3, 1j], np.complex64)),
]


def near(actual: Any, expected: Any, tolerance: float = 1e-5) -> None:
    assert isinstance(actual, jnp.ndarray)
    assert actual.shape == np.shape(expected)
    np.testing.assert_allclose(np.asarray(actual), expected, rtol=tolerance, atol=tolerance)


def sorted_roots(numbers: Any) -> Any:
    return np.sort_complex(np.round(np.asarray(numbers, complex), 3))


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_arithmetic(a: Any, b: Any) -> None:
    near(jnp.polyadd(a, b), np.polyadd(a, b))
    near(jnp.polymul(a, b), np.polymul(a.astype(complex), b))
    assert jnp.polyadd(a, b).dtype == jnp.result_type(a, b)
    if a.dtype != np.uint8:
        near(jnp.polysub(a, b), np.polysub(a, b))
    expected, rest = np.polydiv(a.astype(complex), b)
    quotient, remainder = jnp.polydiv(a, b)
    near(quotient, expected)
    near(remainder, np.concatenate([np.zeros(a.size - rest.size), rest]))
    near(jnp.polydiv(a, b, trim_leading_zeros=True)[1], rest)


def test_zeros_and_scalars() -> None:
    zeros = np.array([0, 0, 1, 2]), np.array([0, 3])
    near(jnp.polymul(*zeros), [0, 0, 0, 3, 6])
    near(jnp.polymul(*zeros, trim_leading_zeros=True), np.polymul(*zeros))
    near(jnp.polymul(np.zeros(2), zeros[1], trim_leading_zeros=True), [0])
    near(jnp.polymul(np.zeros(0), zeros[1]), [0, 0])
    near(jnp.polyadd(2, zeros[1]), [0, 5])
    near(jnp.polydiv(np.array([1.0, 2, 1]), 2)[0], [0.5, 1, 0.5])
    near(jnp.polydiv(np.array([1.0, 2, 1]), np.array([1.0, 1]), trim_leading_zeros=True)[1], [0])
    assert not np.isfinite(np.asarray(jnp.polydiv(np.ones(3), np.array([0.0, 1]))[0])).any()
    divisor = np.array([1.0, 2.0], np.float32)
    jacobian = dt.jit(dt.jacrev(lambda u: jnp.polydiv(u, divisor)[1]))(P)
    near(jacobian, [[0, 0, 0], [0, 0, 0], [4, -2, 1]])


@pytest.mark.parametrize(
    ("dividend", "divisor"),
    [
        ([1.0, 0, 2, 3], [0.0, 2]),
        ([np.nan, 1, 2, 3], [1.0, 2]),
        ([1.0, np.inf, 2, 3], [1.0, 2]),
        ([1.0, 2, 3], [1.0, np.inf]),
        ([1.0, 2, 3, 4], [1.0, np.nan, 2]),
    ],
)
def test_division_of_what_is_not_finite(dividend: list[float], divisor: list[float]) -> None:
    """Where the quotient is not finite, what is left of the dividend is no zero."""
    with np.errstate(all="ignore"):
        expected, rest = np.polydiv(dividend, divisor)
    quotient, remainder = map(np.asarray, jnp.polydiv(np.array(dividend), np.array(divisor)))
    np.testing.assert_array_equal(quotient, expected)
    # Those that NumPy removes are zeros.
    rest = np.concatenate([np.zeros(len(dividend) - len(rest)), rest])
    np.testing.assert_array_equal(np.isnan(remainder), np.isnan(rest))


@pytest.mark.parametrize("m", [0, 1, 2, 4])
def test_calculus(m: int) -> None:
    for p in (PAIRS[0][0], PAIRS[4][0]) if m else (np.zeros(0, np.float32),):
        near(jnp.polyder(p, m), np.polyder(p, m))
        near(jnp.polyint(p, m), np.polyint(p, m))
        constants = np.arange(1, m + 1)
        near(jnp.polyint(p, m, constants), np.polyint(p, m, constants))
    near(jnp.polyint(PAIRS[0][0], m, 3), np.polyint(PAIRS[0][0], m, 3))
    assert jnp.polyder(np.array([1, 2], np.int8), m).dtype == jnp.float32


def test_polyint_of_several_constants() -> None:
    near(jnp.polyint(np.ones(1), 3, np.array([4j, 5, 6])), np.polyint(np.ones(1), 3, [4j, 5, 6]))


def test_polyval() -> None:
    for size, unroll in ((0, None), (3, None), (40, None), (3, 2)):
        p, x = RNG.normal(size=size).astype("f"), RNG.uniform(-1, 1, (2, 3)).astype("f")
        near(jnp.polyval(p, x, unroll=unroll), np.polyval(p, x))
    assert jnp.polyval(np.arange(20), 1).dtype == jnp.int32
    truth = np.array([True, False])
    for coefficients in (truth, truth[::-1], np.repeat(truth, 20)):
        found = jnp.polyval(coefficients, truth)
        assert found.tolist() == np.polyval(coefficients, truth).tolist()
    near(dt.jit(dt.grad(lambda v: jnp.polyval(np.ones(30, "f"), v)))(0.5), 4.0)


def test_poly() -> None:
    for zeros in (np.array([1, 2, 3]), np.array([1j, -1j, 2]), np.array([])):
        near(jnp.poly(zeros), np.poly(zeros))
    near(jnp.poly(2.0), [1, -2])
    for zeros in ([np.nan, 1.0], [1.0, np.inf], [np.inf, 2.0, -np.inf], [np.inf]):
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(jnp.poly(jnp.array(zeros)), np.poly(zeros))
    matrix = RNG.normal(size=(4, 4))
    near(jnp.poly(matrix), np.poly(matrix), 1e-4)
    assert jnp.poly(matrix).dtype == jnp.complex64
    near(dt.jit(dt.jacrev(jnp.poly))(np.array([2.0, 3.0], np.float32)), [[0, 0], [-1, -1], [3, 2]])


def test_roots() -> None:
    for p in (
        *(np.array([0, 0, 1, 2, 3, 0, 0]), np.array([1j, 2, 3]), np.array([1, -6, 11, -6])),
        *(np.zeros(3), np.zeros(0), np.array(2.0), RNG.normal(size=8)),
    ):
        found = jnp.roots(p)
        assert found.dtype == jnp.complex64
        expected = np.roots(np.atleast_1d(p))
        np.testing.assert_allclose(sorted_roots(found), sorted_roots(expected), atol=2e-3)
    for p in (np.zeros(0), np.zeros(1), np.ones(1)):  # of which nothing has to be known
        assert dt.jit(jnp.roots)(p).shape == (0,)
    traced = dt.jit(lambda p: jnp.roots(p, strip_zeros=False))
    p = np.array([0, 0, 1, 2, 3, 0, 0.0])
    found = np.asarray(traced(p))
    np.testing.assert_allclose(sorted_roots(found[:2]), sorted_roots(np.roots(p[2:5])))
    np.testing.assert_array_equal(found[2:4], 0)
    assert np.isnan(found[4:]).all()
    assert np.isnan(np.asarray(traced(p * 0))).all()


X = np.linspace(-1, 2, 12)
Y = RNG.normal(size=(12, 3))
WEIGHTS = RNG.uniform(0.5, 2, 12)


@pytest.mark.parametrize(("y", "w"), [(Y[:, 0], None), (Y, WEIGHTS)])
def test_polyfit(y: Any, w: Any) -> None:
    near(jnp.polyfit(X, y, 3, w=w), np.polyfit(X, y, 3, w=w), 1e-4)
    for actual, expected in zip(
        jnp.polyfit(X, y, 3, w=w, full=True), np.polyfit(X, y, 3, w=w, full=True), strict=True
    ):
        if isinstance(expected, float):
            near(actual, 12 * float(np.finfo("f").eps))
        else:
            near(
                actual, np.ravel(expected) if y.ndim == 1 and np.ndim(expected) else expected, 1e-4
            )
    for cov in (True, "unscaled"):
        near(
            jnp.polyfit(X, y, 3, w=w, cov=cov)[1], np.polyfit(X, y, 3, w=w, cov=cov)[1], 1e-4
        )  # fmt: skip


def test_polyfit_of_other_points() -> None:
    near(jnp.polyfit(np.arange(4), np.arange(4) ** 2, 2), [1, 0, 0])
    half = jnp.polyfit(np.arange(4, dtype="float16"), np.arange(4, dtype="float16"), 1)
    assert half.dtype == jnp.float16
    z, values = X + 1j * Y[:, 0], X - 1j * Y[:, 1]
    near(jnp.polyfit(z, values, 2), np.polyfit(z, values, 2), 1e-4)
    _, covariance = jnp.polyfit(z, values, 2, cov="unscaled")
    basis = np.vander(z, 3)
    near(covariance, np.linalg.inv(basis.conj().T @ basis), 1e-4)
    # More coefficients than points: the solution of least length among those scaled alike.
    c, errors, rank, *_ = jnp.polyfit(np.arange(3.0), np.array([1.0, 0, 2]), 5, full=True)
    near(jnp.polyval(c, np.arange(3.0)), [1, 0, 2], 1e-4)
    assert int(rank) == 3
    near(errors, [0])
    with pytest.warns(np.exceptions.RankWarning):
        expected = np.polyfit(X, Y[:, 0], 3, rcond=0.5)
    near(jnp.polyfit(X, Y[:, 0], 3, rcond=0.5), expected, 1e-4)


def test_gradient_of_polyfit() -> None:
    x, y = X.astype("f"), Y[:, 0].astype("f")
    total = dt.grad(lambda x, y: (jnp.polyfit(x, y, 2) * np.arange(3)).sum(), (0, 1))
    gradients = dt.jit(total)(x, y)
    near(gradients[1], np.arange(3) @ np.linalg.pinv(np.vander(X, 3)), 1e-4)
    step = 1e-5 * np.eye(12)[3]
    slope = (np.polyfit(X + step, Y[:, 0], 2) - np.polyfit(X - step, Y[:, 0], 2)) / 2e-5
    near(gradients[0][3], slope @ np.arange(3), 1e-3)


Concrete = dt.errors.ConcretizationTypeError
P = np.array([1.0, 2.0, 3.0])
M = np.ones((2, 3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: jnp.polyadd(M, P), ValueError, "polyadd: a1 and a2 must have the same rank"),
        (lambda: jnp.polyadd(P > 0, P > 0), TypeError, "polyadd.*booleans"),
        (lambda: jnp.polysub([1], P), TypeError, "a1.*list"),
        (lambda: jnp.polymul(P, M), ValueError, "polymul: a2.*vector"),
        (lambda: jnp.polydiv(P, np.ones(0)), ValueError, "v must hold"),
        (lambda: dt.jit(lambda p: jnp.polymul(p, p, trim_leading_zeros=True))(P), Concrete, "trim"),
        (lambda: dt.jit(lambda p: jnp.polydiv(p, p, trim_leading_zeros=True))(P), Concrete, "trim"),
        (lambda: jnp.polyder(P, -1), ValueError, "polyder: m.*negative"),
        (lambda: jnp.polyint(P, -1), ValueError, "polyint: m.*negative"),
        (lambda: jnp.polyint(P, 1, np.ones(2)), ValueError, "k must hold"),
        (lambda: jnp.polyint(P, 1, [1]), TypeError, "k.*list"),
        (lambda: jnp.polyval(2.0, 1.0), ValueError, "vector"),
        (lambda: jnp.poly(M), ValueError, "square"),
        (lambda: jnp.roots(M), ValueError, "roots: p.*vector"),
        (lambda: dt.jit(jnp.roots)(P), Concrete, "strip_zeros=False"),
        (lambda: jnp.polyfit(M, P, 1), TypeError, "x must be a vector"),
        (lambda: jnp.polyfit(np.ones(0), np.ones(0), 1), TypeError, "not empty"),
        (lambda: jnp.polyfit(P, M, 1), TypeError, "3 rows"),
        (lambda: jnp.polyfit(P, P, 1, w=np.ones(2)), TypeError, "w must have"),
        (lambda: jnp.polyfit(P, P, -1), ValueError, "deg.*negative"),
        (lambda: jnp.polyfit(P, P, 2, cov=True), ValueError, "more than 3 points"),
    ],
)
def test_errors(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
