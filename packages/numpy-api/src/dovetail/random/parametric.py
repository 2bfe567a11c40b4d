"""Numbers from distributions that are a function of uniform, exponential or normal ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, integer
from dovetail.extend.avals import aval_of
from dovetail.numpy.compiled import compiled_with, divided_program
from dovetail.random.arguments import (
    dtype_argument,
    float_argument,
    shape_argument,
    single_key,
    typed,
)
from dovetail.random.continuous import exponential, normal, real_normal
from dovetail.random.intervals import pair_of_keys, rademacher, unit_interval
from dovetail.random.parameters import common_shape, parameter, real_shape, result_shape
from dovetail.typing import Array, ArrayLike, DTypeLike, KeyLike, ShapeLike, Sharding

_ONE = np.float32(1.0)


def lognormal(
    key: KeyLike,
    sigma: ArrayLike = _ONE,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples whose logarithms are normal, with mean 0.

    Args:
        key: a key, typed or raw.
        sigma: standard deviations of the logarithms; broadcast to `shape`.
        shape: shape of the result; that of `sigma` if None.
        dtype: a float dtype; the default one if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or `sigma` is not real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, or `sigma` does
            not fit the shape.

    Example:
        >>> from dovetail import random
        >>> x = random.lognormal(random.key(0), 0.5, (10000,))
        >>> abs(float(jnp.median(x)) - 1) < 0.05
        True
    """
    key = single_key("lognormal", key)
    shape = result_shape("lognormal", {"sigma": sigma}, shape)
    return divided_program("random.lognormal", out_sharding, _lognormal)(
        key, sigma, shape, float_argument("lognormal", dtype)
    )


@compiled_with("shape", "dtype")
def _lognormal(key: Any, sigma: Any, shape: Any, dtype: Any) -> Any:
    sigma = parameter("lognormal", "sigma", sigma, shape, dtype)
    return lax.exp(real_normal(typed(key), shape, dtype) * sigma)


