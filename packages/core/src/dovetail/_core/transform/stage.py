"""Staging: run a function on tracers and record a jaxpr."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final
from weakref import WeakValueDictionary

import numpy as np

from dovetail._core.base import caches, config, dtypes
from dovetail._core.base.bindings import get_traceback
from dovetail._core.base.errors import NonArrayArgumentError, UnexpectedTracerError
from dovetail._core.base.source import describe
from dovetail._core.basis.manual_axes import cast_to, implied_casts, is_done
from dovetail._core.basis.structural import instantiate_zeros
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import (
    Atom,
    ClosedJaxpr,
    DebugInfo,
    Effects,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    no_effects,
)
from dovetail._core.ir.manual_axis_type import ManualAxisType
from dovetail._core.trace.current_mesh import undivided_if_manual
from dovetail._core.trace.manual_axes import cast_refusal
from dovetail._core.trace.mutable_references import Captured, Ref, RefState
from dovetail._core.trace.primitive import AxesDiffer, Primitive
from dovetail._core.trace.scopes import NamedScopes
from dovetail._core.trace.state import Trace, state, use_trace
from dovetail._core.trace.tracer import Tracer
from dovetail._core.trace.zeros import Zero

#: What to do where a program is derived, in which only rules of the user's run.
_ADVICE_FOR_RULES: Final = {
    "linearize": "it is used by a rule of a function that does not use it itself when it is traced "
    "inside of the gradient. Pass the reference to that function as an argument",
    "transpose": "it is used by the backward rule of a function that is traced inside of the "
    "gradient. Compile the gradient instead, jit(grad(f)) and not grad(jit(f)), or return what "
    "the rule would write as a cotangent",
}
_ADVICE_FOR_RULES["jvp"] = _ADVICE_FOR_RULES["linearize"]


class StageTracer(Tracer):
    """A variable of a jaxpr being recorded."""

    __slots__ = ("variable",)

    def __init__(self, trace: StageTrace, aval: Any, variable: Var) -> None:
        self._trace = trace
        self.aval = aval
        self.variable = variable


class StageTrace(Trace):
    """Records every primitive as an equation.

    Args:
        parent: the trace that was current before.
        debug_info: what is being traced, for messages.
    """

    __slots__ = (
        "_constants",
        "captured",
        "constants",
        "constvars",
        "debug_info",
        "effects",
        "eqns",
        "invars",
        "scopes_around",
    )
    scope_name = None

    def __init__(self, parent: Trace | None, debug_info: DebugInfo) -> None:
        super().__init__(parent)
        self.debug_info = debug_info
        self.invars: list[Var] = []
        self.eqns: list[JaxprEqn] = []
        self.constvars: list[Var] = []
        self.constants: list[Any] = []
        self.effects: Effects = no_effects
        #: The outer mutable references in use; None if there must not be any.
        self.captured: Captured | None = None
        #: How many of the scope names belong to scopes around the use of the jaxpr.
        self.scopes_around = 0
        # Each value is stored too, to keep it alive, so that its id is not reused.
        self._constants: dict[int, tuple[Var, Any]] = {}

    def argument(self, aval: Any) -> StageTracer:
        """A new parameter."""
        var = Var(aval)
        self.invars.append(var)
        return StageTracer(self, aval, var)

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        avals = []
        invars: list[Atom] = []
        for arg in args:
            if type(arg) is StageTracer and arg._trace is self:
                invars.append(arg.variable)
                avals.append(arg.aval)
            else:
                atom = self.atom(arg, primitive)
                invars.append(atom)
                avals.append(atom.aval)
        inferred = primitive.infer(tuple(avals), params)
        if type(inferred) is AxesDiffer:
            return self._process_alike(
                primitive, args, {**params, **inferred.changed}, inferred.wanted
            )
        effects = primitive.effects(*avals, **params) if primitive.has_effects else no_effects
        if effects:
            self.effects |= effects
        place = state.place
        if place is None:
            place = get_traceback()
        elif type(place) is NamedScopes:
            place = place.place(self.scopes_around)
        if not primitive.multiple_results:
            var = Var(inferred)
            self.eqns.append(JaxprEqn(invars, (var,), primitive, params, effects, place))
            return StageTracer(self, inferred, var)
        variables = [Var(aval) for aval in inferred]
        self.eqns.append(JaxprEqn(invars, variables, primitive, params, effects, place))
        return [StageTracer(self, var.aval, var) for var in variables]

    def _process_alike(
        self,
        primitive: Primitive,
        args: Sequence[Any],
        params: dict[str, Any],
        wanted: Sequence[ManualAxisType],
    ) -> Any:
        """Apply `primitive` to operands that are cast along the manual axes of a mesh."""
        operands = []
        for arg, axes in zip(args, wanted, strict=True):
            atom = self.atom(arg, primitive)
            if axes is atom.aval.manual_axis_type:
                operands.append(arg)
                continue
            typed = atom.aval.update(manual_axis_type=axes)
            refusal = cast_refusal(primitive.name, atom.aval, axes)
            if refusal and not self._is_zero(atom):
                raise refusal
            if type(atom) is Literal:
                operands.append(Literal(atom.val, typed))
                continue
            if refusal:
                operands.append(instantiate_zeros(Zero(typed)))
                continue
            if not config.auto_pcast.value:
                kind, missing = next(implied_casts(atom.aval.manual_axis_type, axes))
                raise ValueError(
                    f"operands of {primitive.name} vary in different ways over the mesh, and the "
                    f"option auto_pcast is off: {atom.aval} has to be cast with lax.pcast(x, "
                    f"{tuple(sorted(map(str, missing)))}, to={kind!r})"
                )
            operands.append(cast_to(arg, axes))
        if is_done(primitive, params):
            return operands[0]
        return self.process(primitive, operands, params)

    def _is_zero(self, atom: Atom) -> bool:
        """Whether a value is known to be zero, which is a part of any sum."""
        while type(atom) is not Literal:
            if atom in self.constvars:
                value = self.constants[self.constvars.index(atom)]
                at_hand = isinstance(value, np.ndarray) or (
                    not isinstance(value, Tracer) and not atom.aval.shape
                )
                return at_hand and not np.asarray(value).any()
            eqn = next((eqn for eqn in reversed(self.eqns) if atom in eqn.outvars), None)
            if eqn is None or not eqn.primitive.moves_first:
                return False
            atom = eqn.invars[0]
        return not np.any(atom.val)

    def atom(self, value: Any, primitive: Primitive | None = None) -> Atom:
        """The variable or literal that stands for `value` in this jaxpr."""
        if type(value) is Literal:
            return value
        if isinstance(value, Tracer):
            if value._trace is self:
                var: Var = value.variable  # type: ignore[attr-defined]
                return var
            if value._trace.finished or not self.is_inside(value._trace):
                raise UnexpectedTracerError(value)
        entry = self._constants.get(id(value))
        if entry is not None:
            return entry[0]
        try:
            aval = aval_of(value)
        except NonArrayArgumentError as error:
            name = "the function's result" if primitive is None else f"primitive {primitive.name!r}"
            raise NonArrayArgumentError(f"{name}: {error}") from None
        if aval.division is not None:
            aval = undivided_if_manual(aval)
        literal = as_literal(value, aval)
        if literal is not None:
            return literal
        constant = _frozen(value, aval.dtype) if isinstance(value, np.ndarray) else value
        entry = self._constants.get(id(constant))
        if entry is not None:
            self._constants[id(value)] = (entry[0], value)
            return entry[0]
        var = Var(aval)
        self._constants[id(value)] = (var, value)
        self._constants[id(constant)] = (var, constant)
        self.constvars.append(var)
        self.constants.append(constant)
        return var

    def cell_of(self, ref: Ref, writing: bool) -> RefState:
        assert self.parent is not None
        outer = ref.ref_state
        if outer.trace is self:
            return outer
        ref_state = None if self.captured is None else self.captured.ref_states.get(ref)
        # Even if already captured: a trace in between may only allow reading.
        self.parent.cell_of(ref, writing)
        if self.captured is None:
            info = self.debug_info
            advice = _ADVICE_FOR_RULES.get(
                info.traced_for,
                "that takes functions of their arguments alone. Pass the value, ref[...], as an "
                "argument, and write what is returned",
            )
            raise ValueError(
                f"{ref.described()} cannot be used within {info.function}, which is traced for "
                f"{info.traced_for}: {advice}"
            )
        if ref_state is None:
            ref_state = self.captured.ref_states[ref] = RefState(
                self, self.argument(ref.aval.inner_aval), lent=True
            )
        return ref_state

    def to_jaxpr(self, results: Iterable[Any]) -> tuple[Jaxpr, list[Any]]:
        """The jaxpr that computes `results`, and the values of its constvars."""
        outvars = [self.atom(result) for result in results]
        jaxpr = Jaxpr(
            self.constvars, self.invars, outvars, self.eqns, self.effects, self.debug_info
        )
        if config.enable_checks.value:
            from dovetail._core.ir.check import check_jaxpr  # deferred: rarely asked for

            check_jaxpr(jaxpr)
        return jaxpr, self.constants

    def sources(self, values: Sequence[Any]) -> list[int | None]:
        """For each constant, the number of the value that it is, or None."""
        entries = [self._constants.get(id(value)) for value in values]
        numbers: dict[Var, int] = {}
        for i, entry in enumerate(entries):
            if entry is not None:
                numbers.setdefault(entry[0], i)
        return [numbers.get(var) for var in self.constvars]

    def describe(self, tracer: Any) -> str:
        var = tracer.variable
        for index, invar in enumerate(self.invars):
            if invar is var:
                return self.debug_info.describe_argument(index)
        for eqn in self.eqns:
            if any(out is var for out in eqn.outvars):
                where = describe(eqn.traceback)
                return (
                    "a result of the operation "
                    f"{eqn.primitive.name}{f' at {where}' if where else ''}, in "
                    f"{self.debug_info.function} traced for {self.debug_info.traced_for}"
                )
        return f"a constant of {self.debug_info.function}, traced for {self.debug_info.traced_for}"

    def traced_by(self, tracer: Any) -> str:
        info = self.debug_info
        for index, invar in enumerate(self.invars):
            if invar is tracer.variable:
                name = info.argument_name(index)
                return f"{info.traced_for}, the argument {name} of {info.function}"
        for eqn in self.eqns:
            if any(out is tracer.variable for out in eqn.outvars):
                return f"{info.traced_for}, from {eqn.primitive.name} at {describe(eqn.traceback)}"
        return info.traced_for


# Copies of captured arrays, by the id of the array and by their own: programs that capture the same
# array share one copy.
_copies: Final[WeakValueDictionary[int, np.ndarray[Any, Any]]] = WeakValueDictionary()
caches.register(_copies.clear)


def _frozen(array: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """A copy of a captured array: writing to it later must not change the traced program."""
    cached = _copies.get(id(array))
    if cached is array:
        return cached
    copied = np.array(array, dtype=dtype, order="C")
    # The bits must be equal: the array may have been written to since, or be a different one.
    if (
        cached is not None
        and cached.dtype == copied.dtype
        and cached.shape == copied.shape
        and copied.itemsize
        and np.array_equal(cached.reshape(-1).view(np.uint8), copied.reshape(-1).view(np.uint8))
    ):
        return cached
    copied.setflags(write=False)
    _copies[id(array)] = _copies[id(copied)] = copied
    return copied


def is_copy_of(constant: Any, value: Any) -> bool:
    """Whether a constant of a program stands for a value that it has captured."""
    is_host = isinstance(value, np.ndarray)
    return value is constant or (is_host and _copies.get(id(value)) is constant)


def as_literal(value: Any, aval: Any) -> Literal | None:
    """A `Literal` for host scalars, None for everything else."""
    if type(value) in (bool, int, float, complex):
        return Literal(value, aval)
    if (
        isinstance(value, (np.generic, np.ndarray))
        and value.ndim == 0
        and aval.dtype != dtypes.float0
    ):
        return Literal(np.asarray(value, aval.dtype)[()], aval)
    if isinstance(value, (bool, int, float, complex)) and not isinstance(value, np.generic):
        return Literal(value, aval)
    return None


def stage(
    function: Callable[..., Sequence[Any]],
    avals: Sequence[Any],
    debug_info: DebugInfo,
    captured: Captured | None = None,
) -> ClosedJaxpr:
    """Record a function of flat arguments as a jaxpr.

    Args:
        function: takes one tracer for each aval, returns a sequence of results.
        avals: avals of the arguments.
        debug_info: what is being traced, for messages.
        captured: receives the outer mutable references that the function uses. Their values become
            trailing arguments, and the last values of those that it changes become trailing
            results. By default, using one is an error.

    Returns:
        The jaxpr, closed over its constants, which may be tracers of outer transformations.
    """
    trace = StageTrace(state.trace, debug_info)
    trace.captured = captured
    tracers = [trace.argument(aval) for aval in avals]
    try:
        with use_trace(trace):
            state.place = None
            results = function(*tracers)
            if captured is not None:
                results = [*results, *captured.results()]
            jaxpr, constants = trace.to_jaxpr(results)
    finally:
        trace.finished = True
    closed = ClosedJaxpr(jaxpr, constants)
    if config.check_tracer_leaks.value:
        from dovetail._core.trace.leaks import check_leaks  # deferred: rarely asked for

        del tracers, jaxpr, constants, results
        check_leaks(trace)
    return closed


def replace_constants(closed: ClosedJaxpr) -> tuple[Jaxpr, list[Any]]:
    """The jaxpr with its constants as leading parameters, and their values."""
    jaxpr = closed.jaxpr
    if not jaxpr.constvars:
        return jaxpr, []
    debug = jaxpr.debug_info
    if debug is not None and debug.argument_names is not None:
        names = tuple(f"a captured constant ({v.aval.short_name()})" for v in jaxpr.constvars)
        debug = DebugInfo(
            debug.traced_for, debug.function, debug.location, names + debug.argument_names
        )
    opened = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars], debug_info=debug)
    return opened, closed.consts
