"""Jaxprs derived from jaxprs: those of tangents, cotangents and batches.

The bodies of calls, branches and loops are transformed by these functions. What they return is
remembered for as long as the given jaxpr lives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from itertools import repeat
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from dovetail._core.base.config import enable_x64
from dovetail._core.base.flags import Flags, merge, partition
from dovetail._core.base.limits import deeper
from dovetail._core.base.source import describe
from dovetail._core.basis.structural import instantiate_zeros
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo, DropVar, JaxprEqn, Literal, Var
from dovetail._core.ir.walk import dce, eval_jaxpr, last_uses
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.scopes import Replay
from dovetail._core.trace.zeros import Zero, with_zeros, without_zeros
from dovetail._core.transform.batch import batch_flat, batched_aval, place_batch
from dovetail._core.transform.jvp import jvp_flat
from dovetail._core.transform.linearize import linearize_flat
from dovetail._core.transform.stage import StageTracer, replace_constants, stage
from dovetail._core.transform.taylor import (
    Series,
    by_order,
    nonzero_in,
    taylor_flat,
    terms_of,
    up_to,
)
from dovetail._core.transform.transposition import transpose_jaxpr

F = TypeVar("F", bound=Callable[..., Any])
#: Computes an equation: from the primitive, its arguments and its parameters to its results.
Compute = Callable[[Primitive, Sequence[Any], Mapping[str, Any]], Any]


def remembered(function: F) -> F:
    """Remember results of a function of a closed jaxpr for as long as the jaxpr lives."""

    @wraps(function)
    def remember(closed: ClosedJaxpr, *arguments: Any) -> Any:
        memory, key = closed.memory, (function, *arguments)
        found = memory.get(key)
        if found is None:
            found = memory[key] = function(closed, *arguments)
        return found

    return remember  # type: ignore[return-value]


def dce_closed(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A jaxpr without what it computes for nothing, with all its arguments."""
    # A jaxpr that were remembered for itself would live for ever.
    reduced = _reduced(closed)
    return closed if reduced is None else reduced


@remembered
def _reduced(closed: ClosedJaxpr) -> ClosedJaxpr | None:
    jaxpr, _ = dce(closed.jaxpr, instantiate=True)
    return None if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)


