"""Convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.converters.contraction import matmul, product_dtype
from dovetail_onnx.converters.element_types import converted
from dovetail_onnx.converters.slicing import padded
from dovetail_onnx.errors import Refusal
from dovetail_onnx.graph import Graph, Value
from dovetail_onnx.types import F32

table = LoweringTable()

_MOST_POSITIONS: Final = 512
"""Positions of a kernel beyond which a convolution is not written as a sum of products."""


@table.rule("conv_general_dilated")
def conv_general_dilated(
    c: Context,
    x: Value,
    kernel: Value,
    *,
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int],
    rhs_dilation: Sequence[int],
    dimension_numbers: Any,
    feature_group_count: int,
    batch_group_count: int,
    **params: Any,
) -> Value:
    """A convolution, with dimensions in any order, groups, and dilated input and kernel."""
    g = c.graph
    used = product_dtype(x.dtype, kernel.dtype, c.dtype)
    x = converted(g, g.transpose(x, dimension_numbers.lhs_spec), used)
    kernel = converted(g, g.transpose(kernel, dimension_numbers.rhs_spec), used)
    order = [dimension_numbers.out_spec.index(d) for d in range(x.rank)]
    shape = [c.shape[d] for d in dimension_numbers.out_spec]
    if not prod(shape) or not prod(x.shape) or not prod(kernel.shape):
        return g.expand(0, c.shape, c.dtype)
    groups = feature_group_count
    if batch_group_count > 1:
        groups = batch_group_count
        x = _batches_as_features(g, x, groups)
    zero = g.constant(np.zeros((), used))
    spread = [(0, 0, n - 1) for n in lhs_dilation]
    x = padded(g, x, zero, [(0, 0, 0)] * 2 + spread)
    # A kernel beyond the border on both sides, and a border inside the array, are written out.
    x = padded(g, x, zero, [(0, 0, 0)] * 2 + [(min(a, 0), min(b, 0), 0) for a, b in padding])
    border = [(max(a, 0), max(b, 0)) for a, b in padding]
    spatial = x.rank - 2
    if used == F32 and 1 <= spatial <= 3:
        result = g.op(
            "Conv",
            x,
            kernel,
            shape=shape,
            strides=list(window_strides),
            pads=[a for a, _ in border] + [b for _, b in border],
            dilations=list(rhs_dilation),
            group=groups,
        )
    else:
        x = padded(g, x, zero, [(0, 0, 0)] * 2 + [(a, b, 0) for a, b in border])
        result = _unrolled(g, x, kernel, shape, window_strides, rhs_dilation, groups)
    return converted(g, g.transpose(result, order), c.dtype)


def _batches_as_features(g: Graph, x: Value, groups: int) -> Value:
    """Groups of a batch side by side, as groups of features."""
    batch, features, *spatial = x.shape
    x = g.reshape(x, [groups, batch // groups, features, *spatial])
    x = g.transpose(x, [1, 0, *range(2, x.rank)])
    return g.reshape(x, [batch // groups, groups * features, *spatial])


def _unrolled(
    g: Graph,
    x: Value,
    kernel: Value,
    shape: Sequence[int],
    strides: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Value:
    """A convolution as a sum over the positions of the kernel, for types that `Conv` has not."""
    batch, features, *_ = x.shape
    outputs, inner, *window = kernel.shape
    if prod(window) > _MOST_POSITIONS:
        raise Refusal(
            f"ONNX's convolution has no {x.dtype.name} and at most three spatial dimensions, and "
            f"the kernel has {prod(window)} positions: compute in float32"
        )
    sizes = shape[2:]
    total = None
    for place in product(*map(range, window)):
        starts = [at * d for at, d in zip(place, dilation, strict=True)]
        limits = [a + (n - 1) * s + 1 for a, n, s in zip(starts, sizes, strides, strict=True)]
        part = g.slice(x, [0, 0, *starts], [batch, features, *limits], [1, 1, *strides])
        part = g.reshape(part, [batch, groups, inner, prod(sizes)])
        weights = g.slice(kernel, [0, 0, *place], [outputs, inner, *(at + 1 for at in place)])
        weights = g.reshape(weights, [1, groups, outputs // groups, inner])
        weights = g.expand(weights, [batch, groups, outputs // groups, inner])
        term = matmul(g, weights, part)
        total = term if total is None else g.op("Add", total, term)
    assert total is not None
    return g.reshape(total, shape)
