"""Samples from the gamma distribution and from those that are functions of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail import lax, nn
from dovetail import numpy as jnp
from dovetail.errors import ShapeError
from dovetail.extend.arguments import integer
from dovetail.numpy.compiled import compiled_with, divided_program
from dovetail.random.arguments import float_argument, shape_argument, single_key, typed
from dovetail.random.continuous import exponential, real_normal
from dovetail.random.gamma_numbers import random_gamma_p, scaled_gamma_numbers, wide_dtype
from dovetail.random.intervals import pair_of_keys, rademacher
from dovetail.random.parameters import (
    check_method,
    common_shape,
    parameter,
    real_shape,
    result_shape,
)
from dovetail.typing import Array, ArrayLike, DTypeLike, KeyLike, ShapeLike, Sharding


def gamma(
    key: KeyLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the gamma distribution, of density proportional to ``x**(a - 1) * exp(-x)``.

    Multiply by a scale, or divide by a rate. Derivatives in `a` are implicit ones.

    Args:
        key: a key, typed or raw.
        a: shape parameters, positive; broadcast to `shape`.
        shape: shape of the result; that of `a` if None.
        dtype: a float dtype; the default one if None.
        method: ``"exact"`` or ``"approximate"``: both name the method below, which is exact.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or a parameter is not real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, `method` is
            unknown, or a parameter does not fit the shape.

    Method:
        G. Marsaglia and W. W. Tsang, A simple method for generating gamma variables, ACM TOMS 26
        (2000).

    Differs:
        Numbers are other ones than in JAX: many are drawn at a time, which is much faster.

        >>> from dovetail import random
        >>> print(random.gamma(random.key(0), 2.0, (3,)).shape)
        (3,)

    Example:
        >>> from dovetail import random
        >>> x = random.gamma(random.key(0), 2.5, (10000,))
        >>> abs(float(x.mean()) - 2.5) < 0.1
        True
    """
    key = single_key("gamma", key)
    check_method("gamma", method)
    shape = result_shape("gamma", {"a": a}, shape)
    return divided_program("random.gamma", out_sharding, _gamma)(
        key, a, shape, float_argument("gamma", dtype)
    )


@compiled_with("shape", "dtype")
def _gamma(key: Any, a: Any, shape: Any, dtype: Any) -> Any:
    a = parameter("gamma", "a", a, shape, dtype)
    return random_gamma_p.bind(typed(key), a, log_space=False)


def loggamma(
    key: KeyLike,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: Sharding | None = None,
) -> Array:
    """Logarithms of samples from the gamma distribution, which never vanish.

    Args:
        key: a key, typed or raw.
        a: shape parameters, positive; broadcast to `shape`.
        shape: shape of the result; that of `a` if None.
        dtype: a float dtype; the default one if None.
        method: ``"exact"`` or ``"approximate"``: both name the method below, which is exact.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or a parameter is not real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, `method` is
            unknown, or a parameter does not fit the shape.

    Example:
        >>> from dovetail import random
        >>> bool(jnp.isfinite(random.loggamma(random.key(0), 1e-5, (100,))).all())
        True
    """
    key = single_key("loggamma", key)
    check_method("loggamma", method)
    shape = result_shape("loggamma", {"a": a}, shape)
    return divided_program("random.loggamma", out_sharding, _loggamma)(
        key, a, shape, float_argument("loggamma", dtype)
    )


@compiled_with("shape", "dtype")
def _loggamma(key: Any, a: Any, shape: Any, dtype: Any) -> Any:
    a = parameter("loggamma", "a", a, shape, dtype)
    return random_gamma_p.bind(typed(key), a, log_space=True)


