"""Factorials and numbers of combinations."""

from __future__ import annotations

import math
from typing import Any

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.extend.arguments import literal
from dovetail.extend.avals import aval_of
from dovetail.numpy.compiled import compiled_with
from dovetail.scipy.special.beta_functions import log_of_magnitude
from dovetail.scipy.special.double_precision import in_double
from dovetail.scipy.special.gamma_functions import gamma_rule
from dovetail.scipy.special.operands import computed, of_one_shape, real_operands
from dovetail.typing import Array, ArrayLike

#: Whole numbers below are exact in float64.
_EXACT = 2.0**49


def _whole(value: Any, *operands: Any) -> Any:
    """A value that is a whole number if all operands are, without its error."""
    whole = abs(value) < _EXACT
    for x in operands:
        whole = whole & (x == lax.floor(x))
    return jnp.where(whole, lax.round(value), value)


def _factorial_formula(n: Any) -> Any:
    inside = n >= 0
    value = _whole(gamma_rule(jnp.where(inside, n, 0) + 1), n)
    return jnp.where(inside, value, jnp.where(n != n, n, 0))


def _factorial_slope(n: Any) -> Any:
    return _factorial(n) * lax.digamma(jnp.where(n >= 0, n, 0) + 1)


_factorial: Any = in_double(_factorial_formula, {0: _factorial_slope})


@compiled_with("exact")
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """The factorial: the gamma function of ``n + 1``, and 0 for negative numbers.

    Args:
        n: array or scalar of a real dtype.
        exact: integers of any size are not supported: must be False.

    Returns:
        A float array of the shape of `n`; whole numbers give whole numbers.

    Raises:
        NotImplementedError: `exact` is true.

    Example:
        >>> from dovetail.scipy.special import factorial
        >>> print(factorial(jnp.array([-1., 0., 5.])))
        [  0.   1. 120.]
    """
    if exact:
        raise NotImplementedError(
            "factorial: exact=True is not supported, as arrays have no integers of any size; "
            "use math.factorial"
        )
    return computed(_factorial, real_operands("factorial", n=n))


def _inside(n: Any, k: Any) -> tuple[Any, Any, Any]:
    """Where the number is not 0, and the operands there."""
    inside = (k >= 0) & (n >= k)
    return inside, jnp.where(inside, n, 1), jnp.where(inside, k, 0)


def _comb_formula(n: Any, k: Any) -> Any:
    inside, total, chosen = _inside(n, k)
    # 1 / ((n + 1) beta(n - k + 1, k + 1)). DLMF 1.2.6, 5.12.1.
    logarithm = log_of_magnitude(total - chosen + 1, chosen + 1)
    value = lax.exp(-logarithm) / (total + 1)
    # The larger of both parts does not cancel in the logarithm, but whole numbers are exact.
    value = _whole(value, total, chosen)
    unknown = (n != n) | (k != k)
    return jnp.where(unknown, math.nan, jnp.where(inside, value, 0))


def _first_slope(n: Any, k: Any) -> Any:
    _, total, chosen = _inside(n, k)
    return _comb(n, k) * (lax.digamma(total + 1) - lax.digamma(total - chosen + 1))


def _second_slope(n: Any, k: Any) -> Any:
    _, total, chosen = _inside(n, k)
    return _comb(n, k) * (lax.digamma(total - chosen + 1) - lax.digamma(chosen + 1))


_comb: Any = in_double(_comb_formula, {0: _first_slope, 1: _second_slope})


@compiled_with("repetition")
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """The number of ways to choose `k` of `N` things: a binomial coefficient.

    It is computed in float64, from the beta function, also between whole numbers.

    Args:
        N: array or scalar of a real dtype: the number of things.
        k: array or scalar that broadcasts with `N`: how many are chosen.
        repetition: whether a thing can be chosen again.

    Returns:
        A float array of the common shape: 0 where `k` is negative or above `N`; whole numbers give
        whole numbers.

    Differs:
        Whole numbers give whole numbers, if the dtype holds them.

        >>> from dovetail.scipy.special import comb
        >>> print(comb(16, 8), comb(5, 3, repetition=True))
        12870.0 35.0

    Example:
        >>> from dovetail.scipy.special import comb
        >>> print(comb(5, jnp.array([0, 1, 2, 6])))
        [ 1.  5. 10.  0.]
    """
    n, chosen = of_one_shape(real_operands("comb", N=N, k=k))
    if repetition:
        # Of nothing, nothing is chosen in one way.
        dtype = aval_of(n).dtype
        none = (chosen == literal(0, dtype)) & (n == literal(0, dtype))
        n = jnp.where(none, jnp.full_like(n, 1), n) + chosen - 1
    return computed(_comb, [n, chosen])
