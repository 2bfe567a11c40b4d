"""Eigenvalues, singular values and related reductions by LAPACK.

Routines that do not converge say so, and return meaningless results: these become NaN. Matrices
with NaN or infinities, on which some routines never terminate, are replaced beforehand.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable
from dovetail.extend.dtypes import dtype_name
from dovetail.extend.lowering import (
    columns_from,
    multiplied_by_power_of_two,
    real_dtype,
    report_of,
    rows_from,
    transpose,
    transposed,
)
from dovetail_cpu import kernels
from dovetail_cpu.lowerings.lapack import factorize
from dovetail_cpu.lowerings.linalg import large_kernel

TABLE: Final = LoweringTable()

INT32: Final = np.dtype(np.int32)
# The most rows of symmetric matrices of which the kernel takes many at once, and one no faster than
# LAPACK; and the most bytes of a matrix, which it reads and writes once for each column, where
# LAPACK takes many columns together.
_SMALL: Final = 25
_MOST_BYTES: Final = 1 << 23


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
    """A kernel, ``syevd`` or ``heevd``, of all eigenvalues even if only some are requested."""
    (aval,), outs = context.avals_in, context.avals_out
    if not outs[0].size or (algorithm is not None and algorithm.name != "QR"):
        return NotImplemented
    found = [aval, outs[1].update(shape=aval.shape[:-1])]
    target = _eigh_kernel(context, aval) if lower else ""
    if target:
        outputs = kernels.call(context, target, [x], found, aval.ndim - 2)
    else:
        uplo = "L" if lower else "U"
        outputs = factorize(
            context,
            "heevd" if aval.dtype.kind == "c" else "syevd",
            [x],
            found,
            aval,
            aliases={0: 0},
            reports=True,
            triangle=uplo,
            finite=True,
            mode="V",
            uplo=uplo,
        )
    if subset_by_index is None:
        return outputs
    start = subset_by_index[0]
    return [columns_from(context, f, o, start) for f, o in zip(outputs, outs, strict=True)]


def _eigh_kernel(context: Any, matrix: Any) -> str:
    """The kernel for lower triangles of symmetric matrices; empty where LAPACK is better."""
    size = matrix.shape[-1]
    few = size <= _SMALL and prod(matrix.shape[:-2]) == 1
    if few or size * size * matrix.dtype.itemsize > _MOST_BYTES or not kernels.usable(context):
        return ""
    return kernels.EIGH.get(dtype_name(matrix.dtype), "")


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
    by_qr = algorithm is None or algorithm.name == "DEFAULT"
    if compute_uv and not full_matrices and by_qr and 6 * rows >= 11 * columns:
        target = large_kernel(context, "large_qr", aval)
        if target:
            outputs = _of_triangle(context, target, x, aval, values, vh)
            start = None if subset_by_index is None else subset_by_index[0]
            return outputs if start is None else _chosen(context, outputs, outs, start)
    if not compute_uv:
        u, vh = u.update(shape=(*batch, rows, 1)), vh.update(shape=(*batch, 1, columns))
    _, *outputs = factorize(
        context,
        "gesvd" if algorithm is not None and algorithm.name == "QR" else "gesdd",
        [transpose(context, x, aval) if turned else x],
        [matrix_aval, values, u, vh],
        matrix_aval,
        aliases={0: 0},
        reports=True,
        finite=True,
        unused=(0,) if compute_uv else (0, 2, 3),
        mode=("A" if full_matrices else "S") if compute_uv else "N",
    )
    if not compute_uv:
        outputs = outputs[:1]
    if subset_by_index is None:
        return outputs
    return _chosen(context, outputs, outs, subset_by_index[0])


def _of_triangle(context: Any, target: str, x: Any, aval: Any, values: Any, vh: Any) -> list[Any]:
    """Those of the triangle of a QR factorisation, as LAPACK has it of so many rows."""
    batch_dims = aval.ndim - 2
    packed, taus = kernels.call(context, target, [x], [aval, values], batch_dims)
    _, values_of_r, u, v = factorize(
        context,
        "gesdd",
        [rows_from(context, packed, vh, 0)],
        [vh, values, vh, vh],
        vh,
        aliases={0: 0},
        reports=True,
        triangle="U",
        finite=True,
        unused=(0,),
        mode="S",
    )
    reflect = large_kernel(context, "reflect", aval)
    (u,) = kernels.call(context, reflect, [packed, taus, u], [aval], batch_dims, transposed=0)
    return [values_of_r, u, v]


def _chosen(context: Any, outputs: list[Any], outs: Any, start: int) -> list[Any]:
    """Singular values and vectors from one on."""
    parts = [columns_from(context, f, o, start) for f, o in zip(outputs[:2], outs[:2], strict=True)]
    if len(outputs) > 2:
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
    found = [lengths, lengths] if is_real else [values]
    chosen = (compute_left_eigenvectors, compute_right_eigenvectors)
    *parts, left, right, power = factorize(
        context,
        "geev",
        [x],
        [*found, vectors, vectors],
        aval,
        aliases={},
        reports=True,
        finite=True,
        scaled=True,
        unused=[len(found) + i for i in range(2) if not chosen[i]],
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
    form, vectors, *_ = factorize(
        context,
        "gees",
        [x],
        [aval, aval, *[values] * (1 if aval.dtype.kind == "c" else 2), report_of(aval)],
        aval,
        aliases={0: 0},
        reports=True,
        finite=True,
        unused=() if compute_schur_vectors else (1,),
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
    return factorize(
        context, "gehrd", [a], outs, aval, aliases={0: 0}, reports=True, low=1, high=aval.shape[-1]
    )


@TABLE.rule("tridiagonal")
def tridiagonal(context: Any, a: Any, *, lower: bool) -> Any:
    """``sytrd`` or ``hetrd``."""
    (aval,), outs = context.avals_in, context.avals_out
    if not outs[2].size:
        return NotImplemented
    return factorize(
        context,
        "hetrd" if aval.dtype.kind == "c" else "sytrd",
        [a],
        outs,
        aval,
        aliases={0: 0},
        reports=True,
        uplo="L" if lower else "U",
    )
