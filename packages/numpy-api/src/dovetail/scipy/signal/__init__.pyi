"""The names of `dovetail.scipy.signal`, for type checkers and at run time."""

from dovetail.scipy.signal.convolution import convolve as convolve
from dovetail.scipy.signal.convolution import convolve2d as convolve2d
from dovetail.scipy.signal.convolution import correlate as correlate
from dovetail.scipy.signal.convolution import correlate2d as correlate2d
from dovetail.scipy.signal.convolution import fftconvolve as fftconvolve
from dovetail.scipy.signal.spectra import csd as csd
from dovetail.scipy.signal.spectra import istft as istft
from dovetail.scipy.signal.spectra import stft as stft
from dovetail.scipy.signal.spectra import welch as welch
from dovetail.scipy.signal.trends import detrend as detrend
