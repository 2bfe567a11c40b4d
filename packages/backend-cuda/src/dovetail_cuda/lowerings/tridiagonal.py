"""Tridiagonal matrices: reduction to them, and linear equations with them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable
from dovetail.extend.lowering import report_of, triangle, where_succeeded
from dovetail_cuda.lowerings.kernels import kernel_call

TABLE: Final = LoweringTable()

# The smallest matrix that cuSPARSE takes.
_SMALLEST: Final = 3


@TABLE.rule("tridiagonal")
def tridiagonal(context: Any, a: Any, *, lower: bool) -> Any:
    """``sytrd`` or ``hetrd``, which are not documented to preserve the other triangle."""
    (aval,), outs = context.avals_in, context.avals_out
    if not outs[2].size:
        return NotImplemented
    info = report_of(aval)
    *outputs, report = kernel_call(
        context,
        "cusolver_sytrd_ffi",
        [a],
        [*outs, info],
        matrices=aval.ndim,
        aliases={0: 0},
        lower=lower,
    )
    outputs[0] = triangle(context, outputs[0], aval, lower, a)
    return where_succeeded(context, report, info, outputs, outs)


@TABLE.rule("tridiagonal_solve")
def tridiagonal_solve(
    context: Any, dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False
) -> Any:
    """``gtsv2``, which exchanges rows; if pivots may be replaced, a kernel of the wheel.

    For batches, cuSPARSE has nothing that exchanges rows. The primitive's own elimination does, for
    all matrices at once. Singular matrices are not reported: where the other platforms have only
    NaN, there are infinities and finite numbers as well.
    """
    *_, vector, out = context.avals_in
    if not out.size:
        return NotImplemented
    if perturb_singular:
        return kernel_call(
            context, "cu_tridiagonal_solve_perturbed", [dl, d, du, b], [out], matrices=out.ndim
        )
    if out.ndim > 2 or vector.shape[-1] < _SMALLEST:
        return NotImplemented
    # It reads the elements outside of the matrix, as if they were zero.
    dl, du = _without(context, dl, vector, 0), _without(context, du, vector, vector.shape[-1] - 1)
    return kernel_call(
        context, "cusparse_gtsv2_ffi", [dl, d, du, b], [out], matrices=out.ndim, aliases={3: 0}
    )


def _without(context: Any, diagonal: Any, aval: Any, position: int) -> Any:
    """A diagonal with zero at a position."""
    numbers = aval.update(dtype=np.dtype(np.int32))
    places = context.iota(numbers, aval.ndim - 1)
    inside = context.compare(places, context.constant(position, numbers), "NE", numbers)
    return context.select(inside, diagonal, context.constant(0, aval), aval)
