"""Reductions: products, extremes, logical reductions, and the positions of extremes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base import config, dtypes
from dovetail._core.base.errors import DTypeError
from dovetail._core.base.typing import Array, ArrayLike, DTypeLike, Sharding
from dovetail._core.basis import structural
from dovetail._core.basis.elementwise import add_tangents, convert_element_type, dtype_name, mul
from dovetail._core.basis.families import NoGradient
from dovetail._core.basis.operands import as_operand, make_literal
from dovetail._core.basis.structural import (
    reduced_aval,
    reduced_labels,
)
from dovetail._core.ir.avals import ShapedArray, aval_of, make_aval, shape_of
from dovetail._core.ops.calls.out_sharding import asked_division, divided, placed
from dovetail._core.ops.elementwise.arithmetic import div_p
from dovetail._core.ops.elementwise.comparison import eq_p
from dovetail._core.ops.shape.dimensions import (
    canonical_dimension,
    canonical_dimensions,
    without,
)
from dovetail._core.ops.shape.slicing import pad_with, slice_dimension
from dovetail._core.trace.divisions import Labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

Axes = tuple[int, ...]

FLOAT32: Final = np.dtype(np.float32)

KINDS: Final = {
    "b": "bool",
    "i": "signed integers",
    "u": "unsigned integers",
    "f": "floating point",
    "c": "complex",
}


def lowest(dtype: Any) -> Any:
    """The lowest value of the dtype, the result of `reduce_max` for no elements."""
    return _extreme(dtype, -1)


def highest(dtype: Any) -> Any:
    """The highest value of the dtype, the result of `reduce_min` for no elements."""
    return _extreme(dtype, 1)


def _extreme(dtype: Any, sign: int) -> Any:
    kind = dtypes.kind_of(dtype)
    if kind == "b":
        return np.bool_(sign > 0)
    if kind in "iu":
        limits = dtypes.iinfo(dtype)
        return np.asarray(limits.max if sign > 0 else limits.min, dtype)[()]
    if kind == "c":
        return np.asarray(complex(sign * np.inf, sign * np.inf), dtype)[()]
    extreme = np.asarray(sign * np.inf).astype(dtype)
    if not np.isinf(extreme.astype(np.float64)):
        # Some 8-bit floats have no infinity.
        info = dtypes.finfo(dtype)
        extreme = np.asarray(info.max if sign > 0 else info.min, dtype)
    return extreme[()]


class Reduction(Primitive):
    """Combines all elements along some dimensions, in any order.

    A member defines `kinds`, the supported dtype kinds; `numpy`, a function of an array and axes;
    `identity`, the result for no elements; and `combine`.
    """

    accepts_zeros = True
    kinds: ClassVar[str] = "iufc"
    numpy: ClassVar[Any]

    def identity(self, dtype: Any) -> Any:
        """The result for no elements."""
        raise TypeError(f"the reduction {self.name} does not say what it gives for no elements")

    def combine(self, context: Builder, x: Any, y: Any, scalar: ShapedArray) -> Any:
        """StableHLO that combines two scalars."""
        raise TypeError(f"the reduction {self.name} does not say how it combines two elements")

    def abstract(self, x: Any, *, axes: Axes) -> Any:
        kind = dtypes.kind_of(x.dtype)
        if kind not in self.kinds or not kind:
            raise DTypeError(
                f"{self.name} does not accept dtype {dtype_name(x.dtype)}; it takes "
                f"{', '.join(KINDS[k] for k in self.kinds)}"
            )
        return reduced_aval(self.name, x, axes)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], *, axes: Axes) -> Labels:
        return reduced_labels(avals, results, axes)

    def reference(self, x: Any, *, axes: Axes) -> Any:
        x = np.asarray(x)
        if not axes:
            return x.copy()
        wide = x.astype(np.float64) if dtypes.kind_of(x.dtype) == "f" else x
        initial = self.identity(x.dtype)
        out = type(self).numpy(wide, axis=axes, initial=initial.astype(wide.dtype))
        return np.asarray(out).astype(x.dtype)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, axes: Axes
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        shifted = tuple([i + (i >= d) for i in axes])
        return self.bind(x, axes=shifted), d - sum([i < d for i in shifted])

    def lower(self, context: Builder, x: Any, *, axes: Axes) -> Any:
        (out,) = context.avals_out
        scalar = make_aval((), out.dtype)
        (result,) = context.reduce(
            [x],
            [context.constant(self.identity(out.dtype), scalar)],
            axes,
            [out],
            lambda a, b: [self.combine(context, a, b, scalar)],
        )
        return result


def merge_dimensions(x: Any, axes: Axes) -> Any:
    """`x` with the dimensions `axes` merged into one, which comes last."""
    shape = shape_of(x)
    kept = tuple([i for i in range(len(shape)) if i not in axes])
    turned = structural.transpose(x, (*kept, *axes))
    return structural.reshape(turned, (*without(shape, axes), prod([shape[a] for a in axes])))


class ReduceProd(Reduction):
    """The product."""

    name = "reduce_prod"
    numpy = np.prod

    def identity(self, dtype: Any) -> Any:
        return np.asarray(1, dtype)[()]

    def combine(self, context: Builder, x: Any, y: Any, scalar: ShapedArray) -> Any:
        return context.mul(x, y, scalar)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, axes: Axes
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = self.bind(x, axes=axes)
        if type(t) is Zero:
            return out, Zero.of(out)
        if not axes or not aval_of(x).size:
            return out, t if not axes else Zero.of(out)
        # Products of halves, recursively, whose tangents follow from the product rule. Without a
        # division, zeros among the factors do no harm, in derivatives of any order.
        x, t = merge_dimensions(x, axes), merge_dimensions(t, axes)
        dtype, last = aval_of(x).dtype, len(shape_of(x)) - 1
        while (size := shape_of(x)[last]) > 1:
            half = (size + 1) // 2
            padding = ((0, 0, 0),) * last + ((0, 2 * half - size, 0),)
            x = pad_with(x, make_literal(1, dtype), padding)
            t = pad_with(t, make_literal(0, dtype), padding)
            x, y = slice_dimension(x, 0, half, last), slice_dimension(x, half, 2 * half, last)
            t, s = slice_dimension(t, 0, half, last), slice_dimension(t, half, 2 * half, last)
            x, t = mul(x, y), add_tangents(mul(t, y), mul(x, s))
        return out, structural.reshape(t, shape_of(out))

    def lower(self, context: Builder, x: Any, *, axes: Axes) -> Any:
        (aval,), (out,) = context.avals_in, context.avals_out
        if dtypes.kind_of(out.dtype) == "f" and out.dtype.itemsize < 4:
            # Rounding every partial product to 16 bits would lose precision.
            wide_in, wide = aval.update(dtype=FLOAT32), out.update(dtype=FLOAT32)
            scalar = make_aval((), FLOAT32)
            (result,) = context.reduce(
                [context.convert(x, aval, wide_in)],
                [context.constant(1.0, scalar)],
                axes,
                [wide],
                lambda a, b: [context.mul(a, b, scalar)],
            )
            return context.convert(result, wide, out)
        return super().lower(context, x, axes=axes)


reduce_prod_p: Final = ReduceProd()


class Extreme(Reduction):
    """The largest or the smallest element; NaN if there is one. Ties share the derivative."""

    kinds = "biufc"
    direction: ClassVar[str]

    def combine(self, context: Builder, x: Any, y: Any, scalar: ShapedArray) -> Any:
        if dtypes.kind_of(scalar.dtype) == "c":
            return context.select(before(context, x, y, scalar, self.direction), x, y, scalar)
        return (context.max if self.direction == "GT" else context.min)(x, y, scalar)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, axes: Axes
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = self.bind(x, axes=axes)
        if type(t) is Zero:
            return out, Zero.of(out)
        if not axes:
            return out, t
        if not aval_of(x).size:
            return out, Zero.of(out)
        shape, dtype = shape_of(x), aval_of(x).dtype
        kept = tuple([i for i in range(len(shape)) if i not in axes])
        chosen = eq_p.bind(x, structural.broadcast_in_dim(out, shape, kept))
        weight = convert_element_type(chosen, dtype)
        total = structural.reduce_sum(mul(t, weight), axes)
        return out, div_p.bind(total, structural.reduce_sum(weight, axes))


class ReduceMax(Extreme):
    """The largest element."""

    name, direction, numpy = "reduce_max", "GT", np.max
    generates_nan = False

    def identity(self, dtype: Any) -> Any:
        return lowest(dtype)


class ReduceMaxOfNumbers(ReduceMax):
    """The largest element; where there are NaN, that or the largest number.

    For those to whom it is the same, such as `softmax`: some backends find NaN only by looking for
    them in a second pass.
    """

    name = "reduce_max_of_numbers"


class ReduceMin(Extreme):
    """The smallest element."""

    name, direction, numpy = "reduce_min", "LT", np.min
    generates_nan = False

    def identity(self, dtype: Any) -> Any:
        return highest(dtype)


reduce_max_p: Final = ReduceMax()
reduce_max_of_numbers_p: Final = ReduceMaxOfNumbers()
reduce_min_p: Final = ReduceMin()


def before(context: Builder, x: Any, y: Any, scalar: ShapedArray, direction: str) -> Any:
    """Whether `x` precedes `y`: NaN first of all, then by the comparison `direction`.

    Complex numbers are compared by their real parts, then by their imaginary parts.
    """
    truth = scalar.update(dtype=np.dtype(bool))
    kind = dtypes.kind_of(scalar.dtype)
    if kind == "c":
        part = scalar.update(dtype=np.dtype(f"float{scalar.dtype.itemsize * 4}"))
        a, b = context.real(x, part), context.real(y, part)
        c, d = context.imag(x, part), context.imag(y, part)
        tie = context.and_(
            context.compare(a, b, "EQ", part), context.compare(c, d, direction, part), truth
        )
        first = context.or_(context.compare(a, b, direction, part), tie, truth)
        # A number does not precede a NaN whose other part is a number.
        first = context.and_(first, context.compare(y, y, "EQ", scalar), truth)
    else:
        first = context.compare(x, y, direction, scalar)
    if kind not in "fc":
        return first
    return context.or_(first, context.compare(x, x, "NE", scalar), truth)


class LogicalReduction(NoGradient, Reduction):
    """A bit operation on all elements."""

    kinds = "biu"

    def abstract(self, x: Any, *, axes: Axes) -> Any:
        return super().abstract(x, axes=axes).update(weak_type=False)

    def identity(self, dtype: Any) -> Any:
        return np.asarray(0, dtype)[()]

    def reference(self, x: Any, *, axes: Axes) -> Any:
        x = np.asarray(x)
        for axis in sorted(axes, reverse=True):
            x = type(self).numpy.reduce(x, axis=axis, initial=self.identity(x.dtype))
        return x


class ReduceAnd(LogicalReduction):
    """The bits that are set in all elements."""

    name, numpy = "reduce_and", np.bitwise_and

    def identity(self, dtype: Any) -> Any:
        return np.invert(np.zeros((), dtype))[()]

    def combine(self, context: Builder, x: Any, y: Any, scalar: ShapedArray) -> Any:
        return context.and_(x, y, scalar)


class ReduceOr(LogicalReduction):
    """The bits that are set in any element."""

    name, numpy = "reduce_or", np.bitwise_or

    def combine(self, context: Builder, x: Any, y: Any, scalar: ShapedArray) -> Any:
        return context.or_(x, y, scalar)


class ReduceXor(LogicalReduction):
    """The bits that are set in an odd number of elements."""

    name, numpy = "reduce_xor", np.bitwise_xor

    def combine(self, context: Builder, x: Any, y: Any, scalar: ShapedArray) -> Any:
        return context.xor(x, y, scalar)


reduce_and_p: Final = ReduceAnd()
reduce_or_p: Final = ReduceOr()
reduce_xor_p: Final = ReduceXor()


class ArgExtreme(NoGradient):
    """The position of an extreme: the first NaN where there is one, else the first of equal
    elements."""

    direction: ClassVar[str]

    def abstract(self, x: Any, *, axes: Axes, index_dtype: Any) -> Any:
        if not dtypes.kind_of(x.dtype):
            raise DTypeError(f"{self.name} does not accept dtype {dtype_name(x.dtype)}")
        (axis,) = axes
        if not 0 <= axis < x.ndim:
            raise ValueError(f"{self.name}: an operand of shape {x.shape} has no axis {axis}")
        if not x.shape[axis]:
            raise ValueError(
                f"{self.name} of an empty sequence: axis {axis} of an operand of shape {x.shape} "
                "has size 0, so there is no position to return"
            )
        if dtypes.kind_of(index_dtype) not in ("i", "u"):
            raise TypeError(
                f"{self.name}: index_dtype must be an integer dtype, got {dtype_name(index_dtype)}"
            )
        dtypes.check_holds(x.shape[axis] - 1, index_dtype, self.name)
        return make_aval(without(x.shape, axes), index_dtype)

    def labels(
        self, avals: Sequence[Any], results: Sequence[Any], *, axes: Axes, index_dtype: Any
    ) -> Labels:
        return reduced_labels(avals, results, axes)

    def reference(self, x: Any, *, axes: Axes, index_dtype: Any) -> Any:
        find = np.argmax if self.direction == "GT" else np.argmin
        return np.asarray(find(x, axis=axes[0])).astype(index_dtype)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, axes: Axes, index_dtype: Any
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        (axis,) = axes
        axis += axis >= d
        return self.bind(x, axes=(axis,), index_dtype=index_dtype), d - (axis < d)

    def lower(self, context: Builder, x: Any, *, axes: Axes, index_dtype: Any) -> Any:
        (aval,), (out,) = context.avals_in, context.avals_out
        (axis,) = axes
        value, index = make_aval((), aval.dtype), make_aval((), index_dtype)
        truth = make_aval((), np.dtype(bool))

        def body(x: Any, i: Any, y: Any, j: Any) -> list[Any]:
            first = before(context, x, y, value, self.direction)
            reverse = before(context, y, x, value, self.direction)
            # Two elements are equal, or both NaN, if both or neither precede the other.
            same = context.compare(first, reverse, "EQ", truth)
            lower = context.min(i, j, index)
            picked = context.select(first, i, j, index)
            return [
                context.select(first, x, y, value),
                context.select(same, lower, picked, index),
            ]

        identity = lowest(aval.dtype) if self.direction == "GT" else highest(aval.dtype)
        positions = context.iota(aval.update(dtype=index_dtype, weak_type=False), axis)
        _, extreme_positions = context.reduce(
            [x, positions],
            [context.constant(identity, value), context.constant(0, index)],
            axes,
            [out.update(dtype=aval.dtype), out],
            body,
        )
        return extreme_positions


class ArgMax(ArgExtreme):
    """The position of the largest element."""

    name, direction = "argmax", "GT"


class ArgMin(ArgExtreme):
    """The position of the smallest element."""

    name, direction = "argmin", "LT"


argmax_p: Final = ArgMax()
argmin_p: Final = ArgMin()


# Public functions


def _reduced(primitive: Primitive, x: Any, axes: Any) -> Any:
    name = primitive.name
    x = as_operand(x, f"lax.{name}", "operand")
    return primitive.bind(x, axes=canonical_dimensions(axes, len(shape_of(x)), name, "axes"))


def check_sum(aval: Any) -> None:
    """Refuse a sum that the user writes in 16 bits, if the option says so.

    Raises:
        ValueError: `allow_f16_reductions` is off, and the dtype is float16 or bfloat16.
    """
    if not config.allow_f16_reductions.value and aval.dtype.name in ("float16", "bfloat16"):
        raise ValueError(
            f"reduce_sum of {aval.short_name()} is refused, since the option allow_f16_reductions "
            "is off; convert the operand first: x.astype('float32')"
        )


def reduce_sum(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: Sharding | None = None
) -> Array:
    """The sum over some dimensions.

    Args:
        operand: an array of integers, floating point or complex numbers; 16-bit floats are added in
            32 bits.
        axes: the dimensions to reduce; negative ones count from the end.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array without these dimensions, of the same dtype; 0 for no elements.

    Raises:
        TypeError: the dtype is not supported.
        ValueError: an axis is out of bounds or repeated; or the dtype is a float of 16 bits, and
            the option ``allow_f16_reductions`` is off.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.reduce_sum(np.array([1, 2]), (0,)).tolist()
        3
    """
    x = as_operand(operand, "lax.reduce_sum", "operand")
    aval = aval_of(x)
    if dtypes.kind_of(aval.dtype) in ("", "b"):
        raise DTypeError(
            f"reduce_sum does not accept dtype {dtype_name(aval.dtype)}; it takes integers, "
            "floating point and complex numbers: convert with lax.convert_element_type first"
        )
    check_sum(aval)
    dims = canonical_dimensions(axes, aval.ndim, "reduce_sum", "axes")
    wanted = asked_division("lax.reduce_sum", out_sharding, aval.ndim - len(dims))
    summed = structural.reduce_sum_p.bind(x, axes=dims, out_sharding=wanted)
    return placed("lax.reduce_sum", summed, out_sharding)


def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The product over some dimensions.

    Args:
        operand: an array of integers, floating point or complex numbers; 16-bit floats are
            multiplied in 32 bits.
        axes: the dimensions to reduce; negative ones count from the end.

    Returns:
        An array without these dimensions, of the same dtype; 1 for no elements.

    Raises:
        TypeError: the dtype is not supported.
        ValueError: an axis is out of bounds or repeated.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.reduce_prod(np.array([2, 3]), (0,)).tolist()
        6
    """
    return _reduced(reduce_prod_p, operand, axes)


