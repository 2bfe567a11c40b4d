"""Scopes that the user has named, whose names stand before those of operations."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from dovetail.core.base.source import Place, Transformation
from dovetail.core.ir.jaxpr import JaxprEqn
from dovetail.core.trace.state import Trace, state


class Scope:
    """The scopes around what a thread traces, the innermost last.

    Args:
        names: as in a `Place`.
        trace: the trace in which the last one was begun.
        outer: what was there before it.
    """

    __slots__ = ("names", "outer", "trace")

    def __init__(self, names: tuple[str, ...], trace: Trace, outer: Scope | None) -> None:
        self.names = names
        self.trace = trace
        self.outer = outer

    def place(self, traceback: Any, around: int) -> Any:
        """What an equation holds that is recorded now.

        Args:
            traceback: the captured stack.
            around: how many names are left out.
        """
        names = self.names[around:]
        return Place(traceback, names) if names else traceback


def names_in(trace: Trace) -> tuple[str, ...]:
    """The names of the present scopes, and of the transformations begun since, up to `trace`."""
    scope = state.scope
    found: list[str] = []
    outer: Trace | None = trace
    while outer is not None and outer.scope_name is not None:
        if scope is not None and scope.trace.is_inside(outer):
            break
        if outer.scope_name:
            found.append(Transformation(outer.scope_name))
        outer = outer.parent
    return (*(() if scope is None else scope.names), *reversed(found))


def enter_scope(names: Sequence[str]) -> None:
    """Begin a scope in the current trace; the caller puts the outer one back."""
    trace = state.trace
    state.scope = Scope((*names_in(trace), *names), trace, state.scope)


class Replay:
    """While a jaxpr is traced again: what is recorded keeps the places and scopes of equations."""

    __slots__ = ("replayed", "scope")

    def __enter__(self) -> Replay:
        self.replayed, self.scope = state.replayed, state.scope
        return self

    def at(self, eqn: JaxprEqn, transformation: tuple[str, ...] = ()) -> None:
        """Go to an equation, of which something is to be recorded.

        Args:
            eqn: the equation.
            transformation: what stands around the names of its scopes.
        """
        place = eqn.traceback
        if type(place) is Place:
            state.scope = self.scope
            enter_scope((*transformation, *place.scopes))
            place = place.traceback
        elif state.scope is not self.scope:
            state.scope = self.scope
        state.replayed = place or self.replayed

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        state.replayed, state.scope = self.replayed, self.scope
