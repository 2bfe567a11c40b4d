"""Operations on the bits of integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    canonical_axis,
    convert,
    integer,
    literal,
    promoted_pair,
    require_kind,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.unchecked import slice_dimension
from dovetail.numpy.compiled import compiled_with, elementwise
from dovetail.numpy.conditions import truth
from dovetail.numpy.shapes import operand, reshaped
from dovetail.numpy.ufuncs import universal
from dovetail.typing import Array, ArrayLike

_BITS = "integers and booleans"


@universal(2, -1)
def bitwise_and(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Bitwise and of two arrays of integers; for booleans, logical and.

    Args:
        x1: array or scalar of integers or booleans.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        An array of the common shape and dtype.

    Raises:
        TypeError: the operands are floats or complex numbers.

    Differs:
        An integer of Python that the default integer dtype does not hold, and the unsigned one
        of its width does, is an operand of that dtype, weakly typed; JAX raises.

        >>> print(jnp.arange(3, dtype="uint32") & 0xFFFFFFFF)
        [0 1 2]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.bitwise_and(jnp.arange(4), 2))
        [0 0 2 2]
    """
    x, y = promoted_pair("bitwise_and", x1, x2)
    require_kind("bitwise_and", x, "biu", _BITS)
    return lax.and_p.bind(x, y)


@universal(2, 0)
def bitwise_or(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Bitwise or of two arrays of integers; for booleans, logical or.

    Args:
        x1: array or scalar of integers or booleans.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        An array of the common shape and dtype.

    Raises:
        TypeError: the operands are floats or complex numbers.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.bitwise_or(jnp.arange(4), 2))
        [2 3 2 3]
    """
    x, y = promoted_pair("bitwise_or", x1, x2)
    require_kind("bitwise_or", x, "biu", _BITS)
    return lax.or_p.bind(x, y)


@universal(2, 0)
def bitwise_xor(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Bitwise exclusive or of two arrays of integers or booleans.

    Args:
        x1: array or scalar of integers or booleans.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        An array of the common shape and dtype.

    Raises:
        TypeError: the operands are floats or complex numbers.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.bitwise_xor(jnp.arange(4), 2))
        [2 3 0 1]
    """
    x, y = promoted_pair("bitwise_xor", x1, x2)
    require_kind("bitwise_xor", x, "biu", _BITS)
    return lax.xor_p.bind(x, y)


@elementwise
def left_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Shift the bits of integers to the left, which multiplies by powers of two.

    Args:
        x1: array or scalar of integers; booleans count as 0 and 1.
        x2: array or scalar that broadcasts with `x1`: number of places; a shift by the width or
            more gives 0.

    Returns:
        An array of the common shape and dtype (int for booleans).

    Raises:
        TypeError: the operands are floats or complex numbers.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.left_shift(jnp.arange(4), 2))
        [ 0  4  8 12]
    """
    x, y = _shift_operands("left_shift", x1, x2)
    return lax.shift_left_p.bind(x, y)


@elementwise
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Shift the bits of integers to the right, which divides by powers of two, rounding down.

    Args:
        x1: array or scalar of integers; negative ones stay negative, booleans count as 0 and 1.
        x2: array or scalar that broadcasts with `x1`: number of places.

    Returns:
        An array of the common shape and dtype (int for booleans).

    Raises:
        TypeError: the operands are not integers.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.right_shift(jnp.array([-8, 8, 9]), 2))
        [-2  2  2]
    """
    x, y = _shift_operands("right_shift", x1, x2)
    if dtypes.kind_of(x.dtype) == "u":
        return lax.shift_right_logical(x, y)
    return lax.shift_right_arithmetic(x, y)


