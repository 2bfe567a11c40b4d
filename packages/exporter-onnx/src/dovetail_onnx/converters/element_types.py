"""Conversions between element types, and what leaves values as they are."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.converters.formulas import in_wide, where
from dovetail_onnx.errors import Refusal
from dovetail_onnx.graph import Graph, Value
from dovetail_onnx.types import (
    BOOL,
    F32,
    I64,
    U64,
    DType,
    digits_and_smallest,
    is_float,
    is_narrow,
    onnx_type,
)

table = LoweringTable()

_BITCAST_OPSET: Final = 26


@table.rule("convert_element_type")
def convert_element_type(c: Context, x: Value, *, new_dtype: DType, **params: Any) -> Value:
    """A number in another type; integers out of range become the nearest one, and NaN zero."""
    return converted(c.graph, x, new_dtype)


def converted(g: Graph, x: Value, dtype: DType) -> Value:
    """A value in another element type."""
    if dtype == BOOL:
        return g.op("Not", g.op("Equal", x, 0)) if x.dtype != BOOL else x
    if not is_float(x.dtype) or is_float(dtype):
        return g.cast(x, dtype)
    if is_narrow(x.dtype):
        x = g.cast(x, F32)
    limits = np.iinfo(dtype)
    low, end = float(limits.min), float(limits.max) + 1  # powers of two or zero, and so exact
    below, above = g.op("Less", x, low), g.op("GreaterOrEqual", x, end)
    outside = g.op("Or", g.op("Or", below, above), g.op("IsNaN", x))
    whole = g.cast(where(g, outside, 0, x, x), dtype)
    clipped = where(g, above, np.array(limits.max, dtype), whole, whole)
    return where(g, below, np.array(limits.min, dtype), clipped, whole)


@table.rule("bitcast_convert_type")
def bitcast_convert_type(c: Context, x: Value, *, new_dtype: DType) -> Value:
    """The same bits as a value of another type."""
    old = x.dtype
    if old == new_dtype:
        return x
    if old.itemsize == new_dtype.itemsize and not is_float(old):
        if not is_float(new_dtype):
            return c.graph.cast(x, new_dtype)
        if c.graph.opset < _BITCAST_OPSET:
            return from_bits(c.graph, x, new_dtype)
    if c.graph.opset < _BITCAST_OPSET:
        raise Refusal(
            f"the bits of {old.name} as {new_dtype.name}: ONNX has this since opset "
            f"{_BITCAST_OPSET}; pass opset={_BITCAST_OPSET}"
        )
    if old.itemsize != new_dtype.itemsize or BOOL in (old, new_dtype):
        raise Refusal("ONNX has no conversion of bits to a type of another size")
    (result,) = c.graph.emit("BitCast", [x], [new_dtype], [x.shape], to=onnx_type(new_dtype))
    return result


def from_bits(g: Graph, x: Value, dtype: DType) -> Value:
    """The number whose bits are given, by arithmetic: a fraction times a power from a table."""
    digits, _ = digits_and_smallest(dtype)
    bits = 8 * dtype.itemsize
    raw = g.cast(g.cast(x, np.dtype(f"uint{bits}")), U64)
    fraction = g.cast(g.op("BitwiseAnd", raw, 2**digits - 1), I64)
    count = bits - 1 - digits
    upper = g.op("BitShift", raw, digits, direction="RIGHT")
    exponent = g.cast(g.op("BitwiseAnd", upper, 2**count - 1), I64)
    used = F32 if is_narrow(dtype) else dtype
    bias = 2 ** (count - 1) - 1
    powers = [np.ldexp(np.float64(1), max(e, 1) - bias - digits) for e in range(2**count - 1)]
    scale = g.constant(np.array([*powers, np.inf]).astype(used))
    factor = g.op("Gather", scale, exponent, shape=x.shape, axis=0)
    whole = where(
        g, g.op("Equal", exponent, 0), fraction, g.op("Add", fraction, 2**digits), fraction
    )
    number = g.op("Mul", g.cast(whole, used), factor)
    special = g.op("Equal", exponent, 2**count - 1)
    broken = g.op("And", special, g.op("Greater", fraction, 0))
    number = where(g, broken, np.array(np.nan, used), number, number)
    negative = g.op("GreaterOrEqual", raw, 2 ** (bits - 1))
    return g.cast(where(g, negative, g.op("Neg", number), number, number), dtype)


@table.rule("reduce_precision")
@in_wide
def reduce_precision(c: Context, x: Value, *, exponent_bits: int, mantissa_bits: int) -> Value:
    """A number rounded to fewer bits, where there is a type of them."""
    types = {(5, 10): np.float16, (8, 7): ml_dtypes.bfloat16, (8, 23): np.float32}
    rounded = types.get((exponent_bits, mantissa_bits))
    if (exponent_bits, mantissa_bits) == (11, 52):
        return x
    if rounded is None:
        raise Refusal(f"ONNX has no type of {exponent_bits} and {mantissa_bits} bits")
    result = c.graph.cast(c.graph.cast(x, np.dtype(rounded)), x.dtype)
    tiny = c.op("Less", c.op("Abs", result), digits_and_smallest(np.dtype(rounded))[1])
    return where(c, tiny, c.op("Mul", result, 0), result, x)


def _same(c: Context, x: Value, **params: Any) -> Value:
    """The value itself: what the primitive says concerns transformations or devices alone."""
    return x


for _name in (
    *("copy", "stop_gradient", "name", "stage", "layout_constraint", "sharding_constraint"),
    *("device_put", "reshard", "mesh_cast", "pvary", "offload"),
):
    table.rule(_name)(_same)


@table.rule("optimization_barrier")
def optimization_barrier(c: Context, *values: Value) -> list[Value]:
    """The values themselves."""
    return list(values)
