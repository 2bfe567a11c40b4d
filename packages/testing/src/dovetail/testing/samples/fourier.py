"""Samples of the discrete Fourier transform."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail._core.ops.contraction.fourier import FftType
from dovetail.testing.sample import COMPLEXES, Sample, across_dtypes
from dovetail.testing.samples.shape import complex_numbers, numbers


def _fft(kind: str, *lengths: int) -> dict[str, Any]:
    return {"fft_type": FftType[kind], "fft_lengths": lengths}


def _complex(*shape: int) -> np.ndarray[Any, Any]:
    return complex_numbers(numbers(*shape), numbers(*shape)[..., ::-1] * 2)


def _sample(x: Any, kind: str, *lengths: int, note: str = "") -> Sample:
    return Sample((x,), _fft(kind, *lengths), linear=(0,), absolute=128, note=note)


#: Odd, even and prime lengths, and the shortest ones.
LENGTHS = (1, 2, 3, 4, 12, 13)

SAMPLES: dict[str, list[Sample]] = {
    "fft": [
        *across_dtypes(_sample(_complex(2, 5), "FFT", 5), COMPLEXES),
        *across_dtypes(_sample(_complex(2, 5), "IFFT", 5), COMPLEXES),
        *across_dtypes(_sample(numbers(2, 5), "RFFT", 5), ["float32", "float64"]),
        *across_dtypes(_sample(_complex(2, 3), "IRFFT", 5), COMPLEXES),
        *[_sample(_complex(n), kind, n) for n in LENGTHS for kind in ("FFT", "IFFT")],
        *[_sample(numbers(n), "RFFT", n) for n in LENGTHS],
        *[_sample(_complex(n // 2 + 1), "IRFFT", n) for n in LENGTHS],
        _sample(_complex(2, 3, 4), "FFT", 3, 4),
        _sample(_complex(2, 3, 4), "IFFT", 2, 3, 4),
        _sample(numbers(2, 3, 4), "RFFT", 2, 3, 4),
        _sample(numbers(4, 3), "RFFT", 4, 3),
        _sample(_complex(2, 3, 4), "IRFFT", 2, 3, 7),
        _sample(_complex(4, 3), "IRFFT", 4, 4),
        _sample(_complex(2, 3), "FFT", note="no lengths"),
        _sample(_complex(0, 3), "FFT", 3, note="empty"),
        _sample(numbers(2, 0, 3), "RFFT", 3, note="empty"),
        _sample(_complex(0, 2), "IRFFT", 3, note="empty"),
        _sample(_complex(2, 0), "IFFT", 0, note="of length 0"),
        _sample(numbers(2, 0), "RFFT", 0, note="of length 0"),
        _sample(_complex(2, 1), "IRFFT", 0, note="of length 0"),
        _sample(_complex(0, 2), "IRFFT", 0, 3, note="of length 0"),
        *[
            Sample((x,), _fft(kind, 4), raises=ValueError, note="dtype")
            for kind, x in (
                *[("FFT", numbers(4, dtype=t)) for t in ("int32", "float16", "float32")],
                *[("RFFT", numbers(4, dtype=t)) for t in ("int32", "float16")],
                ("RFFT", _complex(4)),
                ("IRFFT", numbers(3)),
            )
        ],
        Sample((_complex(4),), _fft("FFT", 5), raises=ValueError, note="another size"),
        Sample((numbers(3, 4),), _fft("RFFT", 4, 4), raises=ValueError, note="another size"),
        Sample((_complex(4),), _fft("IRFFT", 8), raises=ValueError, note="another size"),
        Sample((_complex(4),), _fft("FFT", 4, 4), raises=ValueError, note="too many"),
        Sample((_complex(1, 1, 1, 1),), _fft("FFT", 1, 1, 1, 1), raises=ValueError, note="four"),
        Sample((numbers(4),), _fft("RFFT"), raises=ValueError, note="no lengths"),
        Sample((_complex(1),), _fft("IRFFT", -1), raises=ValueError, note="negative"),
    ],
}
