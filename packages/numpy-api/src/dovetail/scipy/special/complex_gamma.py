"""The logarithm of the gamma function of complex numbers."""

from __future__ import annotations

import math
from typing import Any

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.scipy.special.stirling import STIRLING_START, stirling_correction


def _right(z: Any) -> Any:
    """By Stirling's series, which recurrence reaches. The real part is not negative.

    Source: DLMF 5.11.1. The principal logarithms of all factors add up to the continuous branch.
    """
    near = lax.real(z) < STIRLING_START
    steps = int(STIRLING_START)
    far = jnp.where(near, z + steps, z)
    series = (far - 0.5) * lax.log(far) - far + math.log(2 * math.pi) / 2
    lacking = 0 * z
    for k in range(steps):
        lacking = lacking + lax.log(jnp.where(near, z + k, 1))
    return series + stirling_correction(far) - lacking


def _upper(z: Any) -> Any:
    """Of numbers above the real axis, or on it, as a limit from above.

    Left of the imaginary axis by reflection, DLMF 5.5.3, where the logarithm of the sine is
    ``log(1 - exp(2 pi i z)) - log(2) - pi i (z - 1/2)``, so that it is continuous and does not
    overflow. Source of this choice of branches: D. E. G. Hare, Computing the principal branch of
    log-gamma, Journal of Algorithms 25 (1997).
    """
    left = lax.real(z) < 0
    inside = jnp.where(left, z, -0.5 + 0 * z)
    # The period of the exponential is taken off first: that is exact.
    real = lax.real(inside)
    turn = lax.complex(real - lax.round(real), lax.imag(inside))
    sine = lax.log(-lax.expm1(2j * math.pi * turn)) - 1j * math.pi * (inside - 0.5)
    reflected = math.log(2 * math.pi) - sine - _right(1 - inside)
    return jnp.where(left, reflected, _right(jnp.where(left, 1 + 0 * z, z)))


def complex_loggamma(z: Any) -> Any:
    """The branch that is continuous off the negative real axis; nan at the poles."""
    real, imaginary = lax.real(z), lax.imag(z)
    below = lax.atan2(imaginary, 0 * imaginary - 1) < 0
    above = _upper(jnp.where(below, lax.conj(z), z))
    result = jnp.where(below, lax.conj(above), above)
    pole = (imaginary == 0) & (real <= 0) & (real == lax.floor(real))
    return jnp.where(pole, complex(math.nan, math.nan), result)


def complex_gamma(z: Any) -> Any:
    """The gamma function; nan at the poles."""
    return lax.exp(complex_loggamma(z))
