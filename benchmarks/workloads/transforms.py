"""Fourier transforms."""

from __future__ import annotations

from typing import Any

from scipy import fft

from workloads.base import Workload, complexes, normals


def transform(shown: str, name: str, *shape: int, of_complex: bool = True) -> Workload:
    """A transform that the three have with the same name; SciPy's keeps the dtype."""
    make: Any = complexes if of_complex else normals
    return Workload(
        f"{name} {shown}",
        lambda: (make(*shape),),
        lambda dt, x: getattr(dt.numpy.fft, name)(x),
        getattr(fft, name),
        lambda torch, x: getattr(torch.fft, name)(x),
    )


WORKLOADS = [
    transform("1024", "fft", 1024),
    transform("1e5", "fft", 100_000),
    transform("2**20", "fft", 2**20),
    transform("10007, a prime number", "fft", 10_007),
    transform("100003, a prime number", "fft", 100_003),
    transform("1000x1000, rows", "fft", 1000, 1000),
    transform("10000x64, rows", "fft", 10_000, 64),
    transform("2**20", "ifft", 2**20),
    transform("2**20", "rfft", 2**20, of_complex=False),
    transform("1000x1024, rows", "rfft", 1000, 1024, of_complex=False),
    transform("2**19+1", "irfft", 2**19 + 1),
    transform("512x512", "fft2", 512, 512),
    transform("1000x1000", "rfft2", 1000, 1000, of_complex=False),
    transform("64x64x64", "fftn", 64, 64, 64),
]
