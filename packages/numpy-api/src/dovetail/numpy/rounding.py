"""Rounding, and splitting numbers into integer part and fraction."""

from __future__ import annotations

import builtins
from typing import Any

from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    convert,
    inexact,
    integer,
    literal,
    no_out,
    refuse_complex,
    require_kind,
    value,
    weak_of,
)
from dovetail.numpy.compiled import compiled_with, elementwise, plain
from dovetail.numpy.conditions import literal_beside, pick
from dovetail.numpy.float_parts import signbit
from dovetail.typing import Array, ArrayLike


@elementwise
def floor(x: ArrayLike, /) -> Array:
    """Round down: the largest integer not greater than each element.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        An array of the shape and dtype of `x`; integers and booleans stay as they are.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.floor(jnp.array([1.7, -1.2])))
        [ 1. -2.]
    """
    x = array_like(x, "floor")
    refuse_complex("floor", x)
    require_kind("floor", x, "biuf", "real numbers")
    if dtypes.kind_of(x.dtype) != "f":
        return value(x)
    return lax.floor(x)


@elementwise
def ceil(x: ArrayLike, /) -> Array:
    """Round up: the smallest integer not less than each element.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        An array of the shape and dtype of `x`; integers and booleans stay as they are.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.ceil(jnp.array([1.2, -1.7])))
        [ 2. -1.]
    """
    x = array_like(x, "ceil")
    refuse_complex("ceil", x)
    require_kind("ceil", x, "biuf", "real numbers")
    if dtypes.kind_of(x.dtype) != "f":
        return value(x)
    return lax.ceil(x)


@elementwise
def trunc(x: ArrayLike) -> Array:
    """Round towards zero: drop the fraction of each element.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        An array of the shape and dtype of `x`; integers and booleans stay as they are.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.trunc(jnp.array([1.7, -1.7])))
        [ 1. -1.]
    """
    x = array_like(x, "trunc")
    refuse_complex("trunc", x)
    require_kind("trunc", x, "biuf", "real numbers")
    if dtypes.kind_of(x.dtype) != "f":
        return value(x)
    return _towards_zero(x)


@elementwise
def rint(x: ArrayLike, /) -> Array:
    """Round to the nearest integer, halves to the even one; the result is a float.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`; complex numbers are rounded in both parts.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.rint(jnp.array([0.5, 1.5, -1.7])))
        [ 0.  2. -2.]
    """
    x = array_like(x, "rint")
    if dtypes.kind_of(x.dtype) in ("b", "i", "u"):
        x = convert(x, dtypes.default_dtype("f"))
    return _to_nearest(inexact("rint", x))


