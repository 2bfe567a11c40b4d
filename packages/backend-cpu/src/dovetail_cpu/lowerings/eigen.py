"""Eigenvalues, singular values and related reductions by LAPACK.

Routines that do not converge say so, and give results that mean nothing: these become NaN. Matrices
with NaN or infinities, for which some routines never end, are not shown to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable
from dovetail_cpu.lowerings.lapack import lapack_call, where_succeeded

TABLE: Final = LoweringTable()

BOOL: Final = np.dtype(bool)
INT32: Final = np.dtype(np.int32)


def _info(aval: Any) -> Any:
    """The aval of what LAPACK reports for each of the matrices of `aval`."""
    return aval.update(shape=aval.shape[:-2], dtype=INT32)


def _iterated(
    context: Any,
    routine: str,
    x: Any,
    aval: Any,
    outs: Sequence[Any],
    **attributes: str | bool | int,
) -> list[Any]:
    """Call a routine that iterates; NaN where it fails, and where a matrix is not finite.

    Args:
        context: the builder.
        routine: its name without the letter for the dtype.
        x: a stack of matrices, which it overwrites where its first result has this type.
        aval: its aval.
        outs: avals of the results but for the last, the report.
        attributes: its options.

    Returns:
        The results that are no integers.
    """
    rank = aval.ndim
    info = _info(aval)
    parts = [x]
    single = aval
    if aval.dtype.kind == "c":
        single = aval.update(dtype=np.dtype(np.finfo(aval.dtype).dtype))
        parts = [context.real(x, single), context.imag(x, single)]
    # Zero times a number is zero unless it is NaN or infinite: a sum that vectorises.
    zero, none = context.constant(0.0, single), context.constant(0, info)
    scalar = single.update(shape=())
    totals = single.update(shape=aval.shape[:-2])
    broken = none
    for part in parts:
        (total,) = context.reduce(
            [context.mul(part, zero, single)],
            [context.constant(0.0, scalar)],
            (rank - 2, rank - 1),
            [totals],
            lambda a, b: [context.add(a, b, scalar)],
        )
        odd = context.compare(total, total, "NE", totals)
        broken = context.select(odd, context.constant(1, info), broken, info)
    whole = context.compare(broken, none, "EQ", info)
    mask = context.broadcast_in_dim(whole, aval.update(dtype=BOOL), tuple(range(rank - 2)))
    x = context.select(mask, x, context.constant(0, aval), aval)
    aliases = {0: 0} if outs[0] == aval else {}
    *found, report = lapack_call(
        context, routine, [x], [*outs, info], aliases=aliases, **attributes
    )
    kept = [i for i, out in enumerate(outs) if out.dtype != INT32]
    report = context.or_(report, broken, info)
    return where_succeeded(context, report, info, [found[i] for i in kept], [outs[i] for i in kept])


def _triangle(context: Any, x: Any, aval: Any, lower: bool) -> Any:
    """Matrices with zeros above their diagonals, or below."""
    flat = aval.update(shape=aval.shape[-2:], dtype=INT32)
    direction = "GE" if lower else "LE"
    mask = context.compare(context.iota(flat, 0), context.iota(flat, 1), direction, flat)
    wide = aval.update(dtype=BOOL)
    mask = context.broadcast_in_dim(mask, wide, (aval.ndim - 2, aval.ndim - 1))
    return context.select(mask, x, context.constant(0, aval), aval)


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
    found = _iterated(
        context,
        "heevd" if aval.dtype.kind == "c" else "syevd",
        _triangle(context, x, aval, lower),
        aval,
        [aval, outs[1].update(shape=aval.shape[:-1])],
        mode="V",
        uplo="L" if lower else "U",
    )
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
    turned = _transposed(aval)
    _, *found = _iterated(
        context,
        "gesvd" if algorithm is not None and algorithm.name == "QR" else "gesdd",
        _transpose(context, x, aval),
        turned,
        [turned, *whole],
        mode=("A" if full_matrices else "S") if compute_uv else "N",
    )
    values, vh, u = found
    found = [values]
    if compute_uv:
        found += [_transpose(context, u, whole[2]), _transpose(context, vh, whole[1])]
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
    vectors = aval.update(dtype=values.dtype)
    parts = values.update(dtype=np.dtype(np.finfo(aval.dtype).dtype))
    *found, left, right = _iterated(
        context,
        "geev",
        x,
        aval,
        [*([values] if aval.dtype.kind == "c" else [parts, parts]), vectors, vectors],
        compute_left="V" if compute_left_eigenvectors else "N",
        compute_right="V" if compute_right_eigenvectors else "N",
    )
    results = [found[0] if len(found) == 1 else context.complex(*found, values)]
    if compute_left_eigenvectors:
        results.append(left)
    if compute_right_eigenvectors:
        results.append(right)
    return results


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
    (aval,) = context.avals_in
    if not aval.size:
        return NotImplemented
    values = aval.update(shape=aval.shape[:-1])
    form, vectors, *_ = _iterated(
        context,
        "gees",
        x,
        aval,
        [aval, aval, *[values] * (1 if aval.dtype.kind == "c" else 2), _info(aval)],
        mode="V" if compute_schur_vectors else "N",
        sort="N",
    )
    return [form, vectors] if compute_schur_vectors else [form]


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
