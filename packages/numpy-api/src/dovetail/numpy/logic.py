"""Comparisons, logical operations, and tests of elements."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    broadcast_ranks,
    convert,
    inexact_pair,
    literal,
    no_out,
    promoted_pair,
    refuse_complex,
    value,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.strictness import strictness
from dovetail.extend.unchecked import AnyPrimitive
from dovetail.numpy.compiled import compiled_with, elementwise, plain
from dovetail.numpy.conditions import pick, spread, truth
from dovetail.numpy.creation import asarray
from dovetail.numpy.shapes import broadcast_shapes
from dovetail.numpy.ufuncs import universal
from dovetail.typing import Array, ArrayLike


@elementwise
def equal(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Test whether two arrays are equal, element by element.

    Args:
        x1: array or scalar.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        A boolean array of the common shape.

    Differs:
        Comparisons with integers of Python are by value, whether or not the dtype of the array
        holds them.

        >>> print(jnp.ones(2, "uint8") == 300, jnp.ones(2, "uint8") < 300)
        [False False] [ True  True]

        Predicates are never weakly typed, here and in all functions that return some.

        >>> print((jnp.asarray(1.0) == 1.0).weak_type)
        False

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.equal(jnp.arange(3), 1))
        [False  True False]
    """
    return _compared("equal", lax.eq_p, x1, x2)


@elementwise
def not_equal(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Test whether two arrays differ, element by element; nan differs from everything.

    Args:
        x1: array or scalar.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        A boolean array of the common shape.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.not_equal(jnp.arange(3), 1))
        [ True False  True]
    """
    return _compared("not_equal", lax.ne_p, x1, x2)


@elementwise
def less(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Test whether ``x1 < x2``, element by element.

    Complex numbers are ordered by their real parts, then by their imaginary ones; with a nan they
    are unordered.

    Args:
        x1: array or scalar.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        A boolean array of the common shape.

    Differs:
        Complex numbers with a nan have no order: a comparison with one is false, as in NumPy.

        >>> z = jnp.array([complex(0, np.nan)])
        >>> print(z < 1, z >= 1)
        [False] [False]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.less(jnp.arange(3), 1))
        [ True False False]
    """
    return _compared("less", lax.lt_p, x1, x2)


@elementwise
def less_equal(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Test whether ``x1 <= x2``, element by element.

    Complex numbers are ordered by their real parts, then by their imaginary ones; with a nan they
    are unordered.

    Args:
        x1: array or scalar.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        A boolean array of the common shape.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.less_equal(jnp.arange(3), 1))
        [ True  True False]
    """
    return _compared("less_equal", lax.le_p, x1, x2)


@elementwise
def greater(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Test whether ``x1 > x2``, element by element.

    Complex numbers are ordered by their real parts, then by their imaginary ones; with a nan they
    are unordered.

    Args:
        x1: array or scalar.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        A boolean array of the common shape.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.greater(jnp.arange(3), 1))
        [False False  True]
    """
    return _compared("greater", lax.gt_p, x1, x2)


