"""What a checkpointed function keeps, and what it computes again, as its policy decides."""

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
    """How residuals come about.

    Attributes:
        saved: what is kept, with the answer of the policy.
        again: the equations that compute the residuals from arguments and what is kept.
        eqns: all equations, those of loops with further results, which are kept.
    """

    saved: dict[Var, Any]
    again: list[JaxprEqn]
    eqns: list[JaxprEqn]


def with_calls_written_out(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A jaxpr whose calls, and first computations of checkpointed functions, stand in place.

    So a policy is asked about operations, wherever they stand.
    """
    return inline_calls(closed, is_call=_is_first_call)


def _is_first_call(eqn: JaxprEqn) -> bool:
    return is_call(eqn) or eqn.params.get("differentiated") is False


def split_residuals(jaxpr: Jaxpr, residuals: Sequence[Any], policy: Policy | None) -> ResidualSplit:
    """Divide the computation of residuals into what is kept and what is done again.

    Equations are asked about from the last to the first, so that what is needed is known when an
    equation is met. One that makes nothing needed is done once, in the first computation, and the
    policy is not asked. One whose results the policy keeps ends the search: its operands are not
    needed for it. Any other is done again, and its operands become needed. So what is done again is
    the least that leads from what is kept, and the arguments, to the residuals. Loops and branches
    are divided inside by the same rule before they are done again as a whole.

    Args:
        jaxpr: from arguments to residuals, among others.
        residuals: some of its variables, and literals.
        policy: says what becomes of the results of an operation.
    """
    excluded = _excluded(jaxpr, policy)
    needed: set[Any] = {v for v in residuals if type(v) is not Literal}
    saved: dict[Var, Any] = {}
    again: list[JaxprEqn] = []
    eqns: list[JaxprEqn] = []
    for eqn in reversed(jaxpr.eqns):
        eqns.append(eqn)
        wanted = [v for v in eqn.outvars if v in needed]
        if not wanted:
            continue
        # What has effects is not done twice.
        answer = bool(eqn.effects) or _answer(policy, eqn)
        if answer and (eqn.effects or excluded.isdisjoint(wanted)):
            saved.update(dict.fromkeys(reversed(wanted), answer))
            continue
        inside = _split_inside(eqn, wanted, policy)
        if inside is not None:
            saved.update(reversed(inside.saved.items()))
            eqns[-1:] = inside.eqns
        repeated = [eqn] if inside is None else inside.again
        again += repeated
        needed.update(v for e in repeated for v in e.invars if type(v) is not Literal)
    return ResidualSplit(dict(reversed(saved.items())), again[::-1], eqns[::-1])


def _excluded(jaxpr: Jaxpr, policy: Policy | None) -> set[Any]:
    """What a policy excludes by name, which it excludes before the name is given too."""
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
    """Divide an operation with bodies into one that keeps something of them and one that uses it.

    Returns:
        None where nothing of it is to be kept, or where it has no bodies that a policy sees.
    """
    if policy is None:
        return None
    if eqn.primitive is scan_p:
        return _split_scan(eqn, wanted, policy)
    return _split_cond(eqn, wanted, policy) if eqn.primitive is cond_p else None


def _split_cond(eqn: JaxprEqn, wanted: Sequence[Var], policy: Policy) -> ResidualSplit | None:
    """Divide branches, of which one keeps something, in results that they share."""
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

    # Results that all branches keep are kept as they are.
    whole = [i for i in results if all(outs[i] in part.saved for _, outs, part in every)]
    known = [{outs[i] for i in whole} for outs in returned]
    saved = {eqn.outvars[i]: parts[0].saved[returned[0][i]] for i in whole}
    slots: list[Var] = []
    placed: list[list[tuple[int, Var]]] = [[] for _ in branches]
    answers = dict.fromkeys(answer for part in parts for answer in part.saved.values())
    for answer in answers:
        kept = [
            [v for v, a in part.saved.items() if a == answer and v not in own]
            for part, own in zip(parts, known, strict=True)
        ]
        further, places = shared_slots([[v.aval for v in found] for found in kept])
        for own_places, own_slots, found in zip(places, placed, kept, strict=True):
            own_slots += [(len(slots) + i, v) for i, v in zip(own_places, found, strict=True)]
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
        given = {outs[i]: place for place, i in reversed(list(enumerate(whole)))}
        given |= {v: len(whole) + i for i, v in own}
        names = {place: v for v, place in given.items()}
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
    """Divide a loop into one that keeps something of each turn and one that uses it."""
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
        # What is carried into a turn is computed by the turn before.
        more = {i for i in range(carried) if invars[first + i] in used} - numbers
        if not more:
            break
        numbers |= more
    if not inside.saved:
        return None

    # The first loop stacks what is kept.
    stacks: dict[Var, Var] = {}
    results, kept = list(eqn.outvars), list(outvars)
    places = {v: i for i, v in reversed(list(enumerate(outvars))) if i >= carried}
    for v in inside.saved:
        place = places.get(v)
        if place is None or type(results[place]) is DropVar:
            stacks[v] = Var(v.aval.update(shape=(loop.length, *v.aval.shape)))
            results.append(stacks[v])
            kept.append(v)
        else:
            stacks[v] = results[place]
    stacking = body.replace(outvars=kept, eqns=inside.eqns)
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
    given = [*(eqn.invars[i] for i in operands), *(stacks[v] for v in taken)]
    made = [eqn.outvars[i] for i in (*carry, *ys)]
    repeated = JaxprEqn(given, made, scan_p, again.params(len(given)), no_effects, eqn.traceback)
    return ResidualSplit(saved, [repeated], [stacked])
