"""Discrete cosine transforms, each as one Fourier transform of about the same length.

The types are those of W. H. Chen, C. H. Smith and S. C. Fralick (1977) and of SciPy: without a norm
type 2 is ``2 * sum(x[n] * cos(pi * k * (2 * n + 1) / (2 * N)))``. Types 2 and 3 are computed as by
J. Makhoul, A fast cosine transform in one and two dimensions, IEEE Trans. ASSP 28 (1980).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import dovetail.numpy as jnp
from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, canonical_axes, canonical_axis, counted, integer
from dovetail.extend.avals import aval_of
from dovetail.numpy.compiled import compiled_with
from dovetail.numpy.fft.fourier import length
from dovetail.typing import Array, ArrayLike

_NORMS = (None, "backward", "ortho", "forward")
#: The type of the inverse of each type, but for a factor.
_INVERSES = {1: 1, 2: 3, 3: 2, 4: 4}


@compiled_with("type", "n", "axis", "norm")
def dct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """The discrete cosine transform along one dimension.

    Args:
        x: array of any numeric dtype.
        type: 1, 2, 3 or 4.
        n: number of points; `x` is truncated or padded with zeros to it. If None, the size of the
            dimension.
        axis: dimension.
        norm: "backward" (or None) divides by ``2 * N``, for type 1 ``2 * (N - 1)``, in the inverse
            transform only, "forward" in the forward transform only, "ortho" makes both orthogonal.

    Returns:
        An array of floats, or complex numbers, of 32 bits or, if those of `x` have them, 64 for
        each part.

    Raises:
        NotImplementedError: `type` is none of these.
        ValueError: `n` is not positive, or 1 for type 1, `axis` is out of bounds, or `norm` is not
            one of these.

    Differs:
        JAX has type 2, and neither of the norms "forward" and, by this name, "backward".

        >>> from dovetail.scipy.fft import dct
        >>> print(dct(jnp.array([1., 2.]), type=3))
        [ 3.828427  -1.8284271]

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.fft import dct
        >>> print(dct(jnp.array([1., 1.]), norm="forward"))
        [1. 0.]
    """
    return _along("dct", x, type, n, axis, norm, False)


@compiled_with("type", "n", "axis", "norm")
def idct(
    x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None
) -> Array:
    """The inverse of `dct` of the same type.

    Args:
        x: array of any numeric dtype.
        type: 1, 2, 3 or 4.
        n: number of points; `x` is truncated or padded with zeros to it. If None, the size of the
            dimension.
        axis: dimension.
        norm: as in `dct`.

    Returns:
        An array of floats, or complex numbers, of 32 bits or, if those of `x` have them, 64 for
        each part.

    Raises:
        NotImplementedError: `type` is none of these.
        ValueError: `n` is not positive, or 1 for type 1, `axis` is out of bounds, or `norm` is not
            one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.fft import dct, idct
        >>> print(jnp.round(idct(dct(jnp.array([1., 2., 4.]))), 4))
        [1. 2. 4.]
    """
    return _along("idct", x, type, n, axis, norm, True)


def dctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The discrete cosine transform along several dimensions.

    Args:
        x: array of any numeric dtype.
        type: 1, 2, 3 or 4.
        s: numbers of points along `axes`; `x` is truncated or padded with zeros to them. If None,
            the sizes of the dimensions.
        axes: dimensions, all different. If None, the last ones of which `s` has the sizes, or all.
        norm: as in `dct`.

    Returns:
        An array of floats, or complex numbers, of 32 bits or, if those of `x` have them, 64 for
        each part.

    Raises:
        NotImplementedError: `type` is none of these.
        ValueError: a size is not positive, dimensions are out of bounds or stand twice, `s` and
            `axes` differ in length, or `norm` is not one of those of `dct`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.fft import dctn
        >>> print(dctn(jnp.ones((2, 2))))
        [[16.  0.]
         [ 0.  0.]]
    """
    return _over("dctn", x, type, s, axes, norm, False)


