"""The names of `dovetail.experimental.sparse.linalg`, for type checkers and at run time."""

from dovetail.experimental.sparse.linalg.eigenvalues import lobpcg_standard as lobpcg_standard
from dovetail.experimental.sparse.linalg.equations import spsolve as spsolve
from dovetail.experimental.sparse.linalg.equations import spsolve_p as spsolve_p
