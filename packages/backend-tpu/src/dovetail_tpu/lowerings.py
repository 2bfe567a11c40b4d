"""Lowering rules for operations that XLA's TPU compiler cannot compile directly from StableHLO.

It splits 64-bit numbers into pairs of 32 bits, operation by operation, but that pass does not know
every operation. Other operations do not support every type.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable, ShapedArray
from dovetail.extend.lowering import copy_to_memory, exchange_rows, keep_alive

TABLE: Final = LoweringTable()
TABLE.rule("offload")(copy_to_memory)

WIDE_INTEGERS: Final = (np.dtype(np.int64), np.dtype(np.uint64))

#: Replaces a 64-bit value where only its presence matters.
NARROW: Final = {
    np.dtype(np.int64): np.dtype(np.int32),
    np.dtype(np.uint64): np.dtype(np.uint32),
    np.dtype(np.float64): np.dtype(np.float32),
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float32),
}


@TABLE.rule("ragged_all_to_all")
def ragged_all_to_all(context: Any, *values: Any, **params: Any) -> Any:
    """The compiler has the operation, but for numbers that it splits."""
    if context.avals_in[0].dtype in NARROW:
        return NotImplemented
    return exchange_rows(context, *values, **params)


@TABLE.rule("cbrt")
def cbrt(context: Any, x: Any, *, accuracy: Any = None) -> Any:
    """There is one implementation, the most accurate; the compiler fails when asked to choose."""
    if getattr(accuracy, "name", "") != "HIGHEST":
        return NotImplemented
    return context.op("cbrt", (x,), context.avals_out[0])


@TABLE.rule("dce_sink")
def dce_sink(context: Any, x: Any, *, prevent_mlir_dce: bool) -> Any:
    """A call that the compiler knows; for numbers that it splits, one part is kept."""
    (aval,) = context.avals_in
    if prevent_mlir_dce and aval.dtype in NARROW:
        x = context.convert(x, aval, ShapedArray(aval.shape, NARROW[aval.dtype]))
    return keep_alive(context, x, prevent_mlir_dce=prevent_mlir_dce)


@TABLE.rule("dot_general")
def dot_general(context: Any, x: Any, y: Any, *, dimension_numbers: Any, **params: Any) -> Any:
    """For 64-bit integers, which have no matrix products: a sum of products, which the compiler
    computes without writing the products to memory."""
    (out,) = context.avals_out
    if out.dtype not in WIDE_INTEGERS:
        return NotImplemented
    (contracted_x, contracted_y), (batch_x, batch_y) = dimension_numbers
    aval_x, aval_y = context.avals_in
    free_x = [d for d in range(aval_x.ndim) if d not in (*contracted_x, *batch_x)]
    free_y = [d for d in range(aval_y.ndim) if d not in (*contracted_y, *batch_y)]
    # The dimensions of the products: of the batch, of x, of y, and those to sum over.
    products = ShapedArray((*out.shape, *(aval_x.shape[d] for d in contracted_x)), out.dtype)
    batch = range(len(batch_x))
    own_x = range(len(batch), len(batch) + len(free_x))
    own_y = range(own_x.stop, out.ndim)
    summed = range(out.ndim, products.ndim)
    places_x = dict(zip((*batch_x, *free_x, *contracted_x), (*batch, *own_x, *summed), strict=True))
    places_y = dict(zip((*batch_y, *free_y, *contracted_y), (*batch, *own_y, *summed), strict=True))
    factors = []
    for value, aval, places in ((x, aval_x, places_x), (y, aval_y, places_y)):
        wide = context.convert(value, aval, ShapedArray(aval.shape, out.dtype))
        order = [places[d] for d in range(aval.ndim)]
        factors.append(context.broadcast_in_dim(wide, products, order))
    number = ShapedArray((), out.dtype)
    (result,) = context.reduce(
        [context.mul(factors[0], factors[1], products)],
        [context.constant(0, number)],
        tuple(summed),
        [out],
        lambda a, b: [context.add(a, b, number)],
    )
    return result


@TABLE.rule("select_and_scatter_add")
def select_and_scatter_add(context: Any, source: Any, operand: Any, **params: Any) -> Any:
    """Windows must leave out two dimensions, like batch and features of images: dimensions of size
    1 are added if they do not."""
    source_aval, aval = context.avals_in
    windows = zip(
        params["window_dimensions"], params["window_strides"], params["padding"], strict=True
    )
    left_out = [d for d, window in enumerate(windows) if window == (1, 1, (0, 0))]
    if len(left_out) >= 2 or not aval.size or not source_aval.size:
        return NotImplemented
    ones = (1, 1)
    params["window_dimensions"] = (*params["window_dimensions"], *ones)
    params["window_strides"] = (*params["window_strides"], *ones)
    params["padding"] = (*params["padding"], (0, 0), (0, 0))
    wide = [ShapedArray((*a.shape, *ones), a.dtype) for a in (source_aval, aval)]
    primitive = context.equation.primitive
    function = context.lower_function(lambda *arrays: primitive.bind(*arrays, **params), wide)
    (result,) = function(context.reshape(source, wide[0]), context.reshape(operand, wide[1]))
    return context.reshape(result, context.avals_out[0])
