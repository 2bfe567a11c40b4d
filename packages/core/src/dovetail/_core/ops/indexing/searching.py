"""Places of values in sorted rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import DTypeError
from dovetail._core.basis import structural
from dovetail._core.basis.elementwise import dtype_name
from dovetail._core.basis.families import NoGradient
from dovetail._core.basis.operands import make_literal
from dovetail._core.basis.structural import batch_size, to_front
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ir.dimensions import is_symbolic_dim
from dovetail._core.ops.elementwise.arithmetic import add, sub
from dovetail._core.ops.elementwise.bitwise import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    shift_left,
)
from dovetail._core.ops.elementwise.comparison import eq, le, lt, ne
from dovetail._core.ops.elementwise.complex import imag, real
from dovetail._core.ops.elementwise.extrema import min as minimum
from dovetail._core.ops.elementwise.selection import select_n
from dovetail._core.ops.indexing.gather import GatherScatterMode
from dovetail._core.ops.indexing.selection import elements_at
from dovetail._core.ops.shape.creation import position_dtype
from dovetail._core.trace.divisions import Labels

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


#: So many steps are written one after another. XLA would fuse more into one kernel, which it does
#: not vectorise.
UNROLLED: Final = 5
#: Steps for a size that is not known.
MOST: Final = 31


class SearchSorted(NoGradient):
    """The places of values in sorted rows: how many elements of the row come before each.

    The order is that of `sort`. Elements that equal the value come before its place if `side` is
    "right".
    """

    name = "searchsorted"

    def abstract(self, rows: Any, values: Any, *, side: str) -> Any:
        if rows.dtype != values.dtype or not dtypes.kind_of(rows.dtype):
            raise DTypeError(
                "searchsorted requires two operands of one dtype that has an order, got "
                f"{dtype_name(rows.dtype)} and {dtype_name(values.dtype)}"
            )
        if not rows.ndim or rows.ndim != values.ndim or rows.shape[:-1] != values.shape[:-1]:
            raise ValueError(
                "searchsorted requires sorted rows and as many rows of values, got shapes "
                f"{rows.shape} and {values.shape}"
            )
        if not rows.shape[-1]:
            raise ValueError("searchsorted requires rows with elements, got none")
        if side not in ("left", "right"):
            raise ValueError(f"searchsorted: side must be 'left' or 'right', got {side!r}")
        return make_aval(values.shape, position_dtype(rows.shape[-1]))

    def labels(self, avals: Sequence[Any], results: Sequence[Any], *, side: str) -> Labels:
        last = avals[0].ndim - 1
        whole, divided = [*range(last), None], [*range(last + 1)]
        return Labels([whole, divided], [divided], why="searches along")

    def reference(self, rows: Any, values: Any, *, side: Any) -> Any:
        kind = dtypes.kind_of(rows.dtype)
        wide = np.complex128 if kind == "c" else np.float64 if kind == "f" else rows.dtype
        rows, values = np.asarray(rows).astype(wide), np.asarray(values).astype(wide)
        out = np.empty(values.shape, position_dtype(rows.shape[-1]))
        for row in np.ndindex(rows.shape[:-1]):
            out[row] = np.searchsorted(rows[row], values[row], side)
        return out

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, side: str
    ) -> tuple[Any, Any]:
        rows, values = args
        size = batch_size(args, dims)
        shape = shape_of(rows)
        if dims[0] is None:
            assert dims[1] is not None
            # More values for the same rows.
            last = len(shape) - 1
            values = structural.move_dimension(values, dims[1], last)
            count = shape_of(values)[-1]
            values = structural.reshape(values, (*shape[:-1], size * count))
            out = self.bind(rows, values, side=side)
            return structural.reshape(out, (*shape[:-1], size, count)), last
        rows, values = (to_front(v, d, size) for v, d in zip(args, dims, strict=True))
        return self.bind(rows, values, side=side), 0

    def lower(self, context: Builder, rows: Any, values: Any, *, side: str) -> Any:
        (out,), size = context.avals_out, context.avals_in[0].shape[-1]
        scalar, avals = make_aval((), out.dtype), list(context.avals_in)

        def step(bit: Any, found: Any, rows: Any, values: Any) -> Any:
            count = make_literal(size, out.dtype)
            tried = add(found, shift_left(make_literal(1, out.dtype), bit))
            inside = le(tried, count)
            place = sub(minimum(tried, count), make_literal(1, out.dtype))
            element = elements_at(rows, place, GatherScatterMode.PROMISE_IN_BOUNDS)
            below = (
                precedes(element, values)
                if side == "left"
                else bitwise_not(precedes(values, element))
            )
            return select_n(bitwise_and(inside, below), found, tried)

        # The number of elements before each value is found bit by bit, the highest one first.
        emit = context.lower_function(step, [scalar, out, *avals])
        found = context.constant(0, out)
        steps = MOST if is_symbolic_dim(size) else size.bit_length()
        if steps <= UNROLLED:
            for bit in reversed(range(steps)):
                (found,) = emit(context.constant(bit, scalar), found, rows, values)
            return found
        one = context.constant(1, scalar)
        _, found, *_ = context.while_loop(
            [context.constant(steps, scalar), found, rows, values],
            [scalar, out, *avals],
            lambda left, *_: context.compare(left, context.constant(0, scalar), "GT", scalar),
            lambda left, found, *given: [
                (bit := context.sub(left, one, scalar)),
                *emit(bit, found, *given),
                *given,
            ],
        )
        return found


searchsorted_p: Final = SearchSorted()


def search_sorted(rows: Any, values: Any, side: str) -> Any:
    """The places of values in sorted rows.

    Args:
        rows: array that is sorted along its last dimension, which has elements.
        values: array of that dtype; all dimensions but the last are those of `rows`.
        side: "left" for the place before equal elements, "right" for that after them.

    Returns:
        An integer array of the shape of `values`.
    """
    return searchsorted_p.bind(rows, values, side=side)


def precedes(x: Any, y: Any) -> Any:
    """Whether numbers come before others in the order of `sort`: nan last, and real parts first."""
    kind = dtypes.kind_of(aval_of(x).dtype)
    if kind == "c":
        pairs = [(real(x), real(y)), (imag(x), imag(y))]
        # Compare by nan first: a number without nan comes before all numbers with one.
        keys = [*[(ne(a, a), ne(b, b)) for a, b in pairs], *pairs]
        less = precedes(*keys.pop())
        for a, b in reversed(keys):
            tied = bitwise_and(bitwise_not(precedes(b, a)), less)
            less = bitwise_or(precedes(a, b), tied)
        return less
    less = lt(x, y)
    if kind != "f":
        return less
    return bitwise_or(less, bitwise_and(eq(x, x), ne(y, y)))
