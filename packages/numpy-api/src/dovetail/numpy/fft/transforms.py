"""Discrete Fourier transforms of one, two and any number of dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail import lax
from dovetail.numpy.compiled import compiled_with
from dovetail.numpy.fft.fourier import along, over, over_two
from dovetail.typing import Array, ArrayLike


@compiled_with("n", "axis", "norm")
def fft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform along one dimension.

    Args:
        a: array of any numeric dtype.
        n: number of points to transform; `a` is truncated or padded with zeros to it. If None, the
            size of the dimension.
        axis: dimension.
        norm: normalisation: "backward" (or None) divides by the number of points in the inverse
            transform only, "forward" in the forward transform only, "ortho" by its square root in
            both.

    Returns:
        A complex array of the shape of `a`, except that the transformed dimension has size `n`. Its
        parts have 64 bits if those of `a` do, otherwise 32.

    Raises:
        ValueError: `n` is not positive, `axis` is out of bounds, or `norm` is not one of these.

    Differs:
        Transforms of no points are refused.

        >>> jnp.fft.fft(jnp.ones(0))
        Traceback (most recent call last):
            ...
        ValueError: fft.fft needs a signal of one point at least along each ...

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fft.fft(jnp.array([1., 0., 0., 0.])).real)
        [1. 1. 1. 1.]
    """
    return along("fft.fft", a, n, axis, norm, lax.FftType.FFT)


@compiled_with("n", "axis", "norm")
def ifft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `fft`.

    Args:
        a: array of any numeric dtype.
        n: number of points to transform; `a` is truncated or padded with zeros to it. If None, the
            size of the dimension.
        axis: dimension.
        norm: normalisation: "backward" (or None) divides by the number of points in the inverse
            transform only, "forward" in the forward transform only, "ortho" by its square root in
            both.

    Returns:
        A complex array of the shape of `a`, except that the transformed dimension has size `n`.

    Raises:
        ValueError: `n` is not positive, `axis` is out of bounds, or `norm` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fft.ifft(jnp.array([4., 0., 0., 0.])).real)
        [1. 1. 1. 1.]
    """
    return along("fft.ifft", a, n, axis, norm, lax.FftType.IFFT)


@compiled_with("n", "axis", "norm")
def rfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform of real input along one dimension; its first half.

    The other half is the complex conjugate of this one.

    Args:
        a: array of a real dtype.
        n: number of points to transform; `a` is truncated or padded with zeros to it. If None, the
            size of the dimension.
        axis: dimension.
        norm: normalisation: "backward" (or None) divides by the number of points in the inverse
            transform only, "forward" in the forward transform only, "ortho" by its square root in
            both.

    Returns:
        A complex array of the shape of `a`, except that the transformed dimension has size ``n // 2
        + 1``.

    Raises:
        TypeError: `a` is complex.
        ValueError: `n` is not positive, `axis` is out of bounds, or `norm` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fft.rfft(jnp.array([1., 0., 0., 0.])).real)
        [1. 1. 1.]
    """
    return along("fft.rfft", a, n, axis, norm, lax.FftType.RFFT)


@compiled_with("n", "axis", "norm")
def irfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `rfft`: real numbers from the first half of their transform.

    Args:
        a: array of any numeric dtype: the first ``n // 2 + 1`` coefficients along the dimension,
            the others are their conjugates.
        n: number of points in the result; `a` is truncated or padded with zeros to ``n // 2 + 1``
            coefficients. If None, twice one less than the number of coefficients, which is even.
        axis: dimension.
        norm: normalisation: "backward" (or None) divides by the number of points in the inverse
            transform only, "forward" in the forward transform only, "ortho" by its square root in
            both.

    Returns:
        A real array of the shape of `a`, except that the transformed dimension has size `n`.

    Raises:
        ValueError: `n` is not positive, `axis` is out of bounds, or `norm` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fft.irfft(jnp.array([4., 0., 0.])))
        [1. 1. 1. 1.]
    """
    return along("fft.irfft", a, n, axis, norm, lax.FftType.IRFFT)


@compiled_with("n", "axis", "norm")
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The discrete Fourier transform of a Hermitian signal, which is real.

    Only the first half of the signal is given; the other half is its complex conjugate.

    Args:
        a: array of any numeric dtype: the first ``n // 2 + 1`` points of the signal.
        n: number of points of the signal; `a` is truncated or padded with zeros to ``n // 2 + 1``
            of them. If None, twice one less than the number of those given, which is even.
        axis: dimension.
        norm: normalisation: "backward" (or None) divides by the number of points in the inverse
            transform only, "forward" in the forward transform only, "ortho" by its square root in
            both.

    Returns:
        A real array of the shape of `a`, except that the transformed dimension has size `n`.

    Raises:
        ValueError: `n` is not positive, `axis` is out of bounds, or `norm` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fft.hfft(jnp.array([1., 2., 2.])))
        [ 7. -1. -1. -1.]
    """
    return along("fft.hfft", a, n, axis, norm, lax.FftType.IRFFT, conjugated=True)


