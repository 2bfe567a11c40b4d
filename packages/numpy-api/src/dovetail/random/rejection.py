"""Rejection sampling of many numbers at a time.

Most proposals are accepted at once. The others are drawn again in smaller and smaller arrays of
their own, so that all costs little more than one proposal for each number.

XLA:CPU fuses what makes an array with whatever uses it, and makes it as often as it is used. So the
keys of a round are made in the round before, and carried by the loop; and what is drawn is the
result of a branch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.extend import random_keys
from dovetail.random.arguments import Shape

Draw = Callable[[Any, Any, int, Any], tuple[Any, Any]]
"""From two keys, a length and a dtype to two vectors of random numbers."""

Proposal = Callable[..., tuple[Any, Any]]
"""From these vectors and parameters, each a scalar or a vector of that length, to a vector of
values, and of which are accepted."""

_AT_ONCE = 1024
"""So few numbers are drawn again together with those that were accepted."""

_LATER_PARTS = 8
"""Of what is drawn again, so many proposals for one that is rejected."""

_NEXT = 2
"""Of three keys, the one that those of the next round are made of."""


def accepted_of(
    key: Any,
    draw: Draw,
    propose: Proposal,
    parameters: Sequence[Any],
    shape: Shape,
    dtype: Any,
    parts: int,
) -> Any:
    """Numbers that were accepted.

    Args:
        key: a typed key.
        draw: the random numbers that proposals are made of.
        propose: the proposals; for every parameter that it is given some must be accepted.
        parameters: scalars, and arrays of the shape of the result.
        shape: the shape of the result.
        dtype: that of the numbers.
        parts: of so many proposals fewer than one is rejected, mostly.
    """
    size = math.prod(shape)
    flat = [x.reshape(size) if x.ndim else x for x in parameters]
    sizes = [part for part in (size // parts, size // parts // _LATER_PARTS) if part > _AT_ONCE]
    keys = random_keys.split(key, (3,))
    values = jnp.zeros(size, dtype)
    make = _Proposals(draw, propose)
    return _accepted(keys, make, flat, values, jnp.zeros(size, bool), sizes)[1].reshape(shape)


class _Proposals(NamedTuple):
    draw: Draw
    propose: Proposal

    def __call__(self, keys: Any, parameters: Sequence[Any], accepted: Any, dtype: Any) -> Any:
        size = accepted.shape[0]
        zeros = jnp.zeros(size, dtype)
        drawn = lax.cond(
            ~accepted.all(),
            lambda: self.draw(keys[0], keys[1], size, dtype),
            lambda: (zeros, zeros),
        )
        return self.propose(*drawn, *parameters)


def _accepted(
    keys: Any,
    make: _Proposals,
    parameters: Sequence[Any],
    values: Any,
    done: Any,
    sizes: Sequence[int],
) -> tuple[Any, Any]:
    """Keys that are not used yet, and accepted values.

    Args:
        keys: three keys.
        make: the proposals.
        parameters: scalars and vectors.
        values: a vector, of which stays what is not wanted.
        done: where nothing is wanted; elsewhere it must be wanted at least once.
        sizes: of the arrays in which values are drawn again.
    """
    if not sizes:
        return _drawn(keys, make, parameters, values, done, jnp.all)[:2]
    size = done.shape[0]
    state = _drawn(keys, make, parameters, values, done, lambda accepted: (accepted & ~done).any())

    def again(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        keys, values, accepted = state
        (places,) = jnp.nonzero(~accepted, size=sizes[0], fill_value=size)
        part = [
            x.at[places].get(mode="clip", indices_are_sorted=True) if x.ndim else x
            for x in parameters
        ]
        nothing = jnp.zeros(sizes[0], values.dtype)
        keys, drawn = _accepted(keys, make, part, nothing, places == size, sizes[1:])
        words: dict[str, Any] = {"mode": "drop", "indices_are_sorted": True}
        return (
            keys,
            values.at[places].set(drawn, **words),
            accepted.at[places].set(True, **words),
        )

    return lax.while_loop(lambda s: ~s[2].all(), again, state)[:2]


def _drawn(
    keys: Any,
    make: _Proposals,
    parameters: Sequence[Any],
    values: Any,
    done: Any,
    enough: Callable[[Any], Any],
) -> tuple[Any, Any, Any]:
    """Unused keys, values, and which of these are accepted, when these are enough."""

    def step(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        keys, values, accepted = state
        drawn, good = make(keys, parameters, accepted, values.dtype)
        keys = random_keys.split(keys[_NEXT], (3,))
        return keys, jnp.where(accepted, values, drawn), accepted | good

    return lax.while_loop(lambda s: ~enough(s[2]), step, (keys, values, done))
