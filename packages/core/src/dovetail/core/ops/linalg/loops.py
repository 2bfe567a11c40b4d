"""Loops in lowering rules, for algorithms that go through a matrix step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dovetail.core.ir.avals import make_aval
from dovetail.core.ops.dynamic_slicing import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from dovetail.core.ops.linalg.matrices import INT32

if TYPE_CHECKING:
    from dovetail.core.hlo.builder import Builder

#: From arrays to an array or a tuple of arrays.
Function = Callable[..., Any]


def lower_loop(
    context: Builder,
    values: Sequence[Any],
    *,
    first: Function,
    step: Function,
    last: Function,
    count: int,
) -> list[Any]:
    """Create the operations of a loop, from functions of arrays.

    Args:
        context: the builder.
        values: operands of the present equation.
        first: from the operands to what the loop carries.
        step: from the number of a step, an int32 scalar, and what is carried, to what is carried.
        last: from what is carried to the results.
        count: how many steps there are; none where an operand is empty.

    Returns:
        The results.
    """
    start = context.lowering.trace(first, context.avals_in)
    carried = context.inline_jaxpr(start, values)
    if count and all(aval.size for aval in context.avals_in):
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
    return context.lower_function(last, start.out_avals)(*carried)  # type: ignore[no-any-return]


def element_at(x: Any, k: Any, dimension: int) -> Any:
    """Position `k` of a dimension, which is kept."""
    return dynamic_slice_in_dim(x, k, 1, dimension, allow_negative_indices=False)


def with_element(x: Any, value: Any, k: Any, dimension: int) -> Any:
    """`x` with position `k` of a dimension replaced by `value`, which has size one there."""
    return dynamic_update_slice_in_dim(x, value, k, dimension, allow_negative_indices=False)
