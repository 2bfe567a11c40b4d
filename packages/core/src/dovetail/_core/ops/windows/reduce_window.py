"""Reductions over sliding windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, overload

import numpy as np

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.errors import DTypeError
from dovetail._core.base.typing import Array, ArrayLike, PyTree
from dovetail._core.basis import structural
from dovetail._core.basis.elementwise import dtype_name
from dovetail._core.basis.operands import as_operand, make_literal
from dovetail._core.basis.structural import Linear, batch_size, is_linear, to_front
from dovetail._core.ir.avals import ShapedArray, aval_of, make_aval, shape_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, Jaxpr
from dovetail._core.ops.elementwise.arithmetic import add_p
from dovetail._core.ops.elementwise.bitwise import or_p
from dovetail._core.ops.elementwise.comparison import ge_p, le_p
from dovetail._core.ops.elementwise.extrema import max_p, min_p
from dovetail._core.ops.elementwise.selection import select
from dovetail._core.ops.reduction.general_reduction import (
    Monoid,
    combination,
    combined_with,
    elementwise,
    evaluated,
    known_monoid,
    monoid_of,
    starting_value,
)
from dovetail._core.ops.reduction.reductions import KINDS, before, highest, lowest
from dovetail._core.ops.shape.dimensions import canonical_shape, integers
from dovetail._core.ops.shape.padding import dilated_size, pads_of
from dovetail._core.ops.shape.slicing import slice_dimension
from dovetail._core.ops.windows.window_geometry import Shape, Window, spread
from dovetail._core.ops.windows.window_selection import select_and_gather_add_p
from dovetail._core.trace.divisions import Labels, divided_alike
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero
from dovetail._core.transform.batch import batch_flat
from dovetail._core.transform.jvp import jvp_flat

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

BOOL: Final = np.dtype(bool)
FLOAT32: Final = np.dtype(np.float32)

#: Combines arrays with as many others, element by element.
Combination = Callable[[Sequence[Any], Sequence[Any]], list[Any]]

T = TypeVar("T")


class ReduceWindow(Primitive):
    """Reduces several arrays together with an associative function of scalars, window by window.

    Half of the operands are arrays; the others are the scalars that the reductions start with.
    Padding, and the holes between elements, are skipped.
    """

    name = "reduce_window"
    multiple_results = True
    accepts_zeros = True

    def abstract(self, *avals: Any, consts: tuple[Any, ...], jaxpr: Jaxpr, **window: Any) -> Any:
        count = len(avals) // 2
        arrays, starts = avals[:count], avals[count:]
        for x, start in zip(arrays, starts, strict=True):
            if x.shape != arrays[0].shape or start.ndim or start.dtype != x.dtype:
                raise TypeError(
                    "reduce_window requires operands of one shape, and for each a scalar of its "
                    f"dtype to start with, got {', '.join(a.short_name() for a in avals)}"
                )
        slides = Window(**window)
        slides.check(self.name, arrays[0].shape)
        return [make_aval(slides.count(x.shape), x.dtype) for x in arrays]

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return divided_alike(avals, results)

    def reference(self, *args: Any, consts: tuple[Any, ...], jaxpr: Jaxpr, **window: Any) -> Any:
        count = len(args) // 2
        slides = Window(**window)
        closed = ClosedJaxpr(jaxpr, consts)
        arrays = list(map(np.asarray, args[:count]))
        shape = slides.count(arrays[0].shape)
        results = [
            np.broadcast_to(np.asarray(start, x.dtype), shape)
            for x, start in zip(arrays, args[count:], strict=True)
        ]
        there = slides.views(np.ones(arrays[0].shape, bool), False)
        views = [slides.views(x, start) for x, start in zip(arrays, args[count:], strict=True)]
        for present, *elements in zip(there, *views, strict=True):
            combined = evaluated(closed, [*results, *elements])
            results = [np.where(present, c, r) for c, r in zip(combined, results, strict=True)]
        return results

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        if all(type(t) is Zero for t in tangents):
            outs = self.bind(*primals, **params)
            return outs, [Zero.of(o) for o in outs]
        # The result is the reduction itself: parts of windows are combined in another order.
        outs = self.bind(*primals, **params)
        return outs, jvp_flat(lambda *args: _by_dimensions(args, **params), primals, tangents)[1]

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        consts: tuple[Any, ...],
        jaxpr: Jaxpr,
        **window: Any,
    ) -> tuple[Any, Any]:
        count = len(args) // 2
        size = batch_size(args, dims)
        if any(d is not None for d in dims[count:]):
            return batch_flat(
                lambda *a: _by_dimensions(a, consts=consts, jaxpr=jaxpr, **window),
                args,
                dims,
                size,
            )
        arrays = [to_front(x, d, size) for x, d in zip(args[:count], dims[:count], strict=True)]
        wider = Window(**window).inserted(0).params()
        outs = self.bind(*arrays, *args[count:], consts=consts, jaxpr=jaxpr, **wider)
        return outs, [0] * count

    def lower(
        self,
        context: Builder,
        *values: Any,
        consts: tuple[Any, ...],
        jaxpr: Jaxpr,
        **window: Any,
    ) -> Any:
        count = len(values) // 2
        closed = ClosedJaxpr(jaxpr, consts)
        monoid = monoid_of(closed, context.avals_in[0].dtype) if count == 1 else None
        if monoid is not None:
            return self._lower_from_neutral(context, values, monoid, closed, window)
        return context.reduce_window(
            values[:count],
            values[count:],
            context.avals_out,
            lambda *scalars: context.inline_jaxpr(closed, scalars),
            **Window(**window).attributes(),
        )

    def _lower_from_neutral(
        self,
        context: Builder,
        values: Sequence[Any],
        monoid: Monoid,
        closed: ClosedJaxpr,
        window: dict[str, Any],
    ) -> Any:
        """The reduction by a known operation, combined once with the initial value."""
        x, start = values
        (aval, scalar), (out,) = context.avals_in, context.avals_out
        known = next((r for r in _KNOWN if r.operation is monoid.operation), None)
        if known is not None:
            (whole,) = context.lower_function(lambda x: [known.bind(x, **window)], [aval])(x)
        else:
            neutral = np.asarray(monoid.neutral(aval.dtype), aval.dtype)[()]
            (whole,) = context.reduce_window(
                [x],
                [context.constant(neutral, scalar)],
                [out],
                lambda *scalars: context.inline_jaxpr(closed, scalars),
                **Window(**window).attributes(),
            )
        return context.lower_function(
            lambda start, whole: [combined_with(start, whole, monoid)], [scalar, out]
        )(start, whole)


reduce_window_p: Final = ReduceWindow()


def _by_dimensions(
    args: Sequence[Any], *, consts: tuple[Any, ...], jaxpr: Jaxpr, **window: Any
) -> list[Any]:
    """The reduction in other primitives, which can be transformed: one dimension at a time."""
    count = len(args) // 2
    arrays, starts = args[:count], args[count:]
    slides, closed = Window(**window), ClosedJaxpr(jaxpr, consts)
    shape = slides.count(shape_of(arrays[0]))
    results = [structural.broadcast_in_dim(start, shape, ()) for start in starts]
    if 0 in shape:
        return results

    def combine(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
        return elementwise(closed, [*first, *second])

    def along_all(combine: Combination, xs: list[Any]) -> list[Any]:
        # The last dimension first, to combine elements in order.
        for dimension in reversed(range(len(shape))):
            xs = _along(xs, combine, slides, dimension, shape[dimension])
        return xs

    aval = aval_of(arrays[0])
    monoid = monoid_of(closed, aval.dtype) if count == 1 else None
    if monoid is not None or not slides.has_gaps:
        fills = starts if monoid is None else [make_literal(monoid.neutral(aval.dtype), aval.dtype)]
        xs = [spread(x, fill, slides) for x, fill in zip(arrays, fills, strict=True)]
        return combine(results, along_all(combine, xs))
    there = spread(structural.full(aval.shape, True, BOOL), make_literal(False, BOOL), slides)
    xs = [spread(x, start, slides) for x, start in zip(arrays, starts, strict=True)]
    present, *xs = along_all(partial(_combine_present, combine), [there, *xs])
    return [
        select(present, new, old) for new, old in zip(combine(results, xs), results, strict=True)
    ]


def _combine_present(
    combine: Combination, first: Sequence[Any], second: Sequence[Any]
) -> list[Any]:
    """Elements combined where both are present, and otherwise the one that is.

    The first array of each sequence says where the elements of the others are present.
    """
    (there, *xs), (there_too, *ys) = first, second
    return [
        or_p.bind(there, there_too),
        *[
            select(there, select(there_too, both, x), y)
            for both, x, y in zip(combine(xs, ys), xs, ys, strict=True)
        ],
    ]


def _along(
    xs: list[Any], combine: Combination, window: Window, dimension: int, count: int
) -> list[Any]:
    """The elements of each window along one dimension, combined."""
    size, step = window.window_dimensions[dimension], window.window_strides[dimension]
    distance = window.window_dilation[dimension]
    length = (count - 1) * step + 1

    def part(arrays: Sequence[Any], start: int, stride: int = 1) -> list[Any]:
        return [
            slice_dimension(x, start * distance, start * distance + length, dimension, stride)
            for x in arrays
        ]

    doublings = size.bit_length() + size.bit_count() - 2
    if size - 1 <= step * doublings:
        results = part(xs, 0, step)
        for place in range(1, size):
            results = combine(results, part(xs, place, step))
        return results
    # Runs of 1, 2, 4, ... elements, from which the window is assembled.
    results, covered, run = [], 0, 1
    while True:
        if size & run:
            added = part(xs, covered)
            results = combine(results, added) if covered else added
            covered += run
        if covered == size:
            return [slice_dimension(x, 0, length, dimension, step) for x in results]
        have = shape_of(xs[0])[dimension] - run * distance
        first = [slice_dimension(x, 0, have, dimension) for x in xs]
        second = [slice_dimension(x, run * distance, have + run * distance, dimension) for x in xs]
        xs = combine(first, second)
        run *= 2


class WindowReduction(Primitive):
    """Combines the elements of each window.

    A member defines `kinds`, the supported dtype kinds; `numpy`, a universal function of two
    arguments; `operation`, its primitive; `identity`, the value of padding; and `combine`.
    """

    accepts_zeros = True
    kinds: ClassVar[str] = "iufc"
    numpy: ClassVar[Any]
    operation: ClassVar[Primitive]

    def identity(self, dtype: Any) -> Any:
        """The value of padding, and of holes between elements."""
        raise TypeError(f"{self.name} does not say what it starts with")

    def combine(self, context: Builder, x: Any, y: Any, scalar: ShapedArray) -> Any:
        """StableHLO that combines two scalars."""
        raise TypeError(f"{self.name} does not say how it combines two elements")

    def abstract(self, x: Any, **window: Any) -> Any:
        kind = dtypes.kind_of(x.dtype)
        if kind not in self.kinds or not kind:
            raise DTypeError(
                f"{self.name} does not accept dtype {dtype_name(x.dtype)}; it takes "
                f"{', '.join(KINDS[k] for k in self.kinds)}"
            )
        slides = Window(**window)
        slides.check(self.name, x.shape)
        return make_aval(slides.count(x.shape), x.dtype, x.weak_type)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return divided_alike(avals, results)

    def reference(self, x: Any, **window: Any) -> Any:
        x, slides = np.asarray(x), Window(**window)
        identity = self.identity(x.dtype)
        wide = np.float64 if dtypes.kind_of(x.dtype) == "f" else x.dtype
        result = np.full(slides.count(x.shape), identity).astype(wide)
        for elements in slides.views(x, identity):
            result = type(self).numpy(result, elements.astype(wide))
        return result.astype(x.dtype)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **window: Any
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        return self.bind(x, **Window(**window).inserted(d).params()), d

    def working_dtype(self, dtype: Any) -> Any:
        """The dtype in which elements are combined."""
        return dtype

    def lower(self, context: Builder, x: Any, **window: Any) -> Any:
        (aval,), (out,) = context.avals_in, context.avals_out
        wide = out.update(dtype=self.working_dtype(out.dtype))
        scalar = make_aval((), wide.dtype)
        (result,) = context.reduce_window(
            [context.convert(x, aval, aval.update(dtype=wide.dtype))],
            [context.constant(self.identity(wide.dtype), scalar)],
            [wide],
            lambda a, b: [self.combine(context, a, b, scalar)],
            **Window(**window).attributes(),
        )
        return context.convert(result, wide, out)


class ReduceWindowSum(WindowReduction, Linear):
    """The sum."""

    name, numpy, operation = "reduce_window_sum", np.add, add_p

    def identity(self, dtype: Any) -> Any:
        return np.asarray(0, dtype)[()]

    def combine(self, context: Builder, x: Any, y: Any, scalar: ShapedArray) -> Any:
        return context.add(x, y, scalar)

    def transpose(self, ct: Any, x: Any, **window: Any) -> Sequence[Any]:
        if not is_linear(x):
            return (None,)
        if not x.size or not aval_of(ct).size:
            return (structural.full(x.shape, 0, ct.dtype),)
        # Windows of the same shape over the cotangent: strides and dilation swap roles.
        slides = Window(**window)
        padding = []
        for i, (n, count) in enumerate(zip(x.shape, shape_of(ct), strict=True)):
            before_first = slides.extent(i) - 1 - slides.padding[i][0]
            needed = slides.extent(i) + (n - 1) * slides.base_dilation[i]
            spread_out = dilated_size(count, slides.window_strides[i])
            padding.append((before_first, needed - before_first - spread_out))
        backwards = Window(
            slides.window_dimensions,
            slides.base_dilation,
            tuple(padding),
            slides.window_strides,
            slides.window_dilation,
        )
        return (self.bind(ct, **backwards.params()),)

    def working_dtype(self, dtype: Any) -> Any:
        # Rounding every partial sum to 16 bits would lose precision.
        return FLOAT32 if dtypes.kind_of(dtype) == "f" and dtype.itemsize < 4 else dtype


class WindowExtreme(WindowReduction):
    """The largest or the smallest element; the first of equal ones gets the derivative."""

    kinds = "biufc"
    generates_nan = False
    direction: ClassVar[str]

    def combine(self, context: Builder, x: Any, y: Any, scalar: ShapedArray) -> Any:
        if dtypes.kind_of(scalar.dtype) == "c":
            return context.select(before(context, x, y, scalar, self.direction), x, y, scalar)
        return (context.max if self.direction == "GT" else context.min)(x, y, scalar)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **window: Any
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        out = self.bind(x, **window)
        if type(t) is Zero:
            return out, Zero.of(out)
        select_prim = ge_p if self.direction == "GT" else le_p
        return out, select_and_gather_add_p.bind(t, x, select_prim=select_prim, **window)


class ReduceWindowMax(WindowExtreme):
    """The largest element; NaN if there is one."""

    name, direction, numpy, operation = "reduce_window_max", "GT", np.maximum, max_p

    def identity(self, dtype: Any) -> Any:
        return lowest(dtype)


class ReduceWindowMin(WindowExtreme):
    """The smallest element; NaN if there is one."""

    name, direction, numpy, operation = "reduce_window_min", "LT", np.minimum, min_p

    def identity(self, dtype: Any) -> Any:
        return highest(dtype)


reduce_window_sum_p: Final = ReduceWindowSum()
reduce_window_max_p: Final = ReduceWindowMax()
reduce_window_min_p: Final = ReduceWindowMin()

_KNOWN: Final = (reduce_window_sum_p, reduce_window_max_p, reduce_window_min_p)


# Public functions


def _canonical(
    function: str,
    shape: Shape,
    window_dimensions: Any,
    window_strides: Any,
    padding: Any,
    base_dilation: Any,
    window_dilation: Any,
) -> Window:
    ones = (1,) * len(shape)

    def entries(values: Any, argument: str) -> Shape:
        return ones if values is None else integers(values, function, argument)

    window = Window(
        entries(window_dimensions, "window_dimensions"),
        entries(window_strides, "window_strides"),
        ((0, 0),) * len(shape),
        entries(base_dilation, "base_dilation"),
        entries(window_dilation, "window_dilation"),
    )
    window.check(f"lax.{function}", shape)
    pads = pads_of(
        padding,
        window.padded(shape),
        [window.extent(i) for i in range(len(shape))],
        window.window_strides,
        function,
    )
    return replace(window, padding=pads)


@overload
def reduce_window(
    operand: ArrayLike,
    init_value: ArrayLike,
    computation: Callable[[Any, Any], ArrayLike],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array: ...
@overload
def reduce_window(
    operand: T,
    init_value: PyTree,
    computation: Callable[[Any, Any], PyTree],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> T: ...
def reduce_window(
    operand: PyTree,
    init_value: PyTree,
    computation: Callable[[Any, Any], PyTree],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> PyTree:
    """Combine the elements of each window with a user-defined function.

    Sums and extremes (``lax.add`` from 0, ``lax.max`` and ``lax.min`` from the lowest and the
    highest value of the dtype) become dedicated primitives. The derivative of an extreme goes to
    the first of equal elements, or to the first NaN if there is one.

    Args:
        operand: an array, or a tree of arrays of one shape that are reduced together.
        init_value: a scalar, or a tree of scalars like `operand`. It has to be neutral for the
            function, as it may be combined with elements any number of times. Sums, products,
            ``max``, ``min`` and bitwise operations combine any other once with the elements of each
            window, and not with padding.
        computation: a function from two scalars (or two trees of them, like `operand`) to one. It
            has to be associative: the grouping of elements is not specified.
        window_dimensions: the number of elements in a window, for each dimension.
        window_strides: the distance between windows; 1 by default.
        padding: ``"VALID"``, ``"SAME"``, ``"SAME_LOWER"``, or for each dimension the amounts of
            padding before and after it; negative ones crop. ``"SAME"`` makes the result at stride 1
            as large as the operand.
        base_dilation: the distance between adjacent elements of the operand; 1 by default.
        window_dilation: the distance between adjacent elements of a window; 1 by default.

    Returns:
        An array with an element for each window, or a tree of them like `operand`. With base
        dilation ``d`` and window dilation ``e``, a dimension of size n has ``(low + (n - 1) * d + 1
        + high - (window - 1) * e - 1) // stride + 1`` windows.

    Raises:
        TypeError: dtypes or shapes are incompatible, `computation` does not return scalars
            of the dtypes of its arguments, or it uses traced values from outside; or the number of
            window dimensions, strides or dilations is not the rank of the operand, or one is not
            positive.
        ValueError: the trees have different structures, or `padding` is an unknown name or does
            not have a pair for each dimension.

    Differs:
        The derivative of an extreme goes to the first nan of a window that has one, as the
        result does, and never to padding. Windows that are dilated, and functions other than
        sums and extremes, have derivatives too. An initial value that is not neutral is combined
        once with a window of any size.

        >>> window = lax.reduce_window(jnp.ones(1000), 1.0, lax.add, (300,), padding=((299, 0),))
        >>> print(window[0], window[-1])
        2.0 301.0
        >>> x = jnp.array([1.0, jnp.nan, 2.0])
        >>> f = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (3,), (1,), "valid").sum()
        >>> print(dt.grad(f)(x))
        [0. 1. 0.]

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> x = np.array([1.0, 5, 2, 3], np.float32)
        >>> lax.reduce_window(x, -np.inf, lax.max, (2,), (2,)).tolist()
        [5.0, 3.0]
        >>> lax.reduce_window(x, 0.0, lax.add, (3,), padding="SAME").tolist()
        [6.0, 8.0, 10.0, 5.0]
    """
    leaves, tree = pytree.flatten(operand)
    starts, start_tree = pytree.flatten(init_value)
    if start_tree != tree or not leaves:
        raise ValueError(
            "lax.reduce_window: operand and init_value must be trees of one structure, got "
            f"{tree} and {start_tree}"
        )
    arrays = [as_operand(x, "lax.reduce_window", "operand") for x in leaves]
    starts = [as_operand(s, "lax.reduce_window", "init_value") for s in starts]
    avals = [make_aval((), aval_of(x).dtype) for x in arrays]
    shape = shape_of(arrays[0])
    params = _canonical(
        "reduce_window",
        shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
    ).params()
    closed = combination(computation, tree, avals, "reduce_window")
    monoid = known_monoid(closed, starts[0], avals[0].dtype) if len(arrays) == 1 else None
    for reduction in _KNOWN:
        if monoid is not None and monoid.operation is reduction.operation:
            return pytree.unflatten(tree, [reduction.bind(arrays[0], **params)])
    scalars = [
        starting_value(s, a.dtype, "reduce_window") for s, a in zip(starts, avals, strict=True)
    ]
    outs = reduce_window_p.bind(
        *arrays, *scalars, consts=tuple(closed.consts), jaxpr=closed.jaxpr, **params
    )
    return pytree.unflatten(tree, outs)


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Shape:
    """The shape of a reduction over windows.

    Args:
        operand_shape: the shape of the operand.
        window_dimensions: the number of elements in a window, for each dimension.
        window_strides: the distance between windows; 1 for None.
        padding: a name or pairs of integers, as for `reduce_window`.
        base_dilation: the distance between adjacent elements of the operand; 1 by default.
        window_dilation: the distance between adjacent elements of a window; 1 by default.

    Returns:
        The number of windows along each dimension.

    Raises:
        TypeError: the number of window dimensions, strides or dilations is not the rank, or one is
            not positive.
        ValueError: `padding` is an unknown name, or does not have a pair for each dimension.

    Example:
        >>> from dovetail import lax
        >>> lax.reduce_window_shape_tuple((4, 6), (2, 3), (1, 2), "SAME")
        (4, 3)
    """
    function = "reduce_window_shape_tuple"
    shape = canonical_shape(operand_shape, function, "operand_shape")
    window = _canonical(
        function,
        shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
    )
    return window.count(shape)
