"""Discrete Fourier transforms."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis import structural
from dovetail._core.basis.elementwise import convert_element_type, dtype_name, mul
from dovetail._core.basis.operands import as_operand, make_literal
from dovetail._core.basis.structural import Linear, is_linear, move_dimension
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ops.elementwise.complex import conj_p
from dovetail._core.ops.elementwise.operands import complex_dtype, real_dtype
from dovetail._core.ops.shape.dimensions import integers
from dovetail._core.ops.shape.slicing import pad_with
from dovetail._core.trace.divisions import Labels, divided_alike

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

REAL_DTYPES: Final = (np.dtype(np.float32), np.dtype(np.float64))
#: Dtypes that are converted to 64-bit parts.
WIDE_DTYPES: Final = tuple(map(np.dtype, ("int64", "uint64", "float64", "complex128")))


class FftType(enum.IntEnum):
    """The kinds of discrete Fourier transforms.

    FFT maps complex numbers to complex numbers; IFFT is its inverse. RFFT maps real numbers to the
    first half of their transform, as the other half is its conjugate; IRFFT is its inverse.

    Example:
        >>> from dovetail import lax
        >>> lax.FftType.RFFT
        <FftType.RFFT: 2>
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


class Fft(Linear):
    """The discrete Fourier transform along the last one to three dimensions."""

    name = "fft"

    def abstract(self, x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
        kind = fft_type.name
        takes = "real" if fft_type is FftType.RFFT else "complex"
        allowed = REAL_DTYPES if takes == "real" else tuple(map(complex_dtype, REAL_DTYPES))
        if x.dtype not in allowed:
            raise ValueError(
                f"fft: {kind} takes {takes} numbers, {allowed[0].name} or {allowed[1].name}, got "
                f"{dtype_name(x.dtype)}"
            )
        rank = len(fft_lengths)
        if not 1 <= rank <= 3 and (rank or fft_type in (FftType.RFFT, FftType.IRFFT)):
            raise ValueError(
                f"fft: {kind} takes one to three fft_lengths, got {fft_lengths}; transform further "
                "dimensions by another call, after a transpose"
            )
        if rank > x.ndim:
            raise ValueError(
                f"fft: {kind} of an operand of shape {x.shape} has more fft_lengths, "
                f"{fft_lengths}, than the operand has dimensions"
            )
        if any(n < 0 for n in fft_lengths):
            raise ValueError(f"fft: fft_lengths must not be negative, got {fft_lengths}")
        have = x.shape[x.ndim - rank :]
        need, shape, dtype = fft_lengths, x.shape, x.dtype
        if fft_type is FftType.RFFT:
            shape, dtype = (*shape[:-1], _half(fft_lengths)), complex_dtype(dtype)
        elif fft_type is FftType.IRFFT:
            need = (*fft_lengths[:-1], _half(fft_lengths))
            shape, dtype = (*shape[:-1], fft_lengths[-1]), real_dtype(dtype)
        if have != need:
            raise ValueError(
                f"fft: {kind} with fft_lengths {fft_lengths} takes an operand whose last "
                f"dimensions have the sizes {need}, got one of shape {x.shape}; slice or pad it "
                "first"
            )
        return make_aval(shape, dtype)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return divided_alike(avals, results)

    def reference(self, x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]) -> Any:
        x = np.asarray(x)
        out = self.abstract(aval_of(x), fft_type=fft_type, fft_lengths=fft_lengths)
        if not fft_lengths:
            return x
        if 0 in x.shape or 0 in out.shape:
            return np.zeros(out.shape, out.dtype)
        wide = np.float64 if fft_type is FftType.RFFT else np.complex128
        function = getattr(np.fft, f"{fft_type.name.lower()}n")
        axes = tuple(range(-len(fft_lengths), 0))
        return function(x.astype(wide), fft_lengths, axes).astype(out.dtype)

    def transpose(
        self, ct: Any, x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]
    ) -> Sequence[Any]:
        if not is_linear(x):
            return (None,)
        if fft_type in (FftType.FFT, FftType.IFFT):  # symmetric matrices
            return (self.bind(ct, fft_type=fft_type, fft_lengths=fft_lengths),)
        count = math.prod(fft_lengths)
        if not count:
            return (structural.full(x.shape, 0, x.dtype),)
        # For a real signal, all coefficients but those at the edges stand for two.
        if fft_type is FftType.RFFT:
            weights = _weights(fft_lengths[-1], count, count / 2, ct)
            ct = mul(conj_p.bind(ct, input_dtype=aval_of(ct).dtype), weights)
            return (self.bind(ct, fft_type=FftType.IRFFT, fft_lengths=fft_lengths),)
        ct = self.bind(ct, fft_type=FftType.RFFT, fft_lengths=fft_lengths)
        ct = mul(ct, _weights(fft_lengths[-1], 1 / count, 2 / count, ct))
        return (conj_p.bind(ct, input_dtype=aval_of(ct).dtype),)

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        fft_type: FftType,
        fft_lengths: tuple[int, ...],
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        if d >= len(shape_of(x)) - len(fft_lengths):
            x, d = move_dimension(x, d, 0), 0
        return self.bind(x, fft_type=fft_type, fft_lengths=fft_lengths), d

    def lower(
        self, context: Builder, x: Any, *, fft_type: FftType, fft_lengths: tuple[int, ...]
    ) -> Any:
        (aval,), (out,) = context.avals_in, context.avals_out
        if not fft_lengths:
            return x
        if not aval.size or not out.size:
            return context.constant(0, out)
        attributes = {
            "fft_type": context.fft_type(fft_type.name),
            "fft_length": context.i64_array(fft_lengths),
        }
        return context.op("fft", [x], out, attributes)


