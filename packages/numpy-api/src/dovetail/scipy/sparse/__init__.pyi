"""The names of `dovetail.scipy.sparse`, for type checkers and at run time."""

from dovetail.scipy.sparse import linalg as linalg