def reduce_max(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: Sharding | None = None
) -> Array:
    """The maximum over some dimensions.

    Args:
        operand: an array of any dtype; complex numbers are ordered by their real parts first.
        axes: the dimensions to reduce; negative ones count from the end.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array without these dimensions, of the same dtype; NaN if there is one, the lowest value
        of the dtype for no elements.

    Raises:
        TypeError: the dtype is not supported.
        ValueError: an axis is out of bounds or repeated.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.reduce_max(np.array([1, 3, 2]), (0,)).tolist()
        3
    """
    return divided("lax.reduce_max", out_sharding, lambda: _reduced(reduce_max_p, operand, axes))


def reduce_min(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: Sharding | None = None
) -> Array:
    """The minimum over some dimensions.

    Args:
        operand: an array of any dtype; complex numbers are ordered by their real parts first.
        axes: the dimensions to reduce; negative ones count from the end.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array without these dimensions, of the same dtype; NaN if there is one, the highest value
        of the dtype for no elements.

    Raises:
        TypeError: the dtype is not supported.
        ValueError: an axis is out of bounds or repeated.

    Differs:
        No complex number is greater than the minimum of none, or less than the maximum of none,
        here and in functions that begin with them, such as `cummin` and `dovetail.numpy.nanmin`.

        >>> print(lax.reduce_min(jnp.zeros(0, "complex64"), (0,)))
        (inf+infj)
        >>> print(lax.cummin(jnp.array([complex(jnp.inf, 5)])))
        [inf+5.j]

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.reduce_min(np.array([3, 1, 2]), (0,)).tolist()
        1
    """
    return divided("lax.reduce_min", out_sharding, lambda: _reduced(reduce_min_p, operand, axes))


