"""Fourier transforms of segments of signals, and the densities that they estimate.

P. D. Welch, The use of the fast Fourier transform for the estimation of power spectra, IEEE Trans.
Audio Electroacoust. 15 (1967); for the sum of windows that undoes it, D. W. Griffin and J. S. Lim,
Signal estimation from modified short-time Fourier transform, IEEE Trans. ASSP 32 (1984).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import dovetail.numpy as jnp
from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    broadcast_result,
    canonical_axis,
    inexact_dtype,
    integer,
)
from dovetail.extend.avals import aval_of
from dovetail.numpy.averages import computed_in, real_dtype
from dovetail.numpy.compiled import compiled_with
from dovetail.scipy.signal.segments import overlapped, segmented
from dovetail.scipy.signal.trends import without_trend
from dovetail.scipy.signal.windows import length_of, window_of
from dovetail.typing import Array, ArrayLike

Window = str | float | tuple[Any, ...] | ArrayLike
Detrend = str | bool | Callable[[Array], Array]

#: How numpy.pad continues a signal.
_BOUNDARIES = {"even": "reflect", "odd": "reflect", "constant": "edge", "zeros": "constant"}


class _Plan(NamedTuple):
    """What is known of a transform of segments before the signals are."""

    size: int
    step: int
    points: int
    detrend: Any
    one_sided: bool
    density: bool
    boundary: str | None
    padded: bool


def stft(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = 256,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = False,
    return_onesided: bool = True,
    boundary: str | None = "zeros",
    padded: bool = True,
    axis: int = -1,
) -> tuple[Array, Array, Array]:
    """Fourier transforms of segments of a signal that overlap.

    Args:
        x: array of any numeric dtype.
        fs: number of points in a unit of time.
        window: factors of the points of a segment: an array, or a name: "boxcar", "hann",
            "hamming", "blackman", "blackmanharris", "nuttall", "flattop", "bartlett", "barthann",
            "triang", "bohman", "parzen", "cosine", "lanczos", "exponential", "tukey", or a tuple
            such as ``("kaiser", beta)``, ``("gaussian", std)``, ``("tukey", alpha)``; a number is
            the beta of a Kaiser window.
        nperseg: number of points in a segment, at most those of the signal. If None, those of
            `window`, or 256.
        noverlap: how many of them are in the next one as well; half of them if None.
        nfft: number of points to transform, with zeros after the segment; `nperseg` if None.
        detrend: "linear" or "constant" as in `detrend`, a function of segments in the last
            dimension, or False.
        return_onesided: whether to leave out negative frequencies of real signals.
        boundary: what is put before and after the signal, half a segment each: "zeros",
            "constant" for its last value, "even" or "odd" for its mirror image, or None for
            nothing.
        padded: whether zeros complete the last segment.
        axis: dimension of time.

    Returns:
        Frequencies; times, the middles of segments; and transforms, where frequencies stand in the
        dimension of time and segments in the last one.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: sizes do not fit, or there is no such window or boundary.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.signal import stft
        >>> f, t, z = stft(jnp.ones(8), nperseg=4)
        >>> print(f, t, z.shape)
        [0.   0.25 0.5 ] [0. 2. 4. 6. 8.] (3, 5)
    """
    name = "scipy.signal.stft"
    if boundary is not None and not (isinstance(boundary, str) and boundary in _BOUNDARIES):
        raise ValueError(
            f"{name}: boundary must be 'even', 'odd', 'constant', 'zeros' or None, got {boundary!r}"
        )
    aval = _signal(name, x, "x")
    dimension = canonical_axis(name, axis, aval.ndim)
    if not aval.size:
        return _nothing(aval, aval.shape, (None, None))
    points, plan = _plan(
        name, window, aval.shape[dimension], nperseg, noverlap, nfft, detrend, return_onesided
    )
    plan = plan._replace(boundary=boundary, padded=bool(padded))
    return _stft(x, _rate(name, fs), points, dimension, plan)


def csd(
    x: ArrayLike,
    y: ArrayLike | None,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The cross spectral density of two signals, by Welch's method.

    Args:
        x: array of any numeric dtype; it is conjugated.
        y: array whose other dimensions broadcast with those of `x`; zeros complete the shorter
            signal. `x` if None.
        fs: number of points in a unit of time.
        window: as in `stft`.
        nperseg: number of points in a segment, at most those of the signal. If None, those of
            `window`, or 256.
        noverlap: how many of them are in the next one as well; half of them if None.
        nfft: number of points to transform, with zeros after the segment; `nperseg` if None.
        detrend: "linear" or "constant" as in `detrend`, a function of segments in the last
            dimension, or False.
        return_onesided: whether to leave out negative frequencies of real signals, and to count
            each positive one twice.
        scaling: "density" for a density, "spectrum" for squares of amplitudes.
        axis: dimension of time.
        average: "mean", or "median" (of both parts, without bias), of the segments.

    Returns:
        Frequencies, and densities, where frequencies stand in the dimension of time.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: sizes do not fit, there is no such window, or `scaling` or `average` is none of
            these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.signal import csd
        >>> f, density = csd(jnp.array([1., -1., 1., -1.]), None, window="boxcar")
        >>> print(f, density)
        [0.   0.25 0.5 ] [0. 0. 4.]
    """
    return _density("csd", x, y, fs, window, nperseg, noverlap, nfft, detrend, return_onesided,
                    scaling, axis, average)  # fmt: skip


