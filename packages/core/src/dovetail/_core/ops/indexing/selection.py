"""Elements at positions of the sorted order, which need not be sorted as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import DTypeError
from dovetail._core.basis import structural
from dovetail._core.basis.elementwise import dtype_name
from dovetail._core.basis.structural import batch_size, to_front
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ops.indexing.gather import (
    GatherDimensionNumbers,
    GatherScatterMode,
    gather_slices,
)
from dovetail._core.ops.indexing.sorting import INT32, sort_p
from dovetail._core.ops.shape.creation import iota_like, position_dtype
from dovetail._core.trace.divisions import Labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class OrderStatistics(Primitive):
    """The elements at some positions of the sorted order of the last dimension.

    The order is that of `sort`. Positions are int32: a vector for all rows, or one for each row.
    Those out of bounds are clipped.
    """

    name = "order_statistics"
    accepts_zeros = True
    generates_nan = False

    def abstract(self, x: Any, positions: Any) -> Any:
        if dtypes.kind_of(x.dtype) in ("", "c"):
            raise DTypeError(
                f"order_statistics does not accept dtype {dtype_name(x.dtype)}; it takes bool, "
                "integers and floating point"
            )
        if positions.dtype != INT32:
            raise DTypeError(
                "order_statistics: positions must be int32, got dtype "
                f"{dtype_name(positions.dtype)}"
            )
        if not x.ndim or not positions.ndim or not x.shape[-1]:
            raise ValueError(
                "order_statistics requires rows with elements, and vectors of positions, got "
                f"shapes {x.shape} and {positions.shape}"
            )
        if positions.ndim > 1 and positions.shape[:-1] != x.shape[:-1]:
            raise ValueError(
                "order_statistics: positions must be a vector, or one for each row of the operand "
                f"of shape {x.shape}, got shape {positions.shape}"
            )
        return make_aval((*x.shape[:-1], positions.shape[-1]), x.dtype, x.weak_type)

    def labels(self, avals: Sequence[Any], results: Sequence[Any]) -> Labels:
        rows = list(range(avals[0].ndim - 1))
        places = [*rows, None] if avals[1].ndim > 1 else [None]
        return Labels([[*rows, None], places], [[*rows, None]], why="sorts along")

    def reference(self, x: Any, positions: Any) -> Any:
        (ordered,) = sort_p.reference(x, dimension=np.ndim(x) - 1, is_stable=True, num_keys=1)
        places = np.clip(positions, 0, ordered.shape[-1] - 1)
        shape = (*ordered.shape[:-1], places.shape[-1])
        return np.take_along_axis(ordered, np.broadcast_to(places, shape), -1)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        x, positions = primals
        t = tangents[0]
        if type(t) is Zero:
            out = self.bind(x, positions)
            return out, Zero.of(out)
        shape = shape_of(x)
        numbers = iota_like(position_dtype(shape[-1]), shape, len(shape) - 1)
        ordered, order = sort_p.bind(
            x, numbers, dimension=len(shape) - 1, is_stable=True, num_keys=1
        )
        places = elements_at(order, positions)
        return elements_at(ordered, positions), elements_at(t, places)

    def batch(self, args: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, Any]:
        x, positions = args
        size = batch_size(args, dims)
        if dims[1] is None and len(shape_of(positions)) == 1:
            return self.bind(to_front(x, dims[0], size), positions), 0
        if dims[0] is None and len(shape_of(positions)) == 2:
            places = to_front(positions, dims[1], size)
            count = shape_of(places)[-1]
            out = self.bind(x, structural.reshape(places, (size * count,)))
            rows = shape_of(x)[:-1]
            return structural.reshape(out, (*rows, size, count)), len(rows)
        x, positions = (to_front(v, d, size) for v, d in zip(args, dims, strict=True))
        shape = shape_of(positions)
        if len(shape) == 2:
            rows = (*shape_of(x)[:-1], shape[-1])
            positions = structural.broadcast_in_dim(positions, rows, (0, len(rows) - 1))
        return self.bind(x, positions), 0

    def lower(self, context: Builder, x: Any, positions: Any) -> Any:
        def function(x: Any, positions: Any) -> Any:
            dimension = len(shape_of(x)) - 1
            (ordered,) = sort_p.bind(x, dimension=dimension, is_stable=True, num_keys=1)
            return elements_at(ordered, positions)

        (result,) = context.lower_function(function, context.avals_in)(x, positions)
        return result


order_statistics_p: Final = OrderStatistics()


def order_statistics(x: Any, positions: Any) -> Any:
    """The elements at positions of the sorted order of the last dimension.

    Args:
        x: array of a dtype that has an order, with elements along the last dimension.
        positions: int32: a vector for all rows, or one for each row. Those out of bounds are
            clipped.

    Returns:
        An array of the shape of `x`, but for the last dimension, which is that of `positions`.
    """
    return order_statistics_p.bind(x, positions)


def elements_at(x: Any, positions: Any, mode: GatherScatterMode = GatherScatterMode.CLIP) -> Any:
    """Elements along the last dimension.

    Args:
        x: array, with elements along the last dimension.
        positions: a vector of integers for all rows, or one for each row.
        mode: what to return for positions out of bounds.
    """
    shape, places = shape_of(x), shape_of(positions)
    last = len(shape) - 1
    common = len(places) == 1
    if not aval_of(x).size:
        return structural.full((*shape[:-1], places[-1]), 0, aval_of(x).dtype)
    rows = tuple(range(last))
    paired = () if common else rows
    numbers = GatherDimensionNumbers(
        offset_dims=rows if common else (),
        collapsed_slice_dims=(last,),
        start_index_map=(last,),
        operand_batching_dims=paired,
        start_indices_batching_dims=paired,
    )
    sizes = (*shape[:-1], 1) if common else (1,) * len(shape)
    vectors = structural.reshape(positions, (*places, 1))
    return gather_slices(x, vectors, numbers, sizes, mode=mode)
