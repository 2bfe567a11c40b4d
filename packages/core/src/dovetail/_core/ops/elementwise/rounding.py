"""Rounding, and the neighbours of floating point numbers."""

from __future__ import annotations

import enum
from typing import Any, Final

import numpy as np

from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.families import Binary, Discrete
from dovetail._core.basis.operands import as_operand
from dovetail._core.ir.avals import ShapedArray
from dovetail._core.ops.elementwise import references
from dovetail._core.ops.elementwise.operands import operands
from dovetail._core.trace.zeros import Zero


class RoundingMethod(enum.IntEnum):
    """How numbers halfway between two integers are rounded."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


class Floor(Discrete):
    """The largest integer not greater than the operand."""

    name, hlo, numpy, kinds = "floor", "floor", references.wide(np.floor), "f"
    generates_nan = False


class Ceil(Discrete):
    """The smallest integer not less than the operand."""

    name, hlo, numpy, kinds = "ceil", "ceil", references.wide(np.ceil), "f"
    generates_nan = False


class Round(Discrete):
    """The nearest integer."""

    name, kinds = "round", "f"
    generates_nan = False

    @staticmethod
    def numpy(x: Any, *, rounding_method: RoundingMethod) -> Any:
        """The nearest integer."""
        if rounding_method == RoundingMethod.TO_NEAREST_EVEN:
            return references.wide(np.rint)(x)
        return references.wide(references.half_away)(x)

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        even = params["rounding_method"] == RoundingMethod.TO_NEAREST_EVEN
        return context.op("round_nearest_even" if even else "round_nearest_afz", values, out)


class NextAfter(Binary):
    """The neighbour of the first operand in the direction of the second.

    It moves with the first operand, up to rounding; of the second only the direction counts.
    """

    name, hlo, numpy, kinds = "nextafter", "chlo.next_after", np.nextafter, "f"

    def tangent_left(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        return t

    def tangent_right(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        return Zero.of(out)


floor_p: Final = Floor()
ceil_p: Final = Ceil()
round_p: Final = Round()
nextafter_p: Final = NextAfter()


# Public functions


def floor(x: ArrayLike) -> Array:
    """The largest integer not greater than each element, as a floating point number.

    Args:
        x: floating point numbers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is not floating point.

    Example:
        >>> from dovetail import lax
        >>> float(lax.floor(-1.5))
        -2.0
    """
    return floor_p.bind(as_operand(x, "lax.floor"))


def ceil(x: ArrayLike) -> Array:
    """The smallest integer not less than each element, as a floating point number.

    Args:
        x: floating point numbers.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is not floating point.

    Example:
        >>> from dovetail import lax
        >>> float(lax.ceil(1.25))
        2.0
    """
    return ceil_p.bind(as_operand(x, "lax.ceil"))


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The integer nearest to each element, as a floating point number.

    Unlike NumPy's, it rounds halves away from zero by default.

    Args:
        x: floating point numbers.
        rounding_method: how halves are rounded.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is not floating point.
        ValueError: `rounding_method` is not a known method.

    Example:
        >>> from dovetail import lax
        >>> float(lax.round(2.5)), float(lax.round(2.5, lax.RoundingMethod.TO_NEAREST_EVEN))
        (3.0, 2.0)
    """
    try:
        method = RoundingMethod(rounding_method)
    except ValueError:
        raise ValueError(
            f"lax.round: rounding_method must be one of {', '.join(map(str, RoundingMethod))}, got "
            f"{rounding_method!r:.80}"
        ) from None
    return round_p.bind(as_operand(x, "lax.round"), rounding_method=method)


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The number next to `x1` in the direction of `x2`; `x2` itself where they are equal.

    Args:
        x1: floating point numbers.
        x2: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size
            1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ or are not floating point, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> float(lax.nextafter(1.0, 0.0)) < 1.0
        True
    """
    return nextafter_p.bind(*operands("nextafter", x1, x2))
