"""The names of `dovetail.scipy.spatial.transform`, for type checkers and at run time."""
