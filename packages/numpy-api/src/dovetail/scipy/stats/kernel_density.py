"""Densities that are estimated from samples, as sums of normal ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import dovetail.numpy as jnp
from dovetail import lax, random
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, value
from dovetail.extend.avals import aval_of
from dovetail.extend.tracebacks import bounded
from dovetail.numpy.compiled import compiled
from dovetail.random.arguments import shape_argument
from dovetail.scipy.special import logsumexp, ndtr
from dovetail.scipy.stats._families import real_operands
from dovetail.tree_util import register_pytree_node_class
from dovetail.typing import Array, ArrayLike, KeyLike, ShapeLike


@bounded
@register_pytree_node_class
class gaussian_kde:
    """A density estimated from samples: the mean of normal densities around them.

    The covariance of each is that of the samples times the square of a factor, which `bw_method`
    tells. It is a tree of arrays, so that it can be an argument of compiled functions.

    Args:
        dataset: samples, of shape ``(n,)`` or ``(d, n)``.
        bw_method: the factor: ``"scott"`` (or None) for ``neff**(-1 / (d + 4))``, ``"silverman"``
            for ``(neff * (d + 2) / 4)**(-1 / (d + 4))``, a number, or a function of this object,
            which then has `dataset`, `weights` and `neff`.
        weights: of the samples, of shape ``(n,)``; equal ones if None.

    Attributes:
        dataset: the samples, of shape ``(d, n)``.
        weights: divided by their sum.
        neff: the number of samples that count: ``1 / sum(weights**2)``.
        covariance: of each normal density, of shape ``(d, d)``.
        inv_cov: its inverse.

    Raises:
        TypeError: an argument is no array.
        ValueError: there are fewer than two samples, shapes do not fit, or `bw_method` is none.
        NotImplementedError: samples are complex.

    Differs:
        Samples of narrow floats are float32 from then on, in which JAX cannot evaluate them.

        >>> from dovetail.scipy import stats
        >>> print(stats.gaussian_kde(jnp.arange(3, dtype="float16")).pdf(1.).dtype)
        float32

    Example:
        >>> from dovetail.scipy import stats
        >>> density = stats.gaussian_kde(jnp.array([1., 2., 4.]))
        >>> print(f"{density.pdf(jnp.array([1., 3.]))[0]:.4f}")
        0.1917
    """

    neff: Array
    dataset: Array
    weights: Array
    covariance: Array
    inv_cov: Array

    def __init__(
        self,
        dataset: ArrayLike,
        bw_method: str | ArrayLike | Callable[[Any], ArrayLike] | None = None,
        weights: ArrayLike | None = None,
    ) -> None:
        _refuse_complex("gaussian_kde", "dataset", dataset)
        given = (
            {"dataset": dataset} if weights is None else {"dataset": dataset, "weights": weights}
        )
        if weights is not None:
            _refuse_complex("gaussian_kde", "weights", weights)
        operands, _, _ = real_operands("gaussian_kde", tuple(given), tuple(given.values()))
        samples = operands[0]
        if samples.ndim > 2:
            raise ShapeError(
                f"gaussian_kde: dataset must have the shape (n,) or (d, n), got {samples.shape}"
            )
        samples = samples.reshape(-1, samples.shape[-1] if samples.ndim else 1)
        if samples.size < 2:
            raise ValueError("gaussian_kde: dataset must have at least two elements")
        d, n = samples.shape
        if weights is None:
            weighting = jnp.full(n, 1 / n, samples.dtype)
        else:
            weighting = operands[1]
            if weighting.shape != (n,):
                raise ShapeError(
                    f"gaussian_kde: weights must have the shape {(n,)}, got {weighting.shape}"
                )
            weighting = weighting / weighting.sum()
        self.dataset, self.weights = samples, weighting
        self.neff = 1 / lax.square(weighting).sum()
        factor = self._factor(bw_method, d)
        centred = samples - (samples * weighting).sum(axis=1, keepdims=True)
        scatter = (centred * weighting) @ centred.T / (1 - lax.square(weighting).sum())
        self.covariance = scatter * factor**2
        self.inv_cov = jnp.linalg.inv(self.covariance)

    def _factor(self, method: Any, d: int) -> Any:
        if method is None or (isinstance(method, str) and method == "scott"):
            return self.neff ** (-1 / (d + 4))
        if isinstance(method, str) and method == "silverman":
            return (self.neff * (d + 2) / 4) ** (-1 / (d + 4))
        if callable(method):
            return jnp.asarray(method(self)).astype(self.dataset.dtype)
        if not isinstance(method, (str, bytes, list, tuple, dict)) and jnp.ndim(method) == 0:
            return jnp.asarray(method).astype(self.dataset.dtype)
        raise ValueError(
            "gaussian_kde: bw_method must be 'scott', 'silverman', a number or a function, got "
            f"{method!r}"
        )

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.dataset.shape[1]

    def evaluate(self, points: ArrayLike) -> Array:
        """The density.

        Args:
            points: where, of shape ``(d, m)``; of ``(m,)`` or a scalar if `d` is 1, of ``(d,)`` for
                one point.

        Returns:
            An array of shape ``(m,)``.

        Raises:
            TypeError: `points` is no array.
            ValueError: the shape does not fit.
            NotImplementedError: `points` are complex.
        """
        return lax.exp(self._log_density("evaluate", points))

    def __call__(self, points: ArrayLike) -> Array:
        """The density; see `evaluate`."""
        return self.evaluate(points)

    def pdf(self, x: ArrayLike) -> Array:
        """The density; see `evaluate`."""
        return self.evaluate(x)

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the density, without its underflow; see `evaluate`."""
        return self._log_density("logpdf", x)

    def _log_density(self, function: str, points: Any) -> Array:
        function = f"gaussian_kde.{function}"
        _refuse_complex(function, "points", points)
        (points, samples), _, _ = real_operands(function, ("x", "dataset"), (points, self.dataset))
        points = points.reshape(1, -1) if points.ndim < 2 else points
        if points.shape[0] != self.d and points.shape == (1, self.d):
            points = points.reshape(self.d, 1)
        if points.ndim != 2 or points.shape[0] != self.d:
            raise ShapeError(
                f"{function}: points must have the shape ({self.d}, m), got {points.shape}"
            )
        return _log_mixture(points, samples, self.weights, self.covariance)

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """The integral of the density times a normal one.

        Args:
            mean: of the normal density, of shape ``(d,)``, or a scalar.
            cov: its covariance, of shape ``(d, d)``, or a scalar.

        Returns:
            A scalar array.

        Raises:
            TypeError: an argument is no array.
            ValueError: a shape does not fit.
        """
        function = "gaussian_kde.integrate_gaussian"
        operands, _, _ = real_operands(
            function, ("mean", "cov", "dataset"), (mean, cov, self.dataset)
        )
        centre, matrix, samples = operands
        if centre.ndim > 1 or matrix.ndim > 2 or centre.size != self.d:
            fits = False
        else:
            centre, matrix = jnp.atleast_1d(centre), jnp.atleast_2d(matrix)
            fits = matrix.shape == (self.d, self.d)
        if not fits:
            raise ShapeError(
                f"{function}: mean must have the shape {(self.d,)} and cov {(self.d, self.d)}, "
                f"got {operands[0].shape} and {operands[1].shape}"
            )
        logs = _log_mixture(centre[:, None], samples, self.weights, self.covariance + matrix)
        return lax.exp(logs[0])

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The integral of a density of one dimension between two bounds.

        Args:
            low: lower bound, a scalar.
            high: upper bound, a scalar.

        Returns:
            A scalar array.

        Raises:
            TypeError: a bound is no scalar.
            ValueError: the density has more than one dimension, or a bound is not a scalar.
        """
        function = "gaussian_kde.integrate_box_1d"
        if self.d != 1:
            raise ValueError(f"{function} takes a density of one dimension, got {self.d}")
        operands, _, _ = real_operands(
            function, ("low", "high", "dataset"), (low, high, self.dataset)
        )
        start, end, samples = operands
        if start.ndim or end.ndim:
            raise ShapeError(f"{function}: low and high must be scalars")
        sigma = lax.sqrt(self.covariance[0, 0])
        first, second = (start - samples[0]) / sigma, (end - samples[0]) / sigma
        # Two numbers close to 1 have the digits of their difference in what they lack to 1.
        upper = (first > 0) & (second > 0)
        masses = ndtr(jnp.where(upper, -first, second)) - ndtr(jnp.where(upper, -second, first))
        return (self.weights * masses).sum()

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product of two such densities.

        Args:
            other: a density of as many dimensions.

        Returns:
            A scalar array.

        Raises:
            TypeError: `other` is no such density.
            ValueError: it has another number of dimensions.
        """
        if not isinstance(other, gaussian_kde):
            raise TypeError(
                "gaussian_kde.integrate_kde requires other to be a gaussian_kde, got "
                f"{type(other).__name__}"
            )
        if other.d != self.d:
            raise ValueError(
                "gaussian_kde.integrate_kde: both densities must have the same number of "
                f"dimensions, got {self.d} and {other.d}"
            )
        covariance = self.covariance + other.covariance
        logs = _log_mixture(other.dataset, self.dataset, self.weights, covariance)
        return (other.weights * lax.exp(logs)).sum()

    def resample(self, key: KeyLike, shape: ShapeLike = ()) -> Array:
        """Numbers that have this density.

        Args:
            key: a key, typed or raw.
            shape: shape of the result without its first dimension.

        Returns:
            An array of shape ``(d, *shape)``.

        Raises:
            TypeError: `key` is no key, or `shape` is no shape.
        """
        sizes = shape_argument("gaussian_kde.resample", shape)
        which, noise = random.split(key)
        chosen = random.choice(which, self.n, sizes, p=self.weights)
        zeros = jnp.zeros(self.d, self.covariance.dtype)
        drawn = random.multivariate_normal(
            noise, zeros, self.covariance, sizes, dtype=self.dataset.dtype
        )
        return self.dataset[:, chosen] + jnp.moveaxis(drawn, -1, 0)

    def integrate_box(
        self, low_bounds: ArrayLike, high_bounds: ArrayLike, maxpts: int | None = None
    ) -> Array:
        """Not there: integrals over boxes of several dimensions.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "gaussian_kde.integrate_box is not supported; integrate_box_1d is, for one dimension"
        )

    def set_bandwidth(self, bw_method: Any = None) -> None:
        """Not there: a density does not change; make another one.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "gaussian_kde.set_bandwidth is not supported, as a density does not change; make "
            "another with gaussian_kde(dataset, bw_method)"
        )

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """The arrays of which it is made."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: tuple[Any, ...]) -> gaussian_kde:
        """One made of such arrays."""
        made = object.__new__(cls)
        made.neff, made.dataset, made.weights, made.covariance, made.inv_cov = children
        return made


def _refuse_complex(function: str, name: str, given: Any) -> None:
    if dtypes.kind_of(aval_of(value(array_like(given, function, name))).dtype) == "c":
        raise NotImplementedError(f"{function} does not take complex numbers as {name}")


@compiled
def _log_mixture(points: Any, samples: Any, weights: Any, covariance: Any) -> Any:
    """Logarithms of a weighted sum of normal densities around samples, at points."""
    root = jnp.linalg.cholesky(covariance)
    points, samples = (
        lax.linalg.triangular_solve(root, x, left_side=True, lower=True) for x in (points, samples)
    )
    squares = lax.square(points[:, None, :] - samples[:, :, None]).sum(axis=0)
    logs = logsumexp(-squares / 2, axis=0, b=weights[:, None])
    constant = len(points) * math.log(2 * math.pi) / 2 + lax.log(jnp.diagonal(root)).sum()
    return logs - constant
