"""Random numbers from a generator with a state, by the methods of NumPy's `Generator`."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dovetail import Array, Ref, new_ref, random
from dovetail import numpy as jnp
from dovetail.extend.tracebacks import bounded
from dovetail.extend.tracebacks import publish as _publish
from dovetail.tree_util import register_dataclass
from dovetail.typing import ArrayLike, DTypeLike

__all__ = ["StatefulPRNG", "stateful_rng"]


def __dir__() -> list[str]:
    return __all__


Size = int | Sequence[int] | None


@bounded
@dataclass(frozen=True)
class StatefulPRNG:
    """A generator of random numbers that remembers how often it was asked; see `stateful_rng`.

    The key of the n-th request is ``random.fold_in(base_key, n)``. A generator is a tree with a
    mutable reference, so that jitted functions may take it as an argument or capture it.

    Args:
        _base_key: a random key, or an array of keys for `dovetail.vmap`.
        _counter: a reference to integers, of the shape of the keys.

    Raises:
        TypeError: they are not such values.
    """

    _base_key: Array
    _counter: Ref

    def __post_init__(self) -> None:
        # Transformations put other things in the place of keys.
        key, counter = self._base_key, self._counter
        dtype = getattr(counter, "dtype", None)
        if isinstance(key, Array) and not (
            isinstance(counter, Ref)
            and jnp.issubdtype(dtype, jnp.integer)
            and counter.shape == key.shape
        ):
            raise TypeError(
                "StatefulPRNG takes a key and a reference to an integer that counts, "
                f"dovetail.new_ref(0), got {counter!r:.80}; stateful_rng(seed) makes one"
            )

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """A random key, or an array of keys, which no other request gets.

        Args:
            shape: that of the array.

        Example:
            >>> from dovetail.experimental.random import stateful_rng
            >>> rng = stateful_rng(3)
            >>> bool(rng.key() == rng.key())
            False
        """
        if self._base_key.ndim:
            raise ValueError(
                f"this is an array of {self._base_key.shape} generators, as split() makes it: map "
                "a function of one generator over it with dovetail.vmap"
            )
        count = self._counter[...]
        self._counter[...] = count + 1
        key = random.fold_in(self._base_key, count)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        return random.split(key, shape) if shape else key

    def random(self, size: Size = None, dtype: DTypeLike = float) -> Array:
        """Numbers from 0 up to, not including, 1, all equally likely.

        Args:
            size: the shape; one number by default.
            dtype: a float dtype.

        Example:
            >>> from dovetail.experimental.random import stateful_rng
            >>> stateful_rng(3).random(2).shape
            (2,)
        """
        return random.uniform(self.key(), _shape(size), dtype)

    def uniform(
        self,
        low: ArrayLike = 0,
        high: ArrayLike = 1,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
    ) -> Array:
        """Numbers from `low` up to, not including, `high`, all equally likely.

        Args:
            low: the least number.
            high: what is above the greatest.
            size: the shape; by default that of `low` and `high`, broadcast.
            dtype: a float dtype.
        """
        return random.uniform(self.key(), _shape(size, low, high), dtype, minval=low, maxval=high)

    def normal(
        self,
        loc: ArrayLike = 0,
        scale: ArrayLike = 1,
        size: Size = None,
        *,
        dtype: DTypeLike = float,
    ) -> Array:
        """Numbers of a normal distribution.

        Args:
            loc: its mean.
            scale: its standard deviation.
            size: the shape; by default that of `loc` and `scale`, broadcast.
            dtype: a float dtype.
        """
        drawn = random.normal(self.key(), _shape(size, loc, scale), dtype)
        return drawn * jnp.asarray(scale, drawn.dtype) + jnp.asarray(loc, drawn.dtype)

    def integers(
        self,
        low: ArrayLike,
        high: ArrayLike | None = None,
        size: Size = None,
        *,
        dtype: DTypeLike = int,
    ) -> Array:
        """Integers from `low` up to, not including, `high`, all equally likely.

        Args:
            low: the least integer; without `high`, what is above the greatest, and the least is 0.
            high: what is above the greatest.
            size: the shape; by default that of `low` and `high`, broadcast.
            dtype: an integer dtype.
        """
        if high is None:
            low, high = 0, low
        return random.randint(self.key(), _shape(size, low, high), low, high, dtype)

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """Generators of their own, whose numbers have nothing to do with those of this one.

        Args:
            n_children: how many.

        Example:
            >>> from dovetail.experimental.random import stateful_rng
            >>> len(stateful_rng(3).spawn(2))
            2
        """
        keys = self.key((n_children,))
        return [StatefulPRNG(keys[i], new_ref(jnp.int32(0))) for i in range(n_children)]

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """An array of generators of their own, for `dovetail.vmap`.

        Args:
            num: how many, or the shape of the array.

        Example:
            >>> import dovetail as dt
            >>> from dovetail.experimental.random import stateful_rng
            >>> dt.vmap(lambda rng: rng.normal(size=3))(stateful_rng(3).split(2)).shape
            (2, 3)
        """
        keys = self.key(num)
        return StatefulPRNG(keys, new_ref(jnp.zeros(keys.shape, jnp.int32)))


register_dataclass(StatefulPRNG, data_fields=["_base_key", "_counter"], meta_fields=[])


def stateful_rng(seed: ArrayLike | None = None, *, impl: Any = None) -> StatefulPRNG:
    """A generator of random numbers with a state, like `numpy.random.default_rng`.

    Args:
        seed: an integer; by default one that the system draws.
        impl: the generator behind its keys, as of `dovetail.random.key`.

    Returns:
        The generator.

    Raises:
        TypeError: `seed` is not an integer.

    Example:
        >>> import dovetail as dt
        >>> from dovetail.experimental.random import stateful_rng
        >>> rng = stateful_rng(3)
        >>> draw = dt.jit(lambda: rng.normal(size=2))
        >>> bool((draw() == draw()).any())
        False
    """
    if seed is None:
        seed = np.uint32(secrets.randbits(32))
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(jnp.int32(0)))


def _shape(size: Size, *parameters: ArrayLike) -> tuple[int, ...]:
    if size is None:
        return jnp.broadcast_shapes(*[jnp.shape(p) for p in parameters])
    return (size,) if isinstance(size, int) else tuple(size)


_publish(globals())
