"""Remainders of floats by a kernel: XLA's CPU compiler calls the C library for each of them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable
from dovetail.extend.dtypes import dtype_name
from dovetail_cpu import kernels
from dovetail_cpu.lowerings.elementary import remainder

TABLE: Final = LoweringTable()

#: For fewer elements the C library is as fast, in a smaller program.
MANY: Final = 1024
#: Within a loop, whose operations XLA calls one by one if one of them is a kernel.
MANY_IN_A_LOOP: Final = 8192

FLOATS: Final = frozenset({"bfloat16", "float16", "float32", "float64"})
FLOAT32: Final = np.dtype(np.float32)
FLOAT64: Final = np.dtype(np.float64)


@TABLE.rule("rem")
def rem(context: Any, x: Any, y: Any) -> Any:
    """The exact remainder, with the sign of the dividend."""
    (out,) = context.avals_out
    if out.symbolic or any(aval.dtype != out.dtype for aval in context.avals_in):
        return NotImplemented
    many = MANY if context.runs_once() else MANY_IN_A_LOOP
    if dtype_name(out.dtype) in FLOATS and out.size >= many and kernels.usable(context):
        return _by_kernel(context, x, y, out)
    return remainder(context, x, y)


def _by_kernel(context: Any, x: Any, y: Any, out: Any) -> Any:
    dividend, divisor = context.avals_in
    work = out.update(dtype=FLOAT64 if out.dtype == FLOAT64 else FLOAT32)
    # The kernel repeats a divisor that is one number.
    by_one = divisor.size == 1 and not context.divides
    spread = () if by_one else out.shape
    x = context.convert(_spread(context, x, dividend, out), out, work)
    small = work.update(shape=spread)
    y = _spread(context, y, divisor, out.update(shape=spread))
    y = context.convert(y, out.update(shape=spread), small)
    (result,) = kernels.call(
        context, kernels.REMAINDER, [x, y], [work], batch_dims=0 if by_one else out.ndim
    )
    return context.convert(result, work, out)


def _spread(context: Any, x: Any, aval: Any, out: Any) -> Any:
    """An operand in the shape of the result, or a single number as a scalar."""
    if aval.shape == out.shape:
        return x
    if not out.shape:
        return context.reshape(x, out)
    return context.broadcast_in_dim(x, out, tuple(range(out.ndim)) if aval.shape else ())
