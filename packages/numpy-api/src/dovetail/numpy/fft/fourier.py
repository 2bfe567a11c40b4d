"""The common steps of all discrete Fourier transforms: check, truncate, transform, scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    canonical_axes,
    canonical_axis,
    convert,
    counted,
    integer,
    literal,
    refuse_complex,
    value,
)
from dovetail.extend.avals import aval_of
from dovetail.numpy.shapes import permuted

Sizes = tuple[int, ...]

_NORMS = ("backward", "ortho", "forward")
_SWAPPED = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
_INVERSE = (lax.FftType.IFFT, lax.FftType.IRFFT)
# The most dimensions that `lax.fft` transforms at once.
_MOST_DIMENSIONS = 3


def _operand(function: str, a: Any, kind: lax.FftType) -> Any:
    """The argument in the dtype to transform: 32 or 64 bits for each part."""
    x = value(array_like(a, function, "a"))
    if kind is lax.FftType.RFFT:
        refuse_complex(function, x)
    dtype = aval_of(x).dtype
    letter = dtypes.kind_of(dtype)
    if letter is None:
        raise TypeError(f"{function} does not accept the dtype {dtype}")
    if letter == "c" or (letter == "f" and dtype.itemsize >= 4):
        return x
    return convert(x, np.dtype("float64" if dtype.itemsize == 8 else "float32"))


def along(
    function: str, a: Any, n: Any, axis: Any, norm: Any, kind: lax.FftType, conjugated: bool = False
) -> Any:
    """A transform along one dimension."""
    if isinstance(axis, Sequence) and not isinstance(axis, str):
        raise ValueError(
            f"{function} transforms along one dimension, got axis={axis}; use fft.fftn, or what "
            "goes with it, for several"
        )
    x = _operand(function, a, kind)
    dimension = canonical_axis(function, axis, aval_of(x).ndim)
    lengths = None if n is None else (length(function, "n", n),)
    return _transform(function, x, lengths, (dimension,), norm, kind, conjugated)


def over(function: str, a: Any, s: Any, axes: Any, norm: Any, kind: lax.FftType) -> Any:
    """A transform along several dimensions."""
    x = _operand(function, a, kind)
    rank = aval_of(x).ndim
    lengths = None
    if s is not None:
        lengths = tuple(length(function, "s", n) for n in _sequence(function, "s", s))
        if axes is None and len(lengths) > rank:
            raise ValueError(
                f"{function}: s names {counted(len(lengths), 'size')}, and a has rank {rank}"
            )
    if axes is None:
        dimensions = tuple(range(rank - len(lengths) if lengths is not None else 0, rank))
    else:
        dimensions = canonical_axes(function, _sequence(function, "axes", axes), rank, "axes")
    if lengths is not None and len(lengths) != len(dimensions):
        raise ValueError(
            f"{function}: s and axes must have equal lengths, got {lengths} and {dimensions}"
        )
    return _transform(function, x, lengths, dimensions, norm, kind)


def over_two(function: str, a: Any, s: Any, axes: Any, norm: Any, kind: lax.FftType) -> Any:
    """A transform along two dimensions."""
    if axes is None or len(_sequence(function, "axes", axes)) != 2:
        raise ValueError(
            f"{function} transforms along two dimensions, got axes={axes}; use "
            f"{function[:-1]}n for other numbers of them"
        )
    x = _operand(function, a, kind)
    rank = aval_of(x).ndim
    if rank < 2:
        raise ValueError(
            f"{function} transforms along two dimensions, and the array has "
            f"{counted(rank, 'dimension')}; for one write {function[:-1]}"
        )
    return over(function, x, s, axes, norm, kind)


def _sequence(function: str, argument: str, given: Any) -> Sequence[Any]:
    if isinstance(given, (tuple, list)):
        return given
    raise TypeError(
        f"{function} requires {argument} to be a sequence of integers, got "
        f"{type(given).__name__}; write ({given},) for one"
    )


def length(function: str, argument: str, given: Any) -> int:
    """A number of points.

    Raises:
        TypeError: it is not an integer.
        ValueError: it is not positive.
    """
    size = integer(function, argument, given)
    if size < 1:
        raise ValueError(f"{function}: {argument} must be positive, got {size}")
    return size


def _transform(
    function: str,
    x: Any,
    lengths: Sizes | None,
    axes: Sizes,
    norm: Any,
    kind: lax.FftType,
    conjugated: bool = False,
) -> Any:
    """A transform of a checked operand.

    Args:
        function: name of the user's function, for messages.
        x: the operand.
        lengths: sizes of the signal along `axes`; None for those that the operand has.
        axes: dimensions, all different; the last is the one that is halved for real signals.
        norm: which direction divides.
        kind: kind of the transform.
        conjugated: whether to conjugate the input of IRFFT, or the output of RFFT, as Hermitian
            signals require. The norm is then that of the other direction.
    """
    if norm is not None and not (isinstance(norm, str) and norm in _NORMS):
        raise ValueError(
            f'{function}: norm must be None, "backward", "ortho" or "forward", got {norm!r}'
        )
    halved = kind in (lax.FftType.RFFT, lax.FftType.IRFFT)
    if not axes:
        if halved:
            raise ValueError(f"{function} needs at least one dimension to transform along")
        return lax.fft(x, kind, ())
    shape = aval_of(x).shape
    if lengths is None:
        lengths = tuple(shape[d] for d in axes)
        if kind is lax.FftType.IRFFT:
            lengths = (*lengths[:-1], 2 * (lengths[-1] - 1))
        if min(lengths) < 1:
            raise ValueError(
                f"{function} needs a signal of one point at least along each dimension; an array "
                f"of shape {shape} gives {lengths} along {axes}. Say how many with "
                f"{'s' if function.endswith(('n', '2')) else 'n'}="
            )
    input_lengths = lengths
    if kind is lax.FftType.IRFFT:
        input_lengths = (*lengths[:-1], lengths[-1] // 2 + 1)
        if conjugated and dtypes.kind_of(aval_of(x).dtype) == "c":
            x = lax.conj(x)
    x = _resized(x, axes, input_lengths)
    inverse = kind in _INVERSE
    norm = _SWAPPED[norm] if conjugated else norm
    if kind is lax.FftType.RFFT:  # real transforms have fewer coefficients
        x = _scaled(x, math.prod(lengths), norm, inverse)
    x = _applied(x, kind, lengths, axes)
    if kind is not lax.FftType.RFFT:
        x = _scaled(x, math.prod(lengths), norm, inverse)
    return lax.conj(x) if conjugated and not inverse else x


def _resized(x: Any, axes: Sizes, sizes: Sizes) -> Any:
    """`x` truncated or padded with zeros to sizes along dimensions."""
    shape = aval_of(x).shape
    lengths = dict(zip(axes, sizes, strict=True))
    if all(shape[d] == n for d, n in lengths.items()):
        return x
    truncated = [min(n, lengths.get(d, n)) for d, n in enumerate(shape)]
    x = lax.slice(x, (0,) * len(shape), truncated)
    config = [(0, lengths.get(d, n) - n, 0) for d, n in enumerate(truncated)]
    return lax.pad(x, literal(0, aval_of(x).dtype), config)


def _scaled(x: Any, count: int, norm: str | None, inverse: bool) -> Any:
    """`x` times the factor of a norm, given that `lax.fft` divides in the inverse."""
    if norm is None or norm == "backward":
        return x
    factor = math.sqrt(count) if norm == "ortho" else count
    return lax.mul(x, literal(factor if inverse else 1 / factor, aval_of(x).dtype))


def _applied(x: Any, kind: lax.FftType, lengths: Sizes, axes: Sizes) -> Any:
    """`lax.fft` along any dimensions."""
    first, last = axes[:-_MOST_DIMENSIONS], axes[-_MOST_DIMENSIONS:]
    rest = lax.FftType.IFFT if kind in _INVERSE else lax.FftType.FFT
    if first and kind is lax.FftType.IRFFT:
        x = _applied(x, rest, lengths[:-_MOST_DIMENSIONS], first)
    others = tuple(d for d in range(aval_of(x).ndim) if d not in last)
    order = (*others, *last)
    x = lax.fft(permuted(x, order), kind, lengths[-_MOST_DIMENSIONS:])
    x = permuted(x, tuple(order.index(d) for d in range(len(order))))
    if first and kind is not lax.FftType.IRFFT:
        x = _applied(x, rest, lengths[:-_MOST_DIMENSIONS], first)
    return x
