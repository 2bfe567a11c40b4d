"""Forward-mode differentiation: each value travels with its tangent."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dovetail._core.base import config
from dovetail._core.base.strictness import strictness
from dovetail._core.basis.structural import instantiate_zeros
from dovetail._core.ir.avals import aval_of
from dovetail._core.trace.state import Trace, set_jit_key, state, use_trace
from dovetail._core.trace.tracer import Tracer
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.trace.custom_rules import CustomRuleCall
    from dovetail._core.trace.primitive import Primitive


class PrimalTracer(Tracer):
    """A primal value; subclasses add what a differentiating trace knows about its variation."""

    __slots__ = ("primal",)

    def __init__(self, trace: Trace, primal: Any) -> None:
        self._trace = trace
        self.aval = aval_of(primal)
        self.primal = primal

    def concrete(self) -> Any:
        return self.primal.concrete() if isinstance(self.primal, Tracer) else self.primal

    def __int__(self) -> int:
        constant = self._constant()
        return super().__int__() if constant is None else int(constant)

    def __index__(self) -> int:
        constant = self._constant()
        return super().__index__() if constant is None else operator.index(constant)

    def _constant(self) -> Any:
        """The value where the policy lets it be taken for a constant; otherwise None."""
        return None if strictness().varying_values_are_unknown else self.concrete()


class JVPTracer(PrimalTracer):
    """A primal value and its tangent."""

    __slots__ = ("tangent",)

    def __init__(self, trace: JVPTrace, primal: Any, tangent: Any) -> None:
        super().__init__(trace, primal)
        self.tangent = tangent


class JVPTrace(Trace):
    """Applies the jvp rule of every primitive that meets a tangent."""

    __slots__ = ()
    scope_name = "jvp"

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        primals = []
        tangents = []
        nonzero = False
        for arg in args:
            if type(arg) is JVPTracer and arg._trace is self:
                primals.append(arg.primal)
                tangents.append(arg.tangent)
                nonzero = True
            else:
                primals.append(arg)
                tangents.append(None)
        parent = self.parent
        assert parent is not None
        previous = state.trace
        try:
            state.trace = parent
            set_jit_key(parent.key)
            if not nonzero:
                return parent.process(primitive, args, params)
            for i, tangent in enumerate(tangents):
                if tangent is None:
                    tangents[i] = Zero.of(primals[i])
            if not primitive.accepts_zeros:
                tangents = [instantiate_zeros(t) for t in tangents]
            out, tangent = primitive.jvp(primals, tangents, **params)
        finally:
            state.trace = previous
            set_jit_key(previous.key)
        if primitive.multiple_results:
            return [
                o if type(t) is Zero else JVPTracer(self, o, t)
                for o, t in zip(out, tangent, strict=True)
            ]
        return out if type(tangent) is Zero else JVPTracer(self, out, tangent)

    def process_custom_rule(self, call: CustomRuleCall, args: Sequence[Any]) -> list[Any]:
        pairs = [self.split(arg) for arg in args]
        primals, tangents = [p for p, _ in pairs], [t for _, t in pairs]
        parent = self.parent
        assert parent is not None
        with use_trace(parent):
            if all(type(t) is Zero for t in tangents):
                return parent.process_custom_rule(call, primals)
            outs, out_tangents = call.differentiate(primals, tangents)
        return [
            o if type(t) is Zero else JVPTracer(self, o, t)
            for o, t in zip(outs, out_tangents, strict=True)
        ]

    def split(self, value: Any) -> tuple[Any, Any]:
        """The primal and tangent of a value."""
        if type(value) is JVPTracer and value._trace is self:
            return value.primal, value.tangent
        return value, Zero.of(value)

    def describe(self, tracer: Any) -> str:
        if isinstance(tracer.primal, Tracer):
            return f"a differentiated value (jvp) of {tracer.primal.origin()}"
        return "a value being differentiated by jvp"


def jvp_flat(
    function: Callable[..., Sequence[Any]], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Results of a function of flat arguments, and their tangents.

    Args:
        function: takes the primals, returns a sequence.
        primals: values.
        tangents: one for each primal, a `Zero` if it does not vary.
    """
    parent = state.trace
    trace = JVPTrace(parent)
    arguments = [
        p if type(t) is Zero else JVPTracer(trace, p, t)
        for p, t in zip(primals, tangents, strict=True)
    ]
    try:
        with use_trace(trace):
            results = function(*arguments)
        pairs = [trace.split(r) for r in results]
    finally:
        trace.finished = True
    if config.check_tracer_leaks.value:
        from dovetail._core.trace.leaks import check_leaks  # deferred: rarely asked for

        del arguments, results
        check_leaks(trace, getattr(function, "aux", None))
    return [p for p, _ in pairs], [t for _, t in pairs]
