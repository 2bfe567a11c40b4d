"""Normal distributions of vectors.

The density is ``exp(-r @ inv(cov) @ r / 2) / sqrt(det(2 pi cov))``, where ``r = x - mean``.
"""

from __future__ import annotations

import math
from typing import Any

import dovetail.numpy as jnp
from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend.arguments import broadcast_result
from dovetail.numpy.compiled import compiled
from dovetail.scipy.stats._families import choose, exp_of_log, finished, real_operands
from dovetail.typing import Array, ArrayLike

__all__ = ["logpdf", "pdf"]


def __dir__() -> list[str]:
    return __all__


def _log_density(function: str, x: Any, mean: Any, cov: Any) -> tuple[Any, Any, bool]:
    operands, dtype, weak = real_operands(function, ("x", "mean", "cov"), (x, mean, cov))
    x, mean, cov = operands
    if not cov.ndim:
        positive = cov > 0
        variance = choose(~positive, 1, cov)
        squares = lax.square(x - mean) / variance
        result = -(squares + lax.log(variance) + math.log(2 * math.pi)) / 2
        if mean.ndim:
            result = result.sum(axis=-1)
        return choose(~positive, math.nan, result), dtype, weak
    size = mean.shape[-1] if mean.ndim else None
    if size is None or cov.shape[-2:] != (size, size) or (x.ndim and x.shape[-1] not in (1, size)):
        raise ShapeError(
            f"{function}: x and mean must have the shape (..., n) and cov (..., n, n), got "
            f"{x.shape}, {mean.shape} and {cov.shape}"
        )
    batch = broadcast_result(
        function, (x.shape[:-1], mean.shape[:-1], cov.shape[:-2]), explicit=True
    )
    deviations = jnp.broadcast_to(x - mean, (*batch, size))
    root = jnp.linalg.cholesky(cov)
    logs = lax.log(jnp.diagonal(root, axis1=-2, axis2=-1)).sum(axis=-1)
    if cov.ndim == 2:
        # One matrix for all vectors: they are solved for together.
        columns = deviations.reshape(-1, size).T
        solved = lax.linalg.triangular_solve(root, columns, left_side=True, lower=True)
        squares = lax.square(solved).sum(axis=0).reshape(batch)
    else:
        roots = jnp.broadcast_to(root, (*batch, size, size))
        columns = deviations[..., None]
        solved = lax.linalg.triangular_solve(roots, columns, left_side=True, lower=True)
        squares = lax.square(solved).sum(axis=(-2, -1))
    return -squares / 2 - logs - size * math.log(2 * math.pi) / 2, dtype, weak


@compiled
def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: None = None) -> Array:
    """Logarithm of the density of normal distributions of vectors.

    Args:
        x: vectors, of shape ``(..., n)``.
        mean: means, of shape ``(..., n)``; or a scalar, then `cov` is one, too, and every element
            of `x` has a distribution of its own.
        cov: covariances, symmetric and positive definite, of shape ``(..., n, n)``; or a scalar,
            the variance of every element.
        allow_singular: None.

    Returns:
        A float array of the common shape without the dimensions of vectors and matrices: nan where
        a covariance is not positive definite.

    Raises:
        TypeError: an argument is complex, or no array.
        ValueError: shapes do not fit.
        NotImplementedError: `allow_singular` is not None.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.multivariate_normal.logpdf(jnp.ones(2), jnp.zeros(2), jnp.eye(2)):.4f}")
        -2.8379
    """
    if allow_singular is not None:
        raise NotImplementedError(
            "multivariate_normal.logpdf does not take allow_singular: covariances must be positive "
            "definite"
        )
    return finished(*_log_density("multivariate_normal.logpdf", x, mean, cov))


@compiled
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """Density of normal distributions of vectors.

    Args:
        x: vectors, of shape ``(..., n)``.
        mean: means, of shape ``(..., n)``; or a scalar, then `cov` is one, too, and every element
            of `x` has a distribution of its own.
        cov: covariances, symmetric and positive definite, of shape ``(..., n, n)``; or a scalar,
            the variance of every element.

    Returns:
        A float array of the common shape without the dimensions of vectors and matrices: nan where
        a covariance is not positive definite.

    Raises:
        TypeError: an argument is complex, or no array.
        ValueError: shapes do not fit.

    Example:
        >>> from dovetail.scipy import stats
        >>> print(f"{stats.multivariate_normal.pdf(jnp.ones(2), jnp.zeros(2), jnp.eye(2)):.4f}")
        0.0585
    """
    result, dtype, weak = _log_density("multivariate_normal.pdf", x, mean, cov)
    return finished(exp_of_log(result), dtype, weak)
