"""Jaxprs derived from jaxprs, for tangents, Taylor series, cotangents and batches.

These functions transform the bodies of calls, branches and loops. Their results are cached for as
long as the original jaxpr lives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import wraps
from itertools import repeat
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from dovetail._core.base.config import enable_x64
from dovetail._core.base.flags import Flags, merge, partition
from dovetail._core.base.limits import deeper
from dovetail._core.base.source import describe
from dovetail._core.basis.manual_axes import cast_to, vary_like
from dovetail._core.basis.resharding import divided_like
from dovetail._core.basis.structural import instantiate_zeros
from dovetail._core.ir.avals import ShapedArray, aval_of
from dovetail._core.ir.division import Division
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo, DropVar, JaxprEqn, Literal, Var
from dovetail._core.ir.manual_axis_type import ManualAxisType, invarying
from dovetail._core.ir.walk import dce, eval_jaxpr, last_uses
from dovetail._core.trace.divisions import is_lenient
from dovetail._core.trace.named_axes import BatchAxis, may_name
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.scopes import replaying
from dovetail._core.trace.state import state
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
#: Computes an equation: takes the primitive, its arguments and parameters; returns its results.
Compute = Callable[[Primitive, Sequence[Any], Mapping[str, Any]], Any]


def remembered(function: F) -> F:
    """Cache results of a function of a closed jaxpr for as long as the jaxpr lives."""

    @wraps(function)
    def remember(closed: ClosedJaxpr, *arguments: Any) -> Any:
        memory, key = closed.memory, (function, *arguments)
        cached = memory.get(key)
        if cached is None:
            cached = memory[key] = function(closed, *arguments)
        return cached

    return remember  # type: ignore[return-value]


def dce_closed(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A jaxpr without dead code, but with all its arguments."""
    # A jaxpr in its own cache would be a cycle, freed only by the garbage collector.
    reduced = _reduced(closed)
    return closed if reduced is None else reduced


@remembered
def _reduced(closed: ClosedJaxpr) -> ClosedJaxpr | None:
    jaxpr, _ = dce(closed.jaxpr, instantiate=True)
    return None if jaxpr is closed.jaxpr else ClosedJaxpr(jaxpr, closed.consts)


def function_of(closed: ClosedJaxpr) -> Callable[..., list[Any]]:
    """A jaxpr as a function of flat arguments.

    It skips dead code. Whatever it records keeps the places of the jaxpr's equations in the user's
    code, and the names of their scopes.
    """

    def function(*args: Any) -> list[Any]:
        with replaying() as replay:
            return eval_jaxpr(dce_closed(closed).jaxpr, closed.consts, *args, before=replay.at)

    return function


def derived_info(closed: ClosedJaxpr, traced_for: str) -> DebugInfo:
    """Debug information for a jaxpr derived from another."""
    info = closed.jaxpr.debug_info
    if info is None:
        return DebugInfo(traced_for, "a function")
    return DebugInfo(traced_for, info.function, info.location)


def hoist_consts(closed: ClosedJaxpr) -> tuple[ClosedJaxpr, list[Any]]:
    """A jaxpr without constants, and the constants that are now its leading arguments.

    The result is the same object for the same jaxpr.
    """
    # A jaxpr in its own cache would be a cycle, freed only by the garbage collector.
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
    dependent: set[Any] = set(partition(flags, closed.jaxpr.invars)[0])
    for eqn in closed.jaxpr.eqns:
        operand_flags = [type(v) is not Literal and v in dependent for v in eqn.invars]
        if not any(operand_flags):
            continue
        if eqn.primitive.has_dependencies:
            depends = eqn.primitive.dependencies(operand_flags, **eqn.params)
            dependent.update(v for v, d in zip(eqn.outvars, depends, strict=True) if d)
        else:
            dependent.update(eqn.outvars)
    return [type(v) is not Literal and v in dependent for v in closed.jaxpr.outvars]