def idctn(
    x: ArrayLike,
    type: int = 2,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of `dctn` of the same type.

    Args:
        x: array of any numeric dtype.
        type: 1, 2, 3 or 4.
        s: numbers of points along `axes`; `x` is truncated or padded with zeros to them. If None,
            the sizes of the dimensions.
        axes: dimensions, all different. If None, the last ones of which `s` has the sizes, or all.
        norm: as in `dct`.

    Returns:
        An array of floats, or complex numbers, of 32 bits or, if those of `x` have them, 64 for
        each part.

    Raises:
        NotImplementedError: `type` is none of these.
        ValueError: a size is not positive, dimensions are out of bounds or stand twice, `s` and
            `axes` differ in length, or `norm` is not one of those of `dct`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy.fft import idctn
        >>> print(idctn(jnp.array([[16., 0.], [0., 0.]])))
        [[1. 1.]
         [1. 1.]]
    """
    return _over("idctn", x, type, s, axes, norm, True)


def _along(function: str, x: Any, type: Any, n: Any, axis: Any, norm: Any, inverse: bool) -> Any:
    name = f"scipy.fft.{function}"
    kind = _checked_type(name, type, norm)
    x = _operand(name, x)
    dimension = canonical_axis(name, axis, aval_of(x).ndim)
    size = x.shape[dimension] if n is None else length(name, "n", n)
    return _transform(name, x, kind, (size,), (dimension,), norm, inverse)


def _over(function: str, x: Any, type: Any, s: Any, axes: Any, norm: Any, inverse: bool) -> Any:
    """A transform along several dimensions, whose arguments may be sequences."""
    name = f"scipy.fft.{function}"
    kind = _checked_type(name, type, norm)
    shape = aval_of(array_like(x, name)).shape
    rank = len(shape)
    sizes = None
    if s is not None:
        given = tuple(s) if isinstance(s, Iterable) else (s,)
        sizes = tuple(length(name, "s", n) for n in given)
    if axes is None:
        if sizes is not None and len(sizes) > rank:
            raise ValueError(
                f"{name}: s names {counted(len(sizes), 'size')}, and x has rank {rank}"
            )
        dimensions = tuple(range(rank - len(sizes) if sizes is not None else 0, rank))
    else:
        wanted = tuple(axes) if isinstance(axes, Iterable) else (axes,)
        dimensions = canonical_axes(name, wanted, rank, "axes")
    if sizes is None:
        sizes = tuple(shape[d] for d in dimensions)
    if len(sizes) != len(dimensions):
        raise ValueError(
            f"{name}: s and axes must have equal lengths, got {sizes} and {dimensions}"
        )
    return _transform_operand(x, name, kind, sizes, dimensions, norm, inverse)


@compiled_with("name", "type", "sizes", "dimensions", "norm", "inverse")
def _transform_operand(
    x: Any, name: Any, type: Any, sizes: Any, dimensions: Any, norm: Any, inverse: Any
) -> Any:
    return _transform(name, _operand(name, x), type, sizes, dimensions, norm, inverse)


def _checked_type(name: str, type: Any, norm: Any) -> int:
    kind = integer(name, "type", type)
    if kind not in _INVERSES:
        raise NotImplementedError(f"{name}: type must be 1, 2, 3 or 4, got {kind}")
    if not (norm is None or isinstance(norm, str)) or norm not in _NORMS:
        raise ValueError(
            f'{name}: norm must be None, "backward", "ortho" or "forward", got {norm!r}'
        )
    return kind


def _operand(name: str, x: Any) -> Any:
    """The argument in the dtype to transform: 32 or 64 bits for each part."""
    x = array_like(x, name)
    dtype = aval_of(x).dtype
    letter = dtypes.kind_of(dtype)
    if letter is None:
        raise TypeError(f"{name} does not accept the dtype {dtype}")
    if letter == "c" or (letter == "f" and dtype.itemsize >= 4):
        return jnp.asarray(x)
    return jnp.asarray(x).astype(np.dtype("float64" if dtype.itemsize == 8 else "float32"))


def _transform(
    name: str,
    x: Any,
    type: int,
    sizes: tuple[int, ...],
    dimensions: tuple[int, ...],
    norm: Any,
    inverse: bool,
) -> Any:
    """Transforms of a checked operand, one dimension after the other."""
    for size, dimension in zip(sizes, dimensions, strict=True):
        if size < 1:
            raise ValueError(f"{name} needs a signal of one point at least, got shape {x.shape}")
        if size < 2 and type == 1:
            raise ValueError(f"{name}: a transform of type 1 has two points at least, got {size}")
        x = _resized(x, size, dimension)
    if not dimensions:
        return x
    if dtypes.kind_of(x.dtype) == "c":
        parts = jnp.stack([x.real, x.imag])
        moved = tuple(d + 1 for d in dimensions)
        parts = _transform(name, parts, type, sizes, moved, norm, inverse)
        return lax.complex(parts[0], parts[1])
    for size, dimension in zip(sizes, dimensions, strict=True):
        x = jnp.moveaxis(x, dimension, -1)
        x = _last(x, size, type, norm, inverse)
        x = jnp.moveaxis(x, -1, dimension)
    return x


def _last(x: Any, size: int, type: int, norm: Any, inverse: bool) -> Any:
    """A transform of real numbers along the last dimension."""
    kind = _INVERSES[type] if inverse else type
    count = 2 * (size - 1) if kind == 1 else 2 * size
    root = math.sqrt(2)
    if norm == "ortho" and kind in (1, 3):
        x = x.at[..., 0].multiply(root)
        if kind == 1:
            x = x.at[..., -1].multiply(root)
    x = {1: _first, 2: _second, 3: _third, 4: _fourth}[kind](x, size)
    if norm == "ortho":
        x = x * (1 / math.sqrt(count))
        if kind in (1, 2):
            x = x.at[..., 0].multiply(1 / root)
        return x.at[..., -1].multiply(1 / root) if kind == 1 else x
    return x / count if (norm == "forward") is not inverse else x


def _resized(x: Any, size: int, dimension: int) -> Any:
    have = x.shape[dimension]
    if have > size:
        return lax.slice_in_dim(x, 0, size, axis=dimension)
    if have == size:
        return x
    config = [(0, size - have if d == dimension else 0, 0) for d in range(x.ndim)]
    return lax.pad(x, jnp.zeros((), x.dtype), config)


def _turn(dtype: Any, count: int, step: float) -> Any:
    """``exp(1j * step * k)`` for `k` below a count."""
    angle = lax.iota(dtype, count) * step
    return lax.complex(lax.cos(angle), lax.sin(angle))


def _first(x: Any, size: int) -> Any:
    """Type 1: the Fourier transform of the signal and its mirror image."""
    mirrored = jnp.concatenate([x, x[..., -2:0:-1]], -1) if size > 2 else x
    return jnp.fft.rfft(mirrored).real


def _second(x: Any, size: int) -> Any:
    """Type 2: even points in order, then odd ones in reverse, transformed and turned."""
    order = jnp.concatenate([x[..., ::2], x[..., 1::2][..., ::-1]], -1)
    half = size // 2 + 1
    z = jnp.fft.rfft(order) * _turn(x.dtype, half, -math.pi / (2 * size))
    # The second half of the spectrum is the conjugate of the first.
    rest = z.imag[..., 1 : (size + 1) // 2][..., ::-1]
    return 2 * jnp.concatenate([z.real, -rest], -1)


def _third(x: Any, size: int) -> Any:
    """Type 3: the steps of type 2 undone in turn."""
    half = size // 2 + 1
    zero = jnp.zeros((*x.shape[:-1], 1), x.dtype)
    mirrored = jnp.concatenate([zero, x[..., ::-1]], -1)[..., :half]
    z = lax.complex(x[..., :half], -mirrored) if size > 1 else lax.complex(x, zero)
    turned = z * _turn(x.dtype, half, math.pi / (2 * size))
    order = jnp.fft.irfft(turned, size, norm="forward")
    even = (size + 1) // 2
    odd = order[..., even:][..., ::-1]
    # Both halves in turn, as zeros between the points of each.
    last = [(0, 0, 0)] * (x.ndim - 1)
    none = jnp.zeros((), x.dtype)
    x = lax.pad(order[..., :even], none, [*last, (0, size % 2 == 0, 1)])
    return x + lax.pad(odd, none, [*last, (1, size % 2, 1)]) if size > 1 else x


def _fourth(x: Any, size: int) -> Any:
    """Type 4: turned, transformed with as many zeros, and turned again."""
    z = lax.complex(x, jnp.zeros_like(x)) * _turn(x.dtype, size, -math.pi / (2 * size))
    z = jnp.fft.fft(z, 2 * size)[..., :size]
    phase = complex(math.cos(math.pi / (4 * size)), -math.sin(math.pi / (4 * size)))
    return 2 * (z * (_turn(x.dtype, size, -math.pi / (2 * size)) * phase)).real
