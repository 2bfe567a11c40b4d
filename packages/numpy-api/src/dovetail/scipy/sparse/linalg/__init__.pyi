"""The names of `dovetail.scipy.sparse.linalg`, for type checkers and at run time."""