@compiled_with("n", "axis", "norm")
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1, norm: str | None = None) -> Array:
    """The inverse of `hfft`: the first half of a Hermitian signal from its real transform.

    Args:
        a: array of a real dtype.
        n: number of points to transform; `a` is truncated or padded with zeros to it. If None, the
            size of the dimension.
        axis: dimension.
        norm: normalisation: "backward" (or None) divides by the number of points in the inverse
            transform only, "forward" in the forward transform only, "ortho" by its square root in
            both.

    Returns:
        A complex array of the shape of `a`, except that the transformed dimension has size ``n // 2
        + 1``.

    Raises:
        TypeError: `a` is complex.
        ValueError: `n` is not positive, `axis` is out of bounds, or `norm` is not one of these.

    Differs:
        An infinity is scaled without becoming nan.

        >>> print(jnp.fft.ihfft(jnp.array([-jnp.inf])))
        [-inf-0.j]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fft.ihfft(jnp.array([6., 0., -2., 0.])).real)
        [1. 2. 1.]
    """
    return along("fft.ihfft", a, n, axis, norm, lax.FftType.RFFT, conjugated=True)


@compiled_with("s", "axes", "norm")
def fftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The discrete Fourier transform along several dimensions.

    Args:
        a: array of any numeric dtype.
        s: number of points to transform along each of `axes`; `a` is truncated or padded with zeros
            to them. If None, the sizes of these dimensions.
        axes: dimensions, all different; if None, as many of the last ones as `s` has, or all.
        norm: normalisation: "backward" (or None) divides by the number of points in the inverse
            transform only, "forward" in the forward transform only, "ortho" by its square root in
            both.

    Returns:
        A complex array of the shape of `a`, except that the transformed dimensions have the sizes
        `s`.

    Raises:
        ValueError: a size is not positive, `s` and `axes` do not match, a dimension is out of
            bounds or named twice, or `norm` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(abs(jnp.fft.fftn(jnp.eye(2))))
        [[2. 0.]
         [0. 2.]]
    """
    return over("fft.fftn", a, s, axes, norm, lax.FftType.FFT)


@compiled_with("s", "axes", "norm")
def ifftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of `fftn`.

    Args:
        a: array of any numeric dtype.
        s: number of points to transform along each of `axes`; `a` is truncated or padded with zeros
            to them. If None, the sizes of these dimensions.
        axes: dimensions, all different; if None, as many of the last ones as `s` has, or all.
        norm: normalisation: "backward" (or None) divides by the number of points in the inverse
            transform only, "forward" in the forward transform only, "ortho" by its square root in
            both.

    Returns:
        A complex array of the shape of `a`, except that the transformed dimensions have the sizes
        `s`.

    Raises:
        ValueError: a size is not positive, `s` and `axes` do not match, a dimension is out of
            bounds or named twice, or `norm` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(abs(jnp.fft.ifftn(2 * jnp.eye(2))))
        [[1. 0.]
         [0. 1.]]
    """
    return over("fft.ifftn", a, s, axes, norm, lax.FftType.IFFT)


