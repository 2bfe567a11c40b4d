"""Windows that select one of their elements: gathering there, and scattering there.

These are the derivatives of extremes over windows. Each window selects the first of its best
elements, or the first NaN if there is one, but never padding or the holes between elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.basis import structural
from dovetail._core.basis.elementwise import dtype_name
from dovetail._core.basis.operands import make_literal
from dovetail._core.basis.structural import batch_size, is_linear, to_front
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, Jaxpr
from dovetail._core.ops.elementwise.arithmetic import add_p
from dovetail._core.ops.elementwise.bitwise import and_p, not_p
from dovetail._core.ops.elementwise.comparison import eq_p, ge_p, le_p, ne_p
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.indexing.gather import GatherScatterMode
from dovetail._core.ops.indexing.scatter import ScatterDimensionNumbers, scatter_add_updates
from dovetail._core.ops.reduction.general_reduction import elementwise, evaluated
from dovetail._core.ops.reduction.reductions import KINDS, before, highest, lowest
from dovetail._core.ops.shape.creation import iota_like, position_dtype
from dovetail._core.ops.shape.slicing import pad_with, slice_dimension
from dovetail._core.ops.windows.window_geometry import Window, seen
from dovetail._core.trace.divisions import Labels, divided_alike
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero
from dovetail._core.transform.batch import batch_flat
from dovetail._core.transform.jvp import jvp_flat

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

FLOAT32: Final = np.dtype(np.float32)


def selected(
    x: Any, window: Window, stays: Callable[[Any, Any], Any]
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """For each window, the position of its selected element, from 1; 0 if it has no elements.

    Args:
        x: NumPy array.
        window: the window.
        stays: from arrays of elements selected so far, and of later ones, to whether the former
            stay.
    """
    x = np.asarray(x)
    positions = np.arange(1, x.size + 1).reshape(x.shape)
    count = window.count(x.shape)
    best, where = np.zeros(count, x.dtype), np.zeros(count, np.int64)
    for later, position in zip(window.views(x, 0), window.views(positions, 0), strict=True):
        taken = (position > 0) & ((where == 0) | ~np.asarray(stays(best, later), bool))
        best, where = np.where(taken, later, best), np.where(taken, position, where)
    return where


def _stays(direction: str) -> Callable[[Any, Any], Any]:
    """`stays` of `selected`, for an extreme."""

    def stays(best: Any, later: Any) -> Any:
        sides = [(best, later)]
        if dtypes.kind_of(best.dtype) == "c":
            sides = [(best.real, later.real), (best.imag, later.imag)]
        result: Any = True
        for a, b in reversed(sides):
            result = np.where(a == b, result, a > b if direction == "GT" else a < b)
        return result | np.isnan(best) if dtypes.kind_of(best.dtype) in "fc" else result

    return stays


class Selecting(Primitive):
    """Linear in the first operand; the second only determines the selection."""

    accepts_zeros = True

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return divided_alike(avals, results)

    def check(self, operand: Any, select_prim: Primitive) -> None:
        """Raise for dtypes without an order."""
        if select_prim not in (ge_p, le_p):
            raise TypeError(f"{self.name}: select_prim must be ge or le, got {select_prim}")
        if not dtypes.kind_of(operand.dtype):
            raise TypeError(
                f"{self.name} cannot order values of dtype {dtype_name(operand.dtype)}; it takes "
                f"{', '.join(KINDS.values())}"
            )

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        out = self.bind(*primals, **params)
        t = tangents[0]
        return out, Zero.of(out) if type(t) is Zero else self.bind(t, primals[1], **params)


def direction_of(select_prim: Primitive) -> str:
    """The strict counterpart of ``ge`` or ``le``."""
    return "GT" if select_prim is ge_p else "LT"


class SelectAndGatherAdd(Selecting):
    """The elements of the first operand at the positions that windows over the second select.

    Zero if a window has no elements.
    """

    name = "select_and_gather_add"
    generates_nan = False

    def abstract(
        self, tangents: Any, operand: Any, *, select_prim: Primitive, **window: Any
    ) -> Any:
        self.check(operand, select_prim)
        if tangents.shape != operand.shape:
            raise TypeError(
                f"{self.name} requires operands of one shape, got {tangents.shape} and "
                f"{operand.shape}"
            )
        slides = Window(**window)
        slides.check(self.name, operand.shape)
        return make_aval(slides.count(operand.shape), tangents.dtype)

    def reference(
        self, tangents: Any, operand: Any, *, select_prim: Primitive, **window: Any
    ) -> Any:
        chosen = selected(operand, Window(**window), _stays(direction_of(select_prim)))
        tangents = np.asarray(tangents)
        return np.concatenate([np.zeros(1, tangents.dtype), tangents.reshape(-1)])[chosen]

    def transpose(
        self, ct: Any, tangents: Any, operand: Any, *, select_prim: Primitive, **window: Any
    ) -> Sequence[Any]:
        if not is_linear(tangents):
            return None, None
        slides = Window(**window)
        if not slides.is_dilated and ct.dtype == aval_of(operand).dtype:
            return (
                select_and_scatter_add_p.bind(
                    ct, operand, select_prim=select_prim, **slides.steps()
                ),
                None,
            )
        # Positions from 1; values that go to position 0 belong to no element.
        shape = shape_of(operand)
        size = prod(shape)
        dtype = position_dtype(size + 1)
        positions = add_p.bind(iota_like(dtype, (size,), 0), make_literal(1, dtype))
        positions = structural.reshape(positions, shape)
        chosen = self.bind(positions, operand, select_prim=select_prim, **window)
        summed = scatter_add_updates(
            structural.full((size + 1,), 0, ct.dtype),
            structural.reshape(chosen, (*shape_of(chosen), 1)),
            ct,
            ScatterDimensionNumbers((), (0,), (0,)),
            indices_are_sorted=False,
            unique_indices=False,
            mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        )
        return structural.reshape(slice_dimension(summed, 1, size + 1, 0), shape), None

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        select_prim: Primitive,
        **window: Any,
    ) -> tuple[Any, Any]:
        size = batch_size(args, dims)
        tangents, operand = (to_front(x, d, size) for x, d in zip(args, dims, strict=True))
        wider = Window(**window).inserted(0)
        return self.bind(tangents, operand, select_prim=select_prim, **wider.params()), 0

    def lower(
        self,
        context: Builder,
        tangents: Any,
        operand: Any,
        *,
        select_prim: Primitive,
        **window: Any,
    ) -> Any:
        # Positions are carried along: elements may be combined in any order, and the initial value
        # has a position after all of them.
        (given, aval), (out,) = context.avals_in, context.avals_out
        dtype = position_dtype(aval.size)
        index, truth = make_aval((), dtype), make_aval((), np.dtype(bool))
        scalar, value = make_aval((), aval.dtype), make_aval((), given.dtype)
        positions = context.reshape(
            context.iota(make_aval((aval.size,), dtype), 0), aval.update(dtype=dtype)
        )
        direction = direction_of(select_prim)

        def body(x: Any, t: Any, i: Any, y: Any, s: Any, j: Any) -> list[Any]:
            first = before(context, x, y, scalar, direction)
            reverse = before(context, y, x, scalar, direction)
            tied = context.compare(first, reverse, "EQ", truth)
            earlier = context.compare(i, j, "LT", index)
            chosen = context.select(tied, earlier, first, truth)
            return [
                context.select(chosen, a, b, kind)
                for a, b, kind in ((x, y, scalar), (t, s, value), (i, j, index))
            ]

        worst = lowest(aval.dtype) if direction == "GT" else highest(aval.dtype)
        return context.reduce_window(
            [operand, tangents, positions],
            [
                context.constant(worst, scalar),
                context.constant(0, value),
                context.constant(np.iinfo(dtype).max, index),
            ],
            [out.update(dtype=aval.dtype), out, out.update(dtype=dtype)],
            body,
            **Window(**window).attributes(),
        )[1]


class SelectAndScatterAdd(Selecting):
    """Elements of the first operand, one for each window over the second, added up at the selected
    positions."""

    name = "select_and_scatter_add"

    def abstract(self, source: Any, operand: Any, *, select_prim: Primitive, **steps: Any) -> Any:
        self.check(operand, select_prim)
        return _scattered_aval(self.name, operand, source, steps)

    def reference(self, source: Any, operand: Any, *, select_prim: Primitive, **steps: Any) -> Any:
        chosen = selected(operand, _window(steps), _stays(direction_of(select_prim)))
        source = np.asarray(source)
        wide = np.float64 if dtypes.kind_of(source.dtype) == "f" else source.dtype
        summed = np.zeros(np.size(operand) + 1, wide)
        np.add.at(summed, chosen, source.astype(wide))
        return summed[1:].reshape(np.shape(operand)).astype(source.dtype)

    def transpose(
        self, ct: Any, source: Any, operand: Any, *, select_prim: Primitive, **steps: Any
    ) -> Sequence[Any]:
        if not is_linear(source):
            return None, None
        window = _window(steps).params()
        return select_and_gather_add_p.bind(ct, operand, select_prim=select_prim, **window), None

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        select_prim: Primitive,
        **steps: Any,
    ) -> tuple[Any, Any]:
        size = batch_size(args, dims)
        source, operand = (to_front(x, d, size) for x, d in zip(args, dims, strict=True))
        wider = _window(steps).inserted(0).steps()
        return self.bind(source, operand, select_prim=select_prim, **wider), 0

    def lower(
        self, context: Builder, source: Any, operand: Any, *, select_prim: Primitive, **steps: Any
    ) -> Any:
        (_, aval), (out,) = context.avals_in, context.avals_out
        wide = out
        if dtypes.kind_of(out.dtype) == "f" and out.dtype.itemsize < 4:
            # Many windows may select one element; 16 bits would lose precision.
            wide = out.update(dtype=FLOAT32)
        scalar = make_aval((), wide.dtype)
        direction = direction_of(select_prim)

        def stays(x: Any, y: Any) -> Any:
            truth = make_aval((), np.dtype(bool))
            first = before(context, x, y, scalar, direction)
            return context.or_(first, context.compare(x, y, "EQ", scalar), truth)

        result = _emit_scatter(
            context,
            context.convert(operand, aval, wide),
            context.convert(
                source, context.avals_in[0], context.avals_in[0].update(dtype=wide.dtype)
            ),
            context.constant(0, scalar),
            wide,
            stays,
            lambda x, y: context.add(x, y, scalar),
            steps,
        )
        return context.convert(result, wide, out)


select_and_gather_add_p: Final = SelectAndGatherAdd()
select_and_scatter_add_p: Final = SelectAndScatterAdd()


class SelectAndScatter(Primitive):
    """The same with functions: one decides whether the first of two elements stays selected, the
    other combines values for the same element, starting from `init_value`."""

    name = "select_and_scatter"
    accepts_zeros = True

    def abstract(
        self,
        operand: Any,
        source: Any,
        init_value: Any,
        *,
        scatter_consts: tuple[Any, ...],
        scatter_jaxpr: Jaxpr,
        select_consts: tuple[Any, ...],
        select_jaxpr: Jaxpr,
        **steps: Any,
    ) -> Any:
        if init_value.ndim or init_value.dtype != operand.dtype:
            raise TypeError(
                f"{self.name}: init_value must be a scalar of dtype {dtype_name(operand.dtype)}, "
                f"got {init_value.short_name()}"
            )
        return _scattered_aval(self.name, operand, source, steps)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return divided_alike(avals, results)

    def reference(
        self,
        operand: Any,
        source: Any,
        init_value: Any,
        *,
        scatter_consts: tuple[Any, ...],
        scatter_jaxpr: Jaxpr,
        select_consts: tuple[Any, ...],
        select_jaxpr: Jaxpr,
        **steps: Any,
    ) -> Any:
        select = ClosedJaxpr(select_jaxpr, select_consts)
        scatter = ClosedJaxpr(scatter_jaxpr, scatter_consts)
        chosen = selected(operand, _window(steps), lambda x, y: evaluated(select, [x, y])[0])
        out = np.full(np.size(operand) + 1, init_value)
        for place, value in zip(chosen.reshape(-1), np.asarray(source).reshape(-1), strict=True):
            out[place] = evaluated(scatter, [out[place], value])[0]
        return out[1:].reshape(np.shape(operand))

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        if all(type(t) is Zero for t in tangents):
            out = self.bind(*primals, **params)
            return out, Zero.of(out)
        (out,), (tangent,) = jvp_flat(
            lambda *args: [_by_places(*args, **params)], primals, tangents
        )
        return out, tangent

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        size = batch_size(args, dims)
        if dims[2] is not None:
            (out,), (dim,) = batch_flat(lambda *a: [_by_places(*a, **params)], args, dims, size)
            return out, dim
        operand, source = (to_front(x, d, size) for x, d in zip(args[:2], dims[:2], strict=True))
        wider = params | _window(params).inserted(0).steps()
        return self.bind(operand, source, args[2], **wider), 0

    def lower(
        self,
        context: Builder,
        operand: Any,
        source: Any,
        init_value: Any,
        *,
        scatter_consts: tuple[Any, ...],
        scatter_jaxpr: Jaxpr,
        select_consts: tuple[Any, ...],
        select_jaxpr: Jaxpr,
        **steps: Any,
    ) -> Any:
        select = ClosedJaxpr(select_jaxpr, select_consts)
        scatter = ClosedJaxpr(scatter_jaxpr, scatter_consts)
        return _emit_scatter(
            context,
            operand,
            source,
            init_value,
            context.avals_out[0],
            lambda x, y: context.inline_jaxpr(select, [x, y]),
            lambda x, y: context.inline_jaxpr(scatter, [x, y]),
            steps,
        )


select_and_scatter_p: Final = SelectAndScatter()


def _window(params: Any) -> Window:
    """The window of a primitive that does not support dilation."""
    return Window.undilated(
        params["window_dimensions"], params["window_strides"], params["padding"]
    )


def _scattered_aval(name: str, operand: Any, source: Any, steps: Any) -> Any:
    window = _window(steps)
    window.check(name, operand.shape)
    count = window.count(operand.shape)
    if source.shape != count:
        raise TypeError(
            f"{name}: source must have an element for each window, the shape {count}, got "
            f"{source.shape}"
        )
    if source.dtype != operand.dtype:
        raise TypeError(
            f"{name} requires source and operand of one dtype, got {dtype_name(source.dtype)} and "
            f"{dtype_name(operand.dtype)}"
        )
    return operand.strengthen()


def _emit_scatter(
    context: Builder,
    operand: Any,
    source: Any,
    init_value: Any,
    out: Any,
    stays: Callable[[Any, Any], Any],
    combine: Callable[[Any, Any], Any],
    steps: Any,
) -> Any:
    if not out.ndim:  # these crash XLA's compiler
        return combine(init_value, source)
    scalar = make_aval((), out.dtype)
    return context.ops(
        "stablehlo.select_and_scatter",
        [operand, source, init_value],
        [out],
        {
            "window_dimensions": context.i64_array(steps["window_dimensions"]),
            "window_strides": context.i64_array(steps["window_strides"]),
            "padding": context.i64_elements(np.reshape(steps["padding"], (-1, 2))),
        },
        [([scalar, scalar], stays), ([scalar, scalar], combine)],
    )[0]


def _by_places(
    operand: Any,
    source: Any,
    init_value: Any,
    *,
    scatter_consts: tuple[Any, ...],
    scatter_jaxpr: Jaxpr,
    select_consts: tuple[Any, ...],
    select_jaxpr: Jaxpr,
    **steps: Any,
) -> Any:
    """`select_and_scatter` in other primitives, which can be transformed: position by position."""
    window, shape = _window(steps), shape_of(operand)
    out = structural.broadcast_in_dim(init_value, shape, ())
    if not aval_of(source).size:
        return out
    select = ClosedJaxpr(select_jaxpr, select_consts)
    scatter = ClosedJaxpr(scatter_jaxpr, scatter_consts)
    size = prod(shape)
    dtype = position_dtype(size)
    none = make_literal(-1, dtype)
    positions = structural.reshape(iota_like(dtype, (size,), 0), shape)
    places = list(seen(positions, none, window))
    best = chosen = None
    for later, position in zip(
        seen(operand, make_literal(0, aval_of(operand).dtype), window), places, strict=True
    ):
        if best is None:
            best, chosen = later, position
            continue
        (stays,) = elementwise(select, [best, later])
        stays = and_p.bind(stays, ne_p.bind(chosen, none))
        taken = and_p.bind(not_p.bind(stays), ne_p.bind(position, none))
        best, chosen = select_n_p.bind(taken, best, later), select_n_p.bind(taken, chosen, position)
    for place, position in zip(window.places(), places, strict=True):
        hit = and_p.bind(eq_p.bind(chosen, position), ne_p.bind(chosen, none))
        config = []
        for k, n, count, step, (low, _) in zip(
            place, shape, shape_of(source), window.window_strides, window.padding, strict=True
        ):
            last = k - low + (count - 1) * step
            config.append((k - low, n - 1 - last, step - 1))
        hit = pad_with(hit, make_literal(False, np.dtype(bool)), tuple(config))
        value = pad_with(source, make_literal(0, aval_of(source).dtype), tuple(config))
        out = select_n_p.bind(hit, out, *elementwise(scatter, [out, value]))
    return out
