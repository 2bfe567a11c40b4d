"""Rematerialization: the primitive of checkpointed functions.

For its derivative, such a function saves its arguments and the values that its policy chooses. The
linear program of its tangents recomputes the other residuals in one equation, so its transpose
recomputes them first and then runs backwards.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dovetail._core.base import config
from dovetail._core.base.flags import Flags, partition
from dovetail._core.base.source import user_frame
from dovetail._core.ir.jaxpr import (
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
)
from dovetail._core.ir.walk import (
    all_equations,
    dce,
    rename,
    substitute,
)
from dovetail._core.ops.calls.jit import jit_p
from dovetail._core.ops.calls.program_primitive import CallPrimitive
from dovetail._core.ops.checkpoint.naming import as_device_array, name_p, offload_p
from dovetail._core.ops.checkpoint.policies import Offloadable, Policy
from dovetail._core.ops.checkpoint.split import split_residuals, with_calls_written_out
from dovetail._core.trace.zeros import with_zeros
from dovetail._core.transform.derived import (
    function_of,
    linearization_of,
    remembered,
)

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

logger: Final = logging.getLogger("dovetail")


class Remat(CallPrimitive):
    """A call of `jaxpr` whose residuals are recomputed when needed.

    `prevent_cse` tells whether to keep the compiler from merging the second computation with the
    first: one bool for all operands, or one for each. `differentiated` marks the second one.
    """

    name = "remat2"

    def evaluate(self, *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
        """Outside compiled programs: run one operation after the other."""
        if params["differentiated"] and config.debug_key_reuse.value:
            with config.debug_key_reuse(False):
                return self.evaluate(*args, jaxpr=jaxpr, **params)
        return [as_device_array(out) for out in function_of(jaxpr)(*args)]

    def follow_keys(self, tracker: Any, *operands: Any, **params: Any) -> Any:
        # What is computed a second time is the same on purpose.
        follow = tracker.follow_repetition if params["differentiated"] else tracker.follow
        return follow(params["jaxpr"], operands)

    def for_operands(
        self, params: dict[str, Any], constants: int, kept: Sequence[int], new: int
    ) -> dict[str, Any]:
        barriers = params["prevent_cse"]
        if isinstance(barriers, bool):
            return params
        barriers = (*[True] * constants, *(barriers[i] for i in kept), *[True] * new)
        return params | {"prevent_cse": barriers}

    def linearize(
        self, primals: Sequence[Any], nonzero: Sequence[bool], **params: Any
    ) -> tuple[Any, Callable[..., Any]]:
        # The policy decides what is saved; the linear program recomputes the rest.
        plan = _plan(params["jaxpr"], tuple(nonzero), params["policy"])
        if config.log_checkpoint_residuals.value:
            _log(plan)
        primal_outs = self.rebind(plan.primal, primals, params, range(len(primals)))
        outs = primal_outs[: len(plan.nonzero_out)]
        operands = [primals[i] for i in plan.arguments] + [primal_outs[i] for i in plan.saved]

        def tangent(*tangents: Any) -> list[Any]:
            nonzero_tangents, _ = partition(nonzero, tangents)
            again = params | {"differentiated": True}
            results = self.rebind(
                plan.linear, [*operands, *nonzero_tangents], again, plan.arguments
            )
            return with_zeros(plan.nonzero_out, results, outs)

        return outs, tangent

    def lower(
        self,
        context: Builder,
        *values: Any,
        jaxpr: ClosedJaxpr,
        prevent_cse: bool | Flags,
        differentiated: bool,
        policy: Policy | None,
    ) -> Any:
        operands = list(values)
        if differentiated:
            every = [prevent_cse] * len(operands) if isinstance(prevent_cse, bool) else prevent_cse
            chosen = [i for i, prevent in enumerate(every) if prevent]
            if chosen:
                avals = [context.avals_in[i] for i in chosen]
                guarded = context.optimization_barrier([operands[i] for i in chosen], avals)
                for i, value in zip(chosen, guarded, strict=True):
                    operands[i] = value
        return context.inline_jaxpr(jaxpr, operands)


remat_p: Final = Remat()


class _RematPlan(NamedTuple):
    """How a checkpointed function is linearized.

    Attributes:
        primal: from its arguments to its results and further saved values.
        linear: from some of its arguments, saved values, and tangents to tangents.
        arguments: indices of these arguments.
        saved: for each saved value, its index among the results of `primal`.
        nonzero_out: the results that have a tangent.
    """

    primal: ClosedJaxpr
    linear: ClosedJaxpr
    arguments: list[int]
    saved: list[int]
    nonzero_out: list[bool]


@remembered
def _plan(closed: ClosedJaxpr, nonzero: Flags, policy: Policy | None) -> _RematPlan:
    derived = linearization_of(closed, nonzero)
    primal, linear = derived.primal, derived.linear
    if policy is not None:
        primal = with_calls_written_out(primal)
    jaxpr = primal.jaxpr
    many = len(derived.nonzero_out)
    residuals = derived.residuals(jaxpr.invars, jaxpr.outvars)
    saved, again, eqns = split_residuals(jaxpr, residuals, policy)

    # The linear program: first the repeated operations, then those on tangents.
    count = len(residuals)
    parameters, tangents = linear.jaxpr.invars[:count], linear.jaxpr.invars[count:]
    residual_of: dict[Any, Any] = dict(zip(parameters, residuals, strict=True))
    saved_vars: list[Var] = []
    fetched: list[JaxprEqn] = []
    back: dict[Any, Any] = {}
    stored: list[Any] = []
    extra: list[JaxprEqn] = []
    for var, answer in saved.items():
        if isinstance(answer, Offloadable):
            there, here, here_again = Var(var.aval), Var(var.aval), Var(var.aval)
            away = {"src": answer.src, "dst": answer.dst}
            extra.append(JaxprEqn([var], [there], offload_p, away))
            home = {"src": answer.dst, "dst": answer.src}
            fetched.append(JaxprEqn([here], [here_again], offload_p, home))
            back[var] = here_again
            stored.append(there)
            saved_vars.append(here)
        else:
            stored.append(var)
            saved_vars.append(var)
    arguments = list(jaxpr.invars)
    fetched_of = {v: back.get(r, r) for v, r in residual_of.items()}
    body = Jaxpr(
        jaxpr.constvars,
        [*arguments, *saved_vars, *tangents],
        # A rule may return as a tangent what depends on none.
        [fetched_of.get(v, v) if type(v) is Var else v for v in linear.jaxpr.outvars],
        [*fetched, *substitute(again, back), *substitute(linear.jaxpr.eqns, fetched_of)],
        linear.jaxpr.effects,
        linear.jaxpr.debug_info,
    )
    always = [False] * len(arguments) + [True] * (len(saved_vars) + len(tangents))
    reduced, used = dce(body, None, always)
    numbers = {v: i for i, v in reversed(list(enumerate(jaxpr.outvars[:many])))}
    outvars = [*jaxpr.outvars[:many]]
    places = []
    for var in stored:
        place = numbers.get(var)
        if place is None:
            place = len(outvars)
            outvars.append(var)
        places.append(place)
    keeping = closed
    # Rules leave in references what they write, not what the functions that they replace do.
    if saved or any(eqn.params.get("num_last") for eqn in all_equations(closed.jaxpr)):
        keeping = ClosedJaxpr(
            dce(jaxpr.replace(outvars=outvars, eqns=[*eqns, *extra]), None, True)[0],
            primal.consts,
        )
    return _RematPlan(
        keeping,
        ClosedJaxpr(rename(reduced), primal.consts),
        [i for i in range(len(arguments)) if used[i]],
        places,
        derived.nonzero_out,
    )


def origin(jaxpr: Jaxpr, var: Any) -> str:
    """The origin of a value of a jaxpr, in the words of `saved_residuals`."""
    for eqn in jaxpr.eqns:
        for number, out in enumerate(eqn.outvars):
            if out is var:
                return _made_by(eqn, number)
    return "from a literal" if type(var) is Literal else "from an argument"


def _made_by(eqn: JaxprEqn, number: int) -> str:
    while eqn.primitive is remat_p:
        inner = eqn.params["jaxpr"].jaxpr
        var = inner.outvars[number]
        sources = [(e, i) for e in inner.eqns for i, v in enumerate(e.outvars) if v is var]
        if not sources:
            break
        ((eqn, number),) = sources
    if eqn.primitive is offload_p:
        what = f"kept in the memory {eqn.params['dst']!r}"
    elif eqn.primitive is name_p:
        what = f"named {eqn.params['name']!r}"
    elif eqn.primitive is jit_p:
        what = f"output of jitted function {eqn.params['name']!r}"
    else:
        what = f"output of {eqn.primitive.name}"
    frame = None if eqn.traceback is None else user_frame(eqn.traceback)
    if frame is None:
        return what
    column = "" if frame.column is None else f":{frame.column}"
    return f"{what} from {frame.place}{column} ({frame.function})"


def _log(plan: _RematPlan) -> None:
    jaxpr = plan.primal.jaxpr
    saved = [jaxpr.outvars[i] for i in plan.saved]
    lines = [f"\n  {v.aval.short_name()} {origin(jaxpr, v)}" for v in saved]
    info = jaxpr.debug_info
    name = "a function" if info is None else info.function
    logger.warning(
        "checkpoint of %s keeps %d of its arguments and captured values%s%s",
        name,
        len(plan.arguments),
        ", and of intermediate values:" if lines else ", and no intermediate values",
        "".join(lines),
    )
