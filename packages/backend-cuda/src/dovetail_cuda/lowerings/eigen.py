"""Eigenvalues and singular values by cuSOLVER.

Kernels that do not converge say so, and return meaningless results: these become NaN. Matrices with
NaN or infinities, on which iterations are not documented to terminate, are replaced beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable
from dovetail.extend.lowering import (
    adjoint,
    columns_from,
    divided_by_power_of_two,
    multiplied_by_power_of_two,
    real_dtype,
    report_of,
    rows_from,
    triangle,
    where_succeeded,
    with_finite,
)
from dovetail_cuda.capabilities import find_plugin
from dovetail_cuda.lowerings.kernels import kernel_call, prepare_lapack

TABLE: Final = LoweringTable()

BOOL: Final = np.dtype(bool)
INT32: Final = np.dtype(np.int32)

# The argument that selects an algorithm of `syevd`; 0 lets the kernel choose by size and batch.
_EIGH_ALGORITHMS: Final = {None: np.uint8(0), "QR": np.uint8(1), "JACOBI": np.uint8(2)}

# Up to this size one-sided rotations are faster than reduction to bidiagonal form.
_LARGEST_FOR_JACOBI: Final = 1024
# Up to this size `gesvdj` has a kernel for batches, which computes all vectors or none.
_LARGEST_FOR_BATCHES: Final = 32


def _name(algorithm: Any) -> str | None:
    return None if algorithm is None else algorithm.name


def _iterated(
    context: Any,
    target: str,
    x: Any,
    aval: Any,
    outs: Sequence[Any],
    *,
    overwrites: bool = True,
    row_major: bool = False,
    divisible: bool = True,
    **attributes: str | bool | np.uint8,
) -> tuple[list[Any], Any]:
    """Call an iterative kernel.

    Args:
        context: the builder.
        target: its name.
        x: a stack of matrices.
        aval: its aval.
        outs: avals of the results except the last, the report.
        overwrites: whether the first result overwrites the matrices.
        row_major: whether it takes row-major matrices.
        divisible: whether all results have the batch dimensions.
        attributes: its static arguments.

    Returns:
        The results, and for each matrix 0 if they are valid.
    """
    info = report_of(aval)
    x, broken = with_finite(context, x, aval)
    *outputs, report = kernel_call(
        context,
        target,
        [x],
        [*outs, info],
        matrices=aval.ndim,
        aliases={0: 0} if overwrites else {},
        row_major=row_major,
        batch_dims=None if divisible else 0,
        **attributes,
    )
    return outputs, context.or_(report, broken, info)


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
    """``syevd``, ``heevd`` or, by rotations, ``syevj``; all eigenvalues are computed even if only
    some are requested."""
    (aval,), outs = context.avals_in, context.avals_out
    name = _name(algorithm)
    if not outs[0].size or name not in _EIGH_ALGORITHMS:
        return NotImplemented
    results = [aval, outs[1].update(shape=aval.shape[:-1])]
    outputs, report = _iterated(
        context,
        "cusolver_syevd_ffi",
        triangle(context, x, aval, lower),
        aval,
        results,
        lower=lower,
        algorithm=_EIGH_ALGORITHMS[name],
    )
    outputs = where_succeeded(context, report, report_of(aval), outputs, results)
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
    """``gesvdj``, which rotates, for small matrices; ``gesvd`` for others and the algorithm QR;
    ``gesvdp`` for the algorithm POLAR."""
    (aval,), outs = context.avals_in, context.avals_out
    name = _name(algorithm)
    if not aval.size or name not in (None, "DEFAULT", "QR", "JACOBI", "POLAR"):
        return NotImplemented
    rows, columns = aval.shape[-2:]
    if name in (None, "DEFAULT"):
        name = "JACOBI" if max(rows, columns) <= _LARGEST_FOR_JACOBI else "QR"
    if name == "QR":
        outputs, report = _svd_by_qr(context, x, aval, full_matrices, compute_uv)
    else:
        target = "cusolver_gesvdj_ffi" if name == "JACOBI" else "cusolver_gesvdp_ffi"
        square = full_matrices or (name == "JACOBI" and min(rows, columns) <= _LARGEST_FOR_BATCHES)
        outputs, report = _svd_by_rotations(context, target, x, aval, square, compute_uv)
    start = 0 if subset_by_index is None else subset_by_index[0]
    parts = [columns_from(context, f, o, start) for f, o in zip(outputs[:2], outs[:2], strict=True)]
    if compute_uv:
        parts.append(rows_from(context, outputs[2], outs[2], start))
    return where_succeeded(context, report, report_of(aval), parts, outs)


def _svd_by_qr(
    context: Any, x: Any, aval: Any, full_matrices: bool, compute_uv: bool
) -> tuple[list[Any], Any]:
    """``gesvd``, which takes matrices with at least as many rows as columns.

    The transpose of a row-major matrix is the same memory in column-major layout. In that layout,
    the left vectors of the transpose of a wide matrix are the requested right vectors, as rows, and
    vice versa.
    """
    *batch, rows, columns = aval.shape
    size = min(rows, columns)
    values = aval.update(shape=(*batch, size), dtype=real_dtype(aval.dtype))
    u = aval.update(shape=(*batch, rows, rows if full_matrices else size))
    vh = aval.update(shape=(*batch, columns if full_matrices else size, columns))
    if not compute_uv:
        u = vh = aval.update(shape=())
    wide = rows < columns
    (_, s, left, right), report = _iterated(
        context,
        "cusolver_gesvd_ffi",
        x,
        aval,
        [aval, values, *((vh, u) if wide else (u, vh))],
        row_major=wide,
        divisible=compute_uv,
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        transposed=wide,
    )
    if not compute_uv:
        return [s], report
    return ([s, right, left] if wide else [s, left, right]), report


def _svd_by_rotations(
    context: Any, target: str, x: Any, aval: Any, full_matrices: bool, compute_uv: bool
) -> tuple[list[Any], Any]:
    """``gesvdj`` or ``gesvdp``, which return the right vectors as columns."""
    *batch, rows, columns = aval.shape
    size = min(rows, columns)
    values = aval.update(shape=(*batch, size), dtype=real_dtype(aval.dtype))
    u = aval.update(shape=(*batch, rows, rows if full_matrices else size))
    v = aval.update(shape=(*batch, columns, columns if full_matrices else size))
    (_, s, left, right), report = _iterated(
        context,
        target,
        x,
        aval,
        [aval, values, u, v],
        full_matrices=full_matrices,
        compute_uv=compute_uv,
    )
    return ([s, left, adjoint(context, right, v)] if compute_uv else [s]), report


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
    """cuSOLVER's ``geev``, which computes no left vectors; for these and for other implementations,
    that of MAGMA, if installed, or of LAPACK, which runs on the host.

    Matrices are divided by a power of two, because the ``geev`` of LAPACK in SciPy 1.17 does not
    undo its own scaling.
    """
    (aval,), outs = context.avals_in, context.avals_out
    name = _name(implementation)
    if not aval.size or name not in (None, "CUSOLVER", "MAGMA", "LAPACK"):
        return NotImplemented
    if name == "CUSOLVER" and compute_left_eigenvectors:
        raise NotImplementedError(
            "eig: cuSOLVER finds no left eigenvectors; leave implementation out, or pass "
            "EigImplementation.LAPACK"
        )
    by_cusolver = not compute_left_eigenvectors and name in (None, "CUSOLVER")
    if name is None and by_cusolver:
        plugin = find_plugin()
        by_cusolver = plugin is None or plugin.has_geev()
    x, power = divided_by_power_of_two(context, x, aval)
    find = _eig_by_cusolver if by_cusolver else _eig_by_host
    outputs, report = find(
        context,
        x,
        aval,
        outs[0],
        compute_left_eigenvectors,
        compute_right_eigenvectors,
        {"MAGMA": "on", "LAPACK": "off"}.get(name or "", "auto"),
    )
    outputs[0] = multiplied_by_power_of_two(context, outputs[0], outs[0], power)
    return where_succeeded(context, report, report_of(aval), outputs, outs)


def _eig_by_cusolver(
    context: Any, x: Any, aval: Any, values: Any, left: bool, right: bool, magma: str
) -> tuple[list[Any], Any]:
    (_, eigenvalues, _, vectors), report = _iterated(
        context,
        "cusolver_geev_ffi",
        x,
        aval,
        [aval, values, aval, aval],
        overwrites=False,
        left=False,
        right=right,
    )
    if not right:
        return [eigenvalues], report
    if aval.dtype.kind != "c":
        vectors = _paired(context, eigenvalues, vectors, aval, values)
    return [eigenvalues, vectors], report


def _eig_by_host(
    context: Any, x: Any, aval: Any, values: Any, left: bool, right: bool, magma: str
) -> tuple[list[Any], Any]:
    context.prepare(prepare_lapack)
    single = values.update(dtype=real_dtype(values.dtype))
    vectors = aval.update(dtype=values.dtype)
    is_real = aval.dtype.kind != "c"
    outputs, report = _iterated(
        context,
        "cuhybrid_eig_real" if is_real else "cuhybrid_eig_comp",
        x,
        aval,
        [*([single, single] if is_real else [values]), vectors, vectors],
        overwrites=False,
        left=left,
        right=right,
        magma=magma,
    )
    *numbers, of_left, of_right = outputs
    eigenvalues = context.complex(*numbers, values) if is_real else numbers[0]
    return [eigenvalues, *([of_left] if left else []), *([of_right] if right else [])], report


def _paired(context: Any, found: Any, packed: Any, aval: Any, values: Any) -> Any:
    """Eigenvectors of real matrices as complex numbers.

    Conjugate eigenvalues are adjacent. For the first of a pair, its column holds the real parts of
    its vector, and the next column the imaginary parts; the other vector is the conjugate.
    """
    vectors = aval.update(dtype=values.dtype)
    rank, size = aval.ndim, aval.shape[-1]
    single = values.update(dtype=real_dtype(values.dtype))
    number = values.update(dtype=INT32)
    imaginary = context.imag(found, single)
    zeros = context.constant(0.0, single)
    odd = context.compare(imaginary, zeros, "NE", single)
    # Counting only the eigenvalues that are not real, the first of each pair is odd. That it has
    # the positive imaginary part is LAPACK's promise, not cuSOLVER's.
    counts = _counted(context, odd, number)
    one = context.constant(1, number)
    first = context.compare(context.and_(counts, one, number), one, "EQ", number)
    first = context.and_(first, odd, single.update(dtype=BOOL))

    def spread(mask: Any) -> Any:
        dimensions = (*range(rank - 2), rank - 1)
        return context.broadcast_in_dim(mask, aval.update(dtype=BOOL), dimensions)

    def moved(offset: int) -> Any:
        """The column `offset` places to the right."""
        others = (0,) * (rank - 1)
        zero = context.constant(0.0, aval.update(shape=()))
        return context.pad(packed, zero, aval, (*others, -offset), (*others, offset))

    mask, is_first = spread(odd), spread(first)
    second = context.not_(is_first, aval.update(dtype=BOOL))
    second = context.and_(mask, second, aval.update(dtype=BOOL))
    nothing = context.constant(0.0, aval)
    following, preceding = (moved(1), moved(-1)) if size > 1 else (nothing, nothing)
    real = context.select(second, preceding, packed, aval)
    imag = context.select(is_first, following, context.neg(packed, aval), aval)
    imag = context.select(mask, imag, nothing, aval)
    return context.complex(real, imag, vectors)


def _counted(context: Any, mask: Any, out: Any) -> Any:
    """The number of true elements of a vector up to each position."""
    size, rank = out.shape[-1], out.ndim
    square = out.update(shape=(*out.shape, size))
    flat = out.update(shape=(size, size))
    before = context.compare(context.iota(flat, 1), context.iota(flat, 0), "LE", flat)
    wide = square.update(dtype=BOOL)
    before = context.broadcast_in_dim(before, wide, (rank - 1, rank))
    repeated = context.broadcast_in_dim(mask, wide, (*range(rank - 1), rank))
    counted = context.and_(before, repeated, wide)
    ones, zeros = context.constant(1, square), context.constant(0, square)
    scalar = out.update(shape=())
    (counts,) = context.reduce(
        [context.select(counted, ones, zeros, square)],
        [context.constant(0, scalar)],
        (rank,),
        [out],
        lambda a, b: [context.add(a, b, scalar)],
    )
    return counts
