"""Linear algebra, of one matrix and of many."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import linalg

from workloads.base import Workload, definite, normals


def shown_of(shape: tuple[int, ...], dtype: DTypeLike = np.float32) -> str:
    """How a name says sizes of matrices."""
    *many, rows, columns = shape
    one = f"{rows}" if rows == columns and not many else f"{rows}x{columns}"
    prefix = f"{many[0]} of " if many else ""
    return f"{'f64 ' if dtype is np.float64 else ''}{prefix}{one}"


def regular(*shape: int, dtype: DTypeLike = np.float32) -> Any:
    """Matrices that are far from singular."""
    return (normals(*shape) + 2 * shape[-1] ** 0.5 * np.eye(shape[-1])).astype(dtype)


def _magnitudes(results: Any) -> Any:
    """What does not depend on the signs of vectors."""
    return [np.abs(x) for x in results]


def _values(results: Any) -> Any:
    return results[0]


def cholesky(*shape: int, dtype: DTypeLike = np.float32) -> Workload:
    return Workload(
        f"Cholesky {shown_of(shape, dtype)}",
        lambda: (definite(*shape, dtype=dtype),),
        lambda dt, x: dt.numpy.linalg.cholesky(x),
        np.linalg.cholesky,
        lambda torch, x: torch.linalg.cholesky(x),
        x64=dtype is np.float64,
    )


def qr(*shape: int) -> Workload:
    return Workload(
        f"QR {shown_of(shape)}",
        lambda: (normals(*shape),),
        lambda dt, x: dt.numpy.linalg.qr(x),
        np.linalg.qr,
        lambda torch, x: torch.linalg.qr(x),
        compared=_magnitudes,
        tolerance=1e-2,
    )


def solve(*shape: int, columns: int = 1, dtype: DTypeLike = np.float32) -> Workload:
    return Workload(
        f"solve {shown_of(shape, dtype)}, {columns} column" + "s" * (columns > 1),
        lambda: (regular(*shape, dtype=dtype), normals(*shape[:-1], columns, dtype=dtype, seed=1)),
        lambda dt, a, b: dt.numpy.linalg.solve(a, b),
        np.linalg.solve,
        lambda torch, a, b: torch.linalg.solve(a, b),
        x64=dtype is np.float64,
    )


def inverse(*shape: int) -> Workload:
    return Workload(
        f"inverse {shown_of(shape)}",
        lambda: (regular(*shape),),
        lambda dt, x: dt.numpy.linalg.inv(x),
        np.linalg.inv,
        lambda torch, x: torch.linalg.inv(x),
    )


def eigh(*shape: int, dtype: DTypeLike = np.float32) -> Workload:
    return Workload(
        f"eigh {shown_of(shape, dtype)}",
        lambda: (definite(*shape, dtype=dtype),),
        lambda dt, x: dt.numpy.linalg.eigh(x),
        np.linalg.eigh,
        lambda torch, x: torch.linalg.eigh(x),
        compared=_values,
        x64=dtype is np.float64,
    )


def svd(*shape: int) -> Workload:
    return Workload(
        f"SVD {shown_of(shape)}",
        lambda: (normals(*shape),),
        lambda dt, x: dt.numpy.linalg.svd(x, full_matrices=False),
        lambda x: np.linalg.svd(x, full_matrices=False),
        lambda torch, x: torch.linalg.svd(x, full_matrices=False),
        compared=lambda results: results[1],
    )


def _triangle(*shape: int) -> Any:
    return np.tril(regular(*shape)).astype(np.float32)


def triangular(*shape: int, columns: int = 1) -> Workload:
    def theirs(a: Any, b: Any) -> Any:
        return linalg.solve_triangular(a, b, lower=True, check_finite=False)

    return Workload(
        f"triangular solve {shown_of(shape)}, {columns} column" + "s" * (columns > 1),
        lambda: (_triangle(*shape), normals(*shape[:-1], columns, seed=1)),
        lambda dt, a, b: dt.lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
        theirs,
        lambda torch, a, b: torch.linalg.solve_triangular(a, b, upper=False),
    )


WORKLOADS = [
    cholesky(500, 500),
    cholesky(64, 64, 64),
    cholesky(1000, 8, 8),
    cholesky(500, 500, dtype=np.float64),
    qr(500, 500),
    qr(1000, 100),
    qr(64, 64, 64),
    Workload(
        "LU 500",
        lambda: (regular(500, 500),),
        lambda dt, x: dt.scipy.linalg.lu_factor(x),
        lambda x: linalg.lu_factor(x, check_finite=False),
        lambda torch, x: tuple(torch.linalg.lu_factor(x)),
        compared=_values,
    ),
    Workload(
        "LU 64 of 64x64",
        lambda: (regular(64, 64, 64),),
        lambda dt, x: dt.lax.linalg.lu(x)[0],
        None,
        lambda torch, x: torch.linalg.lu_factor(x)[0],
    ),
    solve(500, 500),
    solve(500, 500, columns=100),
    solve(64, 64, 64),
    solve(1000, 4, 4),
    solve(500, 500, dtype=np.float64),
    inverse(500, 500),
    inverse(64, 64, 64),
    inverse(1000, 4, 4),
    Workload(
        "determinants 64 of 64x64",
        lambda: (regular(64, 64, 64) / 20,),
        lambda dt, x: dt.numpy.linalg.slogdet(x)[1],
        lambda x: np.linalg.slogdet(x)[1],
        lambda torch, x: torch.linalg.slogdet(x)[1],
        tolerance=1e-3,
    ),
    eigh(200, 200),
    eigh(64, 32, 32),
    eigh(200, 200, dtype=np.float64),
    Workload(
        "eigenvalues 100",
        lambda: (normals(100, 100),),
        lambda dt, x: dt.numpy.linalg.eigvals(x),
        np.linalg.eigvals,
        lambda torch, x: torch.linalg.eigvals(x),
        compared=lambda x: np.sort(np.abs(x)),
        tolerance=1e-2,
    ),
    svd(200, 200),
    svd(1000, 50),
    svd(64, 32, 32),
    Workload(
        "least squares 1000x100",
        lambda: (normals(1000, 100), normals(1000, seed=1)),
        lambda dt, a, b: dt.numpy.linalg.lstsq(a, b)[0],
        lambda a, b: linalg.lstsq(a, b, check_finite=False)[0],
        lambda torch, a, b: torch.linalg.lstsq(a, b).solution,
    ),
    triangular(500, 500),
    triangular(500, 500, columns=500),
    triangular(64, 64, 64, columns=1),
    triangular(1000, 8, 8, columns=8),
    Workload(
        "pseudoinverse 200x100",
        lambda: (normals(200, 100),),
        lambda dt, x: dt.numpy.linalg.pinv(x),
        np.linalg.pinv,
        lambda torch, x: torch.linalg.pinv(x),
    ),
    Workload(
        "expm 100",
        lambda: (normals(100, 100) / 10,),
        lambda dt, x: dt.scipy.linalg.expm(x),
        linalg.expm,
        lambda torch, x: torch.linalg.matrix_exp(x),
    ),
]
