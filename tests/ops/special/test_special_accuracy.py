"""Errors of special functions of several operands, in units in the last place.

What is exact is computed by mpmath with many digits, by formulas that are not those of the library:
power series, continued fractions, and sums with more terms.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import pytest

import dovetail
from dovetail import lax

NDArray = np.ndarray[Any, Any]
Exact = Callable[..., Any]

DTYPES = (np.float64, np.float32)
#: A shape below which incomplete gamma functions are nearly zero or one.
TINY = 1e-100


def with_digits(exact: Exact) -> Exact:
    """A function computed with many digits, and with more where one minus it is tiny."""

    def computed(*args: Any) -> Any:
        with mpmath.workprec(2400 if args[0] < TINY else 300):
            return exact(*args)

    return computed


def product(*columns: Any) -> NDArray:
    """Every combination of numbers, as rows of arguments."""
    return np.array(list(itertools.product(*columns))).T


def worst(name: str, exact: Exact, args: NDArray, dtype: Any) -> float:
    """The largest error; for negative numbers, divided by the condition number if that is larger
    than one: some functions have zeros there.

    Subnormal operands and infinite ones are left out. Subnormal results may be zero. Infinities
    must have the right sign.
    """
    exact = with_digits(exact)
    info = np.finfo(dtype)
    with np.errstate(all="ignore"):
        operands = args.astype(dtype)
    with dovetail.enable_x64(True):
        results = np.asarray(dovetail.jit(getattr(lax, name))(*operands))
    found = 0.0
    for got, *point in zip(results, *operands, strict=True):
        if not all(info.smallest_normal <= abs(p) <= info.max for p in point):
            continue
        numbers = [mpmath.mpf(float(p)) for p in point]
        want = exact(*numbers)
        size = abs(want)
        if size > float(info.max):
            assert math.isinf(got), (name, point)
            assert got * want > 0, (name, point)
            continue
        if size < float(info.smallest_normal):
            assert abs(got) <= 2 * info.smallest_normal, (name, point)
            continue
        unit = mpmath.ldexp(1, int(mpmath.frexp(size)[1]) - 1 - info.nmant)
        error = float(abs(mpmath.mpf(float(got)) - want) / unit)
        if point[-1] < 0 and error > 1:
            *others, last = numbers
            step = last * mpmath.mpf(2) ** -100
            change = exact(*others, last + step) - exact(*others, last - step)
            error /= max(1.0, float(abs(change * last / (2 * step * want))))
        assert np.isfinite(error), (name, point, got)
        found = max(found, error)
    return found


# The Hurwitz zeta function


def zeta_sum(s: Any, q: Any) -> Any:
    """Euler-Maclaurin summation, DLMF 25.11.28."""
    z = q + 40
    total = mpmath.fsum((q + k) ** -s for k in range(40))
    power = z**-s
    total += power * z / (s - 1) + power / 2
    factor = s * power / z / 2
    for k in range(1, 41):
        total += mpmath.bernoulli(2 * k) * factor
        factor *= (s + 2 * k - 1) * (s + 2 * k) / ((2 * k + 1) * (2 * k + 2) * z * z)
    return total


def zeta(s: Any, q: Any) -> Any:
    """For q < 0 the terms of negative numbers one by one."""
    first = mpmath.ceil(q) if q < 0 else 0
    head = mpmath.fsum((q + k) ** -s for k in range(int(-first) + 1)) if q < 0 else 0
    return head + zeta_sum(s, q - first + 1 if q < 0 else q)


def polygamma(m: Any, x: Any) -> Any:
    return (-1) ** (int(m) + 1) * mpmath.gamma(m + 1) * zeta(m + 1, x)


EXPONENTS = [1 + 2.0**-52, 1 + 1e-10, 1.001, 1.5, 2, 3.7, 8, 21, 77.7, 300, 1000]
ORDERS = [1, 2, 3, 6, 7, 8, 20, 75, 170, 171, 400, 2000]
PLACES = [1e-300, 1e-20, 1e-10, 0.01, 0.3, 0.999999, 1, 1.3, 2.5, 6, 9.1, 17, 26.7, 30, 111, 333]
PLACES += [733.5, 1e3, 3680, 12345, 1e6, 1e9, 1e15, 1e30, 1e100, 1e307]
NEGATIVE = [-1e-20, -1e-3, -0.3, -0.7, -0.999, -1.2, -2.9, -7.31, -25.4]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("exact", "orders", "whole"),
    [(zeta, EXPONENTS, [2, 3, 4, 11, 20, 101]), (polygamma, ORDERS, [1, 2, 3, 10, 21, 100])],
    ids=["zeta", "polygamma"],
)
def test_zeta(exact: Exact, orders: list[float], whole: list[float], dtype: Any) -> None:
    args = [product(orders, PLACES), product(whole, NEGATIVE)]
    points = np.concatenate(args, axis=1)
    if exact is zeta:
        points = points[:, points[0].astype(dtype) > 1]
    limit = 6 if dtype == np.float64 else 1
    assert worst(exact.__name__, exact, points, dtype) <= limit


INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
@pytest.mark.parametrize(
    ("name", "cases"),
    [
        (
            "digamma",
            {
                (0.0,): -INF,
                (-2,): NAN,
                (INF,): INF,
                (-INF,): NAN,
                (NAN,): NAN,
            },
        ),
        (
            "zeta",
            {
                # At poles as SciPy has it; elsewhere limits.
                (1, 2): INF,
                (1, -0.5): INF,
                (0.5, 2): NAN,
                (-2, 1): NAN,
                (2, 0): INF,
                (3, -0.0): INF,
                (3, -2): INF,
                (2.5, -2): INF,
                (2.5, -2.5): NAN,
                (2, -INF): INF,
                (2, INF): 0,
                (INF, 2): 0,
                (INF, 1): 1,
                (INF, 0.5): INF,
                (INF, INF): 0,
                (NAN, 2): NAN,
                (2, NAN): NAN,
                (3, -0.5): 0.4143983221171599,
                (254, 0.03125): INF,
                (255, -0.96875): INF,
                (255, -0.03125): -INF,
            },
        ),
        (
            "polygamma",
            {
                (0, 1): -0.5772156649015329,
                (0, INF): INF,
                (0, 0): -INF,
                (0, -2): NAN,
                (1, 0): INF,
                (2, 0): -INF,
                (1, -1): INF,
                (2, -1): -INF,
                (1, INF): 0,
                (1, -INF): INF,
                (2, -0.5): -0.8287966442343199,
                (254, 0.25): -INF,
                (255, 0.25): INF,
                (254, -0.75): -INF,
                (254, -0.25): INF,
                (1.5, 2): NAN,
                (-1, 2): NAN,
                (INF, 2): NAN,
                (NAN, 1): NAN,
                (1, NAN): NAN,
            },
        ),
    ],
)
def test_special_values_of_zeta(name: str, cases: dict[Any, float], dtype: str) -> None:
    number = dovetail.dtypes.canonicalize_dtype
    with dovetail.enable_x64(True):
        args = np.array(list(cases)).T.astype(number(dtype))
        found = np.asarray(getattr(lax, name)(*args)).astype(float)
        tolerance = 2 * float(dovetail.dtypes.finfo(number(dtype)).eps)
    assert found.tolist() == pytest.approx(list(cases.values()), rel=tolerance, nan_ok=True)


# Incomplete gamma and beta functions


def gamma_tail(a: Any, x: Any) -> tuple[Any, bool]:
    """The lower function by its series, DLMF 8.7.1, or the upper one by 8.9.2."""
    least = mpmath.ldexp(1, -mpmath.mp.prec // 2)
    weight = mpmath.exp(a * mpmath.log(x) - x - mpmath.loggamma(a))
    if x < a + 1 or a < TINY:
        k, term = 0, 1 / a
        total = term
        while term > total * least:
            k += 1
            term *= x / (a + k)
            total += term
        return weight * total, False
    d = 1 / (x + 1 - a)
    c, total, k, change = mpmath.inf, d, 0, mpmath.mpf(0)
    while abs(change - 1) > least:
        k += 1
        factor, base = -k * (k - a), x + 2 * k + 1 - a
        c, d = base + factor / c, 1 / (base + factor * d)
        change = c * d
        total *= change
    return weight * total, True


def igamma(a: Any, x: Any) -> Any:
    tail, upper = gamma_tail(a, x)
    return 1 - tail if upper else tail


def igammac(a: Any, x: Any) -> Any:
    tail, upper = gamma_tail(a, x)
    return tail if upper else 1 - tail


def slope(a: Any, x: Any) -> Any:
    step = min(a, mpmath.mpf(1)) * mpmath.mpf(2) ** -60
    upper = x > a + 1
    low, high = (igammac(b, x) if upper else igamma(b, x) for b in (a - step, a + step))
    return (low - high if upper else high - low) / (2 * step)


def random_gamma_grad(a: Any, x: Any) -> Any:
    return -slope(a, x) / mpmath.exp((a - 1) * mpmath.log(x) - x - mpmath.loggamma(a))


def beta_fraction(a: Any, b: Any, x: Any) -> Any:
    """DLMF 8.17.22."""
    log_beta = mpmath.loggamma(a) + mpmath.loggamma(b) - mpmath.loggamma(a + b)
    weight = mpmath.exp(a * mpmath.log(x) + b * mpmath.log(1 - x) - log_beta) / a
    d = 1 / (1 - (a + b) * x / (a + 1))
    c, total, m, change = mpmath.mpf(1), d, 0, mpmath.mpf(0)
    while abs(change - 1) > mpmath.ldexp(1, -150):
        m += 1
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for factor in (even, odd):
            c, d = 1 + factor / c, 1 / (1 + factor * d)
            change = c * d
            total *= change
    return weight * total


def betainc(a: Any, b: Any, x: Any) -> Any:
    if x < (a + 1) / (a + b + 2):
        return beta_fraction(a, b, x)
    return 1 - beta_fraction(b, a, 1 - x)


GAMMA = np.concatenate(
    [
        product([1e-300, 1e-3, 0.4, 7.9, 15.9, 16.1], [1e-30, 1e-3, 0.2, 0.76, 3, 14, 60]),
        product([30.0, 500.0, 7e3], [0.3, 0.51, 0.9, 0.999, 1, 1.02, 1.2, 1.49, 2.5]),
    ],
    axis=1,
)
GAMMA[1, -27:] *= GAMMA[0, -27:]
BETA = product([1e-3, 0.4, 5, 60, 2e3], [2e-3, 0.7, 45, 1e3], [1e-9, 0.2, 0.5, 0.99])


@pytest.mark.parametrize(
    ("exact", "args", "dtype"),
    [
        (igamma, GAMMA, np.float64),
        (igammac, GAMMA, np.float64),
        (igammac, GAMMA, np.float32),
        (slope, GAMMA, np.float64),
        (random_gamma_grad, GAMMA, np.float64),
        (random_gamma_grad, GAMMA, np.float32),
        (betainc, BETA, np.float64),
        (betainc, BETA, np.float32),
    ],
)
def test_distributions(exact: Exact, args: NDArray, dtype: Any) -> None:
    name = "igamma_grad_a" if exact is slope else exact.__name__
    assert worst(name, exact, args, dtype) <= (8 if dtype == np.float64 else 1)


# Modified Bessel functions


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", [0, 1])
def test_scaled_bessel_functions(order: int, dtype: Any) -> None:
    points = np.concatenate([10.0 ** np.linspace(-30, 4, 80), np.linspace(-20, 20, 200)])

    def exact(x: Any) -> Any:
        return mpmath.besseli(order, x) * mpmath.exp(-abs(x))

    assert worst(f"bessel_i{order}e", exact, points[None], dtype) <= 4
