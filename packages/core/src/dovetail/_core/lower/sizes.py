"""The sizes of a program's arguments as values, and the checks that they fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dovetail._core.hlo.builder import Builder
from dovetail._core.hlo.mlir import Value
from dovetail._core.ir.avals import make_aval
from dovetail._core.ir.dimension_solving import Check, Solution, scope_of, sizes_of, solve
from dovetail._core.ir.dimensions import Scope, Size, of_variable

__all__ = ["check_sizes", "emit_sizes", "entry_variables"]


def entry_variables(avals: Sequence[Any]) -> tuple[str, ...]:
    """The dimension variables in the shapes of a program's arguments."""
    if scope_of(avals) is None:
        return ()
    names: set[str] = set()
    for aval in avals:
        if getattr(aval, "symbolic", False):
            names.update(*(n.variables() for n in aval.shape if type(n) is not int))
    return tuple(sorted(names))


def emit_sizes(
    builder: Builder, avals: Sequence[Any], values: Sequence[Value], names: Sequence[str]
) -> Mapping[str, Value]:
    """Emit the values of the dimension variables, and checks of the sizes of all arguments.

    Args:
        builder: the builder, at the beginning of the entry function.
        avals: avals of its arguments.
        values: its arguments.
        names: what the arguments are called in messages.
    """
    measures = Scope(least=0)
    measured: dict[str, Value] = {}
    shapes = []
    for number, (aval, value) in enumerate(zip(avals, values, strict=False)):
        shape: list[Size] = []
        for d, expected in enumerate(aval.shape):
            if type(expected) is int:
                shape.append(expected)
                continue
            name = f"s{number}_{d}"
            measured[name] = builder.size_along(value, d)
            shape.append(of_variable(name, measures))
        shapes.append(shape)
    solution = solve(sizes_of(avals, names, shapes))
    check_sizes(builder, solution, measured)
    return {n: builder.expression(size, measured) for n, size in solution.values.items()}


def check_sizes(builder: Builder, solution: Solution, variables: Mapping[str, Value]) -> None:
    """Emit the checks of a solution as assertions, which hold or fail when sizes become known."""
    aval = builder.size_aval
    for check in solution.checks:
        if check.holds():
            continue
        left, right = (builder.expression(n, variables) for n in (check.left, check.right))
        direction = "EQ" if check.relation == "==" else "GE"
        holds = builder.emit(
            "stablehlo.compare",
            [left, right],
            make_aval((), np.dtype(bool)),
            builder.comparison(direction, aval, False),
        )
        builder.custom_call(
            "shape_assertion",
            [holds, left, right],
            [],
            has_side_effect=True,
            api_version=2,
            backend_config="",
            attributes={"error_message": _with_places(solution, check)},
        )


def _with_places(solution: Solution, check: Check) -> str:
    return (
        "the shapes of the arguments do not fit those that the program was exported for: "
        f"{check.what} does not hold; the sizes to compare are {{0}} and {{1}}. The program takes "
        f"{solution.specifications}"
    )
