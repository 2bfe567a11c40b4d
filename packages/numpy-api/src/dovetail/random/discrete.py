"""Counts: the Poisson, binomial and multinomial distributions.

Small means by the sum of chances up to a uniform number, larger ones by transformed rejection:
W. Hörmann, The transformed rejection method for generating Poisson random variables, Insurance:
Mathematics and Economics 12 (1993), and The generation of binomial random variates, Journal of
Statistical Computation and Simulation 46 (1993). Chances by C. Loader, Fast and accurate
computation of binomial probabilities (2000), so that large ones keep their digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like
from dovetail.extend.avals import aval_of
from dovetail.numpy.compiled import compiled_with, divided_program
from dovetail.random.arguments import (
    dtype_argument,
    float_argument,
    single_key,
    typed,
)
from dovetail.random.intervals import pair_of_keys, unit_interval
from dovetail.random.parameters import (
    check_method,
    common_shape,
    parameter,
    real_shape,
    result_shape,
)
from dovetail.random.rejection import REJECTED, accepted_of
from dovetail.typing import Array, ArrayLike, DTypeLike, KeyLike, ShapeLike, Sharding

_SMALL = 10.0
"""Means below it are few enough to be counted up to."""

_TERMS = 8
"""Terms that are added up between looks at whether all numbers are found."""

_EXACT = 8
"""The errors of Stirling's formula for smaller numbers are in a table."""

#: Those of their logarithms of factorials, the first of which is not used.
_ERRORS = [0.0] + [
    math.lgamma(x + 1) - (x + 0.5) * math.log(x) + x - 0.5 * math.log(2 * math.pi)
    for x in range(1, _EXACT)
]

#: Of the series in 1 / x**2 (DLMF 5.11.1), which is good to 1e-14 from there on.
_SERIES = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)


def _stirling_error(x: Any) -> Any:
    safe = jnp.maximum(x, _EXACT)
    square = 1 / (safe * safe)
    error: Any = 0.0
    for coefficient in reversed(_SERIES):
        error = coefficient + square * error
    error = error / safe
    # By comparisons, which XLA makes many of at a time, as it does not look up many.
    for n, known in enumerate(_ERRORS):
        error = jnp.where(x == n, known, error)
    return error


def _deviance(x: Any, mean: Any, inverse: Any) -> Any:
    """``x log(x / mean) - x + mean``, which is accurate where the two are close.

    Args:
        x: counts.
        mean: their mean.
        inverse: of the mean. XLA would divide by a scalar as by its inverse, and by an array not.
    """
    t = (x - mean) * inverse
    near = abs(t) < 0.1
    small = jnp.where(near, t, 0)
    # (1 + t) log(1 + t) - t, by its series.
    series = 0.0
    for n in range(9 if dtypes.itemsize_bits(t.dtype) <= 32 else 16, 1, -1):
        series = (-1) ** n / (n * (n - 1)) + small * series
    far = jnp.where(near, 1, t)
    return mean * jnp.where(near, small * small * series, (1 + far) * lax.log1p(far) - far)


def _counted(key: Any, first: Any, ratio: Callable[[Any], Any], needed: Any, shape: Any) -> Any:
    """Counts with given chances.

    Args:
        key: a typed key.
        first: the chances of 0; in the shape of the parameters, as all chances are.
        ratio: the chance of a count, divided by that of the count before.
        needed: where numbers are wanted.
        shape: of the result.
    """
    uniform = unit_interval(key, shape, first.dtype)

    def some(state: tuple[Any, ...]) -> tuple[Any, ...]:
        step, chance, total, count = state
        for _ in range(_TERMS):
            count = count + (uniform >= total).astype(count.dtype)
            step = step + 1
            chance = chance * ratio(step)
            total = total + chance
        return step, chance, total, count

    def unfinished(state: tuple[Any, ...]) -> Any:
        _, chance, total, _ = state
        # Rounded, chances need not add up to 1.
        return (needed & (uniform >= total) & (chance > 0)).any()

    start = (jnp.zeros((), first.dtype), first, first, jnp.zeros(shape, first.dtype))
    return lax.while_loop(unfinished, some, start)[3]


