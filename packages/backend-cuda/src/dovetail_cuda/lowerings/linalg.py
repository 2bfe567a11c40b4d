"""Dense linear algebra by cuSOLVER, cuBLAS and kernels of the plug-in's wheel."""

from __future__ import annotations

from typing import Any, Final

from dovetail.extend import LoweringTable
from dovetail.extend.lowering import pivots_from_one, report_of, triangle, where_succeeded
from dovetail_cuda.lowerings.kernels import kernel_call, prepare_lapack

TABLE: Final = LoweringTable()


@TABLE.rule("cholesky")
def cholesky(context: Any, x: Any) -> Any:
    """``potrf``, which reads the lower triangle and leaves the other as it is."""
    (aval,) = context.avals_out
    if not aval.size:
        return NotImplemented
    info = report_of(aval)
    root, failed = kernel_call(
        context,
        "cusolver_potrf_ffi",
        [x],
        [aval, info],
        matrices=aval.ndim,
        aliases={0: 0},
        lower=True,
    )
    (root,) = where_succeeded(context, failed, info, [root], [aval])
    return triangle(context, root, aval)


@TABLE.rule("lu")
def lu(context: Any, x: Any) -> Any:
    """``getrf``, for many small matrices cuBLAS's; its pivots are numbered from 1."""
    out, pivots, permutation = context.avals_out
    if not out.size:
        return NotImplemented
    info = report_of(out)
    packed, rows, _ = kernel_call(
        context,
        "cusolver_getrf_ffi",
        [x],
        [out, pivots, info],
        matrices=out.ndim,
        aliases={0: 0},
    )
    return [packed, *pivots_from_one(context, rows, pivots, permutation)]


@TABLE.rule("lu_pivots_to_permutation")
def lu_pivots_to_permutation(context: Any, pivots: Any, *, permutation_size: int) -> Any:
    """A kernel of the wheel, where the primitive's own lowering is a loop over the pivots."""
    (given,), (out,) = context.avals_in, context.avals_out
    if not given.size:
        return NotImplemented
    return kernel_call(
        context, "cu_lu_pivots_to_permutation", [pivots], [out], matrices=given.ndim + 1
    )


@TABLE.rule("geqrf")
def geqrf(context: Any, a: Any) -> Any:
    """``geqrf``, for many small matrices cuBLAS's."""
    (aval,) = context.avals_in
    if not aval.size:
        return NotImplemented
    return kernel_call(
        context,
        "cusolver_geqrf_ffi",
        [a],
        context.avals_out,
        matrices=aval.ndim,
        aliases={0: 0},
    )


@TABLE.rule("geqp3")
def geqp3(context: Any, a: Any) -> Any:
    """``geqp3`` of MAGMA where it is installed, otherwise of LAPACK, which the host runs.

    It numbers columns from 1, and takes those first that are named to it.
    """
    out, taus, order = context.avals_out
    if not out.size:
        return NotImplemented
    prepare_lapack()
    packed, columns, factors = kernel_call(
        context,
        "cuhybrid_geqp3",
        [a, context.constant(0, order)],
        [out, order, taus],
        matrices=out.ndim,
        aliases={0: 0, 1: 1},
        magma="auto",
    )
    return [packed, factors, context.sub(columns, context.constant(1, order), order)]


@TABLE.rule("householder_product")
def householder_product(context: Any, a: Any, taus: Any) -> Any:
    """``orgqr``, for complex numbers ``ungqr``."""
    (out,), (_, factors) = context.avals_out, context.avals_in
    if not out.size or not factors.size:
        return NotImplemented
    return kernel_call(
        context, "cusolver_orgqr_ffi", [a, taus], [out], matrices=out.ndim, aliases={0: 0}
    )


@TABLE.rule("ormqr")
def ormqr(context: Any, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    """``ormqr``, for complex numbers ``unmqr``, whose transpose is the adjoint."""
    (out,), (_, factors, _) = context.avals_out, context.avals_in
    if not out.size or not factors.size:
        return NotImplemented
    return kernel_call(
        context,
        "cusolver_ormqr_ffi",
        [a, taus, c],
        [out],
        matrices=out.ndim,
        aliases={2: 0},
        left=left,
        transpose=transpose,
    )
