"""The Dirichlet distribution of probabilities that add up to 1.

The density is the product of ``x**(alpha - 1)`` over ``B(alpha)``, the product of ``gamma(alpha)``
over ``gamma(sum(alpha))``.
"""

from __future__ import annotations

import math
from typing import Any

import dovetail.numpy as jnp
from dovetail.errors import ShapeError
from dovetail.numpy.compiled import compiled
from dovetail.scipy.special import gammaln, xlogy
from dovetail.scipy.stats._families import choose, exp_of_log, finished, real_operands
from dovetail.typing import Array, ArrayLike

__all__ = ["logpdf", "pdf"]


def __dir__() -> list[str]:
    return __all__


def _log_density(function: str, x: Any, alpha: Any) -> tuple[Any, Any, bool]:
    (x, alpha), dtype, weak = real_operands(function, ("x", "alpha"), (x, alpha))
    if alpha.ndim != 1:
        raise ShapeError(f"{function}: alpha must have one dimension, got shape {alpha.shape}")
    size = alpha.shape[0]
    if not x.ndim or x.shape[0] not in (size, size - 1):
        raise ShapeError(
            f"{function}: the first dimension of x must have the size of alpha, {size}, or one "
            f"less, got shape {x.shape}"
        )
    if x.shape[0] != size:
        x = jnp.concatenate([x, 1 - x.sum(axis=0, keepdims=True)])
    tolerance = 1e-5 if x.dtype == "float32" else 1e-9
    inside = (x >= 0).all(axis=0) & (jnp.abs(x.sum(axis=0) - 1) <= tolerance)
    positive = alpha > 0
    safe = choose(~positive, 1, alpha)
    terms = xlogy(
        (safe - 1).reshape(size, *(1,) * (x.ndim - 1)), choose(~inside[None], 1 / max(size, 1), x)
    )
    result = terms.sum(axis=0) + gammaln(safe.sum()) - gammaln(safe).sum()
    result = choose(~inside, -math.inf, result)
    unknown = (x != x).any(axis=0) | ~positive.all()
    return choose(unknown, math.nan, result), dtype, weak


@compiled
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Logarithm of the density of the Dirichlet distribution.

    Args:
        x: probabilities, in the first dimension: as many as there are in `alpha`, or all but the
            last.
        alpha: concentrations, positive; an array of one dimension.

    Returns:
        A float array of the shape of `x` without the first dimension: -inf where there is a
        negative number or the sum is not 1, nan where a concentration is not positive.

    Raises:
        TypeError: an argument is complex, or no array.
        ValueError: shapes do not fit.

    Differs:
        A probability may be 0, as in SciPy: where its concentration is 1 the density is finite.

        >>> from dovetail.scipy import stats
        >>> print(f"{stats.dirichlet.logpdf(jnp.array([0., 1.]), jnp.array([1., 2.])):.4f}")
        0.6931

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.dirichlet.logpdf(jnp.array([.25, .75]), jnp.array([2., 3.])):.4f}")
        0.5232
    """
    return finished(*_log_density("dirichlet.logpdf", x, alpha))


@compiled
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Density of the Dirichlet distribution.

    Args:
        x: probabilities, in the first dimension: as many as there are in `alpha`, or all but the
            last.
        alpha: concentrations, positive; an array of one dimension.

    Returns:
        A float array of the shape of `x` without the first dimension: 0 where there is a negative
        number or the sum is not 1, nan where a concentration is not positive.

    Raises:
        TypeError: an argument is complex, or no array.
        ValueError: shapes do not fit.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.dirichlet.pdf(jnp.array([.25, .75]), jnp.array([2., 3.])):.4f}")
        1.6875
    """
    result, dtype, weak = _log_density("dirichlet.pdf", x, alpha)
    return finished(exp_of_log(result), dtype, weak)
