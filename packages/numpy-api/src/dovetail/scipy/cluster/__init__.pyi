"""The names of `dovetail.scipy.cluster`, for type checkers and at run time."""

from dovetail.scipy.cluster import vq as vq