def function_of(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """The function of flat arguments that a jaxpr is.

    What nothing uses is not computed. What is recorded while it runs keeps the places that the
    jaxpr's equations have in the user's code, and the names of their scopes.
    """

    def function(*args: Any) -> list[Any]:
        with Replay() as replay:
            return eval_jaxpr(dce_closed(closed).jaxpr, closed.consts, *args, before=replay.at)

    return function


def derived_info(closed: ClosedJaxpr, traced_for: str) -> DebugInfo:
    """What messages say about a jaxpr that is made from another."""
    info = closed.jaxpr.debug_info
    if info is None:
        return DebugInfo(traced_for, "a function")
    return DebugInfo(traced_for, info.function, info.location)


def hoist_consts(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """A jaxpr without constants, and the constants that are now its leading arguments.

    The result is the same one for the same jaxpr.
    """
    # A jaxpr that were remembered for itself would be left to the collector.
    return _hoisted(closed) if closed.jaxpr.constvars else (closed, [])


@remembered
def _hoisted(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    jaxpr, constants = replace_constants(closed)
    return ClosedJaxpr(jaxpr, []), constants


@remembered
@deeper()
def dependence_of(closed: ClosedJaxpr, flags: Flags) -> list[bool]:
    """For each result of a jaxpr, whether it depends on a flagged argument.

    Args:
        closed: the jaxpr.
        flags: one for each argument.
    """
    found: set[Any] = set(partition(flags, closed.jaxpr.invars)[0])
    for eqn in closed.jaxpr.eqns:
        given = [type(v) is not Literal and v in found for v in eqn.invars]
        if not any(given):
            continue
        if eqn.primitive.has_dependencies:
            depends = eqn.primitive.dependencies(given, **eqn.params)
            found.update(v for v, d in zip(eqn.outvars, depends, strict=True) if d)
        else:
            found.update(eqn.outvars)
    return [type(v) is not Literal and v in found for v in closed.jaxpr.outvars]


@dataclass(slots=True)
class _Evaluation:
    """How the equations of jaxprs, nested ones included, are computed at the moment; and what
    `enable_x64` and NumPy's handling of errors are outside, where Python functions are called."""

    compute: Compute | None
    platform: str
    enable_x64: bool
    errors: Any
    place: Any = None

    def results(self, eqn: JaxprEqn, operands: Sequence[Any]) -> Any:
        """The results of an equation of a program that is run."""
        primitive, params = eqn.primitive, eqn.params
        out = NotImplemented
        if self.compute is not None:
            self.place = eqn.traceback
            out = self.compute(primitive, operands, params)
        if out is NotImplemented and primitive.calls_host:
            with enable_x64(self.enable_x64), np.errstate(**self.errors):
                evaluated: Any = primitive.evaluate(*operands, **params)  # type: ignore[attr-defined]
                return list(map(np.asarray, evaluated))
        return primitive.reference(*operands, **params) if out is NotImplemented else out


_evaluation: Final[ContextVar[_Evaluation | None]] = ContextVar("evaluation", default=None)


def evaluation_platform() -> str:
    """The platform that `evaluate` computes for; ``"cpu"`` outside of it."""
    evaluation = _evaluation.get()
    return "cpu" if evaluation is None else evaluation.platform


def evaluation_place() -> str:
    """The line of the user's program whose equation is being computed by what `evaluate` was given;
    empty outside of it."""
    evaluation = _evaluation.get()
    place = None if evaluation is None else evaluation.place
    return "" if place is None else describe(place)


def evaluate(
    closed: ClosedJaxpr,
    args: Sequence[Any],
    *,
    platform: str,
    compute: Compute | None = None,
) -> list[Any]:
    """Compute a jaxpr equation by equation, by the references of its primitives: an interpreter.

    A backend without a compiler runs programs by it. Callbacks and printing are done, in order,
    before it returns. Calls, branches and loops compute their bodies in the same way. It may run in
    any thread: dtypes are those of the program. NumPy warns of no infinities and NaNs: they are
    results.

    Args:
        closed: the program.
        args: its arguments, NumPy arrays.
        platform: the platform that it is run for, by which `lax.platform_dependent` chooses.
        compute: computes an equation in place of its reference: a function of the primitive, its
            arguments (a sequence of NumPy arrays or scalars) and its parameters (a mapping). It
            returns what the reference would, one array or, where ``primitive.multiple_results``, a
            sequence; or `NotImplemented` to leave the equation to the reference.

    Returns:
        The results, NumPy arrays or scalars.

    Raises:
        MissingRuleError: a primitive has no reference, and `compute` does not compute it. As with
            all errors from equations, a note names the equation's line in the user's program.

    Example:
        >>> import dovetail as dt
        >>> import numpy as np
        >>> from dovetail.extend import evaluate
        >>> evaluate(dt.make_jaxpr(lambda x: 2 * x)(1.0), [np.float32(3)], platform="toy")
        [array(6., dtype=float32)]
    """
    evaluation = _Evaluation(compute, platform, enable_x64.value, np.geterr())
    token = _evaluation.set(evaluation)
    try:
        # The program's dtypes are settled, whatever this thread's option says of new ones.
        with enable_x64(True), np.errstate(all="ignore"):
            return reference_of(closed, args)
    finally:
        _evaluation.reset(token)


@remembered
def _ends(closed: ClosedJaxpr) -> list[list[Any]]:
    return last_uses(closed.jaxpr)


def reference_of(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """The results of a jaxpr in plain NumPy, by the references of its primitives, or by what
    `evaluate` was given in their place."""
    evaluation = _evaluation.get()
    jaxpr = closed.jaxpr
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def read(atom: Any) -> Any:
        if type(atom) is not Literal:
            return values[atom]
        # A Python number would be one of 64 bits to NumPy.
        return np.asarray(atom.val, atom.dtype)[()] if atom.aval.weak_type else atom.val

    for eqn, ended in zip(jaxpr.eqns, _ends(closed), strict=True):
        primitive = eqn.primitive
        operands = [read(atom) for atom in eqn.invars]
        try:
            if evaluation is None:
                out = primitive.reference(*operands, **eqn.params)
            else:
                out = evaluation.results(eqn, operands)
        except Exception as error:
            if eqn.traceback is not None and not getattr(error, "__notes__", None):
                error.add_note(f"while computing {primitive.name} at {describe(eqn.traceback)}")
            raise
        outs = out if primitive.multiple_results else [out]
        found = zip(eqn.outvars, outs, strict=True)
        values.update((v, result) for v, result in found if type(v) is not DropVar)
        del operands, out, outs
        for v in ended:
            del values[v]
    return [read(v) for v in jaxpr.outvars]


class Jvp(NamedTuple):
    """What `jvp_of` makes of a jaxpr.

    Attributes:
        jaxpr: from primals and nonzero tangents to results and their nonzero tangents.
        nonzero_out: the results that have a tangent.
    """

    jaxpr: ClosedJaxpr
    nonzero_out: list[bool]


@remembered
def jvp_of(closed: ClosedJaxpr, nonzero: Flags, instantiate: Flags | None = None) -> Jvp:
    """The jaxpr of a jaxpr's results and their tangents.

    Args:
        closed: the jaxpr.
        nonzero: the arguments that have a tangent.
        instantiate: the results that are to have one even if it is zero.
    """
    nonzero_out: list[bool] = []

    def function(*args: Any) -> list[Any]:
        primals, given = args[: len(nonzero)], args[len(nonzero) :]
        tangents = with_zeros(nonzero, given, primals)
        outs, out_tangents = jvp_flat(function_of(closed), primals, tangents)
        nonzero_out[:], found = without_zeros(_instantiated(out_tangents, instantiate))
        return [*outs, *found]

    avals = closed.in_avals
    tangent_avals = [a.tangent() for a in partition(nonzero, avals)[0]]
    jaxpr = stage(function, [*avals, *tangent_avals], derived_info(closed, "jvp"))
    return Jvp(jaxpr, nonzero_out)


def _instantiated(tangents: list[Any], instantiate: Flags | None) -> list[Any]:
    """Tangents or cotangents, those as values that are to be."""
    if instantiate is None:
        return tangents
    return [instantiate_zeros(t) if i else t for t, i in zip(tangents, instantiate, strict=True)]


class Taylor(NamedTuple):
    """What `taylor_of` makes of a jaxpr.

    Attributes:
        jaxpr: from primals and nonzero Taylor coefficients to results and their nonzero
            coefficients, those of one result after those of another.
        nonzero_out: for each result, which coefficients it has.
    """

    jaxpr: ClosedJaxpr
    nonzero_out: list[Flags]


@remembered
def taylor_of(
    closed: ClosedJaxpr,
    order: int,
    nonzero: tuple[Flags, ...],
    instantiate: tuple[Flags, ...] | None = None,
) -> Taylor:
    """The jaxpr of a jaxpr's results and their Taylor coefficients.

    Args:
        closed: the jaxpr.
        order: of the last coefficient.
        nonzero: for each argument, which of its coefficients are given; the others vanish.
        instantiate: for each result, which coefficients it is to have even if they vanish.
    """
    nonzero_out: list[Flags] = []

    def function(*args: Any) -> list[Any]:
        primals, given = args[: len(nonzero)], iter(args[len(nonzero) :])
        terms = [
            [next(given) if flag else Zero.of(p) for flag in flags]
            for p, flags in zip(primals, nonzero, strict=True)
        ]
        outs, out_terms = taylor_flat(function_of(closed), primals, terms, order)
        if instantiate is not None:
            out_terms = [
                _instantiated(found, flags)
                for found, flags in zip(out_terms, instantiate, strict=True)
            ]
        nonzero_out[:] = nonzero_in(out_terms)
        return [*outs, *(t for found in out_terms for t in found if type(t) is not Zero)]

    term_avals = [
        a.tangent() for a, flags in zip(closed.in_avals, nonzero, strict=True) for f in flags if f
    ]
    jaxpr = stage(function, [*closed.in_avals, *term_avals], derived_info(closed, "jet"))
    return Taylor(jaxpr, nonzero_out)


def taylor_of_call(
    closed: ClosedJaxpr,
    operands: Sequence[Series],
    call: Callable[[ClosedJaxpr, list[Any]], list[Any]],
) -> Callable[[int], list[Any]]:
    """The rule `taylor` of a primitive that calls a jaxpr.

    Args:
        closed: the jaxpr.
        operands: curves of its arguments.
        call: calls another jaxpr in the same way. Its leading arguments are the primals.
    """

    def truncated(order: int) -> list[list[Any]]:
        terms = terms_of(operands, order)
        derived = taylor_of(closed, order, nonzero_in(terms))
        given = [t for found in terms for t in found if type(t) is not Zero]
        outs = call(derived.jaxpr, [*(x[0] for x in operands), *given])
        return by_order(outs, derived.nonzero_out)

    return up_to(truncated)


class Linearization(NamedTuple):
    """A jaxpr split in two by `linearization_of`.

    Attributes:
        primal: the jaxpr of primals to results, and those residuals that are computed.
        linear: the jaxpr of residuals and nonzero tangents to nonzero tangents of results.
        forwarded: for each residual the number of the argument that it is, or None if it is
            computed.
        nonzero_out: the results that have a tangent.
    """

    primal: ClosedJaxpr
    linear: ClosedJaxpr
    forwarded: list[int | None]
    nonzero_out: list[bool]

    def residuals(self, args: Sequence[Any], outs: Sequence[Any]) -> list[Any]:
        """All residuals, from the arguments and results of `primal`."""
        computed = iter(outs[len(self.nonzero_out) :])
        return [next(computed) if i is None else args[i] for i in self.forwarded]


@remembered
def linearization_of(
    closed: ClosedJaxpr, nonzero: Flags, instantiate: Flags | None = None
) -> Linearization:
    """A jaxpr split into one that computes its results and what their tangents need, and one that
    is linear in the tangents.

    Args:
        closed: the jaxpr.
        nonzero: the arguments that have a tangent.
        instantiate: the results that are to have one even if it is zero.
    """
    programs: list[Any] = []
    forwarded: list[int | None] = []

    def function(*args: Any) -> list[Any]:
        outs, program = linearize_flat(
            function_of(closed), args, nonzero, derived_info(closed, "linearize"), instantiate
        )
        programs.append((replace_constants(program.closed)[0], program.nonzero_out))
        number = {a.variable: i for i, a in enumerate(args) if type(a) is StageTracer}
        residuals = program.closed.consts
        forwarded[:] = [
            number.get(r.variable) if type(r) is StageTracer else None for r in residuals
        ]
        return [*outs, *(r for r, f in zip(residuals, forwarded, strict=True) if f is None)]

    primal = stage(function, closed.in_avals, derived_info(closed, "linearize"))
    ((linear, nonzero_out),) = programs
    return Linearization(primal, ClosedJaxpr(linear, []), forwarded, list(nonzero_out))


class Transposition(NamedTuple):
    """What `transposition_of` makes of a jaxpr.

    Attributes:
        jaxpr: from arguments in which it is not linear and nonzero cotangents of results to
            nonzero cotangents of the linear arguments.
        nonzero_out: the linear arguments that have a cotangent.
    """

    jaxpr: ClosedJaxpr
    nonzero_out: list[bool]

    def cotangents(self, linear: Sequence[bool], outs: Sequence[Any]) -> list[Any]:
        """A cotangent for each argument, None where there is none, from the results of `jaxpr`.

        Args:
            linear: the arguments in which it is linear.
            outs: the results.
        """
        return merge(linear, merge(self.nonzero_out, outs, repeat(None)), repeat(None))


@remembered
def transposition_of(
    closed: ClosedJaxpr,
    linear: Flags,
    nonzero_cts: Flags,
    instantiate: Flags | None = None,
    wanted: Flags | None = None,
) -> Transposition:
    """The jaxpr of the cotangents of a jaxpr's linear arguments.

    Args:
        closed: the jaxpr.
        linear: the arguments in which it is linear.
        nonzero_cts: the results that have a cotangent.
        instantiate: for each linear argument, whether it is to have a cotangent even if it is zero.
        wanted: for each argument, whether its cotangent is wanted; that of all by default.
    """
    nonzero_out: list[bool] = []
    _, value_avals = partition(linear, closed.in_avals)
    ct_avals, zero_avals = partition(nonzero_cts, closed.out_avals)

    def function(*args: Any) -> list[Any]:
        values, cts = args[: len(value_avals)], args[len(value_avals) :]
        cotangents = merge(nonzero_cts, cts, map(Zero, zero_avals))
        constants = [*closed.consts, *values]
        results = transpose_jaxpr(closed.jaxpr, constants, cotangents, linear, wanted)
        nonzero_out[:], found = without_zeros(_instantiated(results, instantiate))
        return found

    jaxpr = stage(function, [*value_avals, *ct_avals], derived_info(closed, "transpose"))
    return Transposition(jaxpr, nonzero_out)


class Batched(NamedTuple):
    """What `batch_of` makes of a jaxpr.

    Attributes:
        jaxpr: from batched arguments to results.
        out_dims: the batch dimension of each result: 0 or None.
    """

    jaxpr: ClosedJaxpr
    out_dims: list[int | None]

    @property
    def batched(self) -> Flags:
        """The results that have a batch dimension."""
        return tuple([d is not None for d in self.out_dims])


@remembered
def batch_of(
    closed: ClosedJaxpr,
    size: int,
    dims: tuple[int | None, ...],
    instantiate: Flags | None = None,
) -> Batched:
    """The jaxpr of a jaxpr's results for every element of a batch.

    Args:
        closed: the jaxpr.
        size: of the batch.
        dims: the batch dimension of each argument, None where it has none.
        instantiate: the results that are to have a batch dimension even if their elements are
            equal.
    """
    out_dims: list[int | None] = []

    def function(*args: Any) -> list[Any]:
        outs, found = batch_flat(function_of(closed), args, dims, size)
        batched = [
            d is not None or (instantiate is not None and instantiate[i])
            for i, d in enumerate(found)
        ]
        out_dims[:] = [0 if b else None for b in batched]
        return [
            place_batch(o, d, size, 0) if b else o
            for o, d, b in zip(outs, found, batched, strict=True)
        ]

    avals = [
        a if d is None else batched_aval(a, size, d)
        for a, d in zip(closed.in_avals, dims, strict=True)
    ]
    return Batched(stage(function, avals, derived_info(closed, "vmap")), out_dims)


def with_order(
    closed: ClosedJaxpr, arguments: Sequence[Any], results: Sequence[int] | None = None
) -> ClosedJaxpr:
    """A jaxpr with its arguments and results in another order.

    Args:
        closed: the jaxpr.
        arguments: for each argument of the new one, its number in the given one, or the aval of an
            argument that is not used.
        results: the same for results, which may be left out or repeated.
    """
    return _with_order(closed, tuple(arguments), None if results is None else tuple(results))


@remembered
def _with_order(
    closed: ClosedJaxpr, arguments: tuple[Any, ...], results: tuple[int, ...] | None
) -> ClosedJaxpr:
    jaxpr = closed.jaxpr
    invars = [jaxpr.invars[i] if type(i) is int else Var(i) for i in arguments]
    outvars = jaxpr.outvars if results is None else [jaxpr.outvars[i] for i in results]
    debug = jaxpr.debug_info
    if debug is not None and debug.argument_names is not None:
        debug = DebugInfo(debug.traced_for, debug.function, debug.location)
    return ClosedJaxpr(
        jaxpr.replace(invars=invars, outvars=outvars, debug_info=debug), closed.consts
    )
