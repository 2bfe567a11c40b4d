"""Key implementations on counters: ``threefry4x32``, ``philox2x32`` and ``philox4x32``.

Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011, with the
constants of the Random123 library. Streams equal those that JAX publishes for the same seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any, Final

from dovetail._core.ops.random.bit_generator_reference import INCREMENTS, MULTIPLIERS, ROUNDS
from dovetail._core.ops.random.counter_arithmetic import Arithmetic
from dovetail._core.ops.random.threefry_reference import PARITY

Shape = tuple[int, ...]
Words = Sequence[Any]

_THREEFRY_ROUNDS: Final = 20
_ROTATIONS: Final = (
    ((10, 26), (11, 21), (13, 27), (23, 5)),
    ((6, 20), (17, 11), (25, 10), (18, 20)),
)
_PHILOX_2_MULTIPLIER: Final = 0xD256D193


class CounterGenerator:
    """A generator that is one function: words of random bits of words of key and of counter.

    A number that bits are drawn for is in the first two words of the counter; one that keys are
    derived with is in the last two.

    Args:
        arithmetic: what it computes with.
    """

    key_size: int
    """How many words a key has; a counter has those of a block."""

    block_size = 4
    """How many words a counter, and the bits for it, have."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self.do = arithmetic

    def block(self, key: Words, counter: Words) -> list[Any]:
        """The words of random bits for a key and counters."""
        raise NotImplementedError

    def wide(self, words: Words) -> tuple[Any, Any]:
        """The high and the low word of integers of 64 bits, from those of a block."""
        return words[0], words[1]

    def seed(self, value: Any, /) -> Any:
        """The raw key for an integer seed."""
        seed = self.do.halves(value)
        return self._key(self.block(self._zeros(self.key_size), self._first(seed)), ())

    def split(self, key: Any, shape: Shape, /) -> Any:
        """Raw keys of the requested shape, derived from one."""
        return self._key(self._derived(key, self.do.numbers(shape)), shape)

    def fold_in(self, key: Any, data: Any, /) -> Any:
        """The raw key derived from one and a uint32 scalar."""
        return self._key(self._derived(key, (self.do.word(0), data)), ())

    def random_bits(self, key: Any, bit_width: int, shape: Shape, /) -> Any:
        """Unsigned integers of `bit_width` bits made from a raw key."""
        parts = self.do.parts(key, self.key_size)
        words = self.block(parts, self._first(self.do.numbers(shape)))
        if bit_width == 64:
            return self.do.wide(*self.wide(words))
        return self.do.narrow(reduce(self.do.xor, words), bit_width)

    def _derived(self, key: Any, number: Words) -> list[Any]:
        counter = [*self._zeros(self.block_size - 2), *number]
        return self.block(self.do.parts(key, self.key_size), counter)

    def _first(self, number: Words) -> list[Any]:
        return [*number, *self._zeros(self.block_size - 2)]

    def _zeros(self, count: int) -> list[Any]:
        return [self.do.word(0)] * count

    def _key(self, words: Words, shape: Shape) -> Any:
        return self.do.columns(words[: self.key_size], shape)


class Threefry4x32(CounterGenerator):
    """Threefry on four words."""

    key_size = 4

    def seed(self, value: Any, /) -> Any:
        key = self._first(self.do.halves(value))
        return self._key(self.block(key, self._zeros(self.block_size)), ())

    def block(self, key: Words, counter: Words) -> list[Any]:
        do = self.do
        schedule = [*key, reduce(do.xor, key, do.word(PARITY))]
        x = [do.add(c, k) for c, k in zip(counter, key, strict=True)]
        for i in range(_THREEFRY_ROUNDS):
            # The words that are turned change places from one round to the next.
            turned = (3, 1) if i % 2 else (1, 3)
            for a, b, distance in zip((0, 2), turned, _ROTATIONS[i // 4 % 2][i % 4], strict=True):
                x[a] = do.add(x[a], x[b])
                x[b] = do.xor(do.turn(x[b], distance), x[a])
            if i % 4 == 3:
                group = i // 4 + 1
                x = [do.add(w, schedule[(group + n) % 5]) for n, w in enumerate(x)]
                x[3] = do.add(x[3], do.word(group))
        return x

    def wide(self, words: Words) -> tuple[Any, Any]:
        return self.do.xor(words[0], words[2]), self.do.xor(words[1], words[3])


class Philox2x32(CounterGenerator):
    """Philox on two words."""

    key_size = 1
    block_size = 2

    def block(self, key: Words, counter: Words) -> list[Any]:
        do = self.do
        x, y = counter
        (k,) = key
        for _ in range(ROUNDS):
            high, low = do.product(x, _PHILOX_2_MULTIPLIER)
            x, y = do.xor(do.xor(high, k), y), low
            k = do.add(k, do.word(INCREMENTS[0]))
        return [x, y]


class Philox4x32(CounterGenerator):
    """Philox on four words."""

    key_size = 2

    def block(self, key: Words, counter: Words) -> list[Any]:
        do = self.do
        x, k = list(counter), list(key)
        for _ in range(ROUNDS):
            products = [do.product(x[i], m) for i, m in zip((0, 2), MULTIPLIERS, strict=True)]
            (high, low), (other_high, other_low) = products
            first = do.xor(do.xor(other_high, x[1]), k[0])
            third = do.xor(do.xor(high, x[3]), k[1])
            x = [first, other_low, third, low]
            k = [do.add(w, do.word(n)) for w, n in zip(k, INCREMENTS, strict=True)]
        return x
