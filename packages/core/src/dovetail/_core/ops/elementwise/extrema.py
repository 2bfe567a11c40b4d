"""The larger and the smaller of two numbers, and clamping."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import Elementwise, add_tangents, convert_element_type, mul
from dovetail._core.basis.families import Binary
from dovetail._core.basis.operands import equal_dtypes, literal_like
from dovetail._core.basis.structural import batch_size, broadcast_in_dim, broadcast_to, to_front
from dovetail._core.ir.avals import ShapedArray, aval_of, shape_of
from dovetail._core.ops.elementwise.arithmetic import sub_p
from dovetail._core.ops.elementwise.bitwise import and_p
from dovetail._core.ops.elementwise.comparison import eq_p, ne_p
from dovetail._core.ops.elementwise.operands import operands, real_dtype
from dovetail._core.trace.zeros import Zero


class Extremum(Binary):
    """The larger or smaller operand; NaN where either is NaN.

    Where the operands are equal, each gets half of the derivative. Complex numbers are ordered by
    their real, then their imaginary parts.
    """

    kinds = "biufc"
    direction: ClassVar[str]

    def tangent_left(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        return mul(t, _share(x, y, out))

    def tangent_right(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        return mul(t, _share(y, x, out))

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        x, y = values
        kind = dtypes.kind_of(out.dtype)
        if kind == "b":
            return context.op("or" if self.direction == "GT" else "and", values, out)
        if kind != "c":
            return context.op(self.hlo, values, out)
        part = out.update(dtype=real_dtype(out.dtype))
        flags = out.update(dtype=np.dtype(bool))
        (a, c), (b, d) = ((context.real(v, part), context.imag(v, part)) for v in (x, y))
        tied = context.and_(
            context.compare(a, b, "EQ", part), context.compare(c, d, self.direction, part), flags
        )
        first = context.or_(context.compare(a, b, self.direction, part), tied, flags)
        # The first NaN operand is the result.
        x_nan, y_nan = context.compare(x, x, "NE", out), context.compare(y, y, "NE", out)
        first = context.or_(x_nan, context.and_(first, context.not_(y_nan, flags), flags), flags)
        return context.select(first, x, y, out)


def _share(x: Any, y: Any, out: Any) -> Any:
    """1 where `out` is `x`, half where it is `y` as well, 0 elsewhere."""
    dtype = aval_of(out).dtype
    is_x, is_y = (convert_element_type(eq_p.bind(a, out), dtype) for a in (x, y))
    half = mul(is_y, literal_like(0.5, is_y))
    return mul(is_x, sub_p.bind(literal_like(1, half), half))


class Max(Extremum):
    """The larger operand."""

    name, hlo, numpy, direction = "max", "maximum", np.maximum, "GT"
    generates_nan = False


class Min(Extremum):
    """The smaller operand."""

    name, hlo, numpy, direction = "min", "minimum", np.minimum, "LT"
    generates_nan = False


max_p: Final = Max()
min_p: Final = Min()


class Clamp(Elementwise):
    """The second operand, but no less than the first and no more than the third."""

    name, kinds = "clamp", "biufc"
    generates_nan = False

    @staticmethod
    def numpy(low: Any, x: Any, high: Any) -> Any:
        """Where the limits cross, the upper one wins."""
        return np.minimum(np.maximum(x, low), high)

    def abstract(self, *avals: Any, **params: Any) -> Any:
        low, x, high = avals
        for limit, which in ((low, "min"), (high, "max")):
            if limit.shape not in ((), x.shape):
                raise TypeError(
                    f"clamp: {which} must be a scalar or of the shape {x.shape} of x, "
                    f"got {limit.shape}"
                )
        return super().abstract(low, x, high)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        low, x, high = primals
        out = self.bind(low, x, high)
        dtype, shape = aval_of(out).dtype, shape_of(out)
        tangent: Any = Zero.of(out)
        for t, which in zip(tangents, (_low_wins, _x_wins, _high_wins), strict=True):
            if type(t) is not Zero:
                chosen = convert_element_type(which(low, x, high), dtype)
                tangent = add_tangents(tangent, mul(t, broadcast_to(chosen, shape)))
        return out, tangent

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        low, x, high = args
        if dims[0] is None and dims[2] is None and not shape_of(low) and not shape_of(high):
            return self.bind(low, x, high), dims[1]
        size = batch_size(args, dims)
        x = to_front(x, dims[1], size)
        shape = shape_of(x)
        limits = []
        for limit, d in ((low, dims[0]), (high, dims[2])):
            if d is not None or shape_of(limit):
                limit = to_front(limit, d, size)
                if shape_of(limit) != shape:
                    limit = broadcast_in_dim(limit, shape, (0,))
            limits.append(limit)
        return self.bind(limits[0], x, limits[1]), 0

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        low, x, high = values
        if dtypes.kind_of(out.dtype) in ("b", "c"):
            # For these some compilers have no such operation.
            return min_p.emit(context, max_p.emit(context, low, x, out=out), high, out=out)
        return context.clamp(low, x, high, out)


# The operand whose derivative the result has. At a limit it is the limit, so x gets zero.


def _low_wins(low: Any, x: Any, high: Any) -> Any:
    return and_p.bind(_at_least(low, x), _below(low, high))


def _x_wins(low: Any, x: Any, high: Any) -> Any:
    return and_p.bind(_below(low, x), _below(x, high))


def _high_wins(low: Any, x: Any, high: Any) -> Any:
    return _at_least(max_p.bind(low, x), high)


# Complex numbers have no comparison but equality here: compare through their extremes.


def _at_least(x: Any, y: Any) -> Any:
    return eq_p.bind(x, max_p.bind(x, y))


def _below(x: Any, y: Any) -> Any:
    return and_p.bind(eq_p.bind(x, min_p.bind(x, y)), ne_p.bind(x, y))


clamp_p: Final = Clamp()


# Public functions


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """The larger of `x` and `y`; NaN where either is NaN.

    Complex numbers are ordered by their real, then their imaginary parts. Where the operands are
    equal, each gets half of the derivative.

    Args:
        x: numbers or booleans.
        y: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size 1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> float(lax.max(1.0, 2.0))
        2.0
    """
    return max_p.bind(*operands("max", x, y))


def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller of `x` and `y`; NaN where either is NaN.

    Complex numbers are ordered by their real, then their imaginary parts. Where the operands are
    equal, each gets half of the derivative.

    Args:
        x: numbers or booleans.
        y: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size 1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> float(lax.min(1.0, 2.0))
        1.0
    """
    return min_p.bind(*operands("min", x, y))


def clamp(min: ArrayLike, x: ArrayLike, max: ArrayLike) -> Array:
    """`x`, but no less than `min` and no more than `max`; NaN stays NaN.

    Where the limits cross, the result is `max`. At a limit the derivative in `x` is 0.

    Args:
        min: lower limit; a scalar, or of the shape of `x`.
        x: numbers or booleans; complex numbers are ordered by their real parts first.
        max: upper limit; a scalar, or of the shape of `x`.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: dtypes differ, or shapes are incompatible.

    Differs:
        Where `x` equals a bound, the derivative is that of the bound.

        >>> print(*dt.grad(lax.clamp, argnums=(0, 1, 2))(1.0, 1.0, 2.0))
        1.0 0.0 0.0

        Complex numbers are ordered as by `max`: by real parts, then by imaginary parts.

        >>> print(lax.clamp(1 + 1j, jnp.array([1 + 0j, 1 + 2j, 3]), 2 + 0j))
        [1.+1.j 1.+2.j 2.+0.j]

    Example:
        >>> from dovetail import lax
        >>> float(lax.clamp(0.0, 1.5, 1.0))
        1.0
    """
    return clamp_p.bind(*equal_dtypes("clamp", min, x, max))
