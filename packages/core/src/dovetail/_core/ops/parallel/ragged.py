"""An exchange of parts of different sizes between elements, or devices, along axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import DTypeError, ShapeError
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.structural import (
    broadcast_in_dim,
    instantiate_zeros,
    is_linear,
    move_dimension,
    reduce_sum,
    reshape,
)
from dovetail._core.ir.avals import aval_of, shape_of
from dovetail._core.ops.elementwise.arithmetic import add, mul, sub
from dovetail._core.ops.elementwise.bitwise import bitwise_and
from dovetail._core.ops.elementwise.comparison import ge, lt
from dovetail._core.ops.elementwise.selection import select
from dovetail._core.ops.indexing.gather import GatherDimensionNumbers, GatherScatterMode, gather
from dovetail._core.ops.parallel.collective import Collective, all_gather_p, rows
from dovetail._core.ops.parallel.exchanges import all_to_all_p
from dovetail._core.ops.reduction.reductions import reduce_max
from dovetail._core.ops.shape.creation import full, full_like, iota
from dovetail._core.ops.shape.joining import concatenate
from dovetail._core.trace.divisions import Labels
from dovetail._core.trace.state import state
from dovetail._core.trace.zeros import Zero
from dovetail._core.transform.batch import batch_flat

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class RaggedAllToAll(Collective):
    """Rows of an operand go to rows of the outputs of all members of a group.

    Operands, besides those: where the rows for each member begin, how many they are, where they
    begin in its output, and how many rows come from each member. There may be several updates for
    each member, side by side.

    It is linear in the operand and in the output, rows of which it replaces.
    """

    name = "ragged_all_to_all"

    def abstract(self, operand: Any, output: Any, *numbers: Any, **params: Any) -> Any:
        return output

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        rows = (None, *range(1, avals[0].ndim))
        numbers = [(None,) * a.ndim for a in avals[2:]]
        return Labels([rows, rows, *numbers], [rows], why="exchanges rows, or their numbers, along")

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        out = self.bind(*primals, **params)
        linear = tangents[:2]
        if all(type(t) is Zero for t in linear):
            return out, Zero.of(out)
        return out, self.bind(*map(instantiate_zeros, linear), *primals[2:], **params)

    def transpose(
        self,
        cotangent: Any,
        operand: Any,
        output: Any,
        starts: Any,
        sizes: Any,
        targets: Any,
        received: Any,
        **params: Any,
    ) -> Sequence[Any]:
        results: list[Any] = [None] * 6
        if is_linear(operand):
            # A row that went to several members gets the sum of their cotangents, so there is a
            # place for each update, as the rows of one array.
            count, size = shape_of(starts)[0], operand.shape[0]
            place = mul(iota(aval_of(starts).dtype, count), full_like(starts, size))
            parts = self.bind(
                cotangent,
                full((count * size, *operand.shape[1:]), 0, aval_of(cotangent).dtype),
                exchanged(targets, **params),
                received,
                exchanged(add(starts, place), **params),
                sizes,
                **params,
            )
            results[0] = reduce_sum(reshape(parts, (count, *operand.shape)), (0,))
        if is_linear(output):
            arrived = _Arrivals(starts, sizes, targets, operand.shape[0], output.shape[0], params)
            results[1] = arrived.chosen(full_like(cotangent, 0), cotangent)
        return results

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        axis = state.batch_axis
        assert axis is not None
        if axis.name not in params["axis_name"] and all(d is None for d in dims[2:]):
            # Rows are wider.
            operand, output = (
                broadcast_in_dim(x, (n, axis.size, *rest), (0, *range(2, len(rest) + 2)))
                if d is None
                else move_dimension(x, d, 1)
                for x, d in zip(args[:2], dims[:2], strict=True)
                for n, *rest in [shape_of(x)]
            )
            return self.bind(operand, output, *args[2:], **params), 1
        outs, out_dims = batch_flat(
            lambda *xs: [_portable(*xs, **params)], args, dims, axis.size, axis
        )
        return outs[0], out_dims[0]

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        # For backends without an operation for it, such as XLA:CPU.
        return context.lower_function(lambda *xs: _portable(*xs, **params), context.avals_in)(
            *values
        )


ragged_all_to_all_p: Final = RaggedAllToAll()


def _portable(
    operand: Any, output: Any, starts: Any, sizes: Any, targets: Any, received: Any, **params: Any
) -> Any:
    """The exchange by operations that every backend has: everybody gets all operands."""
    (rows_in, *rest), rows_out = shape_of(operand), shape_of(output)[0]
    if not rows_in or not rows_out:
        return output
    everyone = all_gather_p.bind(operand, all_gather_dimension=0, tiled=False, **params)
    arrived = _Arrivals(starts, sizes, targets, rows_in, rows_out, params)
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(1, len(rest) + 1)),
        collapsed_slice_dims=(0, 1),
        start_index_map=(0, 1),
    )
    where = concatenate([_column(arrived.member), _column(arrived.row)], 1)
    taken = gather(everyone, where, numbers, (1, 1, *rest), mode=GatherScatterMode.CLIP)
    return arrived.chosen(taken, output)


class _Arrivals:
    """What comes to each row of an output: of the last update if several write to it."""

    def __init__(
        self,
        starts: Any,
        sizes: Any,
        targets: Any,
        rows_in: int,
        rows_out: int,
        params: dict[str, Any],
    ) -> None:
        updates = exchanged(
            concatenate([_column(starts), _column(sizes), _column(targets)], 1), **params
        )
        count, dtype = shape_of(starts)[0], aval_of(starts).dtype
        position = iota(dtype, rows_out)
        grid = (count, rows_out)
        start, size, target = (
            broadcast_in_dim(_of_column(updates, number), grid, (0,)) for number in range(3)
        )
        offset = sub(broadcast_in_dim(position, grid, (1,)), target)
        row = add(start, offset)
        zero = full(grid, 0, dtype)
        written = bitwise_and(
            bitwise_and(ge(offset, zero), lt(offset, size)),
            bitwise_and(ge(row, zero), lt(row, full(grid, rows_in, dtype))),
        )
        number = broadcast_in_dim(iota(dtype, count), grid, (0,))
        chosen = reduce_max(select(written, number, full(grid, -1, dtype)), (0,))
        #: Whether a row comes from somebody.
        self.written = ge(chosen, full_like(chosen, 0))
        own = rows(updates, chosen)
        #: The row of the operand that comes.
        self.row = add(_of_column(own, 0), sub(position, _of_column(own, 2)))
        each = count // params["axis_size"]
        members = np.repeat(np.arange(params["axis_size"], dtype=dtype), each)
        #: The member of the group from which it comes.
        self.member = rows(members, chosen)

    def chosen(self, taken: Any, kept: Any) -> Any:
        """Some rows where they are written, and others elsewhere."""
        return select(broadcast_in_dim(self.written, shape_of(kept), (0,)), taken, kept)


def exchanged(numbers: Any, **params: Any) -> Any:
    """What each member has for the others, exchanged for what they have for it."""
    names = params.pop("axis_name")
    return all_to_all_p.bind(
        numbers,
        axis_name=names[0] if len(names) == 1 else names,
        concat_axis=0,
        split_axis=0,
        **params,
    )


def _column(x: Any) -> Any:
    return reshape(x, (*shape_of(x), 1))


def _of_column(x: Any, number: int) -> Any:
    return rows(move_dimension(x, 1, 0), np.int32(number))


def checked_operands(operand: Any, output: Any, numbers: dict[str, Any], count: int) -> list[Any]:
    """The operands, if they fit; numbers of rows in one dtype.

    Args:
        operand: has rows to send.
        output: has rows to replace.
        numbers: by the names of arguments, what says which rows go where.
        count: the number of members of a group.

    Raises:
        TypeError: numbers are no integers, or the dtypes of rows differ.
        ValueError: the shapes of rows differ, or there are numbers for too few or too many members.
    """
    taken, given = aval_of(operand), aval_of(output)
    if taken.dtype != given.dtype:
        raise DTypeError(
            f"lax.ragged_all_to_all: operand has the dtype {taken.dtype} and output {given.dtype}; "
            "rows of one replace rows of the other, so convert one of them"
        )
    if not taken.ndim or not given.ndim or taken.shape[1:] != given.shape[1:]:
        raise ShapeError(
            "lax.ragged_all_to_all: operand and output have rows along their first dimension, and "
            f"equal sizes in all others; got the shapes {taken.shape} and {given.shape}"
        )
    shapes = {name: shape_of(x) for name, x in numbers.items()}
    for name, shape in shapes.items():
        dtype = aval_of(numbers[name]).dtype
        if dtypes.is_extended(dtype) or not dtypes.issubdtype(dtype, np.integer):
            raise DTypeError(f"lax.ragged_all_to_all: {name} holds integers, got dtype {dtype}")
        if len(shape) != 1 or not shape[0] or shape[0] % count:
            raise ShapeError(
                f"lax.ragged_all_to_all: {name} has one number for each of the {count} elements "
                f"along the axis, or an equal number for each; got the shape {shape}"
            )
    if len(set(shapes.values())) > 1:
        described = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ShapeError(f"lax.ragged_all_to_all: these have to have one shape; got {described}")
    wide = any(aval_of(x).dtype.itemsize > 4 for x in numbers.values())
    dtype = np.dtype(np.int64 if wide else np.int32)
    return [
        operand,
        output,
        *[
            x if aval_of(x).dtype == dtype else convert_element_type(x, dtype)
            for x in numbers.values()
        ],
    ]
