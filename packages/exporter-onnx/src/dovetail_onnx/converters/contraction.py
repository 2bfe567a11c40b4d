"""Products of matrices, along any dimensions."""

from __future__ import annotations

from math import prod
from typing import Any

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.converters.element_types import converted
from dovetail_onnx.errors import Refusal
from dovetail_onnx.graph import Graph, Value
from dovetail_onnx.types import BOOL, F32, DType, is_float, is_narrow

table = LoweringTable()


@table.rule("dot_general")
def dot_general(c: Context, x: Value, y: Value, *, dimension_numbers: Any, **params: Any) -> Value:
    """A sum of products, as a product of matrices."""
    (x_summed, y_summed), (x_batch, y_batch) = dimension_numbers
    g = c.graph
    used = product_dtype(x.dtype, y.dtype, c.dtype)
    x, y = converted(g, x, used), converted(g, y, used)
    x_free = [d for d in range(x.rank) if d not in (*x_summed, *x_batch)]
    y_free = [d for d in range(y.rank) if d not in (*y_summed, *y_batch)]
    batch = [x.shape[d] for d in x_batch]
    rows, columns = [x.shape[d] for d in x_free], [y.shape[d] for d in y_free]
    count = prod(x.shape[d] for d in x_summed)
    if not count or not prod(c.shape):
        return g.expand(0, c.shape, c.dtype)
    left = g.transpose(x, [*x_batch, *x_free, *x_summed])
    right = g.transpose(y, [*y_batch, *y_summed, *y_free])
    if not batch and len(x_summed) == 1 and right.rank == 2:
        product = g.op("MatMul", left, right, shape=[*rows, *columns])
        return converted(g, product, c.dtype)
    left = g.reshape(left, [*batch, prod(rows), count])
    right = g.reshape(right, [*batch, count, prod(columns)])
    product = matmul(g, left, right)
    return converted(g, g.reshape(product, [*batch, *rows, *columns]), c.dtype)


@table.rule("symmetric_product")
def symmetric_product(
    c: Context, a: Value, added: Value, *, alpha: float, beta: float, **params: Any
) -> Value:
    """A matrix times its transpose, and a multiple of another one added."""
    g = c.graph
    used = product_dtype(a.dtype, added.dtype, c.dtype)
    wide = g.cast(a, used)
    turned = g.transpose(wide, [*range(a.rank - 2), a.rank - 1, a.rank - 2])
    if not all(a.shape):
        own = g.expand(0, c.shape, used)
    else:
        own = g.op("Mul", matmul(g, wide, turned), alpha)
    if beta:
        own = g.op("Add", own, g.op("Mul", g.cast(added, used), beta))
    return g.cast(own, c.dtype)


def product_dtype(x: DType, y: DType, result: DType) -> DType:
    """The type in which products are computed and added."""
    for dtype in (x, y, result):
        if dtype.kind == "c":
            raise Refusal("ONNX has no operators on complex numbers")
    widest = max((x, y, result), key=lambda dtype: (is_float(dtype), dtype.itemsize))
    return F32 if is_narrow(widest) or (widest == BOOL and is_float(result)) else widest


def matmul(g: Graph, x: Value, y: Value) -> Value:
    """The product of two matrices, or of batches of them of one shape."""
    shape = [*x.shape[:-1], y.shape[-1]]
    return g.op("MatMul", x, y, shape=shape)
