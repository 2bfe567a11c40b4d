"""Products of bfloat16 and of bytes by a kernel, where the processor multiplies tiles of them."""

from __future__ import annotations

from typing import Any, Final

from dovetail.extend.dtypes import dtype_name
from dovetail_cpu import kernels
from dovetail_cpu.lowerings.matrix_products import is_plain, placed

#: The least products of numbers in a product of matrices.
MANY: Final = 1 << 14
#: The least products for each number of the operands: it is copied first.
MANY_FOR_EACH: Final = 10
_BYTES: Final = ("int8", "uint8")
#: The dtypes of the results.
_OF_BYTES: Final = (*_BYTES, "int32", "uint32")
_OF_BFLOAT16: Final = ("bfloat16", "float32")


def narrow_product(context: Any, operands: Any, dimension_numbers: Any, precision: Any) -> Any:
    """The product of arrays of bfloat16 or of bytes; NotImplemented without tiles."""
    avals, (out,) = context.avals_in, context.avals_out
    if (
        not _suits([dtype_name(aval.dtype) for aval in avals], dtype_name(out.dtype))
        or not is_plain(precision)
        or any(aval.symbolic for aval in avals)
        or out.size == 0
        or context.divides
        or not kernels.usable(context)
        or not kernels.have_tiles()
    ):
        return NotImplemented
    found = placed(context, operands, dimension_numbers)
    if found is None:
        return NotImplemented
    m, n = found.rows, found.columns
    if m * n * found.summed < MANY or m * n < MANY_FOR_EACH * (m + n):
        return NotImplemented
    target = kernels.MULTIPLY_NARROW
    return kernels.call(context, target, found.operands, [out], 0, sizes=found.numbers)[0]


def _suits(operands: list[str], out: str) -> bool:
    if operands == ["bfloat16", "bfloat16"]:
        return out in _OF_BFLOAT16
    return {*operands} <= {*_BYTES} and out in _OF_BYTES