def _transformed(
    first: Any, second: Any, shape: Any, spread: Any, slope: Any, centre: Any
) -> tuple[Any, Any, Any]:
    """A proposal of Hörmann's methods, a uniform number, another's distance from 0 or 1."""
    u = unit_interval(first, shape, spread.dtype) - 0.5
    v = unit_interval(second, shape, spread.dtype)
    distance = 0.5 - abs(u)
    return lax.floor((2 * slope / distance + spread) * u + centre), v, distance


def _poisson_proposed(
    first: Any, second: Any, shape: Any, mean: Any, inverse: Any, spread: Any, needed: Any
) -> Any:
    slope = 0.02483 * spread - 0.059
    k, v, distance = _transformed(first, second, shape, spread, slope, mean + 0.43)
    quick = (distance >= 0.07) & (v <= 0.9277 - 3.6224 / (spread - 2))
    possible = (k >= 0) & ((distance >= 0.013) | (v <= distance))
    height = 1.1239 + 1.1328 / (spread - 3.4)
    bound = v * height / (slope / (distance * distance) + spread)
    # The chance of k is exp(-error) / sqrt(2 pi k).
    some = k > 0
    known = jnp.maximum(k, 1)
    error = jnp.where(some, _stirling_error(known) + _deviance(known, mean, inverse), mean)
    root = jnp.where(some, lax.sqrt(2 * math.pi * known), 1)
    good = quick | (possible & (lax.log(bound * root) <= -error)) | ~needed
    return jnp.where(good, k, REJECTED)


def _poisson_counts(key: Any, mean: Any, shape: Any) -> Any:
    """Floats: -1 where the mean is none.

    Args:
        key: a typed key.
        mean: in a shape of its own: what belongs to one mean is made once.
        shape: of the result.
    """
    small = (mean >= 0) & (mean < _SMALL)
    large = (mean >= _SMALL) & (mean < np.inf)
    first, second = pair_of_keys(key)

    def few(mean: Any) -> Any:
        own = jnp.where(small, mean, 0)
        return _counted(first, lax.exp(-own), lambda step: own / step, small, shape)

    def many(mean: Any) -> Any:
        own = jnp.where(large, mean, _SMALL)
        spread = 0.931 + 2.53 * lax.sqrt(own)
        constants = (own, 1 / own, spread, large)
        return accepted_of(second, _poisson_proposed, constants, shape, mean.dtype)

    def zeros(mean: Any) -> Any:
        return jnp.zeros(shape, mean.dtype)

    counts = lax.cond(small.any(), few, zeros, mean)
    counts = jnp.where(large, lax.cond(large.any(), many, zeros, mean), counts)
    return jnp.where(mean == np.inf, np.inf, jnp.where(mean >= 0, counts, -1))


def poisson(
    key: KeyLike,
    lam: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    method: str = "exact",
    out_sharding: Sharding | None = None,
) -> Array:
    """Samples from the Poisson distribution: how many independent events there are.

    Args:
        key: a key, typed or raw, of any implementation.
        lam: means, not negative; broadcast to `shape`.
        shape: shape of the result; that of `lam` if None.
        dtype: an integer dtype; the default one if None.
        method: ``"exact"`` or ``"approximate"``: both name the method below, which is exact.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype; -1 where `lam` is negative or nan.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or `lam` is not real.
        ValueError: `key` is an array of several keys, `dtype` is not an integer dtype, `method` is
            unknown, or `lam` does not fit the shape.

    Method:
        W. Hörmann, The transformed rejection method for generating Poisson random variables (1993).

    Differs:
        Numbers are other ones than in JAX: many are drawn at a time, which is much faster, and all
        kinds of keys will do.

        >>> from dovetail import random
        >>> print(random.poisson(random.key(0, impl="rbg"), 3.0, (2,)).shape)
        (2,)

    Example:
        >>> from dovetail import random
        >>> x = random.poisson(random.key(0), 3.0, (10000,))
        >>> abs(float(x.mean()) - 3) < 0.1, abs(float(x.var()) - 3) < 0.2
        (True, True)
    """
    key = single_key("poisson", key)
    check_method("poisson", method)
    dtype = dtype_argument("poisson", dtype, "i", "iu", "an integer dtype")
    return divided_program("random.poisson", out_sharding, _poisson)(
        key, lam, result_shape("poisson", {"lam": lam}, shape), dtype
    )


