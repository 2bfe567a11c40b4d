"""The search for tracers that outlive their transformation, if ``check_tracer_leaks`` is on."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Sequence
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.base import pytree
from dovetail._core.base.bindings import get_traceback
from dovetail._core.base.errors import UnexpectedTracerError
from dovetail._core.base.holders import Holders
from dovetail._core.base.source import describe
from dovetail._core.ir.jaxpr import JaxprEqn
from dovetail._core.trace.state import Trace
from dovetail._core.trace.tracer import Tracer

if TYPE_CHECKING:
    from dovetail._core.trace.custom_rules import CustomRuleCall
    from dovetail._core.trace.primitive import Primitive

_MOST_TRACERS: Final = 10

_REMEDIES: Final = {
    "": "Return values from the function instead of storing them",
    "cache": (
        "A cached function that is first called while tracing keeps what was traced: call it "
        "before, or compute its result within dovetail.ensure_compile_time_eval()"
    ),
    "closure": (
        "A function that uses values of the transformed function must not be kept beyond it: pass "
        "it the values as arguments, and return them"
    ),
    "generator": (
        "A generator that has not come to its end keeps its variables: exhaust or close it in the "
        "transformed function"
    ),
    "traceback": (
        "An exception that is kept has the variables of all functions that it went through: keep "
        "its text, or error.with_traceback(None)"
    ),
}


def check_leaks(trace: Trace, auxiliary: Any = None) -> None:
    """Raise if a tracer of a finished trace is still alive outside of it.

    Args:
        trace: the trace.
        auxiliary: a tree whose tracers may be alive, since they are replaced when it is returned.

    Raises:
        UnexpectedTracerError: naming each leaked tracer, where it was made, and the chain of
            references to it from something that the user knows.
    """
    # Every tracer holds its trace. Recent garbage is found in a small part of the time that a whole
    # collection takes.
    for collect in (None, partial(gc.collect, 1), gc.collect):
        if collect is not None:
            collect()
        if sys.getrefcount(trace) <= _references_of_a_finished_trace():
            return
    expected = {id(leaf) for leaf in pytree.leaves(auxiliary)}
    leaked = [
        value
        for value in gc.get_referrers(trace)
        if issubclass(type(value), Tracer) and value._trace is trace and id(value) not in expected
    ]
    message = _message(leaked) if leaked else ""
    if message:
        raise UnexpectedTracerError(message)


@cache
def _references_of_a_finished_trace() -> int:
    """What `sys.getrefcount` says in `check_leaks` if only the caller has the trace."""

    def count(trace: object) -> int:
        return sys.getrefcount(trace)

    trace = object()
    return count(trace)


def _message(leaked: Sequence[Any]) -> str:
    """The message about leaked tracers; empty if only equations hold them.

    Such equations belong to an outer program that is being recorded, and their derivative rules
    may have captured tracers.
    """
    lines: list[str] = []
    remedies: dict[str, None] = {}
    holders = Holders(leaked, allowed=(JaxprEqn,))
    for number, tracer in enumerate(leaked):
        chain = holders.chain(tracer)
        if chain is None:
            continue
        by = chain.text or (
            "something that the garbage collector does not see, such as a NumPy array of objects, "
            "or what gc.freeze() has set aside"
        )
        lines += [f"  {tracer!r}, {_origin(tracer)}", f"    kept alive by {by}"]
        remedies[_REMEDIES[chain.kind]] = None
        if len(lines) == 2 * _MOST_TRACERS and number + 1 < len(leaked):
            lines.append(f"  and {len(leaked) - number - 1} more")
            break
    if not lines:
        return ""
    happened = "tracers were kept beyond the transformation that made them:"
    return "\n".join([happened, *lines, *remedies])


# ----------------------------------------------------------------------- where tracers were made

#: For each trace: its tracers by id, each with the stack at which it was made.
_places: Final[weakref.WeakKeyDictionary[Trace, dict[int, tuple[Any, Any]]]] = (
    weakref.WeakKeyDictionary()
)


def remember_places(trace: Trace) -> None:
    """Make a trace record where each of its tracers is made."""
    kind: Any = type(trace)
    trace.__class__ = _remembering(kind)
    _places[trace] = {}


def _origin(tracer: Any) -> str:
    origin = str(tracer.origin())
    reference, traceback = _places.get(tracer._trace, {}).get(id(tracer), (None, None))
    if reference is not None and reference() is tracer:  # not an earlier tracer with the same id
        place = describe(traceback)
        return origin if place in origin else f"{origin}, made at {place}"
    return origin if "argument" in origin else f"{origin}, made for an argument"


@cache
def _remembering(kind: Any) -> Any:
    """A subclass of the trace class `kind` that also records where tracers are made."""

    def note(trace: Trace, results: Any) -> Any:
        traceback = get_traceback()
        for result in results if isinstance(results, list) else [results]:
            if isinstance(result, Tracer) and result._trace is trace:
                _places[trace][id(result)] = (weakref.ref(result), traceback)
        return results

    def process(
        self: Trace, primitive: Primitive, args: Sequence[Any], params: dict[str, Any]
    ) -> Any:
        return note(self, kind.process(self, primitive, args, params))

    def process_custom_rule(self: Trace, call: CustomRuleCall, args: Sequence[Any]) -> list[Any]:
        results: list[Any] = note(self, kind.process_custom_rule(self, call, args))
        return results

    body = {"__slots__": (), "process": process, "process_custom_rule": process_custom_rule}
    return type(kind.__name__, (kind,), body)
