"""Fourier transforms: results in row-major order, and real signals by complex ones.

XLA's CPU runtime plans every transform anew, and real plans take longer than complex ones: for a
single signal of 10,000 to 200,000 samples, longer than the transform itself. A complex transform of
half the length takes 0.4 to 0.7 of the time. For prime lengths, a complex one of the same length
takes two thirds.
"""

from __future__ import annotations

from math import isqrt, prod
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable
from dovetail.extend.lowering import real_dtype
from dovetail_cpu import kernels

TABLE: Final = LoweringTable()

BOOL: Final = np.dtype(bool)
INT32: Final = np.dtype(np.int32)
#: Lengths of single signals that are halved.
SHORTEST: Final = 2**13
LONGEST: Final = 2**18
#: Shorter lengths are planned quickly even if they are prime.
LARGE_PRIME: Final = 1000
#: What the kernel transforms.
LONGEST_FAST: Final = 2**24
#: Lengths with a prime factor that the kernel has no step for.
SHORTEST_CONVOLUTION: Final = 512
#: Real signals that the kernel transforms where they lie, side by side.
LONGEST_COLUMN: Final = 2**13


@TABLE.rule("fft")
def fft(context: Any, x: Any, *, fft_type: Any, fft_lengths: tuple[int, ...]) -> Any:
    """A transform; NotImplemented where there is nothing to compute."""
    (aval,), (out,) = context.avals_in, context.avals_out
    kind = fft_type.name
    if not fft_lengths or not aval.size or not out.size:
        return NotImplemented
    if kernels.usable(context) and all(map(is_fast, fft_lengths)):
        return _by_kernel(context, x, aval, out, int(fft_type), fft_lengths)
    if kind not in ("RFFT", "IRFFT") or len(fft_lengths) != 1:
        return _transformed(context, x, out, kind, fft_lengths)
    (length,) = fft_lengths
    single = prod(out.shape[:-1]) == 1
    if single and length % 2 == 0 and SHORTEST <= length <= LONGEST:
        half = _halved if kind == "RFFT" else _doubled
        return half(context, x, aval, out, length)
    if length > LARGE_PRIME and _is_prime(length):
        whole = _as_complex if kind == "RFFT" else _from_whole
        return whole(context, x, aval, out, length)
    return _transformed(context, x, out, kind, fft_lengths)


def _by_kernel(
    context: Any, x: Any, aval: Any, out: Any, kind: int, lengths: tuple[int, ...]
) -> Any:
    """The native kernel, which transforms dimensions that were moved to the end where they were."""
    rank = len(lengths)
    lead = aval.ndim - rank
    attributes: dict[str, Any] = {"kind": kind, "rank": rank}
    moved = _permutation(x) if context.partitioning is None else None
    if moved is not None and (kind < 2 or _fits_columns(lengths[-1])):
        first = moved[lead]
        inner = lead - first
        if inner and moved[lead:] == tuple(range(first, first + rank)):
            before = out.update(shape=tuple(out.shape[moved.index(d)] for d in range(out.ndim)))
            operands = [x.owner.operands[0]]
            attributes["inner_dimensions"] = inner
            (y,) = kernels.call(context, kernels.FFT, operands, [before], 0, **attributes)
            return context.transpose(y, out, moved)
    attributes["inner_dimensions"] = 0
    (y,) = kernels.call(context, kernels.FFT, [x], [out], lead, **attributes)
    return y


def _permutation(x: Any) -> tuple[int, ...] | None:
    """That of the transpose of which a value is the result, if it is."""
    owner = x.owner
    if getattr(owner, "name", None) != "stablehlo.transpose":
        return None
    return tuple(owner.attributes["permutation"])


def _is_smooth(length: int) -> bool:
    """Whether the kernel needs no convolution for a length."""
    for prime in (2, 3, 5, 7, 11, 13):
        while length % prime == 0:
            length //= prime
    return length == 1


def is_fast(length: int) -> bool:
    """Whether the kernel is made for a length, and faster and as exact as XLA's transform."""
    return length <= LONGEST_FAST and (length >= SHORTEST_CONVOLUTION or _is_smooth(length))


def _fits_columns(length: int) -> bool:
    """Whether the kernel transforms real signals of a length where they lie, side by side."""
    return length % 2 == 0 and 2 < length <= LONGEST_COLUMN and _is_smooth(length)


def _is_prime(n: int) -> bool:
    return n % 2 == 1 and all(n % d for d in range(3, isqrt(n) + 1, 2))


def _resized(aval: Any, size: int) -> Any:
    return aval.update(shape=(*aval.shape[:-1], size))


def _part(context: Any, x: Any, aval: Any, start: int, stop: int) -> Any:
    """Elements along the last dimension."""
    size = stop - start
    lead = aval.shape[:-1]
    return context.slice(x, _resized(aval, size), (0,) * len(lead) + (start,), (*lead, stop))


def _transformed(context: Any, x: Any, out: Any, kind: str, lengths: tuple[int, ...]) -> Any:
    """XLA's transform, of which the result is stored in row-major order.

    XLA takes any order that a user of the result wants, such as a factorisation by LAPACK, and then
    refuses to compile, since its transforms have no other.
    """
    attributes = {"fft_type": context.fft_type(kind), "fft_length": context.i64_array(lengths)}
    y = context.op("fft", [x], out, attributes)
    if out.ndim < 2:
        return y
    order = [tuple(reversed(range(out.ndim)))]
    (y,) = context.custom_call(
        "LayoutConstraint",
        [y],
        [out],
        backend_config="",
        operand_layouts=order,
        result_layouts=order,
        api_version=1,
    )
    return y


