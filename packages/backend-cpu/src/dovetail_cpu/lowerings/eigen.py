"""Eigenvalues, singular values and related reductions by LAPACK.

Routines that do not converge say so, and give results that mean nothing: these become NaN. Matrices
with NaN or infinities, for which some routines never end, are not shown to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable
from dovetail_cpu.lowerings.lapack import (
    lapack_call,
    transpose,
    transposed,
    triangle,
    where_succeeded,
)

TABLE: Final = LoweringTable()

BOOL: Final = np.dtype(bool)
INT32: Final = np.dtype(np.int32)


def _info(aval: Any) -> Any:
    """The aval of what LAPACK reports for each of the matrices of `aval`."""
    return aval.update(shape=aval.shape[:-2], dtype=INT32)


def _parts(context: Any, x: Any, aval: Any) -> tuple[list[Any], Any]:
    """Real and imaginary parts, and their aval; of a real array itself alone."""
    if aval.dtype.kind != "c":
        return [x], aval
    single = aval.update(dtype=np.dtype(np.finfo(aval.dtype).dtype))
    return [context.real(x, single), context.imag(x, single)], single


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
    parts, single = _parts(context, x, aval)
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
        triangle(context, x, aval, lower),
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
    """``gesdd``, or ``gesvd`` for the algorithm QR, of matrices with at least as many rows as
    columns, which take it two thirds of the time of others.

    Transposing exchanges left vectors with right ones, and saves copies: rows of XLA's arrays are
    LAPACK's columns.
    """
    (aval,), outs = context.avals_in, context.avals_out
    if not aval.size or (algorithm is not None and algorithm.name in ("JACOBI", "POLAR")):
        return NotImplemented
    turned = aval.shape[-2] <= aval.shape[-1]
    given = transposed(aval) if turned else aval
    *batch, rows, columns = given.shape
    values = outs[0].update(shape=(*batch, columns))
    u = aval.update(shape=(*batch, rows, rows if full_matrices else columns))
    vh = aval.update(shape=(*batch, columns, columns))
    if not compute_uv:
        u, vh = u.update(shape=(*batch, rows, 1)), vh.update(shape=(*batch, 1, columns))
    _, *found = _iterated(
        context,
        "gesvd" if algorithm is not None and algorithm.name == "QR" else "gesdd",
        transpose(context, x, aval) if turned else x,
        given,
        [given, values, u, vh],
        mode=("A" if full_matrices else "S") if compute_uv else "N",
    )
    if not compute_uv:
        found = found[:1]
    elif turned:
        found = [found[0], transpose(context, found[2], vh), transpose(context, found[1], u)]
    if subset_by_index is None:
        return found
    start, stop = subset_by_index
    parts = [_columns(context, f, o, start) for f, o in zip(found[:2], outs[:2], strict=True)]
    if compute_uv:
        low, high = [0] * aval.ndim, list(outs[2].shape)
        low[-2], high[-2] = start, stop
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
    """``geev``, of matrices divided by a power of two.

    It would do so itself where they are large or small, but where LAPACK is that of SciPy 1.17, the
    eigenvalues are then not multiplied again.
    """
    (aval,), outs = context.avals_in, context.avals_out
    if not aval.size or (implementation is not None and implementation.name != "LAPACK"):
        return NotImplemented
    values = outs[0]
    vectors = aval.update(dtype=values.dtype)
    parts, single = _parts(context, x, aval)
    lengths = single.update(shape=values.shape)
    scale, factors = _power_of_two(context, parts, single)
    over_all = context.broadcast_in_dim(scale, single, tuple(range(factors.ndim)))
    parts = [context.div(part, over_all, single) for part in parts]
    *found, left, right = _iterated(
        context,
        "geev",
        parts[0] if len(parts) == 1 else context.complex(*parts, aval),
        aval,
        [*([values] if len(parts) == 2 else [lengths, lengths]), vectors, vectors],
        compute_left="V" if compute_left_eigenvectors else "N",
        compute_right="V" if compute_right_eigenvectors else "N",
    )
    if len(found) == 1:
        found, _ = _parts(context, found[0], values)
    over_all = context.broadcast_in_dim(scale, lengths, tuple(range(factors.ndim)))
    found = [context.mul(part, over_all, lengths) for part in found]
    results = [context.complex(*found, values)]
    if compute_left_eigenvectors:
        results.append(left)
    if compute_right_eigenvectors:
        results.append(right)
    return results


def _power_of_two(context: Any, parts: Sequence[Any], single: Any) -> tuple[Any, Any]:
    """For each matrix the power of two of its largest element, or one; and the aval of these."""
    rank = single.ndim
    scalar, largest = single.update(shape=()), single.update(shape=single.shape[:-2])
    found = None
    for part in parts:
        (size,) = context.reduce(
            [context.op("abs", [part], single)],
            [context.constant(0.0, scalar)],
            (rank - 2, rank - 1),
            [largest],
            lambda a, b: [context.max(a, b, scalar)],
        )
        found = size if found is None else context.max(found, size, largest)
    # The exponent's bits alone.
    width = single.dtype.itemsize * 8
    bits = largest.update(dtype=np.dtype(f"int{width}"))
    exponent = np.array(np.inf, single.dtype).view(bits.dtype)
    kept = context.and_(
        context.bitcast_convert(found, bits), context.constant(exponent, bits), bits
    )
    power = context.bitcast_convert(kept, largest)
    none = context.compare(power, context.constant(0.0, largest), "EQ", largest)
    return context.select(none, context.constant(1.0, largest), power, largest), largest


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