def beta(
    key: KeyLike,
    a: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the beta distribution: density proportional to ``x**(a - 1) (1 - x)**(b - 1)``.

    Args:
        key: a key, typed or raw.
        a: first shape parameters, positive; broadcast to `shape`.
        b: second shape parameters, positive; broadcast to `shape`.
        shape: shape of the result; the common one of the parameters if None.
        dtype: a float dtype; the default one if None.
        method: ``"exact"`` or ``"approximate"``: both name the method below, which is exact.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or a parameter is not real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, `method` is
            unknown, or a parameter does not fit the shape.

    Example:
        >>> from dovetail import random
        >>> x = random.beta(random.key(0), 1.0, 3.0, (10000,))
        >>> abs(float(x.mean()) - 0.25) < 0.02
        True
    """
    key = single_key("beta", key)
    check_method("beta", method)
    shape = result_shape("beta", {"a": a, "b": b}, shape)
    return divided_program("random.beta", out_sharding, _beta)(
        key, a, b, shape, float_argument("beta", dtype)
    )


@compiled_with("shape", "dtype")
def _beta(key: Any, a: Any, b: Any, shape: Any, dtype: Any) -> Any:
    wide = wide_dtype(dtype)
    first, second = pair_of_keys(typed(key))
    x, e = scaled_gamma_numbers(first, parameter("beta", "a", a, shape, wide))
    y, f = scaled_gamma_numbers(second, parameter("beta", "b", b, shape, wide))
    return nn.sigmoid(lax.stop_gradient(lax.log(x / y)) + (e - f)).astype(dtype)


def chisquare(
    key: KeyLike,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the chi-squared distribution: sums of squares of `df` normal numbers.

    Args:
        key: a key, typed or raw.
        df: degrees of freedom, positive; broadcast to `shape`.
        shape: shape of the result; that of `df` if None.
        dtype: a float dtype; the default one if None.
        method: ``"exact"`` or ``"approximate"``: both name the method below, which is exact.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or a parameter is not real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, `method` is
            unknown, or a parameter does not fit the shape.

    Example:
        >>> from dovetail import random
        >>> x = random.chisquare(random.key(0), 3.0, (10000,))
        >>> abs(float(x.mean()) - 3) < 0.15
        True
    """
    key = single_key("chisquare", key)
    check_method("chisquare", method)
    shape = result_shape("chisquare", {"df": df}, shape)
    return divided_program("random.chisquare", out_sharding, _chisquare)(
        key, df, shape, float_argument("chisquare", dtype)
    )


@compiled_with("shape", "dtype")
def _chisquare(key: Any, df: Any, shape: Any, dtype: Any) -> Any:
    half = parameter("chisquare", "df", df, shape, dtype) / 2
    return 2 * random_gamma_p.bind(typed(key), half, log_space=False)


def t(
    key: KeyLike,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from Student's t distribution.

    Args:
        key: a key, typed or raw.
        df: degrees of freedom, positive; broadcast to `shape`.
        shape: shape of the result; that of `df` if None.
        dtype: a float dtype; the default one if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or a parameter is not real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, or a
            parameter does not fit the shape.

    Example:
        >>> from dovetail import random
        >>> x = random.t(random.key(0), 5.0, (10000,))
        >>> abs(float(jnp.median(x))) < 0.05
        True
    """
    key = single_key("t", key)
    shape = result_shape("t", {"df": df}, shape)
    return divided_program("random.t", out_sharding, _t)(key, df, shape, float_argument("t", dtype))


@compiled_with("shape", "dtype")
def _t(key: Any, df: Any, shape: Any, dtype: Any) -> Any:
    half = parameter("t", "df", df, shape, dtype) / 2
    first, second = pair_of_keys(typed(key))
    spread = random_gamma_p.bind(second, half, log_space=True)
    return real_normal(first, shape, dtype) * lax.exp((lax.log(half) - spread) / 2)


def f(
    key: KeyLike,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from Fisher's F distribution: ratios of mean squares.

    Args:
        key: a key, typed or raw.
        dfnum: degrees of freedom of the numerator, positive; broadcast to `shape`.
        dfden: degrees of freedom of the denominator, positive; broadcast to `shape`.
        shape: shape of the result; the common one of the parameters if None.
        dtype: a float dtype; the default one if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or a parameter is not real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, or a
            parameter does not fit the shape.

    Example:
        >>> from dovetail import random
        >>> x = random.f(random.key(0), 4.0, 10.0, (10000,))
        >>> abs(float(x.mean()) - 1.25) < 0.1
        True
    """
    key = single_key("f", key)
    shape = result_shape("f", {"dfnum": dfnum, "dfden": dfden}, shape)
    return divided_program("random.f", out_sharding, _f)(
        key, dfnum, dfden, shape, float_argument("f", dtype)
    )


@compiled_with("shape", "dtype")
def _f(key: Any, dfnum: Any, dfden: Any, shape: Any, dtype: Any) -> Any:
    halves = [
        parameter("f", name, x, shape, dtype) / 2
        for name, x in (("dfnum", dfnum), ("dfden", dfden))
    ]
    keys = pair_of_keys(typed(key))
    above, below = (
        random_gamma_p.bind(k, half, log_space=True) - lax.log(half)
        for k, half in zip(keys, halves, strict=True)
    )
    return lax.exp(above - below)


def dirichlet(
    key: KeyLike,
    alpha: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the Dirichlet distribution: positive vectors whose elements add up to 1.

    Args:
        key: a key, typed or raw.
        alpha: concentrations, positive, of shape ``(..., n)``.
        shape: shape of the result without its last dimension; that of `alpha` without it if None.
        dtype: a float dtype; the default one if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of shape ``(*shape, n)`` and that dtype.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or `alpha` is not real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, or `alpha` is a
            scalar or does not fit the shape.

    Example:
        >>> from dovetail import random
        >>> x = random.dirichlet(random.key(0), jnp.array([1.0, 2.0, 1.0]), (10000,))
        >>> bool(jnp.allclose(x.mean(0), jnp.array([0.25, 0.5, 0.25]), atol=0.02))
        True
    """
    key = single_key("dirichlet", key)
    sizes = real_shape("dirichlet", "alpha", alpha)
    if not sizes:
        raise ShapeError("random.dirichlet: alpha must be a vector or several, got a scalar")
    shape = common_shape("dirichlet", {"alpha": sizes[:-1]}, shape)
    return divided_program("random.dirichlet", out_sharding, _dirichlet)(
        key, alpha, (*shape, sizes[-1]), float_argument("dirichlet", dtype)
    )


@compiled_with("shape", "dtype")
def _dirichlet(key: Any, alpha: Any, shape: Any, dtype: Any) -> Any:
    own = real_shape("dirichlet", "alpha", alpha)
    alpha = parameter("dirichlet", "alpha", alpha, own, wide_dtype(dtype))
    x, e = scaled_gamma_numbers(typed(key), jnp.broadcast_to(alpha, shape))
    # Scaled, or the sum of large ones could overflow, or all small ones could vanish. Not by the
    # largest one itself, whose inverse, by which XLA multiplies, could vanish.
    largest = lax.stop_gradient(lax.sqrt(alpha.max(-1, keepdims=True, initial=1)))
    x = x / largest * lax.exp(e - lax.stop_gradient(e.max(-1, keepdims=True, initial=-np.inf)))
    return (x / x.sum(-1, keepdims=True)).astype(dtype)


def generalized_normal(
    key: KeyLike,
    p: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the generalized normal distribution: density proportional to ``exp(-|x|**p)``.

    Args:
        key: a key, typed or raw.
        p: exponents, positive; broadcast to `shape`.
        shape: shape of the result.
        dtype: a float dtype; the default one if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or `p` is not real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, or `p` does not
            fit the shape.

    Example:
        >>> from dovetail import random
        >>> x = random.generalized_normal(random.key(0), 2.0, (10000,))
        >>> abs(float((x * x).mean()) - 0.5) < 0.03
        True
    """
    key = single_key("generalized_normal", key)
    shape = result_shape("generalized_normal", {"p": p}, shape)
    return divided_program("random.generalized_normal", out_sharding, _generalized_normal)(
        key, p, shape, float_argument("generalized_normal", dtype)
    )


@compiled_with("shape", "dtype")
def _generalized_normal(key: Any, p: Any, shape: Any, dtype: Any) -> Any:
    p = parameter("generalized_normal", "p", p, shape, dtype)
    first, second = pair_of_keys(typed(key))
    size = lax.exp(random_gamma_p.bind(first, 1 / p, log_space=True) / p)
    return size * rademacher(second, shape).astype(dtype)


def ball(
    key: KeyLike,
    d: int,
    p: ArrayLike = 2,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Vectors that are uniformly distributed in the unit ball of a norm.

    Args:
        key: a key, typed or raw.
        d: the dimension of the space.
        p: the exponent of the norm, ``sum(abs(x)**p)**(1 / p)``, a positive scalar.
        shape: shape of the result without its last dimension.
        dtype: a float dtype; the default one if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of shape ``(*shape, d)`` and that dtype.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, `d` is not an integer, or `p` is not
            real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, `d` is
            negative, or `p` is not a scalar.

    Method:
        F. Barthe, O. Guedon, S. Mendelson and A. Naor, A probabilistic approach to the geometry of
        the l_p^n ball, Annals of Probability 33 (2005).

    Example:
        >>> from dovetail import random
        >>> x = random.ball(random.key(0), 2, shape=(10000,))
        >>> abs(float(((x * x).sum(-1) < 0.25).mean()) - 0.25) < 0.02
        True
    """
    key = single_key("ball", key)
    dtype = float_argument("ball", dtype)
    size = integer("random.ball", "d", d)
    if size < 0:
        raise ValueError(f"random.ball: d must not be negative, got {size}")
    result_shape("ball", {"p": p}, ())
    return divided_program("random.ball", out_sharding, _ball)(
        key, p, (*shape_argument("ball", shape), size), dtype
    )


@compiled_with("shape", "dtype")
def _ball(key: Any, p: Any, shape: Any, dtype: Any) -> Any:
    first, second = pair_of_keys(typed(key))
    p = parameter("ball", "p", p, (), dtype)
    drawn = generalized_normal(first, p, shape, dtype)
    powers = (abs(drawn) ** p).sum(-1) + exponential(second, shape[:-1], dtype)
    return drawn / powers[..., None] ** (1 / p)
