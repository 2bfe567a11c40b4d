"""What the generators of `counter_generators` compute with: on arrays, and on NumPy arrays.

Words are numbers of 32 bits, scalars or arrays, that wrap around.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final, Protocol

import numpy as np

from dovetail._core.basis.elementwise import convert_element_type, mul_p
from dovetail._core.basis.operands import make_literal
from dovetail._core.basis.structural import broadcast_in_dim, reshape
from dovetail._core.ir.avals import aval_of, shape_of
from dovetail._core.ops.elementwise import bitwise
from dovetail._core.ops.elementwise.arithmetic import add_p
from dovetail._core.ops.random.threefry import UINT32, join_words
from dovetail._core.ops.shape.creation import iota_like
from dovetail._core.ops.shape.joining import concatenate_p
from dovetail._core.ops.shape.slicing import slice_dimension

Shape = tuple[int, ...]
_UINT64: Final = np.dtype(np.uint64)


class Arithmetic(Protocol):
    """Operations on words."""

    def word(self, number: int, /) -> Any:
        """A known word."""

    def add(self, a: Any, b: Any, /) -> Any:
        """The sum."""

    def xor(self, a: Any, b: Any, /) -> Any:
        """The bits that differ."""

    def turn(self, a: Any, distance: int, /) -> Any:
        """The bits rotated to the left."""

    def product(self, a: Any, factor: int, /) -> tuple[Any, Any]:
        """The high and the low word of a product."""

    def numbers(self, shape: Shape, /) -> tuple[Any, Any]:
        """The numbers 0, 1, 2, ... over an array of a shape: their high and their low words."""

    def halves(self, value: Any, /) -> tuple[Any, Any]:
        """The high and the low word of an integer; a narrow one has the high word 0."""

    def parts(self, key: Any, count: int, /) -> list[Any]:
        """The words of a raw key."""

    def columns(self, words: Sequence[Any], shape: Shape, /) -> Any:
        """Words of a shape, or scalars, next to each other along a new last dimension."""

    def narrow(self, a: Any, bit_width: int, /) -> Any:
        """The low bits, as unsigned integers."""

    def wide(self, high: Any, low: Any, /) -> Any:
        """Unsigned integers of 64 bits."""


class OnArrays:
    """Operations on arrays and tracers."""

    def word(self, number: int, /) -> Any:
        return make_literal(number, UINT32)

    def add(self, a: Any, b: Any, /) -> Any:
        return add_p.bind(a, b)

    def xor(self, a: Any, b: Any, /) -> Any:
        return bitwise.xor_p.bind(a, b)

    def turn(self, a: Any, distance: int, /) -> Any:
        left = bitwise.shift_left_p.bind(a, self.word(distance))
        return bitwise.or_p.bind(left, _shifted(a, self.word(32 - distance)))

    def product(self, a: Any, factor: int, /) -> tuple[Any, Any]:
        full = mul_p.bind(convert_element_type(a, _UINT64), make_literal(factor, _UINT64))
        return self._split(full)

    def numbers(self, shape: Shape, /) -> tuple[Any, Any]:
        size = prod(shape)
        if size <= 2**32:
            return self.word(0), reshape(iota_like(UINT32, (size,), 0), shape)
        return self._split(reshape(iota_like(_UINT64, (size,), 0), shape))

    def halves(self, value: Any, /) -> tuple[Any, Any]:
        if aval_of(value).dtype.itemsize == 8:
            return self._split(convert_element_type(value, _UINT64))
        return self.word(0), convert_element_type(value, UINT32)

    def parts(self, key: Any, count: int, /) -> list[Any]:
        return [reshape(slice_dimension(key, i, i + 1, 0), ()) for i in range(count)]

    def columns(self, words: Sequence[Any], shape: Shape, /) -> Any:
        spread = [w if shape_of(w) == shape else broadcast_in_dim(w, shape, ()) for w in words]
        columns = [reshape(w, (*shape, 1)) for w in spread]
        return concatenate_p.bind(*columns, dimension=len(shape))

    def narrow(self, a: Any, bit_width: int, /) -> Any:
        return convert_element_type(a, np.dtype(f"uint{bit_width}"))

    def wide(self, high: Any, low: Any, /) -> Any:
        return join_words(high, low)

    def _split(self, a: Any) -> tuple[Any, Any]:
        high = _shifted(a, make_literal(32, _UINT64))
        return convert_element_type(high, UINT32), convert_element_type(a, UINT32)


def _shifted(a: Any, distance: Any) -> Any:
    return bitwise.shift_right_logical_p.bind(a, distance)


class OnNumpy:
    """Operations on NumPy arrays, for tests."""

    def word(self, number: int, /) -> Any:
        return np.array(number, UINT32)

    def add(self, a: Any, b: Any, /) -> Any:
        return self._low(np.asarray(a, _UINT64) + np.asarray(b, _UINT64))

    def xor(self, a: Any, b: Any, /) -> Any:
        return np.bitwise_xor(a, b)

    def turn(self, a: Any, distance: int, /) -> Any:
        doubled = np.asarray(a, _UINT64) * np.uint64(2**32 + 1)
        return self._low(doubled >> np.uint64(32 - distance))

    def product(self, a: Any, factor: int, /) -> tuple[Any, Any]:
        return self._split(np.asarray(a, _UINT64) * np.uint64(factor))

    def numbers(self, shape: Shape, /) -> tuple[Any, Any]:
        return self._split(np.arange(prod(shape), dtype=_UINT64).reshape(shape))

    def halves(self, value: Any, /) -> tuple[Any, Any]:
        number = int(value) % 2 ** (64 if value.dtype.itemsize == 8 else 32)
        return self._split(np.array(number, _UINT64))

    def parts(self, key: Any, count: int, /) -> list[Any]:
        return [key[i] for i in range(count)]

    def columns(self, words: Sequence[Any], shape: Shape, /) -> Any:
        return np.stack([np.broadcast_to(w, shape) for w in words], axis=-1)

    def narrow(self, a: Any, bit_width: int, /) -> Any:
        return np.asarray(a).astype(f"uint{bit_width}")

    def wide(self, high: Any, low: Any, /) -> Any:
        return np.asarray(high, _UINT64) << np.uint64(32) | np.asarray(low, _UINT64)

    def _split(self, a: Any) -> tuple[Any, Any]:
        return self._low(a >> np.uint64(32)), self._low(a)

    def _low(self, a: Any) -> Any:
        return np.asarray(a & np.uint64(2**32 - 1)).astype(UINT32)
