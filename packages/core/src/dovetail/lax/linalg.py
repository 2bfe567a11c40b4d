"""Linear algebra: strict about dtypes and shapes, close to LAPACK.

The last two dimensions of every array are those of a matrix; the others, batch dimensions, are
those of a stack of matrices that are treated alike.
"""

from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.ops.linalg.cholesky import cholesky as cholesky
from dovetail._core.ops.linalg.cholesky import cholesky_p as cholesky_p
from dovetail._core.ops.linalg.cholesky import cholesky_update as cholesky_update
from dovetail._core.ops.linalg.cholesky import cholesky_update_p as cholesky_update_p
from dovetail._core.ops.linalg.eigen import EighImplementation as EighImplementation
from dovetail._core.ops.linalg.eigen import EigImplementation as EigImplementation
from dovetail._core.ops.linalg.eigen import eig as eig
from dovetail._core.ops.linalg.eigen import eig_p as eig_p
from dovetail._core.ops.linalg.eigen import eigh as eigh
from dovetail._core.ops.linalg.eigen import eigh_p as eigh_p
from dovetail._core.ops.linalg.householder import householder_product as householder_product
from dovetail._core.ops.linalg.householder import householder_product_p as householder_product_p
from dovetail._core.ops.linalg.householder import ormqr as ormqr
from dovetail._core.ops.linalg.householder import ormqr_p as ormqr_p
from dovetail._core.ops.linalg.lu import lu as lu
from dovetail._core.ops.linalg.lu import lu_p as lu_p
from dovetail._core.ops.linalg.lu import lu_pivots_to_permutation as lu_pivots_to_permutation
from dovetail._core.ops.linalg.lu import lu_pivots_to_permutation_p as lu_pivots_to_permutation_p
from dovetail._core.ops.linalg.polar import qdwh as qdwh
from dovetail._core.ops.linalg.products import symmetric_product as symmetric_product
from dovetail._core.ops.linalg.products import symmetric_product_p as symmetric_product_p
from dovetail._core.ops.linalg.qr import qr as qr
from dovetail._core.ops.linalg.qr import qr_p as qr_p
from dovetail._core.ops.linalg.schur import schur as schur
from dovetail._core.ops.linalg.schur import schur_p as schur_p
from dovetail._core.ops.linalg.svd import SvdAlgorithm as SvdAlgorithm
from dovetail._core.ops.linalg.svd import svd as svd
from dovetail._core.ops.linalg.svd import svd_p as svd_p
from dovetail._core.ops.linalg.triangular import triangular_solve as triangular_solve
from dovetail._core.ops.linalg.triangular import triangular_solve_p as triangular_solve_p
from dovetail._core.ops.linalg.tridiagonal import hessenberg as hessenberg
from dovetail._core.ops.linalg.tridiagonal import hessenberg_p as hessenberg_p
from dovetail._core.ops.linalg.tridiagonal import tridiagonal as tridiagonal
from dovetail._core.ops.linalg.tridiagonal import tridiagonal_p as tridiagonal_p
from dovetail._core.ops.linalg.tridiagonal_systems import tridiagonal_solve as tridiagonal_solve
from dovetail._core.ops.linalg.tridiagonal_systems import tridiagonal_solve_p as tridiagonal_solve_p

__all__ = [
    "EigImplementation",
    "EighImplementation",
    "SvdAlgorithm",
    "cholesky",
    "cholesky_p",
    "cholesky_update",
    "cholesky_update_p",
    "eig",
    "eig_p",
    "eigh",
    "eigh_p",
    "hessenberg",
    "hessenberg_p",
    "householder_product",
    "householder_product_p",
    "lu",
    "lu_p",
    "lu_pivots_to_permutation",
    "lu_pivots_to_permutation_p",
    "ormqr",
    "ormqr_p",
    "qdwh",
    "qr",
    "qr_p",
    "schur",
    "schur_p",
    "svd",
    "svd_p",
    "symmetric_product",
    "symmetric_product_p",
    "triangular_solve",
    "triangular_solve_p",
    "tridiagonal",
    "tridiagonal_p",
    "tridiagonal_solve",
    "tridiagonal_solve_p",
]

_publish(globals())
