"""Random numbers in smaller programs, which compile faster.

Threefry's rounds are some 150 operations, which XLA compiles again for each key that is split, for
each array that is drawn, and for each of the operations that it fuses them with. Numbers are
computed by a kernel, or few of them in a loop over groups of rounds. The bits are the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable, ShapedArray
from dovetail.extend.core import primitives
from dovetail_cpu import kernel_library, kernels

TABLE: Final = LoweringTable()

#: Larger results are left to XLA, which does not store bits before it uses them.
FEW: Final = 2**14
#: The same with AVX-512, which rotates bits by one instruction. XLA uses none of its own accord.
MANY: Final = 2**22
#: XLA makes one function of a loop whose variables take at most as many bytes. Of other loops it
#: calls every operation.
SMALL_LOOP: Final = 1024

_UINT32: Final = np.dtype(np.uint32)
_SCALAR: Final = ShapedArray((), _UINT32)
_PARITY: Final = 0x1BD11BDA
_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_GROUPS: Final = 5


@TABLE.rule("random_bits")
def random_bits(context: Any, keys: Any, **params: Any) -> Any:
    """Random integers, as many for each key as the result has room for.

    What is only sorted by has to be in memory, or a kernel that sorts makes it.
    """
    only_sorted = [eqn.primitive for eqn in context.uses()] == [primitives.sort_p]
    most = 2**32 if only_sorted else most_by_kernel()
    return _by_kernel(context, kernels.THREEFRY_BITS, keys, most=most)


@TABLE.rule("random_fold_in")
def random_fold_in(context: Any, keys: Any, data: Any) -> Any:
    """The keys of keys and numbers."""
    return _by_kernel(context, kernels.THREEFRY_FOLD_IN, keys, data, most=most_by_kernel())


@TABLE.rule("random_split")
def random_split(context: Any, keys: Any, **params: Any) -> Any:
    """Several keys made from each key."""
    return _by_kernel(context, kernels.THREEFRY_SPLIT, keys, most=most_by_kernel())


def most_by_kernel() -> int:
    """The size of the largest results that come from a kernel, if there is one."""
    return MANY if kernel_library.has_long_vectors() else FEW


def _by_kernel(context: Any, target: str, *values: Any, most: int) -> Any:
    """Call a kernel; NotImplemented where nothing is gained, as of results of more than `most`.

    A loop that calls a kernel is not one function, so that each of its operations is called.
    """
    from dovetail.extend.random import threefry_prng_impl  # deferred: programs with keys load it

    keys, (out,) = context.avals_in[0], context.avals_out
    if (
        keys.dtype.implementation is not threefry_prng_impl
        or not context.option("threefry_partitionable")
        or keys.symbolic
        or out.symbolic
        or not 0 < out.size <= most
        or context.divides  # each device is to make its own part
        or not context.runs_once()
        or not kernels.usable(context)
    ):
        return NotImplemented
    return kernels.call(context, target, values, [context.physical(out)], batch_dims=keys.ndim)


@TABLE.rule("threefry2x32")
def threefry2x32(context: Any, *words: Any) -> Any:
    """A loop over groups of four rounds; NotImplemented for many numbers."""
    avals, out = context.avals_in, context.avals_out[0]
    key = out if any(a.ndim for a in avals[:2]) else _SCALAR
    if out.symbolic or 4 * (2 * out.size + 3 * key.size + 1) > SMALL_LOOP or not out.size:
        return NotImplemented
    key1, key2 = (_spread(context, x, a, key) for x, a in zip(words[:2], avals[:2], strict=True))
    x1, x2 = (_spread(context, x, a, out) for x, a in zip(words[2:], avals[2:], strict=True))
    parity = context.constant(np.uint32(_PARITY), key)
    key3 = context.xor(context.xor(key1, key2, key), parity, key)

    def below_end(group: Any, *_: Any) -> Any:
        return context.compare(group, context.constant(np.uint32(_GROUPS), _SCALAR), "LT", _SCALAR)

    def choose(condition: Any, one: int, other: int) -> Any:
        constants = [context.constant(np.uint32(i), _SCALAR) for i in (one, other)]
        return context.broadcast_scalar(context.select(condition, *constants, _SCALAR), out)

    def rounds(group: Any, x1: Any, x2: Any, *schedule: Any) -> Sequence[Any]:
        one, zero = (context.constant(np.uint32(i), _SCALAR) for i in (1, 0))
        even = context.compare(context.and_(group, one, _SCALAR), zero, "EQ", _SCALAR)
        for distances in zip(*_ROTATIONS, strict=True):
            left = choose(even, *distances)
            right = choose(even, *(32 - distance for distance in distances))
            x1 = context.add(x1, x2, out)
            low = context.op("shift_left", [x2, left], out)
            high = context.op("shift_right_logical", [x2, right], out)
            x2 = context.xor(x1, context.or_(low, high, out), out)
        first, second, third = schedule
        group = context.add(group, one, _SCALAR)
        x1 = context.add(x1, _spread(context, second, key, out), out)
        x2 = context.add(x2, _spread(context, third, key, out), out)
        x2 = context.add(x2, context.broadcast_scalar(group, out), out)
        return [group, x1, x2, second, third, first]

    x1 = context.add(x1, _spread(context, key1, key, out), out)
    x2 = context.add(x2, _spread(context, key2, key, out), out)
    start = context.constant(np.uint32(0), _SCALAR)
    _, x1, x2, *_ = context.while_loop(
        [start, x1, x2, key1, key2, key3],
        [_SCALAR, out, out, key, key, key],
        below_end,
        rounds,
    )
    return [x1, x2]


def _spread(context: Any, x: Any, aval: Any, out: Any) -> Any:
    """An operand in the shape of the result: a scalar, or an array with dimensions of size 1."""
    if aval.shape == out.shape:
        return x
    return context.broadcast_in_dim(x, out, tuple(range(out.ndim)) if aval.shape else ())
