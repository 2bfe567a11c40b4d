"""Rejection sampling of many numbers at a time.

Most proposals are accepted at once. The others are drawn again in a smaller array of their own, so
that all costs little more than one proposal for each number.

The keys of a round are made in the round before, and carried by the loop. XLA would otherwise fuse
what makes them with what uses them, and make them for each element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.extend import random_keys
from dovetail.random.arguments import Shape

Proposal = Callable[..., tuple[Any, Any]]
"""From two keys and vectors of parameters to a vector of values, and of which are accepted."""

_AT_ONCE = 1024
"""So few numbers are drawn again together with those that were accepted."""

_PROPOSING, _NEXT = slice(0, 2), 2


def accepted_of(
    key: Any, propose: Proposal, parameters: Sequence[Any], shape: Shape, parts: int
) -> Any:
    """Numbers that were accepted.

    Args:
        key: a typed key.
        propose: the proposals; for every parameter that it is given some must be accepted.
        parameters: arrays of the shape of the result.
        shape: the shape of the result.
        parts: of so many proposals fewer than one is rejected, mostly.
    """
    size = math.prod(shape)
    flat = [x.reshape(size) for x in parameters]
    none = jnp.zeros(size, bool)
    if size <= _AT_ONCE:
        return _drawn(key, propose, flat, none, jnp.all)[1].reshape(shape)
    keys, values, accepted = _drawn(key, propose, flat, none, jnp.any)

    def some(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        keys, values, accepted = state
        (places,) = jnp.nonzero(~accepted, size=size // parts, fill_value=size)
        part = [x.at[places].get(mode="clip", indices_are_sorted=True) for x in flat]
        keys, drawn, _ = _drawn(keys[_NEXT], propose, part, places == size, jnp.all)
        words: dict[str, Any] = {"mode": "drop", "indices_are_sorted": True}
        return (
            keys,
            values.at[places].set(drawn, **words),
            accepted.at[places].set(True, **words),
        )

    state = (keys, values, accepted)
    return lax.while_loop(lambda s: ~s[2].all(), some, state)[1].reshape(shape)


def _drawn(
    key: Any,
    propose: Proposal,
    parameters: Sequence[Any],
    done: Any,
    enough: Callable[[Any], Any],
) -> tuple[Any, Any, Any]:
    """Values, and which of them are accepted, or were not wanted, when these are enough.

    The keys in front of them are not used yet.
    """

    def step(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        keys, values, accepted = state
        drawn, good = propose(*keys[_PROPOSING], *parameters)
        keys = random_keys.split(keys[_NEXT], (3,))
        return keys, jnp.where(accepted, values, drawn), accepted | good

    values = jnp.zeros(done.shape, parameters[0].dtype)
    state = (random_keys.split(key, (3,)), values, done)
    return lax.while_loop(lambda s: ~enough(s[2]), step, state)
