"""Rejection sampling of many numbers at a time.

Proposals are made for a window of numbers. Those that are accepted leave it, others move up from
behind, so that all costs little more than the proposals that are needed; the last few are found in
windows that are nearly empty. Programs are small: the proposal is in them once.

The keys of a round are made in the round before, and carried by the loop. XLA would otherwise fuse
what makes them with what uses them, and make them for each element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.extend import random_keys
from dovetail.extend.avals import aval_of
from dovetail.random.arguments import Shape

Proposal = Callable[..., Any]
"""From two keys, a shape and parameters to a vector of values, `REJECTED` where none is accepted.

Parameters are scalars, or vectors of that shape. It is one vector, because XLA would make the
numbers again for each of several ones.
"""

REJECTED = float("inf")

_SIDE = 32
"""So few numbers, squared, are drawn together."""

_WINDOWS = 32
"""Into so many windows larger arrays are divided: a few windows more cost little."""

_PROPOSING, _NEXT = slice(0, 2), 2


def accepted_of(
    key: Any, propose: Proposal, parameters: Sequence[Any], shape: Shape, dtype: Any
) -> Any:
    """Numbers that were accepted.

    Args:
        key: a typed key.
        propose: the proposals; for every parameter that it is given some must be accepted.
        parameters: arrays that can be broadcast to the shape of the result.
        shape: the shape of the result.
        dtype: dtype of the result.
    """
    size = math.prod(shape)
    values = jnp.zeros(size, dtype)
    if not size:
        return values.reshape(shape)
    flat = [
        x.reshape(()) if math.prod(aval_of(x).shape) == 1 else jnp.broadcast_to(x, shape).ravel()
        for x in parameters
    ]
    if size <= _SIDE * _SIDE:
        return _all_at_once(key, propose, flat, values).reshape(shape)
    side = max(_SIDE, math.isqrt(size // _WINDOWS))
    width = side * side
    index = lax.iota(np.int32, width)
    words: dict[str, Any] = {"mode": "drop", "unique_indices": True}

    def some(state: tuple[Any, ...]) -> tuple[Any, ...]:
        keys, values, places, drawn, begin, _ = state
        # What is not written has a place of its own behind the end.
        again = (drawn == REJECTED) & (places < size)
        values = values.at[jnp.where(again, size + index, places)].set(drawn, **words)
        # Those that were rejected come to the front, in any order; behind them there are new ones.
        rank = lax.cumsum(again.reshape(side, side).astype(np.int32), 0)
        whole = lax.cumsum(rank[-1], 0)
        rank = (rank + (whole - rank[-1])).reshape(width) - 1
        count = whole[-1]
        fresh = begin + (index - count)
        places = fresh.at[jnp.where(again, rank, width + index)].set(places, **words)
        part = [x.at[places].get(mode="clip") if aval_of(x).shape else x for x in flat]
        drawn = propose(*keys[_PROPOSING], (width,), *part)
        keys = random_keys.split(keys[_NEXT], (3,))
        return keys, values, places, drawn, begin + (width - count), (count > 0) | (begin < size)

    nothing = jnp.full(width, REJECTED, dtype)
    zero = jnp.zeros((), np.int32)
    keys = random_keys.split(key, (3,))
    state = (keys, values, size + index, nothing, zero, jnp.ones((), bool))
    return lax.while_loop(lambda s: s[-1], some, state)[1].reshape(shape)


def _all_at_once(key: Any, propose: Proposal, parameters: Sequence[Any], values: Any) -> Any:
    def step(state: tuple[Any, Any]) -> tuple[Any, Any]:
        keys, values = state
        drawn = propose(*keys[_PROPOSING], aval_of(values).shape, *parameters)
        values = jnp.where(values == REJECTED, drawn, values)
        return random_keys.split(keys[_NEXT], (3,)), values

    state = (random_keys.split(key, (3,)), jnp.full_like(values, REJECTED))
    return lax.while_loop(lambda s: (s[1] == REJECTED).any(), step, state)[1]
