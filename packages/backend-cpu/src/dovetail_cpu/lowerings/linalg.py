"""Dense linear algebra by LAPACK.

XLA's arrays are laid out row by row, LAPACK's column by column. Where the transposed problem is of
the same kind, it is the one that is given to LAPACK, so that nothing is copied.
"""

from __future__ import annotations

from typing import Any, Final

from dovetail.extend import LoweringTable
from dovetail_cpu.lowerings.lapack import PREFIXES, lapack_call

TABLE: Final = LoweringTable()


def _transposed(aval: Any) -> Any:
    shape = aval.shape
    return aval.update(shape=(*shape[:-2], shape[-1], shape[-2]))


def _transpose(context: Any, x: Any, aval: Any) -> Any:
    """The transposes of matrices; LAPACK reads them without a copy."""
    rank = aval.ndim
    order = (*range(rank - 2), rank - 1, rank - 2)
    return context.transpose(x, _transposed(aval), order)


@TABLE.rule("triangular_solve")
def triangular_solve(
    context: Any,
    a: Any,
    b: Any,
    *,
    left_side: bool,
    lower: bool,
    transpose_a: bool,
    conjugate_a: bool,
    unit_diagonal: bool,
) -> Any:
    """``trsm`` on the transposed problem: with the other side and the other triangle."""
    matrix, out = context.avals_in
    plain_conjugate = conjugate_a and not transpose_a and out.dtype.kind == "c"
    if out.dtype.name not in PREFIXES or not out.size or plain_conjugate:
        return NotImplemented
    (x,) = lapack_call(
        context,
        "trsm",
        [_transpose(context, a, matrix), _transpose(context, b, out)],
        [_transposed(out)],
        aliases={1: 0},
        side="R" if left_side else "L",
        uplo="U" if lower else "L",
        trans_x=("C" if conjugate_a else "T") if transpose_a else "N",
        diag="U" if unit_diagonal else "N",
    )
    return _transpose(context, x, _transposed(out))