@compiled_with("shape", "dtype")
def _poisson(key: Any, lam: Any, shape: Any, dtype: Any) -> Any:
    own = real_shape("poisson", "lam", lam)
    mean = parameter("poisson", "lam", lam, own, dtypes.default_dtype("f"))
    return lax.convert_element_type(_poisson_counts(typed(key), mean, shape), dtype)


def _binomial_error(k: Any, n: Any, means: Any, inverses: Any) -> Any:
    """The chance of k is ``exp(_stirling_error(n) - error) * sqrt(n / (2 pi k (n - k)))``.

    For counts that are not 0 nor n.
    """
    left = n - k
    errors = _stirling_error(k) + _stirling_error(left)
    first, second = (_deviance(*x) for x in zip((k, left), means, inverses, strict=True))
    return errors + first + second


def _binomial_proposed(first: Any, second: Any, shape: Any, *constants: Any) -> Any:
    n, mean, left, spread, slope, scale, *inverses, inverse, none, all_of_them, needed = constants
    k, v, distance = _transformed(first, second, shape, spread, slope, mean + 0.5)
    quick = (distance >= 0.07) & (v <= 0.92 - 4.2 / spread)
    possible = (k >= 0) & (k <= n)
    bound = v * scale / (slope / (distance * distance) + spread)
    inner = jnp.clip(k, 1, n - 1)
    # At the ends chances are powers.
    end = k != inner
    root = jnp.where(end, 1, lax.sqrt(inner) * lax.sqrt((n - inner) * inverse))
    error = _binomial_error(inner, n, (mean, left), inverses)
    error = jnp.where(end, jnp.where(k <= 0, none, all_of_them), error)
    good = lax.log(bound * root) <= -error
    good = (possible & (quick | good)) | ~needed
    return jnp.where(good, jnp.clip(k, 0, n), REJECTED)


def _binomial_constants(n: Any, p: Any, needed: Any) -> tuple[Any, ...]:
    """All that belongs to the parameters alone, so that it is the same for scalars and arrays."""
    mean, left = n * p, n * (1 - p)
    inverses = 1 / mean, 1 / left
    deviation = lax.sqrt(mean * (1 - p))
    spread = 1.15 + 2.53 * deviation
    slope = 0.0248 * spread + 0.01 * p - 0.0873
    mode = lax.floor((n + 1) * p)
    # Of the most likely count, which is neither 0 nor n.
    error = _binomial_error(mode, n, (mean, left), inverses)
    chance = lax.exp(-error) / lax.sqrt(mode) / lax.sqrt((n - mode) / n)
    scale = (2.83 + 5.1 / spread) * deviation * chance
    # Of no count, and of all of them.
    ends = _stirling_error(n) + 0.5 * math.log(2 * math.pi)
    errors = ends - n * lax.log1p(-p), ends - n * lax.log(p)
    return n, mean, left, spread, slope, scale, *inverses, 1 / n, *errors, needed


def _binomial_counts(key: Any, n: Any, p: Any, shape: Any) -> Any:
    """Floats: nan where there is no such distribution.

    Args:
        key: a typed key.
        n: numbers of trials, in a shape of their own: what belongs to one parameter is made once.
        p: chances, likewise.
        shape: of the result.
    """
    n = lax.floor(n)
    valid = (n >= 0) & (n < np.inf) & (p >= 0) & (p <= 1)
    # Of the rarer outcome.
    swapped = p > 0.5
    rare = jnp.where(swapped, 1 - p, p)
    small = valid & (n * rare < _SMALL)
    large = valid & ~small
    first, second = pair_of_keys(key)

    def few(n: Any, p: Any) -> Any:
        n, p = jnp.where(small, n, 0), jnp.where(small, p, 0)
        none = lax.exp(n * lax.log1p(-p))
        odds = p / (1 - p)
        return _counted(first, none, lambda step: (n - step + 1) / step * odds, small, shape)

    def many(n: Any, p: Any) -> Any:
        n, p = jnp.where(large, n, 40), jnp.where(large, p, 0.5)
        constants = _binomial_constants(n, p, large)
        return accepted_of(second, _binomial_proposed, constants, shape, n.dtype)

    def zeros(n: Any, p: Any) -> Any:
        return jnp.zeros(shape, n.dtype)

    counts = lax.cond(small.any(), few, zeros, n, rare)
    counts = jnp.where(large, lax.cond(large.any(), many, zeros, n, rare), counts)
    counts = jnp.minimum(counts, n)
    return jnp.where(valid, jnp.where(swapped, n - counts, counts), np.nan)


