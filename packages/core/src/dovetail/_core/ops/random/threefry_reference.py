"""Threefry on NumPy arrays: slow and plain, to test the compiled form against.

The functions are those of a `KeyImplementation`; raw keys are arrays of two uint32.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from dovetail._core.base import config

NDArray = np.ndarray[Any, Any]
Shape = tuple[int, ...]

PARITY: Final = 0x1BD11BDA
ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))


def threefry2x32(key1: Any, key2: Any, x1: Any, x2: Any) -> tuple[NDArray, NDArray]:
    """Two words of random bits from two words of key and two of counter."""
    key1, key2, x1, x2 = (np.asarray(a, np.uint32) for a in (key1, key2, x1, x2))
    schedule = (key1, key2, key1 ^ key2 ^ np.uint32(PARITY))
    with np.errstate(over="ignore"):
        x1, x2 = x1 + schedule[0], x2 + schedule[1]
        for group in range(5):
            for distance in ROTATIONS[group % 2]:
                x1 = x1 + x2
                x2 = (x2 << np.uint32(distance)) | (x2 >> np.uint32(32 - distance))
                x2 = x1 ^ x2
            x1 = x1 + schedule[(group + 1) % 3]
            x2 = x2 + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return x1, x2


def _of_counters(key: NDArray, count: int) -> tuple[NDArray, NDArray]:
    """The two words for each of the counters from 0 to below `count`."""
    return threefry2x32(key[0], key[1], np.uint32(0), np.arange(count, dtype=np.uint32))


def _of_halves(key: NDArray, count: int) -> NDArray:
    """Words for the counters from 0 to below `count`; the first half is paired with the second."""
    counters = np.zeros(count + count % 2, np.uint32)
    counters[:count] = np.arange(count)
    return np.concatenate(threefry2x32(key[0], key[1], *np.split(counters, 2)))[:count]


def seed(value: NDArray) -> NDArray:
    """The raw key for an integer seed."""
    number = int(value) % 2 ** (64 if value.dtype.itemsize == 8 else 32)
    return np.array([number >> 32, number % 2**32], np.uint32)


def split(key: NDArray, shape: Shape) -> NDArray:
    """Raw keys of that shape."""
    count = prod(shape)
    if not config.threefry_partitionable.value:
        return _of_halves(key, 2 * count).reshape(*shape, 2)
    return np.stack(_of_counters(key, count), axis=-1).reshape(*shape, 2)


def fold_in(key: NDArray, data: NDArray) -> NDArray:
    """The raw key for a raw key and a number."""
    return np.array(threefry2x32(key[0], key[1], np.uint32(0), data))


def random_bits(key: NDArray, bit_width: int, shape: Shape) -> NDArray:
    """Unsigned integers of that many bits."""
    size, dtype = prod(shape), np.dtype(f"uint{bit_width}")
    if not config.threefry_partitionable.value:
        words = _of_halves(key, -(-size * bit_width // 32))
        if bit_width == 64:
            low, high = words[size:].astype(np.uint64), words[:size].astype(np.uint64)
            return (high << np.uint64(32) | low).reshape(shape)
        return words.astype("<u4").view(dtype)[:size].reshape(shape)
    high, low = _of_counters(key, size)
    if bit_width == 64:
        bits = high.astype(np.uint64) << np.uint64(32) | low
    else:
        bits = (high ^ low).astype(dtype)
    return bits.reshape(shape)
