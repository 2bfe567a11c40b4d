"""The names of `dovetail.scipy.interpolate`, for type checkers and at run time."""

from dovetail.scipy.interpolate.grids import RegularGridInterpolator as RegularGridInterpolator