@compiled_with("s", "axes", "norm")
def rfftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The discrete Fourier transform of real input along several dimensions; its first half.

    Args:
        a: array of a real dtype.
        s: number of points to transform along each of `axes`; `a` is truncated or padded with zeros
            to them. If None, the sizes of these dimensions.
        axes: dimensions, all different; if None, as many of the last ones as `s` has, or all.
        norm: normalisation: "backward" (or None) divides by the number of points in the inverse
            transform only, "forward" in the forward transform only, "ortho" by its square root in
            both.

    Returns:
        A complex array of the shape of `a`, except that the transformed dimensions have the sizes
        `s`; along the last of them it has only the first ``s[-1] // 2 + 1`` coefficients.

    Raises:
        TypeError: `a` is complex.
        ValueError: a size is not positive, `s` and `axes` do not match, a dimension is out of
            bounds or named twice, or `norm` is not one of these.

    Differs:
        A transform along no dimensions is refused.

        >>> jnp.fft.rfftn(jnp.ones((2, 2)), axes=())
        Traceback (most recent call last):
            ...
        ValueError: fft.rfftn needs at least one dimension to transform along

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(abs(jnp.fft.rfftn(jnp.eye(2))))
        [[2. 0.]
         [0. 2.]]
    """
    return over("fft.rfftn", a, s, axes, norm, lax.FftType.RFFT)


@compiled_with("s", "axes", "norm")
def irfftn(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
    norm: str | None = None,
) -> Array:
    """The inverse of `rfftn`.

    Args:
        a: array of any numeric dtype, with the first ``s[-1] // 2 + 1`` coefficients along the last
            of `axes`.
        s: number of points in the result along each of `axes`; `a` is truncated or padded with
            zeros. If None, the sizes of these dimensions; along the last dimension twice one less
            than the number of coefficients.
        axes: dimensions, all different; if None, as many of the last ones as `s` has, or all.
        norm: normalisation: "backward" (or None) divides by the number of points in the inverse
            transform only, "forward" in the forward transform only, "ortho" by its square root in
            both.

    Returns:
        A real array of the shape of `a`, except that the transformed dimensions have the sizes `s`.

    Raises:
        ValueError: a size is not positive, `s` and `axes` do not match, a dimension is out of
            bounds or named twice, or `norm` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fft.irfftn(2 * jnp.eye(2)))
        [[1. 0.]
         [0. 1.]]
    """
    return over("fft.irfftn", a, s, axes, norm, lax.FftType.IRFFT)


@compiled_with("s", "axes", "norm")
def fft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """The discrete Fourier transform along two dimensions.

    Args:
        a: array of any numeric dtype.
        s: number of points to transform along each of `axes`; `a` is truncated or padded with zeros
            to them. If None, the sizes of these dimensions.
        axes: the two dimensions.
        norm: normalisation: "backward" (or None) divides by the number of points in the inverse
            transform only, "forward" in the forward transform only, "ortho" by its square root in
            both.

    Returns:
        A complex array of the shape of `a`, except that the transformed dimensions have the sizes
        `s`.

    Raises:
        ValueError: a size is not positive, `s` and `axes` do not match, a dimension is out of
            bounds or named twice, or `norm` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(abs(jnp.fft.fft2(jnp.eye(2))))
        [[2. 0.]
         [0. 2.]]
    """
    return over_two("fft.fft2", a, s, axes, norm, lax.FftType.FFT)


@compiled_with("s", "axes", "norm")
def ifft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """The inverse of `fft2`.

    Args:
        a: array of any numeric dtype.
        s: number of points to transform along each of `axes`; `a` is truncated or padded with zeros
            to them. If None, the sizes of these dimensions.
        axes: the two dimensions.
        norm: normalisation: "backward" (or None) divides by the number of points in the inverse
            transform only, "forward" in the forward transform only, "ortho" by its square root in
            both.

    Returns:
        A complex array of the shape of `a`, except that the transformed dimensions have the sizes
        `s`.

    Raises:
        ValueError: a size is not positive, `s` and `axes` do not match, a dimension is out of
            bounds or named twice, or `norm` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(abs(jnp.fft.ifft2(2 * jnp.eye(2))))
        [[1. 0.]
         [0. 1.]]
    """
    return over_two("fft.ifft2", a, s, axes, norm, lax.FftType.IFFT)


@compiled_with("s", "axes", "norm")
def rfft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """The discrete Fourier transform of real input along two dimensions; its first half.

    Args:
        a: array of a real dtype.
        s: number of points to transform along each of `axes`; `a` is truncated or padded with zeros
            to them. If None, the sizes of these dimensions.
        axes: the two dimensions.
        norm: normalisation: "backward" (or None) divides by the number of points in the inverse
            transform only, "forward" in the forward transform only, "ortho" by its square root in
            both.

    Returns:
        A complex array of the shape of `a`, except that the transformed dimensions have the sizes
        `s`; along the last of them it has only the first ``s[-1] // 2 + 1`` coefficients.

    Raises:
        TypeError: `a` is complex.
        ValueError: a size is not positive, `s` and `axes` do not match, a dimension is out of
            bounds or named twice, or `norm` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(abs(jnp.fft.rfft2(jnp.eye(2))))
        [[2. 0.]
         [0. 2.]]
    """
    return over_two("fft.rfft2", a, s, axes, norm, lax.FftType.RFFT)


@compiled_with("s", "axes", "norm")
def irfft2(
    a: ArrayLike,
    s: Sequence[int] | None = None,
    axes: Sequence[int] = (-2, -1),
    norm: str | None = None,
) -> Array:
    """The inverse of `rfft2`.

    Args:
        a: array of any numeric dtype, with the first ``s[-1] // 2 + 1`` coefficients along the last
            of `axes`.
        s: number of points in the result along each of `axes`; `a` is truncated or padded with
            zeros. If None, the sizes of these dimensions; along the last dimension twice one less
            than the number of coefficients.
        axes: the two dimensions.
        norm: normalisation: "backward" (or None) divides by the number of points in the inverse
            transform only, "forward" in the forward transform only, "ortho" by its square root in
            both.

    Returns:
        A real array of the shape of `a`, except that the transformed dimensions have the sizes `s`.

    Raises:
        ValueError: a size is not positive, `s` and `axes` do not match, a dimension is out of
            bounds or named twice, or `norm` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fft.irfft2(2 * jnp.eye(2)))
        [[1. 0.]
         [0. 1.]]
    """
    return over_two("fft.irfft2", a, s, axes, norm, lax.FftType.IRFFT)
