"""The multinomial distribution: how often each of several outcomes occurs in `n` trials.

The probabilities are ``n! / (x[0]! x[1]! ...) * p[0]**x[0] * p[1]**x[1] ...``.
"""

from __future__ import annotations

import math
from typing import Any

from dovetail.errors import DTypeError, ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, broadcast_result
from dovetail.extend.avals import aval_of
from dovetail.numpy.compiled import compiled
from dovetail.scipy.special import gammaln, xlogy
from dovetail.scipy.stats._families import choose, exp_of_log, finished, real_operands
from dovetail.typing import Array, ArrayLike

__all__ = ["logpmf", "pmf"]


def __dir__() -> list[str]:
    return __all__


def _log_probability(function: str, x: Any, n: Any, p: Any) -> tuple[Any, Any, bool]:
    for name, given in (("x", x), ("n", n)):
        dtype = aval_of(array_like(given, function, name)).dtype
        if dtypes.kind_of(dtype) not in ("b", "i", "u"):
            raise DTypeError(f"{function}: {name} must hold integers, got dtype {dtype}")
    (x, n, p), dtype, weak = real_operands(function, ("x", "n", "p"), (x, n, p))
    for name, given in (("x", x), ("p", p)):
        if not given.ndim:
            raise ShapeError(f"{function}: {name} must have a dimension for the outcomes, got none")
    broadcast_result(function, (x.shape, p.shape), explicit=True)
    count = x + 0 * p
    possible = (count >= 0).all(axis=-1) & (count.sum(axis=-1) == n)
    known = ((p >= 0) & (p <= 1)).all(axis=-1) & (n >= 0)
    safe = choose(~possible[..., None], 1, count)
    terms = xlogy(safe, choose(~((p >= 0) & (p <= 1)), 0.5, p)) - gammaln(safe + 1)
    result = gammaln(choose(~known, 1, n + 0 * count[..., 0]) + 1) + terms.sum(axis=-1)
    return choose(~known, math.nan, choose(~possible, -math.inf, result)), dtype, weak


@compiled
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Logarithms of the probabilities of the multinomial distribution.

    Args:
        x: integers: how often each outcome occurs, in the last dimension.
        n: numbers of trials, integers.
        p: probabilities of the outcomes, in the last dimension; they should add up to 1.

    Returns:
        A float array of the common shape without the last dimension: -inf where the numbers in `x`
        do not add up to `n` or one is negative, nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array.
        ValueError: `x` or `n` does not hold integers, or shapes do not fit.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.multinomial.logpmf(jnp.array([1, 2]), 3, jnp.array([0.5, 0.5])):.4f}")
        -0.9808
    """
    return finished(*_log_probability("multinomial.logpmf", x, n, p))


@compiled
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Probabilities of the multinomial distribution.

    Args:
        x: integers: how often each outcome occurs, in the last dimension.
        n: numbers of trials, integers.
        p: probabilities of the outcomes, in the last dimension; they should add up to 1.

    Returns:
        A float array of the common shape without the last dimension: 0 where the numbers in `x` do
        not add up to `n` or one is negative, nan where a parameter is out of its range.

    Raises:
        TypeError: an argument is complex, or no array.
        ValueError: `x` or `n` does not hold integers, or shapes do not fit.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.multinomial.pmf(jnp.array([1, 2]), 3, jnp.array([0.5, 0.5])):.4f}")
        0.3750
    """
    result, dtype, weak = _log_probability("multinomial.pmf", x, n, p)
    return finished(exp_of_log(result), dtype, weak)
