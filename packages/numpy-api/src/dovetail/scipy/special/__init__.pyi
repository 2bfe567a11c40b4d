"""The names of `dovetail.scipy.special`, for type checkers and at run time."""
