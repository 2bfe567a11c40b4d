"""Traces of a library's own, written to JAX's protocol: `jax.core.Trace`.

Such a trace processes primitives, and functions with rules of their own, whose rules it gets as
functions of flat values. While it does, nothing is being traced: it says itself in which trace
it computes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NoReturn

from dovetail._core.alias.flat_trees import nones, pack
from dovetail._core.alias.wrapped_functions import WrappedFun, wrap_init
from dovetail._core.api.jit import Inline
from dovetail._core.basis.structural import instantiate_zeros
from dovetail._core.ir.jaxpr import Literal
from dovetail._core.ir.walk import jaxpr_as_fun
from dovetail._core.ops.calls.jit import jit_p
from dovetail._core.ops.control.scan import ScanParams, scan_p
from dovetail._core.ops.custom.custom_jvp import CustomLiveCall, custom_jvp_call_p
from dovetail._core.ops.custom.custom_vjp import custom_vjp_call_p
from dovetail._core.ops.custom.flat_rules import OutTrees, flat_jvp, flat_vjp
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.state import Trace, evaluation_trace, state, use_trace
from dovetail._core.trace.tracer import Tracer


class _TraceClass(type):
    """All traces are instances of the class that libraries know as `jax.core.Trace`."""

    def __instancecheck__(cls, instance: object) -> bool:
        kind = Trace if cls.__base__ is Trace else cls
        return type.__instancecheck__(kind, instance)

    def __subclasscheck__(cls, subclass: type) -> bool:
        kind = Trace if cls.__base__ is Trace else cls
        return type.__subclasscheck__(kind, subclass)


class LibraryTrace(Trace, metaclass=_TraceClass):
    """Base of the traces of libraries, which override the methods `process_...`.

    It computes in the trace that is current when it is made, or that `take_current_trace` has put
    aside.
    """

    def __new__(cls, *args: object, **kwargs: object) -> LibraryTrace:
        trace = super().__new__(cls)
        current = state.trace
        taken = state.taken if current is evaluation_trace else None
        Trace.__init__(trace, current if taken is None else taken)
        return trace

    def __init__(self) -> None:
        pass

    def process_primitive(
        self, primitive: Primitive, tracers: Sequence[Any], params: dict[str, Any], /
    ) -> Any:
        """Apply a primitive to values, of which some are tracers of this trace."""
        self._lacks("process_primitive", str(primitive))

    def process_custom_jvp_call(
        self,
        primitive: Primitive,
        fun: WrappedFun,
        jvp: WrappedFun,
        tracers: Sequence[Any],
        *,
        symbolic_zeros: bool,
    ) -> Sequence[Any]:
        """Apply a function with a rule for its tangents.

        Args:
            primitive: applies such functions in another trace, as
                ``primitive.bind_with_trace(trace, args, avals, dict(subfuns=(fun, jvp),
                symbolic_zeros=symbolic_zeros))``.
            fun: the function.
            jvp: maps primals and tangents to results and their tangents.
            tracers: the arguments.
            symbolic_zeros: whether the rule takes `SymbolicZero`.
        """
        self._lacks("process_custom_jvp_call", "functions with custom_jvp")

    def process_custom_vjp_call(
        self,
        primitive: Primitive,
        fun: WrappedFun,
        fwd: WrappedFun,
        bwd: WrappedFun,
        tracers: Sequence[Any],
        out_trees: OutTrees,
        symbolic_zeros: bool,
    ) -> Sequence[Any]:
        """Apply a function with rules for its cotangents.

        Args:
            primitive: applies such functions in another trace, as the same of `custom_jvp` does,
                with three `subfuns` and ``out_trees``.
            fun: the function.
            fwd: maps each primal and whether it is perturbed to residuals and results.
            bwd: maps residuals and cotangents of results to those of the arguments.
            tracers: the arguments.
            out_trees: tells the trees of results and of residuals.
            symbolic_zeros: whether the rules take `SymbolicZero`.
        """
        self._lacks("process_custom_vjp_call", "functions with custom_vjp")

    def full_raise(self, value: Any) -> Any:
        """The value itself."""
        return value

    def invalidate(self) -> None:
        """Say that the transformation has ended."""
        self.finished = True

    def is_valid(self) -> bool:
        """Whether the transformation has not ended."""
        return not self.finished

    def _lacks(self, method: str, what: str) -> NoReturn:
        raise NotImplementedError(f"{type(self).__name__} has to override {method} for {what}")

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        with use_trace(evaluation_trace):
            args = [instantiate_zeros(a) if type(a) is Literal else a for a in args]
        if primitive is custom_jvp_call_p or primitive is custom_vjp_call_p:
            count = params["num_consts"]
            function = partial(jaxpr_as_fun(params["call_jaxpr"]), *args[:count])
            zeros = params["symbolic_zeros"]
            return self._process_rules(primitive, function, params, args[count:], zeros)
        params = _as_jax(primitive, args, params)
        with use_trace(evaluation_trace):
            return self.process_primitive(primitive, args, params)

    def process_custom_rule(self, call: Any, args: Sequence[Any]) -> list[Any]:
        assert isinstance(call, CustomLiveCall)
        zeros = call.symbolic_zeros
        return self._process_rules(call.primitive, call.function, call.rules, args, zeros)

    def _process_rules(
        self,
        primitive: Primitive,
        function: Callable[..., Any],
        rules: Any,
        args: Sequence[Any],
        symbolic_zeros: bool,
    ) -> list[Any]:
        fun = wrap_init(function)
        with use_trace(evaluation_trace):
            if primitive is custom_jvp_call_p:
                jvp = wrap_init(flat_jvp(rules["jvp"], symbolic_zeros))
                outs = self.process_custom_jvp_call(
                    primitive, fun, jvp, args, symbolic_zeros=symbolic_zeros
                )
            else:
                fwd, bwd, out_trees = flat_vjp(rules["fwd"], symbolic_zeros)
                outs = self.process_custom_vjp_call(
                    primitive, fun, wrap_init(fwd), wrap_init(bwd), args, out_trees, symbolic_zeros
                )
        return list(outs)

    def describe(self, tracer: Any) -> str:
        return f"a value of {type(self).__name__}"


def _as_jax(primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> dict[str, Any]:
    """The parameters of a primitive, by the names that JAX gives them."""
    if primitive is jit_p:
        return {**params, "inline": Inline.AUTO}
    if primitive is not scan_p:
        return params
    loop = ScanParams.of(params)
    consts, carry, xs = (nones(len(group)) for group in loop.split(args))
    ys = nones(len(loop.jaxpr.out_avals) - loop.num_carry)
    return {
        "jaxpr": loop.jaxpr,
        "length": loop.length,
        "reverse": loop.reverse,
        "unroll": loop.unroll,
        "ft_in": pack((consts, carry, xs)),
        "ft_out": pack((carry, ys)),
    }


def full_lower(value: Any) -> Any:
    """A value without the tracers that it needs not."""
    return value.full_lower() if isinstance(value, Tracer) else value
