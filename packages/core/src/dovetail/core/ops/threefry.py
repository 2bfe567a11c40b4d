"""The counter-based random generator Threefry-2x32, as a primitive and as a key implementation.

Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011; 20 rounds, the
constants of the Random123 library. Streams equal those published as ``threefry2x32`` by JAX for the same seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail.core.base import config
from dovetail.core.basis.elementwise import (
    Elementwise,
    broadcast_shapes,
    convert_element_type,
    mul,
)
from dovetail.core.basis.families import NoGradient
from dovetail.core.basis.operands import literal
from dovetail.core.basis.structural import broadcast_in_dim, reshape, transpose
from dovetail.core.ir.avals import aval_of, make_aval, shape_of
from dovetail.core.ops import bitwise
from dovetail.core.ops.creation import iota_like
from dovetail.core.ops.joining import concatenate
from dovetail.core.ops.slicing import slice_in_dim

if TYPE_CHECKING:
    from dovetail.core.hlo.builder import Builder

_UINT32: Final = np.dtype(np.uint32)
_PARITY: Final = 0x1BD11BDA
_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
Shape = tuple[int, ...]


class Threefry2x32(NoGradient, Elementwise):
    """Two words of random bits for two words of key and two of counter, elementwise."""

    name = "threefry2x32"
    multiple_results = True
    kinds = "u"

    def abstract(self, *avals: Any, **params: Any) -> Any:
        if len(avals) != 4 or any(a.dtype != _UINT32 for a in avals):
            raise TypeError(
                "threefry2x32 takes four arrays of uint32 (two words of key, two of counter), got "
                f"{', '.join(a.short_name() for a in avals)}"
            )
        out = make_aval(broadcast_shapes(self.name, [a.shape for a in avals]), _UINT32)
        return [out, out]

    def reference(self, *args: Any, **params: Any) -> Any:
        key1, key2, x1, x2 = (np.asarray(a, np.uint32) for a in np.broadcast_arrays(*args))
        schedule = (key1, key2, key1 ^ key2 ^ np.uint32(_PARITY))
        with np.errstate(over="ignore"):
            x1, x2 = x1 + schedule[0], x2 + schedule[1]
            for group in range(5):
                for distance in _ROTATIONS[group % 2]:
                    x1 = x1 + x2
                    x2 = (x2 << np.uint32(distance)) | (x2 >> np.uint32(32 - distance))
                    x2 = x1 ^ x2
                x1 = x1 + schedule[(group + 1) % 3]
                x2 = x2 + schedule[(group + 2) % 3] + np.uint32(group + 1)
        return [x1, x2]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        outs, dim = super().batch(args, dims, **params)
        return outs, [dim, dim]

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        out = context.avals_out[0]
        spread = [
            v
            if a.shape == out.shape
            else context.broadcast_in_dim(v, out, tuple(range(out.ndim)) if a.shape else ())
            for v, a in zip(values, context.avals_in, strict=True)
        ]
        key1, key2, x1, x2 = spread

        def constant(value: int) -> Any:
            return context.constant(np.asarray(value, np.uint32), out)

        def op(name: str, a: Any, b: Any) -> Any:
            return context.op(name, [a, b], out)

        schedule = (key1, key2, op("xor", op("xor", key1, key2), constant(_PARITY)))
        # The rounds are written out: XLA:CPU runs a rolled loop over whole arrays eight times slower.
        x1, x2 = op("add", x1, key1), op("add", x2, key2)
        for group in range(5):
            for distance in _ROTATIONS[group % 2]:
                x1 = op("add", x1, x2)
                left = op("shift_left", x2, constant(distance))
                right = op("shift_right_logical", x2, constant(32 - distance))
                x2 = op("xor", x1, op("or", left, right))
            x1 = op("add", x1, schedule[(group + 1) % 3])
            x2 = op("add", op("add", x2, schedule[(group + 2) % 3]), constant(group + 1))
        return [x1, x2]


threefry2x32_p: Final = Threefry2x32()


def _words(key: Any) -> tuple[Any, Any]:
    """The two words of a raw key, as scalars."""
    return reshape(slice_in_dim(key, 0, 1), ()), reshape(slice_in_dim(key, 1, 2), ())


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """Random bits for an array of counters, which are taken in two halves as pairs.

    Args:
        keypair: a raw key, or a pair of uint32 scalars.
        count: counters, uint32.

    Returns:
        uint32, of the shape of `count`.
    """
    key1, key2 = keypair if isinstance(keypair, (tuple, list)) else _words(keypair)
    shape = shape_of(count)
    size = prod(shape)
    flat = reshape(count, (size,))
    if size % 2:
        flat = concatenate([flat, np.zeros(1, np.uint32)], 0)
    half = shape_of(flat)[0] // 2
    x1, x2 = slice_in_dim(flat, 0, half), slice_in_dim(flat, half, 2 * half)
    out = concatenate(threefry2x32_p.bind(key1, key2, x1, x2), 0)
    return reshape(slice_in_dim(out, 0, size) if size % 2 else out, shape)


def seed(value: Any) -> Any:
    """The raw key of an integer seed: its high and its low word."""
    aval = aval_of(value)
    if aval.dtype.itemsize > 4:
        high = bitwise.shift_right_logical_p.bind(value, literal(32, aval.dtype))
        high = convert_element_type(high, _UINT32)
    else:
        high = literal(0, _UINT32)
    low = convert_element_type(value, _UINT32)
    return concatenate([_as_vector(high), _as_vector(low)], 0)


def _as_vector(word: Any) -> Any:
    return broadcast_in_dim(word, (1,), ())


def _counters(shape: Shape) -> tuple[Any, Any]:
    """High and low words of the numbers 0, 1, 2, ... over an array of that shape."""
    size = prod(shape)
    if size > 2**32:
        raise ValueError(f"random numbers of shape {shape}: more than 2**32 elements in one call")
    return literal(0, _UINT32), reshape(iota_like(_UINT32, (size,), 0), shape)


def split(key: Any, shape: Shape) -> Any:
    """Raw keys of that shape made from one."""
    if not config.threefry_partitionable.value:
        count = prod(shape) * 2
        return reshape(threefry_2x32(key, iota_like(_UINT32, (count,), 0)), (*shape, 2))
    first, second = threefry2x32_p.bind(*_words(key), *_counters(shape))
    return concatenate([reshape(w, (*shape, 1)) for w in (first, second)], len(shape))


def fold_in(key: Any, data: Any) -> Any:
    """The raw key made from one and a uint32 scalar."""
    return threefry_2x32(key, seed(data))


def random_bits(key: Any, bit_width: int, shape: Shape) -> Any:
    """Unsigned integers of `bit_width` bits made from a raw key."""
    if bit_width not in (8, 16, 32, 64):
        raise TypeError(f"random_bits makes integers of 8, 16, 32 or 64 bits, not of {bit_width}")
    dtype = np.dtype(f"uint{bit_width}")
    if not config.threefry_partitionable.value:
        return _random_bits_in_sequence(key, bit_width, shape, dtype)
    high, low = threefry2x32_p.bind(*_words(key), *_counters(shape))
    if bit_width == 64:
        return _join_words(high, low)
    return convert_element_type(bitwise.xor_p.bind(high, low), dtype)


def _join_words(high: Any, low: Any) -> Any:
    wide = np.dtype(np.uint64)
    shifted = bitwise.shift_left_p.bind(convert_element_type(high, wide), literal(32, wide))
    return bitwise.or_p.bind(shifted, convert_element_type(low, wide))


def _random_bits_in_sequence(key: Any, bit_width: int, shape: Shape, dtype: Any) -> Any:
    """The stream of the option ``threefry_partitionable=False``: one run of counters over all words."""
    size = prod(shape)
    words = -(-size * bit_width // 32)
    bits = threefry_2x32(key, iota_like(_UINT32, (words,), 0))
    if bit_width == 64:
        bits = _join_words(slice_in_dim(bits, 0, size), slice_in_dim(bits, size, 2 * size))
    elif bit_width < 32:
        pieces = 32 // bit_width
        place = iota_like(_UINT32, (pieces, 1), 0)
        distance = mul(place, literal(bit_width, _UINT32))
        spread = broadcast_in_dim(bits, (1, words), (1,))
        shifted = bitwise.shift_right_logical_p.bind(spread, distance)
        mask = literal(2**bit_width - 1, _UINT32)
        narrow = convert_element_type(bitwise.and_p.bind(shifted, mask), dtype)
        bits = slice_in_dim(reshape(transpose(narrow, (1, 0)), (words * pieces,)), 0, size)
    return reshape(bits, shape)
