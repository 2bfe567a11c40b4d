"""The names of `dovetail.scipy.stats`, for type checkers and at run time."""