@remembered
@deeper()
def forwarding_of(closed: ClosedJaxpr) -> list[int | None]:
    """For each result of a jaxpr, the number of the argument that it always is; None for none."""
    numbers: dict[Any, int] = {v: i for i, v in enumerate(closed.jaxpr.invars)}
    for eqn in closed.jaxpr.eqns:
        if eqn.primitive.has_forwarding:
            places = eqn.primitive.forwarding(**eqn.params)
            for v, place in zip(eqn.outvars, places, strict=True):
                operand = None if place is None else eqn.invars[place]
                if type(operand) is Var and operand in numbers:
                    numbers[v] = numbers[operand]
    return [numbers.get(v) if type(v) is Var else None for v in closed.jaxpr.outvars]


class _Evaluation:
    """How `evaluate` is computing equations, nested ones included.

    `enable_x64` and `errors` (NumPy's error handling) have their values from outside, which apply
    while Python functions are called.
    """

    __slots__ = ("compute", "enable_x64", "errors", "place", "platform")

    def __init__(
        self, compute: Compute | None, platform: str, enable_x64: bool, errors: Any
    ) -> None:
        self.compute = compute
        self.platform = platform
        self.enable_x64 = enable_x64
        self.errors = errors
        self.place: Any = None

    def results(self, eqn: JaxprEqn, operands: Sequence[Any]) -> Any:
        """The results of an equation of the running program."""
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
    """The platform that `evaluate` computes for; ``"cpu"`` outside it."""
    evaluation = _evaluation.get()
    return "cpu" if evaluation is None else evaluation.platform