@elementwise
def greater_equal(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Test whether ``x1 >= x2``, element by element.

    Complex numbers are ordered by their real parts, then by their imaginary ones; with a nan they
    are unordered.

    Args:
        x1: array or scalar.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        A boolean array of the common shape.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.greater_equal(jnp.arange(3), 1))
        [False  True  True]
    """
    return _compared("greater_equal", lax.ge_p, x1, x2)


_INTEGERS: Final = ("i", "u")


def _compared(function: str, primitive: AnyPrimitive, x1: Any, x2: Any) -> Any:
    """Compare operands; Python integers are compared by value, whatever the dtype of the array."""
    x, y = array_like(x1, function, "x1"), array_like(x2, function, "x2")
    a, b = aval_of(x), aval_of(y)
    integers = all(dtypes.kind_of(v.dtype) in _INTEGERS for v in (a, b))
    if a.weak_type != b.weak_type and integers and strictness().comparisons_by_value:
        return _compared_by_value(function, primitive, x, y, flipped=a.weak_type)
    x, y = promoted_pair(function, x, y)
    if dtypes.kind_of(aval_of(x).dtype) == "c" and primitive not in (lax.eq_p, lax.ne_p):
        ordered = pick(
            lax.eq(lax.real(x), lax.real(y)),
            primitive.bind(lax.imag(x), lax.imag(y)),
            primitive.bind(lax.real(x), lax.real(y)),
        )
        # A nan in the imaginary part makes a number unordered, too.
        return lax.bitwise_and(ordered, lax.bitwise_and(lax.eq(x, x), lax.eq(y, y)))
    return primitive.bind(x, y)


def _compared_by_value(
    function: str, primitive: AnyPrimitive, x: Any, y: Any, flipped: bool
) -> Any:
    """Compare integers; one operand is weakly typed: the left one if flipped."""

    def compare(number: Any, elements: Any) -> Any:
        pair = (number, elements) if flipped else (elements, number)
        return primitive.bind(*promoted_pair(function, *pair))

    weak, array = (x, y) if flipped else (y, x)
    default, array_dtype = aval_of(weak).dtype, aval_of(array).dtype
    if dtypes.holds(default, array_dtype):
        return compare(weak, convert(array, default))
    if dtypes.holds(array_dtype, default):
        return compare(convert(weak, array_dtype), array)
    # Signed against unsigned of at least that width: any unsigned number exceeds a negative one.
    weak_is_signed = dtypes.kind_of(default) == "i"
    signed, unsigned = (weak, array_dtype) if weak_is_signed else (array, default)
    zero = literal(0, aval_of(signed).dtype, aval_of(signed).weak_type)
    raised = lax.convert_element_type(lax.max(signed, zero), unsigned)
    result = compare(raised, array) if weak_is_signed else compare(weak, raised)
    is_left = weak_is_signed == flipped
    below = primitive.reference(0, 1) if is_left else primitive.reference(1, 0)
    below = literal(bool(below), np.dtype(bool))
    return pick(lax.lt(signed, zero), below, result)


@universal(2, identity=True)
def logical_and(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Logical and, element by element; nonzero counts as true.

    Args:
        x1: array or scalar.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        A boolean array of the common shape.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.logical_and(jnp.array([0, 0, 1, 2]), jnp.array([0, 3, 0, 4])))
        [False False False  True]
    """
    x = truth(array_like(x1, "logical_and", "x1"))
    y = truth(array_like(x2, "logical_and", "x2"))
    x, y = broadcast_ranks("logical_and", [x, y])
    return lax.bitwise_and(x, y)


@universal(2, identity=False)
def logical_or(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Logical or, element by element; nonzero counts as true.

    Args:
        x1: array or scalar.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        A boolean array of the common shape.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.logical_or(jnp.array([0, 0, 1, 2]), jnp.array([0, 3, 0, 4])))
        [False  True  True  True]
    """
    x = truth(array_like(x1, "logical_or", "x1"))
    y = truth(array_like(x2, "logical_or", "x2"))
    x, y = broadcast_ranks("logical_or", [x, y])
    return lax.bitwise_or(x, y)


@universal(2, identity=False)
def logical_xor(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Logical exclusive or, element by element; nonzero counts as true.

    Args:
        x1: array or scalar.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        A boolean array of the common shape.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.logical_xor(jnp.array([0, 0, 1, 2]), jnp.array([0, 3, 0, 4])))
        [False  True  True False]
    """
    x = truth(array_like(x1, "logical_xor", "x1"))
    y = truth(array_like(x2, "logical_xor", "x2"))
    x, y = broadcast_ranks("logical_xor", [x, y])
    return lax.bitwise_xor(x, y)