def welch(
    x: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    detrend: Detrend = "constant",
    return_onesided: bool = True,
    scaling: str = "density",
    axis: int = -1,
    average: str = "mean",
) -> tuple[Array, Array]:
    """The power spectral density of a signal, by Welch's method.

    Args:
        x: array of any numeric dtype.
        fs: number of points in a unit of time.
        window: as in `stft`.
        nperseg: number of points in a segment, at most those of the signal. If None, those of
            `window`, or 256.
        noverlap: how many of them are in the next one as well; half of them if None.
        nfft: number of points to transform, with zeros after the segment; `nperseg` if None.
        detrend: "linear" or "constant" as in `detrend`, a function of segments in the last
            dimension, or False.
        return_onesided: whether to leave out negative frequencies of real signals, and to count
            each positive one twice.
        scaling: "density" for a density, "spectrum" for squares of amplitudes.
        axis: dimension of time.
        average: "mean", or "median" (without bias), of the segments.

    Returns:
        Frequencies, and densities, where frequencies stand in the dimension of time.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: sizes do not fit, there is no such window, or `scaling` or `average` is none of
            these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.signal import welch
        >>> f, density = welch(jnp.array([1., -1., 1., -1.]), window="boxcar", scaling="spectrum")
        >>> print(f, density)
        [0.   0.25 0.5 ] [0. 0. 1.]
    """
    return _density("welch", x, None, fs, window, nperseg, noverlap, nfft, detrend,
                    return_onesided, scaling, axis, average)  # fmt: skip


def istft(
    Zxx: ArrayLike,
    fs: ArrayLike = 1.0,
    window: Window = "hann",
    nperseg: int | None = None,
    noverlap: int | None = None,
    nfft: int | None = None,
    input_onesided: bool = True,
    boundary: bool = True,
    time_axis: int = -1,
    freq_axis: int = -2,
) -> tuple[Array, Array]:
    """The signal of which `stft` made transforms of segments.

    Of transforms of no signal it is the nearest one, in the sense of least squares.

    Args:
        Zxx: array of two dimensions at least.
        fs: number of points in a unit of time.
        window: as in `stft`.
        nperseg: number of points in a segment; if None, as many as the frequencies say, an even
            number if they are one-sided.
        noverlap: how many of them are in the next one as well; half of them if None.
        nfft: number of points that were transformed; as many as the frequencies say if None.
        input_onesided: whether there are no negative frequencies.
        boundary: whether half a segment was put before and after the signal.
        time_axis: dimension of segments.
        freq_axis: dimension of frequencies.

    Returns:
        Times and the signal, real if `input_onesided`, in the last of the dimensions that remain
        or, where that is an earlier one, in that of segments.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: sizes do not fit, or there is no such window.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.signal import istft, stft
        >>> t, x = istft(stft(jnp.array([1., 2., 4., 3.]), nperseg=2)[2])
        >>> print(t, x)
        [0. 1. 2. 3.] [1. 2. 4. 3.]
    """
    name = "scipy.signal.istft"
    aval = _signal(name, Zxx, "Zxx")
    if aval.ndim < 2:
        raise ValueError(f"{name}: Zxx must have two dimensions at least, got {aval.shape}")
    time = canonical_axis(name, time_axis, aval.ndim, "time_axis")
    frequency = canonical_axis(name, freq_axis, aval.ndim, "freq_axis")
    if time == frequency:
        raise ValueError(f"{name}: time_axis and freq_axis must differ, got {time} for both")
    if not aval.size:
        raise ShapeError(f"{name} needs a transform with elements, got shape {aval.shape}")
    rows = aval.shape[frequency]
    usual = 2 * (rows - 1) if input_onesided else rows
    size = usual if nperseg is None else integer(name, "nperseg", nperseg)
    if nfft is None:
        points = size if input_onesided and size == usual + 1 else usual
    else:
        points = _points(name, nfft)
    if not 1 <= size <= points:
        raise ValueError(f"{name}: nperseg must be from 1 to {points}, those of nfft, got {size}")
    step = _step(name, size, noverlap)
    weights = window_of(name, window, size)
    onesided, trimmed = bool(input_onesided), bool(boundary)
    rate = _rate(name, fs)
    return _istft(Zxx, rate, weights, time, frequency, size, step, points, onesided, trimmed)


