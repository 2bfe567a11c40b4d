"""The names of `dovetail.scipy.sparse.linalg`, for type checkers and at run time."""

from dovetail.scipy.sparse.linalg.iterations import bicgstab as bicgstab
from dovetail.scipy.sparse.linalg.iterations import cg as cg
from dovetail.scipy.sparse.linalg.minimal_residual import gmres as gmres
