"""Dense linear algebra by LAPACK; small real matrices by kernels, where they were built.

XLA's arrays are row-major, LAPACK's column-major. If the transposed problem is of the same kind, it
is the one passed to LAPACK, so that nothing is copied.
"""

from __future__ import annotations

from math import inf
from typing import Any, Final

from dovetail.extend import LoweringTable
from dovetail.extend.dtypes import dtype_name
from dovetail.extend.lowering import (
    conjugate,
    pivots_from_one,
    report_of,
    transpose,
    transposed,
)
from dovetail_cpu import kernels
from dovetail_cpu.lowerings.elementary import constant_product, is_made_by
from dovetail_cpu.lowerings.lapack import (
    PREFIXES,
    factorize,
    kernel_call,
    lapack_call,
    solve_transposed,
)

TABLE: Final = LoweringTable()

_SUFFIXES: Final = {"float32": "f32", "float64": "f64"}
# Rows and columns up to which the kernels are faster than LAPACK, which blocks larger matrices.
_SMALL: Final = 64
# Those of Cholesky factorisations.
_SMALL_ROOT: Final = 640


# Matrices whose QR and LU factorisations, and triangular systems, are faster by blocks of a kernel
# than by LAPACK: the least columns, the most multiplications, and the most rows of the least
# columns.
_PANEL: Final = 16
_TOO_MUCH: Final = 1 << 30
_MOST_ROWS_OF_PANEL: Final = 2048


def _kernel(context: Any, name: str, matrix: Any, most: float = _SMALL) -> str:
    """The kernel for matrices of up to `most` rows and columns; empty where LAPACK is better."""
    if dtype_name(matrix.dtype) not in _SUFFIXES or max(matrix.shape[-2:]) > most:
        return ""
    return (
        f"dovetail_{name}_{_SUFFIXES[dtype_name(matrix.dtype)]}" if kernels.usable(context) else ""
    )


def large_kernel(context: Any, name: str, matrix: Any) -> str:
    """The kernel for larger matrices; empty where others are better."""
    rows, columns = matrix.shape[-2:]
    least = min(rows, columns)
    if (
        least < _PANEL
        or rows * columns * least > _TOO_MUCH
        or (least == _PANEL and rows > _MOST_ROWS_OF_PANEL)
    ):
        return ""
    return _kernel(context, name, matrix, inf)


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
    if dtype_name(out.dtype) not in PREFIXES or not out.size:
        return NotImplemented
    # One column is solved for while the matrix is read once, whatever its size.
    size, columns = out.shape[-2:]
    most = inf if columns == 1 or size * size * columns <= _TOO_MUCH else _SMALL
    target = _kernel(context, "triangular_solve", matrix, most) if left_side else ""
    if target:
        return kernels.call(
            context,
            target,
            [a, b],
            [out],
            out.ndim - 2,
            # An argument would be copied by XLA before, on one thread.
            aliases={1: 0} if hasattr(b.owner, "name") else {},
            lower=int(lower),
            transposed=int(transpose_a),
            unit=int(unit_diagonal),
        )[0]
    if conjugate_a and not transpose_a:
        a = conjugate(context, a, matrix)
    options = {
        "side": "R" if left_side else "L",
        "uplo": "U" if lower else "L",
        "trans_x": ("C" if conjugate_a else "T") if transpose_a else "N",
        "diag": "U" if unit_diagonal else "N",
    }
    if kernels.usable(context):
        return solve_transposed(context, a, b, out, **options)
    (x,) = lapack_call(
        context,
        "trsm",
        [transpose(context, a, matrix), transpose(context, b, out)],
        [transposed(out)],
        aliases={1: 0},
        **options,
    )
    return transpose(context, x, transposed(out))


@TABLE.rule("cholesky")
def cholesky(context: Any, x: Any) -> Any:
    """``potrf`` of the lower triangle, which takes less time than copies and the upper one."""
    (aval,) = context.avals_out
    if not aval.size:
        return NotImplemented
    target = _kernel(context, "cholesky", aval, _SMALL_ROOT)
    if target:
        # Without what averages a matrix with its transpose, XLA has nothing to compile.
        averaged = _averaged(x) if context.uses_once(2) else None
        x = x if averaged is None else averaged
        return kernels.call(
            context, target, [x], [aval], aval.ndim - 2, averaged=int(averaged is not None)
        )[0]
    return factorize(
        context,
        "potrf",
        [x],
        [aval],
        aval,
        aliases={0: 0},
        reports=True,
        triangle="L",
        triangular=True,
        uplo="L",
    )[0]


