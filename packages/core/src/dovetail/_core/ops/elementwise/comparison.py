"""Comparisons."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.families import Compare, Discrete
from dovetail._core.basis.operands import as_operand
from dovetail._core.ir.avals import ShapedArray, make_aval
from dovetail._core.ops.elementwise import references
from dovetail._core.ops.elementwise.operands import operands, real_dtype


class Equality(Compare):
    """A comparison that also takes random keys: they are equal if all their words are."""

    def check_dtypes(self, *avals: ShapedArray) -> None:
        first = avals[0].dtype
        if not (dtypes.is_extended(first) and all(a.dtype == first for a in avals)):
            super().check_dtypes(*avals)

    def reference(self, *args: Any, **params: Any) -> Any:
        x, y = map(np.asarray, args)
        if x.dtype.names and x.dtype == y.dtype:
            return np.asarray(x == y if self.direction == "EQ" else x != y)
        return super().reference(*args, **params)

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        parts = super().emit(context, *values, out=out, **params)
        extra = len(context.physical_dimensions(context.avals_in[0]))
        if not extra:
            return parts
        axes = tuple(range(out.ndim, out.ndim + extra))
        scalar = make_aval((), out.dtype)
        join = "and" if self.direction == "EQ" else "or"
        start = context.constant(np.asarray(join == "and"), scalar)
        (result,) = context.reduce(
            [parts], [start], axes, [out], lambda a, b: [context.op(join, [a, b], scalar)]
        )
        return result


class Eq(Equality):
    """Whether the operands are equal."""

    name, direction, numpy = "eq", "EQ", np.equal


class Ne(Equality):
    """Whether the operands differ."""

    name, direction, numpy = "ne", "NE", np.not_equal


class Lt(Compare):
    """Whether the left operand is less."""

    name, direction, numpy, kinds = "lt", "LT", np.less, "biuf"


class Le(Compare):
    """Whether the left operand is less than or equal to the right."""

    name, direction, numpy, kinds = "le", "LE", np.less_equal, "biuf"


class Gt(Compare):
    """Whether the left operand is greater."""

    name, direction, numpy, kinds = "gt", "GT", np.greater, "biuf"


class Ge(Compare):
    """Whether the left operand is greater than or equal to the right."""

    name, direction, numpy, kinds = "ge", "GE", np.greater_equal, "biuf"


eq_p: Final = Eq()
ne_p: Final = Ne()
lt_p: Final = Lt()
le_p: Final = Le()
gt_p: Final = Gt()
ge_p: Final = Ge()


class TotalOrder(Compare):
    """A comparison in which -NaN < -inf < ... < -0.0 < 0.0 < ... < inf < NaN, and NaN equals NaN.

    All other numbers compare as usual.
    """

    kinds = "biuf"

    def reference(self, *args: Any, **params: Any) -> Any:
        return super().reference(*map(references.total_order_key, args), **params)

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        operand = out.update(dtype=context.avals_in[0].dtype)
        total = dtypes.kind_of(operand.dtype) == "f"
        return context.compare(*values, self.direction, operand, total_order=total)


class EqTo(TotalOrder):
    """Whether the operands are equal in total order; for complex numbers, both parts."""

    name, direction, numpy, kinds = "eq_to", "EQ", np.equal, "biufc"

    def reference(self, *args: Any, **params: Any) -> Any:
        x, y = map(np.asarray, args)
        if not np.iscomplexobj(x):
            return super().reference(x, y)
        return super().reference(x.real, y.real) & super().reference(x.imag, y.imag)

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        dtype = context.avals_in[0].dtype
        if dtypes.kind_of(dtype) != "c":
            return super().emit(context, *values, out=out, **params)
        part = out.update(dtype=real_dtype(dtype))
        reals, imags = ([f(v, part) for v in values] for f in (context.real, context.imag))
        equal = [context.compare(*x, "EQ", part, total_order=True) for x in (reals, imags)]
        return context.and_(*equal, out)


class LtTo(TotalOrder):
    """Whether the left operand is less in total order."""

    name, direction, numpy = "lt_to", "LT", np.less


class LeTo(TotalOrder):
    """Whether the left operand is less or equal in total order."""

    name, direction, numpy = "le_to", "LE", np.less_equal


eq_to_p: Final = EqTo()
lt_to_p: Final = LtTo()
le_to_p: Final = LeTo()


class IsFinite(Discrete):
    """Whether a number is neither infinite nor NaN."""

    name, hlo, numpy, kinds = "is_finite", "is_finite", np.isfinite, "f"

    def result_dtype(self, *avals: ShapedArray, **params: Any) -> Any:
        return np.dtype(bool)

    def abstract(self, *avals: Any, **params: Any) -> Any:
        return super().abstract(*avals, **params).strengthen()


is_finite_p: Final = IsFinite()


# Public functions


def eq(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise ``x == y``; NaN is not equal to anything.

    Args:
        x: numbers or booleans.
        y: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size 1.

    Returns:
        An array of booleans.

    Raises:
        TypeError: dtypes differ, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> bool(lax.eq(2.0, 2.0))
        True
    """
    return eq_p.bind(*operands("eq", x, y))


def ne(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise ``x != y``; NaN differs from everything.

    Args:
        x: numbers or booleans.
        y: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size 1.

    Returns:
        An array of booleans.

    Raises:
        TypeError: dtypes differ, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> bool(lax.ne(2.0, 2.0))
        False
    """
    return ne_p.bind(*operands("ne", x, y))


def lt(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise ``x < y``; false where either is NaN.

    Args:
        x: real numbers or booleans.
        y: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size 1.

    Returns:
        An array of booleans.

    Raises:
        TypeError: dtypes differ or are complex, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> bool(lax.lt(1.0, 2.0))
        True
    """
    return lt_p.bind(*operands("lt", x, y))


def le(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise ``x <= y``; false where either is NaN.

    Args:
        x: real numbers or booleans.
        y: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size 1.

    Returns:
        An array of booleans.

    Raises:
        TypeError: dtypes differ or are complex, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> bool(lax.le(2.0, 2.0))
        True
    """
    return le_p.bind(*operands("le", x, y))


def gt(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise ``x > y``; false where either is NaN.

    Args:
        x: real numbers or booleans.
        y: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size 1.

    Returns:
        An array of booleans.

    Raises:
        TypeError: dtypes differ or are complex, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> bool(lax.gt(1.0, 2.0))
        False
    """
    return gt_p.bind(*operands("gt", x, y))


def ge(x: ArrayLike, y: ArrayLike) -> Array:
    """Elementwise ``x >= y``; false where either is NaN.

    Args:
        x: real numbers or booleans.
        y: of the same dtype; the same shape, a scalar, or broadcastable along dimensions of size 1.

    Returns:
        An array of booleans.

    Raises:
        TypeError: dtypes differ or are complex, or shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> bool(lax.ge(2.0, 2.0))
        True
    """
    return ge_p.bind(*operands("ge", x, y))


def is_finite(x: ArrayLike) -> Array:
    """Whether each element is neither infinite nor NaN.

    Args:
        x: floating point numbers.

    Returns:
        An array of booleans.

    Raises:
        TypeError: `x` is not floating point.

    Example:
        >>> from dovetail import lax
        >>> bool(lax.is_finite(float("inf")))
        False
    """
    return is_finite_p.bind(as_operand(x, "lax.is_finite"))
