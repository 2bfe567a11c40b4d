"""Convolutions by a native kernel, which takes any layout."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from dovetail_cpu import kernels

FLOAT32: Final = np.dtype(np.float32)

#: With fewer products of numbers than this, the call is not worth its while.
MANY: Final = 16384
#: The kernel's spatial dimensions.
SPATIAL: Final = 3


class Windows(NamedTuple):
    """What the kernel is multiplied with, along each spatial dimension.

    Args:
        strides: the strides.
        padding: zeros before and after the input.
        lhs_dilation: of the input.
        rhs_dilation: of the kernel.
    """

    strides: Sequence[int]
    padding: Sequence[tuple[int, int]]
    lhs_dilation: Sequence[int]
    rhs_dilation: Sequence[int]


class Groups(NamedTuple):
    """Numbers of groups, of which one is 1.

    Args:
        features: of input features.
        batch: of examples.
    """

    features: int
    batch: int


def suits(context: Any, a: Any, b: Any, out: Any) -> bool:
    """Whether the kernel is to be called."""
    if not kernels.usable(context) or context.divides or not 2 < a.ndim <= SPATIAL + 2:
        return False
    if any(not isinstance(size, int) for aval in (a, b, out) for size in aval.shape):
        return False
    return (
        out.dtype.name in ("float32", "float64", "bfloat16", "float16")
        and a.size > 0
        and b.size > 0
        and out.size * (b.size // out.shape[0] if False else 1) > 0
    )


def call(
    context: Any,
    lhs: Any,
    rhs: Any,
    windows: Windows,
    groups: Groups,
    dimension_numbers: Any,
) -> Any:
    """The convolution of row-major arrays."""
    (a, b), (out,) = context.avals_in, context.avals_out
    # Rounding every sum to 16 bits would lose precision.
    dtype = FLOAT32 if out.dtype.itemsize == 2 else out.dtype
    x_spec, w_spec, y_spec = dimension_numbers
    x, w, y = (_strides(aval.shape) for aval in (a, b, out))
    count = groups.features * groups.batch
    batch, inputs = a.shape[x_spec[0]] // groups.batch, b.shape[w_spec[1]]
    outputs = b.shape[w_spec[0]] // count
    sizes = [count, batch, inputs, outputs]
    x_group = batch * x[x_spec[0]] if groups.batch > 1 else inputs * x[x_spec[1]]
    sizes += [x_group, x[x_spec[0]], x[x_spec[1]]]
    sizes += [outputs * w[w_spec[0]], w[w_spec[0]], w[w_spec[1]]]
    sizes += [outputs * y[y_spec[1]], y[y_spec[0]], y[y_spec[1]]]
    dimensions = [
        [
            *(a.shape[i], b.shape[j], out.shape[k]),
            *(x[i], w[j], y[k]),
            *(stride, low, lhs_dilation, rhs_dilation),
        ]
        for i, j, k, stride, (low, _), lhs_dilation, rhs_dilation in zip(
            x_spec[2:], w_spec[2:], y_spec[2:], *windows, strict=True
        )
    ]
    # Dimensions of one place come first, for the last is the one of vectors or rows.
    alone = [1, 1, 1, 0, 0, 0, 1, 0, 1, 1]
    dimensions = [alone] * (SPATIAL - len(dimensions)) + sorted(
        dimensions, key=lambda d: prod(d[:3]) > 1
    )
    operands = [
        context.convert(value, aval, aval.update(dtype=dtype))
        for value, aval in ((lhs, a), (rhs, b))
    ]
    result = out.update(dtype=dtype)
    (value,) = kernels.call(
        context,
        kernels.CONVOLVE,
        operands,
        [result],
        0,
        sizes=tuple([*sizes, *[number for d in dimensions for number in d]]),
    )
    return context.convert(value, result, out)


def _strides(shape: Sequence[int]) -> list[int]:
    """The distances between elements of a row-major array along its dimensions."""
    return [prod(shape[i + 1 :]) for i in range(len(shape))]
