"""Greatest common divisors and least common multiples."""

from __future__ import annotations

from typing import Any, Final

from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    broadcast_result,
    convert,
    literal,
    promoted,
    require_kind,
    weak_of,
)
from dovetail.extend.avals import aval_of
from dovetail.numpy.compiled import compiled
from dovetail.numpy.conditions import pick, spread
from dovetail.typing import Array, ArrayLike

#: Steps in one pass over the arrays: with fewer, they are read more often; with more, the loop runs
#: longer than needed.
_STEPS: Final = 4


@compiled
def gcd(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greatest common divisor of integers; gcd(0, n) is the magnitude of n.

    Args:
        x1: array or scalar of integers.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        An array of the common shape and dtype. Results are not negative, except for the most
        negative number of the dtype, whose magnitude the dtype cannot hold: it stays as it is, as
        in NumPy.

    Raises:
        TypeError: the operands are not integers.

    Differs:
        The most negative number is taken as well, where JAX never ends; so in `lcm`.

        >>> print(jnp.gcd(jnp.array(-(2**31)), 6))
        2

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.gcd(jnp.array([12, -18, 0]), 8))
        [4 2 8]
    """
    x, y = _operands("gcd", x1, x2)
    return convert(_gcd(_magnitude(x), _magnitude(y)), aval_of(x).dtype, _is_weak(x, y))


@compiled
def lcm(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The least common multiple of integers; lcm(0, n) is zero.

    Args:
        x1: array or scalar of integers.
        x2: array or scalar that broadcasts with `x1`.

    Returns:
        An array of the common shape and dtype. Multiples that the dtype cannot hold wrap around.

    Raises:
        TypeError: the operands are not integers.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.lcm(jnp.array([4, -6, 0]), 10))
        [20 30  0]
    """
    x, y = _operands("lcm", x1, x2)
    first, second = _magnitude(x), _magnitude(y)
    divisor = _gcd(first, second)
    one = literal(1, aval_of(divisor).dtype)
    multiple = lax.mul(lax.div(first, lax.max(divisor, one)), second)
    return convert(multiple, aval_of(x).dtype, _is_weak(x, y))


def _operands(function: str, x1: Any, x2: Any) -> tuple[Any, Any]:
    """Two integers of one dtype and shape."""
    x, y = promoted(function, x1, x2)
    require_kind(function, x, "iu", "integers")
    shape = broadcast_result(function, (aval_of(x).shape, aval_of(y).shape))
    return spread(x, shape), spread(y, shape)


def _is_weak(x: Any, y: Any) -> bool:
    """Whether a result is weakly typed: that of two weakly typed scalars."""
    return weak_of(x) and weak_of(y) and not aval_of(x).ndim


def _magnitude(x: Any) -> Any:
    """The magnitude as an unsigned number, which holds that of every signed one."""
    dtype = aval_of(x).dtype
    if dtypes.kind_of(dtype) == "u":
        return x
    # Convert after taking abs, which leaves the most negative number as it is.
    unsigned = dtypes.canonicalize_dtype(f"uint{dtypes.itemsize_bits(dtype)}")
    return convert(lax.abs(x), unsigned)


def _gcd(x: Any, y: Any) -> Any:
    """Halving and subtracting (Stein): a division takes longer than the steps that it saves."""
    zero = lax.full_like(x, 0)
    either = lax.bitwise_or(x, y)
    smaller, larger = lax.min(x, y), lax.max(x, y)
    alone = lax.eq(smaller, zero)
    odd = pick(alone, larger, smaller)
    odd = lax.shift_right_logical(odd, _trailing_zeros(odd))

    def unfinished(state: tuple[Any, Any]) -> Any:
        rest = state[1]
        return lax.reduce_or(lax.ne(rest, zero), tuple(range(aval_of(rest).ndim)))

    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        odd, rest = state
        for _ in range(_STEPS):
            finished = lax.eq(rest, zero)
            halved = lax.shift_right_logical(rest, _trailing_zeros(rest))
            low, high = lax.min(odd, halved), lax.max(odd, halved)
            odd, rest = pick(finished, odd, low), pick(finished, zero, lax.sub(high, low))
        return odd, rest

    divisor, _ = lax.while_loop(unfinished, step, (odd, pick(alone, zero, larger)))
    divisor = lax.shift_left(divisor, _trailing_zeros(either))
    return pick(lax.eq(either, zero), zero, divisor)


def _trailing_zeros(x: Any) -> Any:
    """The number of trailing zero bits; the width for zero."""
    below = lax.sub(lax.bitwise_and(x, lax.neg(x)), literal(1, aval_of(x).dtype))
    return lax.population_count(below)
