"""Floats from distributions that need one uniform number per result."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dovetail.extend import dtypes
from dovetail.extend.arguments import Literal, array_like
from dovetail.extend.random_keys import erf_inv_fast_p, high_dynamic_range_gumbel
from dovetail.extend.unchecked import convert_element_type, make_literal, mul, neg
from dovetail.lax import (
    abs_p,
    add_p,
    div_p,
    erf_p,
    ge_p,
    log1p_p,
    log_p,
    max_p,
    min_p,
    nextafter_p,
    select_n_p,
    sign_p,
    stop_gradient,
    sub_p,
    tan_p,
)
from dovetail.numpy.compiled import compiled_with, divided_program
from dovetail.random.arguments import (
    Shape,
    converted,
    dtype_argument,
    float_argument,
    shape_argument,
    single_key,
    typed,
)
from dovetail.random.intervals import (
    between,
    pair_of_keys,
    rows,
    spread,
    unit_interval,
)
from dovetail.random.parameters import result_shape
from dovetail.typing import Array, ArrayLike, DTypeLike, KeyLike, ShapeLike, Sharding


def _log(x: Any) -> Any:
    return log_p.bind(x, accuracy=None)


def _log1p(x: Any) -> Any:
    return log1p_p.bind(x, accuracy=None)


def _above(key: Any, shape: Shape, dtype: Any, low: Any) -> Any:
    """Floats in [low, 1), for a number `low`."""
    return between(key, shape, dtype, make_literal(low, dtype), make_literal(1, dtype))


def _above_minus_one(key: Any, shape: Shape, dtype: Any) -> Any:
    """Floats strictly between -1 and 1."""
    minus_one, zero = (np.asarray(x, dtype) for x in (-1, 0))
    return _above(key, shape, dtype, np.nextafter(minus_one, zero))


def _draws(function: str, key: Any, shape: Any, dtype: Any) -> tuple[Any, Shape, Any]:
    """The checked arguments of a function that returns floats."""
    checked = single_key(function, key)
    return checked, shape_argument(function, shape), float_argument(function, dtype)


def normal(
    key: KeyLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the standard normal distribution.

    Complex samples have independent normal parts, each with variance 1/2.

    Args:
        key: a key, typed or raw.
        shape: shape of the result.
        dtype: a float or complex dtype; the default float dtype if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, or `shape` is not a shape.
        ValueError: `key` is an array of several keys, or `dtype` is not a float or complex dtype.

    Example:
        >>> from dovetail import random
        >>> x = random.normal(random.key(0), (10000,))
        >>> abs(float(x.mean())) < 0.05, abs(float(x.std()) - 1) < 0.05
        (True, True)
    """
    key = single_key("normal", key)
    dtype = dtype_argument("normal", dtype, "f", "fc", "a float or complex dtype")
    return divided_program("random.normal", out_sharding, _normal)(
        key, shape_argument("normal", shape), dtype
    )


@compiled_with("shape", "dtype")
def _normal(key: Any, shape: Any, dtype: Any) -> Any:
    key = typed(key)
    if dtypes.kind_of(dtype) == "f":
        return real_normal(key, shape, dtype)
    real_dtype = np.dtype(f"float{dtype.itemsize * 4}")
    real, imaginary = (
        convert_element_type(real_normal(k, shape, real_dtype), dtype) for k in pair_of_keys(key)
    )
    together = add_p.bind(real, mul(make_literal(1j, dtype), imaginary))
    return div_p.bind(together, make_literal(np.sqrt(np.asarray(2, real_dtype)), dtype))


def real_normal(key: Any, shape: Shape, dtype: Any) -> Any:
    """Floats from the standard normal distribution, by its inverse distribution function."""
    return _normal_of_error(_above_minus_one(key, shape, dtype), dtype)


def _normal_of_error(x: Any, dtype: Any) -> Any:
    return mul(make_literal(math.sqrt(2), dtype), erf_inv_fast_p.bind(x))


