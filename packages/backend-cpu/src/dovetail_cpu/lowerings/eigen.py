"""Eigenvalues, singular values and related reductions by LAPACK.

Routines that do not converge say so, and return meaningless results: these become NaN. Matrices
with NaN or infinities, on which some routines never terminate, are replaced beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable
from dovetail.extend.lowering import (
    columns_from,
    divided_by_power_of_two,
    multiplied_by_power_of_two,
    real_dtype,
    report_of,
    rows_from,
    transpose,
    transposed,
    triangle,
    where_succeeded,
    with_finite,
)
from dovetail_cpu import kernels
from dovetail_cpu.lowerings.lapack import kernel_call, lapack_call

TABLE: Final = LoweringTable()

INT32: Final = np.dtype(np.int32)


def _finite(context: Any, x: Any, aval: Any, scaled: bool) -> tuple[Any, Any, Any]:
    """Matrices, zeros instead of those that are not finite; their powers of two; which were not.

    They are divided by the powers if `scaled`.
    """
    report = report_of(aval)
    power = report.update(dtype=real_dtype(aval.dtype))
    if not kernels.usable(context):
        if not scaled:
            x, broken = with_finite(context, x, aval)
            return x, None, broken
        x, powers = divided_by_power_of_two(context, x, aval)
        x, broken = with_finite(context, x, aval)
        return x, powers, broken
    context.prepare(kernels.prepare)
    x, powers, broken = kernel_call(
        context,
        kernels.FINITE_MATRICES,
        [x],
        [aval, power, report],
        aliases={0: 0},
        scaled=scaled,
    )
    return x, powers, broken


def _iterated(
    context: Any,
    routine: str,
    x: Any,
    aval: Any,
    outs: Sequence[Any],
    scaled: bool = False,
    **attributes: str | bool | int,
) -> list[Any]:
    """Call an iterative routine; NaN where it fails, and where a matrix is not finite.

    Args:
        context: the builder.
        routine: its name without the dtype letter.
        x: a stack of matrices, which it overwrites if its first result has this type.
        aval: its aval.
        outs: avals of the results except the last, the report.
        scaled: whether it gets matrices divided by powers of two.
        attributes: its options.

    Returns:
        The results that are not integers; with `scaled`, the powers before them.
    """
    info = report_of(aval)
    x, powers, broken = _finite(context, x, aval, scaled)
    aliases = {0: 0} if outs[0] == aval else {}
    *outputs, report = lapack_call(
        context, routine, [x], [*outs, info], aliases=aliases, **attributes
    )
    numeric = [i for i, out in enumerate(outs) if out.dtype != INT32]
    report = context.or_(report, broken, info)
    results = where_succeeded(
        context, report, info, [outputs[i] for i in numeric], [outs[i] for i in numeric]
    )
    return [powers, *results] if scaled else results


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
    """``syevd`` or ``heevd``; all eigenvalues are computed even if only some are requested."""
    (aval,), outs = context.avals_in, context.avals_out
    if not outs[0].size or (algorithm is not None and algorithm.name != "QR"):
        return NotImplemented
    outputs = _iterated(
        context,
        "heevd" if aval.dtype.kind == "c" else "syevd",
        triangle(context, x, aval, lower),
        aval,
        [aval, outs[1].update(shape=aval.shape[:-1])],
        mode="V",
        uplo="L" if lower else "U",
    )
    if subset_by_index is None:
        return outputs
    start = subset_by_index[0]
    return [columns_from(context, f, o, start) for f, o in zip(outputs, outs, strict=True)]


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
    """``gesdd``, or ``gesvd`` for the algorithm QR.

    Values alone are those of a matrix with at least as many rows as columns, which take two thirds
    of the time of others. Vectors would get other signs than NumPy's.
    """
    (aval,), outs = context.avals_in, context.avals_out
    if not aval.size or (algorithm is not None and algorithm.name in ("JACOBI", "POLAR")):
        return NotImplemented
    turned = not compute_uv and aval.shape[-2] <= aval.shape[-1]
    matrix_aval = transposed(aval) if turned else aval
    *batch, rows, columns = matrix_aval.shape
    rank = min(rows, columns)
    values = outs[0].update(shape=(*batch, rank))
    u = aval.update(shape=(*batch, rows, rows if full_matrices else rank))
    vh = aval.update(shape=(*batch, columns if full_matrices else rank, columns))
    if not compute_uv:
        u, vh = u.update(shape=(*batch, rows, 1)), vh.update(shape=(*batch, 1, columns))
    _, *outputs = _iterated(
        context,
        "gesvd" if algorithm is not None and algorithm.name == "QR" else "gesdd",
        transpose(context, x, aval) if turned else x,
        matrix_aval,
        [matrix_aval, values, u, vh],
        mode=("A" if full_matrices else "S") if compute_uv else "N",
    )
    if not compute_uv:
        outputs = outputs[:1]
    if subset_by_index is None:
        return outputs
    start = subset_by_index[0]
    parts = [columns_from(context, f, o, start) for f, o in zip(outputs[:2], outs[:2], strict=True)]
    if compute_uv:
        parts.append(rows_from(context, outputs[2], outs[2], start))
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

    It would scale large or small matrices itself, but the LAPACK of SciPy 1.17 then does not scale
    the eigenvalues back.
    """
    (aval,), outs = context.avals_in, context.avals_out
    if not aval.size or (implementation is not None and implementation.name != "LAPACK"):
        return NotImplemented
    values = outs[0]
    vectors = aval.update(dtype=values.dtype)
    is_real = aval.dtype.kind != "c"
    lengths = values.update(dtype=real_dtype(values.dtype))
    power, *parts, left, right = _iterated(
        context,
        "geev",
        x,
        aval,
        [*([lengths, lengths] if is_real else [values]), vectors, vectors],
        scaled=True,
        compute_left="V" if compute_left_eigenvectors else "N",
        compute_right="V" if compute_right_eigenvectors else "N",
    )
    eigenvalues = context.complex(*parts, values) if is_real else parts[0]
    results = [multiplied_by_power_of_two(context, eigenvalues, values, power)]
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
        [aval, aval, *[values] * (1 if aval.dtype.kind == "c" else 2), report_of(aval)],
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
    info = report_of(aval)
    *outputs, report = lapack_call(
        context, "gehrd", [a], [*outs, info], aliases={0: 0}, low=1, high=aval.shape[-1]
    )
    return where_succeeded(context, report, info, outputs, outs)


@TABLE.rule("tridiagonal")
def tridiagonal(context: Any, a: Any, *, lower: bool) -> Any:
    """``sytrd`` or ``hetrd``."""
    (aval,), outs = context.avals_in, context.avals_out
    if not outs[2].size:
        return NotImplemented
    info = report_of(aval)
    *outputs, report = lapack_call(
        context,
        "hetrd" if aval.dtype.kind == "c" else "sytrd",
        [a],
        [*outs, info],
        aliases={0: 0},
        uplo="L" if lower else "U",
    )
    return where_succeeded(context, report, info, outputs, outs)
