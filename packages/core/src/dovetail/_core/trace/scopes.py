"""Scopes named by the user; their names precede those of operations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from dovetail._core.base import config
from dovetail._core.base.bindings import get_traceback
from dovetail._core.base.restoring import Restoring
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


def leave_scope(outer: Any) -> None:
    """End the scope around which `outer` was the place.

    There is none if a generator exits after its trace.
    """
    place = state.place
    if type(place) is NamedScopes and place.outer is outer:
        state.place = outer


def _place() -> Any:
    return state.place


def _set_place(place: Any) -> None:
    state.place = place


def scope(names: Sequence[str]) -> tuple[Any, Any, Any]:
    """What makes a `Restoring` a scope in the trace that is current when it is entered."""
    return _place, partial(enter_scope, names), leave_scope


def _forget_lines() -> None:
    place = state.place
    own = None
    if type(place) is NamedScopes:
        own = NamedScopes(place.names, place.trace, None, place.outer)
    state.place = own


def at_own_lines() -> Restoring[None]:
    """Record user code, such as a rule, at its own lines even while a jaxpr is retraced."""
    return Restoring(_place, _forget_lines, _set_place)


class Replay:
    """Retraces a jaxpr: new equations keep the places and scopes of the old ones.

    Args:
        outer: the place around all of it.
    """

    __slots__ = ("outer",)

    def __init__(self, outer: Any) -> None:
        self.outer = outer

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
        elif transformation and (config.debug_nans.value or config.debug_infs.value):
            # Messages of these options tell a backward pass from a forward pass.
            state.place, trace = outer, state.trace
            place = NamedScopes((*names_in(trace), *transformation), trace, place, outer)
        elif type(outer) is NamedScopes:
            place = NamedScopes(outer.names, outer.trace, place or outer.traceback, outer.outer)
        state.place = place or outer


def replaying() -> Restoring[Replay]:
    """A context manager for retracing a jaxpr, which gives a `Replay`."""
    return Restoring(_place, lambda: Replay(state.place), _set_place)
