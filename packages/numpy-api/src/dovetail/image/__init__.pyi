"""The names of `dovetail.image`, for type checkers and at run time."""
