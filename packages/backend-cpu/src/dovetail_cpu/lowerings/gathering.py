"""Rows at positions known at run time, copied by a kernel.

LLVM unrolls XLA's loop over a row of up to 64 elements, and then makes no vectors of it.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

from dovetail.extend import LoweringTable, ShapedArray, dtypes
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
    """Whole rows of some tens of elements; NotImplemented for others, or without kernel."""
    aval, places = context.avals_in
    (out,) = context.avals_out
    numbers, batch = dimension_numbers, places.ndim - 1
    if (
        aval.symbolic
        or out.symbolic
        or not SHORT <= prod(slice_sizes) < LONG
        or out.size < WORTH_A_KERNEL
        or slice_sizes != (1, *aval.shape[1:])
        or numbers.collapsed_slice_dims != (0,)
        or numbers.start_index_map != (0,)
        or numbers.offset_dims != tuple(range(batch, out.ndim))
        or places.dtype.name not in _POSITIONS
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
    return kernels.call(context, kernels.TAKE_ROWS, operands, [out], 0, filled=int(filled))[0]
