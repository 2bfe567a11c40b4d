"""Products of numbers of fewer than 8 bits, which XLA's CPU compiler refuses or misplaces."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable, dtypes

TABLE: Final = LoweringTable()


def _is_below_a_byte(dtype: Any) -> bool:
    return dtypes.kind_of(dtype) != "b" and dtypes.itemsize_bits(dtype) < 8


def _working(dtype: Any) -> Any:
    """The dtype to compute in: sums of integers wrap around to the same numbers in any width."""
    if dtypes.itemsize_bits(dtype) >= 32:
        return dtype
    return np.dtype(np.float32 if dtypes.kind_of(dtype) == "f" else np.int32)


@TABLE.rule("dot_general")
def dot_general(
    context: Any, x: Any, y: Any, *, dimension_numbers: Any, precision: Any, **params: Any
) -> Any:
    """Operands are converted before, and results after."""
    (a, b), (out,) = context.avals_in, context.avals_out
    if not any(_is_below_a_byte(aval.dtype) for aval in (a, b, out)):
        return NotImplemented
    work = _working(out.dtype)
    (lhs, rhs), (lhs_batch, rhs_batch) = dimension_numbers
    attributes = {
        "dot_dimension_numbers": context.dot_dimension_numbers(
            lhs_contracting=lhs,
            rhs_contracting=rhs,
            lhs_batching=lhs_batch,
            rhs_batching=rhs_batch,
        )
    }
    operands = [
        context.convert(operand, aval, aval.update(dtype=work))
        for operand, aval in ((x, a), (y, b))
    ]
    product = context.op("dot_general", operands, out.update(dtype=work), attributes)
    return context.convert(product, out.update(dtype=work), out)
