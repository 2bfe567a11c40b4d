"""Splits the work of a checkpointed function: what to save, what to recompute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dovetail._core.ir.jaxpr import (
    ClosedJaxpr,
    DebugInfo,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    no_effects,
)
from dovetail._core.ir.walk import (
    all_equations,
    dce,
    inline_calls,
    is_call,
    jaxprs_in_params,
    rename,
)
from dovetail._core.ops.checkpoint.naming import name_p
from dovetail._core.ops.checkpoint.policies import AnythingExcept, Policy, answer_of
from dovetail._core.ops.control.branches import cond_p, pad_residuals, shared_slots
from dovetail._core.ops.control.scan import ScanParams, scan_p


class ResidualSplit(NamedTuple):
    """How residuals are computed.

    Attributes:
        saved: the saved values, with the answers of the policy.
        again: the equations that recompute the residuals from arguments and saved values.
        eqns: all equations; loops among them return further results, which are saved.
    """

    saved: dict[Var, Any]
    again: list[JaxprEqn]
    eqns: list[JaxprEqn]


def with_calls_written_out(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Inline calls, and first computations of checkpointed functions, in a jaxpr.

    So a policy is asked about all operations, wherever they are.
    """
    return inline_calls(closed, is_call=_is_first_call)


def _is_first_call(eqn: JaxprEqn) -> bool:
    return is_call(eqn) or eqn.params.get("differentiated") is False


def split_residuals(jaxpr: Jaxpr, residuals: Sequence[Any], policy: Policy | None) -> ResidualSplit:
    """Split the computation of residuals into values to save and equations to repeat.

    Equations are visited from last to first, so the needed values are known when an equation is
    reached. If none of its results is needed, it runs only once, in the first computation, and the
    policy is not asked. If the policy saves its results, its operands are not needed. Otherwise it
    is repeated, and its operands become needed. So the repeated equations are the fewest that lead
    from saved values and arguments to the residuals. Loops and branches are split inside by the
    same rule before they are repeated as a whole.

    Args:
        jaxpr: computes the residuals, among others, from arguments.
        residuals: some of its variables, and literals.
        policy: decides what becomes of the results of an operation.
    """
    excluded = _excluded(jaxpr, policy)
    needed: set[Any] = {v for v in residuals if type(v) is not Literal}
    saved: dict[Var, Any] = {}
    again: list[JaxprEqn] = []
    eqns: list[JaxprEqn] = []
    for eqn in reversed(jaxpr.eqns):
        eqns.append(eqn)
        needed_outs = [v for v in eqn.outvars if v in needed]
        if not needed_outs:
            continue
        # Equations with effects do not run twice.
        answer = bool(eqn.effects) or _answer(policy, eqn)
        if answer and (eqn.effects or excluded.isdisjoint(needed_outs)):
            saved.update(dict.fromkeys(reversed(needed_outs), answer))
            continue
        inside = _split_inside(eqn, needed_outs, policy)
        if inside is not None:
            saved.update(reversed(inside.saved.items()))
            eqns[-1:] = inside.eqns
        repeated = [eqn] if inside is None else inside.again
        again += repeated
        needed.update(v for e in repeated for v in e.invars if type(v) is not Literal)
    return ResidualSplit(dict(reversed(saved.items())), again[::-1], eqns[::-1])


def _excluded(jaxpr: Jaxpr, policy: Policy | None) -> set[Any]:
    """Values that a policy excludes by name, including the same values before naming."""
    excluded: set[Any] = set()
    if isinstance(policy, AnythingExcept):
        for eqn in reversed(jaxpr.eqns):
            if eqn.primitive is name_p and (
                eqn.params["name"] in policy.names or eqn.outvars[0] in excluded
            ):
                excluded.update(v for v in eqn.invars if type(v) is not Literal)
    return excluded


def _answer(policy: Policy | None, eqn: JaxprEqn) -> Any:
    if isinstance(policy, AnythingExcept) and any(
        inner.primitive is name_p and inner.params["name"] in policy.names
        for body in jaxprs_in_params(eqn.params)
        for inner in all_equations(body)
    ):
        return False
    return answer_of(policy, eqn.primitive, [v.aval for v in eqn.invars], eqn.params)


def _split_inside(
    eqn: JaxprEqn, wanted: Sequence[Var], policy: Policy | None
) -> ResidualSplit | None:
    """Split an operation with bodies into one that saves residuals and one that uses them.

    Returns:
        None if nothing inside is saved, or if it has no bodies that a policy sees.
    """
    if policy is None:
        return None
    if eqn.primitive is scan_p:
        return _split_scan(eqn, wanted, policy)
    return _split_cond(eqn, wanted, policy) if eqn.primitive is cond_p else None