def _mirrored(context: Any, x: Any, aval: Any) -> Any:
    """The complex conjugates, in reverse order."""
    part = aval.update(dtype=real_dtype(aval.dtype))
    turned = context.reverse(x, aval, (aval.ndim - 1,))
    imaginary = context.neg(context.imag(turned, part), part)
    return context.complex(context.real(turned, part), imaginary, aval)


def _real_at_ends(context: Any, x: Any, aval: Any, length: int) -> Any:
    """Coefficients without the imaginary parts that are zero for real signals: those of the first,
    and for even lengths the last."""
    part = aval.update(dtype=real_dtype(aval.dtype))
    position, truth = aval.update(dtype=INT32), aval.update(dtype=BOOL)
    place = context.iota(position, aval.ndim - 1)
    ends = context.compare(place, context.constant(0, position), "EQ", position)
    if length % 2 == 0:
        last = context.constant(aval.shape[-1] - 1, position)
        ends = context.or_(ends, context.compare(place, last, "EQ", position), truth)
    imaginary = context.select(ends, context.constant(0.0, part), context.imag(x, part), part)
    return context.complex(context.real(x, part), imaginary, aval)


def _roots(context: Any, aval: Any, length: int, sign: int) -> Any:
    """The first powers of a root of unity, along the last dimension.

    They are products of two short tables: all of them would make a large program.
    """
    count = aval.shape[-1]
    inner = isqrt(count) + 1
    outer = -(-count // inner)

    def table(exponents: Any) -> Any:
        return np.exp(sign * 2j * np.pi * exponents / length).astype(aval.dtype)

    square = aval.update(shape=(outer, inner))
    column, row = aval.update(shape=(outer,)), aval.update(shape=(inner,))
    steps = context.constant(table(np.arange(outer) * inner), column)
    within = context.constant(table(np.arange(inner)), row)
    both = context.mul(
        context.broadcast_in_dim(steps, square, (0,)),
        context.broadcast_in_dim(within, square, (1,)),
        square,
    )
    flat = context.reshape(both, aval.update(shape=(outer * inner,)))
    powers = context.slice(flat, aval.update(shape=(count,)), (0,), (count,))
    return context.broadcast_in_dim(powers, aval, (aval.ndim - 1,))


def _halved(context: Any, x: Any, aval: Any, out: Any, length: int) -> Any:
    """RFFT: even samples become real parts, odd samples imaginary parts."""
    half = length // 2
    pairs = aval.update(shape=(*aval.shape[:-1], half, 2))
    single = aval.update(shape=(*aval.shape[:-1], half, 1))
    samples = _resized(aval, half)
    x = context.reshape(x, pairs)
    lead = (0,) * (pairs.ndim - 1)
    parts = []
    for i in range(2):
        part = context.slice(x, single, (*lead, i), (*pairs.shape[:-1], i + 1))
        parts.append(context.reshape(part, samples))
    packed = _resized(out, half)
    z = _transformed(context, context.complex(*parts, packed), packed, "FFT", (half,))
    first = _part(context, z, packed, 0, 1)
    z = context.concatenate([z, first], out, out.ndim - 1)
    other = _mirrored(context, z, out)
    even, odd = context.add(z, other, out), context.sub(z, other, out)
    roots = context.mul(_roots(context, out, length, -1), context.constant(-0.5j, out), out)
    even = context.mul(even, context.constant(0.5 + 0j, out), out)
    coefficients = context.add(even, context.mul(odd, roots, out), out)
    return _real_at_ends(context, coefficients, out, length)


def _doubled(context: Any, y: Any, aval: Any, out: Any, length: int) -> Any:
    """IRFFT: the inverse of `_halved`."""
    half = length // 2
    y = _real_at_ends(context, y, aval, length)
    other = _mirrored(context, y, aval)
    packed = _resized(aval, half)
    y, other = (_part(context, v, aval, 0, half) for v in (y, other))
    even, odd = context.add(y, other, packed), context.sub(y, other, packed)
    roots = context.mul(_roots(context, packed, length, 1), context.constant(0.5j, packed), packed)
    even = context.mul(even, context.constant(0.5 + 0j, packed), packed)
    z = context.add(even, context.mul(odd, roots, packed), packed)
    z = _transformed(context, z, packed, "IFFT", (half,))
    samples = _resized(out, half)
    single = out.update(shape=(*out.shape[:-1], half, 1))
    parts = [
        context.reshape(part, single)
        for part in (context.real(z, samples), context.imag(z, samples))
    ]
    pairs = out.update(shape=(*out.shape[:-1], half, 2))
    return context.reshape(context.concatenate(parts, pairs, pairs.ndim - 1), out)


def _as_complex(context: Any, x: Any, aval: Any, out: Any, length: int) -> Any:
    """RFFT: the first half of the transform of complex numbers."""
    whole = _resized(out, length)
    z = context.complex(x, context.constant(0.0, aval), whole)
    z = _transformed(context, z, whole, "FFT", (length,))
    z = _part(context, z, whole, 0, out.shape[-1])
    return _real_at_ends(context, z, out, length)


def _from_whole(context: Any, y: Any, aval: Any, out: Any, length: int) -> Any:
    """IRFFT: the real part of the transform of both halves."""
    whole = _resized(aval, length)
    count = aval.shape[-1] - 1
    other = _part(context, _mirrored(context, y, aval), aval, 0, count)
    z = context.concatenate([y, other], whole, whole.ndim - 1)
    return context.real(_transformed(context, z, whole, "IFFT", (length,)), out)
