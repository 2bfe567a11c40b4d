"""The counter-based random generator Threefry-2x32, as a primitive and as a key implementation.

Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011; 20
rounds, the constants of the Random123 library. Streams equal those that JAX publishes as
``threefry2x32`` for the same seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import config
from dovetail._core.basis.elementwise import (
    Elementwise,
    broadcast_shapes,
    convert_element_type,
    mul,
)
from dovetail._core.basis.families import NoGradient
from dovetail._core.basis.operands import make_literal
from dovetail._core.basis.structural import broadcast_in_dim, full, reshape
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ops.elementwise import bitwise
from dovetail._core.ops.elementwise.arithmetic import add_p
from dovetail._core.ops.random import threefry_reference
from dovetail._core.ops.random.threefry_reference import PARITY, ROTATIONS
from dovetail._core.ops.shape.creation import iota_like
from dovetail._core.ops.shape.joining import concatenate_p
from dovetail._core.ops.shape.slicing import slice_dimension

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

UINT32: Final = np.dtype(np.uint32)
#: The number of counters that one word can hold.
_COUNTERS: Final = 2**32
#: From here on an odd number of counters is divided into an even one and the last.
_DIVIDED: Final = 2**14
Shape = tuple[int, ...]


class Threefry2x32(NoGradient, Elementwise):
    """Two words of random bits from two words of key and two of counter, elementwise."""

    name = "threefry2x32"
    multiple_results = True
    kinds = "u"

    def abstract(self, *avals: Any, **params: Any) -> Any:
        if len(avals) != 4 or any(a.dtype != UINT32 for a in avals):
            raise TypeError(
                f"{self.name} takes four arrays of uint32 (two words of key, two of counter), got "
                f"{', '.join(a.short_name() for a in avals)}"
            )
        out = make_aval(broadcast_shapes(self.name, [a.shape for a in avals]), UINT32)
        return [out, out]

    def reference(self, *args: Any, **params: Any) -> Any:
        return list(threefry_reference.threefry2x32(*np.broadcast_arrays(*args)))

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

        schedule = (key1, key2, op("xor", op("xor", key1, key2), constant(PARITY)))
        # The rounds are unrolled: XLA:CPU is eight times slower in a loop over whole arrays.
        x1, x2 = op("add", x1, key1), op("add", x2, key2)
        for group in range(5):
            for distance in ROTATIONS[group % 2]:
                x1 = op("add", x1, x2)
                left = op("shift_left", x2, constant(distance))
                right = op("shift_right_logical", x2, constant(32 - distance))
                x2 = op("xor", x1, op("or", left, right))
            x1 = op("add", x1, schedule[(group + 1) % 3])
            x2 = op("add", op("add", x2, schedule[(group + 2) % 3]), constant(group + 1))
        return [x1, x2]


threefry2x32_p: Final = Threefry2x32()


def _join(parts: Sequence[Any], dimension: int) -> Any:
    return concatenate_p.bind(*parts, dimension=dimension)


def _words(key: Any) -> tuple[Any, Any]:
    """The two words of a raw key, as scalars."""
    first, second = (reshape(slice_dimension(key, i, i + 1, 0), ()) for i in (0, 1))
    return first, second


def _as_vector(word: Any) -> Any:
    return broadcast_in_dim(word, (1,), ())


def threefry_2x32(keypair: Any, count: Any) -> Any:
    """Random bits for an array of counters; its first half is paired with the second.

    Args:
        keypair: a raw key, or a pair of uint32 scalars.
        count: counters, uint32.

    Returns:
        An array of uint32, of the shape of `count`.

    Example:
        >>> import numpy as np
        >>> from dovetail._core.ops.random.threefry import threefry_2x32
        >>> threefry_2x32(np.zeros(2, np.uint32), np.zeros(2, np.uint32)).tolist()
        [1797259609, 2579123966]
    """
    key1, key2 = keypair if isinstance(keypair, (tuple, list)) else _words(keypair)
    shape = shape_of(count)
    size = prod(shape)
    if not size:
        return count
    _check_run(size)
    flat = reshape(count, (size,))
    if size % 2:
        flat = _join([flat, full((1,), 0, UINT32)], 0)
    half = shape_of(flat)[0] // 2
    x1, x2 = slice_dimension(flat, 0, half, 0), slice_dimension(flat, half, 2 * half, 0)
    out = _join(threefry2x32_p.bind(key1, key2, x1, x2), 0)
    return reshape(slice_dimension(out, 0, size, 0), shape)


def seed(value: Any) -> Any:
    """The raw key for an integer seed: its high and its low word."""
    dtype = aval_of(value).dtype
    if dtype.itemsize > 4:
        high = bitwise.shift_right_logical_p.bind(value, make_literal(32, dtype))
        high = convert_element_type(high, UINT32)
    else:
        high = make_literal(0, UINT32)
    return _join([_as_vector(high), _as_vector(convert_element_type(value, UINT32))], 0)


def _check_run(size: int) -> None:
    """Raise if one run of counters does not have as many."""
    if size > _COUNTERS:
        raise ValueError(
            f"threefry_2x32 takes up to 2**32 counters, got {size}; switch "
            "threefry_partitionable on, or split the key and make random numbers in parts"
        )


def _run(key: Any, size: int) -> Any:
    """A vector of words of bits, made from one run of counters."""
    _check_run(size)
    return threefry_2x32(key, iota_like(UINT32, (size,), 0))


def _bits_of_counters(key: Any, shape: Shape, start: int = 0) -> tuple[Any, Any]:
    """Two words of bits for each of the counters from `start` on over an array of that shape."""
    size = prod(shape)
    high: Any = make_literal(0, UINT32)
    if size <= _COUNTERS:
        low = reshape(iota_like(UINT32, (size,), 0), shape)
        if start:
            low = add_p.bind(low, make_literal(start, UINT32))
    else:
        wide = np.dtype(np.uint64)
        number = reshape(iota_like(wide, (size,), 0), shape)
        high = bitwise.shift_right_logical_p.bind(number, make_literal(32, wide))
        high, low = (convert_element_type(x, UINT32) for x in (high, number))
    high, low = threefry2x32_p.bind(*_words(key), high, low)
    return high, low


def split(key: Any, shape: Shape) -> Any:
    """Raw keys of the requested shape, derived from one."""
    if not config.threefry_partitionable.value:
        return reshape(_run(key, prod(shape) * 2), (*shape, 2))
    words = _bits_of_counters(key, shape)
    return _join([reshape(w, (*shape, 1)) for w in words], len(shape))


def fold_in(key: Any, data: Any) -> Any:
    """The raw key derived from one and a uint32 scalar."""
    words = threefry2x32_p.bind(*_words(key), make_literal(0, UINT32), data)
    return _join([_as_vector(w) for w in words], 0)


def random_bits(key: Any, bit_width: int, shape: Shape) -> Any:
    """Unsigned integers of `bit_width` bits made from a raw key."""
    dtype = np.dtype(f"uint{bit_width}")
    if not config.threefry_partitionable.value:
        return _bits_in_sequence(key, bit_width, shape, dtype)
    size = prod(shape)
    if type(size) is int and size % 2 and _DIVIDED < size <= _COUNTERS:
        # XLA:CPU is ten times slower in a loop with so much in it over an odd number of elements.
        parts = [(size - 1, 0), (1, size - 1)]
        return reshape(_join([_bits(key, dtype, (n,), start) for n, start in parts], 0), shape)
    return _bits(key, dtype, shape)


def _bits(key: Any, dtype: Any, shape: Shape, start: int = 0) -> Any:
    high, low = _bits_of_counters(key, shape, start)
    if dtype.itemsize == 8:
        return join_words(high, low)
    return convert_element_type(bitwise.xor_p.bind(high, low), dtype)


def join_words(high: Any, low: Any) -> Any:
    """64-bit numbers from two words."""
    wide = np.dtype(np.uint64)
    shifted = bitwise.shift_left_p.bind(convert_element_type(high, wide), make_literal(32, wide))
    return bitwise.or_p.bind(shifted, convert_element_type(low, wide))


def _bits_in_sequence(key: Any, bit_width: int, shape: Shape, dtype: Any) -> Any:
    """The stream of ``threefry_partitionable=False``: one run of counters over all words."""
    size = prod(shape)
    words = -(-size * bit_width // 32)
    bits = _run(key, words)
    if bit_width == 64:
        bits = join_words(
            slice_dimension(bits, 0, size, 0), slice_dimension(bits, size, 2 * size, 0)
        )
    elif bit_width < 32:
        pieces = 32 // bit_width
        place = iota_like(UINT32, (1, pieces), 1)
        distance = mul(place, make_literal(bit_width, UINT32))
        # Each word is split from its low end; conversion drops the bits above.
        shifted = bitwise.shift_right_logical_p.bind(reshape(bits, (words, 1)), distance)
        narrow = convert_element_type(shifted, dtype)
        bits = slice_dimension(reshape(narrow, (words * pieces,)), 0, size, 0)
    return reshape(bits, shape)
