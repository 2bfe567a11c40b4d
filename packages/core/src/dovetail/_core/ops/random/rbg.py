"""Random keys for the generator of a backend: ``rbg`` and ``unsafe_rbg``.

A raw key is a state of `rng_bit_generator`. The streams equal those that JAX has for the same seeds
on the same backend.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from dovetail._core.basis.structural import reshape
from dovetail._core.ops.elementwise import bitwise
from dovetail._core.ops.random import bit_generator_reference, threefry, threefry_reference
from dovetail._core.ops.random.random_bits import RandomAlgorithm, rng_bit_generator_p
from dovetail._core.ops.shape.joining import concatenate_p
from dovetail._core.ops.shape.slicing import slice_dimension

NDArray = np.ndarray[Any, Any]
Shape = tuple[int, ...]
_UINT32: Final = np.dtype(np.uint32)
#: Of so many raw keys that a backend generates, one is used.
_STRIDE: Final = 10


def _generated(key: Any, shape: Shape, dtype: Any = _UINT32) -> Any:
    return rng_bit_generator_p.bind(
        key,
        algorithm=RandomAlgorithm.RNG_DEFAULT,
        dtype=dtype,
        out_sharding=None,
        shape=shape,
    )[1]


def _join(parts: list[Any], rank: int) -> Any:
    return concatenate_p.bind(*parts, dimension=rank)


def _halves(key: Any) -> list[Any]:
    return [slice_dimension(key, i, i + 2, 0) for i in (0, 2)]


class Rbg:
    """Bits from the backend's generator; keys are made by Threefry, for both halves of a state."""

    def seed(self, value: Any, /) -> Any:
        """The raw key of an integer scalar."""
        return _join([threefry.seed(value)] * 2, 0)

    def split(self, key: Any, shape: Shape, /) -> Any:
        """Raw keys of that shape, made from one."""
        return _join([threefry.split(half, shape) for half in _halves(key)], len(shape))

    def fold_in(self, key: Any, data: Any, /) -> Any:
        """The raw key made from one and a uint32 scalar."""
        return _join([threefry.fold_in(half, data) for half in _halves(key)], 0)

    def random_bits(self, key: Any, bit_width: int, shape: Shape, /) -> Any:
        """Unsigned integers of `bit_width` bits made from a raw key."""
        return _generated(key, shape, np.dtype(f"uint{bit_width}"))


class UnsafeRbg(Rbg):
    """Bits and keys from the backend's generator: nothing is known of how independent they are."""

    def split(self, key: Any, shape: Shape, /) -> Any:
        """Raw keys of that shape, made from one."""
        count = _STRIDE * prod(shape)
        keys = slice_dimension(_generated(key, (count, 4)), 0, count, 0, _STRIDE)
        return reshape(keys, (*shape, 4))

    def fold_in(self, key: Any, data: Any, /) -> Any:
        """The raw key made from one and a uint32 scalar."""
        made = _generated(self.seed(data), (_STRIDE, 4))
        last = reshape(slice_dimension(made, _STRIDE - 1, _STRIDE, 0), (4,))
        return bitwise.xor_p.bind(key, last)


def _generated_reference(key: NDArray, shape: Shape, dtype: Any = _UINT32) -> NDArray:
    return bit_generator_reference.generate(key, shape, dtype, threefry=False)[1]


class RbgReference:
    """The functions of `Rbg` on NumPy arrays, with the generator that CPUs have."""

    def seed(self, value: Any, /) -> Any:
        """The raw key of an integer."""
        return np.tile(threefry_reference.seed(value), 2)

    def split(self, key: Any, shape: Shape, /) -> Any:
        """Raw keys of that shape."""
        halves = [threefry_reference.split(half, shape) for half in (key[:2], key[2:])]
        return np.concatenate(halves, axis=-1)

    def fold_in(self, key: Any, data: Any, /) -> Any:
        """The raw key for a raw key and a number."""
        return np.concatenate([threefry_reference.fold_in(h, data) for h in (key[:2], key[2:])])

    def random_bits(self, key: Any, bit_width: int, shape: Shape, /) -> Any:
        """Unsigned integers of that many bits."""
        return _generated_reference(key, shape, np.dtype(f"uint{bit_width}"))


class UnsafeRbgReference(RbgReference):
    """The functions of `UnsafeRbg` on NumPy arrays."""

    def split(self, key: Any, shape: Shape, /) -> Any:
        """Raw keys of that shape."""
        return _generated_reference(key, (_STRIDE * prod(shape), 4))[::_STRIDE].reshape(*shape, 4)

    def fold_in(self, key: Any, data: Any, /) -> Any:
        """The raw key for a raw key and a number."""
        return key ^ _generated_reference(self.seed(data), (_STRIDE, 4))[-1]