def pareto(
    key: KeyLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the Pareto distribution, of density ``b / x**(b + 1)`` for x from 1 on.

    Args:
        key: a key, typed or raw.
        b: shape parameters, positive; broadcast to `shape`.
        shape: shape of the result; that of `b` if None.
        dtype: a float dtype; the default one if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or `b` is not real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, or `b` does not
            fit the shape.

    Example:
        >>> from dovetail import random
        >>> x = random.pareto(random.key(0), 3.0, (10000,))
        >>> abs(float(x.mean()) - 1.5) < 0.05, bool((x >= 1).all())
        (True, True)
    """
    key = single_key("pareto", key)
    shape = result_shape("pareto", {"b": b}, shape)
    return divided_program("random.pareto", out_sharding, _pareto)(
        key, b, shape, float_argument("pareto", dtype)
    )


@compiled_with("shape", "dtype")
def _pareto(key: Any, b: Any, shape: Any, dtype: Any) -> Any:
    b = parameter("pareto", "b", b, shape, dtype)
    return lax.exp(exponential(key, shape, dtype) / b)


def rayleigh(
    key: KeyLike,
    scale: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the Rayleigh distribution: lengths of normal vectors in the plane.

    Args:
        key: a key, typed or raw.
        scale: standard deviations of the components, positive; broadcast to `shape`.
        shape: shape of the result; that of `scale` if None.
        dtype: a float dtype; the default one if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or `scale` is not real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, or `scale` does
            not fit the shape.

    Example:
        >>> from dovetail import random
        >>> x = random.rayleigh(random.key(0), 2.0, (10000,))
        >>> abs(float((x * x).mean()) - 8) < 0.4
        True
    """
    key = single_key("rayleigh", key)
    shape = result_shape("rayleigh", {"scale": scale}, shape)
    return divided_program("random.rayleigh", out_sharding, _rayleigh)(
        key, scale, shape, float_argument("rayleigh", dtype)
    )


@compiled_with("shape", "dtype")
def _rayleigh(key: Any, scale: Any, shape: Any, dtype: Any) -> Any:
    scale = parameter("rayleigh", "scale", scale, shape, dtype)
    # 0 would be infinite; the smallest of the others is epsilon.
    least = float(dtypes.finfo(dtype).eps) / 2
    uniform = jnp.maximum(unit_interval(typed(key), shape, dtype), least)
    return scale * lax.sqrt(-2 * lax.log(uniform))


def weibull_min(
    key: KeyLike,
    scale: ArrayLike,
    concentration: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Samples from the Weibull distribution of minima.

    Args:
        key: a key, typed or raw.
        scale: scale parameters, positive; broadcast to `shape`.
        concentration: shape parameters, positive; broadcast to `shape`.
        shape: shape of the result.
        dtype: a float dtype; the default one if None.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or a parameter is not real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, or a parameter
            does not fit the shape.

    Example:
        >>> from dovetail import random
        >>> x = random.weibull_min(random.key(0), 2.0, 1.0, (10000,))
        >>> abs(float(x.mean()) - 2) < 0.1
        True
    """
    key = single_key("weibull_min", key)
    given = {"scale": scale, "concentration": concentration}
    shape = result_shape("weibull_min", given, shape)
    return _weibull_min(key, scale, concentration, shape, float_argument("weibull_min", dtype))


@compiled_with("shape", "dtype")
def _weibull_min(key: Any, scale: Any, concentration: Any, shape: Any, dtype: Any) -> Any:
    scale = parameter("weibull_min", "scale", scale, shape, dtype)
    power = parameter("weibull_min", "concentration", concentration, shape, dtype)
    return scale * exponential(key, shape, dtype) ** (1 / power)


def triangular(
    key: KeyLike,
    left: ArrayLike,
    mode: ArrayLike,
    right: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the triangular distribution.

    Args:
        key: a key, typed or raw.
        left: lower ends; broadcast to `shape`.
        mode: where the density is greatest, from `left` to `right`; broadcast to `shape`.
        right: upper ends, above `left`; broadcast to `shape`.
        shape: shape of the result; the common one of the parameters if None.
        dtype: a float dtype; the default one if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or a parameter is not real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, or a parameter
            does not fit the shape.

    Example:
        >>> from dovetail import random
        >>> x = random.triangular(random.key(0), 0.0, 1.0, 2.0, (10000,))
        >>> abs(float(x.mean()) - 1) < 0.05
        True
    """
    key = single_key("triangular", key)
    shape = result_shape("triangular", {"left": left, "mode": mode, "right": right}, shape)
    return divided_program("random.triangular", out_sharding, _triangular)(
        key, left, mode, right, shape, float_argument("triangular", dtype)
    )


@compiled_with("shape", "dtype")
def _triangular(key: Any, left: Any, mode: Any, right: Any, shape: Any, dtype: Any) -> Any:
    names = ("left", "mode", "right")
    low, peak, high = (
        parameter("triangular", name, x, shape, dtype)
        for name, x in zip(names, (left, mode, right), strict=True)
    )
    uniform = unit_interval(typed(key), shape, dtype)
    width, rise, fall = high - low, peak - low, high - peak
    below = uniform < rise / width
    # Each square root only of what belongs to its side, so that derivatives are finite.
    up = jnp.where(below, uniform * width * rise, 1)
    down = jnp.where(below, 1, (1 - uniform) * width * fall)
    return jnp.where(below, low + lax.sqrt(up), high - lax.sqrt(down))


def maxwell(
    key: KeyLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the Maxwell distribution: lengths of standard normal vectors in space.

    Args:
        key: a key, typed or raw.
        shape: shape of the result.
        dtype: a float dtype; the default one if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, or `shape` is not a shape.
        ValueError: `key` is an array of several keys, or `dtype` is not a float dtype.

    Example:
        >>> from dovetail import random
        >>> x = random.maxwell(random.key(0), (10000,))
        >>> abs(float((x * x).mean()) - 3) < 0.1
        True
    """
    key = single_key("maxwell", key)
    return divided_program("random.maxwell", out_sharding, _maxwell)(
        key, shape_argument("maxwell", shape), float_argument("maxwell", dtype)
    )


@compiled_with("shape", "dtype")
def _maxwell(key: Any, shape: Any, dtype: Any) -> Any:
    return lax.sqrt(lax.square(real_normal(typed(key), (*shape, 3), dtype)).sum(-1))


def double_sided_maxwell(
    key: KeyLike,
    loc: ArrayLike,
    scale: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
) -> Array:
    """Samples from the Maxwell distribution, with either sign.

    Args:
        key: a key, typed or raw.
        loc: centres; broadcast to `shape`.
        scale: scale parameters, positive; broadcast to `shape`.
        shape: shape of the result.
        dtype: a float dtype; the default one if None.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or a parameter is not real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, or a parameter
            does not fit the shape.

    Example:
        >>> from dovetail import random
        >>> x = random.double_sided_maxwell(random.key(0), 1.0, 2.0, (10000,))
        >>> abs(float(x.mean()) - 1) < 0.15
        True
    """
    key = single_key("double_sided_maxwell", key)
    shape = result_shape("double_sided_maxwell", {"loc": loc, "scale": scale}, shape)
    dtype = float_argument("double_sided_maxwell", dtype)
    return _double_sided_maxwell(key, loc, scale, shape, dtype)


@compiled_with("shape", "dtype")
def _double_sided_maxwell(key: Any, loc: Any, scale: Any, shape: Any, dtype: Any) -> Any:
    loc = parameter("double_sided_maxwell", "loc", loc, shape, dtype)
    scale = parameter("double_sided_maxwell", "scale", scale, shape, dtype)
    first, second = pair_of_keys(typed(key))
    signs = rademacher(second, shape).astype(dtype)
    return loc + scale * (maxwell(first, shape, dtype) * signs)


def wald(
    key: KeyLike,
    mean: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the Wald (inverse normal) distribution with scale 1.

    Args:
        key: a key, typed or raw.
        mean: means, positive; broadcast to `shape`.
        shape: shape of the result; that of `mean` if None.
        dtype: a float dtype; the default one if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or `mean` is not real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, or `mean` does
            not fit the shape.

    Method:
        J. R. Michael, W. R. Schucany and R. W. Haas, Generating random variates using
        transformations with multiple roots, The American Statistician 30 (1976).

    Example:
        >>> from dovetail import random
        >>> x = random.wald(random.key(0), 0.5, (10000,))
        >>> abs(float(x.mean()) - 0.5) < 0.05
        True
    """
    key = single_key("wald", key)
    shape = result_shape("wald", {"mean": mean}, shape)
    return divided_program("random.wald", out_sharding, _wald)(
        key, mean, shape, float_argument("wald", dtype)
    )


@compiled_with("shape", "dtype")
def _wald(key: Any, mean: Any, shape: Any, dtype: Any) -> Any:
    mean = parameter("wald", "mean", mean, shape, dtype)
    first, second = pair_of_keys(typed(key))
    y = lax.square(real_normal(first, shape, dtype))
    # The smaller root as the product of both over the larger one: as a difference it would have no
    # digits.
    product = mean * y
    larger = mean + mean / 2 * (product + lax.sqrt(product * (4 + product)))
    smaller = mean * (mean / larger)
    keeps = unit_interval(second, shape, dtype) <= mean / (mean + smaller)
    return lax.select(keeps, smaller, larger)


def geometric(
    key: KeyLike,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the geometric distribution: how many trials there are up to a success.

    Args:
        key: a key, typed or raw.
        p: chances of success, above 0 and at most 1; broadcast to `shape`.
        shape: shape of the result; that of `p` if None.
        dtype: an integer dtype; the default one if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype, of integers from 1 on; the greatest integer of the dtype
        where there are more trials.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or `p` is not real.
        ValueError: `key` is an array of several keys, `dtype` is not an integer dtype, or `p` does
            not fit the shape.

    Example:
        >>> from dovetail import random
        >>> x = random.geometric(random.key(0), 0.25, (10000,))
        >>> abs(float(x.mean()) - 4) < 0.2, int(x.min())
        (True, 1)
    """
    key = single_key("geometric", key)
    dtype = dtype_argument("geometric", dtype, "i", "iu", "an integer dtype")
    return divided_program("random.geometric", out_sharding, _geometric)(
        key, p, result_shape("geometric", {"p": p}, shape), dtype
    )


@compiled_with("shape", "dtype")
def _geometric(key: Any, p: Any, shape: Any, dtype: Any) -> Any:
    given = aval_of(array_like(p, "random.geometric", "p")).dtype
    real = given if dtypes.kind_of(given) == "f" else dtypes.default_dtype("f")
    chance = parameter("geometric", "p", p, shape, real)
    least = float(dtypes.finfo(real).eps) / 2
    uniform = jnp.maximum(unit_interval(typed(key), shape, real), least)
    trials = lax.ceil(lax.log(uniform) / lax.log1p(-chance))
    return lax.convert_element_type(jnp.maximum(trials, 1), dtype)


def multivariate_normal(
    key: KeyLike,
    mean: ArrayLike,
    cov: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    method: str = "cholesky",
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from normal distributions of vectors.

    Args:
        key: a key, typed or raw.
        mean: means, of shape ``(..., n)``.
        cov: covariances, symmetric and positive definite (for ``"eigh"`` and ``"svd"``,
            semidefinite), of shape ``(..., n, n)``.
        shape: shape of the result without its last dimension; the common one of the leading
            dimensions of `mean` and `cov` if None.
        dtype: a float dtype; the default one if None.
        method: how the root of `cov` is found: ``"cholesky"`` (the fastest), ``"eigh"`` or
            ``"svd"``.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of shape ``(*shape, n)`` and that dtype.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or a parameter is not real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, `method` is
            unknown, or shapes do not fit.

    Example:
        >>> from dovetail import random
        >>> cov = jnp.array([[2.0, 0.5], [0.5, 1.0]])
        >>> x = random.multivariate_normal(random.key(0), jnp.array([1.0, 2.0]), cov, (10000,))
        >>> bool(jnp.allclose(jnp.cov(x.T), cov, atol=0.1))
        True
    """
    key = single_key("multivariate_normal", key)
    dtype = float_argument("multivariate_normal", dtype)
    if not isinstance(method, str) or method not in ("cholesky", "eigh", "svd"):
        raise ValueError(
            "random.multivariate_normal: method must be 'cholesky', 'eigh' or 'svd', got "
            f"{method!r}"
        )
    means = real_shape("multivariate_normal", "mean", mean)
    matrices = real_shape("multivariate_normal", "cov", cov)
    if not means or matrices[-2:] != (means[-1],) * 2:
        raise ShapeError(
            "random.multivariate_normal: mean must have the shape (..., n) and cov (..., n, n), "
            f"got {means} and {matrices}"
        )
    leading = {"mean": means[:-1], "cov": matrices[:-2]}
    shape = common_shape("multivariate_normal", leading, shape)
    return divided_program("random.multivariate_normal", out_sharding, _multivariate_normal)(
        key, mean, cov, shape, dtype, method
    )


@compiled_with("shape", "dtype", "method")
def _multivariate_normal(key: Any, mean: Any, cov: Any, shape: Any, dtype: Any, method: Any) -> Any:
    mean, cov = (jnp.asarray(x).astype(dtype) for x in (mean, cov))
    if method == "cholesky":
        root = jnp.linalg.cholesky(cov)
    elif method == "eigh":
        values, vectors = jnp.linalg.eigh(cov)
        root = vectors * lax.sqrt(jnp.maximum(values, 0))[..., None, :]
    else:
        vectors, values, _ = jnp.linalg.svd(cov)
        root = vectors * lax.sqrt(values)[..., None, :]
    drawn = real_normal(typed(key), (*shape, mean.shape[-1]), dtype)
    return mean + jnp.einsum("...ij,...j->...i", root, drawn)


def orthogonal(
    key: KeyLike,
    n: int,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    m: int | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Uniformly random orthogonal or unitary matrices, or parts of them.

    Args:
        key: a key, typed or raw.
        n: number of rows.
        shape: shape of the result without its last two dimensions.
        dtype: a float or complex dtype; the default float dtype if None.
        m: number of columns; `n` if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of shape ``(*shape, n, m)`` and that dtype, whose columns (or, where there are more
        columns than rows, rows) are orthonormal.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or a size is not an integer.
        ValueError: `key` is an array of several keys, `dtype` is not a float or complex dtype, or a
            size is negative.

    Method:
        F. Mezzadri, How to generate random matrices from the classical compact groups, Notices of
        the AMS 54 (2007): the QR factors of a normal matrix, made unique.

    Example:
        >>> from dovetail import random
        >>> q = random.orthogonal(random.key(0), 3)
        >>> bool(jnp.allclose(q @ q.T, jnp.eye(3), atol=1e-5))
        True
    """
    key = single_key("orthogonal", key)
    dtype = dtype_argument("orthogonal", dtype, "f", "fc", "a float or complex dtype")
    rows = integer("random.orthogonal", "n", n)
    columns = rows if m is None else integer("random.orthogonal", "m", m)
    if min(rows, columns) < 0:
        raise ValueError(
            f"random.orthogonal: n and m must not be negative, got {rows} and {columns}"
        )
    return divided_program("random.orthogonal", out_sharding, _orthogonal)(
        key, shape_argument("orthogonal", shape), dtype, rows, columns
    )


@compiled_with("shape", "dtype", "n", "m")
def _orthogonal(key: Any, shape: Any, dtype: Any, n: Any, m: Any) -> Any:
    long, short = max(n, m), min(n, m)
    drawn = normal(key, (*shape, long, short), dtype)
    q, r = jnp.linalg.qr(drawn)
    diagonal = jnp.diagonal(r, axis1=-2, axis2=-1)
    signs = diagonal / abs(diagonal)
    q = q * signs[..., None, :]
    return q if n >= m else q.swapaxes(-1, -2)