@elementwise
def logical_not(x: ArrayLike, /) -> Array:
    """Logical not, element by element; nonzero counts as true.

    Args:
        x: array or scalar.

    Returns:
        A boolean array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.logical_not(jnp.array([0., 2.])))
        [ True False]
    """
    return lax.bitwise_not(truth(array_like(x, "logical_not")))


@elementwise
def isnan(x: ArrayLike, /) -> Array:
    """Test for nan, element by element.

    Args:
        x: array or scalar.

    Returns:
        A boolean array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.isnan(jnp.array([1., jnp.nan, jnp.inf])))
        [False  True False]
    """
    x = array_like(x, "isnan")
    return lax.ne(x, x)


@elementwise
def isfinite(x: ArrayLike, /) -> Array:
    """Test, element by element, for numbers that are neither nan nor infinite.

    Args:
        x: array or scalar.

    Returns:
        A boolean array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.isfinite(jnp.array([1., jnp.nan, jnp.inf])))
        [ True False False]
    """
    return finite(array_like(x, "isfinite"))


def finite(x: Any) -> Any:
    """Which elements of a checked operand are finite."""
    kind = dtypes.kind_of(x.dtype)
    if kind == "c":
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    if kind == "f":
        return lax.is_finite(x)
    return lax.full_like(x, True, dtype=bool)


@elementwise
def isinf(x: ArrayLike, /) -> Array:
    """Test for infinity of either sign, element by element.

    Args:
        x: array or scalar.

    Returns:
        A boolean array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.isinf(jnp.array([1., jnp.nan, -jnp.inf])))
        [False False  True]
    """
    x = array_like(x, "isinf")
    kind = dtypes.kind_of(x.dtype)
    if kind == "c":
        return lax.bitwise_or(_is(lax.abs(lax.real(x)), "inf"), _is(lax.abs(lax.imag(x)), "inf"))
    return _is(lax.abs(x), "inf") if kind == "f" else lax.full_like(x, False, dtype=bool)


@elementwise
def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Test for positive infinity, element by element.

    Args:
        x: array or scalar of a real dtype.
        out: not supported, since arrays are immutable.

    Returns:
        A boolean array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.isposinf(jnp.array([1., jnp.inf, -jnp.inf])))
        [False  True False]
    """
    no_out("isposinf", out)
    x = array_like(x, "isposinf")
    refuse_complex("isposinf", x)
    kind = dtypes.kind_of(x.dtype)
    return _is(x, "inf") if kind == "f" else lax.full_like(x, False, dtype=bool)


@elementwise
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Test for negative infinity, element by element.

    Args:
        x: array or scalar of a real dtype.
        out: not supported, since arrays are immutable.

    Returns:
        A boolean array of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.isneginf(jnp.array([1., jnp.inf, -jnp.inf])))
        [False False  True]
    """
    no_out("isneginf", out)
    x = array_like(x, "isneginf")
    refuse_complex("isneginf", x)
    kind = dtypes.kind_of(x.dtype)
    return _is(x, "-inf") if kind == "f" else lax.full_like(x, False, dtype=bool)


def _is(x: Any, number: str) -> Any:
    return lax.eq(x, literal(float(number), x.dtype))


