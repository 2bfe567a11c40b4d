"""The names of `dovetail.scipy.signal`, for type checkers and at run time."""
