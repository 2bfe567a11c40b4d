"""Keys of given implementations, and implementations that users define."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import ArrayLike
from dovetail._core.basis.operands import as_operand
from dovetail._core.ir.avals import aval_of
from dovetail._core.ops.random.keys import (
    KeyImplementation,
    Shape,
    define_implementation,
    implementation_names,
    implementation_of,
    seed,
)
from dovetail._core.trace.tracer import ArrayClass

__all__ = ["define_prng_impl", "random_seed", "seed_with_impl"]


class _UserFunctions:
    """A user's generator, whose functions take and return arrays."""

    def __init__(
        self,
        seed: Callable[..., Any],
        split: Callable[..., Any],
        fold_in: Callable[..., Any],
        random_bits: Callable[..., Any],
    ) -> None:
        self.seed, self.split, self.fold_in = seed, split, fold_in
        self.random_bits = random_bits


class _UserReference:
    """The same on NumPy arrays, for tests."""

    def __init__(self, functions: _UserFunctions) -> None:
        self._functions = functions

    def seed(self, value: Any, /) -> Any:
        return np.asarray(self._functions.seed(value))

    def split(self, key: Any, shape: Shape, /) -> Any:
        return np.asarray(self._functions.split(key, shape))

    def fold_in(self, key: Any, data: Any, /) -> Any:
        return np.asarray(self._functions.fold_in(key, data))

    def random_bits(self, key: Any, bit_width: int, shape: Shape, /) -> Any:
        return np.asarray(self._functions.random_bits(key, bit_width, shape))


def define_prng_impl(
    *,
    key_shape: tuple[int, ...],
    seed: Callable[[Any], Any],
    split: Callable[[Any, tuple[int, ...]], Any],
    random_bits: Callable[[Any, int, tuple[int, ...]], Any],
    fold_in: Callable[[Any, int], Any],
    name: str = "<unnamed>",
    tag: str = "?",
) -> Hashable:
    """Define a random generator, for keys made by ``random.key(seed, impl=...)``.

    Its functions are traced: they compute with arrays, and give the same for the same arguments.
    They are kept for the life of the process, and so is what they refer to.

    Args:
        key_shape: the shape of a raw key, of dtype uint32.
        seed: maps an integer, an array of rank 0, to a raw key.
        split: maps a raw key and a shape to an array of raw keys, of shape (*shape, *key_shape).
        random_bits: maps a raw key, a number of bits (8, 16, 32 or 64) and a shape to an array of
            unsigned integers of so many bits.
        fold_in: maps a raw key and a uint32, an array of rank 0, to a raw key.
        name: its name, by which keys find it again; a number is added if there is one of the name.
        tag: its short name, which dtypes such as ``key<fry>`` show.

    Returns:
        The generator, for the argument `impl` of functions that make keys.

    Raises:
        TypeError: a function is none, or `key_shape` is not a tuple of integers.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> from dovetail.extend.random import define_prng_impl
        >>> constant = define_prng_impl(
        ...     key_shape=(1,),
        ...     seed=lambda value: value.astype("uint32").reshape(1),
        ...     split=lambda key, shape: jnp.broadcast_to(key, (*shape, 1)),
        ...     random_bits=lambda key, width, shape: jnp.full(shape, key[0], f"uint{width}"),
        ...     fold_in=lambda key, number: key + number,
        ...     name="constant",
        ...     tag="const",
        ... )
        >>> dt.random.bits(dt.random.key(4, impl=constant), (3,))
        Array([4, 4, 4], dtype=uint32)
    """
    for what, function in (
        ("seed", seed),
        ("split", split),
        ("random_bits", random_bits),
        ("fold_in", fold_in),
    ):
        if not callable(function):
            raise TypeError(f"define_prng_impl: {what} is a function, got {function!r:.80}")
    if not isinstance(key_shape, tuple) or not all(isinstance(n, int) for n in key_shape):
        raise TypeError(
            f"define_prng_impl: key_shape is a tuple of integers, such as (2,), "
            f"got {key_shape!r:.80}"
        )
    functions = _UserFunctions(seed, split, fold_in, random_bits)
    taken = implementation_names()
    unique, number = name, 1
    while unique in taken:
        number += 1
        unique = f"{name} {number}"
    return define_implementation(
        KeyImplementation(unique, tag, key_shape, functions, _UserReference(functions))
    )


def random_seed(seeds: ArrayLike, impl: Any) -> ArrayClass:
    """Random keys made from integers.

    Args:
        seeds: an integer, or an array of integers.
        impl: the generator, or its name.

    Returns:
        An array of keys, of the shape of `seeds`.

    Raises:
        TypeError: `seeds` are not integers.
        ValueError: there is no generator of that name.

    Example:
        >>> import numpy as np
        >>> from dovetail.extend.random import random_seed, threefry_prng_impl
        >>> random_seed(np.arange(3), threefry_prng_impl).shape
        (3,)
    """
    operand = as_operand(seeds, "random_seed", "seeds")
    if dtypes.kind_of(aval_of(operand).dtype) not in ("i", "u"):
        raise TypeError(f"random_seed: seeds must be integers, got {aval_of(operand).short_name()}")
    keys: ArrayClass = seed(operand, implementation_of(impl))
    return keys


def seed_with_impl(impl: Any, seed: ArrayLike) -> ArrayClass:
    """`random_seed` with its arguments the other way round.

    Args:
        impl: the generator, or its name.
        seed: an integer, or an array of integers.
    """
    return random_seed(seed, impl)
