"""Interning: equal jaxprs become one object, so that they share cached results."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakValueDictionary

from dovetail._core.base import caches, config
from dovetail._core.base.source import SourceLocation
from dovetail._core.ir.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from dovetail._core.ir.walk import all_equations, jaxprs_and_closed_jaxprs
from dovetail._core.trace.state import Trace, state
from dovetail._core.transform.stage import StageTrace

__all__ = ["holder_of", "holds_functions", "interned"]


def _parts(jaxpr: Jaxpr, known: dict[Jaxpr, int]) -> tuple[Any, ...]:
    """The content of a jaxpr as a key; `known` numbers the jaxprs inside it."""
    number: dict[Var, int] = {}

    def atom(v: Any) -> Any:
        # As text, since -0.0 equals 0.0, and nan equals nothing.
        return (type(v.val), repr(v.val), v.aval) if type(v) is Literal else number[v]

    for var in jaxpr.invars:
        number[var] = len(number)
    equations = []
    for eqn in jaxpr.eqns:
        operands = tuple([atom(v) for v in eqn.invars])
        for var in eqn.outvars:
            number[var] = len(number)
        params, place = eqn.params, eqn.traceback
        if type(place) is SourceLocation:
            place = (place.traceback, place.prefix, place.metadata)
        equations.append(
            (
                eqn.primitive,
                operands,
                tuple([(name, _content(value, known)) for name, value in params.items()]),
                tuple([type(value) for value in params.values()]),
                tuple([var.aval for var in eqn.outvars]),
                eqn.effects,
                place,
            )
        )
    return (
        jaxpr.debug_info,
        jaxpr.effects,
        tuple([var.aval for var in jaxpr.invars]),
        tuple(equations),
        tuple([atom(v) for v in jaxpr.outvars]),
    )


def _content(value: Any, known: dict[Jaxpr, int]) -> Any:
    """A parameter as part of a key: a jaxpr gives its content, but only once."""
    kind = type(value)
    if kind is tuple and value and type(value[0]) in (ClosedJaxpr, tuple):
        return tuple([_content(v, known) for v in value])
    if kind is not ClosedJaxpr or value.consts:
        return value
    if value.jaxpr in known:
        return ("again", known[value.jaxpr])
    known[value.jaxpr] = len(known)
    return _parts(value.jaxpr, known)


_interned: Final[WeakValueDictionary[Any, ClosedJaxpr]] = WeakValueDictionary()
caches.register(_interned.clear)


@caches.lru_cache(maxsize=1024)
def _keep(closed: ClosedJaxpr) -> None:
    """Keep a recently used jaxpr alive."""


def _is_evaluated() -> bool:
    """Whether operations are evaluated immediately now, not recorded."""
    trace: Trace | None = state.trace
    while trace is not None and type(trace) is not StageTrace:
        trace = trace.parent
    return trace is None


_holding: Final[WeakKeyDictionary[Jaxpr, bool]] = WeakKeyDictionary()


def holds_functions(jaxpr: Jaxpr) -> bool:
    """Whether a jaxpr holds rules or other user functions, with what they have captured.

    No process-wide table may hold such a jaxpr: what it holds often refers back to it.
    """
    holds = _holding.get(jaxpr)
    if holds is None:
        holds = _holding[jaxpr] = any(
            any(map(_may_capture, eqn.params.values()))
            for eqn in all_equations(jaxpr)
            if eqn.params
        )
    return holds


def holder_of(params: Mapping[str, Any]) -> ClosedJaxpr | None:
    """The jaxpr whose memory caches results for these parameters.

    None if no parameter holds functions, so that any table may hold them.
    """
    jaxprs = [p for p in jaxprs_and_closed_jaxprs(params) if isinstance(p, ClosedJaxpr)]
    for closed in jaxprs:
        if holds_functions(closed.jaxpr):
            return closed
    return jaxprs[0] if jaxprs and any(map(_may_capture, params.values())) else None


def _may_capture(value: Any) -> bool:
    if type(value) is FunctionType:
        return value.__closure__ is not None or value.__defaults__ is not None
    return callable(value) or hasattr(value, "holds_function")


def interned(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr interned earlier that equals `closed`, or `closed` if there is none.

    So cached results, compiled programs among them, are found again when a function is retraced,
    even if the function object is new.

    Equal jaxprs were traced for functions of the same name, under the same options, and have the
    same operations, at the same lines, called from the same lines. A jaxpr that has constants or
    holds functions is returned as it is. So are all jaxprs while an outer function is being traced,
    since traced code is lowered once. The most recent ones are kept alive.
    """
    if closed.consts or not _is_evaluated() or holds_functions(closed.jaxpr):
        return closed
    try:
        equal = _interned.setdefault((config.trace_key(), *_parts(closed.jaxpr, {})), closed)
    except (TypeError, RecursionError):  # an unhashable parameter; very deeply nested calls
        return closed
    _keep(equal)
    return equal
