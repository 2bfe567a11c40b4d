"""lax.fft: what users may pass, longer signals, and the conventions of its derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import lax

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(3, 8))
KINDS = list(lax.FftType)


def spectrum_of(x: Any, kind: lax.FftType) -> Any:
    """An argument of the right dtype: real for RFFT, complex for the others."""
    return x if kind is lax.FftType.RFFT else x + 1j * x[..., ::-1]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_types_are_given_by_member_or_name(kind: lax.FftType) -> None:
    lengths = (14,) if kind is lax.FftType.IRFFT else (8,)
    x = spectrum_of(X, kind)
    want = np.asarray(lax.fft(x, kind, lengths))
    for form in (kind.name, kind.name.lower()):
        assert np.asarray(lax.fft(x, form, lengths)).tolist() == want.tolist()
    for same in (list(lengths), np.array(lengths), (np.int32(lengths[0]),)):
        assert np.asarray(lax.fft(x, kind, same)).tolist() == want.tolist()


@pytest.mark.parametrize(
    ("dtype", "complex_dtype"),
    [
        ("bool", "complex64"),
        ("int8", "complex64"),
        ("uint32", "complex64"),
        ("float16", "complex64"),
        ("bfloat16", "complex64"),
        ("float32", "complex64"),
        ("complex64", "complex64"),
        ("int64", "complex128"),
        ("uint64", "complex128"),
        ("float64", "complex128"),
        ("complex128", "complex128"),
    ],
)
def test_dtypes_become_complex(dtype: str, complex_dtype: str) -> None:
    with dt.enable_x64(True):
        x = lax.full((2, 4), 1, dtype)
        for kind in (lax.FftType.FFT, lax.FftType.IFFT):
            assert lax.fft(x, kind, (4,)).dtype == complex_dtype
        real = np.zeros((), complex_dtype).real.dtype
        assert lax.fft(x, "irfft", (6,)).dtype == real
        if dtype in ("float16", "bfloat16", "complex64", "complex128"):
            with pytest.raises(ValueError, match=rf"fft: RFFT takes real .*, got {dtype}"):
                lax.fft(x, "rfft", (4,))
        else:
            assert lax.fft(x, "rfft", (4,)).dtype == complex_dtype


def test_scalars_of_python() -> None:
    assert lax.fft(2.0, "fft", ()).item() == 2
    with pytest.raises(ValueError, match="more fft_lengths"):
        lax.fft(2.0, "fft", (1,))


@pytest.mark.parametrize(
    ("kind", "lengths", "error", "message"),
    [
        ("dct", (8,), ValueError, "there is no fft_type 'dct'; the types are 'FFT', 'IFFT'"),
        (2, (8,), TypeError, "fft_type must be a lax.FftType or one of"),
        (None, (8,), TypeError, "fft_type must be a lax.FftType or one of"),
        ("fft", 8, TypeError, "fft_lengths must be a sequence of integers, got 8"),
        ("fft", (8.0,), TypeError, "fft_lengths must be a sequence of integers"),
        ("fft", (7,), ValueError, r"last dimensions have the sizes \(7,\), got one of shape"),
        ("irfft", (16,), ValueError, r"have the sizes \(9,\), got one of shape \(3, 8\)"),
        ("fft", (1, 3, 8), ValueError, "more fft_lengths"),
        ("rfft", (), ValueError, "one to three fft_lengths"),
        ("irfft", (-15,), ValueError, "must not be negative"),
    ],
)
def test_bad_arguments(kind: Any, lengths: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        lax.fft(X, kind, lengths)


def test_lists_are_refused() -> None:
    with pytest.raises(TypeError, match="argument x to be an array or a scalar, got list"):
        lax.fft([1.0, 2.0], "fft", (2,))


def test_traced_lengths_are_refused() -> None:
    with pytest.raises(TypeError, match="traced"):
        dt.jit(lambda n: lax.fft(X, "fft", (n,)))(8)


def test_jaxpr() -> None:
    shown = str(dt.make_jaxpr(lambda x: lax.fft(x, "rfft", (8,)))(X.astype(np.float32)))
    assert "b:c64[3,5] = fft[fft_lengths=(8,) fft_type=2] a" in shown


#: Powers of two, composites, primes and their multiples; for some of them the CPU computes real
#: transforms by complex ones.
LONG = (64, 100, 1021, 2042, 5040, 10007, 16384, 20014, 2**18, 2**18 + 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (2,), (40,)], ids=str)
def test_long_signals(dtype: str, shape: tuple[int, ...]) -> None:
    """All kinds agree with NumPy to a few units in the last place of the largest coefficient."""
    with dt.enable_x64(True):
        for n in LONG if len(shape) == 0 else LONG[:-2:3]:
            real = RANDOM.normal(size=(*shape, n)).astype(dtype)
            wide = real.astype(np.float64)
            half = np.fft.rfft(wide)
            eps = float(np.finfo(dtype).eps)
            complex_dtype = np.result_type(dtype, np.complex64)
            found = {
                "fft": (lax.fft(real, "fft", (n,)), np.fft.fft(wide)),
                "ifft": (lax.fft(real, "ifft", (n,)), np.fft.ifft(wide)),
                "rfft": (lax.fft(real, "rfft", (n,)), half),
                "irfft": (lax.fft(half.astype(complex_dtype), "irfft", (n,)), wide),
            }
            for kind, (got, want) in found.items():
                error = np.abs(np.asarray(got) - want).max() / np.abs(want).max()
                assert error < 8 * eps, (kind, n, shape)


@pytest.mark.parametrize("n", [1, 2, 5, 6, 1021, 10007, 16384])
def test_coefficients_that_are_their_own_conjugates_are_real(n: int) -> None:
    """Their imaginary parts are exactly zero, and do not matter to the signal made of them."""
    half = lax.fft(RANDOM.normal(size=n).astype(np.float32), "rfft", (n,))
    own = np.asarray(half)[[0, -1] if n % 2 == 0 else [0]]
    assert not own.imag.any()
    other = np.array(half)
    other[0] += 3j
    if n % 2 == 0:
        other[-1] -= 2j
    want = np.asarray(lax.fft(half, "irfft", (n,)))
    np.testing.assert_allclose(np.asarray(lax.fft(other, "irfft", (n,))), want, atol=1e-5)


def test_leading_dimensions_of_one_long_signal() -> None:
    x = RANDOM.normal(size=(1, 1, 8192))
    half = lax.fft(x, "rfft", (8192,))
    np.testing.assert_allclose(np.asarray(half), np.fft.rfft(x), atol=1e-3)
    np.testing.assert_allclose(np.asarray(lax.fft(half, "irfft", (8192,))), x, atol=1e-5)


def test_gradients_follow_the_convention_of_complex_numbers() -> None:
    """The sum of |y|^2 is n times that of |x|^2 (Parseval), so that its gradient is
    2 n conj(x)."""
    x = spectrum_of(X, lax.FftType.FFT).astype(np.complex64)

    def energy(x: Any) -> Any:
        y = lax.fft(x, "fft", (8,))
        return lax.reduce_sum(lax.real(lax.mul(y, lax.conj(y))), (0, 1))

    np.testing.assert_allclose(np.asarray(dt.grad(energy)(x)), 2 * 8 * np.conj(x), rtol=1e-5)
