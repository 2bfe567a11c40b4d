"""Functions of stacks of matrices, for operands that have been checked.

The last two dimensions are those of a matrix, the others are batch dimensions. Decompositions and
solvers are in `dovetail.lax.linalg`; the helpers here connect them.
"""

from dovetail._core.ops.elementwise.operands import real_dtype as real_dtype
from dovetail._core.ops.linalg.eigen_matrices import column as as_columns
from dovetail._core.ops.linalg.eigen_matrices import columns as columns
from dovetail._core.ops.linalg.eigen_matrices import diagonal as diagonal
from dovetail._core.ops.linalg.eigen_matrices import row as as_rows
from dovetail._core.ops.linalg.eigen_matrices import scaled_columns as scaled_columns
from dovetail._core.ops.linalg.eigen_matrices import zeros_of as zeros_of
from dovetail._core.ops.linalg.matrices import identity as identity
from dovetail._core.ops.linalg.matrices import matrix_adjoint as matrix_adjoint
from dovetail._core.ops.linalg.matrices import matrix_transpose as matrix_transpose
from dovetail._core.ops.linalg.matrices import on_diagonal as on_diagonal
from dovetail._core.ops.linalg.matrices import part as part
from dovetail._core.ops.linalg.matrices import product as product
from dovetail._core.ops.linalg.matrices import rows_in_order as rows_in_order
from dovetail._core.ops.linalg.matrices import where_mask as where_mask
from dovetail._core.ops.linalg.qr import geqrf_p as geqrf_p
from dovetail._core.ops.linalg.triangular import solve_triangular as solve_triangular

__all__ = [
    "as_columns",
    "as_rows",
    "columns",
    "diagonal",
    "geqrf_p",
    "identity",
    "matrix_adjoint",
    "matrix_transpose",
    "on_diagonal",
    "part",
    "product",
    "real_dtype",
    "rows_in_order",
    "scaled_columns",
    "solve_triangular",
    "where_mask",
    "zeros_of",
]