# ------------------------------------------------------------------------------------------ checks


def _signal(name: str, x: Any, argument: str) -> Any:
    aval = aval_of(array_like(x, name, argument))
    if dtypes.kind_of(aval.dtype) is None:
        raise TypeError(f"{name} does not accept the dtype {aval.dtype}")
    return aval


def _rate(name: str, fs: Any) -> Any:
    aval = aval_of(array_like(fs, name, "fs"))
    if aval.shape or dtypes.kind_of(aval.dtype) not in ("b", "i", "u", "f"):
        raise ShapeError(f"{name}: fs must be a real number, got {aval.dtype}{list(aval.shape)}")
    return fs


def _points(name: str, nfft: Any) -> int:
    points = integer(name, "nfft", nfft)
    if points >= 2**31:
        raise ValueError(f"{name}: nfft must be less than 2**31, got {points}")
    return points


def _step(name: str, size: int, noverlap: Any) -> int:
    shared = size // 2 if noverlap is None else integer(name, "noverlap", noverlap)
    if not 0 <= shared < size:
        raise ValueError(
            f"{name}: noverlap must not be negative and less than nperseg = {size}, got {shared}"
        )
    return size - shared


def _plan(
    name: str,
    window: Any,
    length: int,
    nperseg: Any,
    noverlap: Any,
    nfft: Any,
    detrend: Any,
    one_sided: Any,
) -> tuple[Any, _Plan]:
    """The points of the window, and the plan."""
    size = None if nperseg is None else integer(name, "nperseg", nperseg)
    if size is not None and size < 1:
        raise ValueError(f"{name}: nperseg must be positive, got {size}")
    given = length_of(name, window)
    if given is None:
        size = min(256 if size is None else size, length)
    elif given > length:
        raise ShapeError(f"{name}: the window has {given} points, and the signal {length}")
    elif size is None:
        size = given
    points = window_of(name, window, size)
    count = size if nfft is None else _points(name, nfft)
    if count < size:
        raise ValueError(f"{name}: nfft must be at least nperseg = {size}, got {count}")
    if isinstance(detrend, str):
        if detrend not in ("linear", "constant"):
            raise ValueError(f"{name}: detrend must be 'linear' or 'constant', got {detrend!r}")
    elif detrend is not False and not callable(detrend):
        raise TypeError(f"{name}: detrend must be a name, a function or False, got {detrend!r}")
    step = _step(name, size, noverlap)
    return points, _Plan(size, step, count, detrend, bool(one_sided), False, None, False)


