"""Loops in lowering rules: a fixed number of steps, or until convergence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dovetail._core.basis.structural import broadcast_to
from dovetail._core.ir.avals import ShapedArray, make_aval, shape_of
from dovetail._core.ops.elementwise.comparison import eq
from dovetail._core.ops.elementwise.selection import select
from dovetail._core.ops.indexing.dynamic_slicing import (
    dynamic_slice_in_dim,
    dynamic_update_slice_in_dim,
)
from dovetail._core.ops.linalg.matrices import INT32

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

#: From arrays to an array or a sequence of arrays.
Function = Callable[..., Any]


def lower_loop(
    context: Builder,
    values: Sequence[Any],
    *,
    first: Function,
    step: Function,
    last: Function,
    count: int,
    avals: Sequence[ShapedArray] | None = None,
) -> list[Any]:
    """Emit the operations of a loop, from functions of arrays.

    Args:
        context: the builder.
        values: arguments of `first`.
        first: from the arguments to the loop's carry.
        step: from the number of a step, an int32 scalar, and the carry, to the new carry.
        last: from the carry to the results.
        count: the number of steps; none if an argument is empty.
        avals: of `values`; by default, those of the operands of the current equation.

    Returns:
        The results.
    """
    avals = context.avals_in if avals is None else avals
    start = context.lowering.trace(first, avals)
    carried = context.inline_jaxpr(start, values)
    if count and all(aval.size for aval in avals):
        position = make_aval((), INT32)
        body = context.lowering.trace(step, [position, *start.out_avals])
        end = context.constant(count, position)
        one = context.constant(1, position)

        def advance(number: Any, *before: Any) -> list[Any]:
            after = context.inline_jaxpr(body, [number, *before])
            return [context.add(number, one, position), *after]

        _, *carried = context.while_loop(
            [context.constant(0, position), *carried],
            [position, *start.out_avals],
            lambda number, *_: context.compare(number, end, "LT", position),
            advance,
        )
    return context.lower_function(last, start.out_avals)(*carried)


def lower_while(
    context: Builder,
    values: Sequence[Any],
    *,
    first: Function,
    proceed: Function,
    step: Function,
    last: Function,
) -> list[Any]:
    """Emit the operations of a loop, from functions of arrays.

    Args:
        context: the builder.
        values: operands of the current equation.
        first: from the operands to the loop's carry.
        proceed: from the carry to whether there is another step, a scalar.
        step: from the carry to the new carry.
        last: from the carry to the results.

    Returns:
        The results.
    """
    start = context.lowering.trace(first, context.avals_in)
    avals = start.out_avals
    carried = context.while_loop(
        context.inline_jaxpr(start, values),
        avals,
        context.lower_function(proceed, avals),
        context.lower_function(step, avals),
    )
    results: list[Any] = context.lower_function(last, avals)(*carried)
    return results


def element_at(x: Any, k: Any, dimension: int) -> Any:
    """Position `k` of a dimension, which is kept with size 1."""
    return dynamic_slice_in_dim(x, k, 1, dimension, allow_negative_indices=False)


def with_element(x: Any, value: Any, k: Any, dimension: int) -> Any:
    """`x` with position `k` of a dimension replaced by `value`, of size 1 there."""
    return dynamic_update_slice_in_dim(x, value, k, dimension, allow_negative_indices=False)


def exchanged(numbers: Any, x: Any, i: Any, j: Any, at_i: Any, at_j: Any) -> Any:
    """`x` with the elements at two positions of its last dimension replaced.

    Args:
        numbers: the positions, in the shape of `x`.
        x: vectors.
        i: a position, a scalar or of size 1 in the last dimension, like all the following.
        j: another position, or the same.
        at_i: the new element at `i`.
        at_j: the new element at `j`, unless it equals `i`.
    """
    shape = shape_of(x)
    return select(
        eq(numbers, i),
        broadcast_to(at_i, shape),
        select(eq(numbers, j), broadcast_to(at_j, shape), x),
    )
