"""Which values the linear part of a loop needs, and how they get there."""

from __future__ import annotations

from typing import Any, NamedTuple

from dovetail._core.ir.jaxpr import ClosedJaxpr, Jaxpr, Literal, no_effects
from dovetail._core.ir.walk import dce
from dovetail._core.transform.derived import remembered


class ResidualPlan(NamedTuple):
    """How the residuals of a linearized body get to the linear loop.

    Attributes:
        body: the body, which also returns the residuals to stack.
        invariant: maps some operands to the loop-invariant residuals.
        needed: the indices of these operands.
        residuals: for each residual, its kind and its index within that kind: an "operand" of the
            loop, a "result" of it, "invariant", or "stacked".
    """

    body: ClosedJaxpr
    invariant: ClosedJaxpr
    needed: list[int]
    residuals: list[tuple[str, int]]


@remembered
def residual_plan(
    primal: ClosedJaxpr, forwarded: tuple[int | None, ...], num_consts: int, num_carry: int
) -> ResidualPlan:
    """Plan which residuals of a loop to save: none twice, and no loop-invariant ones.

    A stacked residual takes memory for every iteration, which is most of the memory of a gradient.
    So values that exist anyway are reused: operands (a constant whole, an array element by element)
    and results that the loop stacks. Values that depend on constants alone are computed once,
    outside the loop. Only the rest, values that an iteration computes from its carry, are stacked,
    each variable once.
    """
    jaxpr = primal.jaxpr
    many = len(jaxpr.outvars) - forwarded.count(None)
    numbers = {v: i for i, v in enumerate(jaxpr.invars)}
    first, second = num_consts, num_consts + num_carry
    constant: set[Any] = {*jaxpr.constvars, *jaxpr.invars[:first]}
    constant.update(
        v for v, out in zip(jaxpr.invars[first:second], jaxpr.outvars, strict=False) if v is out
    )
    shared = []
    for eqn in jaxpr.eqns:
        if not eqn.effects and all(type(v) is Literal or v in constant for v in eqn.invars):
            constant.update(eqn.outvars)
            shared.append(eqn)
    results = {
        v: i
        for i, v in enumerate(jaxpr.outvars[:many])
        if i >= num_carry and type(v) is not Literal
    }
    computed = iter(jaxpr.outvars[many:])
    invariants: list[Any] = []
    stacked: dict[Any, int] = {}
    sources: list[tuple[str, int]] = []
    for number in forwarded:
        v = next(computed) if number is None else jaxpr.invars[number]
        if type(v) is not Literal and v in numbers and (v in constant or numbers[v] >= second):
            sources.append(("operand", numbers[v]))
        elif type(v) is Literal or v in constant:
            sources.append(("invariant", len(invariants)))
            invariants.append(v)
        elif v in results:
            sources.append(("result", results[v]))
        else:
            sources.append(("stacked", stacked.setdefault(v, len(stacked))))
    body = jaxpr.replace(outvars=[*jaxpr.outvars[:many], *stacked])
    invariant, kept = dce(
        Jaxpr(jaxpr.constvars, jaxpr.invars, invariants, shared, no_effects, jaxpr.debug_info)
    )
    return ResidualPlan(
        ClosedJaxpr(body, primal.consts),
        ClosedJaxpr(invariant, primal.consts),
        [i for i, keep in enumerate(kept) if keep],
        sources,
    )