def evaluation_place() -> str:
    """The user's line whose equation the `compute` of `evaluate` is computing; empty outside it."""
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
    """Compute a jaxpr equation by equation with its primitives' references: an interpreter.

    A backend without a compiler runs programs with it. Callbacks and printing happen in order,
    before it returns. Bodies of calls, branches and loops are computed in the same way. It may run
    in any thread: dtypes are those of the program. NumPy does not warn of infinities and NaNs,
    since they are valid results.

    Args:
        closed: the program.
        args: its arguments, NumPy arrays.
        platform: the platform that it runs for, which determines what `lax.platform_dependent`
            chooses.
        compute: computes an equation in place of its reference: a function of the primitive, its
            arguments (a sequence of NumPy arrays or scalars) and its parameters (a mapping). It
            returns what the reference would: one array, or a sequence if
            ``primitive.multiple_results``; or `NotImplemented` to leave the equation to the
            reference.

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
        # The program's dtypes are fixed, whatever this thread's option says about new ones.
        with enable_x64(True), np.errstate(all="ignore"):
            return reference_of(closed, args)
    finally:
        _evaluation.reset(token)


@remembered
def _ends(closed: ClosedJaxpr) -> list[list[Any]]:
    return last_uses(closed.jaxpr)


def reference_of(closed: ClosedJaxpr, args: Sequence[Any]) -> list[Any]:
    """The results of a jaxpr in plain NumPy.

    Equations are computed by the references of their primitives, or by `compute` of `evaluate`.
    """
    evaluation = _evaluation.get()
    jaxpr = closed.jaxpr
    values: dict[Any, Any] = dict(zip(jaxpr.constvars, closed.consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))

    def read(atom: Any) -> Any:
        if type(atom) is not Literal:
            return values[atom]
        # NumPy would give a Python number 64 bits.
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
        pairs = zip(eqn.outvars, outs, strict=True)
        values.update((v, result) for v, result in pairs if type(v) is not DropVar)
        del operands, out, outs
        for v in ended:
            del values[v]
    return [read(v) for v in jaxpr.outvars]


class Jvp(NamedTuple):
    """The result of `jvp_of`.

    Attributes:
        jaxpr: maps primals and nonzero tangents to results and their nonzero tangents.
        nonzero_out: which results have a tangent.
    """

    jaxpr: ClosedJaxpr
    nonzero_out: list[bool]


@remembered
def jvp_of(closed: ClosedJaxpr, nonzero: Flags, instantiate: Flags | None = None) -> Jvp:
    """A jaxpr that computes another jaxpr's results and their tangents.

    Args:
        closed: the original jaxpr.
        nonzero: which arguments have a tangent.
        instantiate: which results get one even if it is zero.
    """
    nonzero_out: list[bool] = []

    def function(*args: Any) -> list[Any]:
        primals, nonzero_tangents = args[: len(nonzero)], args[len(nonzero) :]
        tangents = with_zeros(nonzero, nonzero_tangents, primals)
        outs, out_tangents = jvp_flat(function_of(closed), primals, tangents)
        nonzero_out[:], nonzero_out_tangents = without_zeros(
            _instantiated(out_tangents, instantiate, closed.out_avals)
        )
        return [*outs, *nonzero_out_tangents]

    avals = closed.in_avals
    tangent_avals = [a.tangent() for a in partition(nonzero, avals)[0]]
    jaxpr = stage(function, [*avals, *tangent_avals], derived_info(closed, "jvp"))
    return Jvp(jaxpr, nonzero_out)


def _instantiated(
    tangents: list[Any], instantiate: Flags | None, avals: Sequence[Any]
) -> list[Any]:
    """Tangents or cotangents, the flagged ones as values even if zero.

    Along the manual axes of a mesh and over explicit ones they are made what the avals say.
    """
    if instantiate is not None:
        tangents = [
            instantiate_zeros(t) if i else t for t, i in zip(tangents, instantiate, strict=True)
        ]
    if all(a.manual_axis_type is invarying and a.division is None for a in avals):
        return tangents
    return [
        t if type(t) is Zero else divided_like(vary_like(t, aval), aval)
        for t, aval in zip(tangents, avals, strict=True)
    ]


class Taylor(NamedTuple):
    """The result of `taylor_of`.

    Attributes:
        jaxpr: maps primals and nonzero Taylor coefficients to results and their nonzero
            coefficients, grouped by result.
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
    """A jaxpr that computes another jaxpr's results and their Taylor coefficients.

    Args:
        closed: the original jaxpr.
        order: the order of the last coefficient.
        nonzero: for each argument, which of its coefficients are passed; the others vanish.
        instantiate: for each result, which coefficients it gets even if they vanish.
    """
    nonzero_out: list[Flags] = []

    def function(*args: Any) -> list[Any]:
        primals, nonzero_terms = args[: len(nonzero)], iter(args[len(nonzero) :])
        terms = [
            [next(nonzero_terms) if flag else Zero.of(p) for flag in flags]
            for p, flags in zip(primals, nonzero, strict=True)
        ]
        outs, out_terms = taylor_flat(function_of(closed), primals, terms, order)
        if instantiate is not None:
            out_terms = [
                _instantiated(result_terms, flags, [aval] * len(flags))
                for result_terms, flags, aval in zip(
                    out_terms, instantiate, closed.out_avals, strict=True
                )
            ]
        nonzero_out[:] = nonzero_in(out_terms)
        return [
            *outs,
            *(t for result_terms in out_terms for t in result_terms if type(t) is not Zero),
        ]

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
    """The rule `taylor` for a primitive that calls a jaxpr.

    Args:
        closed: the jaxpr.
        operands: curves of its arguments.
        call: calls another jaxpr in the same way. Its leading arguments are the primals.
    """

    def truncated(order: int) -> list[list[Any]]:
        terms = terms_of(operands, order)
        derived = taylor_of(closed, order, nonzero_in(terms))
        nonzero_terms = [t for operand_terms in terms for t in operand_terms if type(t) is not Zero]
        outs = call(derived.jaxpr, [*(x[0] for x in operands), *nonzero_terms])
        return by_order(outs, derived.nonzero_out)

    return up_to(truncated)