@compiled_with("decimals")
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Round to a number of decimals; halves go to the even neighbour.

    Args:
        a: array or scalar; complex numbers are rounded in both parts.
        decimals: number of decimals to keep; a negative number rounds to tens, hundreds ...
        out: not supported, since arrays are immutable.

    Returns:
        An array of the shape and dtype of `a`.

    Differs:
        Python's `round` of complex numbers is this function, too; JAX drops their imaginary parts
        to make integers of them.

        >>> print(round(jnp.array([1.4 + 2.6j])))
        [1.+3.j]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.round(jnp.array([1.234, 2.71]), 1), jnp.round(1234, -2))
        [1.2 2.7] 1200
    """
    no_out("round", out)
    # No number has so many digits on either side of the point, and powers of ten take long to make.
    decimals = max(-400, min(400, integer("round", "decimals", decimals)))
    x = array_like(a, "round", "a")
    dtype = x.dtype
    kind = dtypes.kind_of(dtype)
    if kind == "b" and decimals < 0:
        raise TypeError("round: booleans cannot be rounded to tens; convert them to integers first")
    if kind in ("b", "i", "u"):
        if decimals >= 0:
            return value(x)
        if 10**-decimals > dtypes.iinfo(dtype).max:
            return lax.full_like(x, 0)
        return _round_integers(x, 10**-decimals)
    if decimals == 0:
        return _to_nearest(x)
    if kind == "c":
        return lax.complex(*(_to_decimals(part(x), decimals) for part in (lax.real, lax.imag)))
    return _to_decimals(x, decimals)


def _to_decimals(x: Any, decimals: int) -> Any:
    dtype = x.dtype
    if dtypes.itemsize_bits(dtype) == 16:
        # The scaled value overflows or loses digits in 16 bits.
        wide = lax.convert_element_type(x, "float32")
        return lax.convert_element_type(_round_scaled(wide, decimals), dtype)
    return _round_scaled(x, decimals)


def _round_scaled(x: Any, decimals: int) -> Any:
    # Decimals beyond the dtype's range: numbers have no digits there, or no others. The inverse of
    # the unit must be a normal number, too, since compilers multiply by it.
    if 10 ** builtins.abs(decimals) > 1 / float(dtypes.finfo(x.dtype).tiny):
        if decimals > 0:
            return value(x)
        return pick(lax.is_finite(x), lax.mul(x, literal_beside(0, x)), x)
    factor = literal_beside(10.0 ** builtins.abs(decimals), x)
    if decimals > 0:
        scaled = lax.mul(x, factor)
        return pick(lax.is_finite(scaled), lax.div(_to_nearest(scaled), factor), x)
    return lax.mul(_to_nearest(lax.div(x, factor)), factor)


def _round_integers(x: Any, unit: int) -> Any:
    """Round integers to multiples of a unit, a power of ten, exactly and without floats."""
    step, zero = literal(unit, x.dtype), literal(0, x.dtype)
    rest = lax.rem(x, step)
    rest = pick(lax.lt(rest, zero), lax.add(rest, step), rest)
    down = lax.sub(x, rest)
    half = literal(unit // 2, x.dtype)
    odd = lax.ne(lax.rem(lax.div(down, step), literal(2, x.dtype)), zero)
    up = lax.bitwise_or(lax.gt(rest, half), lax.bitwise_and(lax.eq(rest, half), odd))
    return pick(up, lax.add(down, step), down)


def _to_nearest(x: Any) -> Any:
    if dtypes.kind_of(x.dtype) == "c":
        return lax.complex(_to_nearest(lax.real(x)), _to_nearest(lax.imag(x)))
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def _towards_zero(x: Any) -> Any:
    return pick(lax.lt(x, literal(0, x.dtype)), lax.ceil(x), lax.floor(x))


@elementwise
def modf(x: ArrayLike, /, out: None = None) -> tuple[Array, Array]:
    """Split elements into fraction and integer part, both with the sign of the element.

    Args:
        x: array or scalar of a real dtype.
        out: not supported, since arrays are immutable.

    Returns:
        A tuple of two float arrays of the shape of `x`: fractions and integer parts.

    Differs:
        A part that is zero has the sign of the number, as in NumPy.

        >>> print(*jnp.modf(-0.5), *jnp.modf(-2.0))
        -0.5 -0.0 -0.0 -2.0

        The fraction of an infinity is zero, as in NumPy, too.

        >>> print(*jnp.modf(-jnp.inf))
        -0.0 -inf

    Example:
        >>> import dovetail.numpy as jnp
        >>> fraction, whole = jnp.modf(jnp.array([1.5, -2.25]))
        >>> print(fraction, whole)
        [ 0.5  -0.25] [ 1. -2.]
    """
    no_out("modf", out)
    x = inexact("modf", x)
    refuse_complex("modf", x)
    whole = _towards_zero(x)
    infinite = lax.eq(lax.abs(x), literal(float("inf"), x.dtype))
    zero = literal(0, x.dtype, weak=weak_of(x))
    finite = pick(infinite, zero, whole)
    positive, negative = lax.sub(x, finite), lax.neg(lax.sub(finite, x))
    # The difference of equal numbers is 0.0; only when negated does it have the sign of -2.0.
    limit = lax.neg(zero)
    fraction = pick(
        plain(signbit)(x), pick(infinite, limit, negative), pick(infinite, zero, positive)
    )
    return fraction, whole