def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bitwise AND over some dimensions; for booleans, whether all are true.

    Args:
        operand: an array of bool or integers.
        axes: the dimensions to reduce; negative ones count from the end.

    Returns:
        An array without these dimensions, of the same dtype.

    Raises:
        TypeError: the dtype is not supported.
        ValueError: an axis is out of bounds or repeated.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.reduce_and(np.array([True, False]), (0,)).tolist()
        False
    """
    return _reduced(reduce_and_p, operand, axes)


def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bitwise OR over some dimensions; for booleans, whether any is true.

    Args:
        operand: an array of bool or integers.
        axes: the dimensions to reduce; negative ones count from the end.

    Returns:
        An array without these dimensions, of the same dtype.

    Raises:
        TypeError: the dtype is not supported.
        ValueError: an axis is out of bounds or repeated.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.reduce_or(np.array([True, False]), (0,)).tolist()
        True
    """
    return _reduced(reduce_or_p, operand, axes)


def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The bitwise XOR over some dimensions: bits that are set in an odd number of elements.

    Args:
        operand: an array of bool or integers.
        axes: the dimensions to reduce; negative ones count from the end.

    Returns:
        An array without these dimensions, of the same dtype.

    Raises:
        TypeError: the dtype is not supported.
        ValueError: an axis is out of bounds or repeated.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.reduce_xor(np.array([True, True]), (0,)).tolist()
        False
    """
    return _reduced(reduce_xor_p, operand, axes)


def _position(primitive: Primitive, operand: Any, axis: Any, index_dtype: Any) -> Any:
    name = primitive.name
    x = as_operand(operand, f"lax.{name}", "operand")
    axis = canonical_dimension(axis, len(shape_of(x)), name)
    dtype = dtypes.check_user_dtype(index_dtype, f"lax.{name}")
    return primitive.bind(x, axes=(axis,), index_dtype=dtype)


def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The position of the largest element along a dimension.

    Args:
        operand: an array of numbers or booleans.
        axis: the dimension; negative ones count from the end.
        index_dtype: integer dtype of the result.

    Returns:
        An array without that dimension: the position of the first NaN if there is one, otherwise of
        the first of equal elements.

    Raises:
        TypeError: `index_dtype` is not an integer dtype.
        ValueError: the axis is out of bounds, or has no elements.
        OverflowError: `index_dtype` does not hold the last position.

    Differs:
        Positions that `index_dtype` does not hold are an OverflowError, here and in `argmin`, and
        so are those from 2**31 on of `numpy.argmax` and its relatives where 64-bit types are off.

        >>> lax.argmax(jnp.arange(200), 0, "int8")
        Traceback (most recent call last):
            ...
        OverflowError: argmax: int8 does not hold 199, which may result; ask for a wider dtype

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.argmax(np.array([1, 3, 3]), 0, "int32").tolist()
        1
    """
    return _position(argmax_p, operand, axis, index_dtype)


def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The position of the smallest element along a dimension.

    Args:
        operand: an array of numbers or booleans.
        axis: the dimension; negative ones count from the end.
        index_dtype: integer dtype of the result.

    Returns:
        An array without that dimension: the position of the first NaN if there is one, otherwise of
        the first of equal elements.

    Raises:
        TypeError: `index_dtype` is not an integer dtype.
        ValueError: the axis is out of bounds, or has no elements.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.argmin(np.array([3, 1, 1]), 0, "int32").tolist()
        1
    """
    return _position(argmin_p, operand, axis, index_dtype)
