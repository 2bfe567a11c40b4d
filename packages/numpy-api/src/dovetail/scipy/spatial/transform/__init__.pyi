"""The names of `dovetail.scipy.spatial.transform`, for type checkers and at run time."""

from dovetail.scipy.spatial.transform.interpolation import Slerp as Slerp
from dovetail.scipy.spatial.transform.rotations import Rotation as Rotation
