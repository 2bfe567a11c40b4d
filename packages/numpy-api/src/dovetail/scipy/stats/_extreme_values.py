"""The Gumbel distribution of least values, of which that of greatest values is the mirror image."""

from __future__ import annotations

from typing import Any

from dovetail import lax
from dovetail.nn import log1mexp
from dovetail.numpy.conditions import pick
from dovetail.scipy.stats._families import choose


def log_density(y: Any) -> Any:
    """The logarithm of the density."""
    return y - lax.exp(y)


def log_survival(y: Any) -> Any:
    """The logarithm of `survival`."""
    return -lax.exp(y)


def _rate(y: Any) -> Any:
    # What is greater changes no result, and would overflow.
    return lax.exp(lax.min(y, lax.full_like(y, 80)))


def survival(y: Any) -> Any:
    """The probability of greater values."""
    return lax.exp(-_rate(y))


def probability(y: Any) -> Any:
    """The probability of values that are not greater."""
    return -lax.expm1(-_rate(y))


def log_probability(y: Any) -> Any:
    """The logarithm of `probability`."""
    # Far out it is y itself, and the exponential may underflow.
    far = y < -40
    return pick(far, y, log1mexp(_rate(choose(far, 0, y))))