@compiled_with("equal_nan")
def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Test whether two arrays are equal within ``atol + rtol * abs(b)``, element by element.

    Args:
        a: array or scalar.
        b: array or scalar that broadcasts with `a`: the reference.
        rtol: tolerance relative to `b`: a scalar, or an array that broadcasts with `b`.
        atol: absolute tolerance: a scalar, or an array that broadcasts with `b`.
        equal_nan: whether to treat nan as equal to nan.

    Returns:
        A boolean array of the common shape. Infinities are only close to themselves, and so are
        random keys.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.isclose(jnp.array([1., 2.]), jnp.array([1.000001, 2.1])))
        [ True False]
    """
    first, second = array_like(a, "isclose", "a"), array_like(b, "isclose", "b")
    if any(dtypes.is_extended(aval_of(v).dtype) for v in (first, second)):
        return _compared("isclose", lax.eq_p, first, second)
    x, y = inexact_pair("isclose", first, second)
    dtype = x.dtype
    kind = dtypes.kind_of(dtype)
    real = dtypes.finfo(dtype).dtype if kind == "c" else dtype
    relative = convert(array_like(rtol, "isclose", "rtol"), real)
    absolute = convert(array_like(atol, "isclose", "atol"), real)
    x, y, relative, absolute = broadcast_ranks("isclose", [x, y, relative, absolute])
    tolerance = lax.add(absolute, lax.mul(relative, lax.abs(y)))
    near = lax.bitwise_and(finite(y), lax.le(lax.abs(lax.sub(x, y)), tolerance))
    close = lax.bitwise_or(near, lax.eq(x, y))
    if equal_nan:
        close = lax.bitwise_or(close, lax.bitwise_and(lax.ne(x, x), lax.ne(y, y)))
    return close


@compiled_with("equal_nan")
def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Test whether two arrays are equal within ``atol + rtol * abs(b)`` everywhere.

    Args:
        a: array or scalar.
        b: array or scalar that broadcasts with `a`: the reference.
        rtol: tolerance relative to `b`: a scalar, or an array that broadcasts with `b`.
        atol: absolute tolerance: a scalar, or an array that broadcasts with `b`.
        equal_nan: whether to treat nan as equal to nan.

    Returns:
        A boolean array of rank 0.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.allclose(jnp.array([1., 2.]), jnp.array([1.000001, 2.])))
        True
    """
    close = plain(isclose)(a, b, rtol, atol, equal_nan)
    return all_of(close)


def all_of(x: Any) -> Any:
    """Whether a boolean operand is true everywhere."""
    return lax.reduce_and_p.bind(x, axes=tuple(range(aval_of(x).ndim)))


def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Test whether two arrays have the same shape and equal elements.

    Args:
        a1: array, scalar, or nested list of numbers.
        a2: likewise.
        equal_nan: whether to treat nan as equal to nan.

    Returns:
        A boolean array of rank 0.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.array_equal(jnp.arange(3), [0, 1, 2]))
        True
    """
    x, y = _as_arrays("array_equal", a1, a2)
    if aval_of(x).shape != aval_of(y).shape:
        return value(literal(False, dtypes.default_dtype("b")))
    return _all_equal(x, y, bool(equal_nan))


def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Test whether two arrays broadcast to each other and are then equal everywhere.

    Args:
        a1: array, scalar, or nested list of numbers.
        a2: likewise.

    Returns:
        A boolean array of rank 0.

    Differs:
        Dtypes that do not combine raise an error, as in `array_equal`.

        >>> try:
        ...     jnp.array_equiv(jnp.ones(2, "uint4"), jnp.ones(2, "int32"))
        ... except TypeError as error:
        ...     print(error)
        values of the types int32, uint4 do not combine: ...

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.array_equiv(jnp.ones((2, 3)), 1))
        True
    """
    x, y = _as_arrays("array_equiv", a1, a2)
    try:
        shape = broadcast_shapes(aval_of(x).shape, aval_of(y).shape)
    except ValueError:
        return value(literal(False, dtypes.default_dtype("b")))
    x, y = (spread(v, shape) for v in (x, y))
    return _all_equal(x, y, False)


def _as_arrays(function: str, *args: Any) -> list[Any]:
    return [
        asarray(a) if isinstance(a, (list, tuple)) else array_like(a, function, name)
        for a, name in zip(args, ("a1", "a2"), strict=True)
    ]


@compiled_with("equal_nan")
def _all_equal(x: Any, y: Any, equal_nan: bool) -> Any:
    same = _compared("array_equal", lax.eq_p, x, y)
    if equal_nan:
        x, y = promoted_pair("array_equal", x, y)
        same = lax.bitwise_or(same, lax.bitwise_and(lax.ne(x, x), lax.ne(y, y)))
    return all_of(same)
