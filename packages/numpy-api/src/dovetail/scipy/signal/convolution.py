"""Convolution and cross-correlation of arrays of equal rank, directly or by Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import dovetail.numpy as jnp
from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, canonical_axes, inexact_dtype
from dovetail.extend.avals import aval_of
from dovetail.numpy.averages import computed_in
from dovetail.numpy.compiled import compiled_with
from dovetail.typing import Array, ArrayLike

_MODES = ("full", "same", "valid")
#: How many products of a direct sum take the time of a step of a Fourier transform; on one core
#: they are 3, and the direct sum is the more exact one.
_COST_OF_TRANSFORM = 6

Sizes = tuple[int, ...]


def convolve(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: lax.PrecisionLike = None,
) -> Array:
    """The convolution of two arrays: sums of products of one with the other, reversed and moved.

    Args:
        in1: array of any numeric dtype.
        in2: array of the same rank.
        mode: "full" for all sums, "same" for the middle ones, as many as `in1` has elements,
            "valid" for those without a part beyond the edges.
        method: "direct", "fft", or "auto" for the faster one.
        precision: of the products of the direct method, see `lax.Precision`.

    Returns:
        An array of the common dtype, floats for integers.

    Raises:
        ValueError: ranks differ, an array has no elements, for "valid" neither array is at least as
            large as the other in each dimension, or `mode` or `method` is none of these.

    Differs:
        Long arrays are transformed if `method` is "auto". The errors of all sums are then those of
        the largest, and a nan or infinity is in every sum; pass "direct" where that matters.

        >>> from dovetail.scipy.signal import convolve
        >>> print(convolve(jnp.array([1., jnp.nan, 0., 0.]), jnp.array([1., 2.]), method="direct"))
        [ 1. nan nan  0.  0.]

        Transforms of 16-bit floats are computed in float32, with the result in their dtype.

        >>> from dovetail.scipy.signal import convolve
        >>> print(convolve(jnp.ones(2, 'float16'), jnp.ones(2, 'float16'), method="fft").dtype)
        float16

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.signal import convolve
        >>> print(convolve(jnp.array([1., 2., 3.]), jnp.array([1., 1.])))
        [1. 3. 5. 3.]
    """
    return _any_method("scipy.signal.convolve", in1, in2, mode, method, precision, False)


def correlate(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    method: str = "auto",
    precision: lax.PrecisionLike = None,
) -> Array:
    """The cross-correlation of two arrays: the convolution with the reversed conjugate of one.

    Args:
        in1: array of any numeric dtype.
        in2: array of the same rank, which is conjugated.
        mode: "full" for all sums, "same" for the middle ones, as many as `in1` has elements,
            "valid" for those without a part beyond the edges.
        method: "direct", "fft", or "auto" for the faster one, as in `convolve`.
        precision: of the products of the direct method, see `lax.Precision`.

    Returns:
        An array of the common dtype, floats for integers.

    Raises:
        ValueError: ranks differ, an array has no elements, for "valid" neither array is at least as
            large as the other in each dimension, or `mode` or `method` is none of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.signal import correlate
        >>> print(correlate(jnp.array([1., 2., 3.]), jnp.array([0., 1.])))
        [1. 2. 3. 0.]
    """
    return _any_method("scipy.signal.correlate", in1, in2, mode, method, precision, True)


def convolve2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: lax.PrecisionLike = None,
) -> Array:
    """The convolution of two matrices.

    Args:
        in1: matrix of any numeric dtype.
        in2: matrix.
        mode: "full" for all sums, "same" for the middle ones, as many as `in1` has elements,
            "valid" for those without a part beyond the edges.
        boundary: what is beyond the edges of `in1`: "fill" for `fillvalue`, "wrap" for its other
            side, "symm" for its mirror image.
        fillvalue: number.
        precision: of the products, see `lax.Precision`.

    Returns:
        A matrix of the common dtype, floats for integers.

    Raises:
        ValueError: an array is no matrix or has no elements, for "valid" neither is at least as
            large as the other in each dimension, or `mode` or `boundary` is none of these.

    Differs:
        JAX has no other boundary than zeros.

        >>> from dovetail.scipy.signal import convolve2d
        >>> print(convolve2d(jnp.array([[1., 2.]]), jnp.ones((1, 3)), "same", "wrap"))
        [[5. 4.]]

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.signal import convolve2d
        >>> print(convolve2d(jnp.ones((2, 2)), jnp.ones((2, 2))))
        [[1. 2. 1.]
         [2. 4. 2.]
         [1. 2. 1.]]
    """
    name = "scipy.signal.convolve2d"
    return _planar(name, in1, in2, mode, boundary, fillvalue, precision, False)


def correlate2d(
    in1: ArrayLike,
    in2: ArrayLike,
    mode: str = "full",
    boundary: str = "fill",
    fillvalue: float = 0,
    precision: lax.PrecisionLike = None,
) -> Array:
    """The cross-correlation of two matrices.

    Args:
        in1: matrix of any numeric dtype.
        in2: matrix, which is conjugated; for "valid" the smaller matrix is.
        mode: "full" for all sums, "same" for the middle ones, as many as `in1` has elements,
            "valid" for those without a part beyond the edges.
        boundary: what is beyond the edges of `in1`: "fill" for `fillvalue`, "wrap" for its other
            side, "symm" for its mirror image.
        fillvalue: number.
        precision: of the products, see `lax.Precision`.

    Returns:
        A matrix of the common dtype, floats for integers.

    Raises:
        ValueError: an array is no matrix or has no elements, for "valid" neither is at least as
            large as the other in each dimension, or `mode` or `boundary` is none of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.signal import correlate2d
        >>> print(correlate2d(jnp.array([[1., 2., 3.]]), jnp.array([[0., 1.]])))
        [[1. 2. 3. 0.]]
    """
    name = "scipy.signal.correlate2d"
    return _planar(name, in1, in2, mode, boundary, fillvalue, precision, True)


def fftconvolve(
    in1: ArrayLike, in2: ArrayLike, mode: str = "full", axes: Sequence[int] | None = None
) -> Array:
    """The convolution of two arrays by Fourier transforms.

    Args:
        in1: array of any numeric dtype.
        in2: array of the same rank.
        mode: "full" for all sums, "same" for the middle ones, as many as `in1` has elements,
            "valid" for those without a part beyond the edges.
        axes: dimensions to convolve along; all if None. Along others the arrays are multiplied, and
            broadcast.

    Returns:
        An array of the common dtype, floats for integers.

    Raises:
        ValueError: ranks differ, an array has no elements, a dimension stands twice or other
            dimensions do not broadcast, for "valid" neither array is at least as large as the other
            in each dimension, or `mode` is none of these.

    Differs:
        Sizes that transform fast are taken. Dimensions that are not in `axes` broadcast, and 16-bit
        floats are computed in float32.

        >>> from dovetail.scipy.signal import fftconvolve
        >>> half = jnp.ones((1, 2), "float16")
        >>> fftconvolve(half, jnp.ones((3, 2), "float16"), axes=[1]).shape
        (3, 3)

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.signal import fftconvolve
        >>> print(jnp.round(fftconvolve(jnp.array([1., 2., 3.]), jnp.array([1., 1.])), 4))
        [1. 3. 5. 3.]
    """
    name = "scipy.signal.fftconvolve"
    shapes = _checked(name, in1, in2, mode)
    rank = len(shapes[0])
    wanted = range(rank) if axes is None else axes
    given = tuple(wanted) if isinstance(wanted, Iterable) else (wanted,)
    dimensions = canonical_axes(name, given, rank, "axes")
    for d in range(rank):
        pair = shapes[0][d], shapes[1][d]
        if d not in dimensions and pair[0] != pair[1] and 1 not in pair:
            raise ShapeError(
                f"{name}: dimension {d} is not in axes, and {shapes[0]} and {shapes[1]} do not "
                "broadcast along it"
            )
    _check_valid(name, shapes, mode, dimensions)
    return _transformed(in1, in2, mode, dimensions, False)


# ------------------------------------------------------------------------------------------ checks


def _checked(name: str, in1: Any, in2: Any, mode: Any) -> tuple[Sizes, Sizes]:
    """The shapes of two operands of one rank."""
    avals = [aval_of(array_like(x, name, n)) for x, n in ((in1, "in1"), (in2, "in2"))]
    for aval in avals:
        if dtypes.kind_of(aval.dtype) is None:
            raise TypeError(f"{name} does not accept the dtype {aval.dtype}")
    first, second = (aval.shape for aval in avals)
    if not isinstance(mode, str) or mode not in _MODES:
        raise ValueError(f"{name}: mode must be 'full', 'same' or 'valid', got {mode!r}")
    if len(first) != len(second):
        raise ValueError(f"{name} needs in1 and in2 of one rank, got shapes {first} and {second}")
    if 0 in (*first, *second):
        raise ValueError(
            f"{name} needs arrays with one element at least, got shapes {first} and {second}"
        )
    return first, second


def _check_valid(name: str, shapes: tuple[Sizes, Sizes], mode: str, dimensions: Sizes) -> None:
    pairs = [(shapes[0][d], shapes[1][d]) for d in dimensions]
    if mode == "valid" and any(a < b for a, b in pairs) and any(a > b for a, b in pairs):
        raise ValueError(
            f"{name}: for mode='valid' one array must be at least as large as the other in each "
            f"dimension, got shapes {shapes[0]} and {shapes[1]}"
        )


def _is_smaller(first: Sizes, second: Sizes) -> bool:
    return any(n < m for n, m in zip(first, second, strict=True))


def _any_method(
    name: str, in1: Any, in2: Any, mode: Any, method: Any, precision: Any, reverse: bool
) -> Any:
    shapes = _checked(name, in1, in2, mode)
    if not isinstance(method, str) or method not in ("auto", "direct", "fft"):
        raise ValueError(f"{name}: method must be 'auto', 'direct' or 'fft', got {method!r}")
    dimensions = tuple(range(len(shapes[0])))
    _check_valid(name, shapes, mode, dimensions)
    if method == "fft" or (method == "auto" and _transforms_faster(*shapes)):
        return _transformed(in1, in2, mode, dimensions, reverse)
    return _direct(in1, in2, mode, precision, reverse)


def _planar(
    name: str,
    in1: Any,
    in2: Any,
    mode: Any,
    boundary: Any,
    fillvalue: Any,
    precision: Any,
    reverse: bool,
) -> Any:
    shapes = _checked(name, in1, in2, mode)
    if len(shapes[0]) != 2:
        raise ValueError(f"{name} needs matrices, got shapes {shapes[0]} and {shapes[1]}")
    if not isinstance(boundary, str) or boundary not in ("fill", "wrap", "symm"):
        raise ValueError(f"{name}: boundary must be 'fill', 'wrap' or 'symm', got {boundary!r}")
    _check_valid(name, shapes, mode, (0, 1))
    nothing = isinstance(fillvalue, (bool, int, float, complex)) and fillvalue == 0
    if mode == "valid":
        result = _direct(in1, in2, mode, precision, reverse)
        # The larger matrix is what the other is moved along, which is the one conjugated.
        return jnp.conj(result) if reverse and _is_smaller(*shapes) else result
    if mode == "same" and reverse:
        mode = "later"
    if boundary == "fill" and nothing:
        return _direct(in1, in2, mode, precision, reverse)
    filling = array_like(fillvalue, name, "fillvalue")
    if aval_of(filling).shape:
        raise ShapeError(f"{name}: fillvalue must be a number, got shape {aval_of(filling).shape}")
    return _bounded(in1, in2, filling, mode, boundary, precision, reverse)


# ----------------------------------------------------------------------------------------- methods


def _transforms_faster(first: Sizes, second: Sizes) -> bool:
    """Whether Fourier transforms take less time than sums of products."""
    if not first:
        return False
    lengths = [fast_length(n + m - 1) for n, m in zip(first, second, strict=True)]
    points = math.prod(lengths)
    steps = 3 * points * math.log2(max(points, 2))
    return math.prod(first) * math.prod(second) > _COST_OF_TRANSFORM * steps


def _operands(in1: Any, in2: Any, reverse: bool) -> tuple[Any, Any, Any]:
    """Two arrays of one dtype to compute in, and the dtype of the result."""
    x, y = (jnp.asarray(v) for v in (in1, in2))
    dtype = inexact_dtype(dtypes.result_type(x, y))
    x, y = x.astype(dtype), y.astype(dtype)
    if reverse:
        y = jnp.flip(y).conj() if dtypes.kind_of(dtype) == "c" else jnp.flip(y)
    return x, y, dtype


def _part(mode: str, first: int, second: int) -> tuple[int, int]:
    """Where the wanted part of all sums begins, and how long it is."""
    if mode == "same":
        return (second - 1) // 2, first
    if mode == "later":  # for even sizes, the other one of the two in the middle
        return second // 2, first
    if mode == "valid":
        return min(first, second) - 1, abs(first - second) + 1
    return 0, first + second - 1


@compiled_with("mode", "precision", "reverse")
def _direct(in1: Any, in2: Any, mode: Any, precision: Any, reverse: Any) -> Any:
    x, y, _ = _operands(in1, in2, reverse)
    return _summed(x, y, mode, precision)


def _summed(x: Any, y: Any, mode: str, precision: Any) -> Any:
    """A part of the convolution by sums of products."""
    if not x.ndim:
        return x * y
    parts = [_part(mode, n, m) for n, m in zip(x.shape, y.shape, strict=True)]
    if x.size < y.size:  # what is moved along is the smaller one
        x, y = y, x
    before = [m - 1 - start for m, (start, _) in zip(y.shape, parts, strict=True)]
    after = [start + size - n for n, (start, size) in zip(x.shape, parts, strict=True)]
    pads = list(zip(before, after, strict=True))
    # A negative padding leaves out what no wanted sum has.
    cut = [(min(a, 0), min(b, 0), 0) for a, b in pads]
    if any(a or b for a, b, _ in cut):
        x = lax.pad(x, jnp.zeros((), x.dtype), cut)
    result = lax.conv_general_dilated(
        x[None, None],
        jnp.flip(y)[None, None],
        (1,) * x.ndim,
        [(max(a, 0), max(b, 0)) for a, b in pads],
        precision=precision,
    )
    return result[0, 0]


@compiled_with("mode", "boundary", "precision", "reverse")
def _bounded(
    in1: Any, in2: Any, fillvalue: Any, mode: Any, boundary: Any, precision: Any, reverse: Any
) -> Any:
    x, y, dtype = _operands(in1, in2, reverse)
    (n, m), (h, w) = x.shape, y.shape
    widths = [(h - 1, h - 1), (w - 1, w - 1)]
    if boundary == "fill":
        x = lax.pad(x, jnp.asarray(fillvalue).astype(dtype), [(*pair, 0) for pair in widths])
    else:
        x = jnp.pad(x, widths, mode="wrap" if boundary == "wrap" else "symmetric")
    result = lax.conv_general_dilated(
        x[None, None], jnp.flip(y)[None, None], (1, 1), "VALID", precision=precision
    )[0, 0]
    (top, rows), (left, columns) = _part(mode, n, h), _part(mode, m, w)
    return result[top : top + rows, left : left + columns]


@compiled_with("mode", "dimensions", "reverse")
def _transformed(in1: Any, in2: Any, mode: Any, dimensions: Any, reverse: Any) -> Any:
    x, y, dtype = _operands(in1, in2, reverse)
    if not dimensions:
        return x * y
    work = computed_in(dtype)
    x, y = x.astype(work), y.astype(work)
    parts = [_part(mode, x.shape[d], y.shape[d]) for d in dimensions]
    lengths = [fast_length(x.shape[d] + y.shape[d] - 1) for d in dimensions]
    if dtypes.kind_of(work) == "c":
        product = jnp.fft.fftn(x, lengths, dimensions) * jnp.fft.fftn(y, lengths, dimensions)
        result = jnp.fft.ifftn(product, lengths, dimensions)
    else:
        product = jnp.fft.rfftn(x, lengths, dimensions) * jnp.fft.rfftn(y, lengths, dimensions)
        result = jnp.fft.irfftn(product, lengths, dimensions)
    for d, (start, size) in zip(dimensions, parts, strict=True):
        result = lax.slice_in_dim(result, start, start + size, axis=d)
    return result.astype(dtype)


def fast_length(size: int) -> int:
    """The least number from `size` on without other prime factors than 2, 3 and 5."""
    best = 1 << max(size - 1, 0).bit_length()
    five = 1
    while five < best:
        three = five
        while three < best:
            quotient = -(-size // three)
            best = min(best, three << max(quotient - 1, 0).bit_length())
            three *= 3
        five *= 5
    return best