def _shift_operands(function: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two operands in their common integer dtype: int32 for booleans, also with 64 bits."""
    x, y = promoted_pair(function, x1, x2)
    require_kind(function, x, "biu", "integers")
    if dtypes.kind_of(x.dtype) == "b":
        integers = np.dtype(np.int32)
        return convert(x, integers), convert(y, integers)
    return x, y


@elementwise
def bitwise_not(x: ArrayLike, /) -> Array:
    """Invert every bit of integers; for booleans, logical not.

    Args:
        x: array or scalar of integers or booleans.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: the operand is float or complex.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.bitwise_not(jnp.arange(3)), jnp.bitwise_not(jnp.array(True)))
        [-1 -2 -3] False
    """
    x = array_like(x, "bitwise_not")
    require_kind("bitwise_not", x, "biu", _BITS)
    return lax.not_p.bind(x)


@elementwise
def bitwise_count(x: ArrayLike, /) -> Array:
    """The number of bits set in the magnitude of each integer.

    Args:
        x: array or scalar of integers or booleans.

    Returns:
        A uint8 array of the shape of `x`.

    Raises:
        TypeError: the operand holds neither integers nor booleans.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.bitwise_count(jnp.array([0, 7, -8])))
        [0 3 1]
    """
    x = array_like(x, "bitwise_count")
    require_kind("bitwise_count", x, "biu", "integers and booleans")
    if dtypes.kind_of(x.dtype) == "b":
        return lax.convert_element_type(x, "uint8")
    magnitude = lax.abs(x) if dtypes.kind_of(x.dtype) == "i" else x
    return lax.convert_element_type(lax.population_count(magnitude), "uint8")


def _check_order(function: str, bitorder: Any) -> None:
    if bitorder not in ("big", "little"):
        raise ValueError(f"{function}: bitorder must be 'big' or 'little', got {bitorder!r}")


def _along(function: str, x: Any, axis: Any) -> tuple[Any, int]:
    """The array and one of its dimensions; the array is flattened for None and for scalars."""
    shape = aval_of(x).shape
    dimension = 0 if axis is None else canonical_axis(function, axis, max(len(shape), 1))
    return (reshaped(x, (aval_of(x).size,)) if axis is None or not shape else x), dimension


def _shifts(bitorder: str, shape: tuple[int, ...], dimension: int) -> Any:
    """The left shifts of the eight bits of a byte, along a dimension."""
    places = lax.broadcasted_iota("uint8", shape, dimension)
    return lax.sub(literal(7, places.dtype), places) if bitorder == "big" else places


@compiled_with("axis", "bitorder")
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Pack booleans into the bits of bytes.

    Args:
        a: array of booleans or integers; nonzero integers count as true.
        axis: dimension along which eight elements become one; None to flatten the array first. The
            end is padded with false.
        bitorder: whether the first element becomes the highest bit ("big") or the lowest one
            ("little").

    Returns:
        A uint8 array.

    Raises:
        TypeError: the elements are floats or complex numbers.
        ValueError: `bitorder` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.packbits(jnp.array([0, 1, 1, 0, 1, 0, 0, 1, 1])))
        [105 128]
    """
    _check_order("packbits", bitorder)
    x = operand(a, "packbits")
    require_kind("packbits", x, "biu", _BITS)
    x, dimension = _along("packbits", x, axis)
    shape = aval_of(x).shape
    count = -(-shape[dimension] // 8)
    missing = [(0, 8 * count - n if d == dimension else 0, 0) for d, n in enumerate(shape)]
    bits = lax.convert_element_type(truth(x), "uint8")
    bits = lax.pad(bits, literal(0, bits.dtype), missing)
    apart = (*shape[:dimension], count, 8, *shape[dimension + 1 :])
    moved = lax.shift_left(reshaped(bits, apart), _shifts(bitorder, apart, dimension + 1))
    return lax.reduce_or(moved, (dimension + 1,))


@compiled_with("axis", "count", "bitorder")
def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """Unpack the bits of bytes into numbers 0 and 1.

    Args:
        a: uint8 array.
        axis: dimension along which one element becomes eight; None to flatten the array first.
        count: number of bits to return along the dimension, padded with zeros; if negative, that
            many are left out at the end. All if None.
        bitorder: whether the highest bit comes first ("big") or the lowest one ("little").

    Returns:
        A uint8 array.

    Raises:
        TypeError: `a` is of another dtype.
        ValueError: `bitorder` is not one of these, or more bits would be left out than there are.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.unpackbits(jnp.array([160], dtype="uint8")))
        [1 0 1 0 0 0 0 0]
    """
    _check_order("unpackbits", bitorder)
    x = operand(a, "unpackbits")
    if aval_of(x).dtype != "uint8":
        raise TypeError(
            f"unpackbits takes bytes, got dtype {x.dtype}; write a.astype('uint8') or "
            "a.view('uint8')"
        )
    x, dimension = _along("unpackbits", x, axis)
    shape = aval_of(x).shape
    apart = (*shape[: dimension + 1], 8, *shape[dimension + 1 :])
    own = tuple(d for d in range(len(apart)) if d != dimension + 1)
    moved = lax.shift_right_logical(
        lax.broadcast_in_dim(x, apart, own), _shifts(bitorder, apart, dimension + 1)
    )
    bits = lax.bitwise_and(moved, literal(1, moved.dtype))
    bit_count = 8 * shape[dimension]
    bits = reshaped(bits, (*shape[:dimension], bit_count, *shape[dimension + 1 :]))
    if count is None:
        return bits
    length = integer("unpackbits", "count", count)
    if length < -bit_count:
        raise ValueError(
            f"unpackbits: count {length} leaves out more than the {bit_count} bits there are"
        )
    length = length + bit_count if length < 0 else length
    if length <= bit_count:
        return slice_dimension(bits, 0, length, dimension)
    missing = [(0, length - bit_count if d == dimension else 0, 0) for d in range(len(shape) or 1)]
    return lax.pad(bits, literal(0, bits.dtype), missing)
