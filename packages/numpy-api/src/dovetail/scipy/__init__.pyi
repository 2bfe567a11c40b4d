"""The names of `dovetail.scipy`, for type checkers and at run time."""

from dovetail.scipy import cluster as cluster
from dovetail.scipy import fft as fft
from dovetail.scipy import integrate as integrate
from dovetail.scipy import interpolate as interpolate
from dovetail.scipy import linalg as linalg
from dovetail.scipy import ndimage as ndimage
from dovetail.scipy import optimize as optimize
from dovetail.scipy import signal as signal
from dovetail.scipy import sparse as sparse
from dovetail.scipy import spatial as spatial
from dovetail.scipy import special as special
from dovetail.scipy import stats as stats
