"""Sorting, and the largest elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.converters.formulas import where
from dovetail_onnx.graph import Value
from dovetail_onnx.types import BOOL, I32, I64, is_float

table = LoweringTable()


@table.rule("sort")
def sort(c: Context, *operands: Value, dimension: int, num_keys: int, **params: Any) -> list[Value]:
    """Arrays sorted by the first of them, or the first few; NaN comes last."""
    if operands[0].shape[dimension] < 2:
        return list(operands)
    order = None
    for key in reversed(operands[:num_keys]):
        if order is not None:
            key = _taken(c, key, order, dimension)
        found = _order(c, key, dimension)
        order = found if order is None else _taken(c, order, found, dimension)
    assert order is not None
    return [_taken(c, x, order, dimension) for x in operands]


def _order(c: Context, key: Value, axis: int) -> Value:
    """The stable order of the elements along a dimension; NaN comes last."""
    size = key.shape[axis]
    if not is_float(key.dtype):
        return _smallest(c, key, axis, size)
    unknown = c.op("IsNaN", key)
    high = np.array(np.inf).astype(key.dtype)
    first = _smallest(c, where(c, unknown, high, key, key), axis, size)
    flags = _taken(c, c.graph.cast(unknown, I32), first, axis)
    return _taken(c, first, _smallest(c, flags, axis, size), axis)


def _smallest(c: Context, key: Value, axis: int, count: int) -> Value:
    return _extreme(c, key, axis, count, largest=0)[1]


def _extreme(c: Context, key: Value, axis: int, count: int, largest: int) -> list[Value]:
    """The largest or smallest elements and their positions, of equal ones the first ones first."""
    shape = [count if d == axis else n for d, n in enumerate(key.shape)]
    return c.graph.ops(
        "TopK",
        [key, c.graph.sizes([count])],
        [key.dtype, I64],
        [shape, shape],
        axis=axis,
        largest=largest,
        sorted=1,
    )


def _taken(c: Context, x: Value, order: Value, axis: int) -> Value:
    return c.op("GatherElements", x, order, shape=order.shape, axis=axis)


def _largest(c: Context, x: Value, axis: int, k: int, largest: int = 1) -> list[Value]:
    """The largest elements and their positions; NaN is larger than everything else."""
    if not k or not all(x.shape):
        shape = [k if d == axis else n for d, n in enumerate(x.shape)]
        return [c.graph.expand(0, shape, x.dtype), c.graph.expand(0, shape, I32)]
    if x.dtype == BOOL:
        _, order = _extreme(c, c.graph.cast(x, I32), axis, k, largest)
    elif is_float(x.dtype):
        size = x.shape[axis]
        unknown = c.op("IsNaN", x)
        end = np.array(np.inf if largest else -np.inf).astype(x.dtype)
        _, first = _extreme(c, where(c, unknown, end, x, x), axis, size, largest)
        flags = _taken(c, c.graph.cast(unknown, I32), first, axis)
        _, second = _extreme(c, flags, axis, k, 1)
        order = _taken(c, first, second, axis)
    else:
        _, order = _extreme(c, x, axis, k, largest)
    return [_taken(c, x, order, axis), c.graph.cast(order, I32)]


@table.rule("searchsorted")
def searchsorted(c: Context, rows: Value, values: Value, *, side: str) -> Value:
    """How many elements of a sorted row come before each value, found bit by bit."""
    size, shape = rows.shape[-1], values.shape
    found = c.graph.expand(0, shape, I32)
    if not all(shape):
        return c.graph.cast(found, c.dtype)
    if rows.dtype == BOOL:
        rows, values = (c.graph.cast(x, I32) for x in (rows, values))
    most = c.graph.constant(np.array(size, np.int32))
    for bit in reversed(range(size.bit_length())):
        tried = c.op("Add", found, c.graph.constant(np.array(1 << bit, np.int32)))
        place = c.op("Sub", c.op("Min", tried, most), c.graph.constant(np.array(1, np.int32)))
        element = c.op("GatherElements", rows, place, shape=shape, axis=rows.rank - 1)
        if side == "left":
            below = _before(c, element, values)
        else:
            below = c.op("Not", _before(c, values, element))
        inside = c.op("Not", c.op("Less", most, tried))
        found = c.op("Where", c.op("And", inside, below), tried, found)
    return c.graph.cast(found, c.dtype)


def _before(c: Context, x: Value, y: Value) -> Value:
    """Whether numbers are less than others; NaN comes last."""
    less = c.op("Less", x, y)
    if not is_float(x.dtype):
        return less
    known, unknown = c.op("Not", c.op("IsNaN", x)), c.op("IsNaN", y)
    return c.op("Or", less, c.op("And", known, unknown))


@table.rule("order_statistics")
def order_statistics(c: Context, x: Value, positions: Value) -> Value:
    """Elements of rows at positions of their sorted order, which are clipped."""
    last, size = x.rank - 1, x.shape[-1]
    shape = [*x.shape[:-1], positions.shape[-1]]
    if not all(shape):
        return c.graph.expand(0, shape, x.dtype)
    ordered = _taken(c, x, _order(c, x, last), last) if size > 1 else x
    low, high = (c.graph.constant(np.array(n, np.int32)) for n in (0, size - 1))
    places = c.op("Min", c.op("Max", positions, low), high)
    if positions.rank == 1:
        return c.op("Gather", ordered, places, shape=shape, axis=last)
    return _taken(c, ordered, places, last)


@table.rule("true_positions")
def true_positions(c: Context, flags: Value, *, size: int) -> Value:
    """Positions of true elements, which are the largest of numbers that descend with positions."""
    last, count = flags.rank - 1, flags.shape[-1]
    found = min(size, count)
    rows = [*flags.shape[:-1]]
    if not found or not all(rows):
        return c.graph.expand(count, [*rows, size], c.dtype)
    descending = c.graph.constant(np.arange(count, 0, -1, dtype=np.int32))
    keys = c.op("Mul", c.graph.cast(flags, I32), descending)
    numbers, _ = _extreme(c, keys, last, found, 1)
    places = c.op("Sub", c.graph.constant(np.array(count, np.int32)), numbers)
    missing = c.graph.expand(count, [*rows, size - found], I32)
    parts = [places, missing] if size > found else [places]
    return c.graph.cast(c.graph.concat(parts, last), c.dtype)


@table.rule("top_k")
def top_k(c: Context, x: Value, *, k: int, axis: int) -> list[Value]:
    """The largest elements, the largest first."""
    return _largest(c, x, axis, k)


@table.rule("approx_top_k")
def approx_top_k(
    c: Context, x: Value, *, k: int, reduction_dimension: int, is_max_k: bool, **params: Any
) -> list[Value]:
    """The largest or smallest elements: exactly these, which is what is asked for at least."""
    return _largest(c, x, reduction_dimension % x.rank, k, int(is_max_k))
