"""Convolutions, trends and spectra against SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.signal

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.scipy import signal
from dovetail.scipy.signal.convolution import fast_length
from dovetail.scipy.signal.windows import window_of

pytestmark = pytest.mark.tables

RNG = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def near(actual: Any, expected: Any, tolerance: float = 2e-6) -> None:
    actual = np.asarray(actual)
    assert actual.shape == expected.shape
    scale = max(abs(expected).max(), 1) if expected.size else 1
    np.testing.assert_allclose(actual / scale, expected / scale, atol=tolerance, rtol=0)


MATRICES = [
    (normal(5, 6), normal(2, 3)),
    (normal(2, 3), normal(5, 6)),
    (normal(5, 6), normal(3, 2) + 1j * normal(3, 2)),
]


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions(mode: str) -> None:
    vector = normal(7), normal(4) + 1j * normal(4)
    for x, y in (vector[::-1], (normal(3, 3, 4), normal(2, 2, 4))):
        for name in ("convolve", "correlate"):
            expected = getattr(scipy.signal, name)(x, y, mode)
            for method in ("direct", "fft"):
                near(getattr(signal, name)(x, y, mode, method), expected)
    near(
        signal.fftconvolve(MATRICES[0][0], MATRICES[0][1][:1], mode, axes=[1]),
        np.stack([np.convolve(r, MATRICES[0][1][0], mode) for r in MATRICES[0][0]]),
    )


@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
def test_convolutions_of_matrices(boundary: str) -> None:
    cases = [("convolve2d", "full", 1.5), ("correlate2d", "same", 1.5)]
    if boundary == "fill":
        cases += [
            ("convolve2d", "same", 0),
            ("correlate2d", "same", 0),
            ("correlate2d", "valid", 0),
        ]
    for x, y in (*MATRICES[1:], MATRICES[2][::-1]):
        for name, mode, value in cases:
            expected = getattr(scipy.signal, name)(x, y, mode, boundary, value)
            near(getattr(signal, name)(x, y, mode, boundary, value), expected)


def test_long_convolutions_are_transformed() -> None:
    x, y = normal(20000), normal(3000)
    program = str(dt.make_jaxpr(signal.convolve)(x, y))
    assert "fft" in program
    assert "conv_general" not in program
    assert "fft" not in str(dt.make_jaxpr(signal.convolve)(x[:200], y[:100]))
    near(signal.convolve(x, y), scipy.signal.fftconvolve(x, y))
    assert [fast_length(n) for n in (1, 7, 11, 13, 1021, 1025)] == [1, 8, 12, 15, 1024, 1080]


def test_dtypes_of_convolutions() -> None:
    ones = np.ones(3)
    for method in ("direct", "fft"):
        for given, dtype in (("int8", "float32"), ("float16", "float16"), ("bool", "float32")):
            result = signal.convolve(ones.astype(given), ones.astype(given), method=method)
            assert result.dtype == dtype
            np.testing.assert_allclose(np.asarray(result), [1, 2, 3, 2, 1], rtol=1e-3)
    x, y = normal(5), normal(4)
    slope = dt.grad(lambda y: (signal.correlate(x, y) ** 2).sum())(y)
    full = scipy.signal.correlate(x, y)
    near(slope, 2 * np.array([(full[3 - k : 8 - k] * x).sum() for k in range(4)]), 1e-6)
    batch = dt.vmap(signal.convolve)(np.stack([x, 2 * x]), np.stack([y, y]))
    near(batch, np.stack([np.convolve(x, y), 2 * np.convolve(x, y)]))


def test_detrend() -> None:
    x = normal(6, 7)
    for axis in (0, 1):
        for places in (0, [2, 4], np.array([3])):
            near(signal.detrend(x, axis, bp=places), scipy.signal.detrend(x, axis, bp=places))
    near(signal.detrend(x + 1j, 0, "constant"), scipy.signal.detrend(x + 1j, 0, "constant"))
    steep = signal.detrend(1000 + 10 * np.arange(50))
    assert steep.dtype == jnp.float32
    assert abs(np.asarray(steep)).max() < 1e-3
    assert signal.detrend(jnp.zeros((0, 2)), 0).shape == (0, 2)
    assert signal.detrend(jnp.ones(1)) == 0


def test_windows() -> None:
    names = [
        *("boxcar", "hann", "hamming", "blackman", "blackmanharris", "nuttall", "flattop"),
        *("bartlett", "barthann", "triang", "bohman", "parzen", "cosine", "lanczos"),
        *("exponential", "tukey", 4.5, ("kaiser", 2.0), ("gaussian", 2.5), ("tukey", 0.3)),
        *(("tukey", 0), ("tukey", 1.0), ("exponential", None, 2.0), ("general_hamming", 0.7)),
        *(("general_cosine", [0.4, 0.5, 0.1]), ("general_gaussian", 1.5, 3.0)),
    ]
    for name in names:
        for size in (1, 2, 7, 8):
            expected = scipy.signal.get_window(name, size)
            np.testing.assert_allclose(window_of("x", name, size), expected, atol=1e-15)


SEGMENTS: list[dict[str, Any]] = [
    {"nperseg": 8},
    {"nperseg": 9, "noverlap": 6, "nfft": 16, "fs": 2.0, "detrend": "linear"},
    {"nperseg": 40, "noverlap": 39, "window": ("kaiser", 3.0)},
    {"window": np.hanning(10), "nperseg": None, "return_onesided": False},
]


@pytest.mark.parametrize("arguments", SEGMENTS, ids=str)
def test_spectra(arguments: dict[str, Any]) -> None:
    x = RNG.normal(size=(2, 50))
    y = RNG.normal(size=(2, 41))
    with dt.enable_x64(True):
        case = SEGMENTS.index(arguments)
        boundary = ("zeros", "even", "odd", None)[case]
        pairs = [
            (signal.stft, scipy.signal.stft, (x,), {"boundary": boundary}),
            (signal.stft, scipy.signal.stft, (x.T,), {"axis": 0, "padded": False}),
            (signal.welch, scipy.signal.welch, (x,), {"average": "median"}),
            (signal.csd, scipy.signal.csd, (x, y), {"scaling": "spectrum"}),
        ]
        if case == 0:
            pairs += [
                (signal.welch, scipy.signal.welch, (x[0] + 1j * x[1],), {}),
                (signal.csd, scipy.signal.csd, (x, y), {"average": "median"}),
            ]
        for ours, theirs, signals, more in pairs:
            results = ours(*signals, **arguments, **more)
            for actual, expected in zip(
                results, theirs(*signals, **arguments, **more), strict=True
            ):
                near(actual, expected, 1e-13)


@pytest.mark.filterwarnings("ignore:NOLA")
def test_istft() -> None:
    with dt.enable_x64(True):
        for size, overlap in ((8, 4), (7, 5), (40, 39)):
            rows = size // 2 + 1
            z = RNG.normal(size=(rows, 6, 2)) + 1j * RNG.normal(size=(rows, 6, 2))
            arguments: dict[str, Any] = {"nperseg": size, "noverlap": overlap, "boundary": False}
            arguments |= {"time_axis": 1, "freq_axis": 0}
            times, x = signal.istft(z, 4, **arguments)
            near(x, scipy.signal.istft(z, 4, **arguments)[1], 1e-13)
            np.testing.assert_array_equal(times, np.arange(x.shape[0]) / 4)
        z = RNG.normal(size=(8, 5)) + 1j * RNG.normal(size=(8, 5))
        near(
            signal.istft(z, input_onesided=False)[1],
            scipy.signal.istft(z, input_onesided=False)[1],
            1e-13,
        )
    x = normal(3, 60)
    back = signal.istft(signal.stft(x, nperseg=16, noverlap=12)[2], noverlap=12)[1]
    near(back[:, :60], x)


def test_spectra_in_transformations() -> None:
    x = normal(2, 64)

    def power(x: Any) -> Any:
        return signal.welch(x, nperseg=16)[1]

    near(dt.jit(dt.vmap(power))(x), np.asarray(power(x)))
    # The power of a signal is a quadratic form: its slope along the signal is twice the power.
    _, slope = dt.jvp(lambda x: power(x).sum(), (x[0],), (x[0],))
    np.testing.assert_allclose(slope, 2 * np.asarray(power(x[0])).sum(), rtol=1e-5)
    half = signal.welch(x[0].astype(np.float16), nperseg=16)[1]
    assert half.dtype == jnp.float32
    empty = signal.stft(jnp.zeros((2, 0)))
    assert empty[2].dtype == jnp.complex64
    assert empty[2].shape == (2, 0)


def test_errors() -> None:
    x = jnp.ones(8)
    for call, message in (
        (lambda: signal.convolve(x, x[None]), "one rank"),
        (lambda: signal.convolve(x, x[:0]), "one element at least"),
        (lambda: signal.convolve(x, x, "some"), "mode must be"),
        (lambda: signal.correlate(x, x, method="slow"), "method must be"),
        (lambda: signal.convolve(jnp.ones((2, 3)), jnp.ones((3, 2)), "valid"), "at least as large"),
        (lambda: signal.convolve2d(x, x), "needs matrices"),
        (lambda: signal.convolve2d(x[None], x[None], boundary="edge"), "boundary must be"),
        (lambda: signal.fftconvolve(jnp.ones((2, 3)), jnp.ones((3, 3)), axes=1), "not in axes"),
        (lambda: signal.detrend(x, type="cubic"), "type must be"),
        (lambda: signal.detrend(x, bp=8), "bp must be places from 0 to 7"),
        (lambda: signal.stft(x, boundary="foo"), "boundary must be"),
        (lambda: signal.stft(x, window="foo"), "unknown window 'foo'"),
        (lambda: signal.stft(x, window="kaiser"), "'kaiser' has 1 parameters, got 0"),
        (lambda: signal.stft(x, window=np.ones(4)), "nperseg = 256 points"),
        (lambda: signal.stft(x, nperseg=4, noverlap=4), "noverlap must"),
        (lambda: signal.stft(x, nperseg=4, nfft=3), "nfft must be at least"),
        (lambda: signal.welch(x, average="mode"), "average must be"),
        (lambda: signal.welch(x, scaling="none"), "scaling must be"),
        (lambda: signal.csd(jnp.ones((2, 4)), jnp.ones((3, 4))), "csd"),
        (lambda: signal.welch(x, nfft=2**62), "nfft must be less"),
        (lambda: signal.welch(x, detrend=lambda x: 3), "the shape of the segments"),
        (lambda: signal.istft(x), "two dimensions at least"),
        (lambda: signal.istft(jnp.ones((3, 3)), time_axis=0, freq_axis=0), "must differ"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    for window in (("tukey", "x"), ("kaiser", 1j), ("general_cosine", 3), ("gaussian", x)):
        with pytest.raises(TypeError, match=window[0]):
            signal.stft(x, window=window)
    with pytest.raises(TypeError, match="axes to be an integer"):
        signal.fftconvolve(x, x, axes=0.5)  # type: ignore[arg-type]
    with pytest.raises(NotImplementedError, match="'dpss'"):
        signal.stft(x, window=("dpss", 2))
    with pytest.raises(NotImplementedError, match="overwrite_data"):
        signal.detrend(x, overwrite_data=True)  # type: ignore[arg-type]
