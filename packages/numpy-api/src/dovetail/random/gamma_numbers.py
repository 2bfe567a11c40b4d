"""Samples from the gamma distribution, in whose place logarithms can be had.

Method: G. Marsaglia and W. W. Tsang, A simple method for generating gamma variables, ACM
Transactions on Mathematical Software 26 (2000); numbers below 1 from those of a + 1 by a uniform
number to the power 1 / a. Derivatives in `a` are implicit: M. Figurnov, S. Mohamed and A. Mnih,
Implicit reparameterization gradients, NeurIPS 2018.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dovetail import custom_jvp, lax, make_jaxpr, vmap
from dovetail import numpy as jnp
from dovetail.extend import Primitive, ShapedArray, dtypes, evaluate, random_keys
from dovetail.extend.avals import aval_of
from dovetail.random.continuous import real_normal
from dovetail.random.intervals import pair_of_keys, unit_interval
from dovetail.random.rejection import REJECTED, accepted_of

_CERTAIN = 1e8
"""From here on fewer than one in as many proposals are rejected: there are no digits to tell."""

_SMALL = 1e-6
"""Below it the distribution function is a power of x but for this fraction."""


def _proposed(normal_key: Any, uniform_key: Any, shape: Any, d: Any) -> Any:
    """Deviations t of which d * (1 + t)**3 has the gamma distribution of d + 1/3."""
    x = real_normal(normal_key, shape, d.dtype)
    uniform = unit_interval(uniform_key, shape, d.dtype)
    t = x * (1 / (3 * lax.sqrt(d)))
    inside = t > -1
    kept = jnp.where(inside, t, 0)
    # 1 - (1 + t)**3 + 3 log(1 + t), without the difference of two large numbers.
    excess = 3 * (lax.log1p(kept) - kept) - kept * kept * (3 + kept)
    good = lax.log(uniform) < x * x / 2 + d * excess
    return jnp.where(inside & (good | (d > _CERTAIN)), t, REJECTED)


def _parts(key: Any, a: Any) -> tuple[Any, Any]:
    """A gamma number as x and e, being x * exp(e), where x does not vanish.

    Only where a is 0, x is 0.
    """
    own, boost_key = pair_of_keys(key)
    # All is done in one dimension: XLA makes many numbers at a time only along the last one.
    shape, a = a.shape, a.ravel()
    # Any number in the place of those that have no distribution.
    known = jnp.where((a > 0) & (a < np.inf), a, 1)

    def exponential(known: Any) -> Any:
        # In the middle of each interval, so that none is 0.
        half = float(dtypes.finfo(a.dtype).eps) / 2
        return -lax.log1p(-(unit_interval(own, a.shape, a.dtype) + half))

    def rejection(known: Any) -> Any:
        # Numbers below 1 are made of those of one more.
        d = jnp.where(known < 1, known + 1, known) - 1 / 3
        return d * (1 + accepted_of(own, _proposed, (d,), a.shape, a.dtype)) ** 3

    def boost(known: Any) -> Any:
        # Of 1 - u, since u may be 0.
        uniform = unit_interval(boost_key, a.shape, a.dtype)
        return jnp.where(known < 1, lax.log1p(-uniform) * (1 / known), 0)

    x = lax.cond((known == 1).all(), exponential, rejection, known)
    x = jnp.where(a == 0, 0, x)
    x = jnp.where(a == np.inf, np.inf, x)
    x = jnp.where(a >= 0, x, np.nan)
    e = lax.cond((known < 1).any(), boost, jnp.zeros_like, known)
    return x.reshape(shape), e.reshape(shape)


def _drawn(words: Any, a: Any, implementation: Any, logarithm: bool) -> Any:
    """Gamma numbers, or their logarithms, of the raw keys and in the dtype of `a`."""

    def of_one_key(words: Any, a: Any) -> Any:
        x, e = _parts(random_keys.wrap(words, implementation), a)
        return lax.log(x) + e if logarithm else x * lax.exp(e)

    aval, key_shape = aval_of(a), implementation.key_shape
    words_shape = aval_of(words).shape
    leading = words_shape[: len(words_shape) - len(key_shape)]
    wide = a.astype(wide_dtype(aval.dtype))
    if leading:
        size = math.prod(leading)
        words = words.reshape(size, *key_shape)
        wide = wide.reshape(size, *aval.shape[len(leading) :])
        drawn = vmap(of_one_key)(words, wide).reshape(aval.shape)
    else:
        drawn = of_one_key(words, wide)
    return drawn.astype(aval.dtype)


def wide_dtype(dtype: Any) -> Any:
    """The dtype to compute in: numbers of 16 bits are made of wider ones."""
    return np.dtype(np.float32) if dtypes.itemsize_bits(dtype) < 32 else dtype


def _slope(a: Any, log_x: Any) -> Any:
    """The derivative in `a` of the logarithm of a gamma number."""
    x = lax.exp(log_x)
    near = x < _SMALL
    safe = jnp.where(near, 1, x)
    shape = jnp.where(a > 0, a, 1)
    implicit = lax.random_gamma_grad(shape, safe) / safe
    return jnp.where(near, (lax.digamma(shape + 1) - log_x) / shape, implicit)


random_gamma_p: Final = Primitive("random_gamma", key_use="consumes")
"""Gamma numbers, or with `log_space` their logarithms, with derivatives.

