"""Cumulative operations by a kernel, and where none was built as loops over rows.

A loop over positions takes one pass over memory. It is up to 10 times as fast as the
logarithmic-depth scan of the primitives' own lowerings, and compiles in a tenth of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable, ShapedArray, dtypes
from dovetail_cpu import kernels

TABLE: Final = LoweringTable()

INT32: Final = np.dtype(np.int32)
INT64: Final = np.dtype(np.int64)
FLOAT32: Final = np.dtype(np.float32)
FLOAT64: Final = np.dtype(np.float64)

#: Operations of the kernel.
SUM, PRODUCT, MAXIMUM, MINIMUM = range(4)
#: Fewer elements than this are left to XLA, which fuses them with their neighbours.
WORTH_A_KERNEL: Final = 512
#: Within a loop, whose operations XLA calls one by one if one of them is a kernel.
WORTH_A_KERNEL_IN_A_LOOP: Final = 8192

#: Along this few positions the primitives' own lowering is as good.
FEW: Final = 16
#: Along more positions than this, rounding errors of a plain loop would accumulate, unless what is
#: carried has more digits than the results.
MANY: Final = 8192
#: With this many elements side by side, a loop is worth it.
WIDE: Final = 16
#: Up to this many elements a loop is worth it in any direction, because it compiles sooner.
SMALL: Final = 8192

#: From earlier and later elements, and their avals, to combined ones.
Combine = Callable[[Sequence[Any], Sequence[Any], Sequence[Any]], Sequence[Any]]


def _suits_kernel(context: Any, out: Any) -> bool:
    """Whether a kernel may compute such an array, and is worth its call."""
    if out.symbolic or not kernels.usable(context):
        return False
    least = WORTH_A_KERNEL if context.runs_once() else WORTH_A_KERNEL_IN_A_LOOP
    return bool(out.size >= least)


def _by_kernel(context: Any, x: Any, axis: int, reverse: bool, operation: int) -> Any:
    """The results of the kernel; NotImplemented where it gains nothing, or there is none.

    It knows signed integers and floats of 32 and 64 bits. Others are converted, and the order of
    unsigned integers becomes that of signed ones by their first bit.
    """
    (out,) = context.avals_out
    kind, bits = dtypes.kind_of(out.dtype), dtypes.itemsize_bits(out.dtype)
    if kind not in ("i", "u", "f") or not _suits_kernel(context, out):
        return NotImplemented
    if kind == "f":
        work = out.update(dtype=out.dtype if bits >= 32 else FLOAT32)
    else:
        work = out.update(dtype=INT64 if bits == 64 else INT32)
    unsigned = kind == "u" and bits >= 32
    if unsigned:
        x = context.bitcast_convert(x, work)
    else:
        x = context.convert(x, out, work)
    first_bit = unsigned and operation in (MAXIMUM, MINIMUM)
    if first_bit:
        sign = context.constant(np.iinfo(work.dtype).min, work)
        x = context.xor(x, sign, work)
    (result,) = kernels.call(
        context,
        kernels.CUMULATIVE,
        [x],
        [work],
        batch_dims=axis,
        operation=operation,
        reverse=int(reverse),
        after=out.ndim - 1 - axis,
    )
    if first_bit:
        result = context.xor(result, sign, work)
    if unsigned:
        return context.bitcast_convert(result, out)
    return context.convert(result, work, out)


def _recurrence_by_kernel(context: Any, a: Any, b: Any, axis: int, reverse: bool) -> Any:
    """The recurrence in float64; NotImplemented where rounding errors of that would accumulate."""
    (out,) = context.avals_out
    bits = dtypes.itemsize_bits(out.dtype)
    if dtypes.kind_of(out.dtype) != "f" or not _suits_kernel(context, out):
        return NotImplemented
    if bits == 64 and out.shape[axis] > MANY:
        return NotImplemented
    work = out.update(dtype=out.dtype if bits >= 32 else FLOAT32)
    (result,) = kernels.call(
        context,
        kernels.LINEAR_RECURRENCE,
        [context.convert(value, out, work) for value in (a, b)],
        [work],
        batch_dims=axis,
        reverse=int(reverse),
        after=out.ndim - 1 - axis,
    )
    return context.convert(result, work, out)


def _scan(
    context: Any,
    values: Sequence[Any],
    axis: int,
    reverse: bool,
    identities: Callable[[Any], Sequence[Any]],
    combine: Combine,
) -> Any:
    """The last of the arrays that `combine` returns; NotImplemented along few positions.

    Args:
        context: the builder.
        values: arrays to scan together.
        axis: the dimension to scan.
        reverse: whether to go from the last position to the first.
        identities: from the dtype to the initial values.
        combine: an associative function.
    """
    (out,) = context.avals_out
    if out.symbolic or out.shape[axis] <= FEW or not out.size:
        return NotImplemented
    shape, dtype = out.shape, out.dtype
    if dtype.kind not in "iuc" and dtype.itemsize < 4:
        # Rounding every result to 16 bits would lose precision.
        dtype = FLOAT32
    wide = ShapedArray(shape, dtype)
    flat = ShapedArray((prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])), dtype)
    arrays = [context.reshape(context.convert(v, out, wide), flat) for v in values]
    scanned = _along_rows(context, arrays, flat, reverse, identities(dtype), combine)
    return context.convert(context.reshape(scanned[-1], wide), wide, out)


def _along_rows(
    context: Any,
    arrays: Sequence[Any],
    whole: Any,
    reverse: bool,
    identities: Sequence[Any],
    combine: Combine,
) -> list[Any]:
    """The arrays that `combine` returns, along the second of three dimensions.

    Long rows, and few of them, are divided into blocks, which are scanned side by side.
    """
    outer, size, inner = whole.shape
    count = 1
    if whole.size > SMALL:
        count = -(-WIDE // (outer * inner))
    if whole.dtype.kind in "fc" and whole.dtype != FLOAT32:
        count = max(count, -(-size // MANY))
    if count == 1:
        return _loop(context, arrays, whole, reverse, identities, combine)
    block = -(-size // count)
    fills = [context.constant(identity, whole.update(shape=())) for identity in identities]
    padded = whole.update(shape=(outer, count * block, inner))
    blocks = whole.update(shape=(outer * count, block, inner))
    rest = (0, count * block - size, 0)
    parts = [
        context.reshape(context.pad(v, fill, padded, (0, 0, 0), rest), blocks)
        for v, fill in zip(arrays, fills, strict=True)
    ]
    within = _loop(context, parts, blocks, reverse, identities, combine)

    one, totals = (
        whole.update(shape=(*pair, inner)) for pair in ((outer * count, 1), (outer, count))
    )
    start = (0, 0 if reverse else block - 1, 0)
    end = (outer * count, start[1] + 1, inner)
    lasts = [context.reshape(context.slice(v, one, start, end), totals) for v in within]
    ends = _along_rows(context, lasts, totals, reverse, identities, combine)
    low, high = ((0, -1, 0), (0, 1, 0)) if reverse else ((0, 1, 0), (0, -1, 0))
    apart = whole.update(shape=(outer, count, block, inner))
    before = [
        context.reshape(
            context.broadcast_in_dim(context.pad(v, fill, totals, low, high), apart, (0, 1, 3)),
            blocks,
        )
        for v, fill in zip(ends, fills, strict=True)
    ]
    combined = combine(before, within, [blocks] * len(arrays))
    return [
        context.slice(context.reshape(v, padded), whole, (0, 0, 0), whole.shape) for v in combined
    ]


def _loop(
    context: Any,
    arrays: Sequence[Any],
    whole: Any,
    reverse: bool,
    identities: Sequence[Any],
    combine: Combine,
) -> list[Any]:
    """The same by one position after another; many float32 are added to a float64."""
    outer, size, inner = whole.shape
    row = whole.update(shape=(outer, 1, inner))
    carry = row.update(dtype=FLOAT64) if row.dtype == FLOAT32 and size > MANY else row
    position = ShapedArray((), INT32)
    zero, one = context.constant(0, position), context.constant(1, position)
    last = context.constant(size - 1, position)
    number = len(arrays)

    def body(step: Any, *state: Any) -> list[Any]:
        results, carried = state[:number], state[number:]
        at = context.sub(last, step, position) if reverse else step
        here = [
            context.convert(context.dynamic_slice(v, row, (zero, at, zero)), row, carry)
            for v in (results if number == 1 else arrays)
        ]
        combined = combine(carried, here, [carry] * number)
        written = [
            context.dynamic_update_slice(
                result, context.convert(v, carry, row), whole, (zero, at, zero)
            )
            for result, v in zip(results, combined, strict=True)
        ]
        return [context.add(step, one, position), *written, *combined]

    # One array is overwritten row by row. With several, XLA would copy the overwritten ones in each
    # step, so their results have their own arrays.
    empty = arrays if number == 1 else [context.constant(0, whole)] * number
    first = [context.constant(identity, carry) for identity in identities]
    results = context.while_loop(
        [zero, *empty, *first],
        [position, *[whole] * number, *[carry] * number],
        lambda step, *_: context.compare(step, last, "LE", position),
        body,
    )
    return list(results[1 : 1 + number])


def _limit(dtype: Any, largest: bool) -> Any:
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return limits.max if largest else limits.min
    return np.inf if largest else -np.inf


@TABLE.rule("cumsum")
def cumsum(context: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    """Sums."""
    by_kernel = _by_kernel(context, x, axis, reverse, SUM)
    if by_kernel is not NotImplemented:
        return by_kernel
    return _scan(
        context,
        [x],
        axis,
        reverse,
        lambda dtype: [0],
        lambda xs, ys, avals: [context.add(xs[0], ys[0], avals[0])],
    )


@TABLE.rule("cumprod")
def cumprod(context: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    """Products."""
    by_kernel = _by_kernel(context, x, axis, reverse, PRODUCT)
    if by_kernel is not NotImplemented:
        return by_kernel
    return _scan(
        context,
        [x],
        axis,
        reverse,
        lambda dtype: [1],
        lambda xs, ys, avals: [context.mul(xs[0], ys[0], avals[0])],
    )


@TABLE.rule("cummax")
def cummax(context: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    """Largest elements."""
    if context.avals_out[0].dtype.kind == "c":
        return NotImplemented  # XLA compares real parts only
    by_kernel = _by_kernel(context, x, axis, reverse, MAXIMUM)
    if by_kernel is not NotImplemented:
        return by_kernel
    return _scan(
        context,
        [x],
        axis,
        reverse,
        lambda dtype: [_limit(dtype, largest=False)],
        lambda xs, ys, avals: [context.max(xs[0], ys[0], avals[0])],
    )


@TABLE.rule("cummin")
def cummin(context: Any, x: Any, *, axis: int, reverse: bool) -> Any:
    """Smallest elements."""
    if context.avals_out[0].dtype.kind == "c":
        return NotImplemented  # XLA compares real parts only
    by_kernel = _by_kernel(context, x, axis, reverse, MINIMUM)
    if by_kernel is not NotImplemented:
        return by_kernel
    return _scan(
        context,
        [x],
        axis,
        reverse,
        lambda dtype: [_limit(dtype, largest=True)],
        lambda xs, ys, avals: [context.min(xs[0], ys[0], avals[0])],
    )


@TABLE.rule("linear_recurrence")
def linear_recurrence(context: Any, a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
    """y[i] = a[i] * y[i - 1] + b[i], by a kernel, or by composing maps y -> a * y + b."""
    by_kernel = _recurrence_by_kernel(context, a, b, axis, reverse)
    if by_kernel is not NotImplemented:
        return by_kernel

    def combine(xs: Sequence[Any], ys: Sequence[Any], avals: Sequence[Any]) -> list[Any]:
        scaled = context.mul(xs[1], ys[0], avals[1])
        return [context.mul(xs[0], ys[0], avals[0]), context.add(scaled, ys[1], avals[1])]

    return _scan(context, [a, b], axis, reverse, lambda dtype: [1, 0], combine)
