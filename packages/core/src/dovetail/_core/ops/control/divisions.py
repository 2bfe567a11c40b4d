"""How the values of loops and branches are divided over the explicit axes of a mesh.

What a loop carries, and what several branches return, has one type. A value that is not divided
goes with one that is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dovetail._core.ir.jaxpr import ClosedJaxpr
from dovetail._core.trace.divisions import carried_divisions, merged, refuse_rows
from dovetail._core.transform.derived import divided

__all__ = ["branches_for", "scan_body_for", "while_jaxprs_for"]


def scan_body_for(
    name: str,
    body: ClosedJaxpr,
    consts: Sequence[Any],
    carry: Sequence[Any],
    xs: Sequence[Any],
) -> Mapping[str, Any]:
    """The parameter that changes where the operands of a scan are divided as these are.

    Args:
        name: the primitive's name, for messages.
        body: its body.
        consts: the avals of constants.
        carry: those of what is carried.
        xs: those of the arrays that are sliced.

    Raises:
        ShardingTypeError: an array is divided along its first dimension, or something that is
            carried in different ways.
    """
    for number, x in enumerate(xs, len(consts) + len(carry)):
        if x.division is not None and x.division.dims[0]:
            refuse_rows(name, [*consts, *carry, *xs], number)
    before = [a.division for a in consts]
    after = [None if x.division is None else x.division.without(0) for x in xs]
    carried = [a.division for a in carry]
    while True:
        typed = divided(body, [*before, *carried, *after])
        wider = carried_divisions(name, carry, carried, typed.out_avals[: len(carry)])
        if wider == carried:
            break
        carried = wider
    rest = [a.division for a in typed.out_avals[len(carry) :]]
    typed = divided(typed, [*before, *carried, *after], [*carried, *rest])
    return {} if typed is body else {"jaxpr": typed}


def while_jaxprs_for(
    name: str,
    condition: ClosedJaxpr,
    body: ClosedJaxpr,
    of_condition: Sequence[Any],
    of_body: Sequence[Any],
    carry: Sequence[Any],
) -> Mapping[str, Any]:
    """The parameters that change where the operands of a loop are divided as these are.

    Args:
        name: the primitive's name, for messages.
        condition: its condition.
        body: its body.
        of_condition: the avals of the constants of the condition.
        of_body: those of the constants of the body.
        carry: those of what is carried.

    Raises:
        ShardingTypeError: something that is carried is divided in different ways.
    """
    fixed = [a.division for a in of_body]
    carried = [a.division for a in carry]
    while True:
        typed = divided(body, [*fixed, *carried])
        wider = carried_divisions(name, carry, carried, typed.out_avals)
        if wider == carried:
            break
        carried = wider
    typed = divided(typed, [*fixed, *carried], carried)
    asked = divided(condition, [*[a.division for a in of_condition], *carried])
    if asked is condition and typed is body:
        return {}
    return {"cond_jaxpr": asked, "body_jaxpr": typed}


def branches_for(
    name: str, branches: tuple[ClosedJaxpr, ...], avals: Sequence[Any]
) -> Mapping[str, Any]:
    """The parameter that changes where the operands of branches are divided as these are.

    Args:
        name: the primitive's name, for messages.
        branches: the branches.
        avals: the avals of their operands.

    Raises:
        ShardingTypeError: they return values that are divided in different ways.
    """
    taken = [a.division for a in avals]
    alike = [divided(branch, taken) for branch in branches]
    given = [
        merged(name, f"result {number} of the branches", first, *[a.division for a in rest])
        for number, (first, *rest) in enumerate(zip(*(b.out_avals for b in alike), strict=True))
    ]
    alike = [divided(branch, taken, given) for branch in alike]
    if all(a is b for a, b in zip(alike, branches, strict=True)):
        return {}
    return {"branches": tuple(alike)}