Operands are keys and shape parameters, floats. The shape of the keys is that of the parameters, or
of their leading dimensions; each key makes numbers for the others.
"""


def _type(keys: Any, a: Any, *, log_space: bool) -> Any:
    if not isinstance(keys.dtype, random_keys.KeyDType):
        raise TypeError(f"random_gamma takes typed keys, got {keys.short_name()}")
    if dtypes.kind_of(a.dtype) != "f":
        raise TypeError(f"random_gamma takes parameters of a float dtype, got {a.short_name()}")
    if a.shape[: keys.ndim] != keys.shape:
        raise TypeError(
            "random_gamma takes parameters whose leading dimensions are those of the keys, got "
            f"{a.short_name()} and {keys.short_name()}"
        )
    return ShapedArray(a.shape, a.dtype)


def _reference(keys: Any, a: Any, *, log_space: bool) -> Any:
    (name,) = keys.dtype.names
    implementation = random_keys.implementation_of(name)
    words = keys[name]
    program = make_jaxpr(lambda words, a: _drawn(words, a, implementation, log_space))(words, a)
    return evaluate(program, [words, a], platform="numpy")[0]


def _derivative(primals: Any, tangents: Any, *, log_space: bool) -> tuple[Any, Any]:
    keys, a = primals
    x = random_gamma_p.bind(keys, a, log_space=log_space)
    wide, shape = x.astype(wide_dtype(x.dtype)), a.astype(wide_dtype(x.dtype))
    if log_space:
        slope = _slope(shape, wide)
    else:
        # What is too small to be told from 0 has no slope that could be.
        kept = jnp.where(wide > 0, wide, 1)
        slope = jnp.where(wide > 0, _slope(shape, lax.log(kept)) * kept, 0)
    return x, tangents[1] * slope.astype(x.dtype)


def _batched(
    operands: Sequence[Any], dims: Sequence[int | None], *, log_space: bool
) -> tuple[Any, int]:
    size = next(aval_of(x).shape[d] for x, d in zip(operands, dims, strict=True) if d is not None)
    placed = [
        jnp.broadcast_to(x, (size, *aval_of(x).shape)) if d is None else jnp.moveaxis(x, d, 0)
        for x, d in zip(operands, dims, strict=True)
    ]
    return random_gamma_p.bind(*placed, log_space=log_space), 0


def _lowered(context: Any, words: Any, a: Any, *, log_space: bool) -> Any:
    keys, parameters = context.avals_in
    implementation = keys.dtype.implementation

    def drawn(words: Any, a: Any) -> Any:
        return _drawn(words, a, implementation, log_space)

    return context.lower_function(drawn, [context.physical(keys), parameters])(words, a)


random_gamma_p.define("abstract", _type)
random_gamma_p.define("reference", _reference)
random_gamma_p.define("jvp", _derivative)
random_gamma_p.define("batch", _batched)
random_gamma_p.define("lower", _lowered)


def scaled_gamma_numbers(key: Any, a: Any) -> tuple[Any, Any]:
    """Gamma numbers as x and e, being x * exp(e), where x does not vanish.

    All derivatives are those of e, which is not above 0.

    Args:
        key: a typed key.
        a: shape parameters, of the shape and of a dtype of 32 bits or more.
    """

    @custom_jvp
    def drawn(a: Any, words: Any) -> tuple[Any, Any]:
        return _parts(random_keys.wrap(words, implementation), a)

    @drawn.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        a, words = primals
        x, e = drawn(a, words)
        return (x, e), (jnp.zeros_like(x), tangents[0] * _slope(a, lax.log(x) + e))

    implementation = key.dtype.implementation
    result: tuple[Any, Any] = drawn(a, random_keys.unwrap(key))
    return result
