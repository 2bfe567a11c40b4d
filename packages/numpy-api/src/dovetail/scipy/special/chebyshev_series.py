"""Sums of Chebyshev polynomials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail import lax


def chebyshev(coefficients: Sequence[float], t: Any) -> Any:
    """A sum of Chebyshev polynomials at points between -1 and 1, by Clenshaw's recurrence."""
    twice = t + t
    previous: Any = 0.0
    current: Any = coefficients[-1]
    for c in coefficients[-2:0:-1]:
        previous, current = current, twice * current + (c - previous)
    return t * current + (coefficients[0] - previous)


def chebyshev_between(coefficients: Sequence[float], low: float, high: float, x: Any) -> Any:
    """`chebyshev` on an interval; what lies well outside gives some finite value."""
    centre, half = (high + low) / 2, (high - low) / 2
    t = (x - centre) / half
    # Not at 1 itself: there the limit would have a derivative of its own.
    return chebyshev(coefficients, lax.clamp(-1.001, t, 1.001))
