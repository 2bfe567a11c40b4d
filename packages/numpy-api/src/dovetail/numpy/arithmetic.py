"""Arithmetic on elements: sums, products, quotients, extremes of two arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    Literal,
    array_like,
    convert,
    inexact,
    inexact_pair,
    literal,
    promoted_pair,
    refuse_complex,
    require_kind,
    value,
    weak_of,
)
from dovetail.extend.avals import aval_of
from dovetail.numpy.compiled import elementwise, plain
from dovetail.numpy.conditions import pick
from dovetail.numpy.ufuncs import universal
from dovetail.typing import Array, ArrayLike

_NUMBERS = "integers, floating point and complex numbers"


@universal(2, 0)
def add(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Add two arrays, element by element; for booleans, logical or.

    Args:
        x1: array or scalar of any dtype.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        An array of the common shape and dtype. Integers wrap around on overflow.

    Differs:
        An integer of Python must fit the dtype of the array that it is combined with, as in
        NumPy 2, where JAX lets it wrap around. An argument of a function under `jit` is an
        array, whose conversions wrap around.

        >>> jnp.ones(2, "uint8") + 300
        Traceback (most recent call last):
            ...
        OverflowError: add: the Python integer 300 does not fit uint8, the dtype of ...

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.add(jnp.arange(3), 10))
        [10 11 12]
    """
    x, y = promoted_pair("add", x1, x2)
    if x.dtype == bool:
        return lax.or_p.bind(x, y)
    return lax.add_p.bind(x, y)


@universal(2)
def subtract(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Subtract one array from another, element by element.

    Args:
        x1: array or scalar of a numeric dtype.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        An array of the common shape and dtype. Integers wrap around on overflow.

    Raises:
        TypeError: both are boolean; use `logical_xor` to see where they differ.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.subtract(jnp.arange(3), 1))
        [-1  0  1]
    """
    x, y = promoted_pair("subtract", x1, x2)
    if x.dtype == bool:
        require_kind("subtract", x, "iufc", f"{_NUMBERS}; logical_xor tells where booleans differ")
    return lax.sub_p.bind(x, y)


@universal(2, 1)
def multiply(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply two arrays, element by element; for booleans, logical and.

    Args:
        x1: array or scalar of any dtype.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        An array of the common shape and dtype. Integers wrap around on overflow.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.multiply(jnp.arange(3), 2.5))
        [0.  2.5 5. ]
    """
    x, y = promoted_pair("multiply", x1, x2)
    return lax.mul_p.bind(x, y)


@elementwise
def true_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Divide one array by another, element by element; the result is a float.

    Args:
        x1: array or scalar: the dividend.
        x2: array or scalar that broadcasts with `x1`: the divisor.

    Returns:
        A float or complex array of the common shape. Division by zero gives inf or nan.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.true_divide(jnp.arange(3), 2))
        [0.  0.5 1. ]
    """
    x, y = inexact_pair("divide", x1, x2)
    return lax.div_p.bind(x, y)


@elementwise
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The largest integer not greater than the quotient, element by element.

    Args:
        x1: integer or float array: the dividend.
        x2: integer or float array that broadcasts with `x1`: the divisor.

    Returns:
        An array of the common shape and dtype. Division by zero gives 0 for integers, nan or inf
        for floats.

    Raises:
        TypeError: an operand is complex.

    Differs:
        An integer divided by zero is 0, and so is the rest, as in NumPy. `dovetail.lax.div` is
        StableHLO's, which gives -1, and `dovetail.lax.rem` gives the dividend.

        >>> print(jnp.arange(3) // 0, jnp.arange(3) % 0, lax.rem(jnp.arange(3), 0))
        [0 0 0] [0 0 0] [0 1 2]

        Infinity by a finite number is infinite, and a finite number by infinity is a zero with
        the sign of the quotient, as in the array API standard (2025.12) where it differs from
        NumPy.

        >>> print(jnp.floor_divide(jnp.array([jnp.inf, -1.0]), jnp.array([2.0, jnp.inf])))
        [inf -0.]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.floor_divide(jnp.arange(-3, 4), 2))
        [-2 -1 -1  0  0  1  1]
    """
    return _floor_and_rest(*_real_pair("floor_divide", x1, x2))[0]


