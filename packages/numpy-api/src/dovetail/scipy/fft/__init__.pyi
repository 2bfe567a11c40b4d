"""The names of `dovetail.scipy.fft`, for type checkers and at run time."""

from dovetail.scipy.fft.cosines import dct as dct
from dovetail.scipy.fft.cosines import dctn as dctn
from dovetail.scipy.fft.cosines import idct as idct
from dovetail.scipy.fft.cosines import idctn as idctn
