"""The names of `dovetail.scipy.linalg`, for type checkers and at run time."""