def _density(function: str, x: Any, y: Any, fs: Any, window: Any, nperseg: Any, noverlap: Any,
             nfft: Any, detrend: Any, one_sided: Any, scaling: Any, axis: Any,
             average: Any) -> Any:  # fmt: skip
    name = f"scipy.signal.{function}"
    if not isinstance(scaling, str) or scaling not in ("density", "spectrum"):
        raise ValueError(f"{name}: scaling must be 'density' or 'spectrum', got {scaling!r}")
    if not isinstance(average, str) or average not in ("mean", "median"):
        raise ValueError(f"{name}: average must be 'mean' or 'median', got {average!r}")
    first = _signal(name, x, "x")
    second = first if y is None else _signal(name, y, "y")
    dimension = canonical_axis(name, axis, first.ndim)
    length = first.shape[dimension]
    shape = first.shape
    if y is not None:
        if second.ndim != first.ndim:
            raise ShapeError(
                f"{name} needs signals of one rank, got shapes {first.shape} and {second.shape}"
            )
        others = [
            tuple(n for d, n in enumerate(a.shape) if d != dimension) for a in (first, second)
        ]
        outer = broadcast_result(name, others, explicit=True)
        length = max(length, second.shape[dimension])
        shape = (*outer[:dimension], min(length, second.shape[dimension]), *outer[dimension:])
    if not first.size or not second.size:
        return _nothing(first, shape, (None,), y is None)
    points, plan = _plan(name, window, length, nperseg, noverlap, nfft, detrend, one_sided)
    plan = plan._replace(density=scaling == "density")
    return _cross(x, y, _rate(name, fs), points, dimension, plan, average, length)


def _nothing(aval: Any, shape: Any, kinds: tuple[Any, ...], is_power: bool = False) -> Any:
    """Results without elements."""
    real = real_dtype(computed_in(inexact_dtype(aval.dtype)))
    values = real if is_power else np.result_type(real, np.complex64)
    empty = tuple(0 if not all(shape) and n else n for n in shape) if all(shape) else shape
    return (*(jnp.zeros(empty, real) for _ in kinds), jnp.zeros(empty, values))


# -------------------------------------------------------------------------------------- transforms


def _transforms(x: Any, points: Any, plan: _Plan) -> Any:
    """Transforms of segments of the last dimension: (..., segments, frequencies)."""
    half = plan.size // 2
    if plan.boundary is not None and half:
        widths = [*[(0, 0)] * (x.ndim - 1), (half, half)]
        more = {"reflect_type": "odd"} if plan.boundary == "odd" else {}
        x = jnp.pad(x, widths, mode=_BOUNDARIES[plan.boundary], **more)
    if plan.padded:
        rest = -(x.shape[-1] - plan.size) % plan.step % plan.size
        x = jnp.pad(x, [*[(0, 0)] * (x.ndim - 1), (0, rest)])
    rows = segmented(x, plan.size, plan.step)
    if callable(plan.detrend):
        shape, rows = rows.shape, plan.detrend(rows)
        aval = aval_of(array_like(rows, "scipy.signal", "detrend(segments)"))
        if aval.shape != shape or dtypes.kind_of(aval.dtype) is None:
            raise ShapeError(
                "scipy.signal: the function detrend must return numbers in the shape of the "
                f"segments, {shape}, got {aval.dtype} of the shape {aval.shape}"
            )
        rows = jnp.asarray(rows).astype(inexact_dtype(aval.dtype))
    elif plan.detrend:
        places = None if plan.detrend == "constant" else (0, plan.size)
        rows = without_trend(rows, rows.ndim - 1, places)
    rows = rows * points.astype(real_dtype(rows.dtype))
    if plan.one_sided and dtypes.kind_of(rows.dtype) != "c":
        return jnp.fft.rfft(rows, plan.points)
    return jnp.fft.fft(rows, plan.points)


