"""The names of `dovetail.scipy.spatial`, for type checkers and at run time."""

from dovetail.scipy.spatial import transform as transform
