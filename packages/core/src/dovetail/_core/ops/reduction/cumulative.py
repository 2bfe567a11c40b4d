"""Cumulative sums, products, extremes and log-sum-exps, and the linear recurrence behind them.

All derivatives are linear recurrences y[i] = a[i] * y[i - 1] + b[i]. These are linear in b, and
their adjoint is the same recurrence backwards. A derivative is therefore as short a program, and as
fast, as the function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import DTypeError
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis import structural
from dovetail._core.basis.elementwise import add_tangents, convert_element_type, dtype_name, mul
from dovetail._core.basis.operands import as_operand, make_literal
from dovetail._core.basis.structural import Linear, is_linear, to_front
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ir.dimensions import is_symbolic_dim
from dovetail._core.ops.elementwise.arithmetic import add_p, div_p, sub_p
from dovetail._core.ops.elementwise.comparison import eq_p
from dovetail._core.ops.elementwise.complex import real
from dovetail._core.ops.elementwise.exponential import exp_p, log_p
from dovetail._core.ops.elementwise.extrema import Extremum, max_p, min_p
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.reduction.reductions import KINDS, highest, lowest
from dovetail._core.ops.shape.dimensions import canonical_dimension, replaced
from dovetail._core.ops.shape.slicing import pad_with
from dovetail._core.trace.divisions import Labels, labels_along
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

#: StableHLO that combines two tuples of arrays, earlier elements first.
Combine = Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Sequence[Any]]

FLOAT32: Final = np.dtype(np.float32)


def shifted(x: Any, axis: int, reverse: bool, fill: Any) -> Any:
    """At each position the element before it, and `fill` at the first; `reverse` goes backwards."""
    config = [(0, 0, 0)] * len(shape_of(x))
    config[axis] = (-1, 1, 0) if reverse else (1, -1, 0)
    return pad_with(x, make_literal(fill, aval_of(x).dtype), tuple(config))


class Cumulative(Primitive):
    """At each position along an axis, a reduction of the elements up to it; from it on for
    `reverse`.

    A member defines `kinds`, the supported dtype kinds, and `numpy`, a universal function of two
    arguments that NumPy can accumulate.
    """

    accepts_zeros = True
    kinds: ClassVar[str] = "iufc"
    numpy: ClassVar[Any]

    def abstract(self, x: Any, *, axis: int, reverse: bool) -> Any:
        kind = dtypes.kind_of(x.dtype)
        if kind not in self.kinds or not kind:
            raise DTypeError(
                f"{self.name} does not accept dtype {dtype_name(x.dtype)}; it takes "
                f"{', '.join(KINDS[k] for k in self.kinds)}"
            )
        if not 0 <= axis < x.ndim:
            raise ValueError(f"{self.name}: an operand of shape {x.shape} has no axis {axis}")
        return x

    def labels(
        self, avals: Sequence[Any], results: Sequence[Any], *, axis: int, reverse: bool
    ) -> Labels:
        return labels_along(avals, results, axis, "accumulates along")

    def reference(self, x: Any, *, axis: int, reverse: bool) -> Any:
        x = np.asarray(x)
        wide = x.astype(np.float64) if dtypes.kind_of(x.dtype) == "f" else x
        if reverse:
            wide = np.flip(wide, axis)
        out = type(self).numpy.accumulate(wide, axis=axis, dtype=wide.dtype)
        return (np.flip(out, axis) if reverse else out).astype(x.dtype)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, axis: int, reverse: bool
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        return self.bind(x, axis=axis + (axis >= d), reverse=reverse), d

    def combine(self, context: Builder, x: Any, y: Any, aval: Any) -> Any:
        """StableHLO that combines two arrays, earlier elements first."""
        raise TypeError(f"{self.name} does not say how it combines two elements")

    def lower(self, context: Builder, x: Any, *, axis: int, reverse: bool) -> Any:
        (aval,) = context.avals_out
        wide = aval
        if dtypes.kind_of(aval.dtype) == "f" and aval.dtype.itemsize < 4:
            wide = aval.update(dtype=FLOAT32)

        def combine(xs: Sequence[Any], ys: Sequence[Any], avals: Sequence[Any]) -> list[Any]:
            return [self.combine(context, xs[0], ys[0], avals[0])]

        (out,) = emit_scan(
            context, [context.convert(x, aval, wide)], [wide], axis, reverse, combine
        )
        return context.convert(out, wide, aval)


class CumSum(Cumulative, Linear):
    """The cumulative sums."""

    name, numpy = "cumsum", np.add

    def transpose(self, ct: Any, x: Any, *, axis: int, reverse: bool) -> Sequence[Any]:
        return (self.bind(ct, axis=axis, reverse=not reverse) if is_linear(x) else None,)

    def combine(self, context: Builder, x: Any, y: Any, aval: Any) -> Any:
        return context.add(x, y, aval)


class CumProd(Cumulative):
    """The cumulative products."""

    name, numpy = "cumprod", np.multiply

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, axis: int, reverse: bool
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = self.bind(x, axis=axis, reverse=reverse)
        if type(t) is Zero:
            return out, Zero.of(out)
        before = shifted(out, axis, reverse, 1)
        return out, recurrence(x, mul(before, t), axis, reverse)

    def combine(self, context: Builder, x: Any, y: Any, aval: Any) -> Any:
        return context.mul(x, y, aval)


class CumExtreme(Cumulative):
    """The extreme of the elements up to each; equal ones share the derivative."""

    generates_nan = False

    extreme: ClassVar[Extremum]
    worst: ClassVar[Any]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, axis: int, reverse: bool
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = self.bind(x, axis=axis, reverse=reverse)
        if type(t) is Zero or aval_of(out).tangent().dtype != aval_of(out).dtype:
            return out, Zero.of(out)
        dtype = aval_of(x).dtype
        before = shifted(out, axis, reverse, self.worst(dtype))
        # An element that is worse than the running extreme leaves the shares; an equal one joins; a
        # better one starts anew. The sums over those that share, and their counts, are therefore
        # linear recurrences.
        best = self.extreme.bind(before, x)
        stays, joins = (convert_element_type(eq_p.bind(v, best), dtype) for v in (before, x))
        count = recurrence(stays, joins, axis, reverse)
        return out, div_p.bind(recurrence(stays, mul(t, joins), axis, reverse), count)

    def combine(self, context: Builder, x: Any, y: Any, aval: Any) -> Any:
        return self.extreme.emit(context, x, y, out=aval)


class CumMax(CumExtreme):
    """The largest of the elements up to each; NaN from the first NaN on."""

    name, numpy, extreme, worst = "cummax", np.maximum, max_p, staticmethod(lowest)


class CumMin(CumExtreme):
    """The smallest of the elements up to each; NaN from the first NaN on."""

    name, numpy, extreme, worst = "cummin", np.minimum, min_p, staticmethod(highest)


class CumLogSumExp(Cumulative):
    """The log-sum-exp of the elements up to each."""

    name, numpy = "cumlogsumexp", np.logaddexp
    kinds = "fc"

    def reference(self, x: Any, *, axis: int, reverse: bool) -> Any:
        x = np.asarray(x)
        if dtypes.kind_of(x.dtype) != "c":
            return super().reference(x, axis=axis, reverse=reverse)
        flipped = np.flip(x, axis) if reverse else x
        with np.errstate(divide="ignore"):
            out = np.log(np.cumsum(np.exp(flipped.astype(np.complex128)), axis))
        return (np.flip(out, axis) if reverse else out).astype(x.dtype)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, axis: int, reverse: bool
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = self.bind(x, axis=axis, reverse=reverse)
        if type(t) is Zero:
            return out, Zero.of(out)
        before = shifted(out, axis, reverse, -np.inf)
        carried, own = exp_of_difference(before, out), exp_of_difference(x, out)
        return out, recurrence(carried, mul(t, own), axis, reverse)

    def lower(self, context: Builder, x: Any, *, axis: int, reverse: bool) -> Any:
        # With the running maximum m, sums of exp(x - m[i]) do not overflow. They follow a linear
        # recurrence with the factor exp(m[i - 1] - m[i]).
        (aval,) = context.avals_in

        def function(x: Any) -> Any:
            dtype = aval.dtype if aval.dtype.itemsize >= 4 else FLOAT32
            x = convert_element_type(x, dtype)
            m = cummax_p.bind(
                real(x) if dtypes.kind_of(dtype) == "c" else x, axis=axis, reverse=reverse
            )
            m = convert_element_type(m, dtype)
            before = shifted(m, axis, reverse, -np.inf)
            factors, terms = exp_of_difference(before, m), exp_of_difference(x, m)
            total = recurrence(factors, terms, axis, reverse)
            return convert_element_type(add_p.bind(m, log_p.bind(total, accuracy=None)), aval.dtype)

        return context.lower_function(function, [aval.strengthen()])(x)


def exp_of_difference(x: Any, y: Any) -> Any:
    """exp(x - y), where equal infinities have the difference 0 instead of NaN."""
    gap = sub_p.bind(x, y)
    zero = structural.full(shape_of(gap), 0, aval_of(gap).dtype)
    return exp_p.bind(select_n_p.bind(eq_p.bind(x, y), gap, zero), accuracy=None)


class LinearRecurrence(Primitive):
    """y[i] = a[i] * y[i - 1] + b[i] along an axis, with y = 0 before the first; backwards for
    `reverse`."""

    name = "linear_recurrence"
    linear_in: ClassVar[Sequence[slice]] = (slice(1, 2),)
    accepts_zeros = True

    def abstract(self, a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
        if a.shape != b.shape or a.dtype != b.dtype or dtypes.kind_of(a.dtype) not in ("f", "c"):
            raise TypeError(
                "linear_recurrence requires two operands of one shape and one floating point or "
                f"complex dtype, got {a.short_name()} and {b.short_name()}"
            )
        if not 0 <= axis < a.ndim:
            raise ValueError(f"linear_recurrence: operands of shape {a.shape} have no axis {axis}")
        return b.strengthen()

    def labels(
        self, avals: Sequence[Any], results: Sequence[Any], *, axis: int, reverse: bool
    ) -> Labels:
        return labels_along(avals, results, axis, "accumulates along")

    def reference(self, a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
        a, b = (np.moveaxis(np.asarray(v), axis, 0) for v in (a, b))
        wide = np.float64 if dtypes.kind_of(b.dtype) == "f" else b.dtype
        out, y = np.empty(b.shape, wide), np.zeros(b.shape[1:], wide)
        for i in reversed(range(len(b))) if reverse else range(len(b)):
            out[i] = y = a[i].astype(wide) * y + b[i].astype(wide)
        return np.moveaxis(out, 0, axis).astype(b.dtype)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, axis: int, reverse: bool
    ) -> tuple[Any, Any]:
        (a, b), (s, t) = primals, tangents
        out = recurrence(a, b, axis, reverse)
        if type(s) is not Zero:
            t = add_tangents(t, mul(s, shifted(out, axis, reverse, 0)))
        return out, Zero.of(out) if type(t) is Zero else recurrence(a, t, axis, reverse)

    def transpose(self, ct: Any, a: Any, b: Any, *, axis: int, reverse: bool) -> Sequence[Any]:
        if not is_linear(b):
            return None, None
        return None, recurrence(shifted(a, axis, not reverse, 0), ct, axis, not reverse)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, axis: int, reverse: bool
    ) -> tuple[Any, Any]:
        size = structural.batch_size(args, dims)
        a, b = (to_front(x, d, size) for x, d in zip(args, dims, strict=True))
        return recurrence(a, b, axis + 1, reverse), 0

    def lower(self, context: Builder, a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
        (out,) = context.avals_out
        wide = out
        if dtypes.kind_of(out.dtype) == "f" and out.dtype.itemsize < 4:
            wide = out.update(dtype=FLOAT32)
        _, y = emit_scan(
            context,
            [context.convert(v, out, wide) for v in (a, b)],
            [wide, wide],
            axis,
            reverse,
            lambda xs, ys, avals: combine_linear(context, xs, ys, avals),
        )
        return context.convert(y, wide, out)


def combine_linear(
    context: Builder, xs: Sequence[Any], ys: Sequence[Any], avals: Sequence[Any]
) -> list[Any]:
    """The composition of two maps y -> a * y + b; the first is applied first."""
    (a, b), (c, d) = xs, ys
    first, second = avals
    return [context.mul(a, c, first), context.add(context.mul(b, c, second), d, second)]


cumsum_p: Final = CumSum()
cumprod_p: Final = CumProd()
cummax_p: Final = CumMax()
cummin_p: Final = CumMin()
cumlogsumexp_p: Final = CumLogSumExp()
linear_recurrence_p: Final = LinearRecurrence()


def recurrence(a: Any, b: Any, axis: int, reverse: bool) -> Any:
    """y[i] = a[i] * y[i - 1] + b[i]."""
    return linear_recurrence_p.bind(a, b, axis=axis, reverse=reverse)


def emit_scan(
    context: Builder,
    values: Sequence[Any],
    avals: Sequence[Any],
    axis: int,
    reverse: bool,
    combine: Combine,
) -> list[Any]:
    """StableHLO for an inclusive scan: all elements up to each, combined.

    Neighbours are combined, the results are scanned, and the other results follow from these: O(n)
    applications in 2 log2(n) steps.

    Args:
        context: the builder.
        values: arrays to scan together.
        avals: their avals, of one shape.
        axis: the dimension.
        reverse: whether to go from the last element to the first.
        combine: associative; takes earlier elements, later elements, and their avals.
    """
    if reverse:
        values = [context.reverse(v, a, (axis,)) for v, a in zip(values, avals, strict=True)]
    out = _scan(context, values, avals, axis, combine)
    if reverse:
        out = [context.reverse(v, a, (axis,)) for v, a in zip(out, avals, strict=True)]
    return out


def _scan(
    context: Builder, values: Sequence[Any], avals: Sequence[Any], axis: int, combine: Combine
) -> list[Any]:
    shape = avals[0].shape
    size = shape[axis]
    if is_symbolic_dim(size):
        return _scan_by_doubling(context, values, avals, axis, combine)
    if size < 2:
        return list(values)

    def sized(n: int) -> list[Any]:
        return [a.update(shape=replaced(shape, axis, n)) for a in avals]

    def part(xs: Sequence[Any], have: int, start: int, limit: int, step: int) -> list[Any]:
        starts, strides = [0] * len(shape), [1] * len(shape)
        starts[axis], strides[axis] = start, step
        limits = replaced(replaced(shape, axis, have), axis, limit)
        outs = sized((limit - start + step - 1) // step)
        return [
            context.slice(x, out, starts, limits, strides) for x, out in zip(xs, outs, strict=True)
        ]

    half, rest = size // 2, (size - 1) // 2
    pairs = combine(
        part(values, size, 0, 2 * half, 2), part(values, size, 1, 2 * half, 2), sized(half)
    )
    # Results at the positions 1, 3, 5, ...
    odd = _scan(context, pairs, sized(half), axis, combine)
    even = part(values, size, 0, 1, 1)
    if rest:
        later = combine(part(odd, half, 0, rest, 1), part(values, size, 2, size, 2), sized(rest))
        even = [
            context.concatenate([e, n], out, axis)
            for e, n, out in zip(even, later, sized(rest + 1), strict=True)
        ]
    return _interleave(context, even, odd, avals, axis)


def _scan_by_doubling(
    context: Builder, values: Sequence[Any], avals: Sequence[Any], axis: int, combine: Combine
) -> list[Any]:
    """An inclusive scan along a symbolic dimension: each element with the one 1, 2, 4, ... before.

    O(n log n) applications in log2(n) steps.
    """
    shape = avals[0].shape
    size = shape[axis]
    number = context.size_aval
    position = make_aval(shape, number.dtype)
    places = context.iota(position, axis)
    count, zero = context.integer(size, number), context.constant(0, number)

    def distance_of(step: Any) -> Any:
        # Counted by ones: XLA before jaxlib 0.12 ends the process over a number that is doubled.
        return context.op("shift_left", [context.constant(1, number), step], number)

    def turn(step: Any, *xs: Any) -> list[Any]:
        distance = distance_of(step)
        starts = [zero] * len(shape)
        starts[axis] = context.sub(count, distance, number)
        earlier = []
        for x, aval in zip(xs, avals, strict=True):
            twice = context.concatenate(
                [x, x], aval.update(shape=replaced(shape, axis, 2 * size)), axis
            )
            earlier.append(context.dynamic_slice(twice, aval, starts))
        combined = combine(earlier, xs, avals)
        wide = context.broadcast_in_dim(distance, position, ())
        inside = context.compare(places, wide, "GE", position)
        return [
            context.add(step, context.constant(1, number), number),
            *(
                context.select(inside, new, old, aval)
                for new, old, aval in zip(combined, xs, avals, strict=True)
            ),
        ]

    _, *results = context.while_loop(
        [zero, *values],
        [number, *avals],
        lambda step, *_: context.compare(distance_of(step), count, "LT", number),
        turn,
    )
    return results


def _interleave(
    context: Builder, even: Sequence[Any], odd: Sequence[Any], avals: Sequence[Any], axis: int
) -> list[Any]:
    """Arrays with the elements of `even` and `odd`, alternating."""
    shape = avals[0].shape
    size = shape[axis]
    half = size // 2
    results = []
    for e, o, aval in zip(even, odd, avals, strict=True):
        column = aval.update(shape=(*shape[:axis], half, 1, *shape[axis + 1 :]))
        table = aval.update(shape=(*shape[:axis], half, 2, *shape[axis + 1 :]))
        last = None
        if size % 2:
            starts = [0] * len(shape)
            starts[axis] = half
            ends = replaced(shape, axis, half + 1)
            last = context.slice(e, aval.update(shape=replaced(shape, axis, 1)), starts, ends)
            start = [0] * len(shape)
            e = context.slice(
                e,
                aval.update(shape=replaced(shape, axis, half)),
                start,
                replaced(shape, axis, half),
            )
        both = context.concatenate(
            [context.reshape(e, column), context.reshape(o, column)], table, axis + 1
        )
        flat = context.reshape(both, aval.update(shape=replaced(shape, axis, 2 * half)))
        results.append(flat if last is None else context.concatenate([flat, last], aval, axis))
    return results


# Public functions


def _cumulative(primitive: Primitive, x: Any, axis: Any, reverse: Any) -> Any:
    name = primitive.name
    x = as_operand(x, f"lax.{name}", "operand")
    axis = canonical_dimension(axis, len(shape_of(x)), name)
    return primitive.bind(x, axis=axis, reverse=bool(reverse))


def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative sums along an axis.

    Args:
        operand: an array of numbers.
        axis: the dimension; negative ones count from the end.
        reverse: go from the last element to the first.

    Returns:
        An array of the same shape and dtype.

    Raises:
        TypeError: the dtype is bool or not numeric.
        ValueError: the axis is out of bounds.

    Differs:
        A negative axis counts from the end; so in the other functions of running results and in
        `broadcasted_iota`.

        >>> print(lax.cumsum(jnp.ones((2, 2)), axis=-1))
        [[1. 2.]
         [1. 2.]]

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.cumsum(np.array([1, 2, 3])).tolist()
        [1, 3, 6]
    """
    return _cumulative(cumsum_p, operand, axis, reverse)


