"""Scopes named by the user; their names precede those of operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any

from dovetail._core.base.bindings import get_traceback
from dovetail._core.base.source import SourceLocation, Transformation
from dovetail._core.ir.jaxpr import JaxprEqn
from dovetail._core.trace.state import Trace, state


class NamedScopes:
    """The scopes around what a thread is tracing.

    Args:
        names: as in a `SourceLocation`.
        trace: the trace in which the innermost one began.
        traceback: the stack of the equation being retraced, None if there is none.
        outer: the previous `state.place`.
    """

    __slots__ = ("names", "outer", "trace", "traceback")

    def __init__(self, names: tuple[str, ...], trace: Trace, traceback: Any, outer: Any) -> None:
        self.names = names
        self.trace = trace
        self.traceback = traceback
        self.outer = outer

    def raw_frames(self) -> Any:
        """The raw frames of the stack, as in a `SourceLocation`."""
        return (self.traceback or get_traceback()).raw_frames()

    def place(self, around: int) -> Any:
        """The place to store in an equation recorded now.

        Args:
            around: how many of the outer names to leave out.
        """
        traceback = self.traceback or get_traceback()
        names = self.names[around:]
        return SourceLocation(traceback, names) if names else traceback


def names_in(trace: Trace) -> tuple[str, ...]:
    """The names of the current scopes and of transformations begun since, up to `trace`."""
    scope = state.place if type(state.place) is NamedScopes else None
    transformations: list[str] = []
    outer: Trace | None = trace
    while outer is not None and outer.scope_name is not None:
        if scope is not None and scope.trace.is_inside(outer):
            break
        if outer.scope_name:
            transformations.append(Transformation(outer.scope_name))
        outer = outer.parent
    return (*(() if scope is None else scope.names), *reversed(transformations))


def enter_scope(names: Sequence[str]) -> None:
    """Begin a scope in the current trace."""
    outer, trace = state.place, state.trace
    traceback = outer.traceback if type(outer) is NamedScopes else outer
    state.place = NamedScopes((*names_in(trace), *names), trace, traceback, outer)


def leave_scope() -> None:
    """End the innermost scope; there is none if a generator exits after its trace."""
    place = state.place
    if type(place) is NamedScopes:
        state.place = place.outer


@contextmanager
def at_own_lines() -> Iterator[None]:
    """Record user code, such as a rule, at its own lines even while a jaxpr is retraced."""
    previous = state.place
    own = None
    if type(previous) is NamedScopes:
        own = NamedScopes(previous.names, previous.trace, None, previous.outer)
    state.place = own
    try:
        yield
    finally:
        state.place = previous


class Replay:
    """Context for retracing a jaxpr: new equations keep the places and scopes of the old ones."""

    __slots__ = ("outer",)

    def __enter__(self) -> Replay:
        self.outer = state.place
        return self

    def at(self, eqn: JaxprEqn, transformation: tuple[str, ...] = ()) -> None:
        """Record what follows at the place of an equation.

        Args:
            eqn: the equation.
            transformation: the names around those of its scopes.
        """
        place, outer = eqn.traceback, self.outer
        if type(place) is SourceLocation:
            state.place, trace = outer, state.trace
            names = (*names_in(trace), *transformation, *place.scopes)
            place = NamedScopes(names, trace, place.traceback, outer)
        elif type(outer) is NamedScopes:
            place = NamedScopes(outer.names, outer.trace, place or outer.traceback, outer.outer)
        state.place = place or outer

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        state.place = self.outer
