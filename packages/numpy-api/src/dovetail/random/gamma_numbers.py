"""Samples from the gamma distribution, in whose place logarithms can be had.

Method: G. Marsaglia and W. W. Tsang, A simple method for generating gamma variables, ACM
Transactions on Mathematical Software 26 (2000); numbers below 1 from those of a + 1 by a uniform
number to the power 1 / a. Derivatives in `a` are implicit: M. Figurnov, S. Mohamed and A. Mnih,
Implicit reparameterization gradients, NeurIPS 2018.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail import custom_jvp, lax
from dovetail import numpy as jnp
from dovetail.extend import dtypes, random_keys
from dovetail.random.continuous import real_normal
from dovetail.random.intervals import pair_of_keys, unit_interval
from dovetail.random.rejection import accepted_of

_CERTAIN = 1e8
"""From here on fewer than one in as many proposals are rejected: there are no digits to tell."""

_SMALL = 1e-6
"""Below it the distribution function is a power of x but for this fraction."""


def _proposed(normal_key: Any, uniform_key: Any, d: Any) -> tuple[Any, Any]:
    """Deviations t of which d * (1 + t)**3 has the gamma distribution of d + 1/3."""
    x = real_normal(normal_key, d.shape, d.dtype)
    uniform = unit_interval(uniform_key, d.shape, d.dtype)
    t = x / (3 * lax.sqrt(d))
    inside = t > -1
    kept = jnp.where(inside, t, 0)
    # 1 - (1 + t)**3 + 3 log(1 + t), without the difference of two large numbers.
    excess = 3 * (lax.log1p(kept) - kept) - kept * kept * (3 + kept)
    good = lax.log(uniform) < x * x / 2 + d * excess
    return t, inside & (good | (d > _CERTAIN))


def _parts(key: Any, a: Any) -> tuple[Any, Any, Any]:
    """A gamma number as d, t and e, being d * (1 + t)**3 * exp(e)."""
    own, boost_key = pair_of_keys(key)
    small = a < 1
    # Any number in the place of those that have no distribution.
    known = jnp.where((a > 0) & (a < np.inf), a, 1)
    d = jnp.where(small, known + 1, known) - 1 / 3
    t = accepted_of(own, _proposed, (d,), a.shape, 16)
    # Of 1 - u, since u may be 0.
    uniform = unit_interval(boost_key, a.shape, a.dtype)
    return d, t, jnp.where(small, lax.log1p(-uniform) / known, 0)


def _at_ends(x: Any, a: Any, at_zero: float) -> Any:
    x = jnp.where(a == 0, at_zero, x)
    x = jnp.where(a == np.inf, np.inf, x)
    return jnp.where(a >= 0, x, np.nan)


def _drawn(key: Any, a: Any, logarithm: bool) -> Any:
    d, t, e = _parts(key, a)
    if logarithm:
        return _at_ends(lax.log(d) + 3 * lax.log1p(t) + e, a, -np.inf)
    return _at_ends(d * (1 + t) ** 3 * lax.exp(e), a, 0)


def _slope(a: Any, log_x: Any) -> Any:
    """The derivative in `a` of the logarithm of a gamma number."""
    x = lax.exp(log_x)
    near = x < _SMALL
    safe = jnp.where(near, 1, x)
    shape = jnp.where(a > 0, a, 1)
    implicit = lax.random_gamma_grad(shape, safe) / safe
    return jnp.where(near, (lax.digamma(shape + 1) - log_x) / shape, implicit)


def gamma_numbers(key: Any, a: Any, logarithm: bool = False) -> Any:
    """Gamma numbers, or their logarithms, with derivatives.

    Args:
        key: a typed key.
        a: shape parameters, of the shape and dtype of the result.
        logarithm: whether logarithms are drawn, which small parameters need.
    """
    dtype = a.dtype
    if dtypes.itemsize_bits(dtype) < 32:
        wide = gamma_numbers(key, a.astype(np.float32), logarithm)
        return wide.astype(dtype)

    @custom_jvp
    def drawn(a: Any, words: Any) -> Any:
        return _drawn(random_keys.wrap(words, implementation), a, logarithm)

    @drawn.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        a, words = primals
        x = drawn(a, words)
        if logarithm:
            return x, tangents[0] * _slope(a, x)
        # What is too small to be told from 0 has no slope that could be.
        kept = jnp.where(x > 0, x, 1)
        return x, tangents[0] * jnp.where(x > 0, _slope(a, lax.log(kept)) * kept, 0)

    implementation = key.dtype.implementation
    return drawn(a, random_keys.unwrap(key))
