"""The names of `dovetail.scipy.interpolate`, for type checkers and at run time."""
