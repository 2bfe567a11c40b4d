"""Signs, exponents and neighbours of floats."""

from __future__ import annotations

from typing import Any

import numpy as np
from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    convert,
    float_pair,
    inexact,
    literal,
    promoted_pair,
    refuse_complex,
    require_kind,
    value,
    weak_of,
)
from dovetail.extend.avals import aval_of
from dovetail.numpy.compiled import elementwise
from dovetail.numpy.conditions import pick
from dovetail.typing import Array, ArrayLike


def _bits(x: Any) -> Any:
    """The bits of floats as signed integers of the same width."""
    return lax.bitcast_convert_type(x, f"int{dtypes.itemsize_bits(aval_of(x).dtype)}")


def _is_negative(x: Any) -> Any:
    bits = _bits(x)
    return lax.lt(bits, literal(0, aval_of(bits).dtype))


@elementwise
def signbit(x: ArrayLike, /) -> Array:
    """Test whether the sign bit is set, element by element, for zeros and nan too.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A boolean array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.signbit(jnp.array([1., -0., -2.])))
        [False  True  True]
    """
    x = array_like(x, "signbit")
    refuse_complex("signbit", x)
    require_kind("signbit", x, "biuf", "real numbers")
    kind = dtypes.kind_of(aval_of(x).dtype)
    if kind == "f":
        return _is_negative(value(x))
    if kind == "i":
        return lax.lt(x, literal(0, aval_of(x).dtype))
    return lax.full_like(x, False, dtype=bool)


@elementwise
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Give the numbers of one array the signs of another.

    Args:
        x1: array or scalar of a real dtype: the magnitudes.
        x2: array or scalar that broadcasts with `x1`: the signs, including that of zeros.

    Returns:
        A float array of the common shape.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.copysign(3., jnp.array([1., -0.])))
        [ 3. -3.]
    """
    x, y = float_pair("copysign", x1, x2)
    x, y = value(x), value(y)
    x = convert(x, aval_of(x).dtype, weak_of(x) and weak_of(y))
    return pick(lax.ne(_is_negative(x), _is_negative(y)), lax.neg(x), x)


@elementwise
def nextafter(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The next float after `x1` in the direction of `x2`.

    Args:
        x1: array or scalar of a real dtype.
        x2: array or scalar that broadcasts with `x1`: the direction.

    Returns:
        A float array of the common shape.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.nextafter(jnp.float32(1), 2) - 1 == jnp.finfo("float32").eps)
        True
    """
    x, y = float_pair("nextafter", x1, x2)
    return lax.nextafter(x, y)


@elementwise
def spacing(x: ArrayLike, /) -> Array:
    """The distance from each number to the next float of greater magnitude, with its sign.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`; nan for nan and infinities, infinity for the largest
        number.

    Differs:
        It has the sign of the number for every dtype; that of float16 is positive in JAX.

        >>> print(jnp.spacing(jnp.float16(-1)))
        -0.000977

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.spacing(jnp.float32(1)) == jnp.finfo("float32").eps)
        True
    """
    x = value(inexact("spacing", x))
    refuse_complex("spacing", x)
    dtype = aval_of(x).dtype
    mantissa, _, integer = _layout(dtype)
    if not mantissa:
        return x
    # Made of its bits, since processors may flush subnormal numbers to zero in arithmetic. Those
    # have the spacing of the smallest normal numbers.
    one, digits = literal(1, integer), literal(mantissa, integer)
    exponent = lax.max(_exponent_field(_bits(x), dtype), one)
    normal = lax.shift_left(lax.sub(exponent, digits), digits)
    tiny = lax.shift_left(one, lax.sub(exponent, one))
    bits = pick(lax.gt(exponent, digits), normal, tiny)
    distance = lax.bitcast_convert_type(bits, dtype)
    largest, infinity = literal(dtypes.finfo(dtype).max, dtype), literal(float("inf"), dtype)
    distance = pick(lax.lt(lax.abs(x), largest), distance, infinity)
    minus_zero = literal(dtypes.iinfo(integer).min, integer)
    negative = lax.bitwise_and(_is_negative(x), lax.ne(_bits(x), minus_zero))
    signed = pick(negative, lax.neg(distance), distance)
    return pick(lax.is_finite(x), signed, literal(float("nan"), dtype))


def _layout(dtype: Any) -> tuple[int, int, Any]:
    """The number of mantissa bits, the bias of the exponent, and the dtype of the bits."""
    limits = dtypes.finfo(dtype)
    bits = dtypes.itemsize_bits(dtype)
    return int(limits.nmant), 1 - int(limits.minexp), np.dtype(f"int{bits}")


def _exponent_field(bits: Any, dtype: Any) -> Any:
    """The biased exponents in the bits of numbers; zero for subnormal ones."""
    mantissa, _, integer = _layout(dtype)
    width = dtypes.itemsize_bits(dtype)
    field = lax.shift_right_logical(bits, literal(mantissa, integer))
    return lax.bitwise_and(field, literal((1 << (width - mantissa - 1)) - 1, integer))


def _power_of_two(exponent: Any, dtype: Any) -> Any:
    """Powers of two, from 32-bit exponents in the range of normal numbers."""
    mantissa, bias, integer = _layout(dtype)
    biased = lax.add(exponent, literal(bias, np.dtype("int32")))
    bits = lax.shift_left(convert(biased, integer), literal(mantissa, integer))
    return lax.bitcast_convert_type(bits, dtype)


