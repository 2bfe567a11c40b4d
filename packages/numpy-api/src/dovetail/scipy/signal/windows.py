"""Windows by name, periodic, as spectra of segments take them.

F. J. Harris, On the use of windows for harmonic analysis with the discrete Fourier transform, Proc.
IEEE 66 (1978), has their formulas. A window of `n` points is the first `n` points of the symmetric
one of ``n + 1``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like
from dovetail.extend.avals import aval_of

Points = np.ndarray[Any, Any]


def window_of(function: str, window: Any, size: int) -> Any:
    """The checked argument `window` as an array of `size` points.

    Args:
        function: name of the user's function.
        window: a name, a tuple of a name and parameters, the beta of a Kaiser window, or an array.
        size: number of points.

    Raises:
        TypeError: it is none of these, or a parameter is no number.
        ValueError: there is no such window, its parameters do not fit, or the array has another
            size.
    """
    if isinstance(window, str):
        return _named(function, window, (), size)
    if isinstance(window, tuple) and window and isinstance(window[0], str):
        return _named(function, window[0], window[1:], size)
    if isinstance(window, (float, int)) and not isinstance(window, bool):
        return _named(function, "kaiser", (window,), size)
    points = array_like(window, function, "window")
    aval = aval_of(points)
    if dtypes.kind_of(aval.dtype) not in ("b", "i", "u", "f"):
        raise TypeError(f"{function}: window must hold real numbers, got {aval.dtype}")
    if aval.shape != (size,):
        raise ShapeError(
            f"{function}: window must be a vector of nperseg = {size} points, got shape "
            f"{aval.shape}"
        )
    return points


def length_of(function: str, window: Any) -> int | None:
    """How many points the argument `window` has; None if it has as many as one wants."""
    if isinstance(window, (str, tuple, float, int)):
        return None
    shape = aval_of(array_like(window, function, "window")).shape
    if len(shape) != 1 or not shape[0]:
        raise ShapeError(f"{function}: window must be a vector of points, got shape {shape}")
    return int(shape[0])


def _named(function: str, name: str, parameters: tuple[Any, ...], size: int) -> Points:
    known = _NAMES.get(name)
    if known is None and name in _MISSING:
        raise NotImplementedError(f"{function}: the window {name!r} is not there; pass its points")
    if known is None:
        raise ValueError(
            f"{function}: unknown window {name!r}; there are {', '.join(sorted(_NAMES))}"
        )
    shape, least, most = known
    if not least <= len(parameters) <= most:
        count = f"{least}" if least == most else f"{least} to {most}"
        raise ValueError(
            f"{function}: the window {name!r} has {count} parameters, got "
            f"{len(parameters)}; write them as ({name!r}, ...)"
        )
    checked = [_parameter(function, name, p) for p in parameters]
    if size < 2:
        return np.ones(size)
    return shape(size + 1, *checked)[:size]


def _parameter(function: str, name: str, given: Any) -> Any:
    """A parameter of a window: a number, numbers for `_general_cosine`, None for the middle.

    Raises:
        TypeError: it is none of these.
    """
    if name == "general_cosine":
        if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
            raise TypeError(
                f"{function}: the window {name!r} takes a sequence of numbers, got {given!r:.80}"
            )
        return [_number(function, name, c) for c in given]
    if given is None and name in ("exponential", "poisson"):
        return None
    return _number(function, name, given)


def _number(function: str, name: str, given: Any) -> float:
    try:
        aval = aval_of(array_like(given, function, "window"))
    except TypeError:
        aval = None
    if aval is None or aval.shape or dtypes.kind_of(aval.dtype) not in ("b", "i", "u", "f"):
        raise TypeError(
            f"{function}: a parameter of the window {name!r} must be a real number, got "
            f"{given!r:.80}"
        )
    return float(given)


def _cosines(count: int, *coefficients: float) -> Points:
    """A sum of cosines of multiples of a full turn, in the middle of which all are 1."""
    turn = np.linspace(-math.pi, math.pi, count)
    total = np.zeros(count)
    for k, coefficient in enumerate(coefficients):
        total += coefficient * np.cos(k * turn)
    return total


def _cosine_sum(*coefficients: float) -> Callable[[int], Points]:
    return lambda count: _cosines(count, *coefficients)


def _general_cosine(count: int, coefficients: Any) -> Points:
    return _cosines(count, *coefficients)


def _general_hamming(count: int, alpha: float) -> Points:
    return _cosines(count, alpha, 1 - alpha)


def _places(count: int) -> Points:
    """Numbers of points from the middle."""
    return np.arange(count) - (count - 1) / 2


def _triangle(count: int) -> Points:
    return 1 - abs(_places(count)) / ((count + count % 2) / 2)


def _bartlett(count: int) -> Points:
    return 1 - abs(np.linspace(-1, 1, count))


def _bartlett_hann(count: int) -> Points:
    off = abs(np.linspace(-0.5, 0.5, count))
    return 0.62 - 0.48 * off + 0.38 * np.cos(2 * math.pi * off)


def _bohman(count: int) -> Points:
    off = abs(np.linspace(-1, 1, count))
    points = (1 - off) * np.cos(math.pi * off) + np.sin(math.pi * off) / math.pi
    points[[0, -1]] = 0
    return points


def _parzen(count: int) -> Points:
    off = abs(_places(count))
    part = off / (count / 2)
    return np.where(off > (count - 1) / 4, 2 * (1 - part) ** 3, 1 - 6 * part**2 + 6 * part**3)


def _cosine(count: int) -> Points:
    return np.sin(math.pi / count * (np.arange(count) + 0.5))


def _sinc(count: int) -> Points:
    return np.sinc(np.linspace(-1, 1, count))


def _exponential(count: int, center: Any = None, tau: float = 1.0) -> Points:
    middle = (count - 1) / 2 if center is None else center
    return np.exp(-abs(np.arange(count) - middle) / tau)


def _tukey(count: int, alpha: float = 0.5) -> Points:
    if alpha <= 0:
        return np.ones(count)
    # From either end as far as the tapers go; where alpha is 1 they meet.
    near = np.minimum(np.arange(count), np.arange(count)[::-1]) / (min(alpha, 1) * (count - 1) / 2)
    return (1 - np.cos(math.pi * np.minimum(near, 1))) / 2


def _gaussian(count: int, std: float) -> Points:
    return np.exp(-0.5 * (_places(count) / std) ** 2)


def _general_gaussian(count: int, p: float, sig: float) -> Points:
    return np.exp(-0.5 * abs(_places(count) / sig) ** (2 * p))


def _kaiser(count: int, beta: float) -> Points:
    return np.kaiser(count, beta)


_HANN = _cosine_sum(0.5, 0.5)
_HAMMING = _cosine_sum(0.54, 0.46)
_BLACKMAN = _cosine_sum(0.42, 0.5, 0.08)
_NUTTALL = _cosine_sum(0.3635819, 0.4891775, 0.1365995, 0.0106411)
_HARRIS = _cosine_sum(0.35875, 0.48829, 0.14128, 0.01168)
_FLAT = _cosine_sum(0.21557895, 0.41663158, 0.277263158, 0.083578947, 0.006947368)

_SHAPES: tuple[tuple[str, Callable[..., Points], int, int], ...] = (
    ("boxcar box ones rect rectangular", np.ones, 0, 0),
    ("hann han", _HANN, 0, 0),
    ("hamming hamm ham", _HAMMING, 0, 0),
    ("blackman black blk", _BLACKMAN, 0, 0),
    ("blackmanharris blackharr bkh", _HARRIS, 0, 0),
    ("nuttall nutl nut", _NUTTALL, 0, 0),
    ("flattop flat flt", _FLAT, 0, 0),
    ("bartlett bart brt", _bartlett, 0, 0),
    ("barthann brthan bth", _bartlett_hann, 0, 0),
    ("triang triangle tri", _triangle, 0, 0),
    ("bohman bman bmn", _bohman, 0, 0),
    ("parzen parz par", _parzen, 0, 0),
    ("cosine halfcosine", _cosine, 0, 0),
    ("lanczos sinc", _sinc, 0, 0),
    ("exponential poisson", _exponential, 0, 2),
    ("tukey tuk", _tukey, 0, 1),
    ("gaussian gauss gss", _gaussian, 1, 1),
    ("general_gaussian", _general_gaussian, 2, 2),
    ("general_hamming", _general_hamming, 1, 1),
    ("general_cosine", _general_cosine, 1, 1),
    ("kaiser ksr", _kaiser, 1, 1),
)
_NAMES = {
    name: (shape, least, most) for names, shape, least, most in _SHAPES for name in names.split()
}
#: Windows of SciPy whose points one has to pass.
_MISSING = ("chebwin", "cheb", "dpss", "kaiser_bessel_derived", "kbd", "taylor", "taylorwin")
