"""The counter-based random generator Philox-4x32 as a primitive, and XLA's bit generators made of
such primitives.

Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011; 10
rounds, the constants of the Random123 library.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.basis.elementwise import Elementwise, broadcast_shapes, convert_element_type
from dovetail._core.basis.families import NoGradient
from dovetail._core.basis.operands import make_literal
from dovetail._core.basis.structural import broadcast_in_dim, reshape
from dovetail._core.ir.avals import make_aval, shape_of
from dovetail._core.ops.elementwise.arithmetic import add_p
from dovetail._core.ops.elementwise.comparison import lt_p
from dovetail._core.ops.random.bit_generator_reference import (
    INCREMENTS,
    MULTIPLIERS,
    ROUNDS,
    philox4x32,
    split_dimension,
)
from dovetail._core.ops.random.threefry import UINT32, join_words, threefry2x32_p
from dovetail._core.ops.shape.creation import iota_like
from dovetail._core.ops.shape.joining import concatenate_p
from dovetail._core.ops.shape.slicing import slice_dimension

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

Shape = tuple[int, ...]


class Philox4x32(NoGradient, Elementwise):
    """Four words of random bits from two words of key and four of counter, elementwise."""

    name = "philox4x32"
    multiple_results = True
    kinds = "u"

    def abstract(self, *avals: Any, **params: Any) -> Any:
        if len(avals) != 6 or any(a.dtype != UINT32 for a in avals):
            raise TypeError(
                f"{self.name} takes six arrays of uint32 (two words of key, four of counter), got "
                f"{', '.join(a.short_name() for a in avals)}"
            )
        out = make_aval(broadcast_shapes(self.name, [a.shape for a in avals]), UINT32)
        return [out] * 4

    def reference(self, *args: Any, **params: Any) -> Any:
        return philox4x32(*np.broadcast_arrays(*args))

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        outs, dim = super().batch(args, dims, **params)
        return outs, [dim] * 4

    def lower(self, context: Builder, *values: Any, **params: Any) -> Any:
        out = context.avals_out[0]
        wide = out.update(dtype=np.dtype(np.uint64))
        key1, key2, *x = (
            v
            if a.shape == out.shape
            else context.broadcast_in_dim(v, out, tuple(range(out.ndim)) if a.shape else ())
            for v, a in zip(values, context.avals_in, strict=True)
        )
        half = context.constant(np.asarray(32, np.uint64), wide)

        def product(word: Any, multiplier: int) -> tuple[Any, Any]:
            full = context.mul(
                context.convert(word, out, wide),
                context.constant(np.asarray(multiplier, np.uint64), wide),
                wide,
            )
            high = context.op("shift_right_logical", [full, half], wide)
            return context.convert(high, wide, out), context.convert(full, wide, out)

        def xor(a: Any, b: Any, c: Any) -> Any:
            return context.op("xor", [context.op("xor", [a, b], out), c], out)

        for _ in range(ROUNDS):
            high1, low1 = product(x[0], MULTIPLIERS[0])
            high2, low2 = product(x[2], MULTIPLIERS[1])
            x = [xor(high2, x[1], key1), low2, xor(high1, x[3], key2), low1]
            key1, key2 = (
                context.add(k, context.constant(np.asarray(i, np.uint32), out), out)
                for k, i in zip((key1, key2), INCREMENTS, strict=True)
            )
        return x


philox4x32_p: Final = Philox4x32()


def _plus(low: Any, high: Any, number: Any) -> tuple[Any, Any, Any]:
    """A two-word number plus a one-word number, and the carry."""
    total = add_p.bind(low, number)
    carry = convert_element_type(lt_p.bind(total, number), UINT32)
    upper = add_p.bind(high, carry)
    return total, upper, convert_element_type(lt_p.bind(upper, carry), UINT32)


def _as_columns(words: Any, rank: int) -> list[Any]:
    """The four words of states of shape ``(n, 4)``, each as shape ``(n, 1, ..., 1)``."""
    count = shape_of(words)[0]
    return [reshape(slice_dimension(words, i, i + 1, 1), (count, *[1] * rank)) for i in range(4)]


def generate(words: Any, shape: Shape, dtype: Any, threefry: bool) -> tuple[Any, Any]:
    """The next states, and arrays of unsigned integers, made from states of shape ``(n, 4)``.

    They equal what XLA's bit generators make from each state.
    """
    count, size = shape_of(words)[0], prod(shape)
    wide = dtype.itemsize == 8
    if not size:
        return words, broadcast_in_dim(make_literal(0, dtype), (count, *shape), ())
    sizes = shape or (1,)
    if not threefry:
        word_count = size * (2 if wide else 1)
        blocks: Shape = (-(-word_count // 4),)
    elif wide:
        blocks = (size,)
    else:
        d = split_dimension(sizes)
        blocks = (*sizes[:d], -(-sizes[d] // 2), *sizes[d + 1 :])
    key1, key2, low, high = _as_columns(words, len(blocks))
    number = reshape(iota_like(UINT32, (prod(blocks),), 0), (1, *blocks))
    counter1, counter2, carried = _plus(low, high, number)
    if threefry:
        first, second = threefry2x32_p.bind(key1, key2, counter1, counter2)
        if wide:
            bits = join_words(second, first)
        else:
            pairs = [
                reshape(x, (count, *blocks[: d + 1], 1, *blocks[d + 1 :])) for x in (first, second)
            ]
            both = concatenate_p.bind(*pairs, dimension=d + 2)
            doubled = reshape(both, (count, *blocks[:d], 2 * blocks[d], *blocks[d + 1 :]))
            bits = slice_dimension(doubled, 0, sizes[d], d + 1)
    else:
        counter3, counter4, _ = _plus(key1, key2, carried)
        four = philox4x32_p.bind(key1, key2, counter1, counter2, counter3, counter4)
        if wide:
            parts = [join_words(four[i + 1], four[i]) for i in (0, 2)]
        else:
            parts = [convert_element_type(x, dtype) for x in four]
        columns = [reshape(x, (count, *blocks, 1)) for x in parts]
        flat = reshape(concatenate_p.bind(*columns, dimension=2), (count, len(parts) * blocks[0]))
        bits = slice_dimension(flat, 0, size, 1)
    step = make_literal(prod(blocks), UINT32)
    next1, next2, _ = _plus(low, high, step)
    state = [reshape(x, (count, 1)) for x in (key1, key2, next1, next2)]
    return (
        concatenate_p.bind(*state, dimension=1),
        reshape(convert_element_type(bits, dtype), (count, *shape)),
    )
