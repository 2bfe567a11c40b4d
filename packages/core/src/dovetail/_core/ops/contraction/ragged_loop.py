"""The loop that a ragged contraction lowers to: tiles of rows meet their group's part."""

from __future__ import annotations

import dataclasses
from math import prod
from typing import Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.basis.elementwise import convert_element_type, mul
from dovetail._core.basis.operands import make_literal
from dovetail._core.basis.structural import broadcast_in_dim, full, reduce_sum, reshape, transpose
from dovetail._core.ir.avals import aval_of, shape_of
from dovetail._core.ops.contraction.dot_general import DimensionNumbers, Dims, free_dimensions
from dovetail._core.ops.contraction.ragged_dimensions import RaggedDotDimensionNumbers, RaggedMode
from dovetail._core.ops.elementwise.arithmetic import add_p, div_p, sub_p
from dovetail._core.ops.elementwise.bitwise import and_p, or_p
from dovetail._core.ops.elementwise.comparison import ge_p, le_p, lt_p
from dovetail._core.ops.elementwise.extrema import max_p, min_p
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.indexing.dynamic_slicing import (
    dynamic_slice_in_dim,
    dynamic_update_slice_in_dim,
)
from dovetail._core.ops.reduction.cumulative import cumsum_p
from dovetail._core.ops.shape.creation import iota_like
from dovetail._core.ops.shape.joining import concatenate_p
from dovetail._core.ops.shape.reshaping import squeeze_dimensions
from dovetail._core.ops.shape.slicing import slice_dimension

_INT32: Final = np.dtype(np.int32)
#: The approximate number of rows of the left operand per step. Fewer are dominated by the overhead
#: of the loop; more waste multiplications where groups are small.
_FEWEST_ROWS: Final = 8
_MOST_ROWS: Final = 128


@dataclasses.dataclass(frozen=True)
class TileLoop:
    """The layout of the operands while their tiles are multiplied, and which parts meet.

    Rows are positions of the ragged dimension. If indices of the prefix have their own groups, the
    rows are those of all these indices, one after another.

    Attributes:
        free: whether the ragged dimension is free, not contracting.
        dot: dimension numbers of the product of two tiles.
        x_dim: the row dimension of the left operand.
        y_dim: the same of the right one, or its group dimension if the ragged one is free.
        out_dim: the dimension of the result that tiles are written to.
        orders: how dimensions of the operands are permuted first; None if they are not.
        shapes: shapes of the operands afterwards.
        sizes: sizes of the batch dimensions, of the rest of the prefix, and of the groups; the
            first two are 1 if groups are shared.
        rows: the number of rows for each index of the prefix.
        tile: the number of rows multiplied at a time.
    """

    free: bool
    dot: DimensionNumbers
    x_dim: int
    y_dim: int
    out_dim: int
    orders: tuple[Dims, Dims] | None
    shapes: tuple[Dims, Dims]
    sizes: tuple[int, int, int]
    rows: int
    tile: int

    def arranged(self, x: Any, y: Any) -> tuple[Any, Any]:
        """The operands in the layout of the loop."""
        if self.orders is not None:
            x, y = transpose(x, self.orders[0]), transpose(y, self.orders[1])
        return reshape(x, self.shapes[0]), reshape(y, self.shapes[1])

    def out_shape(self, out: Dims) -> Dims:
        """The shape of the loop's result, for a contraction with result shape `out`."""
        if self.orders is None:
            return out
        batch, before, groups = self.sizes
        first = batch * before * self.rows if self.free else groups * batch
        return (first, self.shapes[0][1 if self.free else 2], self.shapes[1][2])

    def table(self, group_sizes: Any) -> tuple[Any, Any]:
        """A row for each group, and the number of tiles.

        A row has the first row of the group, one past its last row, the number of its first tile,
        and its place in the right operand or, if the ragged dimension is contracting, in the
        result.
        """
        shape, groups = self.sizes, self.sizes[2]
        limit = min(self.rows, int(np.iinfo(aval_of(group_sizes).dtype).max))
        dtype = aval_of(group_sizes).dtype
        inside = max_p.bind(
            min_p.bind(group_sizes, make_literal(limit, dtype)), make_literal(0, dtype)
        )
        wide = _INT32 if limit * groups < 2**31 else np.dtype(np.int64)
        ends = cumsum_p.bind(
            convert_element_type(inside, wide), axis=len(shape_of(inside)) - 1, reverse=False
        )
        ends = reshape(min_p.bind(ends, make_literal(self.rows, wide)), shape)
        ends = convert_element_type(ends, _INT32)
        before = slice_dimension(ends, 0, groups - 1, 2)
        starts = concatenate_p.bind(full((*shape[:2], 1), 0, _INT32), before, dimension=2)
        tiles = sub_p.bind(add_p.bind(ends, make_literal(self.tile - 1, _INT32)), starts)
        tiles = reshape(div_p.bind(tiles, make_literal(self.tile, _INT32)), (prod(shape),))
        last = cumsum_p.bind(tiles, axis=0, reverse=False)
        at = [iota_like(_INT32, shape, i) for i in range(3)]
        of_prefix = add_p.bind(mul(at[0], make_literal(shape[1], _INT32)), at[1])
        offset = mul(of_prefix, make_literal(self.rows, _INT32))
        columns = [
            add_p.bind(starts, offset),
            add_p.bind(ends, offset),
            reshape(sub_p.bind(last, tiles), shape),
            add_p.bind(mul(at[2], make_literal(shape[0], _INT32)), at[0]),
        ]
        table = concatenate_p.bind(*[reshape(c, (prod(shape), 1)) for c in columns], dimension=1)
        return table, reshape(slice_dimension(last, prod(shape) - 1, prod(shape), 0), ())

    def step(self, number: Any, result: Any, x: Any, y: Any, table: Any, dot: Any) -> Any:
        """The result after one more tile."""
        begun = le_p.bind(slice_dimension(table, 2, 3, 1), number)
        groups = reduce_sum(convert_element_type(begun, _INT32), (0, 1))
        row = _part(table, sub_p.bind(groups, make_literal(1, _INT32)), 1, 0)
        start, end, first, place = (
            reshape(slice_dimension(row, i, i + 1, 1), ()) for i in range(4)
        )
        passed = mul(sub_p.bind(number, first), make_literal(self.tile, _INT32))
        start = add_p.bind(start, passed)
        # The very last tile is moved back to where it fits.
        last = make_literal(shape_of(x)[self.x_dim] - self.tile, _INT32)
        at = min_p.bind(start, last)
        position = add_p.bind(iota_like(_INT32, (self.tile,), 0), at)
        inside = and_p.bind(ge_p.bind(position, start), lt_p.bind(position, end))
        left = _part(x, at, self.tile, self.x_dim)
        if self.free:
            right = squeeze_dimensions(_part(y, place, 1, self.y_dim), (self.y_dim,))
            product = dot(left, right)
            before = _part(result, at, self.tile, self.out_dim)
            new = _where(inside, self.out_dim, product, before)
            return _with_part(result, new, at, self.out_dim)
        right = _part(y, at, self.tile, self.y_dim)
        left, right = (
            _where(inside, dim, part, full(shape_of(part), 0, aval_of(part).dtype))
            for part, dim in ((left, self.x_dim), (right, self.y_dim))
        )
        product = dot(left, right)
        before = _part(result, place, 1, 0)
        join = or_p if dtypes.kind_of(aval_of(product).dtype) == "b" else add_p
        new = join.bind(before, reshape(product, shape_of(before)))
        return _with_part(result, new, place, 0)


