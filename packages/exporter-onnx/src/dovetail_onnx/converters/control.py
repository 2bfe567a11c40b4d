"""Branches and loops, as ONNX's `If`, `Loop` and `Scan`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dovetail.extend import ClosedJaxpr, LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.graph import Graph, Value
from dovetail_onnx.types import BOOL, I64

table = LoweringTable()


@table.rule("cond")
def cond(
    c: Context, which: Value, *operands: Value, branches: Sequence[ClosedJaxpr], **params: Any
) -> list[Value]:
    """One of several branches; a number that is too low or too high is the nearest one."""
    if which.known is not None:
        number = int(np.clip(which.known.astype(np.int64), 0, len(branches) - 1))
        return c.inline(branches[number], operands)
    return _choice(c, c.graph.cast(which, I64), 0, branches, operands)


def _choice(
    c: Context,
    which: Value,
    first: int,
    branches: Sequence[ClosedJaxpr],
    operands: Sequence[Value],
) -> list[Value]:
    """The results of the branch of a number, among those from the first on."""
    if first == len(branches) - 1:
        return c.inline(branches[first], operands)
    g = c.graph
    condition = c.op("LessOrEqual", which, first)
    with g.body() as taken:
        results = c.inline(branches[first], operands)
        then = g.subgraph(taken, g.name("branch"), (), results)
    with g.body() as other:
        otherwise = _choice(c, which, first + 1, branches, operands)
        rest = g.subgraph(other, g.name("branch"), (), otherwise)
    return g.emit(
        "If",
        [condition],
        [x.dtype for x in results],
        [x.shape for x in results],
        then_branch=then,
        else_branch=rest,
    )


def _parameter(g: Graph, like: Value, stem: str) -> Value:
    return Value(g.name(stem), like.dtype, like.shape)


@table.rule("while")
def while_(
    c: Context,
    *operands: Value,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
) -> list[Value]:
    """A loop that goes on while a condition holds."""
    g = c.graph
    of_condition = operands[:cond_nconsts]
    of_body = operands[cond_nconsts : cond_nconsts + body_nconsts]
    carried = operands[cond_nconsts + body_nconsts :]
    (begins,) = c.inline(cond_jaxpr, [*of_condition, *carried])
    with g.body() as block:
        turn, goes_on = Value(g.name("turn"), I64, ()), Value(g.name("goes_on"), BOOL, ())
        state = [_parameter(g, x, "state") for x in carried]
        results = c.inline(body_jaxpr, [*of_body, *state])
        (condition,) = c.inline(cond_jaxpr, [*of_condition, *results])
        body = g.subgraph(block, g.name("body"), [turn, goes_on, *state], [condition, *results])
    return g.emit(
        "Loop",
        [None, begins, *carried],
        [x.dtype for x in carried],
        [x.shape for x in carried],
        body=body,
    )


@table.rule("bounded_while")
def bounded_while(
    c: Context,
    *operands: Value,
    cond_jaxpr: ClosedJaxpr,
    body_jaxpr: ClosedJaxpr,
    cond_nconsts: int,
    body_nconsts: int,
    max_steps: int,
    segment: int,
    kept: Sequence[bool],
) -> list[Value]:
    """The same, at most so many times; the number of turns, and rows of what it has kept."""
    g = c.graph
    of_condition = operands[:cond_nconsts]
    of_body = operands[cond_nconsts : cond_nconsts + body_nconsts]
    carried = operands[cond_nconsts + body_nconsts :]
    (begins,) = c.inline(cond_jaxpr, [*of_condition, *carried])
    avals = c.outs[1 + len(carried) :]
    # What is not to be kept goes to a row more, which is cut off.
    stacks = [g.expand(0, (a.shape[0] + 1, *a.shape[1:]), a.dtype) for a in avals]
    begun = g.constant(np.int64(0))
    with g.body() as block:
        turn, goes_on = Value(g.name("turn"), I64, ()), Value(g.name("goes_on"), BOOL, ())
        count, *state = (_parameter(g, x, "state") for x in (begun, *carried))
        rows = [_parameter(g, x, "kept") for x in stacks]
        results = c.inline(body_jaxpr, [*of_body, *state])
        (condition,) = c.inline(cond_jaxpr, [*of_condition, *results])
        row = c.op("Div", turn, segment)
        starts = c.op("Equal", c.op("Mul", row, segment), turn)
        starting = [x for x, keeps in zip(state, kept, strict=True) if keeps]
        written = []
        for stack, value in zip(rows, starting, strict=True):
            last = g.constant(np.int64(stack.shape[0] - 1))
            place = g.op("Where", starts, row, last, shape=(), dtype=I64)
            written.append(_with_row(g, stack, place, value))
        after = c.op("Add", count, 1)
        outs = [condition, after, *results, *written]
        body = g.subgraph(block, g.name("body"), [turn, goes_on, count, *state, *rows], outs)
    initial = [begun, *carried, *stacks]
    turns, *found = g.emit(
        "Loop",
        [g.constant(np.int64(max_steps)), begins, *initial],
        [x.dtype for x in initial],
        [x.shape for x in initial],
        body=body,
    )
    of_segments = [g.part(x, 0, 0, x.shape[0] - 1) for x in found[len(carried) :]]
    return [g.cast(turns, c.outs[0].dtype), *found[: len(carried)], *of_segments]


def _with_row(g: Graph, stack: Value, row: Value, value: Value) -> Value:
    """An array with another row."""
    place, rows = g.reshape(row, [1, 1]), g.unsqueeze(value, [0])
    return g.op("ScatterND", stack, place, rows, shape=stack.shape)


@table.rule("partial_scan")
def partial_scan(
    c: Context,
    turns: Value,
    *operands: Value,
    jaxpr: ClosedJaxpr,
    length: int,
    reverse: bool,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> list[Value]:
    """A loop over the leading elements of arrays; the rows of the others are zeros."""
    g = c.graph
    constants = operands[:num_consts]
    carried = operands[num_consts : num_consts + num_carry]
    arrays = operands[num_consts + num_carry :]
    stacks = [g.expand(0, a.shape, a.dtype) for a in c.outs[num_carry:]]
    if not length:
        return [*carried, *stacks]
    end = g.op("Min", g.cast(turns, I64), g.constant(np.int64(length)), shape=(), dtype=I64)
    with g.body() as block:
        turn, goes_on = Value(g.name("turn"), I64, ()), Value(g.name("goes_on"), BOOL, ())
        state = [_parameter(g, x, "state") for x in carried]
        rows = [_parameter(g, x, "rows") for x in stacks]
        index = c.op("Sub", c.op("Sub", end, 1), turn) if reverse else turn
        elements = [g.op("Gather", x, index, shape=x.shape[1:], axis=0) for x in arrays]
        results = c.inline(jaxpr, [*constants, *state, *elements])
        after = [
            _with_row(g, stack, index, value)
            for stack, value in zip(rows, results[num_carry:], strict=True)
        ]
        outs = [goes_on, *results[:num_carry], *after]
        body = g.subgraph(block, g.name("body"), [turn, goes_on, *state, *rows], outs)
    initial = [*carried, *stacks]
    return g.emit(
        "Loop",
        [end, g.constant(np.array(True)), *initial],
        [x.dtype for x in initial],
        [x.shape for x in initial],
        body=body,
    )


@table.rule("report_progress")
def report_progress(c: Context, count: Value, total: Value, **params: Any) -> list[Value]:
    """The number of turns; a model shows no bars."""
    return [count]


@table.rule("scan")
def scan(
    c: Context,
    *operands: Value,
    jaxpr: ClosedJaxpr,
    length: int,
    reverse: bool,
    num_consts: int,
    num_carry: int,
    **params: Any,
) -> list[Value]:
    """A loop over the elements of arrays."""
    g = c.graph
    constants = operands[:num_consts]
    carried = operands[num_consts : num_consts + num_carry]
    arrays = operands[num_consts + num_carry :]
    outs = c.outs
    if not length:
        empty = [g.expand(0, a.shape, a.dtype) for a in outs[num_carry:]]
        return [*carried, *empty]
    if not arrays:
        return _counted(c, constants, carried, jaxpr, length)
    with g.body() as block:
        state = [_parameter(g, x, "state") for x in carried]
        elements = [Value(g.name("element"), x.dtype, x.shape[1:]) for x in arrays]
        results = c.inline(jaxpr, [*constants, *state, *elements])
        body = g.subgraph(block, g.name("body"), [*state, *elements], results)
    written = len(results) - num_carry
    return g.emit(
        "Scan",
        [*carried, *arrays],
        [a.dtype for a in outs],
        [a.shape for a in outs],
        body=body,
        num_scan_inputs=len(arrays),
        scan_input_directions=[int(reverse)] * len(arrays),
        scan_output_directions=[int(reverse)] * written if written else None,
    )


def _counted(
    c: Context,
    constants: Sequence[Value],
    carried: Sequence[Value],
    jaxpr: ClosedJaxpr,
    length: int,
) -> list[Value]:
    """A loop of so many turns, which reads no arrays."""
    g = c.graph
    outs = c.outs
    with g.body() as block:
        turn, goes_on = Value(g.name("turn"), I64, ()), Value(g.name("goes_on"), BOOL, ())
        state = [_parameter(g, x, "state") for x in carried]
        results = c.inline(jaxpr, [*constants, *state])
        body = g.subgraph(block, g.name("body"), [turn, goes_on, *state], [goes_on, *results])
    found = g.emit(
        "Loop",
        [g.constant(np.int64(length)), g.constant(np.array(True)), *carried],
        [a.dtype for a in outs],
        [a.shape for a in outs],
        body=body,
    )
    if c.eqn.params["reverse"]:
        count = len(carried)
        found[count:] = [g.reverse(x, [0]) for x in found[count:]]
    return found


@table.rule("platform_index")
def platform_index(c: Context, *, platforms: Sequence[Any]) -> Value:
    """The choice for no platform in particular: the default, or else the first one."""
    number = list(platforms).index(None) if None in platforms else 0
    return c.graph.constant(np.array(number), c.dtype)