def _scaled(x: Any, exponent: Any) -> Any:
    """`x` times powers of two with 32-bit exponents, exact except for rounding the result."""
    dtype = aval_of(x).dtype
    _, bias, _ = _layout(dtype)
    int32 = np.dtype("int32")
    largest, smallest = literal(bias, int32), literal(1 - bias, int32)
    # Four normal factors suffice to go from the smallest number to the largest and beyond.
    rest = exponent
    for _ in range(4):
        part = lax.min(lax.max(rest, smallest), largest)
        x = lax.mul(x, _power_of_two(part, dtype))
        rest = lax.sub(rest, part)
    return x


@elementwise
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply by powers of two: ``x1 * 2**x2`` without intermediate overflow.

    Args:
        x1: array or scalar of a real dtype.
        x2: integer array or scalar that broadcasts with `x1`: the exponents.

    Returns:
        A float array of the common shape.

    Raises:
        TypeError: the exponents are not integers.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.ldexp(jnp.array([0.75, -3.]), jnp.array([2, 1])))
        [ 3. -6.]
    """
    x = inexact("ldexp", x1, "x1")
    refuse_complex("ldexp", x)
    exponent = array_like(x2, "ldexp", "x2")
    require_kind("ldexp", exponent, "biu", "integer exponents")
    dtype = aval_of(x).dtype
    # Broadcast together, but keep both dtypes.
    x = at_least_single(x)
    x, spread = promoted_pair("ldexp", x, convert(exponent, aval_of(x).dtype))
    shape = lax.broadcast_shapes(aval_of(x).shape, aval_of(spread).shape)
    x = lax.broadcast_in_dim(x, shape, _trailing(x, shape))
    exponent = _as_int32(exponent)
    exponent = lax.broadcast_in_dim(exponent, shape, _trailing(exponent, shape))
    return convert(_scaled(x, exponent), dtype)


def at_least_single(x: Any) -> Any:
    """Floats of 32 bits or more, which factorisations accept, and of which results are exact."""
    return convert(x, np.dtype("float32")) if dtypes.itemsize_bits(aval_of(x).dtype) < 32 else x


def _as_int32(x: Any) -> Any:
    """Convert integers to 32 bits; those that do not fit become the nearest that do."""
    dtype, int32 = aval_of(x).dtype, np.dtype("int32")
    fitting = dtypes.iinfo(int32)
    if dtypes.kind_of(dtype) != "b" and dtypes.iinfo(dtype).max > fitting.max:
        smallest = max(dtypes.iinfo(dtype).min, fitting.min)
        x = lax.clamp(literal(smallest, dtype), x, literal(fitting.max, dtype))
    return convert(x, int32)


def _trailing(x: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(len(shape) - aval_of(x).ndim, len(shape)))


@elementwise
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Split numbers: ``x == mantissa * 2**exponent``, with mantissas from 0.5 to 1 in magnitude.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A tuple of a float array of mantissas and a 32-bit integer array of exponents. Zeros,
        infinities and nan are their own mantissas, with the exponent 0.

    Differs:
        On the CPU compiled arithmetic takes subnormal numbers of 32 and 64 bits for zeros.
        `frexp`, `nextafter`, `signbit` and `copysign` do not.

        >>> print(*jnp.frexp(np.float32(1e-40)))
        0.54444885 -132

        Mantissas are from 0.5 to 1 in all float dtypes. JAX's of some of 8 bits are not.

        >>> print(*jnp.frexp(jnp.ones((), jnp.float8_e4m3fn)))
        0.5 1

    Example:
        >>> import dovetail.numpy as jnp
        >>> mantissa, exponent = jnp.frexp(jnp.array([3., -0.5]))
        >>> print(mantissa, exponent)
        [ 0.75 -0.5 ] [2 0]
    """
    x = value(inexact("frexp", x))
    refuse_complex("frexp", x)
    given = aval_of(x).dtype
    x = at_least_single(x)
    dtype = aval_of(x).dtype
    mantissa, bias, integer = _layout(dtype)
    int32 = np.dtype("int32")
    digits, zero = literal((1 << mantissa) - 1, integer), literal(0, integer)

    # Subnormal numbers have no exponent of their own, and processors may flush them to zero in
    # arithmetic: their digits, read as an integer, are a normal number.
    bits = _bits(x)
    magnitude = lax.bitwise_and(bits, digits)
    small = lax.eq(_exponent_field(bits, dtype), zero)
    tiny = lax.bitwise_and(small, lax.ne(magnitude, zero))
    counted = convert(magnitude, dtype)
    counted = pick(lax.lt(bits, zero), lax.neg(counted), counted)
    normal = pick(tiny, counted, x)
    field = convert(_exponent_field(_bits(normal), dtype), int32)
    exponent = lax.sub(field, literal(bias - 1, int32))
    nothing = lax.bitwise_and(small, lax.eq(magnitude, zero))
    whole = lax.bitwise_or(nothing, lax.bitwise_not(lax.is_finite(x)))
    # The inverse power of two may be subnormal; four times it is not.
    factor = _power_of_two(lax.sub(literal(2, int32), exponent), dtype)
    fraction = pick(whole, x, lax.mul(lax.mul(normal, factor), literal(0.25, dtype)))
    exponent = pick(tiny, lax.sub(exponent, literal(bias + mantissa - 1, int32)), exponent)
    return convert(fraction, given), pick(whole, literal(0, int32), exponent)