def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative products along an axis.

    Args:
        operand: an array of numbers.
        axis: the dimension; negative ones count from the end.
        reverse: go from the last element to the first.

    Returns:
        An array of the same shape and dtype.

    Raises:
        TypeError: the dtype is bool or not numeric.
        ValueError: the axis is out of bounds.

    Differs:
        The derivative divides by nothing, and is exact where elements are zero. It is made of
        the primitive `linear_recurrence`, ``y[i] = a[i] * y[i - 1] + b[i]``, which JAX does not
        have.

        >>> print(dt.grad(lambda x: lax.cumprod(x).sum())(jnp.array([2.0, 0.0, 3.0])))
        [1. 8. 0.]

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.cumprod(np.array([1, 2, 3])).tolist()
        [1, 2, 6]
    """
    return _cumulative(cumprod_p, operand, axis, reverse)


def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative maxima along an axis.

    Args:
        operand: an array of integers or floating point numbers.
        axis: the dimension; negative ones count from the end.
        reverse: go from the last element to the first.

    Returns:
        An array of the same shape and dtype; NaN from the first NaN on.

    Raises:
        TypeError: the dtype is not supported.
        ValueError: the axis is out of bounds.

    Differs:
        Complex numbers are ordered as by `max`: nan in a part counts as the largest.

        >>> z = jnp.array([1, complex(0, np.nan), 2])
        >>> print(jnp.isnan(lax.cummax(z)))
        [False  True  True]

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.cummax(np.array([1, 3, 2])).tolist()
        [1, 3, 3]
    """
    return _cumulative(cummax_p, operand, axis, reverse)