def exponential(
    key: KeyLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the exponential distribution with mean 1.

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
        >>> x = random.exponential(random.key(0), (10000,))
        >>> abs(float(x.mean()) - 1) < 0.05
        True
    """
    return divided_program("random.exponential", out_sharding, _exponential)(
        *_draws("exponential", key, shape, dtype)
    )


@compiled_with("shape", "dtype")
def _exponential(key: Any, shape: Any, dtype: Any) -> Any:
    # 1 - u is above 0 for u from [0, 1).
    return neg(_log1p(neg(unit_interval(typed(key), shape, dtype))))


def gumbel(
    key: KeyLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the standard Gumbel distribution, the limit for the largest of many.

    Args:
        key: a key, typed or raw.
        shape: shape of the result.
        dtype: a float dtype; the default one if None.
        mode: "low", or "high" for a finer resolution of large results; the option
            `high_dynamic_range_gumbel` chooses by default.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, or `shape` is not a shape.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, or `mode` is
            unknown.

    Example:
        >>> from dovetail import random
        >>> x = random.gumbel(random.key(0), (10000,))
        >>> abs(float(x.mean()) - 0.5772) < 0.05
        True
    """
    mode = gumbel_mode("gumbel", mode)
    return divided_program("random.gumbel", out_sharding, _gumbel)(
        *_draws("gumbel", key, shape, dtype), mode
    )


def gumbel_mode(function: str, mode: Any) -> str:
    """The mode in which Gumbel numbers are drawn.

    Raises:
        ValueError: there is no such mode.
    """
    if mode is None:
        return "high" if high_dynamic_range_gumbel.value else "low"
    if mode not in ("low", "high"):
        raise ValueError(f"random.{function}: mode must be 'low', 'high' or None, got {mode!r}")
    return str(mode)


@compiled_with("shape", "dtype", "mode")
def _gumbel(key: Any, shape: Any, dtype: Any, mode: Any) -> Any:
    return gumbel_numbers(typed(key), shape, dtype, mode)


def gumbel_numbers(key: Any, shape: Shape, dtype: Any, mode: str) -> Any:
    """Samples from the Gumbel distribution, by its inverse distribution function."""
    limits = dtypes.finfo(dtype)
    if mode == "low":
        return neg(_log(neg(_log(_above(key, shape, dtype, limits.tiny)))))
    coarse, fine = rows(unit_interval(key, (2, *shape), dtype))
    # Below one half, floats are closer together than the numbers drawn; fill the gaps.
    fine = add_p.bind(coarse, mul(make_literal(limits.eps, dtype), fine))
    fine = add_p.bind(fine, make_literal(limits.tiny, dtype))
    x = select_n_p.bind(ge_p.bind(coarse, make_literal(0.5, dtype)), fine, coarse)
    return neg(_log(neg(_log1p(neg(x)))))


def logistic(
    key: KeyLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the standard logistic distribution.

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
        >>> x = random.logistic(random.key(0), (10000,))
        >>> abs(float(x.mean())) < 0.05
        True
    """
    return divided_program("random.logistic", out_sharding, _logistic)(
        *_draws("logistic", key, shape, dtype)
    )


@compiled_with("shape", "dtype")
def _logistic(key: Any, shape: Any, dtype: Any) -> Any:
    x = _above(typed(key), shape, dtype, dtypes.finfo(dtype).tiny)
    return sub_p.bind(_log(x), _log1p(neg(x)))


def laplace(
    key: KeyLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the standard Laplace distribution: exponential ones of either sign.

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
        >>> x = random.laplace(random.key(0), (10000,))
        >>> abs(float(abs(x).mean()) - 1) < 0.05
        True
    """
    return divided_program("random.laplace", out_sharding, _laplace)(
        *_draws("laplace", key, shape, dtype)
    )


@compiled_with("shape", "dtype")
def _laplace(key: Any, shape: Any, dtype: Any) -> Any:
    x = _above_minus_one(typed(key), shape, dtype)
    return mul(sign_p.bind(x), _log1p(neg(abs_p.bind(x))))


def cauchy(
    key: KeyLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the standard Cauchy distribution, which has no mean.

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
        >>> import dovetail.numpy as jnp
        >>> from dovetail import random
        >>> x = random.cauchy(random.key(0), (10000,))
        >>> abs(float((abs(x) < 1).mean()) - 0.5) < 0.05
        True
    """
    return divided_program("random.cauchy", out_sharding, _cauchy)(
        *_draws("cauchy", key, shape, dtype)
    )


@compiled_with("shape", "dtype")
def _cauchy(key: Any, shape: Any, dtype: Any) -> Any:
    x = _above(typed(key), shape, dtype, dtypes.finfo(dtype).eps)
    centred = sub_p.bind(x, make_literal(0.5, dtype))
    return tan_p.bind(mul(make_literal(math.pi, dtype), centred), accuracy=None)


def truncated_normal(
    key: KeyLike,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the standard normal distribution truncated to lie between two bounds.

    Args:
        key: a key, typed or raw.
        lower: lower bounds; a scalar or an array that can be broadcast to `shape`.
        upper: upper bounds, likewise.
        shape: shape of the result; the common shape of the bounds if None.
        dtype: a float dtype; the default one if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype, strictly between the bounds.

    Raises:
        TypeError: `key` is not a key, or `shape` is not a shape.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, or a bound does
            not fit the shape.

    Example:
        >>> from dovetail import random
        >>> x = random.truncated_normal(random.key(0), -1.0, 2.0, (1000,))
        >>> bool((x > -1).all() and (x < 2).all())
        True
    """
    key = single_key("truncated_normal", key)
    dtype = float_argument("truncated_normal", dtype)
    shape = result_shape("truncated_normal", {"lower": lower, "upper": upper}, shape)
    return divided_program("random.truncated_normal", out_sharding, _truncated_normal)(
        key, lower, upper, shape, dtype
    )


@compiled_with("shape", "dtype")
def _truncated_normal(key: Any, lower: Any, upper: Any, shape: Any, dtype: Any) -> Any:
    root = make_literal(math.sqrt(2), dtype)
    errors, limits = [], []
    for name, x, inward in (("lower", lower, math.inf), ("upper", upper, -math.inf)):
        value = array_like(x, "random.truncated_normal", name)
        bound = spread("truncated_normal", name, converted(value, dtype), shape)
        errors.append(erf_p.bind(div_p.bind(bound, root)))
        still = bound if type(bound) is Literal else stop_gradient(bound)
        limits.append(nextafter_p.bind(still, make_literal(inward, dtype)))
    x = _normal_of_error(between(typed(key), shape, dtype, *errors), dtype)
    return min_p.bind(limits[1], max_p.bind(limits[0], x))
