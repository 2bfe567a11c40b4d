"""Shapes: broadcasts, reshapes, transposes, and arrays of positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.graph import Value
from dovetail_onnx.types import DType

table = LoweringTable()


@table.rule("broadcast_in_dim")
def broadcast_in_dim(
    c: Context,
    x: Value,
    *,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    **params: Any,
) -> Value:
    """An array repeated along new dimensions, and along those of size 1."""
    new = [d for d in range(len(shape)) if d not in broadcast_dimensions]
    return c.graph.expand(c.graph.unsqueeze(x, new), shape)


@table.rule("reshape")
def reshape(
    c: Context, x: Value, *, new_sizes: Sequence[int], dimensions: Any, **params: Any
) -> Value:
    """The elements in another shape, in their order or in that of some dimensions."""
    if dimensions is not None:
        x = c.graph.transpose(x, dimensions)
    return c.graph.reshape(x, new_sizes)


@table.rule("squeeze")
def squeeze(c: Context, x: Value, *, dimensions: Sequence[int]) -> Value:
    """An array without some dimensions of size 1."""
    return c.graph.squeeze(x, [d % x.rank for d in dimensions])


@table.rule("transpose")
def transpose(c: Context, x: Value, *, permutation: Sequence[int]) -> Value:
    """The dimensions in another order."""
    return c.graph.transpose(x, permutation)


@table.rule("rev")
def rev(c: Context, x: Value, *, dimensions: Sequence[int]) -> Value:
    """The elements in the opposite order."""
    return c.graph.reverse(x, dimensions)


@table.rule("iota")
def iota(c: Context, *, dtype: DType, shape: Sequence[int], dimension: int, **params: Any) -> Value:
    """Positions along a dimension."""
    return c.graph.iota(shape, dimension, dtype)
