"""Stirling's series for the logarithm of the gamma function."""

from __future__ import annotations

from typing import Any

#: Coefficients B[2n] / (2n (2n - 1)) of Stirling's series in odd powers of 1 / x. DLMF 5.11.1.
STIRLING = (
    1 / 12,
    -1 / 360,
    1 / 1260,
    -1 / 1680,
    1 / 1188,
    -691 / 360360,
    1 / 156,
    -3617 / 122400,
)
#: From where on these terms give the correction to float64's precision.
STIRLING_START = 10.0


def stirling_correction(x: Any) -> Any:
    """The logarithm of gamma(x) minus its leading terms, for `x` from `STIRLING_START` on."""
    inverse = 1 / x
    square = inverse * inverse
    total = STIRLING[-1]
    for coefficient in reversed(STIRLING[:-1]):
        total = total * square + coefficient
    return total * inverse
