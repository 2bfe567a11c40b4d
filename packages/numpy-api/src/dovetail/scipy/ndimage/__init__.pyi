"""The names of `dovetail.scipy.ndimage`, for type checkers and at run time."""

from dovetail.scipy.ndimage.sampling import map_coordinates as map_coordinates
