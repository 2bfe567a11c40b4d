"""Says where a nan or an infinity comes from; to be able to, notes how arrays were made."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.base import caches, config
from dovetail._core.base.bindings import get_traceback
from dovetail._core.base.source import describe
from dovetail._core.ir.jaxpr import ClosedJaxpr, Effects, Literal
from dovetail._core.ir.walk import jaxprs_in_params
from dovetail._core.ops.checks.checking import CheckTrace
from dovetail._core.ops.checks.failures import InfError, JaxException, NaNError
from dovetail._core.runtime.arrays.array import Array
from dovetail._core.runtime.calls.special_values import watching
from dovetail._core.runtime.calls.traps import known_trap
from dovetail._core.runtime.calls.value_nodes import (
    Node,
    is_transposed,
    shortened,
    statistics_of,
)
from dovetail._core.runtime.calls.value_search import Found, Opaque, Search, Value
from dovetail._core.runtime.programs.program import LoadedProgram
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.state import evaluation_trace, state, use_trace
from dovetail._core.transform.derived import dce_closed

__all__ = ["explained", "explained_operation", "note", "note_operation"]

_Run = Callable[[Search], list[Value]]

# What is known of arrays that eager operations have made while an option is on, by their identity.
_known: Final[dict[int, tuple[weakref.ref[Any], Node]]] = {}
caches.register(_known.clear)
# How often each program was searched for the origin of an infinity, and how often at most.
_searched: Final[weakref.WeakKeyDictionary[LoadedProgram, int]] = weakref.WeakKeyDictionary()
_MOST: Final = 3
# Larger arrays are looked at once they are part of a message.
_LARGE: Final = 2**16


def note_operation(
    program: LoadedProgram,
    primitive: Primitive,
    params: dict[str, Any],
    args: Sequence[Any],
    outs: Sequence[Any],
) -> None:
    """Remember how an operation that was evaluated by itself has made arrays."""
    operands = [_node_of(arg) for arg in args]
    again = None
    if jaxprs_in_params(params) and _are_here(args):
        again = _operation(primitive, params, args)
    _note(program, primitive.name, operands, outs, again)


def note(
    program: LoadedProgram,
    name: str,
    closed: ClosedJaxpr,
    args: Sequence[Any],
    outs: Sequence[Any],
    names: Sequence[str],
    has_lines: bool,
) -> None:
    """Remember how a program has made arrays; the arguments are those of `explained`."""
    closed = dce_closed(closed)
    operands = [_node_of(arg) for arg in args]
    eqns = closed.jaxpr.eqns
    if len(eqns) != 1 or closed.consts or jaxprs_in_params(eqns[0].params):
        again = None
        if not closed.effects and _are_here(args):
            again = _call(closed, args, names, has_lines)
        _note(program, name, operands, outs, again)
        return
    (eqn,) = eqns  # such as a function of the NumPy API
    by_var = dict(zip(closed.jaxpr.invars, operands, strict=True))
    operands = [_literal(v) if isinstance(v, Literal) else by_var[v] for v in eqn.invars]
    _note(program, eqn.primitive.name, operands, outs, None)


def _note(
    program: LoadedProgram,
    name: str,
    operands: Sequence[Node],
    outs: Sequence[Any],
    again: _Run | None,
) -> None:
    place, backward = describe(state.place), is_transposed(state.place)
    for operand in operands:
        operand.users.add(name)
    before = tuple([shortened(operand) for operand in operands])
    made = []
    for out in outs:
        statistics = None
        if isinstance(out, Array) and _is_small(out):
            statistics = statistics_of(out)
        made.append(Node(name, before, statistics, place, backward))
    infinite = [node for node in made if node.statistics and node.statistics.infinities]
    searched = _searched.get(program, 0)
    if infinite and again is not None and searched < _MOST:
        # An infinite slope becomes a nan in the backward pass, when this program is long gone.
        _searched[program] = searched + 1
        for node, found in zip(made, _infinities(again, len(made)), strict=True):
            if found is not None:
                node.operands = (shortened(found),)
    for out, node in zip(outs, made, strict=True):
        if isinstance(out, Array):
            _remember(out, node)


def _infinities(run: _Run, count: int) -> list[Node | None]:
    """Where infinities in the results of a program come from."""
    search = Search(nans=False, infinities=True)
    try:
        with use_trace(evaluation_trace), config.debug_nans(False), config.debug_infs(False):
            return [
                search.origin(result.node).node if search.is_bad(result.node) else None
                for result in run(search)
            ]
    except Exception:  # the program was right; what keeps it from being run again is no matter
        return [None] * count


def _literal(literal: Literal) -> Node:
    value = np.asarray(literal.val, literal.aval.dtype)[()]
    return Node("a number", statistics=statistics_of(value))


def _remember(array: Array, node: Node) -> None:
    key, forget = id(array), _known.pop  # which is there when the interpreter exits, too
    _known[key] = (weakref.ref(array, lambda _: forget(key, None)), node)


def _node_of(value: Any, name: str = "an argument", *, of_any_size: bool = False) -> Node:
    """The node of an argument, as far as it is known.

    Args:
        value: the argument.
        name: what to call it if it is new.
        of_any_size: whether to look into a large array, too.
    """
    if type(value) is Literal:
        return _literal(value)
    found = _known.get(id(value))
    node = Node(name) if found is None or found[0]() is not value else found[1]
    if node.statistics is None and (of_any_size or _is_small(value)):
        node.statistics = statistics_of(value)
    if isinstance(value, Array):
        _remember(value, node)
    return node


def _are_here(args: Sequence[Any]) -> bool:
    """Whether this process can read all arguments: a search is not the same in every process."""
    return all(getattr(arg, "is_fully_addressable", True) for arg in args)


def _is_small(value: Any) -> bool:
    return getattr(value, "size", 1) < _LARGE


def _operation(primitive: Primitive, params: dict[str, Any], args: Sequence[Any]) -> _Run:
    place, backward = state.place or get_traceback(), is_transposed(state.place)

    def run(search: Search) -> list[Value]:
        values = [Value(arg, _node_of(arg, of_any_size=True)) for arg in args]
        return search.apply(primitive, params, values, place, backward)

    return run


def _call(closed: ClosedJaxpr, args: Sequence[Any], names: Sequence[str], has_lines: bool) -> _Run:
    place, backward = describe(state.place), is_transposed(state.place)

    def run(search: Search) -> list[Value]:
        values = []
        for number, arg in enumerate(args):
            named = f"the argument {names[number]}" if number < len(names) else "an argument"
            values.append(Value(arg, _node_of(arg, named, of_any_size=True)))
        return search.evaluate(closed, values, None if has_lines else place, backward)

    return run


def explained_operation(
    error: FloatingPointError,
    primitive: Primitive,
    params: dict[str, Any],
    args: Sequence[Any],
    effects: Effects,
) -> FloatingPointError:
    """`explained`, for an operation that was evaluated by itself."""
    return _explained(
        error,
        primitive.name,
        effects,
        _operation(primitive, params, args) if _are_here(args) else None,
        lambda checks: checks.apply(primitive, args, params),
    )


def explained(
    error: FloatingPointError,
    name: str,
    closed: ClosedJaxpr,
    args: Sequence[Any],
    names: Sequence[str],
    has_lines: bool,
) -> FloatingPointError:
    """An error about a nan or an infinity that says where it comes from.

    The program is run again, operation by operation, including the bodies of calls, branches and
    loops.

    Args:
        error: the error raised for the program's results.
        name: the program's name.
        closed: the program; one with effects is not run again.
        args: its arguments.
        names: their names.
        has_lines: whether source lines in the program are the function's own, not a caller's.
    """
    closed = dce_closed(closed)
    return _explained(
        error,
        name,
        closed.effects,
        _call(closed, args, names, has_lines) if _are_here(args) else None,
        lambda checks: checks.evaluate(closed, args, has_lines),
    )


def _explained(
    error: FloatingPointError,
    name: str,
    effects: Effects,
    search: _Run | None,
    check: Callable[[CheckTrace], Any],
) -> FloatingPointError:
    if not watching():
        return error
    kind = "inf" if "(inf)" in str(error) else "nan"
    where = describe(state.place)
    facts: list[str] = []
    if not effects:
        found = None if search is None else _found(search)
        if found is not None and found.node.operands:
            node = found.node
            name, where, kind = node.name, node.where(), _kind(node, kind)
            if isinstance(node.hold, Opaque):
                name, where, kind = _checked(
                    lambda checks: checks.apply(
                        node.hold.primitive, node.hold.args, node.hold.params
                    ),
                    (name, where, kind),
                )
            facts = _facts(found)
        elif found is not None:
            facts = [f"  it was there before: {found.node.name}, {found.node.statistics}"]
        else:
            name, where, kind = _checked(check, (name, where, kind))
    text = f"invalid value ({kind}) encountered in {name} at {where}"
    return FloatingPointError("\n".join([text, *facts]))


def _found(run: _Run) -> Found | None:
    """What a search finds; None if it finds nothing."""
    search = Search(nans=config.debug_nans.value, infinities=config.debug_infs.value)
    try:
        with use_trace(evaluation_trace), config.debug_nans(False), config.debug_infs(False):
            for result in run(search):
                if search.is_bad(result.node):
                    return search.origin(result.node)
    except Exception:  # whatever keeps the program from being run again: the user is to see a nan
        return None
    return None


def _kind(node: Node, kind: str) -> str:
    statistics = node.statistics
    if statistics is None:
        return kind
    return "nan" if statistics.nans and config.debug_nans.value else "inf"


def _facts(found: Found) -> list[str]:
    """Lines about the operation that made a bad value."""
    node = found.node
    lines = []
    if node.backward:
        lines.append("  pass: backward, of the operation at this line")
    elif any(other.backward for other in found.path):
        lines.append("  pass: forward; its value is used in the backward pass")
    else:
        lines.append("  pass: forward")
    lines += [f"  in:   {turn}" for turn in found.turns]
    for number, operand in enumerate(node.operands):
        if operand.statistics is not None:
            whose = f" of {node.name}" if isinstance(node.hold, Opaque) else ""
            lines.append(f"  operand {number}{whose}: {operand.statistics} ({operand.name})")
    infinities = Search(nans=False, infinities=True)
    trap = known_trap(node, found.path, lambda bad: infinities.origin(bad).node)
    if trap is not None:
        lines += [f"  trap: {trap.cause}", f"  write: {trap.remedy}"]
    return lines


def _checked(
    run: Callable[[CheckTrace], Any], otherwise: tuple[str, str, str]
) -> tuple[str, str, str]:
    """Operation, line and kind by checks inside of the program, where no search is possible."""
    categories: set[type[JaxException]] = set()
    categories |= {NaNError} if config.debug_nans.value else set()
    categories |= {InfError} if config.debug_infs.value else set()
    checks = CheckTrace(evaluation_trace, frozenset(categories))
    try:
        with use_trace(evaluation_trace), config.debug_nans(False), config.debug_infs(False):
            run(checks)
    except RuntimeError:
        pass  # an argument was deleted
    finally:
        checks.finished = True
    checked = checks.error
    if not checked._metadata or not np.asarray(checked._pred):
        return otherwise
    failure = checked._metadata[int(checked._code)]
    return failure.details, failure.place, "inf" if failure.category is InfError else "nan"
