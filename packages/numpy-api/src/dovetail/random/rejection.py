"""Rejection sampling of many numbers at a time.

Most proposals are accepted at once. The others are drawn again in a smaller array of their own, so
that all costs little more than one proposal for each number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.random.arguments import Shape
from dovetail.random.intervals import pair_of_keys

Proposal = Callable[..., tuple[Any, Any]]
"""From a key and vectors of parameters to a vector of values, and of which are accepted."""

_AT_ONCE = 1024
"""So few numbers are drawn again together with those that were accepted."""


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
    if size <= _AT_ONCE:
        return _accepted(key, propose, flat, jnp.zeros(size, bool)).reshape(shape)
    first, rest = pair_of_keys(key)
    values, accepted = propose(first, *flat)

    def some(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        key, values, accepted = state
        key, own = pair_of_keys(key)
        (places,) = jnp.nonzero(~accepted, size=size // parts, fill_value=size)
        part = [x.at[places].get(mode="clip", indices_are_sorted=True) for x in flat]
        drawn = _accepted(own, propose, part, places == size)
        words: dict[str, Any] = {"mode": "drop", "indices_are_sorted": True}
        return (
            key,
            values.at[places].set(drawn, **words),
            accepted.at[places].set(True, **words),
        )

    return lax.while_loop(lambda s: ~s[2].all(), some, (rest, values, accepted))[1].reshape(shape)


def _accepted(key: Any, propose: Proposal, parameters: Sequence[Any], done: Any) -> Any:
    """Values that were accepted, but for those that are not wanted."""

    def step(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        key, values, accepted = state
        key, own = pair_of_keys(key)
        drawn, good = propose(own, *parameters)
        return key, jnp.where(accepted, values, drawn), accepted | good

    values = jnp.zeros(done.shape, parameters[0].dtype)
    return lax.while_loop(lambda s: ~s[2].all(), step, (key, values, done))[1]