@elementwise
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of the division, with the sign of the divisor, element by element.

    It complements `floor_divide`: ``x1 == floor_divide(x1, x2) * x2 + remainder(x1, x2)``.

    Args:
        x1: integer or float array: the dividend.
        x2: integer or float array that broadcasts with `x1`: the divisor.

    Returns:
        An array of the common shape and dtype. For division by zero it is 0 for integers, nan for
        floats.

    Raises:
        TypeError: an operand is complex.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.remainder(jnp.arange(-3, 4), 2))
        [1 0 1 0 1 0 1]
    """
    return _rest(*_real_pair("remainder", x1, x2))


@elementwise
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """The pair of `floor_divide` and `remainder`.

    Args:
        x1: integer or float array: the dividend.
        x2: integer or float array that broadcasts with `x1`: the divisor.

    Returns:
        A tuple of two arrays of the common shape and dtype.

    Example:
        >>> import dovetail.numpy as jnp
        >>> quotient, rest = jnp.divmod(jnp.array([7, -7]), 3)
        >>> print(quotient, rest)
        [ 2 -3] [1 2]
    """
    return _floor_and_rest(*_real_pair("divmod", x1, x2))


@elementwise
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of the division as in C, with the sign of the dividend, element by element.

    Args:
        x1: integer or float array: the dividend.
        x2: integer or float array that broadcasts with `x1`: the divisor.

    Returns:
        An array of the common shape and dtype. For division by zero it is 0 for integers, nan for
        floats.

    Raises:
        TypeError: an operand is complex.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fmod(jnp.arange(-3, 4), 2))
        [-1  0 -1  0  1  0  1]
    """
    x, y = _real_pair("fmod", x1, x2)
    if dtypes.kind_of(x.dtype) == "f":
        return lax.rem(x, y)
    return _integer_rest(x, y)[0]


