"""Samples from the gamma distribution, in whose place logarithms can be had.

Method: G. Marsaglia and W. W. Tsang, A simple method for generating gamma variables, ACM
Transactions on Mathematical Software 26 (2000); those of a below 1 from those of a + 1 by a uniform
number to the power 1 / a, those of 1 as exponential numbers. Derivatives in `a` are implicit:
M. Figurnov, S. Mohamed and A. Mnih, Implicit reparameterization gradients, NeurIPS 2018.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dovetail import custom_jvp, lax
from dovetail import numpy as jnp
from dovetail.extend import dtypes, random_keys
from dovetail.random.arguments import Shape
from dovetail.random.continuous import real_normal
from dovetail.random.intervals import pair_of_keys, unit_interval
from dovetail.random.rejection import accepted_of

_CERTAIN = 1e8
"""From here on fewer than one in as many proposals are rejected: there are no digits to tell."""

_SMALL = 1e-6
"""Below it the distribution function is a power of x but for this fraction."""


def _normal_and_uniform(first: Any, second: Any, size: int, dtype: Any) -> tuple[Any, Any]:
    return real_normal(first, (size,), dtype), unit_interval(second, (size,), dtype)


def _proposed(x: Any, uniform: Any, d: Any) -> tuple[Any, Any]:
    """Deviations t of which d * (1 + t)**3 has the gamma distribution of d + 1/3."""
    t = x / (3 * lax.sqrt(d))
    inside = t > -1
    kept = jnp.where(inside, t, 0)
    # 1 - (1 + t)**3 + 3 log(1 + t), without the difference of two large numbers.
    excess = 3 * (lax.log1p(kept) - kept) - kept * kept * (3 + kept)
    good = lax.log(uniform) < x * x / 2 + d * excess
    return t, inside & (good | (d > _CERTAIN))


def _at_ends(x: Any, a: Any, at_zero: float) -> Any:
    x = jnp.where(a == 0, at_zero, x)
    x = jnp.where(a == np.inf, np.inf, x)
    return jnp.where(a >= 0, x, np.nan)


def _drawn(key: Any, a: Any, size: int, logarithms: Any) -> tuple[Any, Any]:
    """Numbers and their logarithms."""
    own, exponential_key = pair_of_keys(key)
    # Any number in the place of those that have no distribution.
    known = jnp.where((a > 0) & (a < np.inf), a, 1)
    small, one = known < 1, known == 1
    d = jnp.where(small, known + 1, known) - 1 / 3
    zeros = jnp.zeros(size, a.dtype)

    def deviations() -> Any:
        return accepted_of(own, _normal_and_uniform, _proposed, (d,), (size,), a.dtype, 16)

    # Each in a branch of its own, even where all are wanted: XLA:CPU would make them anew wherever
    # they are used.
    some, others = (known <= 1).any(), ~one.all()
    t = lax.cond(others, deviations, lambda: zeros)
    uniform = lax.cond(
        some, lambda: unit_interval(exponential_key, (size,), a.dtype), lambda: zeros
    )
    # Neither 0 nor 1, whose logarithms are infinite.
    half = float(dtypes.finfo(a.dtype).eps) / 2
    e = lax.cond(some, lambda: -lax.log1p(-(uniform + half)), lambda: zeros)
    boost = lax.cond(small.any(), lambda: jnp.where(small, -e / known, 0), lambda: zeros)
    x = jnp.where(one, e, d * (1 + t) ** 3 * lax.exp(boost))
    log_x = lax.cond(
        logarithms,
        lambda: jnp.where(one, lax.log(e), lax.log(d) + 3 * lax.log1p(t) + boost),
        lambda: zeros,
    )
    return _at_ends(x, a, 0), _at_ends(log_x, a, -np.inf)


def _slope(a: Any, log_x: Any) -> Any:
    """The derivative in `a` of the logarithm of a gamma number."""
    x = lax.exp(log_x)
    near = x < _SMALL
    safe = jnp.where(near, 1, x)
    shape = jnp.where(a > 0, a, 1)
    implicit = lax.random_gamma_grad(shape, safe) / safe
    return jnp.where(near, (lax.digamma(shape + 1) - log_x) / shape, implicit)


def gamma_numbers(key: Any, a: Any, shape: Shape, logarithms: Any = True) -> tuple[Any, Any]:
    """Gamma numbers and their logarithms, which small parameters need, with derivatives.

    XLA:CPU does not vectorise logarithms of arrays whose last dimension is, say, 10, so all is
    computed of vectors.

    Args:
        key: a typed key.
        a: shape parameters, a scalar or of the shape of the result, and of its dtype.
        shape: the shape of the result.
        logarithms: whether these are wanted; a bool, possibly traced.

    Returns:
        Two vectors, of as many elements as the shape has.
    """
    dtype, size = a.dtype, math.prod(shape)
    a = a.reshape(size) if a.ndim else a
    if dtypes.itemsize_bits(dtype) < 32:
        x, log_x = gamma_numbers(key, a.astype(np.float32), (size,), logarithms)
        return x.astype(dtype), log_x.astype(dtype)

    @custom_jvp
    def drawn(a: Any, words: Any, logarithms: Any) -> Any:
        return _drawn(random_keys.wrap(words, implementation), a, size, logarithms)

    @drawn.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        a, words, _ = primals
        x, log_x = drawn(a, words, True)
        log_tangent = tangents[0] * _slope(a, log_x)
        # What is too small to be told from 0 has no slope that could be.
        return (x, log_x), (jnp.where(x > 0, log_tangent * x, 0), log_tangent)

    implementation = key.dtype.implementation
    result: tuple[Any, Any] = drawn(a, random_keys.unwrap(key), logarithms)
    return result
