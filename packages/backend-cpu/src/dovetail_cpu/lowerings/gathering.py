"""Rows and columns at positions known at run time, copied by kernels.

LLVM unrolls XLA's loop over a row of up to 64 elements, and then makes no vectors of it. Of columns
XLA moves each position into bounds again for every row.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

from dovetail.extend import LoweringTable, ShapedArray, dtypes
from dovetail.extend.dtypes import dtype_name
from dovetail_cpu import kernels

TABLE: Final = LoweringTable()

#: Of rows of fewer elements XLA copies each, of more it makes vectors, both in the same time.
SHORT: Final = 20
LONG: Final = 80
#: Smaller results take no longer than their call.
WORTH_A_KERNEL: Final = 2**14

_POSITIONS: Final = frozenset({"int32", "int64"})


@TABLE.rule("gather")
def gather(
    context: Any,
    x: Any,
    positions: Any,
    *,
    dimension_numbers: Any,
    slice_sizes: tuple[int, ...],
    mode: Any,
    fill_value: Any,
    **promises: Any,
) -> Any:
    """Rows of some tens of elements, and columns; NotImplemented for others, or without kernel."""
    aval, places = context.avals_in
    (out,) = context.avals_out
    if aval.symbolic or out.symbolic or out.size < WORTH_A_KERNEL:
        return NotImplemented
    kernel = _kernel_for(aval, places, out, dimension_numbers, slice_sizes)
    if (
        kernel is None
        or dtype_name(places.dtype) not in _POSITIONS
        or not aval.size
        or dtypes.kind_of(aval.dtype) not in ("b", "i", "u", "f", "c")
        or dtypes.itemsize_bits(aval.dtype) < 8
        or context.divides
        or not context.runs_once()
        or not kernels.usable(context)
    ):
        return NotImplemented
    filled = mode.name == "FILL_OR_DROP"
    scalar = ShapedArray((), aval.dtype)
    fill = context.constant(fill_value if filled else 0, scalar)
    operands = [x, positions, fill]
    return kernels.call(context, kernel, operands, [out], 0, filled=int(filled))[0]


def _kernel_for(
    aval: Any, places: Any, out: Any, numbers: Any, slice_sizes: tuple[int, ...]
) -> str | None:
    """The kernel that takes slices along the first or the last dimension, if it is quicker."""
    if len(numbers.start_index_map) != 1 or numbers.collapsed_slice_dims != numbers.start_index_map:
        return None
    (axis,) = numbers.start_index_map
    last, batch = aval.ndim - 1, places.ndim - 1
    if slice_sizes != (*aval.shape[:axis], 1, *aval.shape[axis + 1 :]):
        return None
    if axis == 0 and numbers.offset_dims == tuple(range(batch, out.ndim)):
        return kernels.TAKE_ROWS if SHORT <= prod(slice_sizes) < LONG else None
    if axis == last > 0 and numbers.offset_dims == tuple(range(last)):
        return kernels.TAKE_COLUMNS if prod(slice_sizes) >= SHORT else None
    return None
