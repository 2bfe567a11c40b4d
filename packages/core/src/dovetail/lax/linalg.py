"""Linear algebra: strict about dtypes and shapes, close to LAPACK.

The last two dimensions of every array are those of a matrix; the others, batch dimensions, are
those of a stack of matrices that are treated alike.
"""

from __future__ import annotations

from dovetail.core.ops.linalg.triangular import triangular_solve as triangular_solve
from dovetail.core.ops.linalg.triangular import triangular_solve_p as triangular_solve_p

__all__ = [
    "triangular_solve",
    "triangular_solve_p",
]