def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative minima along an axis.

    Args:
        operand: an array of integers or floating point numbers.
        axis: the dimension; negative ones count from the end.
        reverse: go from the last element to the first.

    Returns:
        An array of the same shape and dtype; NaN from the first NaN on.

    Raises:
        TypeError: the dtype is not supported.
        ValueError: the axis is out of bounds.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.cummin(np.array([3, 1, 2])).tolist()
        [3, 1, 1]
    """
    return _cumulative(cummin_p, operand, axis, reverse)


def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Cumulative log-sum-exps along an axis, without overflow.

    Args:
        operand: an array of floating point numbers.
        axis: the dimension; negative ones count from the end.
        reverse: go from the last element to the first.

    Returns:
        An array of the same shape and dtype.

    Raises:
        TypeError: the dtype is not floating point.
        ValueError: the axis is out of bounds.

    Differs:
        Integers, which could not hold the result, are refused.

        >>> lax.cumlogsumexp(jnp.arange(3))
        Traceback (most recent call last):
            ...
        dovetail...DTypeError: cumlogsumexp does not accept dtype int32; ...

        Floats of 8 bits without infinities have results, where those of JAX are nan.

        >>> print(lax.cumlogsumexp(jnp.ones(2, "float8_e4m3b11fnuz")))
        [1 1.75]

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> [round(y, 3) for y in lax.cumlogsumexp(np.zeros(2, np.float32)).tolist()]
        [0.0, 0.693]
    """
    return _cumulative(cumlogsumexp_p, operand, axis, reverse)