def _averaged(x: Any) -> Any:
    """The matrix whose mean with its transpose a value is; None if it is nothing of the kind."""
    total, factor = constant_product(x)
    if factor != 0.5 or not is_made_by(total, "add"):
        return None
    matrix, other = total.owner.operands
    if not is_made_by(other, "transpose"):
        return None
    rank = matrix.type.rank
    order = list(other.owner.attributes["permutation"])
    swapped = order == [*range(rank - 2), rank - 1, rank - 2]
    return matrix if swapped and other.owner.operands[0] == matrix else None


@TABLE.rule("lu")
def lu(context: Any, x: Any) -> Any:
    """``getrf``, which numbers pivots from 1."""
    out, pivots, permutation = context.avals_out
    if not out.size:
        return NotImplemented
    rows, columns = out.shape[-2:]
    large = large_kernel(context, "large_lu", out) if rows <= 8 * columns else ""
    target = large or _kernel(context, "lu", out)
    if target:
        # Blocks of large matrices are copied to memory of their own: XLA need not copy them before.
        aliases = {} if large else {0: 0}
        return kernels.call(context, target, [x], context.avals_out, out.ndim - 2, aliases)
    info = report_of(out)
    packed, rows, _ = factorize(context, "getrf", [x], [out, pivots, info], out, aliases={0: 0})
    if kernels.usable(context):  # XLA would compile a loop
        batch = pivots.ndim - 1
        orders = kernels.call(context, kernels.PIVOTS, [rows], [pivots, permutation], batch)
        return [packed, *orders]
    return [packed, *pivots_from_one(context, rows, pivots, permutation)]


@TABLE.rule("geqrf")
def geqrf(context: Any, a: Any) -> Any:
    """``geqrf``."""
    if not context.avals_in[0].size:
        return NotImplemented
    (matrix,) = context.avals_in
    target = large_kernel(context, "large_qr", matrix) or _kernel(context, "qr", matrix)
    if target:
        return kernels.call(context, target, [a], context.avals_out, matrix.ndim - 2, {0: 0})
    return factorize(context, "geqrf", [a], context.avals_out, matrix, aliases={0: 0})


@TABLE.rule("geqp3")
def geqp3(context: Any, a: Any) -> Any:
    """``geqp3``, which numbers columns from 1 and moves the columns marked in its input first."""
    out, taus, order = context.avals_out
    if not out.size:
        return NotImplemented
    none = context.constant(0, order)
    packed, columns, factors = factorize(
        context, "geqp3", [a, none], [out, order, taus], out, aliases={0: 0, 1: 1}
    )
    return [packed, factors, context.sub(columns, context.constant(1, order), order)]


@TABLE.rule("householder_product")
def householder_product(context: Any, a: Any, taus: Any) -> Any:
    """``orgqr``, for complex numbers ``ungqr``."""
    (out,) = context.avals_out
    if not out.size or not context.avals_in[1].size:
        return NotImplemented
    target = large_kernel(context, "large_reflections", out) or _kernel(context, "reflections", out)
    if target:
        return kernels.call(context, target, [a, taus], [out], out.ndim - 2, {0: 0})
    routine = "ungqr" if out.dtype.kind == "c" else "orgqr"
    return factorize(context, routine, [a, taus], [out], out, aliases={0: 0})


@TABLE.rule("ormqr")
def ormqr(context: Any, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    """``ormqr``, for complex numbers ``unmqr``."""
    (out,) = context.avals_out
    if not out.size or not context.avals_in[1].size:
        return NotImplemented
    target = large_kernel(context, "reflect", context.avals_in[0]) if left else ""
    if target:
        return kernels.call(
            context, target, [a, taus, c], [out], out.ndim - 2, {2: 0}, transposed=int(transpose)
        )[0]
    routine = "unmqr" if out.dtype.kind == "c" else "ormqr"
    return factorize(
        context, routine, [a, taus, c], [out], out, aliases={2: 0}, left=left, transpose=transpose
    )


@TABLE.rule("tridiagonal_solve")
def tridiagonal_solve(
    context: Any, dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False
) -> Any:
    """``gtsv``; if pivots may be replaced, jaxlib's own routine."""
    *_, vector, out = context.avals_in
    if not out.size:
        return NotImplemented
    if perturb_singular:
        return kernel_call(context, "tridiagonal_solve_perturbed_ffi", [dl, d, du, b], [out])
    *_, x = factorize(
        context,
        "gtsv",
        [dl, d, du, b],
        [vector, vector, vector, out],
        out,
        aliases={0: 0, 1: 1, 2: 2, 3: 3},
        reports=True,
        unused=(0, 1, 2),
    )
    return x
