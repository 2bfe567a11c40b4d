"""Eigenvalues, singular values and related reductions by LAPACK.

Routines that do not converge say so, and give results that mean nothing: these become NaN.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable
from dovetail_cpu.lowerings.lapack import lapack_call, where_succeeded

TABLE: Final = LoweringTable()

INT32: Final = np.dtype(np.int32)


def _info(aval: Any) -> Any:
    """The aval of what LAPACK reports for each of the matrices of `aval`."""
    return aval.update(shape=aval.shape[:-2], dtype=INT32)


def _transposed(aval: Any) -> Any:
    shape = aval.shape
    return aval.update(shape=(*shape[:-2], shape[-1], shape[-2]))


def _transpose(context: Any, x: Any, aval: Any) -> Any:
    rank = aval.ndim
    order = (*range(rank - 2), rank - 1, rank - 2)
    return context.transpose(x, _transposed(aval), order)


def _columns(context: Any, x: Any, out: Any, start: int) -> Any:
    """The part of vectors, or of the columns of matrices, that starts at `start`."""
    first = (*[0] * (out.ndim - 1), start)
    return context.slice(x, out, first, [n + i for n, i in zip(out.shape, first, strict=True)])


@TABLE.rule("eigh")
def eigh(
    context: Any,
    x: Any,
    *,
    lower: bool,
    sort_eigenvalues: bool,
    subset_by_index: tuple[int, int] | None,
    algorithm: Any,
) -> Any:
    """``syevd`` or ``heevd``; of a part of the eigenvalues all are computed."""
    (aval,), outs = context.avals_in, context.avals_out
    if not outs[0].size or (algorithm is not None and algorithm.name != "QR"):
        return NotImplemented
    info = _info(aval)
    whole = [aval, outs[1].update(shape=aval.shape[:-1])]
    *found, report = lapack_call(
        context,
        "heevd" if aval.dtype.kind == "c" else "syevd",
        [x],
        [*whole, info],
        aliases={0: 0},
        mode="V",
        uplo="L" if lower else "U",
    )
    found = where_succeeded(context, report, info, found, whole)
    if subset_by_index is None:
        return found
    return [_columns(context, f, o, subset_by_index[0]) for f, o in zip(found, outs, strict=True)]


@TABLE.rule("svd")
def svd(
    context: Any,
    x: Any,
    *,
    full_matrices: bool,
    compute_uv: bool,
    subset_by_index: tuple[int, int] | None,
    algorithm: Any,
) -> Any:
    """``gesdd``, or ``gesvd`` for the algorithm QR, of the transposed matrix.

    Transposing exchanges the left vectors with the right ones, and saves copies: rows of XLA's
    arrays are LAPACK's columns.
    """
    (aval,), outs = context.avals_in, context.avals_out
    if not aval.size or (algorithm is not None and algorithm.name in ("JACOBI", "POLAR")):
        return NotImplemented
    *batch, rows, columns = aval.shape
    rank = min(rows, columns)
    left, right = (rows, columns) if full_matrices else (rank, rank)
    whole = [
        outs[0].update(shape=(*batch, rank)),
        aval.update(shape=(*batch, columns, right if compute_uv else 1)),
        aval.update(shape=(*batch, left if compute_uv else 1, rows)),
    ]
    info = _info(aval)
    _, *found, report = lapack_call(
        context,
        "gesvd" if algorithm is not None and algorithm.name == "QR" else "gesdd",
        [_transpose(context, x, aval)],
        [_transposed(aval), *whole, info],
        aliases={0: 0},
        mode=("A" if full_matrices else "S") if compute_uv else "N",
    )
    if not compute_uv:
        found, whole = found[:1], whole[:1]
    found = where_succeeded(context, report, info, found, whole)
    if compute_uv:
        values, vh, u = found
        found = [
            values,
            _transpose(context, u, whole[2]),
            _transpose(context, vh, whole[1]),
        ]
    if subset_by_index is None:
        return found
    start, stop = subset_by_index
    parts = [_columns(context, f, o, start) for f, o in zip(found[:2], outs[:2], strict=True)]
    if compute_uv:
        low, high = [0] * aval.ndim, list(whole[1].shape)
        low[-2], high[-2:] = start, [stop, columns]
        parts.append(context.slice(found[2], outs[2], low, high))
    return parts


@TABLE.rule("eig")
def eig(
    context: Any,
    x: Any,
    *,
    compute_left_eigenvectors: bool,
    compute_right_eigenvectors: bool,
    enable_eigvec_derivs: bool,
    implementation: Any,
) -> Any:
    """``geev``."""
    (aval,), outs = context.avals_in, context.avals_out
    if not aval.size or (implementation is not None and implementation.name != "LAPACK"):
        return NotImplemented
    values = outs[0]
    info = _info(aval)
    vectors = aval.update(dtype=values.dtype)
    parts = values.update(dtype=np.dtype(np.finfo(aval.dtype).dtype))
    is_real = aval.dtype.kind != "c"
    *found, left, right, report = lapack_call(
        context,
        "geev",
        [x],
        [*([parts, parts] if is_real else [values]), vectors, vectors, info],
        compute_left="V" if compute_left_eigenvectors else "N",
        compute_right="V" if compute_right_eigenvectors else "N",
    )
    results = [context.complex(*found, values) if is_real else found[0]]
    if compute_left_eigenvectors:
        results.append(left)
    if compute_right_eigenvectors:
        results.append(right)
    return where_succeeded(context, report, info, results, outs)


@TABLE.rule("schur")
def schur(
    context: Any,
    x: Any,
    *,
    compute_schur_vectors: bool,
    sort_eig_vals: bool,
    select_callable: Any,
) -> Any:
    """``gees``."""
    (aval,), outs = context.avals_in, context.avals_out
    if not aval.size:
        return NotImplemented
    info = _info(aval)
    values = aval.update(shape=aval.shape[:-1])
    is_real = aval.dtype.kind != "c"
    form, vectors, *_, report = lapack_call(
        context,
        "gees",
        [x],
        [aval, aval, *[values] * (1 + is_real), info, info],
        aliases={0: 0},
        mode="V" if compute_schur_vectors else "N",
        sort="N",
    )
    results = [form, vectors] if compute_schur_vectors else [form]
    return where_succeeded(context, report, info, results, outs)


@TABLE.rule("hessenberg")
def hessenberg(context: Any, a: Any) -> Any:
    """``gehrd``."""
    (aval,), outs = context.avals_in, context.avals_out
    if not outs[1].size:
        return NotImplemented
    info = _info(aval)
    *found, report = lapack_call(
        context, "gehrd", [a], [*outs, info], aliases={0: 0}, low=1, high=aval.shape[-1]
    )
    return where_succeeded(context, report, info, found, outs)


@TABLE.rule("tridiagonal")
def tridiagonal(context: Any, a: Any, *, lower: bool) -> Any:
    """``sytrd`` or ``hetrd``."""
    (aval,), outs = context.avals_in, context.avals_out
    if not outs[2].size:
        return NotImplemented
    info = _info(aval)
    *found, report = lapack_call(
        context,
        "hetrd" if aval.dtype.kind == "c" else "sytrd",
        [a],
        [*outs, info],
        aliases={0: 0},
        uplo="L" if lower else "U",
    )
    return where_succeeded(context, report, info, found, outs)
