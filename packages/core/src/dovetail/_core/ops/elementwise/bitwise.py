"""Operations on the bits of integers and booleans."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.families import Discrete
from dovetail._core.basis.operands import as_operand
from dovetail._core.ops.elementwise import references
from dovetail._core.ops.elementwise.operands import operands


class And(Discrete):
    """Bits that are set in both operands."""

    name, hlo, numpy, kinds = "and", "and", np.bitwise_and, "biu"


class Or(Discrete):
    """Bits that are set in either operand."""

    name, hlo, numpy, kinds = "or", "or", np.bitwise_or, "biu"


class Xor(Discrete):
    """Bits that are set in exactly one operand."""

    name, hlo, numpy, kinds = "xor", "xor", np.bitwise_xor, "biu"


class Not(Discrete):
    """Bits that are not set."""

    name, hlo, numpy, kinds = "not", "not", np.invert, "biu"


class ShiftLeft(Discrete):
    """Bits shifted left."""

    name, hlo, kinds = "shift_left", "shift_left", "iu"

    @staticmethod
    def numpy(x: Any, y: Any) -> Any:
        """Zero where the distance is negative or not less than the number of bits."""
        fits = (y >= 0) & (y < 8 * x.dtype.itemsize)
        return np.where(fits, x << np.where(fits, y, 0), 0)


class ShiftRightLogical(Discrete):
    """Bits shifted right, filled with zeros."""

    name, hlo, kinds = "shift_right_logical", "shift_right_logical", "iu"

    @staticmethod
    def numpy(x: Any, y: Any) -> Any:
        """Zero where the distance is negative or not less than the number of bits."""
        unsigned = np.dtype(f"u{x.dtype.itemsize}")
        fits = (y >= 0) & (y < 8 * x.dtype.itemsize)
        moved = x.view(unsigned) >> np.where(fits, y, 0).astype(unsigned)
        return np.where(fits, moved, 0).astype(x.dtype)


class ShiftRightArithmetic(Discrete):
    """Bits shifted right, filled with copies of the highest bit."""

    name, hlo, kinds = "shift_right_arithmetic", "shift_right_arithmetic", "iu"

    @staticmethod
    def numpy(x: Any, y: Any) -> Any:
        """Copies of the highest bit where the distance is negative or too large."""
        signed = np.dtype(f"i{x.dtype.itemsize}")
        bits = 8 * x.dtype.itemsize
        distance = np.where((y >= 0) & (y < bits), y, bits - 1)
        return (x.view(signed) >> distance.astype(signed)).astype(x.dtype)


class PopulationCount(Discrete):
    """The number of bits that are set."""

    name, hlo, numpy, kinds = "population_count", "popcnt", references.bit_count, "iu"


class CountLeadingZeros(Discrete):
    """The number of leading zeros."""

    name, hlo, numpy, kinds = "clz", "count_leading_zeros", references.leading_zeros, "iu"


and_p: Final = And()
or_p: Final = Or()
xor_p: Final = Xor()
not_p: Final = Not()
shift_left_p: Final = ShiftLeft()
shift_right_logical_p: Final = ShiftRightLogical()
shift_right_arithmetic_p: Final = ShiftRightArithmetic()
population_count_p: Final = PopulationCount()
clz_p: Final = CountLeadingZeros()


# Public functions


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits that are set in both operands; for booleans, whether both are true.

    Args:
        x: integers or booleans.
        y: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size 1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ or are floating point or complex, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> int(lax.bitwise_and(6, 3))
        2
    """
    return and_p.bind(*operands("bitwise_and", x, y))


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits that are set in either operand; for booleans, whether one is true.

    Args:
        x: integers or booleans.
        y: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size 1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ or are floating point or complex, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> int(lax.bitwise_or(6, 3))
        7
    """
    return or_p.bind(*operands("bitwise_or", x, y))


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """Bits that are set in exactly one operand; for booleans, whether exactly one is true.

    Args:
        x: integers or booleans.
        y: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size 1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ or are floating point or complex, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> int(lax.bitwise_xor(6, 3))
        5
    """
    return xor_p.bind(*operands("bitwise_xor", x, y))


def bitwise_not(x: ArrayLike) -> Array:
    """Bits that are not set; for booleans, the opposite.

    Args:
        x: integers or booleans.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is floating point or complex.

    Example:
        >>> from dovetail import lax
        >>> int(lax.bitwise_not(6))
        -7
    """
    return not_p.bind(as_operand(x, "lax.bitwise_not"))


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits of `x` shifted left by `y`: ``x << y``.

    The result is 0 where `y` is negative or not less than the number of bits.

    Args:
        x: integers.
        y: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size 1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ or are not integers, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> int(lax.shift_left(3, 2))
        12
    """
    return shift_left_p.bind(*operands("shift_left", x, y))


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits of `x` shifted right by `y`, filled with zeros.

    The result is 0 where `y` is negative or not less than the number of bits.

    Args:
        x: integers.
        y: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size 1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ or are not integers, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> int(lax.shift_right_logical(12, 2))
        3
    """
    return shift_right_logical_p.bind(*operands("shift_right_logical", x, y))


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """The bits of `x` shifted right by `y`, filled with copies of the highest bit.

    Where `y` is negative or not less than the number of bits, every bit is a copy of the highest.

    Args:
        x: integers.
        y: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size 1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ or are not integers, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> int(lax.shift_right_arithmetic(-12, 2))
        -3
    """
    return shift_right_arithmetic_p.bind(*operands("shift_right_arithmetic", x, y))


def population_count(x: ArrayLike) -> Array:
    """The number of bits that are set in each element.

    Args:
        x: integers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is not of an integer dtype.

    Example:
        >>> from dovetail import lax
        >>> int(lax.population_count(7))
        3
    """
    return population_count_p.bind(as_operand(x, "lax.population_count"))


def clz(x: ArrayLike) -> Array:
    """The number of leading zero bits of each element; all bits for 0.

    Args:
        x: integers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is not of an integer dtype.

    Example:
        >>> from dovetail import lax
        >>> int(lax.clz(1))
        31
    """
    return clz_p.bind(as_operand(x, "lax.clz"))
