"""The names of `dovetail.scipy.optimize`, for type checkers and at run time."""

from dovetail.scipy.optimize.minimization import OptimizeResults as OptimizeResults
from dovetail.scipy.optimize.minimization import minimize as minimize