def _frequencies(plan: _Plan, rate: Any, one_sided: bool, real: Any) -> Any:
    count = plan.points
    steps = np.arange(count // 2 + 1) if one_sided else np.fft.fftfreq(count, 1 / count)
    return jnp.asarray(steps / count, real) * jnp.asarray(rate).astype(real)


def _prepared(x: Any, axis: int) -> Any:
    x = jnp.asarray(x)
    return jnp.moveaxis(x.astype(computed_in(inexact_dtype(x.dtype))), axis, -1)


@compiled_with("axis", "plan")
def _stft(x: Any, rate: Any, points: Any, axis: Any, plan: Any) -> Any:
    x = _prepared(x, axis)
    real = real_dtype(x.dtype)
    one_sided = plan.one_sided and dtypes.kind_of(x.dtype) != "c"
    points = jnp.asarray(points).astype(real)
    z = _transforms(x, points, plan)
    z = z / abs(points.sum()).astype(z.dtype)
    z = jnp.moveaxis(jnp.moveaxis(z, -2, 0), -1, axis + 1)
    z = jnp.moveaxis(z, 0, -1)
    first = 0 if plan.boundary is not None else plan.size / 2
    times = jnp.asarray(np.arange(z.shape[-1]) * plan.step + first, real)
    rate = jnp.asarray(rate).astype(real)
    return _frequencies(plan, rate, one_sided, real), times / rate, z


@compiled_with("axis", "plan", "average", "length")
def _cross(
    x: Any, y: Any, rate: Any, points: Any, axis: Any, plan: Any, average: Any, length: Any
) -> Any:
    signals = [_prepared(v, axis) for v in (x, y) if v is not None]
    dtype = dtypes.result_type(*signals)
    one_sided = plan.one_sided and dtypes.kind_of(dtype) != "c"
    real = real_dtype(dtype)
    points = jnp.asarray(points).astype(real)
    spectra = []
    for v in signals:
        missing = [*[(0, 0)] * (v.ndim - 1), (0, length - v.shape[-1])]
        spectra.append(_transforms(jnp.pad(v.astype(dtype), missing), points, plan))
    rate = jnp.asarray(rate).astype(real)
    scale = 1 / (rate * jnp.square(points).sum()) if plan.density else 1 / points.sum() ** 2
    if len(spectra) == 1:
        power = jnp.square(spectra[0].real) + jnp.square(spectra[0].imag)
    else:
        power = spectra[0].conj() * spectra[1]
    power = _averaged(power, average)
    power = power * scale.astype(power.dtype)
    if one_sided:
        # All frequencies but 0 and the greatest one of an even number stand for two.
        twice = np.full(power.shape[-1], 2.0)
        twice[0] = 1
        if plan.points % 2 == 0:
            twice[-1] = 1
        power = power * jnp.asarray(twice, power.dtype)
    return _frequencies(plan, rate, one_sided, real), jnp.moveaxis(power, -1, axis)


def _averaged(power: Any, average: str) -> Any:
    """The mean or median over segments, which the dimension before the last has."""
    count = power.shape[-2]
    if count == 1:
        return power[..., 0, :]
    if average == "mean":
        return power.mean(-2)
    # The median of `count` exponential numbers has this mean, by B. Allen et al., FINDCHIRP (2005).
    even = 2 * np.arange(1, (count - 1) // 2 + 1)
    bias = 1 + float((1 / (even + 1) - 1 / even).sum())
    if dtypes.kind_of(power.dtype) == "c":
        return lax.complex(jnp.median(power.real, -2), jnp.median(power.imag, -2)) / bias
    return jnp.median(power, -2) / bias


@compiled_with("time", "frequency", "size", "step", "points", "onesided", "trimmed")
def _istft(
    z: Any,
    rate: Any,
    weights: Any,
    time: Any,
    frequency: Any,
    size: Any,
    step: Any,
    points: Any,
    onesided: Any,
    trimmed: Any,
) -> Any:
    z = jnp.asarray(z)
    z = jnp.moveaxis(z.astype(computed_in(inexact_dtype(z.dtype))), (time, frequency), (-2, -1))
    real = real_dtype(z.dtype)
    rows = (jnp.fft.irfft if onesided else jnp.fft.ifft)(z, points)[..., :size]
    weights = jnp.asarray(weights).astype(real)
    x = overlapped(rows * (weights * weights.sum()), step)
    squares = overlapped(jnp.broadcast_to(jnp.square(weights), (rows.shape[-2], size)), step)
    if trimmed:
        half = size // 2
        x, squares = (v[..., half : v.shape[-1] - half] for v in (x, squares))
    # Points that no segment has stay as they are.
    x = x / jnp.where(squares > 1e-10, squares, 1)
    times = jnp.asarray(np.arange(x.shape[-1]), real) / jnp.asarray(rate).astype(real)
    if x.ndim > 1 and time != z.ndim - 1:
        x = jnp.moveaxis(x, -1, time - (frequency < time))
    return times, x
