"""Functions with custom rules that read and write mutable references.

A staged call takes the values of the references that its function or its rule uses as arguments,
before its own, and returns the last values of those that either writes to, after its own results.
The rule runs later, perhaps in another trace: until it returns, the references have these values.
What a backward rule does with references happens when it runs, and is no part of this.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NoReturn, TypeVar

from dovetail._core.base.interrupts import is_interrupt
from dovetail._core.base.restoring import Restoring
from dovetail._core.basis.operands import as_result
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo, Var
from dovetail._core.trace.mutable_references import Ref, RefState
from dovetail._core.trace.state import state
from dovetail._core.trace.tracer import Tracer
from dovetail._core.trace.zeros import Zero
from dovetail._core.transform.linearize import SplitTrace
from dovetail._core.transform.referencing import RefEffects, stage_using_references

R = TypeVar("R")

#: A rule of flat arguments. It takes them, and for each its tangent, or whether it is perturbed.
Rule = Callable[[Sequence[Any], Sequence[Any]], Any]


class _Trials(threading.local):
    running: tuple[tuple[str, str], ...] = ()


_trials: Final = _Trials()
_set_running: Final = partial(setattr, _trials, "running")


def effects_of_rule(
    rule: Callable[..., Sequence[Any]], avals: Sequence[Any], info: DebugInfo
) -> RefEffects | None:
    """What a rule does with references, found by staging it; None if it cannot be staged.

    Args:
        rule: a function of flat values.
        avals: the types of these.
        info: what the rule belongs to. A rule that calls its function adds nothing by that.
    """
    running, key = _trials.running, (info.function, info.location)
    if key in running:
        return RefEffects()
    try:
        with Restoring(lambda: running, partial(_set_running, (*running, key)), _set_running):
            return stage_using_references(rule, avals, info)[1]
    except Exception as error:  # raised again if the rule is ever needed
        if is_interrupt(error):
            raise
        return None


def with_references_of_rule(
    closed: ClosedJaxpr,
    uses: RefEffects,
    info: DebugInfo,
    passed: Sequence[Ref],
    rule: Callable[[], RefEffects | None],
) -> tuple[ClosedJaxpr, RefEffects]:
    """A staged function of flat arguments that has the references of its rule, too.

    Args:
        closed: the function, by `stage_using_references`.
        uses: what it does with references.
        info: what was staged, for messages.
        passed: the references among the arguments of the user's function.
        rule: says what the rule does that runs in place of the function. It is asked only if the
            function gets or captures references.

    Returns:
        The jaxpr, which takes the values of the references before the arguments, and returns the
        last values of those that are written to after the results; and what is done with them.
    """
    if not uses and not passed:
        return closed, uses
    by_rule = rule() or RefEffects()
    jaxpr, own = closed.jaxpr, len(closed.jaxpr.invars) - len(uses.captured)
    results, last = _split(jaxpr.outvars, sum(uses.changed))
    invars = dict(zip(uses.captured, jaxpr.invars[own:], strict=True))
    for ref in by_rule.captured:
        invars.setdefault(ref, Var(ref.aval.inner_aval))
    written = dict(zip(_written(uses), last, strict=True))
    for ref in _written(by_rule):
        written.setdefault(ref, invars[ref])
    effects = RefEffects((), tuple(invars), tuple([ref in written for ref in invars]))
    opened = jaxpr.replace(
        invars=[*invars.values(), *jaxpr.invars[:own]],
        outvars=[*results, *(written[ref] for ref in _written(effects))],
        debug_info=DebugInfo(info.traced_for, info.function, info.location),
    )
    return ClosedJaxpr(opened, closed.consts), effects


def _split(values: Sequence[Any], count: int) -> tuple[Sequence[Any], Sequence[Any]]:
    """All values but the last `count`, and these."""
    return values[: len(values) - count], values[len(values) - count :]


def _written(effects: RefEffects) -> list[Ref]:
    return [ref for ref, yes in zip(effects.captured, effects.changed, strict=True) if yes]


def _call_with_values(
    used: RefEffects, values: Sequence[Any], function: str, body: Callable[[], R]
) -> tuple[R, list[Any]]:
    """Call ``body`` while references have other values.

    Returns:
        Its result, and the last values of those references that may be written to.
    """
    refs, trace = used.captured, state.trace
    if type(trace) is SplitTrace and trace.parent is not None:
        trace = trace.parent  # where primal values are computed
    inside = [RefState(trace, as_result(value), lent=True) for value in values]
    change = partial(_set_states, refs, [(ref_state, "") for ref_state in inside])
    with Restoring(partial(_states, refs), change, partial(_set_states, refs)):
        result = body()
    last: list[Any] = []
    for ref, changed, ref_state in zip(refs, used.changed, inside, strict=True):
        if changed:
            last.append(ref_state.value)
        elif ref_state.changed:
            raise ValueError(
                f"{ref.described()} is written to by a rule of {function}, and was not when the "
                f"rule was first traced; write to it in {function} too"
            )
    return result, last


def _states(refs: Sequence[Ref]) -> list[tuple[RefState | None, str]]:
    return [(ref._ref_state, ref._holder) for ref in refs]


def _set_states(refs: Sequence[Ref], states: Sequence[tuple[RefState | None, str]]) -> None:
    for ref, (ref_state, holder) in zip(refs, states, strict=True):
        ref._ref_state, ref._holder = ref_state, holder


def rule_with_references(
    rule: Rule, used: RefEffects, function: str, with_last: Callable[[Any, list[Any]], Any]
) -> Rule:
    """A rule whose leading arguments are the values of references.

    Args:
        rule: the rule of the arguments that follow.
        used: what is done with the references.
        function: the user's function, for messages.
        with_last: puts the last values of references after the results in what `rule` returns.
    """
    count = len(used.captured)

    def run(primals: Sequence[Any], varying: Sequence[Any]) -> Any:
        for ref, varies in zip(used.captured, varying, strict=False):
            if varies is not False and type(varies) is not Zero:
                _refuse_varying(ref, function)
        body = partial(rule, primals[count:], varying[count:])
        return with_last(*_call_with_values(used, primals[:count], function, body))

    return run


def _refuse_varying(ref: Ref, function: str) -> NoReturn:
    raise ValueError(
        f"{function} has a derivative rule of its own, and {ref.described()}, which it uses, holds "
        "a value that is being differentiated: the rule says nothing about its derivative. Pass "
        "the value, ref[...], as an argument"
    )


def call_inside(
    passed: Sequence[Ref], function: Callable[[], DebugInfo], body: Callable[[], R]
) -> R:
    """Call a rule that may use references made within the function being differentiated.

    The rule runs outside of that.

    Args:
        passed: the references among the arguments of the user's function.
        function: describes it, for messages.
        body: calls the rule.
    """
    refs = []
    for ref in passed:
        ref_state = ref.ref_state
        if not ref_state.trace.finished and not state.trace.is_inside(ref_state.trace):
            value = ref_state.value
            if isinstance(value, Tracer) and value._trace is ref_state.trace:
                _refuse_varying(ref, function().function)
            refs.append(ref)
    if not refs:
        return body()
    ref_states = [ref.ref_state for ref in refs]
    used = RefEffects((), tuple(refs), (True,) * len(refs))
    values = [s.value for s in ref_states]
    result, last = _call_with_values(used, values, function().function, body)
    for ref_state, value in zip(ref_states, last, strict=True):
        if value is not ref_state.value:
            ref_state.value, ref_state.changed, ref_state.shared = value, True, True
    return result
