"""The names of `dovetail.scipy.optimize`, for type checkers and at run time."""