def _part(x: Any, start: Any, size: int, dimension: int) -> Any:
    return dynamic_slice_in_dim(x, start, size, dimension, allow_negative_indices=False)


def _with_part(x: Any, part: Any, start: Any, dimension: int) -> Any:
    return dynamic_update_slice_in_dim(x, part, start, dimension, allow_negative_indices=False)


def _where(inside: Any, dimension: int, x: Any, y: Any) -> Any:
    """`x` at the positions of a dimension that are inside, `y` elsewhere."""
    return select_n_p.bind(broadcast_in_dim(inside, shape_of(x), (dimension,)), y, x)


def plan_loop(numbers: RaggedDotDimensionNumbers, x: Dims, y: Dims, sizes: Dims) -> TileLoop:
    """The plan for operands and group sizes of these shapes."""
    (xc, yc), (xb, yb) = numbers.dot_dimension_numbers
    free, groups = numbers.mode is RaggedMode.FREE, sizes[-1]
    x_free = free_dimensions(len(x), xc, xb)
    y_free = free_dimensions(len(y), (*yc, *numbers.rhs_group_dimensions), yb)
    rows = x[numbers.ragged]
    batch, before = (prod([x[d] for d in part]) for part in (xb, numbers.prefix[len(xb) :]))
    lines = prod([x[d] for d in (x_free if free else xc)])
    # The number of matrix rows in a tile of one row.
    height = max(lines // (rows if len(sizes) == 1 else before * rows), 1)
    segments = groups if len(sizes) == 1 else batch * before * groups
    total = rows if len(sizes) == 1 else batch * before * rows
    target_rows = min(max(-(-total * height // segments), _FEWEST_ROWS), _MOST_ROWS)
    tile = max(1, min(total, -(-target_rows // height)))
    if len(sizes) == 1:
        if free:
            y_dim, out_dim = numbers.rhs_group_dimensions[0], len(xb) + x_free.index(numbers.ragged)
        else:
            y_dim, out_dim = yc[xc.index(numbers.ragged)], 0
        return TileLoop(
            free,
            numbers.of_one_group(),
            numbers.ragged,
            y_dim,
            out_dim,
            None,
            (x, y),
            (1, 1, groups),
            rows,
            tile,
        )

    def merged(shape: Dims, *parts: Dims) -> Dims:
        return tuple([prod([shape[d] for d in part]) for part in parts])

    prefix = numbers.prefix
    if free:
        behind = tuple([d for d in x_free if d not in (*prefix, numbers.ragged)])
        x_parts = ((*prefix, numbers.ragged), behind, xc)
        y_parts = ((*numbers.rhs_group_dimensions, *yb), yc, y_free)
        dot: DimensionNumbers = (((2,), (0,)), ((), ()))
    else:
        inner = len(prefix) - len(xb) + 1
        x_parts = ((*prefix, numbers.ragged), xc[inner:], x_free)
        y_parts = ((*yb, *yc[:inner]), yc[inner:], y_free)
        dot = (((0, 1), (0, 1)), ((), ()))
    orders = (sum(x_parts, ()), sum(y_parts, ()))
    shapes = (merged(x, *x_parts), merged(y, *y_parts))
    return TileLoop(free, dot, 0, 0, 0, orders, shapes, (batch, before, groups), rows, tile)
