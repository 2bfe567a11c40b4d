"""Discrete Fourier transforms."""

from __future__ import annotations

from dovetail.extend.tracebacks import publish as _publish
from dovetail.numpy.fft.frequencies import fftfreq as fftfreq
from dovetail.numpy.fft.frequencies import fftshift as fftshift
from dovetail.numpy.fft.frequencies import ifftshift as ifftshift
from dovetail.numpy.fft.frequencies import rfftfreq as rfftfreq
from dovetail.numpy.fft.transforms import fft as fft
from dovetail.numpy.fft.transforms import fft2 as fft2
from dovetail.numpy.fft.transforms import fftn as fftn
from dovetail.numpy.fft.transforms import hfft as hfft
from dovetail.numpy.fft.transforms import ifft as ifft
from dovetail.numpy.fft.transforms import ifft2 as ifft2
from dovetail.numpy.fft.transforms import ifftn as ifftn
from dovetail.numpy.fft.transforms import ihfft as ihfft
from dovetail.numpy.fft.transforms import irfft as irfft
from dovetail.numpy.fft.transforms import irfft2 as irfft2
from dovetail.numpy.fft.transforms import irfftn as irfftn
from dovetail.numpy.fft.transforms import rfft as rfft
from dovetail.numpy.fft.transforms import rfft2 as rfft2
from dovetail.numpy.fft.transforms import rfftn as rfftn

__all__ = [
    "fft",
    "fft2",
    "fftfreq",
    "fftn",
    "fftshift",
    "hfft",
    "ifft",
    "ifft2",
    "ifftn",
    "ifftshift",
    "ihfft",
    "irfft",
    "irfft2",
    "irfftn",
    "rfft",
    "rfft2",
    "rfftfreq",
    "rfftn",
]


def __dir__() -> list[str]:
    return __all__


_publish(globals())
