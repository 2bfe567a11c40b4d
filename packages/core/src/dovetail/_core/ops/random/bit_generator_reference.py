"""XLA's bit generators on NumPy arrays: slow and plain, to test the compiled forms against.

A state is four 32-bit words: two of a key, two of a counter, each with the low word first.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from dovetail._core.ops.random.threefry_reference import threefry2x32

NDArray = np.ndarray[Any, Any]
Shape = tuple[int, ...]

MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
INCREMENTS: Final = (0x9E3779B9, 0xBB67AE85)
ROUNDS: Final = 10
_LOW: Final = np.uint64(2**32 - 1)
_HALF: Final = np.uint64(32)


def philox4x32(key1: Any, key2: Any, *counters: Any) -> list[NDArray]:
    """Four words of random bits from two words of key and four of counter."""
    x = [np.asarray(c, np.uint64) for c in counters]
    keys = [np.asarray(k, np.uint64) for k in (key1, key2)]
    first, second = map(np.uint64, MULTIPLIERS)
    for _ in range(ROUNDS):
        p, q = x[0] * first, x[2] * second
        x = [(q >> _HALF) ^ x[1] ^ keys[0], q & _LOW, (p >> _HALF) ^ x[3] ^ keys[1], p & _LOW]
        keys = [k + np.uint64(i) & _LOW for k, i in zip(keys, INCREMENTS, strict=True)]
    return [a.astype(np.uint32) for a in np.broadcast_arrays(*x)]


def split_dimension(shape: Shape) -> int:
    """The dimension along which Threefry's pairs of words lie: the first of even size, or else the
    first of the largest."""
    even = [d for d, n in enumerate(shape) if n % 2 == 0]
    return even[0] if even else shape.index(max(shape))


def philox_words(words: NDArray, count: int) -> NDArray:
    """The requested number of words, made from a state."""
    key1, key2, low, high = map(int, words)
    # A 128-bit counter; its upper half starts as the key.
    start = low | high << 32 | key1 << 64 | key2 << 96
    blocks = [(start + i) % 2**128 for i in range(-(-count // 4))]
    counters = [np.array([b >> 32 * i & 0xFFFFFFFF for b in blocks], np.uint64) for i in range(4)]
    return np.stack(philox4x32(key1, key2, *counters), axis=-1).reshape(-1)[:count]


def threefry_pairs(words: NDArray, count: int) -> tuple[NDArray, NDArray]:
    """The requested number of pairs of words, made from a state."""
    key1, key2, low, high = map(int, words)
    blocks = [(low + (high << 32) + i) % 2**64 for i in range(count)]
    counters = [np.array([b >> shift & 0xFFFFFFFF for b in blocks], np.uint32) for shift in (0, 32)]
    return threefry2x32(np.uint32(key1), np.uint32(key2), *counters)


def generate(words: NDArray, shape: Shape, dtype: Any, threefry: bool) -> tuple[NDArray, NDArray]:
    """The next state, and an array of unsigned integers made from a state."""
    size, wide = prod(shape), dtype.itemsize == 8
    if not threefry:
        count = 2 * size if wide else size
        blocks, bits = -(-count // 4), philox_words(words, count)
        joined = (
            bits[0::2].astype(np.uint64) | bits[1::2].astype(np.uint64) << _HALF if wide else bits
        )
    elif wide:
        low, high = threefry_pairs(words, size)
        blocks, joined = size, low.astype(np.uint64) | high.astype(np.uint64) << _HALF
    else:
        sizes = shape or (1,)
        d = split_dimension(sizes)
        half = (*sizes[:d], -(-sizes[d] // 2), *sizes[d + 1 :])
        blocks = prod(half)
        pairs = [x.reshape(half) for x in threefry_pairs(words, blocks)]
        doubled = np.stack(pairs, axis=d + 1).reshape(*half[:d], 2 * half[d], *half[d + 1 :])
        joined = np.take(doubled, range(sizes[d]), axis=d)
    counter = (int(words[2]) + (int(words[3]) << 32) + blocks) % 2**64
    state = np.array([*words[:2], counter & 0xFFFFFFFF, counter >> 32], np.uint32)
    return state, joined.astype(dtype).reshape(shape)
