"""Loops in lowering rules, for iterations that stop where they have converged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dovetail.core.hlo.builder import Builder

#: From arrays to an array or a sequence of arrays.
Function = Callable[..., Any]


def lower_while(
    context: Builder,
    values: Sequence[Any],
    *,
    first: Function,
    proceed: Function,
    step: Function,
    last: Function,
) -> list[Any]:
    """Create the operations of a loop, from functions of arrays.

    Args:
        context: the builder.
        values: operands of the present equation.
        first: from the operands to what the loop carries.
        proceed: from what is carried to whether there is another step, a scalar.
        step: from what is carried to what is carried.
        last: from what is carried to the results.

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