def _real_pair(function: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    x, y = promoted_pair(function, x1, x2)
    refuse_complex(function, x)
    if x.dtype == bool:
        dtype = np.dtype("int32")
        return convert(x, dtype), convert(y, dtype)
    return x, y


def _zero(x: Any) -> Any:
    return literal(0, aval_of(x).dtype, weak_of(x))


def _one(x: Any) -> Any:
    return literal(1, aval_of(x).dtype, weak_of(x))


def _guarded(x: Any, by_zero: Any, otherwise: Any) -> Any:
    """`otherwise`, but zero where `by_zero` is true; None means nowhere."""
    return otherwise if by_zero is None else pick(by_zero, _zero(x), otherwise)


def _integer_rest(x: Any, y: Any) -> tuple[Any, Any]:
    """The remainder with the sign of the dividend, and where there is no quotient."""
    if type(y) is Literal and y.val:
        return lax.rem(x, y), None  # type: ignore[arg-type]
    by_zero = lax.eq(y, _zero(y))
    return _guarded(x, by_zero, lax.rem(x, y)), by_zero


def _crosses(rest: Any, y: Any) -> Any:
    """Where a remainder is nonzero and its sign differs from the divisor's."""
    zero = _zero(rest)
    if type(y) is Literal and y.val:
        return lax.lt(rest, zero) if y.val > 0 else lax.gt(rest, zero)
    return lax.bitwise_and(lax.ne(rest, zero), lax.ne(lax.lt(rest, zero), lax.lt(y, zero)))


def _rest(x: Any, y: Any) -> Any:
    kind = dtypes.kind_of(x.dtype)
    rest = lax.rem(x, y) if kind == "f" else None
    if rest is None:
        rest = _integer_rest(x, y)[0]
        if kind == "u":
            return rest
    else:
        rest = _zero_like_divisor(rest, y)
    return pick(_crosses(rest, y), lax.add(rest, y), rest)


def _zero_like_divisor(rest: Any, y: Any) -> Any:
    """A remainder with the sign of the divisor, even where it is zero; the same derivative."""
    zero = pick(lax.lt(y, _zero(y)), literal(-0.0, rest.dtype, weak_of(rest)), _zero(rest))
    same = lax.sub(lax.stop_gradient(rest), rest)
    return pick(lax.eq(rest, _zero(rest)), lax.sub(zero, same), rest)


def _is_infinite(x: Any) -> Any:
    return lax.eq(lax.abs(x), literal(math.inf, x.dtype))


def _floor_and_rest(x: Any, y: Any) -> tuple[Any, Any]:
    """Quotient rounded down, and remainder, of two operands of one real dtype."""
    kind = dtypes.kind_of(x.dtype)
    if kind == "f":
        rest = lax.rem(x, y)
        crosses = _crosses(rest, y)
        quotient = lax.div(lax.sub(x, rest), y)
        quotient = pick(crosses, lax.sub(quotient, _one(x)), quotient)
        # x - rest is a multiple of y up to rounding, so the nearest integer is the quotient.
        quotient = lax.round(quotient, lax.RoundingMethod.TO_NEAREST_EVEN)
        # Zeros and infinities have the sign of the quotient, as the array API standard says.
        exact = lax.stop_gradient(lax.div(x, y))
        quotient = pick(lax.eq(quotient, _zero(x)), lax.mul(exact, _zero(x)), quotient)
        special = _is_infinite(x)
        if type(y) is not Literal or not y.val or not np.isfinite(y.val):
            special = lax.bitwise_or(special, lax.eq(y, _zero(y)))
            special = lax.bitwise_or(special, _is_infinite(y))
        quotient = pick(special, exact, quotient)
        return quotient, pick(crosses, lax.add(rest, y), _zero_like_divisor(rest, y))
    rest, by_zero = _integer_rest(x, y)
    quotient = lax.div(x, y)
    if kind == "i":
        crosses = _crosses(rest, y)
        quotient = pick(crosses, lax.sub(quotient, _one(x)), quotient)
        rest = pick(crosses, lax.add(rest, y), rest)
    return _guarded(x, by_zero, quotient), rest


@universal(1)
def negative(x: ArrayLike, /) -> Array:
    """Negate each element; unsigned integers wrap around.

    Args:
        x: array or scalar of a numeric dtype.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is boolean; `logical_not` inverts it.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.negative(jnp.array([1., -2.])))
        [-1.  2.]
    """
    x = array_like(x, "negative")
    require_kind("negative", x, "iufc", f"{_NUMBERS}; logical_not inverts booleans")
    return lax.neg_p.bind(x)


@elementwise
def positive(x: ArrayLike, /) -> Array:
    """The array unchanged.

    Args:
        x: array or scalar.

    Returns:
        An array of the shape and dtype of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.positive(jnp.array([1., -2.])))
        [ 1. -2.]
    """
    x = array_like(x, "positive")
    return value(x)


@elementwise
def abs(x: ArrayLike, /) -> Array:
    """The absolute value of each element; the modulus of complex numbers.

    Args:
        x: array or scalar.

    Returns:
        An array of the shape and dtype of `x`; for complex `x`, of the float dtype of its parts.
        The most negative integer has no positive counterpart and stays as it is.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.abs(jnp.array([-1., 2.])), jnp.abs(3 + 4j))
        [1. 2.] 5.0
    """
    x = array_like(x, "abs")
    return plain(positive)(x) if dtypes.kind_of(x.dtype) in ("b", "u") else lax.abs_p.bind(x)


@elementwise
def fabs(x: ArrayLike, /) -> Array:
    """The absolute value of each element as a float.

    Args:
        x: array or scalar of a real dtype.

    Returns:
        A float array of the shape of `x`.

    Raises:
        TypeError: `x` is complex; use `abs`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fabs(jnp.array([-1, 2])))
        [1. 2.]
    """
    x = inexact("fabs", x)
    refuse_complex("fabs", x)
    return lax.abs_p.bind(x)


@elementwise
def sign(x: ArrayLike, /) -> Array:
    """The sign of each element: -1, 0 or 1; for complex numbers, ``x / abs(x)``.

    Args:
        x: array or scalar of a numeric dtype.

    Returns:
        An array of the shape and dtype of `x`; nan for nan, 0 for zeros of either sign.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.sign(jnp.array([-3, 0, 5])))
        [-1  0  1]
    """
    x = array_like(x, "sign")
    require_kind("sign", x, "iufc", _NUMBERS)
    signs = lax.sign_p.bind(x)
    if dtypes.kind_of(x.dtype) not in ("f", "c"):
        return signs
    zero = _zero(x)
    return pick(lax.eq(x, zero), zero, signs)


@elementwise
def reciprocal(x: ArrayLike, /) -> Array:
    """One divided by each element, as a float; NumPy truncates the result for integers.

    Args:
        x: array or scalar.

    Returns:
        A float or complex array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.reciprocal(jnp.array([1., 2., 4.])))
        [1.   0.5  0.25]
    """
    x = inexact("reciprocal", x)
    return lax.div(literal(1, x.dtype, weak_of(x)), x)


# ------------------------------------------------------------------------------------ extremes


@universal(2)
def maximum(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The greater of two arrays, element by element; nan where either is nan.

    Args:
        x1: array or scalar.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        An array of the common shape and dtype. Where both are equal, each gets half of the
        gradient.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.maximum(jnp.array([1, 5, 3]), 2))
        [2 5 3]
    """
    x, y = promoted_pair("maximum", x1, x2)
    return lax.max_p.bind(x, y)


@universal(2)
def minimum(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The smaller of two arrays, element by element; nan where either is nan.

    Args:
        x1: array or scalar.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        An array of the common shape and dtype. Where both are equal, each gets half of the
        gradient.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.minimum(jnp.array([1, 5, 3]), 2))
        [1 2 2]
    """
    x, y = promoted_pair("minimum", x1, x2)
    return lax.min_p.bind(x, y)


@elementwise
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greater of two arrays, element by element; nan only where both are nan.

    Args:
        x1: array or scalar.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        An array of the common shape and dtype. Where both are equal, each gets half of the
        gradient.

    Differs:
        Where both are equal, the gradient is shared, as that of `maximum` is; in JAX all of it
        goes to the second.

        >>> print(*dt.grad(jnp.fmax, (0, 1))(1.0, 1.0))
        0.5 0.5

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fmax(jnp.array([1., jnp.nan]), 0.))
        [1. 0.]
    """
    return _ignoring_nan("fmax", x1, x2)


@elementwise
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of two arrays, element by element; nan only where both are nan.

    Args:
        x1: array or scalar.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        An array of the common shape and dtype. Where both are equal, each gets half of the
        gradient.

    Differs:
        Where both are equal, the gradient is shared, as that of `minimum` is; in JAX all of it
        goes to the second.

        >>> print(*dt.grad(jnp.fmin, (0, 1))(1.0, 1.0))
        0.5 0.5

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fmin(jnp.array([1., jnp.nan]), 2.))
        [1. 2.]
    """
    return _ignoring_nan("fmin", x1, x2)


