"""Powers and roots of elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    convert,
    inexact,
    inexact_pair,
    literal,
    promoted_pair,
    refuse_complex,
    weak_of,
)
from dovetail.extend.avals import Tracer, aval_of
from dovetail.numpy.compiled import compiled_with, elementwise
from dovetail.numpy.conditions import pick
from dovetail.typing import Array, ArrayLike


@elementwise
def square(x: ArrayLike, /) -> Array:
    """The square of each element.

    Args:
        x: array or scalar.

    Returns:
        An array of the shape and dtype of `x` (int for booleans).

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.square(jnp.array([1, -2, 3])))
        [1 4 9]
    """
    x = array_like(x, "square")
    if x.dtype == bool:
        x = convert(x, np.dtype("int32"))
    return lax.square_p.bind(x)


@elementwise
def sqrt(x: ArrayLike, /) -> Array:
    """The square root of each element; nan for negative real numbers.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.sqrt(jnp.array([4., 9.])))
        [2. 3.]
    """
    return lax.sqrt(inexact("sqrt", x))


@elementwise
def cbrt(x: ArrayLike, /) -> Array:
    """The cube root of each element, negative for negative numbers.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.cbrt(jnp.array([8., -27.])))
        [ 2. -3.]
    """
    x = inexact("cbrt", x)
    refuse_complex("cbrt", x)
    return lax.cbrt(x)


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The first array raised to the power of the second, element by element.

    A Python integer as exponent is part of the program: the power is computed by multiplication,
    and is differentiable wherever the base is.

    Args:
        x1: array or scalar: the base.
        x2: array or scalar that broadcasts with `x1`: the exponent.

    Returns:
        An array of the common shape and dtype (int for booleans). Negative integer exponents in an
        array give reciprocals rounded towards zero.

    Raises:
        TypeError: the base holds integers, and the exponent is a negative integer whose value is
            known: a number, or an array of rank 0 that is not traced.

    Differs:
        The derivatives of ``x ** y`` at (0, 0) are 0, not nan.

        >>> dx, dy = dt.grad(jnp.power, argnums=(0, 1))(0.0, 0.0)
        >>> print(dx, dy)
        0.0 0.0

        An array of rank 0 as the exponent counts for the type of the result as other arrays do.

        >>> print(jnp.power(2.0, jnp.int32(3)).weak_type)
        False

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.power(jnp.arange(4), 2), jnp.power(4., jnp.array([0.5, 1.5])))
        [0 1 4 9] [2. 8.]
    """
    if isinstance(x2, int):
        exponent = int(x2)
        if isinstance(x1, Tracer):
            return integer_power(x1, exponent)
        return _compiled_integer_power(x1, exponent)
    if getattr(x2, "ndim", None) == 0 and not isinstance(x2, Tracer):
        _check_exponent(x1, x2)
    return _power(x1, x2) if isinstance(x1, Tracer) else _compiled_power(x1, x2)


def integer_power(x: Any, exponent: int) -> Any:
    """An array raised to a Python integer, by multiplication."""
    x = array_like(x, "power", "x1")
    kind = dtypes.kind_of(x.dtype)
    if kind == "b":
        x = convert(x, np.dtype("int32"))
    if exponent < 0 and kind in ("b", "i", "u"):
        raise _negative_power(exponent)
    return lax.integer_pow(x, exponent)


def _negative_power(exponent: int) -> TypeError:
    return TypeError(
        f"power: integers cannot be raised to the negative power {exponent}; write "
        f"x.astype(float) ** {exponent}"
    )


def _check_exponent(base: Any, exponent: Any) -> None:
    """Refuse a negative exponent in an array of rank 0, if the base holds integers."""
    kinds = (dtypes.kind_of(aval_of(array_like(v, "power")).dtype) for v in (base, exponent))
    if all(kind in ("b", "i", "u") for kind in kinds) and int(exponent) < 0:
        raise _negative_power(int(exponent))


_compiled_integer_power = compiled_with("exponent")(integer_power)


def _power(x1: Any, x2: Any) -> Any:
    x, y = promoted_pair("power", x1, x2)
    kind = dtypes.kind_of(x.dtype)
    if kind in ("f", "c"):
        result = lax.pow(x, y)
        if not weak_of(result):
            return result
        base, exponent = (aval_of(array_like(v, "power")) for v in (x1, x2))
        # A weakly typed base takes its dtype from an array of integers, too.
        own = dtypes.kind_of(base.dtype) == kind and dtypes.kind_of(exponent.dtype) in ("i", "u")
        return convert(result, result.dtype) if own and not exponent.weak_type else result
    if kind == "b":
        dtype = np.dtype("int32")
        x, y = convert(x, dtype), convert(y, dtype)
    if type(x1) is int and x1 == 2:
        return _power_of_two(y)
    return _power_of_integers(x, y)


_compiled_power = elementwise(_power)


def _power_of_two(y: Any) -> Any:
    """Two raised to integers, by one shift, where the base is a number of the program."""
    dtype = y.dtype
    zero, bits = literal(0, dtype), literal(dtypes.itemsize_bits(dtype), dtype)
    is_distance = lax.bitwise_and(lax.ge(y, zero), lax.lt(y, bits))
    distance = pick(is_distance, y, zero)
    return pick(is_distance, lax.shift_left(lax.full_like(y, 1), distance), zero)


def _power_of_integers(x: Any, y: Any) -> Any:
    """Repeated squaring, one step for each bit that a positive exponent can have."""
    dtype = x.dtype
    bits = dtypes.itemsize_bits(dtype) - (dtypes.kind_of(dtype) == "i")
    one, zero = literal(1, dtype), literal(0, dtype)
    result: Any = one
    base, exponent = x, y
    for step in range(bits):
        odd = lax.ne(lax.bitwise_and(exponent, one), zero)
        result = pick(odd, lax.mul(result, base) if step else base, result)
        if step < bits - 1:
            exponent = lax.shift_right_logical(exponent, one)
            base = lax.mul(base, base)
    if dtypes.kind_of(dtype) == "u":
        return result
    # The reciprocal is 0, except that 1 stays 1 and the sign of -1 depends on the exponent's
    # parity.
    odd = lax.ne(lax.bitwise_and(y, one), zero)
    minus = pick(odd, x, one)
    is_unit = lax.eq(lax.abs(x), one)
    reciprocal_ = pick(is_unit, minus, zero)
    return pick(lax.lt(y, zero), reciprocal_, result)


@elementwise
def float_power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`power` computed in floats, even for integers.

    Args:
        x1: array or scalar: the base.
        x2: array or scalar that broadcasts with `x1`: the exponent.

    Returns:
        A float or complex array of the common shape. (In NumPy it has at least 64 bits.)

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.float_power(jnp.array([1, 2, 4]), -1))
        [1.   0.5  0.25]
    """
    x, y = inexact_pair("float_power", x1, x2)
    return lax.pow(x, y)
