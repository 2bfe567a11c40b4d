"""Products of bfloat16 and of bytes by a kernel, where the processor multiplies tiles of them."""

from __future__ import annotations

from typing import Any, Final

from dovetail_cpu import kernels
from dovetail_cpu.lowerings.matrix_products import as_it_lies, is_plain, merged

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
        not _suits([aval.dtype.name for aval in avals], out.dtype.name)
        or not is_plain(precision)
        or any(aval.symbolic for aval in avals)
        or out.size == 0
        or context.divides
        or not kernels.usable(context)
        or not kernels.have_tiles()
    ):
        return NotImplemented
    (x, along_x), (y, along_y) = map(as_it_lies, operands)
    (over, over_y), (batch, batch_y) = dimension_numbers
    sizes, sizes_y = avals[0].shape, avals[1].shape
    each: list[tuple[int, ...]] = [
        (sizes[d], along_x[d], along_y[e]) for d, e in zip(batch, batch_y, strict=True)
    ]
    together = [(sizes[d], along_x[d], along_y[e]) for d, e in zip(over, over_y, strict=True)]
    summed = merged(sorted(together, key=lambda one: -one[1]))
    rows = merged((sizes[d], along_x[d]) for d in range(len(sizes)) if d not in (*over, *batch))
    columns = merged(
        (sizes_y[d], along_y[d]) for d in range(len(sizes_y)) if d not in (*over_y, *batch_y)
    )
    if len(summed) != 1 or len(columns) != 1 or not rows:
        return NotImplemented
    each = merged([*each, *[(size, step, 0) for size, step in rows[:-1]]])
    (m, x_row), (n, y_column), (k, x_step, y_step) = rows[-1], columns[0], summed[0]
    if 1 not in (x_row, x_step) or 1 not in (y_column, y_step):
        return NotImplemented
    if m * n * k < MANY or m * n < MANY_FOR_EACH * (m + n):
        return NotImplemented
    numbers = [m, n, k, x_row, x_step, y_step, y_column, *[i for one in each for i in one]]
    target = kernels.MULTIPLY_NARROW
    return kernels.call(context, target, [x, y], [out], 0, sizes=numbers)[0]


def _suits(operands: list[str], out: str) -> bool:
    if operands == ["bfloat16", "bfloat16"]:
        return out in _OF_BFLOAT16
    return {*operands} <= {*_BYTES} and out in _OF_BYTES
