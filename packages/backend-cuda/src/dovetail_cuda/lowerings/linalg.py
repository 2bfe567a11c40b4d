"""Dense linear algebra by cuSOLVER, cuBLAS and kernels of the plug-in's wheel."""

from __future__ import annotations

from typing import Any, Final

from dovetail.extend import LoweringTable
from dovetail.extend.lowering import pivots_from_one, report_of, triangle, where_succeeded
from dovetail_cuda.lowerings.kernels import kernel_call, prepare_lapack

TABLE: Final = LoweringTable()


@TABLE.rule("cholesky")
def cholesky(context: Any, x: Any) -> Any:
    """``potrf``, which reads the lower triangle and leaves the other unchanged."""
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


@TABLE.rule("cholesky_update")
def cholesky_update(context: Any, r: Any, w: Any) -> Any:
    """One kernel of the wheel for a single matrix; the primitive's own lowering is a loop.

    The resulting lower triangle is undocumented.
    """
    (out,), (_, vector) = context.avals_out, context.avals_in
    if out.ndim > 2 or not out.size or out.dtype.itemsize < 4:
        return NotImplemented
    root, _ = kernel_call(
        context,
        "cu_cholesky_update_ffi",
        [r, w],
        [out, vector],
        matrices=2,
        aliases={0: 0, 1: 1},
        row_major=True,
    )
    return triangle(context, root, out, lower=False)


@TABLE.rule("lu")
def lu(context: Any, x: Any) -> Any:
    """``getrf``, or cuBLAS's version for many small matrices; pivots are numbered from 1."""
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
    """A kernel of the wheel; the primitive's own lowering is a loop over the pivots."""
    (aval,), (out,) = context.avals_in, context.avals_out
    if not aval.size:
        return NotImplemented
    return kernel_call(
        context, "cu_lu_pivots_to_permutation", [pivots], [out], matrices=aval.ndim + 1
    )


@TABLE.rule("symmetric_product")
def symmetric_product(context: Any, a: Any, c: Any, *, alpha: float, beta: float) -> Any:
    """``syrk``, which computes the lower triangle and leaves the other as in `c`.

    `c`, whose triangles may differ, is added afterwards: ``syrk`` reads only one of them.
    """
    (aval, _), (out,) = context.avals_in, context.avals_out
    if not aval.size or not out.size or out.dtype.itemsize < 4:
        return NotImplemented
    number = out.update(shape=())
    (product,) = kernel_call(
        context,
        "cusolver_syrk_ffi",
        [a, c, context.constant(alpha, number), context.constant(0.0, number)],
        [out],
        matrices=out.ndim,
        aliases={1: 0},
        row_major=True,
        batch_dims=0,  # numbers among the operands have none
        transpose=False,
    )
    order = (*range(out.ndim - 2), out.ndim - 1, out.ndim - 2)
    mirrored = context.transpose(product, out, order)
    product = triangle(context, product, out, True, mirrored)
    if not beta:
        return product
    return context.add(product, context.mul(c, context.constant(beta, out), out), out)


@TABLE.rule("geqrf")
def geqrf(context: Any, a: Any) -> Any:
    """``geqrf``, or cuBLAS's version for many small matrices."""
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
    """MAGMA's ``geqp3`` if it is installed, otherwise LAPACK's, which runs on the host.

    It numbers columns from 1, and moves the columns marked in its input to the front.
    """
    out, taus, order = context.avals_out
    if not out.size:
        return NotImplemented
    context.prepare(prepare_lapack)
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