def binomial(
    key: KeyLike,
    n: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Samples from the binomial distribution: how many of some trials succeed.

    Args:
        key: a key, typed or raw.
        n: numbers of trials, not negative; broadcast to `shape`.
        p: chances of success, from 0 to 1; broadcast to `shape`.
        shape: shape of the result; the common one of the parameters if None.
        dtype: a float dtype; the default one if None.

    Returns:
        An array of that shape and dtype, of whole numbers; nan where `n` is negative, `p` is not
        from 0 to 1, or either is nan.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or a parameter is not real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, or a parameter
            does not fit the shape.

    Method:
        W. Hörmann, The generation of binomial random variates (1993).

    Differs:
        Numbers are other ones than in JAX: many are drawn at a time, which is much faster.

        >>> from dovetail import random
        >>> print(random.binomial(random.key(0), 10, 0.5, (2,)).shape)
        (2,)

    Example:
        >>> from dovetail import random
        >>> x = random.binomial(random.key(0), 100, 0.3, (10000,))
        >>> abs(float(x.mean()) - 30) < 0.3, abs(float(x.var()) - 21) < 1.5
        (True, True)
    """
    key = single_key("binomial", key)
    shape = result_shape("binomial", {"n": n, "p": p}, shape)
    return _binomial(key, n, p, shape, float_argument("binomial", dtype))


@compiled_with("shape", "dtype")
def _binomial(key: Any, n: Any, p: Any, shape: Any, dtype: Any) -> Any:
    real = dtypes.default_dtype("f")
    trials = parameter("binomial", "n", n, real_shape("binomial", "n", n), real)
    chance = parameter("binomial", "p", p, real_shape("binomial", "p", p), real)
    return _binomial_counts(typed(key), trials, chance, shape).astype(dtype)


def multinomial(
    key: KeyLike,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Samples from the multinomial distribution: how often trials have each of several outcomes.

    Args:
        key: a key, typed or raw.
        n: numbers of trials, not negative; broadcast to `shape`.
        p: chances of the outcomes, of shape ``(..., k)``, divided by their sum.
        shape: shape of the result without its last dimension; the common one of `n` and the leading
            dimensions of `p` if None.
        dtype: a float dtype; the default one if None.
        unroll: as of `lax.scan`, over the outcomes.

    Returns:
        An array of shape ``(*shape, k)`` and that dtype, whose vectors add up to `n`.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or a parameter is not real.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, `p` is a
            scalar, or a parameter does not fit the shape.

    Example:
        >>> from dovetail import random
        >>> x = random.multinomial(random.key(0), 100, jnp.array([0.2, 0.3, 0.5]), shape=(1000,))
        >>> bool((x.sum(-1) == 100).all())
        True
    """
    key = single_key("multinomial", key)
    dtype = float_argument("multinomial", dtype)
    sizes = real_shape("multinomial", "p", p)
    if not sizes:
        raise ShapeError("random.multinomial: p must be a vector or several, got a scalar")
    leading = {"n": real_shape("multinomial", "n", n), "p": sizes[:-1]}
    shape = common_shape("multinomial", leading, shape)
    return _multinomial(key, n, p, shape, dtype, unroll)


@compiled_with("shape", "dtype", "unroll")
def _multinomial(key: Any, n: Any, p: Any, shape: Any, dtype: Any, unroll: Any) -> Any:
    real = dtypes.default_dtype("f")
    trials = parameter("multinomial", "n", n, shape, real)
    size = aval_of(array_like(p, "random.multinomial", "p")).shape[-1]
    chances = jnp.moveaxis(parameter("multinomial", "p", p, (*shape, size), real), -1, 0)
    # Of each outcome among those that are left; sums from the end keep what is small.
    left = lax.cumsum(chances, 0, reverse=True)
    chances = jnp.clip(jnp.where(left > 0, chances / left, 0), 0, 1)

    def outcome(state: tuple[Any, Any], chance: Any) -> tuple[tuple[Any, Any], Any]:
        key, trials = state
        key, own = pair_of_keys(key)
        count = _binomial_counts(own, trials, chance, shape)
        return (key, trials - count), count

    _, counts = lax.scan(outcome, (typed(key), trials), chances, unroll=unroll)
    return jnp.moveaxis(counts, 0, -1).astype(dtype)
