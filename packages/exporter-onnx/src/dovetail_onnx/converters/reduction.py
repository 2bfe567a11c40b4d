"""Reductions, and positions of extrema."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.converters.formulas import lowest, nan, where
from dovetail_onnx.errors import Refusal
from dovetail_onnx.graph import Value
from dovetail_onnx.types import BOOL, I64, U8, DType, is_float

table = LoweringTable()


@table.rule("reduce_sum")
def reduce_sum(c: Context, x: Value, *, axes: Sequence[int], **params: Any) -> Value:
    """The sum."""
    return c.graph.reduce("ReduceSum", x, axes)


@table.rule("reduce_prod")
def reduce_prod(c: Context, x: Value, *, axes: Sequence[int], **params: Any) -> Value:
    """The product; of integers modulo a power of two, which ``ReduceProd`` does not promise."""
    if is_float(x.dtype):
        return c.graph.reduce("ReduceProd", x, axes)
    if not all(x.shape[d] for d in axes):
        return c.graph.expand(1, c.shape, x.dtype)
    for d in axes:
        x = _folded(c, x, d, "Mul")
    return c.graph.squeeze(x, axes)


def _extremum(operator: str, highest: bool) -> Callable[..., Value]:
    # ``ReduceMax`` does not say what it makes of NaN, and runtimes leave it out.
    def convert(c: Context, x: Value, *, axes: Sequence[int], **params: Any) -> Value:
        if not all(x.shape[d] for d in axes):
            return c.graph.expand(c.graph.constant(lowest(x.dtype, not highest)), c.shape)
        result = c.graph.reduce(operator, x, axes)
        if not is_float(x.dtype) or not axes:
            return result
        unknown = c.graph.cast(c.op("IsNaN", x), U8)
        some = c.graph.cast(c.graph.reduce("ReduceMax", unknown, axes), BOOL)
        return where(c, some, nan(x), result, x)

    return convert


table.rule("reduce_max")(_extremum("ReduceMax", True))
table.rule("reduce_max_of_numbers")(_extremum("ReduceMax", True))
table.rule("reduce_min")(_extremum("ReduceMin", False))


def _bitwise(operator: str, truth: str, empty: int) -> Callable[..., Value]:
    """A reduction of truth values, or of the bits of integers.

    Args:
        operator: combines bits.
        truth: reduces truth values; empty where there is no such operator.
        empty: the result for no elements.
    """

    def convert(c: Context, x: Value, *, axes: Sequence[int]) -> Value:
        if not all(x.shape[d] for d in axes):
            return c.graph.expand(c.graph.constant(np.array(empty).astype(x.dtype)), c.shape)
        if x.dtype == BOOL and truth:
            return c.graph.reduce(truth, x, axes)
        name = {"BitwiseXor": "Xor"}.get(operator, operator) if x.dtype == BOOL else operator
        for d in axes:
            x = _folded(c, x, d, name)
        return c.graph.squeeze(x, axes)

    return convert


def _folded(c: Context, x: Value, dim: int, operator: str) -> Value:
    """All elements along a dimension combined, in pairs."""
    g = c.graph

    while (size := x.shape[dim]) > 1:
        half = size // 2
        pairs = g.op(operator, g.part(x, dim, 0, half), g.part(x, dim, half, 2 * half))
        x = g.concat([pairs, g.part(x, dim, 2 * half, size)], dim) if size % 2 else pairs
    return x


table.rule("reduce_and")(_bitwise("BitwiseAnd", "ReduceMin", -1))
table.rule("reduce_or")(_bitwise("BitwiseOr", "ReduceMax", 0))
table.rule("reduce_xor")(_bitwise("BitwiseXor", "", 0))


def _position(operator: str) -> Callable[..., Value]:
    def convert(c: Context, x: Value, *, axes: Sequence[int], index_dtype: DType) -> Value:
        (axis,) = axes
        if not x.shape[axis]:
            raise Refusal("there is no position in an empty array")

        def of(x: Value, operator: str) -> Value:
            return c.op(operator, x, dtype=I64, shape=c.shape, axis=axis, keepdims=0)

        found = of(x, operator)
        if is_float(x.dtype):
            unknown = c.graph.cast(c.op("IsNaN", x), U8)
            some = c.graph.cast(c.graph.reduce("ReduceMax", unknown, [axis]), BOOL)
            found = where(c, some, of(unknown, "ArgMax"), found, found)
        return c.graph.cast(found, index_dtype)

    return convert


table.rule("argmax")(_position("ArgMax"))
table.rule("argmin")(_position("ArgMin"))
