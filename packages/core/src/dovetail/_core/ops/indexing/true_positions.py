"""The positions of true elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base.errors import DTypeError
from dovetail._core.basis import structural
from dovetail._core.basis.elementwise import convert_element_type, dtype_name
from dovetail._core.basis.families import NoGradient
from dovetail._core.ir.avals import make_aval, shape_of
from dovetail._core.ops.indexing.gather import GatherScatterMode
from dovetail._core.ops.indexing.scatter import (
    ScatterDimensionNumbers,
    bind_scatter,
    scatter_add_p,
)
from dovetail._core.ops.reduction.cumulative import cumsum
from dovetail._core.ops.shape.creation import position_dtype
from dovetail._core.trace.divisions import Labels

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class TruePositions(NoGradient):
    """The positions of the first `size` true elements of each row, in their order.

    Those that are missing are the number of elements of the row.
    """

    name = "true_positions"

    def abstract(self, flags: Any, *, size: int) -> Any:
        if flags.dtype != np.dtype(bool):
            raise DTypeError(f"true_positions takes bool, got dtype {dtype_name(flags.dtype)}")
        if not flags.ndim:
            raise ValueError("true_positions requires rows, got a scalar")
        if size < 0:
            raise ValueError(f"true_positions: size must not be negative, got {size}")
        return make_aval((*flags.shape[:-1], size), position_dtype(flags.shape[-1]))

    def labels(self, avals: Sequence[Any], results: Sequence[Any], *, size: int) -> Labels:
        rows = list(range(avals[0].ndim - 1))
        return Labels([[*rows, None]], [[*rows, None]], why="counts along")

    def reference(self, flags: Any, *, size: int) -> Any:
        count = flags.shape[-1]
        out = np.full((*flags.shape[:-1], size), count, position_dtype(count))
        for row in np.ndindex(flags.shape[:-1]):
            places = np.flatnonzero(flags[row])[:size]
            out[row][: len(places)] = places
        return out

    def batch(self, args: Sequence[Any], dims: Sequence[int | None], *, size: int) -> Any:
        (flags,), (dimension,) = args, dims
        assert dimension is not None
        return self.bind(structural.move_dimension(flags, dimension, 0), size=size), 0

    def lower(self, context: Builder, flags: Any, *, size: int) -> Any:
        (out,) = context.avals_out
        dtype = out.dtype

        def function(flags: Any) -> Any:
            *rows, count = shape_of(flags)
            last = len(rows)
            # The j-th one comes after all elements whose running count is at most j: count those.
            ends = cumsum(convert_element_type(flags, dtype), last)
            steps = bind_scatter(
                scatter_add_p,
                structural.full((*rows, size), 0, dtype),
                structural.reshape(ends, (*rows, count, 1)),
                structural.full((*rows, count), 1, dtype),
                ScatterDimensionNumbers(
                    update_window_dims=(),
                    inserted_window_dims=(last,),
                    scatter_dims_to_operand_dims=(last,),
                    operand_batching_dims=tuple(range(last)),
                    scatter_indices_batching_dims=tuple(range(last)),
                ),
                mode=GatherScatterMode.FILL_OR_DROP,
            )
            return cumsum(steps, last)

        (result,) = context.lower_function(function, context.avals_in)(flags)
        return result


true_positions_p: Final = TruePositions()


def true_positions(flags: Any, size: int) -> Any:
    """The positions of the first `size` true elements along the last dimension, in their order.

    Args:
        flags: array of booleans.
        size: how many.

    Returns:
        An integer array of the shape of `flags`, but for the last dimension. Positions that are
        missing are the number of elements.
    """
    return true_positions_p.bind(flags, size=size)
