"""Convolutions by a native kernel, which takes any layout."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from dovetail.extend.dtypes import dtype_name
from dovetail_cpu import kernels
from dovetail_cpu.lowerings.views import row_major

FLOAT32: Final = np.dtype(np.float32)
INT32: Final = np.dtype(np.int32)

#: With fewer products of numbers than this, the call is not worth its while.
MANY: Final = 16384
#: The same of a group of an example.
MANY_OF_A_TASK: Final = 4096
#: Up to this many output features are few.
FEW: Final = 4
#: Of 16-bit floats the sums are float32, of narrow integers int32, which wraps around alike.
_DTYPES: Final = frozenset(
    {
        *("float16", "bfloat16", "float32", "float64"),
        *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    }
)
#: What is multiplied in tiles, if the processor has them, by the dtype of the result.
_NARROW: Final = {
    "bfloat16": ("bfloat16",),
    "float32": ("bfloat16",),
    **dict.fromkeys(("int8", "uint8", "int32", "uint32"), ("int8", "uint8")),
}
#: The least products and output features of these, and the least positions.
MANY_IN_TILES: Final = 1 << 16
FEATURES_IN_TILES: Final = 8
POSITIONS_IN_TILES: Final = 16
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


def suits(
    context: Any,
    avals: Sequence[Any],
    windows: Windows,
    groups: Groups,
    dimension_numbers: Any,
) -> bool:
    """Whether the kernel is to be called, for these operands and this result."""
    a, b, out = avals
    if not kernels.usable(context) or context.divides or not 2 < a.ndim <= SPATIAL + 2:
        return False
    if not all(isinstance(size, int) for aval in (a, b, out) for size in aval.shape):
        return False
    if dtype_name(out.dtype) not in _DTYPES or not a.size * b.size * out.size:
        return False
    x_spec, w_spec, y_spec = dimension_numbers
    count = groups.features * groups.batch
    planes = count > 1 and x_spec[1] != a.ndim - 1
    few = b.shape[w_spec[0]] <= FEW * count and (count == 1 or planes)
    if few and any(dilation > 1 for dilation in windows.lhs_dilation):
        # The input would be copied for each phase, for little work.
        return False
    products = out.size * (b.size // b.shape[w_spec[0]])
    # Where features come first, each group of an example is a task of its own.
    tasks = count * out.shape[y_spec[0]] if planes else 0
    return bool(products >= max(MANY, MANY_OF_A_TASK * tasks))


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
    whole = dtype_name(out.dtype).startswith(("int", "uint"))
    dtype = out.dtype
    narrow = _suits_tiles(context, windows, groups, dimension_numbers)
    if dtype.itemsize < 4 and (whole or not narrow):
        # Rounding every sum of floats to 16 bits would lose precision.
        dtype = INT32 if whole else FLOAT32
    x_spec, w_spec, y_spec = dimension_numbers
    rhs, reversed_dimensions = _read_backwards(rhs)
    x, w, y = (row_major(aval.shape) for aval in (a, b, out))
    first = sum((b.shape[i] - 1) * w[i] for i in reversed_dimensions)
    w = tuple(-by if i in reversed_dimensions else by for i, by in enumerate(w))
    count = groups.features * groups.batch
    batch, inputs = a.shape[x_spec[0]] // groups.batch, b.shape[w_spec[1]]
    outputs = b.shape[w_spec[0]] // count
    sizes = [count, batch, inputs, outputs]
    x_group = batch * x[x_spec[0]] if groups.batch > 1 else inputs * x[x_spec[1]]
    sizes += [x_group, x[x_spec[0]], x[x_spec[1]]]
    sizes += [first, outputs * w[w_spec[0]], w[w_spec[0]], w[w_spec[1]]]
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
    operands = [lhs, rhs]
    target = kernels.CONVOLVE_NARROW
    if not narrow:
        operands = [
            context.convert(value, aval, aval.update(dtype=dtype))
            for value, aval in ((lhs, a), (rhs, b))
        ]
        target = kernels.CONVOLVE_INTEGERS if whole else kernels.CONVOLVE
    result = out.update(dtype=dtype)
    (value,) = kernels.call(
        context,
        target,
        operands,
        [result],
        0,
        sizes=[*sizes, *[number for d in dimensions for number in d]],
    )
    return context.convert(value, result, out)


def _suits_tiles(context: Any, windows: Windows, groups: Groups, dimension_numbers: Any) -> bool:
    """Whether numbers are multiplied as they are, in tiles of the processor."""
    (a, b), (out,) = context.avals_in, context.avals_out
    narrow = _NARROW.get(dtype_name(out.dtype), ())
    if dtype_name(a.dtype) not in narrow or dtype_name(b.dtype) not in narrow:
        return False
    _, w_spec, y_spec = dimension_numbers
    outputs = b.shape[w_spec[0]] // (groups.features * groups.batch)
    places = prod([b.shape[d] for d in w_spec[2:]])
    positions = prod([out.shape[d] for d in y_spec[2:]])
    return (
        outputs >= FEATURES_IN_TILES
        and positions >= max(POSITIONS_IN_TILES, places)
        and out.size * b.shape[w_spec[1]] * places >= MANY_IN_TILES
        and set(windows.lhs_dilation) <= {1}
        and kernels.have_tiles()
    )


def _read_backwards(value: Any) -> tuple[Any, frozenset[int]]:
    """The operand of a reversal, as of the kernel in gradients, and its dimensions."""
    operation = value.owner
    if getattr(operation, "name", None) != "stablehlo.reverse":
        return value, frozenset()
    return operation.operands[0], frozenset(operation.attributes["dimensions"])