class Linearization(NamedTuple):
    """A jaxpr split in two by `linearization_of`.

    Attributes:
        primal: maps primals to results and computed residuals.
        linear: maps residuals and nonzero tangents to nonzero tangents of results.
        forwarded: for each residual, the number of the argument that it is, or None if it is
            computed.
        nonzero_out: which results have a tangent.
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
    """A jaxpr split into one that computes results and residuals, and one linear in tangents.

    Args:
        closed: the jaxpr.
        nonzero: which arguments have a tangent.
        instantiate: which results get one even if it is zero.
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
    """The result of `transposition_of`.

    Attributes:
        jaxpr: maps nonlinear arguments and nonzero cotangents of results to nonzero cotangents of
            the linear arguments.
        nonzero_out: which linear arguments have a cotangent.
    """

    jaxpr: ClosedJaxpr
    nonzero_out: list[bool]

    def cotangents(self, linear: Sequence[bool], outs: Sequence[Any]) -> list[Any]:
        """A cotangent for each argument, None if there is none, from the results of `jaxpr`.

        Args:
            linear: which arguments the original jaxpr is linear in.
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
    """A jaxpr that computes the cotangents of another jaxpr's linear arguments.

    Args:
        closed: the original jaxpr.
        linear: which arguments it is linear in.
        nonzero_cts: which results have a cotangent.
        instantiate: for each linear argument, whether it gets a cotangent even if it is zero.
        wanted: for each argument, whether its cotangent is wanted; all are by default.
    """
    nonzero_out: list[bool] = []
    linear_avals, value_avals = partition(linear, closed.in_avals)
    wanted_avals = [a.cotangent() for a in linear_avals]
    ct_avals, zero_avals = partition(nonzero_cts, [a.cotangent() for a in closed.out_avals])

    def function(*args: Any) -> list[Any]:
        values, cts = args[: len(value_avals)], args[len(value_avals) :]
        cotangents = merge(nonzero_cts, cts, map(Zero, zero_avals))
        constants = [*closed.consts, *values]
        results = transpose_jaxpr(closed.jaxpr, constants, cotangents, linear, wanted)
        nonzero_out[:], nonzero_results = without_zeros(
            _instantiated(results, instantiate, wanted_avals)
        )
        return nonzero_results

    jaxpr = stage(function, [*value_avals, *ct_avals], derived_info(closed, "transpose"))
    return Transposition(jaxpr, nonzero_out)


class Batched(NamedTuple):
    """The result of `batch_of`.

    Attributes:
        jaxpr: maps batched arguments to results.
        out_dims: the batch dimension of each result: 0 or None.
    """

    jaxpr: ClosedJaxpr
    out_dims: list[int | None]

    @property
    def batched(self) -> Flags:
        """Which results have a batch dimension."""
        return tuple([d is not None for d in self.out_dims])


def batch_of(
    closed: ClosedJaxpr,
    size: int,
    dims: tuple[int | None, ...],
    instantiate: Flags | None = None,
) -> Batched:
    """A jaxpr that computes another jaxpr's results for every element of a batch.

    The batch is that of the trace whose rule is running.

    Args:
        closed: the original jaxpr.
        size: the size of the batch.
        dims: the batch dimension of each argument, None if it has none.
        instantiate: which results get a batch dimension even if their elements are equal.
    """
    axis = state.batch_axis
    if axis is None or axis.size != size:
        axis = BatchAxis(None, size)
    elif axis.name is not None and not may_name(closed.jaxpr, axis.name):
        axis = BatchAxis(None, size, axis.spmd_axis_name)
    return _batch_of(closed, axis, dims, instantiate)


def named_batch_of(closed: ClosedJaxpr, axis: BatchAxis, dims: tuple[int | None, ...]) -> Batched:
    """A jaxpr that computes another one for every element along a named axis.

    Args:
        closed: the original jaxpr.
        axis: the axis.
        dims: the batch dimension of each argument, None if it has none.

    Returns:
        The jaxpr; all its results have a batch dimension, the first.
    """
    return _batch_of(closed, axis, dims, (True,) * len(closed.out_avals))


@remembered
def _batch_of(
    closed: ClosedJaxpr,
    axis: BatchAxis,
    dims: tuple[int | None, ...],
    instantiate: Flags | None,
) -> Batched:
    size = axis.size
    out_dims: list[int | None] = []

    def function(*args: Any) -> list[Any]:
        outs, result_dims = batch_flat(function_of(closed), args, dims, size, axis)
        batched = [
            d is not None or (instantiate is not None and instantiate[i])
            for i, d in enumerate(result_dims)
        ]
        out_dims[:] = [0 if b else None for b in batched]
        return [
            place_batch(o, d, size, 0) if b else o
            for o, d, b in zip(outs, result_dims, batched, strict=True)
        ]

    avals = [
        a if d is None else batched_aval(a, size, d)
        for a, d in zip(closed.in_avals, dims, strict=True)
    ]
    return Batched(stage(function, avals, derived_info(closed, "vmap")), out_dims)


def varying(
    closed: ClosedJaxpr,
    taken: Sequence[ManualAxisType],
    given: Sequence[ManualAxisType] | None = None,
) -> ClosedJaxpr:
    """A jaxpr for arguments that are something else along the manual axes of a mesh.

    Args:
        closed: the jaxpr.
        taken: what each argument is.
        given: what each result is cast to, if it is not more already.
    """
    own = [a.manual_axis_type for a in closed.in_avals]
    if any(a is not b for a, b in zip(own, taken, strict=False)):
        closed = _varying(closed, tuple(taken), ())
        own = list(taken)
    if given is not None and any(
        a.manual_axis_type | b is not a.manual_axis_type
        for a, b in zip(closed.out_avals, given, strict=False)
    ):
        closed = _varying(closed, tuple(own), tuple(given))
    return closed


@remembered
def _varying(
    closed: ClosedJaxpr, taken: tuple[ManualAxisType, ...], given: tuple[ManualAxisType, ...]
) -> ClosedJaxpr:
    def function(*args: Any) -> list[Any]:
        outs = function_of(closed)(*args)
        if given:
            outs = [
                cast_to(o, aval_of(o).manual_axis_type | axes)
                for o, axes in zip(outs, given, strict=True)
            ]
        return outs

    avals = [
        a if axes is a.manual_axis_type else a.update(manual_axis_type=axes)
        for a, axes in zip(closed.in_avals, taken, strict=True)
    ]
    return stage(function, avals, derived_info(closed, "shard_map"))


def divided(
    closed: ClosedJaxpr,
    taken: Sequence[Division | None],
    given: Sequence[Division | None] | None = None,
) -> ClosedJaxpr:
    """A jaxpr whose arguments and results are divided in other ways over explicit axes of a mesh.

    Args:
        closed: the jaxpr.
        taken: how each argument is divided.
        given: how each result is divided; as follows from the arguments if None.
    """
    own = [a.division for a in closed.in_avals]
    if any(a is not b for a, b in zip(own, taken, strict=False)):
        closed = _redivided(closed, tuple(taken), None, is_lenient())
        own = list(taken)
    if given is not None and any(
        a.division is not b for a, b in zip(closed.out_avals, given, strict=False)
    ):
        closed = _redivided(closed, tuple(own), tuple(given), is_lenient())
    return closed


@remembered
def _redivided(
    closed: ClosedJaxpr,
    taken: tuple[Division | None, ...],
    given: tuple[Division | None, ...] | None,
    is_lenient: bool,  # part of the key: what is given up in derivatives is an error elsewhere
) -> ClosedJaxpr:
    def function(*args: Any) -> list[Any]:
        outs = function_of(closed)(*args)
        if given is None:
            return outs
        return [
            divided_like(o, aval.with_division(own)) if type(aval) is ShapedArray else o
            for o, aval, own in zip(outs, closed.out_avals, given, strict=True)
        ]

    avals = [
        a.with_division(own) if type(a) is ShapedArray else a
        for a, own in zip(closed.in_avals, taken, strict=True)
    ]
    return stage(function, avals, derived_info(closed, "types with shardings"))


def with_order(
    closed: ClosedJaxpr, arguments: Sequence[Any], results: Sequence[int] | None = None
) -> ClosedJaxpr:
    """A jaxpr with its arguments and results in another order.

    Args:
        closed: the jaxpr.
        arguments: for each argument of the new jaxpr, its number in the old one, or the aval of an
            unused argument.
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
