"""Looks for the operation that made a nan or an infinity: runs a program again, step by step.

A program is run equation by equation, calls and branches included. Of each value a `Node` is kept,
which says what it holds and how it was made, not the value. From a bad result the search goes back
to the first operation whose result is bad while its operands are not. A loop runs as a whole;
only where its result turns out to be the bad one, a compiled loop finds the turn, and that turn
is run equation by equation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.basis.operands import as_operand, literal_like
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, Literal
from dovetail._core.ir.walk import jaxprs_in_params
from dovetail._core.ops.calls.jit import jit_p
from dovetail._core.ops.calls.program_primitive import ProgramPrimitive
from dovetail._core.ops.control.branches import cond_p
from dovetail._core.ops.control.scan import ScanParams, scan_p
from dovetail._core.ops.control.vector_functions import EquationPrimitive, split_operands
from dovetail._core.ops.control.while_loop import WhileParams, while_p
from dovetail._core.ops.elementwise.arithmetic import add, sub
from dovetail._core.ops.elementwise.bitwise import bitwise_and, bitwise_not, bitwise_or
from dovetail._core.ops.elementwise.comparison import eq_p, lt, ne_p
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.elementwise.signs import abs_p
from dovetail._core.ops.indexing.dynamic_slicing import dynamic_index_in_dim
from dovetail._core.ops.loops.bounded_while import Bound, bounded_while_p
from dovetail._core.ops.loops.while_loops import while_loop
from dovetail._core.ops.parallel.shard_map import shard_map_p
from dovetail._core.ops.reduction.reductions import reduce_or
from dovetail._core.runtime.calls.value_nodes import Node, is_transposed, statistics_of
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.scopes import replaying
from dovetail._core.transform.derived import dce_closed, function_of

__all__ = ["Found", "Search", "Value"]

_NO_LIMIT: Final = 2**31 - 1


class Value(NamedTuple):
    """A value, and the node that says how it was made."""

    value: Any
    node: Node


@dataclass(slots=True)
class Found:
    """The operation that made a bad value.

    Attributes:
        node: its node.
        path: the bad values from the result back to that of the operation, which is the last.
        turns: phrases for the turns of the loops around it, innermost first.
    """

    node: Node
    path: list[Node]
    turns: list[str] = field(default_factory=list)


class _Loop(NamedTuple):
    """A loop whose result is known, in case that its turns are of interest.

    Attributes:
        params: its parameters.
        consts: what each turn gets.
        carry: what the first turn gets.
        elements: arrays of whose elements each turn gets one.
        slot: which of its results this is, as a turn returns them.
        limit: the largest number of turns.
    """

    params: ScanParams | WhileParams
    consts: Sequence[Value]
    carry: Sequence[Value]
    elements: Sequence[Value]
    slot: int
    limit: int = _NO_LIMIT


class Opaque(NamedTuple):
    """An operation with a body that is not run step by step."""

    primitive: Primitive
    args: Sequence[Any]
    params: dict[str, Any]


class Search:
    """Runs a program step by step, and finds where values became bad.

    Args:
        nans: whether a nan is bad.
        infinities: whether an infinity is bad.
    """

    def __init__(self, *, nans: bool, infinities: bool) -> None:
        self.nans = nans
        self.infinities = infinities
        self._count = 0

    def is_bad(self, node: Node) -> bool:
        """Whether a value is what is looked for."""
        statistics = node.statistics
        return statistics is not None and bool(
            (self.nans and statistics.nans) or (self.infinities and statistics.infinities)
        )

    def argument(self, value: Any, name: str) -> Value:
        """A value from outside."""
        return Value(value, self._node(name, value))

    def evaluate(
        self, closed: ClosedJaxpr, args: Sequence[Value], place: Any, backward: bool = False
    ) -> list[Value]:
        """Run a program equation by equation.

        Args:
            closed: the program.
            args: its arguments.
            place: the place of all equations, None if each has its own.
            backward: whether all of it is part of a backward pass.
        """
        jaxpr = dce_closed(closed).jaxpr
        values: dict[Any, Value] = {
            var: self.argument(value, "a constant of the program")
            for var, value in zip(jaxpr.constvars, closed.consts, strict=True)
        }
        values.update(zip(jaxpr.invars, args, strict=True))

        def read(atom: Any) -> Value:
            return self.argument(atom, "a number") if type(atom) is Literal else values[atom]

        with replaying() as replay:
            for eqn in jaxpr.eqns:
                replay.at(eqn)
                outs = self.apply(
                    eqn.primitive,
                    eqn.params,
                    [read(v) for v in eqn.invars],
                    eqn.traceback if place is None else place,
                    backward,
                )
                values.update(zip(eqn.outvars, outs, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def apply(
        self,
        primitive: Primitive,
        params: Mapping[str, Any],
        args: Sequence[Value],
        place: Any,
        backward: bool = False,
    ) -> list[Value]:
        """Apply an operation, step by step if it is a call or a branch."""
        backward = backward or is_transposed(place)
        given = place if isinstance(place, str) else None
        if primitive is cond_p:
            branches = params["branches"]
            chosen = min(max(int(np.asarray(_read(args[0].value))), 0), len(branches) - 1)
            return self.evaluate(branches[chosen], args[1:], given)
        if isinstance(primitive, ProgramPrimitive) and primitive is not shard_map_p:
            called = backward and primitive is jit_p
            return self.evaluate(params[primitive.program], args, given, called)
        if isinstance(primitive, EquationPrimitive):
            consts, vector = split_operands(primitive.kind, params["const_lengths"], args)
            return self.evaluate(params["jaxprs"].solve, [*consts.solve, *vector], given)
        operands = [arg.value for arg in args]
        out = primitive.bind(*operands, **params)
        outs = out if primitive.multiple_results else [out]
        nodes = [arg.node for arg in args]
        if primitive is select_n_p:
            nodes = _chosen(args)
        name = while_p.name if primitive is bounded_while_p else primitive.name
        results = [Value(o, self._node(name, o, nodes, place, backward)) for o in outs]
        for number, result in enumerate(results):
            if primitive is scan_p:
                loop = ScanParams.of(dict(params))
                result.node.hold = _Loop(loop, *loop.split(args), number)
            elif primitive is while_p:
                result.node.hold = _while(WhileParams(**params), args, number)
            elif primitive is bounded_while_p and number:  # the first counts the turns
                turn, bound = Bound.of(dict(params))
                slots = [*range(len(bound.kept)), *np.flatnonzero(bound.kept)]
                result.node.hold = _while(turn, args, int(slots[number - 1]), bound.max_steps)
            elif jaxprs_in_params(params):
                result.node.hold = Opaque(primitive, operands, dict(params))
        return results

    def origin(self, node: Node) -> Found:
        """Go back from a bad value to the operation that made it."""
        path = [node]
        while True:
            if isinstance(node.hold, _Loop):
                inside = self._inside(node, node.hold)
                if inside is None:
                    break
                return Found(inside.node, path + inside.path, inside.turns)
            bad = [operand for operand in node.operands if self.is_bad(operand)]
            if not bad:
                break
            node = min(bad, key=lambda operand: operand.number)
            path.append(node)
        return Found(node, path)

    def _node(
        self,
        name: str,
        value: Any,
        operands: Sequence[Node] = (),
        place: Any = None,
        backward: bool = False,
    ) -> Node:
        self._count += 1
        for operand in operands:
            operand.users.add(name)
        statistics = statistics_of(_read(value))
        return Node(name, tuple(operands), statistics, place, backward, self._count)

    def _inside(self, node: Node, loop: _Loop) -> Found | None:
        """The origin of a bad result of a loop; None if its turns do not show it."""
        slot, limit = loop.slot, loop.limit
        while True:
            turn, before, found = self._first_turn(loop, slot, limit)
            if not found:
                return None
            start = self._count
            carry = loop.carry
            if turn:
                carry = [Value(v, self._node("the value carried", v)) for v in before]
            consts: Sequence[Value] = loop.consts
            elements = []
            if isinstance(loop.params, ScanParams):
                body = loop.params.jaxpr
                index = _position(loop.params, turn)
                for xs in loop.elements:
                    x = dynamic_index_in_dim(xs.value, index, 0, keepdims=False)
                    elements.append(Value(x, self._node("an element", x, [xs.node])))
            else:
                body = loop.params.body_jaxpr
                consts = consts[loop.params.cond_nconsts :]
            given = node.place if isinstance(node.place, str) else None
            results = self.evaluate(body, [*consts, *carry, *elements], given)
            if not self.is_bad(results[slot].node):
                return None
            inside = self.origin(results[slot].node)
            own = [c.node for c in carry] if turn else []
            if inside.node in own:  # it came from an earlier turn
                slot, limit = own.index(inside.node), turn
                continue
            if all(passed.number > start for passed in inside.path):  # else it came from outside
                count = f" of {loop.params.length}" if isinstance(loop.params, ScanParams) else ""
                inside.turns.append(f"turn {turn + 1}{count} of the {node.name} at {node.where()}")
            return inside

    def _first_turn(self, loop: _Loop, slot: int, limit: int) -> tuple[int, Sequence[Any], bool]:
        """The first turn that makes a bad value, what it got, and whether there is one."""
        consts = [const.value for const in loop.consts]
        carry = [as_operand(_read(c.value), "a loop", "carry") for c in loop.carry]
        params = loop.params
        of_condition: Sequence[Any] = ()
        if isinstance(params, ScanParams):
            elements = [as_operand(_read(x.value), "a loop", "xs") for x in loop.elements]
            body, limit = params.jaxpr, min(limit, params.length)
            of_body, condition = consts, None
        else:
            elements, body = [], params.body_jaxpr
            of_condition, of_body = consts[: params.cond_nconsts], consts[params.cond_nconsts :]
            condition = function_of(params.cond_jaxpr)
        run, count = function_of(body), len(carry)

        def proceed(status: Any) -> Any:
            turn, found, _, now = status
            more = bitwise_and(bitwise_not(found), lt(turn, np.int32(limit)))
            if condition is not None:
                more = bitwise_and(more, condition(*of_condition, *now)[0])
            return more

        def step(status: Any) -> Any:
            turn, _, _, now = status
            parts = []
            if isinstance(params, ScanParams):
                index = _position(params, turn)
                parts = [dynamic_index_in_dim(x, index, 0, keepdims=False) for x in elements]
            outs = run(*of_body, *now, *parts)
            return add(turn, np.int32(1)), self._special(outs[slot]), now, outs[:count]

        first = (np.int32(0), np.bool_(False), carry, carry)
        turn, found, before, _ = while_loop(proceed, step, first)
        return int(turn) - 1, before, bool(found)

    def _special(self, value: Any) -> Any:
        """Whether a traced value is bad."""
        found: Any = np.bool_(False)
        if dtypes.kind_of(aval_of(value).dtype) not in ("f", "c"):
            return found
        axes = tuple(range(aval_of(value).ndim))
        flags = []
        if self.nans:
            flags.append(ne_p.bind(value, value))
        if self.infinities:
            size = abs_p.bind(value)
            flags.append(eq_p.bind(size, literal_like(np.inf, size)))
        for flag in flags:
            found = bitwise_or(found, reduce_or(flag, axes) if axes else flag)
        return found


def _while(params: WhileParams, args: Sequence[Value], slot: int, limit: int = _NO_LIMIT) -> _Loop:
    of_condition, consts, carry = params.split(args)
    return _Loop(params, [*of_condition, *consts], carry, (), slot, limit)


def _read(value: Any) -> Any:
    return np.asarray(value.val, value.aval.dtype)[()] if type(value) is Literal else value


def _position(params: ScanParams, turn: Any) -> Any:
    return sub(np.int32(params.length - 1), turn) if params.reverse else turn


def _chosen(args: Sequence[Value]) -> list[Node]:
    """The operands of a `select_n` but for those whose bad elements it leaves out."""
    which = np.asarray(_read(args[0].value))
    taken = [args[0].node]
    for number, case in enumerate(args[1:]):
        statistics = case.node.statistics
        if statistics is None or not (statistics.nans or statistics.infinities):
            taken.append(case.node)
            continue
        bad = ~np.isfinite(np.asarray(_read(case.value)).astype(np.complex128))
        if (bad & (which.astype(np.int32) == number)).any():
            taken.append(case.node)
        else:
            case.node.users.add("select_n")
    return taken
