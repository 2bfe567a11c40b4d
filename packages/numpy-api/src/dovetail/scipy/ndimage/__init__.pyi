"""The names of `dovetail.scipy.ndimage`, for type checkers and at run time."""