fft_p: Final = Fft()


def _half(fft_lengths: tuple[int, ...]) -> int:
    """The number of coefficients kept along the last dimension, for a real signal."""
    return fft_lengths[-1] // 2 + 1


def _weights(length: int, edge: float, inside: float, like: Any) -> Any:
    """Factors for the coefficients of a real signal: those that are their own conjugates, and the
    others."""
    aval = aval_of(like)
    weights = pad_with(
        structural.full(((length - 1) // 2,), inside, aval.dtype),
        make_literal(edge, aval.dtype),
        ((1, 1 - length % 2, 0),),
    )
    return structural.reshape(weights, (1,) * (aval.ndim - 1) + shape_of(weights))


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Array:
    """The discrete Fourier transform along the last dimensions.

    Args:
        x: an array. FFT, IFFT and IRFFT convert it to complex numbers; RFFT takes real numbers, and
            converts integers to floating point.
        fft_type: an `FftType`, or its name, such as ``"fft"`` or ``"RFFT"``.
        fft_lengths: sizes of the signal along the last one to three dimensions. They must equal the
            last sizes of `x`; but for IRFFT, `x` has ``fft_lengths[-1] // 2 + 1`` elements along
            its last dimension. With no lengths, nothing is transformed.

    Returns:
        An array of the shape of `x`; complex, except for IRFFT. RFFT gives the first
        ``fft_lengths[-1] // 2 + 1`` coefficients along the last dimension, IRFFT
        ``fft_lengths[-1]`` numbers. IFFT and IRFFT divide by the product of the lengths.

    Raises:
        TypeError: `fft_type` is neither an `FftType` nor a string, or the lengths are not integers.
        ValueError: the type is unknown, the lengths are not those of `x`, or the type does not
            support the dtype of `x`.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.fft(np.array([1, 0, 0, 0]), "rfft", (4,)).real.tolist()
        [1.0, 1.0, 1.0]
    """
    kind = _canonical_type(fft_type)
    lengths = integers(fft_lengths, "fft", "fft_lengths")
    x = as_operand(x, "lax.fft")
    dtype = aval_of(x).dtype
    if dtypes.kind_of(dtype):
        wide = REAL_DTYPES[dtype in WIDE_DTYPES]
        if kind is not FftType.RFFT:
            x = convert_element_type(x, complex_dtype(wide))
        elif dtypes.kind_of(dtype) in "biu":
            x = convert_element_type(x, wide)
    return fft_p.bind(x, fft_type=kind, fft_lengths=lengths)


def _canonical_type(fft_type: Any) -> FftType:
    if isinstance(fft_type, FftType):
        return fft_type
    names = ", ".join(f"{t.name!r}" for t in FftType)
    if not isinstance(fft_type, str):
        raise TypeError(
            f"lax.fft: fft_type must be a lax.FftType or one of {names}, got {fft_type!r}"
        )
    try:
        return FftType[fft_type.upper()]
    except KeyError:
        raise ValueError(
            f"lax.fft: there is no fft_type {fft_type!r}; the types are {names}"
        ) from None
