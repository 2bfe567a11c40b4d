"""Images on other grids: every pixel of the result is a weighted sum of those around it.

The pixel `i` of a dimension is the interval from `i` to ``i + 1``, so that its centre is at ``i +
1/2``. Weights are separable, one matrix for each dimension.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import dovetail.numpy as jnp
from dovetail import lax
from dovetail.custom_derivatives import linear_call
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, canonical_axes, canonical_shape, inexact_dtype
from dovetail.extend.avals import aval_of
from dovetail.image.methods import (
    ResizeMethod,
    cubic,
    kernel_weight,
    method_of,
    namespace_of,
    overlap,
)
from dovetail.image.samples import Samples, Taps
from dovetail.numpy.averages import computed_in, real_dtype
from dovetail.numpy.compiled import compiled_with
from dovetail.typing import Array, ArrayLike, ShapeLike

#: Sums of so few pixels are faster than products with so many times more of them.
_MOST_TAPS = 32
_LEAST_GAIN = 8
#: Beyond the edges as many pixels have a weight where those at the edges are repeated.
_REACH = 3


def resize(
    image: ArrayLike,
    shape: ShapeLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: lax.PrecisionLike = lax.Precision.HIGHEST,
) -> Array:
    """An image, or an array of any rank, in another size.

    Args:
        image: array of any numeric dtype.
        shape: sizes of the result, one for each dimension.
        method: a `ResizeMethod` or its name.
        antialias: whether kernels are as much wider as the result is smaller, so that every pixel
            counts. It makes no difference where a dimension grows.
        precision: of the products, see `lax.Precision`.

    Returns:
        An array of that shape. It has the dtype of `image` for ``"nearest"`` and if no size
        changes; otherwise a float dtype if that is one of integers or booleans.

    Raises:
        TypeError: `shape` holds no integers, or `method` is no method.
        ValueError: `shape` has another rank than `image`, a size is negative, there are no pixels
            to make some of, or `method` is no known name.

    Differs:
        Positions are exact for every size, and images of 16 bits are computed in float32. Negative
        sizes are refused.

        >>> dt.image.resize(jnp.ones(3), (-2,), "linear")
        Traceback (most recent call last):
            ...
        dovetail.errors.ShapeError: image.resize: ...

    Example:
        >>> import dovetail.image
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.image.resize(jnp.array([0., 2., 4., 6.]), (2,), "area"))
        [1. 5.]
    """
    name = "image.resize"
    sizes = _checked_sizes(name, image, shape)
    return _resize(image, sizes, method_of(name, method), bool(antialias), precision)


@compiled_with("shape", "method", "antialias", "precision")
def _resize(image: Any, shape: Any, method: Any, antialias: Any, precision: Any) -> Any:
    x = jnp.asarray(image)
    changed = [d for d, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if n != m]
    if not changed:
        return x
    if method is ResizeMethod.NEAREST:
        for d in changed:
            n, m = x.shape[d], shape[d]
            x = jnp.take(x, (2 * np.arange(m, dtype=np.int64) + 1) * n // (2 * m), d)
        return x
    dtype = _result_dtype(x)
    if 0 in shape:
        return jnp.zeros(shape, dtype)
    work = computed_in(dtype)
    x = x.astype(work)
    # Smaller dimensions first, so that the larger ones are computed for fewer pixels.
    for d in sorted(changed, key=lambda d: shape[d] / x.shape[d]):
        x = _resampled(x, shape[d], d, method, antialias, precision)
    return x.astype(dtype)


def _resampled(x: Any, m: int, d: int, method: Any, antialias: Any, precision: Any) -> Any:
    """An image with another size `m` of the dimension `d`."""
    n = x.shape[d]
    samples = Samples(n, m)

    def weights() -> Any:
        distance = samples.distances(real_dtype(x.dtype))
        return _weights(distance, n / m, method, antialias)

    def by_product(x: Any) -> Any:
        return _contracted(x, weights(), d, precision)

    def transposed_by_product(x: Any) -> Any:
        return _contracted(x, weights().T, d, precision)

    first, count = samples.window(method, antialias)
    if not _are_few(count, n):
        return by_product(x)
    taps = Taps(first, _weights(samples.distances_from(first, count), n / m, method, antialias))
    back = taps.transposed(n)
    # Products make better use of processors with units for them than sums of shifted pixels.
    return linear_call(
        lambda _, x: lax.platform_dependent(x, cpu=lambda x: taps.of(x, d), default=by_product),
        lambda _, x: lax.platform_dependent(
            x,
            cpu=(lambda x: back.of(x, d))
            if _are_few(len(back.weights), m)
            else transposed_by_product,
            default=transposed_by_product,
        ),
        (),
        x,
    )


def _are_few(count: int, size: int) -> bool:
    """Whether sums of so many pixels are faster than products of matrices with all of them."""
    return count <= _MOST_TAPS and _LEAST_GAIN * count <= size


def scale_and_translate(
    image: ArrayLike,
    shape: ShapeLike,
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: lax.PrecisionLike = lax.Precision.HIGHEST,
) -> Array:
    """An image that is scaled and moved along some dimensions.

    The point `x` of the image is at ``x * scale + translation`` in the result. What lies outside
    the image is 0. Derivatives by `scale` and `translation` are those of the weights.

    Args:
        image: array of any numeric dtype.
        shape: sizes of the result, one for each dimension; those of other dimensions are those of
            `image`.
        spatial_dims: the dimensions to scale.
        scale: vector of a factor for each of them; negative ones mirror.
        translation: vector of an offset for each of them, in pixels of the result.
        method: a `ResizeMethod` or its name, not ``"nearest"``.
        antialias: whether kernels are as much wider as the result is smaller.
        precision: of the products, see `lax.Precision`.

    Returns:
        An array of that shape, of the dtype of `image` or, if that is one of integers or booleans,
        a float dtype.

    Raises:
        TypeError: `shape` or `spatial_dims` hold no integers, `scale` or `translation` is no real
            vector, or `method` is no method.
        ValueError: shapes do not fit, a dimension stands twice, or `method` is no known name or
            ``"nearest"``.

    Differs:
        A mirrored image is antialiased as well, what lies outside the image is 0 for every method,
        every dimension may stand once, and those that are not in `spatial_dims` keep their sizes.

        >>> one = jnp.ones(1)
        >>> dt.image.scale_and_translate(jnp.ones((2, 2)), (4, 4), (0,), one, one, "linear")
        Traceback (most recent call last):
            ...
        dovetail.errors.ShapeError: image.scale_and_translate: ...

    Example:
        >>> import dovetail.image
        >>> import dovetail.numpy as jnp
        >>> half = jnp.array([0.5])
        >>> print(dovetail.image.scale_and_translate(
        ...     jnp.array([2., 4.]), (3,), (0,), jnp.array([1.]), half, "linear"))
        [2. 3. 4.]
    """
    name = "image.scale_and_translate"
    sizes = _checked_sizes(name, image, shape)
    kind = method_of(name, method)
    if kind is ResizeMethod.NEAREST:
        raise ValueError(f"{name} does not take the method 'nearest'; resize does")
    given = aval_of(array_like(image, name, "image")).shape
    wanted = tuple(spatial_dims) if isinstance(spatial_dims, Iterable) else (spatial_dims,)
    dimensions = canonical_axes(name, wanted, len(given), "spatial_dims")
    for argument, vector in (("scale", scale), ("translation", translation)):
        aval = aval_of(array_like(vector, name, argument))
        if dtypes.kind_of(aval.dtype) not in ("b", "i", "u", "f"):
            raise TypeError(f"{name}: {argument} must hold real numbers, got {aval.dtype}")
        if aval.shape != (len(dimensions),):
            raise ShapeError(
                f"{name}: {argument} must have a number for each of spatial_dims, the shape "
                f"{(len(dimensions),)}, got {aval.shape}"
            )
    for d, (n, m) in enumerate(zip(given, sizes, strict=True)):
        if n != m and d not in dimensions:
            raise ShapeError(
                f"{name}: dimension {d} is not in spatial_dims, so that its size stays {n}; shape "
                f"has {m}"
            )
    return _scale_and_translate(
        image, sizes, dimensions, scale, translation, kind, bool(antialias), precision
    )


@compiled_with("shape", "dimensions", "method", "antialias", "precision")
def _scale_and_translate(
    image: Any,
    shape: Any,
    dimensions: Any,
    scale: Any,
    translation: Any,
    method: Any,
    antialias: Any,
    precision: Any,
) -> Any:
    x = jnp.asarray(image)
    dtype = _result_dtype(x)
    x = x.astype(computed_in(dtype))
    vectors = [jnp.asarray(v) for v in (scale, translation)]
    wide = any(v.dtype == np.float64 for v in (*vectors, x)) or x.dtype == np.complex128
    real = np.dtype("float64" if wide else "float32")
    scales, offsets = (v.astype(real) for v in vectors)
    for k, d in enumerate(dimensions):
        n, m = x.shape[d], shape[d]
        inverse = 1 / scales[k]
        centre = (lax.iota(real, m) + (0.5 - offsets[k])) * inverse - 0.5
        distance = centre[None, :] - lax.iota(real, n)[:, None]
        weights = _weights(distance, abs(inverse), method, antialias)
        inside = (centre >= -0.5) & (centre <= n - 0.5)
        x = _contracted(x, jnp.where(inside, weights, 0), d, precision)
    return x.astype(dtype)


def _checked_sizes(name: str, image: Any, shape: Any) -> tuple[int, ...]:
    """The sizes of a result of the rank of an image."""
    aval = aval_of(array_like(image, name, "image"))
    if dtypes.kind_of(aval.dtype) is None:
        raise TypeError(f"{name} does not accept the dtype {aval.dtype}")
    sizes = canonical_shape(name, shape)
    if any(n >= 2**31 for n in sizes):
        raise ShapeError(f"{name}: sizes in shape must be less than 2**31, got {sizes}")
    if len(sizes) != aval.ndim:
        raise ShapeError(
            f"{name}: shape must have a size for each dimension of image, got {sizes} and "
            f"{aval.shape}"
        )
    for n, m in zip(aval.shape, sizes, strict=True):
        if m and not n:
            raise ShapeError(f"{name} makes no pixels out of none, got {aval.shape} and {sizes}")
    return sizes


def _result_dtype(x: Any) -> Any:
    return inexact_dtype(aval_of(x).dtype)


def _weights(distance: Any, width: Any, method: ResizeMethod, antialias: bool) -> Any:
    """How much every pixel (rows) counts in every sample (columns).

    Args:
        distance: from pixels to samples.
        width: how many pixels of the image are one of the result.
        method: how pixels are weighed.
        antialias: whether kernels are wider for a smaller result.
    """
    xp = namespace_of(distance)
    if method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        return _repeating_weights(distance)
    if method is ResizeMethod.AREA:
        weights = overlap(distance, width)
    else:
        scaled = distance / xp.maximum(width, 1) if antialias else distance
        weights = kernel_weight(method, scaled)
    total = weights.sum(0)
    # Without pixels around it a sample is 0, and rounding errors are not to be enlarged.
    something = abs(total) > 1000 * float(dtypes.finfo(total.dtype).eps)
    return xp.where(something, weights / xp.where(something, total, 1), 0)


def _repeating_weights(distance: Any) -> Any:
    """The cubic with a = -3/4, whose weights beyond the edges belong to the pixels there."""
    xp = namespace_of(distance)
    weights = cubic(abs(distance), -0.75)
    steps = range(1, _REACH + 1)
    before = sum(cubic(abs(distance[:1] + k), -0.75) for k in steps)
    after = sum(cubic(abs(distance[-1:] - k), -0.75) for k in steps)
    rows = np.arange(len(weights))[:, None]
    weights = weights + xp.where(rows == 0, before, 0)
    return weights + xp.where(rows == len(weights) - 1, after, 0)


def _contracted(x: Any, weights: Any, dimension: int, precision: Any) -> Any:
    """Weighted sums along a dimension."""
    weights = weights.astype(x.dtype)
    result = lax.dot_general(x, weights, (((dimension,), (0,)), ((), ())), precision=precision)
    return jnp.moveaxis(result, -1, dimension)
