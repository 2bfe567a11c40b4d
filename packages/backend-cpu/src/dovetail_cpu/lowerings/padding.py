"""Padding in loops of vectors.

LLVM stores the elements of the array and those around it by two instructions, unless something is
done with both, and makes vectors only of loops with one. So their bits are joined with zeros that
the compiler does not know. In other loops, which padding is fused into, this costs nothing.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable, ShapedArray, dtypes
from dovetail_cpu.lowerings import boxes

TABLE: Final = LoweringTable()

#: Smaller results take no longer than their call, and compile faster.
WORTH_VECTORS: Final = 2**13


@TABLE.rule("pad")
def pad(context: Any, x: Any, value: Any, *, padding_config: Any) -> Any:
    """Padding of neighbours in memory; NotImplemented for others, which are whole rows of them."""
    (aval, _), (out,) = context.avals_in, context.avals_out
    if (
        aval.symbolic
        or out.size < WORTH_VECTORS
        or dtypes.kind_of(aval.dtype) not in ("b", "i", "u", "f")
        or dtypes.itemsize_bits(aval.dtype) < 8
        or any(min(low, high) < 0 or interior for low, high, interior in padding_config)
        or not any(padding_config[-1])
    ):
        return NotImplemented
    low, high, interior = zip(*padding_config, strict=True)
    copied = boxes.padded(context, x, value, low)
    if copied is not NotImplemented:
        return copied
    padded = context.pad(x, value, out, low, high, interior)
    whole = aval.dtype == np.dtype(bool) or dtypes.kind_of(aval.dtype) in ("i", "u")
    bits = out.update(
        dtype=aval.dtype if whole else np.dtype(f"u{aval.dtype.itemsize}"), weak_type=False
    )
    scalar = ShapedArray((), bits.dtype)
    (zero,) = context.optimization_barrier([context.constant(0, scalar)], [scalar])
    if not whole:
        padded = context.op("bitcast_convert", [padded], bits)
    joined = context.or_(padded, context.broadcast_scalar(zero, bits), bits)
    return joined if whole else context.op("bitcast_convert", [joined], out)