def _split_cond(eqn: JaxprEqn, wanted: Sequence[Var], policy: Policy) -> ResidualSplit | None:
    """Split branches if any of them saves values, with shared results for these."""
    branches = [with_calls_written_out(b).jaxpr for b in eqn.params["branches"]]
    returned: list[list[Any]] = [b.outvars for b in branches]
    results = [i for i, v in enumerate(eqn.outvars) if v in wanted]
    parts = [
        split_residuals(b, [outs[i] for i in results], policy)
        for b, outs in zip(branches, returned, strict=True)
    ]
    if not any(part.saved for part in parts):
        return None
    every = list(zip(branches, returned, parts, strict=True))

    # Results that all branches save are saved directly.
    whole = [i for i in results if all(outs[i] in part.saved for _, outs, part in every)]
    whole_vars = [{outs[i] for i in whole} for outs in returned]
    saved = {eqn.outvars[i]: parts[0].saved[returned[0][i]] for i in whole}
    slots: list[Var] = []
    placed: list[list[tuple[int, Var]]] = [[] for _ in branches]
    answers = dict.fromkeys(answer for part in parts for answer in part.saved.values())
    for answer in answers:
        branch_saved = [
            [v for v, a in part.saved.items() if a == answer and v not in own]
            for part, own in zip(parts, whole_vars, strict=True)
        ]
        further, places = shared_slots([[v.aval for v in own_saved] for own_saved in branch_saved])
        for own_places, own_slots, own_saved in zip(places, placed, branch_saved, strict=True):
            own_slots += [(len(slots) + i, v) for i, v in zip(own_places, own_saved, strict=True)]
        added = [Var(aval) for aval in further]
        slots += added
        saved.update(dict.fromkeys(added, answer))

    avals = tuple([v.aval for v in slots])
    keeping = tuple(
        pad_residuals(
            ClosedJaxpr(b.replace(outvars=[*outs, *(v for _, v in own)], eqns=part.eqns), []),
            len(outs),
            avals,
            tuple([i for i, _ in own]),
        )
        for (b, outs, part), own in zip(every, placed, strict=True)
    )
    first = eqn.replace(outvars=[*eqn.outvars, *slots], params={**eqn.params, "branches": keeping})
    rest = [i for i in results if i not in whole]
    if not rest:
        return ResidualSplit(saved, [], [first])

    again = []
    for (b, outs, part), own in zip(every, placed, strict=True):
        place_of = {outs[i]: place for place, i in reversed(list(enumerate(whole)))}
        place_of |= {v: len(whole) + i for i, v in own}
        names = {place: v for v, place in place_of.items()}
        stored: list[Var] = [
            names.get(place, Var(v.aval))
            for place, v in enumerate([*(eqn.outvars[i] for i in whole), *slots])
        ]
        body = Jaxpr([], [*b.invars, *stored], [outs[i] for i in rest], part.again)
        again.append(ClosedJaxpr(rename(body), []))
    second = JaxprEqn(
        [*eqn.invars, *(eqn.outvars[i] for i in whole), *slots],
        [eqn.outvars[i] for i in rest],
        cond_p,
        {**eqn.params, "branches": tuple(again)},
        no_effects,
        eqn.traceback,
    )
    reduced, _ = dce(Jaxpr([], [], second.outvars, [second]))
    return ResidualSplit(saved, reduced.eqns, [first])


def _split_scan(eqn: JaxprEqn, wanted: Sequence[Var], policy: Policy) -> ResidualSplit | None:
    """Split a loop into one that saves residuals of each iteration and one that uses them."""
    loop = ScanParams.of(dict(eqn.params))
    body = with_calls_written_out(loop.jaxpr).jaxpr
    invars, outvars = body.invars, body.outvars
    first, carried = loop.num_consts, loop.num_carry
    numbers = {i for i, v in enumerate(eqn.outvars) if v in wanted}
    while True:
        residuals = [outvars[i] for i in sorted(numbers)]
        inside = split_residuals(body, residuals, policy)
        used: set[Any] = {v for e in inside.again for v in e.invars if type(v) is not Literal}
        used.update(v for v in residuals if type(v) is not Literal)
        # The carry into an iteration is computed by the previous one.
        more = {i for i in range(carried) if invars[first + i] in used} - numbers
        if not more:
            break
        numbers |= more
    if not inside.saved:
        return None

    # The first loop stacks the saved values.
    stacks: dict[Var, Var] = {}
    results, body_outs = list(eqn.outvars), list(outvars)
    places = {v: i for i, v in reversed(list(enumerate(outvars))) if i >= carried}
    for v in inside.saved:
        place = places.get(v)
        if place is None or type(results[place]) is DropVar:
            stacks[v] = Var(v.aval.update(shape=(loop.length, *v.aval.shape)))
            results.append(stacks[v])
            body_outs.append(v)
        else:
            stacks[v] = results[place]
    stacking = body.replace(outvars=body_outs, eqns=inside.eqns)
    saved = {stacks[v]: answer for v, answer in inside.saved.items()}
    params = {**eqn.params, "jaxpr": ClosedJaxpr(stacking, [])}
    stacked = eqn.replace(outvars=results, params=params)

    # The second loop computes the rest.
    carry = [i for i in sorted(numbers) if i < carried]
    ys = [i for i in sorted(numbers) if i >= carried and outvars[i] not in inside.saved]
    if not carry and not ys:
        return ResidualSplit(saved, [], [stacked])
    consts = [i for i in range(first) if invars[i] in used]
    xs = [i for i in range(first + carried, len(invars)) if invars[i] in used]
    taken = [v for v in inside.saved if v in used]
    operands = [*consts, *(first + i for i in carry), *xs]
    info = body.debug_info
    rest = Jaxpr(
        [],
        [*(invars[i] for i in operands), *taken],
        [outvars[i] for i in (*carry, *ys)],
        inside.again,
        no_effects,
        None if info is None else DebugInfo(info.traced_for, info.function, info.location),
    )
    again = loop._replace(
        jaxpr=ClosedJaxpr(rename(rest), []), num_consts=len(consts), num_carry=len(carry)
    )
    inputs = [*(eqn.invars[i] for i in operands), *(stacks[v] for v in taken)]
    outputs = [eqn.outvars[i] for i in (*carry, *ys)]
    repeated = JaxprEqn(
        inputs, outputs, scan_p, again.params(len(inputs)), no_effects, eqn.traceback
    )
    return ResidualSplit(saved, [repeated], [stacked])