def _ignoring_nan(function: str, x1: Any, x2: Any) -> Any:
    x, y = promoted_pair(function, x1, x2)
    extreme = (lax.max if function == "fmax" else lax.min)(x, y)
    if dtypes.kind_of(x.dtype) not in ("f", "c"):
        return extreme
    return pick(lax.ne(y, y), x, pick(lax.ne(x, x), y, extreme))


@elementwise
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The length of the hypotenuse of right triangles: ``sqrt(x1**2 + x2**2)`` without overflow.

    Args:
        x1: array or scalar of a real dtype.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        A float array of the common shape; inf where either is infinite, even if the other is nan.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.hypot(3., jnp.array([4., 0.])))
        [5. 3.]
    """
    x, y = inexact_pair("hypot", x1, x2)
    refuse_complex("hypot", x)
    weak = weak_of(x)
    if x.dtype.itemsize < 4:
        wide = np.dtype(np.float32)
        length = _hypotenuse(convert(x, wide, weak), convert(y, wide, weak))
        return convert(length, x.dtype, weak)
    return _hypotenuse(x, y)


def _hypotenuse(x: Any, y: Any) -> Any:
    """`hypot` of float32 or float64, whose large and small squares are scaled by powers of two."""
    infinity = literal(math.inf, x.dtype, weak_of(x))
    zero, one = _zero(x), _one(x)
    sizes = lax.abs(x), lax.abs(y)
    is_infinite = lax.bitwise_or(lax.eq(sizes[0], infinity), lax.eq(sizes[1], infinity))
    largest = lax.max(*sizes)
    eighth = 16 if x.dtype.itemsize == 4 else 128
    limits = [literal(2.0**power, x.dtype) for power in (-3 * eighth, 3 * eighth)]
    small, large = lax.lt(largest, limits[0]), lax.gt(largest, limits[1])
    scale, unscale = (
        pick(
            small,
            literal(2.0**power, x.dtype, weak_of(x)),
            pick(large, literal(2.0**-power, x.dtype, weak_of(x)), one),
        )
        for power in (5 * eighth, -5 * eighth)
    )
    parts = [pick(is_infinite, zero, lax.mul(part, scale)) for part in (x, y)]
    squares = lax.add(lax.square(parts[0]), lax.square(parts[1]))
    # The root has no derivative at 0; define that of the length at the origin as 0.
    at_origin = lax.eq(squares, zero)
    root = lax.sqrt(pick(at_origin, one, squares))
    length = pick(at_origin, zero, lax.mul(unscale, root))
    return pick(is_infinite, infinity, length)


@elementwise
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The step function: 0 for negative numbers, 1 for positive ones.

    Args:
        x1: array or scalar of a real dtype.
        x2: the value at 0: array or scalar that broadcasts with `x1`.

    Returns:
        A float array of the common shape; nan for nan.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.heaviside(jnp.array([-1., 0., 2.]), 0.5))
        [0.  0.5 1. ]
    """
    x, y = inexact_pair("heaviside", x1, x2)
    refuse_complex("heaviside", x)
    zero, one = _zero(x), _one(x)
    step = pick(lax.lt(x, zero), zero, pick(lax.gt(x, zero), one, y))
    weak = weak_of(x) and weak_of(y) and not aval_of(x).ndim
    return convert(pick(lax.ne(x, x), x, step), x.dtype, weak)
