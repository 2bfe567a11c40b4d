"""Linearization: run a function once and record the linear function of its tangents.

The primal computation happens in the parent trace. The jvp rules run in a trace that sends
operations on tangents to a separate recording and all others to the parent. So the recording is
linear, and the primal values that it uses are its constants (the residuals).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dovetail._core.base import config
from dovetail._core.base.flags import merge
from dovetail._core.basis.manual_axes import vary_like
from dovetail._core.basis.resharding import divided_like
from dovetail._core.basis.structural import instantiate_zeros
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo
from dovetail._core.ir.manual_axis_type import invarying
from dovetail._core.trace.scopes import names_in
from dovetail._core.trace.state import Trace, set_jit_key, state, use_trace
from dovetail._core.trace.tracer import Tracer
from dovetail._core.trace.zeros import Zero, without_zeros
from dovetail._core.transform.jvp import PrimalTracer
from dovetail._core.transform.partial_evaluation import apply_part
from dovetail._core.transform.stage import StageTrace, StageTracer

if TYPE_CHECKING:
    from dovetail._core.trace.custom_rules import CustomRuleCall
    from dovetail._core.trace.primitive import Primitive


class LinearizeTracer(PrimalTracer):
    """A primal value and the variable that stands for its tangent."""

    __slots__ = ("tangent",)

    def __init__(self, trace: LinearizeTrace, primal: Any, tangent: Any) -> None:
        # As in the class above, without a call: every operation makes one.
        self._trace = trace
        self.aval = aval_of(primal)
        self.primal = primal
        self.tangent = tangent


class SplitTrace(Trace):
    """Records what depends on tangents and sends everything else to the parent."""

    __slots__ = ("recording",)
    scope_name = "jvp"

    def __init__(self, parent: Trace, recording: StageTrace) -> None:
        super().__init__(parent)
        self.recording = recording

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        recording = self.recording
        for arg in args:
            if type(arg) is StageTracer and arg._trace is recording:
                if primitive.has_dependencies:
                    return self._divide(primitive, args, params)
                return recording.process(primitive, args, params)
        parent = self.parent
        assert parent is not None
        try:
            state.trace = parent
            set_jit_key(parent.key)
            return parent.process(primitive, args, params)
        finally:
            state.trace = self
            set_jit_key(self.key)

    def is_inside(self, trace: Trace) -> bool:
        return trace is self.recording or super().is_inside(trace)

    def _divide(
        self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
    ) -> list[Any]:
        """Apply a primitive with results that may not all depend on a tangent."""
        recording, parent = self.recording, self.parent
        assert parent is not None
        flags = [type(arg) is StageTracer and arg._trace is recording for arg in args]
        depends = primitive.dependencies(flags, **params)
        if all(depends) or primitive.effects(*map(aval_of, args), **params):
            results: list[Any] = recording.process(primitive, args, params)
            return results
        primal_args = [arg.aval if flag else arg for arg, flag in zip(args, flags, strict=True)]
        with use_trace(parent):
            primal_outs = apply_part(primitive, primal_args, params, [not d for d in depends])
        tangent_outs: list[Any] = []
        if any(depends):
            with use_trace(recording):
                tangent_outs = apply_part(primitive, args, params, depends)
        return merge(depends, tangent_outs, primal_outs)

    def process_custom_rule(self, call: CustomRuleCall, args: Sequence[Any]) -> list[Any]:
        recorded = any(type(a) is StageTracer and a._trace is self.recording for a in args)
        if recorded:
            return call.record(args)
        parent = self.parent
        assert parent is not None
        with use_trace(parent):
            return parent.process_custom_rule(call, args)


class LinearizeTrace(Trace):
    """Computes primal values in the parent and records the linear program of their tangents."""

    __slots__ = ("recording", "split")
    scope_name = "jvp"
    users_name = "grad"

    def __init__(self, parent: Trace, debug_info: DebugInfo) -> None:
        super().__init__(parent)
        self.recording = StageTrace(parent, debug_info)
        self.recording.scopes_around = len(names_in(parent))
        self.split = SplitTrace(parent, self.recording)

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        primals = []
        tangents = []
        nonzero = False
        for arg in args:
            if type(arg) is LinearizeTracer and arg._trace is self:
                primals.append(arg.primal)
                tangents.append(arg.tangent)
                nonzero = True
            else:
                primals.append(arg)
                tangents.append(None)
        previous = state.trace
        try:
            if not nonzero:
                parent = self.parent
                assert parent is not None
                state.trace = parent
                set_jit_key(parent.key)
                return parent.process(primitive, args, params)
            if primitive.linearizes:
                out, tangent = self._linearize(primitive, primals, tangents, params)
            else:
                for i, t in enumerate(tangents):
                    if t is None:
                        tangents[i] = Zero.of(primals[i])
                state.trace = self.split
                set_jit_key(self.split.key)
                if not primitive.accepts_zeros:
                    tangents = [instantiate_zeros(t) for t in tangents]
                out, tangent = primitive.jvp(primals, tangents, **params)
        finally:
            state.trace = previous
            set_jit_key(previous.key)
        if primitive.multiple_results:
            return [
                o if type(t) is Zero else LinearizeTracer(self, o, t)
                for o, t in zip(out, tangent, strict=True)
            ]
        return out if type(tangent) is Zero else LinearizeTracer(self, out, tangent)

    def _linearize(
        self,
        primitive: Primitive,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        params: dict[str, Any],
    ) -> tuple[Any, Any]:
        parent = self.parent
        assert parent is not None
        state.trace = parent
        set_jit_key(parent.key)
        out, linear = primitive.linearize(primals, [t is not None for t in tangents], **params)
        state.trace = self.split
        set_jit_key(self.split.key)
        filled = [Zero.of(p) if t is None else t for p, t in zip(primals, tangents, strict=True)]
        return out, linear(*filled)

    def process_custom_rule(self, call: CustomRuleCall, args: Sequence[Any]) -> list[Any]:
        mine = [type(arg) is LinearizeTracer and arg._trace is self for arg in args]
        primals = [arg.primal if m else arg for arg, m in zip(args, mine, strict=True)]
        parent = self.parent
        assert parent is not None
        if not any(mine):
            with use_trace(parent):
                return parent.process_custom_rule(call, primals)
        with use_trace(self.split):
            tangents = [a.tangent if m else Zero.of(a) for a, m in zip(args, mine, strict=True)]
            outs, out_tangents = call.differentiate(primals, tangents)
        for out in outs:
            if type(out) is StageTracer and out._trace is self.recording:
                raise TypeError(
                    "a derivative rule has returned a primal result that depends on a tangent: "
                    "primal results are computed from primals alone"
                )
        return [
            o if type(t) is Zero else LinearizeTracer(self, o, t)
            for o, t in zip(outs, out_tangents, strict=True)
        ]

    def describe(self, tracer: Any) -> str:
        if isinstance(tracer.primal, Tracer):
            return f"a differentiated value (linearize) of {tracer.primal.origin()}"
        return f"a value of {self.recording.debug_info.function}, being differentiated"


class LinearProgram:
    """A recorded linear function, with its residuals.

    Attributes:
        closed: the jaxpr of the varying arguments and results; its constants are the residuals.
        nonzero_in: for each argument, whether the jaxpr takes it.
        nonzero_out: for each result, whether the jaxpr returns it.
        out_avals: avals of the tangents of all results.
        forwarded: for each residual, the number of the argument that it is, or None.
    """

    __slots__ = ("closed", "forwarded", "nonzero_in", "nonzero_out", "out_avals")

    def __init__(
        self,
        closed: ClosedJaxpr,
        nonzero_in: Sequence[bool],
        nonzero_out: Sequence[bool],
        out_avals: Sequence[Any],
        forwarded: Sequence[int | None],
    ) -> None:
        self.closed = closed
        self.forwarded = tuple(forwarded)
        self.nonzero_in = tuple(nonzero_in)
        self.nonzero_out = tuple(nonzero_out)
        self.out_avals = tuple(out_avals)


def linearize_flat(
    function: Callable[..., Sequence[Any]],
    primals: Sequence[Any],
    nonzero: Sequence[bool],
    debug_info: DebugInfo,
    instantiate: Sequence[bool] | None = None,
) -> tuple[list[Any], LinearProgram]:
    """Results of a function of flat arguments, and the linear program of its tangents.

    Args:
        function: takes the primals, returns a sequence.
        primals: values.
        nonzero: for each, whether it has a tangent.
        debug_info: what is differentiated, for messages.
        instantiate: which results get a tangent even if it is zero.
    """
    trace = LinearizeTrace(state.trace, debug_info)
    recording = trace.recording
    arguments = [
        LinearizeTracer(trace, p, recording.argument(aval_of(p).tangent())) if v else p
        for p, v in zip(primals, nonzero, strict=True)
    ]
    outs: list[Any] = []
    tangents: list[Any] = []
    result = None
    try:
        with use_trace(trace):
            results = function(*arguments)
        for result in results:
            if type(result) is LinearizeTracer and result._trace is trace:
                outs.append(result.primal)
                tangents.append(result.tangent)
            else:
                outs.append(result)
                tangents.append(Zero.of(result))
        if instantiate is not None:
            with use_trace(recording):
                tangents = [
                    instantiate_zeros(t) if i else t
                    for t, i in zip(tangents, instantiate, strict=True)
                ]
        avals = [aval_of(o).tangent() for o in outs]
        if any(a.manual_axis_type is not invarying or a.division for a in avals):
            with use_trace(recording):
                tangents = [
                    t if type(t) is Zero else divided_like(vary_like(t, aval), aval)
                    for t, aval in zip(tangents, avals, strict=True)
                ]
        nonzero_out, nonzero_tangents = without_zeros(tangents)
        jaxpr, residuals = recording.to_jaxpr(nonzero_tangents)
    finally:
        trace.finished = recording.finished = True
    program = LinearProgram(
        ClosedJaxpr(jaxpr, residuals),
        nonzero,
        nonzero_out,
        avals,
        recording.sources(primals),
    )
    if config.check_tracer_leaks.value:
        from dovetail._core.trace.leaks import check_leaks  # deferred: rarely asked for

        del arguments, results, result, tangents, nonzero_tangents
        check_leaks(trace, getattr(function, "aux", None))
    return outs, program
