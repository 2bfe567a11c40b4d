"""The current trace of each thread, and eager evaluation.

Tracing is stackless: each thread has one current trace, which processes every primitive. The trace
of a transformation holds its parent, in which it computes. It treats tracers of other traces as
constants.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from dovetail._core.base import config
from dovetail._core.base.errors import UnexpectedTracerError
from dovetail._core.base.limits import enter_level, leave_level, level
from dovetail._core.base.restoring import Restoring
from dovetail._core.trace.tracer import Tracer

if TYPE_CHECKING:
    from dovetail._core.trace.custom_rules import CustomRuleCall
    from dovetail._core.trace.mutable_references import Ref, RefState
    from dovetail._core.trace.named_axes import BatchAxis
    from dovetail._core.trace.primitive import Primitive

Evaluator = Callable[["Primitive", Sequence[Any], dict[str, Any]], Any]


class Trace:
    """Interprets primitives. Subclasses are the transformations.

    Attributes:
        parent: the trace in which this one computes, or None at the bottom.
        finished: whether the transformation has ended; its tracers must not be used any more.
        key: what the C++ jit path sees; None only for eager evaluation, which it may serve itself.
        scope_name: the name put around those of scopes that begin inside, empty for none; None if
            names start afresh.
        users_name: what users call the transformation, if that is another name.
    """

    __slots__ = ("__weakref__", "finished", "parent")

    key: str | None = "tracing"
    scope_name: str | None = ""
    users_name: str | None = None

    def __init__(self, parent: Trace | None) -> None:
        self.parent = parent
        self.finished = False
        if parent is not None and config.check_tracer_leaks.value:
            from dovetail._core.trace.leaks import remember_places  # deferred: rarely asked for

            remember_places(self)

    @property
    def main(self) -> Trace:
        """Itself: JAX's name for what tells one transformation from another."""
        return self

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Apply `primitive`, or record its application."""
        raise TypeError(f"{type(self).__name__} does not say how it processes a primitive")

    def process_custom_rule(self, call: CustomRuleCall, args: Sequence[Any]) -> list[Any]:
        """Apply a function with its own rules, or record it; this trace is the current one."""
        return call.record(args)

    def cell_of(self, ref: Ref, writing: bool) -> RefState:
        """The state of a mutable reference for code that runs in this trace.

        Args:
            ref: the reference.
            writing: whether it is about to be changed.

        Raises:
            ValueError: the reference is no longer valid, or may not be used here.
            UnexpectedTracerError: it belongs to a transformation that has ended.
        """
        ref_state = ref.ref_state
        if ref_state.trace is self:
            return ref_state
        if self.parent is None:
            raise UnexpectedTracerError(
                f"{ref.described()} was used outside of the transformed function in which it was "
                "made: a side effect has kept it, or a rule of a custom derivative was given it. "
                "Make the reference outside, or return its value, ref[...]"
            )
        return self.parent.cell_of(ref, writing)

    def is_inside(self, trace: Trace) -> bool:
        """Whether this trace is `trace`, or began, directly or not, while that was current."""
        return self is trace or (self.parent is not None and self.parent.is_inside(trace))

    def describe(self, tracer: Any) -> str:
        """Where one of this trace's tracers came from, for messages."""
        return f"a value traced by {type(self).__name__}"

    def traced_by(self, tracer: Any) -> str:
        """The transformations that made one of this trace's tracers, and out of what; for users."""
        own = self.users_name or self.scope_name or type(self).__name__
        inner = getattr(tracer, "primal", getattr(tracer, "value", None))
        return f"{own} of {inner._trace.traced_by(inner)}" if isinstance(inner, Tracer) else own


class EvaluationTrace(Trace):
    """Eager evaluation, at the bottom of every thread's traces."""

    __slots__ = ("evaluator",)
    key = None
    scope_name = None

    def __init__(self) -> None:
        super().__init__(None)
        self.evaluator: Evaluator | None = None

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        for arg in args:
            if isinstance(arg, Tracer):
                raise UnexpectedTracerError(arg)
        if self.evaluator is None:
            load_runtime()
        assert self.evaluator is not None
        return self.evaluator(primitive, args, params)

    def process_custom_rule(self, call: CustomRuleCall, args: Sequence[Any]) -> list[Any]:
        return call.evaluate(args)


class KnownValuesTrace(Trace):
    """Evaluates known values, and leaves traced ones to the enclosing trace."""

    __slots__ = ()

    def _chosen(self, args: Sequence[Any]) -> Trace:
        assert self.parent is not None
        traced = any(isinstance(arg, Tracer) for arg in args)
        return self.parent if traced else evaluation_trace

    def process(self, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        with use_trace(self._chosen(args)) as trace:
            return trace.process(primitive, args, params)

    def process_custom_rule(self, call: CustomRuleCall, args: Sequence[Any]) -> list[Any]:
        with use_trace(self._chosen(args)) as trace:
            return trace.process_custom_rule(call, args)


def load_runtime() -> None:
    """Import the runtime, which calls `set_evaluator`."""
    import dovetail._core.runtime.calls.dispatch  # noqa: F401  # deferred: loaded by the first evaluation


evaluation_trace: Final = EvaluationTrace()


def set_evaluator(evaluator: Evaluator) -> None:
    """Set the function that evaluates primitives eagerly (called once, by the runtime)."""
    evaluation_trace.evaluator = evaluator


class _ThreadState(threading.local):
    trace: Trace = evaluation_trace
    #: The place in the user's code of what is being traced. None: the current line. Otherwise the
    #: stack of an equation being retraced or, in scopes named by the user, `NamedScopes`.
    place: Any = None
    #: The axis of the batch for which a batching rule is running.
    batch_axis: BatchAxis | None = None
    #: The trace that was current before `take_current_trace` put it aside; None if none is.
    taken: Trace | None = None


state: Final = _ThreadState()
#: What C++ sees of the current trace. A trace becomes the current one by
#:
#:     previous = state.trace
#:     try:
#:         state.trace = trace
#:         set_jit_key(trace.key)
#:         ...
#:     finally:
#:         state.trace = previous
#:         set_jit_key(previous.key)
#:
#: written out wherever a primitive is processed, or by `use_trace`. Python handles signals when a
#: function begins or has returned, so no handler runs between the `finally` and its last call.
set_jit_key: Final = config.trace_state.set_local


class use_trace(Restoring[Trace]):
    """Context manager that makes a trace current, and restores trace, place and level."""

    __slots__ = ()

    # A `Restoring` in fewer calls: each transformation takes several of these.
    def __init__(self, trace: Trace) -> None:
        entries: list[_Entry] = []
        leave = partial(_leave, entries)
        self.__exit__ = leave  # type: ignore[method-assign]
        self.__enter__ = partial(  # type: ignore[method-assign]
            _enter, entries, ref(leave, partial(_restore_now, entries)), trace
        )


#: The weak reference that restores; trace, place and level to go back to.
_Entry = tuple[ref[partial[None]], Trace, Any, int]


def _enter(entries: list[_Entry], guard: ref[partial[None]], trace: Trace) -> Trace:
    entries.append((guard, state.trace, state.place, level.depth))
    state.trace = trace
    set_jit_key(trace.key)
    enter_level()
    return trace


def _leave(entries: list[_Entry], *error: object) -> None:
    _, trace, state.place, depth = entries[-1]
    state.trace = trace
    set_jit_key(trace.key)
    leave_level(depth)
    del entries[-1]


def _restore_now(entries: list[_Entry], _: object) -> None:
    while entries:
        _leave(entries)
