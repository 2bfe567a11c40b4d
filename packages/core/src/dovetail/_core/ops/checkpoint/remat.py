"""Rematerialization: the primitive of checkpointed functions.

Differentiated, such a function keeps its arguments and what its policy says. The linear program of
its tangents computes the other residuals again, in one equation, so that its transposition computes
them first and runs backwards afterwards.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dovetail._core.base import config
from dovetail._core.base.flags import Flags
from dovetail._core.base.source import user_frame
from dovetail._core.basis.structural import batch_size, is_linear
from dovetail._core.ir.jaxpr import (
    ClosedJaxpr,
    Effects,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    no_effects,
)
from dovetail._core.ir.walk import (
    Reduction,
    Wanted,
    dce,
    rename,
    substitute,
)
from dovetail._core.ops.calls.jit import jit_p
from dovetail._core.ops.checkpoint.naming import as_device_array, name_p, offload_p
from dovetail._core.ops.checkpoint.policies import Offloadable, Policy
from dovetail._core.ops.checkpoint.split import split, with_calls_written_out
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero, wanted_among
from dovetail._core.transform.derived import (
    batch_of,
    dependence_of,
    function_of,
    hoist_consts,
    jvp_of,
    linearization_of,
    reference_of,
    remembered,
    taylor_of_call,
    transposition_of,
)

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

logger: Final = logging.getLogger("dovetail")


class Remat(Primitive):
    """A call of `jaxpr`, whose residuals are computed again where they are needed.

    `prevent_cse` says whether the compiler must not merge the second computation with the first:
    one bool for all operands, or one for each. `differentiated` says that this is the second.
    """

    name = "remat2"
    multiple_results = True
    accepts_zeros = True
    transposes_partly = True
    has_effects = True
    generates_nan = False

    def evaluate(self, *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> list[Any]:
        """What is done outside of compiled programs: one operation after the other."""
        return [as_device_array(out) for out in function_of(jaxpr)(*args)]

    def abstract(self, *avals: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
        expected = jaxpr.in_avals
        if len(avals) != len(expected) or any(
            a.shape != e.shape or a.dtype != e.dtype for a, e in zip(avals, expected, strict=True)
        ):
            raise TypeError(f"checkpoint: the function takes {expected}, got {list(avals)}")
        return jaxpr.out_avals

    def reference(self, *args: Any, jaxpr: ClosedJaxpr, **params: Any) -> Any:
        return reference_of(jaxpr, args)

    def effects(self, *avals: Any, **params: Any) -> Effects:
        effects: Effects = params["jaxpr"].jaxpr.effects
        return effects

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        nonzero = tuple(type(t) is not Zero for t in tangents)
        derived, nonzero_out = jvp_of(params["jaxpr"], nonzero)
        given = [t for t in tangents if type(t) is not Zero]
        held = _held(params["prevent_cse"], range(len(primals)), len(given))
        results = _bind(derived, [*primals, *given], held, params)
        count = len(nonzero_out)
        outs, found = results[:count], iter(results[count:])
        return outs, [
            next(found) if v else Zero.of(o) for o, v in zip(outs, nonzero_out, strict=True)
        ]

    def linearize(
        self, primals: Sequence[Any], nonzero: Sequence[bool], **params: Any
    ) -> tuple[Any, Callable[..., Any]]:
        plan = _plan(params["jaxpr"], tuple(nonzero), params["policy"])
        if config.log_checkpoint_residuals.value:
            _log(plan)
        every = _held(params["prevent_cse"], range(len(primals)), 0)
        found = _bind(plan.primal, primals, every, params)
        outs = found[: len(plan.nonzero_out)]
        operands = [primals[i] for i in plan.arguments] + [found[i] for i in plan.saved]
        held = _held(params["prevent_cse"], plan.arguments, len(plan.saved) + sum(nonzero))

        def tangent(*tangents: Any) -> list[Any]:
            given = [t for t, n in zip(tangents, nonzero, strict=True) if n]
            results = iter(
                _bind(plan.linear, [*operands, *given], held, params | {"differentiated": True})
            )
            return [
                next(results) if v else Zero.of(o)
                for o, v in zip(outs, plan.nonzero_out, strict=True)
            ]

        return outs, tangent

    def transpose(self, cotangent: Any, *args: Any, **params: Any) -> Sequence[Any]:
        linear = tuple(is_linear(a) for a in args)
        given = tuple(type(ct) is not Zero for ct in cotangent)
        derived, nonzero = transposition_of(
            params["jaxpr"], linear, given, None, wanted_among(args)
        )
        operands = [a for a, lin in zip(args, linear, strict=True) if not lin]
        cts = [ct for ct, g in zip(cotangent, given, strict=True) if g]
        known = [i for i, lin in enumerate(linear) if not lin]
        held = _held(params["prevent_cse"], known, len(cts))
        results = iter(_bind(derived, [*operands, *cts], held, params))
        found = iter(next(results) if v else None for v in nonzero)
        return [next(found) if lin else None for lin in linear]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        derived, out_dims = batch_of(params["jaxpr"], batch_size(args, dims), tuple(dims))
        held = _held(params["prevent_cse"], range(len(args)), 0)
        return _bind(derived, args, held, params), out_dims

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
                held = context.optimization_barrier([operands[i] for i in chosen], avals)
                for i, value in zip(chosen, held, strict=True):
                    operands[i] = value
        return context.inline_jaxpr(jaxpr, operands)

    def taylor(
        self, operands: Sequence[Any], results: Sequence[Any], **params: Any
    ) -> Callable[[int], Any]:
        def call(derived: ClosedJaxpr, args: list[Any]) -> list[Any]:
            count = len(operands)
            held = _held(params["prevent_cse"], range(count), len(args) - count)
            return _bind(derived, args, held, params)

        return taylor_of_call(params["jaxpr"], operands, call)

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        checked, error = checks.checked(params["jaxpr"])
        held = _held(params["prevent_cse"], range(len(args)), 0)
        outs = _bind(checked, args, held, params)
        checks.found(error, outs[: error.num_leaves])
        return outs[error.num_leaves :]

    def dependencies(self, flags: Sequence[bool], **params: Any) -> Sequence[bool]:
        found: list[bool] = dependence_of(params["jaxpr"], tuple(flags))
        return found

    def dce(self, eqn: JaxprEqn, used: list[bool]) -> Reduction:
        closed = eqn.params["jaxpr"]
        reduced, kept = yield Wanted(closed, tuple(used))
        if reduced is closed:
            return eqn
        numbers = [i for i, keep in enumerate(kept) if keep]
        held = _held(eqn.params["prevent_cse"], numbers, 0)
        return eqn.replace(
            invars=[eqn.invars[i] for i in numbers],
            outvars=[v for v, u in zip(eqn.outvars, used, strict=True) if u],
            params={**eqn.params, "jaxpr": reduced, "prevent_cse": held},
            effects=reduced.jaxpr.effects if eqn.effects else no_effects,
        )


remat_p: Final = Remat()


def _held(prevent_cse: bool | Flags, numbers: Sequence[int], new: int) -> bool | Flags:
    """`prevent_cse` for some of the operands, and new ones after them."""
    if isinstance(prevent_cse, bool):
        return prevent_cse
    return (*(prevent_cse[i] for i in numbers), *[True] * new)


def _bind(
    closed: ClosedJaxpr, args: Sequence[Any], prevent_cse: bool | Flags, params: dict[str, Any]
) -> list[Any]:
    """Call another jaxpr with other operands in the same way."""
    jaxpr, constants = hoist_consts(closed)
    if not isinstance(prevent_cse, bool):
        prevent_cse = (*[True] * len(constants), *prevent_cse)
    changed = params | {"jaxpr": jaxpr, "prevent_cse": prevent_cse}
    results: list[Any] = remat_p.bind(*constants, *args, **changed)
    return results


class _Linearization(NamedTuple):
    """How a checkpointed function is linearized.

    Attributes:
        primal: from its arguments to its results and what is saved besides.
        linear: from some of its arguments, what is saved, and tangents to tangents.
        arguments: numbers of these arguments.
        saved: for each value that is saved, its number among the results of `primal`.
        nonzero_out: the results that have a tangent.
    """

    primal: ClosedJaxpr
    linear: ClosedJaxpr
    arguments: list[int]
    saved: list[int]
    nonzero_out: list[bool]


@remembered
def _plan(closed: ClosedJaxpr, nonzero: Flags, policy: Policy | None) -> _Linearization:
    primal, linear, forwarded, nonzero_out = linearization_of(closed, nonzero)
    if policy is not None:
        primal = with_calls_written_out(primal)
    jaxpr = primal.jaxpr
    many = len(nonzero_out)
    computed = iter(jaxpr.outvars[many:])
    residuals = [next(computed) if f is None else jaxpr.invars[f] for f in forwarded]
    saved, again, eqns = split(jaxpr, residuals, policy)

    # The linear program: the operations done again, then those on tangents.
    count = len(residuals)
    parameters, tangents = linear.jaxpr.invars[:count], linear.jaxpr.invars[count:]
    known: dict[Any, Any] = dict(zip(parameters, residuals, strict=True))
    kept: list[Var] = []
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
            kept.append(here)
        else:
            stored.append(var)
            kept.append(var)
    arguments = list(jaxpr.invars)
    body = Jaxpr(
        jaxpr.constvars,
        [*arguments, *kept, *tangents],
        linear.jaxpr.outvars,
        [
            *fetched,
            *substitute(again, back),
            *substitute(linear.jaxpr.eqns, {v: back.get(r, r) for v, r in known.items()}),
        ],
        linear.jaxpr.effects,
        linear.jaxpr.debug_info,
    )
    always = [False] * len(arguments) + [True] * (len(kept) + len(tangents))
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
    if saved:
        keeping = ClosedJaxpr(
            dce(jaxpr.replace(outvars=outvars, eqns=[*eqns, *extra]), None, True)[0],
            primal.consts,
        )
    return _Linearization(
        keeping,
        ClosedJaxpr(rename(reduced), primal.consts),
        [i for i in range(len(arguments)) if used[i]],
        places,
        nonzero_out,
    )


def origin(jaxpr: Jaxpr, var: Any) -> str:
    """Where a value of a jaxpr comes from, as `saved_residuals` says it."""
    for eqn in jaxpr.eqns:
        for number, out in enumerate(eqn.outvars):
            if out is var:
                return _made_by(eqn, number)
    return "from a literal" if type(var) is Literal else "from an argument"


def _made_by(eqn: JaxprEqn, number: int) -> str:
    while eqn.primitive is remat_p:
        inner = eqn.params["jaxpr"].jaxpr
        var = inner.outvars[number]
        found = [(e, i) for e in inner.eqns for i, v in enumerate(e.outvars) if v is var]
        if not found:
            break
        ((eqn, number),) = found
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
    return f"{what} from {frame.file}:{frame.line}{column} ({frame.function})"


def _log(plan: _Linearization) -> None:
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
