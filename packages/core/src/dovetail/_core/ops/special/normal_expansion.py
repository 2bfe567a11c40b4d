"""Uniform expansions of distribution functions that are close to the normal distribution.

Source: N. M. Temme, On the computation of the incomplete gamma functions for large values of the
parameters (1987), for the gamma distribution. The one for the beta distribution is derived in the
same way, from the differential equation of its density.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dovetail._core.hlo.expressions import Expression, repeat_downwards

NDArray = np.ndarray[Any, Any]


class Expansion:
    """The correction to the normal distribution: a sum S of powers of the distance y.

    S = sum of b[n] y**n / factor, where b[n - 1] = f[n] + (n + 1) / shape b[n + 1] and factor = 1 +
    b[1] / shape. The numbers f[n] are the coefficients of the density as a function of y.

    Args:
        shape: the inverse of the variance, for a mean of one.
        y: distances from the mean, see `NormalTail`.
        series: f[n], or as polynomials in `skewness`; see `beta_series`.
        variance: the argument of these polynomials.
        skewness: the factor of the polynomials of odd n.
    """

    def __init__(
        self,
        shape: Expression,
        y: Expression,
        series: NDArray,
        variance: Expression | None = None,
        skewness: Expression | None = None,
    ) -> None:
        last = len(series) - 1
        inverse = 1.0 / shape

        def coefficient(entry: Any) -> Any:
            if variance is None or skewness is None:
                return entry
            odd, *polynomial = entry
            return variance.polynomial(polynomial) * (odd * (skewness - 1.0) + 1.0)

        def step(n: Expression, entry: Any, *before: Expression) -> Sequence[Expression]:
            total, b, above, change, d, d_above = before
            ratio = (n + 1.0) * inverse
            return (
                total * y + b,
                ratio * above + coefficient(entry),
                b,
                change * y + d,
                ratio * (d_above - above * inverse),
                d,
            )

        zero = shape.constant(0.0)
        highest, next_highest = (
            coefficient(shape.constant(f) if np.ndim(f) == 0 else [shape.constant(c) for c in f])
            for f in series[: last - 2 : -1]
        )
        total, b, above, change, d, d_above = repeat_downwards(
            last - 1,
            step,
            *(highest, next_highest, highest, zero, zero, zero),
            table=series,
            steps_in_a_turn=5 if variance is None else 1,
        )
        self.factor = above * inverse + 1.0
        self.sum = (total * y + b) / self.factor
        growth = (d_above - above * inverse) * inverse
        #: The derivative of the sum in `shape`.
        self.derivative = (change * y + d - self.sum * growth) / self.factor
        #: The sum, divided by the density at the mean.
        self.total = self.sum / (shape * (2 * math.pi)).sqrt()


@functools.cache
def gamma_series(exact: bool) -> NDArray:
    """f[n] for the gamma distribution: coefficients of y / m(y), where y**2 / 2 = m - log(1 + m).

    Its shape is a. Source: the differential equation m m' = y (1 + m).
    """
    return beta_series(exact)[:, 1]


@functools.cache
def beta_series(exact: bool) -> NDArray:
    """f[n] for the beta distribution with parameters a and b, whose shape is a b / (a + b).

    With p = a / (a + b), the variance w = p (1 - p) and the skewness e = 1 - 2 p, they are the
    coefficients of y / m(y) in y, where m m' = y (1 + e m - w m**2): a polynomial in w, times e for
    odd n, as e**2 = 1 - 4 w.

    Returns:
        For each n, whether it is odd, and the coefficients of the polynomial.
    """
    terms = 27 if exact else 17
    size = terms // 2 + 1

    def product(x: NDArray, i: int, y: NDArray, j: int) -> NDArray:
        convolved = np.convolve(x, y)[:size]
        return convolved - 4 * _raised(convolved) if i % 2 and j % 2 else convolved

    one = np.eye(1, size)[0]
    # m[k] is odd, times e, where k is even.
    m = [np.zeros(size), one]
    squares = [np.zeros(size), np.zeros(size), one / 2]
    for k in range(3, terms + 2):
        turned = product(one, 1, m[k - 2], k - 3)
        squares.append((turned - 2 * _raised(squares[k - 2])) / k)
        inner = [product(m[i], i - 1, m[k - i], k - i - 1) for i in range(2, k - 1)]
        m.append(squares[k] - sum(inner, np.zeros(size)) / 2)
    coefficients = [one]
    for n in range(1, terms):
        parts = [product(m[j + 1], j, coefficients[n - j], n - j) for j in range(1, n + 1)]
        coefficients.append(-sum(parts, np.zeros(size)))
    return np.array([[n % 2, *f] for n, f in enumerate(coefficients)], np.float64)


def _raised(x: NDArray) -> NDArray:
    """The polynomial, times its argument."""
    return np.concatenate([[0.0], x[:-1]])
