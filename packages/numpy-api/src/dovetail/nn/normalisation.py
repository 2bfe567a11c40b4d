"""Log-sum-exp, softmax, standardisation, one-hot vectors."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

from dovetail import custom_jvp, lax, softmax_custom_jvp
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    Axis,
    array_like,
    broadcast_result,
    canonical_axes,
    canonical_axis,
    convert,
    inexact,
    inexact_pair,
    integer,
    literal,
    promoted_pair,
    requested_dtype,
    value,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.unchecked import iota_like, position_dtype, reduce_max_of_numbers_p
from dovetail.numpy.averages import count_of
from dovetail.numpy.averages import mean as mean_of
from dovetail.numpy.compiled import compiled_with, divided_program, plain
from dovetail.numpy.conditions import as_mask, pick
from dovetail.numpy.reductions import kept, strong, summed
from dovetail.numpy.shapes import expand_dims, operand
from dovetail.typing import Array, ArrayLike, DTypeLike, Sharding

Shape = tuple[int, ...]


def _prepared(function: str, x: Any, where: Any) -> tuple[Any, Any]:
    """A float operand and a mask (or None), both in their common shape."""
    x = value(strong(inexact(function, x)))
    if where is None:
        return x, None
    mask = as_mask(function, where)
    shape = broadcast_result(function, (aval_of(x).shape, aval_of(mask).shape), explicit=True)
    rank = len(shape)
    spread = [
        lax.broadcast_in_dim(v, shape, tuple(range(rank - aval_of(v).ndim, rank)))
        for v in (x, mask)
    ]
    return spread[0], spread[1]


def _largest(x: Any, mask: Any, axes: Shape) -> Any:
    """The largest real part along dimensions, which keep size one; without a gradient.

    It may leave NaN out: the difference of a NaN and any number is NaN.
    """
    real = lax.real(x) if dtypes.kind_of(aval_of(x).dtype) == "c" else x
    real = lax.stop_gradient(real)
    dtype = aval_of(real).dtype
    if mask is not None:
        real = pick(mask, real, literal(-math.inf, dtype))
    shape = aval_of(real).shape
    return kept(reduce_max_of_numbers_p.bind(real, axes=axes), shape, axes)


def _shifted_to_zero(x: Any, mask: Any, axes: Shape) -> Any:
    """The numbers minus the largest of them; -inf where `mask` is false."""
    shifted = _shifted(x, _largest(x, mask, axes))
    return shifted if mask is None else pick(mask, shifted, literal(-math.inf, aval_of(x).dtype))


def _shifted(x: Any, shift: Any) -> Any:
    return lax.sub(*promoted_pair("logsumexp", x, convert(shift, aval_of(x).dtype)))


@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
    where: ArrayLike | None = None,
) -> Array: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    *,
    return_sign: Literal[True],
    where: ArrayLike | None = None,
) -> tuple[Array, Array]: ...
@compiled_with("axis", "keepdims", "return_sign")
def logsumexp(
    a: ArrayLike,
    axis: Axis = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:
    """The logarithm of a sum of exponentials along dimensions, without overflow.

    Args:
        a: array or scalar: the exponents.
        axis: dimension or dimensions; all if None.
        b: factors of the exponentials: an array that broadcasts with `a`.
        keepdims: whether to keep the dimensions, with size one.
        return_sign: whether to return the sign of the sum too, and the logarithm of its magnitude;
            otherwise the logarithm of a negative sum is nan.
        where: boolean array that broadcasts with `a`: which elements to include.

    Returns:
        A float or complex array without these dimensions, or a pair of it and the sign; -inf if
        there are no elements or all are -inf.

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(f"{dovetail.nn.logsumexp(jnp.array([1000., 1000.])):.3f}")
        1000.693
    """
    if b is not None:
        first, factors = inexact_pair("logsumexp", a, b, ("a", "b"))
        shape = broadcast_result("logsumexp", (aval_of(first).shape, aval_of(factors).shape))
        rank = len(shape)
        first, factors = (
            lax.broadcast_in_dim(v, shape, tuple(range(rank - aval_of(v).ndim, rank)))
            for v in (first, factors)
        )
        x, mask = _prepared("logsumexp", first, where)
        factors, _ = _prepared("logsumexp", factors, where)
        # A factor of zero leaves its element out, even if that is infinite.
        counts = lax.ne(factors, literal(0, aval_of(factors).dtype))
        mask = counts if mask is None else lax.bitwise_and(mask, counts)
    else:
        x, mask = _prepared("logsumexp", a, where)
        factors = None
    shape = aval_of(x).shape
    dtype = aval_of(x).dtype
    axes = canonical_axes("logsumexp", axis, len(shape))
    shift = _largest(x, mask, axes)
    shift = pick(lax.is_finite(shift), shift, literal(0, aval_of(shift).dtype))
    zero = literal(0, dtype)
    if mask is not None:
        x = pick(mask, x, zero)
    terms = lax.exp(_shifted(x, shift))
    if factors is not None:
        terms = lax.mul(terms, factors)
    if mask is not None:
        terms = pick(mask, terms, zero)
    total = kept(summed(terms, axes), shape, axes)
    shift = convert(shift, dtype)
    if return_sign:
        sign = lax.sign(total)
        magnitude = lax.abs(total)
        result = lax.add(
            lax.log(magnitude), lax.real(shift) if aval_of(magnitude).dtype != dtype else shift
        )
    else:
        sign = None
        result = lax.add(lax.log(total), shift)
    if not keepdims and axes:
        result = lax.squeeze(result, axes)
        sign = None if sign is None else lax.squeeze(sign, axes)
    return result if sign is None else (result, sign)


@compiled_with("axis", "keepdims")
def logmeanexp(
    x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """The logarithm of a mean of exponentials along dimensions, without overflow.

    Args:
        x: array or scalar: the exponents.
        axis: dimension or dimensions; all if None.
        where: boolean array that broadcasts with `x`: which elements to include.
        keepdims: whether to keep the dimensions, with size one.

    Returns:
        A float or complex array without these dimensions.

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(f"{dovetail.nn.logmeanexp(jnp.array([1000., 1000.])):.3f}")
        1000.000
    """
    x, mask = _prepared("logmeanexp", x, where)
    axes = canonical_axes("logmeanexp", axis, aval_of(x).ndim)
    total = plain(logsumexp)(x, axes, None, True, False, mask)
    dtype = aval_of(total).dtype
    count = convert(count_of("logmeanexp", x, axes, mask, np.dtype("float32")), dtype)
    result = lax.sub(total, lax.log(count))
    return result if keepdims or not axes else lax.squeeze(result, axes)


def _softmax(shifted: Any, axes: Shape) -> Any:
    terms = lax.exp(shifted)
    return lax.div(terms, kept(summed(terms, axes), aval_of(terms).shape, axes))


_softmax_with_rule: Any = custom_jvp(_softmax, nondiff_argnums=(1,))


def _softmax_jvp(axes: Shape, primals: Any, tangents: Any) -> Any:
    result = _softmax_with_rule(*primals, axes)
    weighted = lax.mul(result, tangents[0])
    total = kept(summed(weighted, axes), aval_of(weighted).shape, axes)
    return result, lax.sub(weighted, lax.mul(result, total))


_softmax_with_rule.defjvp(_softmax_jvp)


@compiled_with("axis")
def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """Exponentials divided by their sum along dimensions: positive numbers that add up to 1.

    Args:
        x: array.
        axis: dimension or dimensions; all if None.
        where: boolean array that broadcasts with `x`: which to include; the others become 0.

    Returns:
        A float or complex array of the shape of `x`.

    Differs:
        Integers become floats before anything is computed, so that no difference of them
        overflows.

        >>> print(dt.nn.softmax(jnp.array([-128, 127], "int8")))
        [0. 1.]

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.softmax(jnp.array([1000., 1000., -jnp.inf])))
        [0.5 0.5 0. ]
    """
    x, mask = _prepared("softmax", x, where)
    shape = aval_of(x).shape
    axes = canonical_axes("softmax", axis, len(shape))
    compute = _softmax_with_rule if softmax_custom_jvp.value else _softmax
    result = compute(_shifted_to_zero(x, mask, axes), axes)
    return result if mask is None else pick(mask, result, literal(0, aval_of(x).dtype))


@compiled_with("axis")
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """The logarithm of `softmax`, without overflow or underflow.

    Args:
        x: array.
        axis: dimension or dimensions; all if None.
        where: boolean array that broadcasts with `x`: which to include; the others become -inf.

    Returns:
        A float or complex array of the shape of `x`.

    Differs:
        A mask has no part in the dtype of the result.

        >>> x, mask = jnp.arange(2, dtype="int32"), jnp.array([True, False])
        >>> with dt.enable_x64(True):
        ...     print(dt.nn.log_softmax(x).dtype == dt.nn.log_softmax(x, where=mask).dtype)
        True

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.log_softmax(jnp.array([0., 1000.])))
        [-1000.     0.]
    """
    x, mask = _prepared("log_softmax", x, where)
    shape = aval_of(x).shape
    axes = canonical_axes("log_softmax", axis, len(shape))
    shifted = _shifted_to_zero(x, mask, axes)
    total = kept(lax.log(summed(lax.exp(shifted), axes)), shape, axes)
    result = lax.sub(shifted, total)
    return result if mask is None else pick(mask, result, literal(-math.inf, aval_of(x).dtype))


@compiled_with("axis", "algorithm")
def standardize(
    x: ArrayLike,
    axis: Axis = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-05,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "fast",
) -> Array:
    """Elements shifted and scaled to mean 0 and variance 1 along dimensions.

    Args:
        x: array.
        axis: dimension or dimensions; all if None.
        mean: the mean, if already known, with size one in these dimensions.
        variance: the variance, if already known, in the same shape.
        epsilon: number added to the variance.
        where: boolean array that broadcasts with `x`: which elements to include in mean and
            variance.
        algorithm: how to compute the variance: "fast" as the mean of squares minus the square of
            the mean, "stable" as the mean of squared deviations.

    Returns:
        A float or complex array of the shape of `x`.

    Raises:
        ValueError: `algorithm` is not one of these.

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.standardize(jnp.array([1., 3.]), epsilon=0.))
        [-1.  1.]
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}")
    x, mask = _prepared("standardize", x, where)
    axes = canonical_axes("standardize", axis, aval_of(x).ndim)

    def average(values: Any) -> Any:
        return plain(mean_of)(values, axes, None, None, True, where=mask)

    centre = average(x) if mean is None else operand(mean, "standardize", "mean")
    if dtypes.kind_of(aval_of(centre).dtype) == "b":
        centre = convert(centre, aval_of(x).dtype)
    if variance is None:
        if algorithm == "fast":
            squares = _square(x)
            spread = lax.sub(*promoted_pair("standardize", average(squares), _square(centre)))
            # Rounding can make the difference of two large numbers negative.
            spread = pick(
                lax.lt(spread, literal(0, aval_of(spread).dtype)),
                literal(0, aval_of(spread).dtype),
                spread,
            )
        else:
            spread = average(_square(lax.sub(*promoted_pair("standardize", x, centre))))
    else:
        spread = operand(variance, "standardize", "variance")
    first, second = promoted_pair("standardize", x, centre)
    difference = lax.sub(first, second)
    noise = lax.add(
        *promoted_pair("standardize", spread, array_like(epsilon, "standardize", "epsilon"))
    )
    return lax.mul(*promoted_pair("standardize", difference, lax.rsqrt(noise)))


def _square(x: Any) -> Any:
    if dtypes.kind_of(aval_of(x).dtype) == "c":
        return lax.add(lax.square(lax.real(x)), lax.square(lax.imag(x)))
    return lax.square(x)


def one_hot(
    x: ArrayLike,
    num_classes: int,
    *,
    dtype: DTypeLike | None = None,
    axis: int = -1,
    out_sharding: Sharding | None = None,
) -> Array:
    """One-hot vectors: a one at a given position, zeros elsewhere.

    Args:
        x: integer array of positions; a position out of bounds gives only zeros.
        num_classes: size of the vectors.
        dtype: dtype of the result; the default float if None.
        axis: position of the new dimension in the result.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array with one more dimension.

    Example:
        >>> import dovetail.nn
        >>> import dovetail.numpy as jnp
        >>> print(dovetail.nn.one_hot(jnp.array([0, 2]), 3))
        [[1. 0. 0.]
         [0. 0. 1.]]
    """
    count = integer("one_hot", "num_classes", num_classes)
    if count < 0:
        raise ShapeError(f"one_hot: num_classes must not be negative, got {count}")
    target = requested_dtype("one_hot", dtype) or dtypes.default_dtype("f")
    if isinstance(x, (list, tuple)):
        from dovetail.numpy.creation import asarray  # deferred: needed only for lists

        x = asarray(x)
    return divided_program("one_hot", out_sharding, _one_hot)(x, count, target, axis)


@compiled_with("num_classes", "dtype", "axis")
def _one_hot(x: Any, num_classes: int, dtype: Any, axis: int) -> Any:
    positions = operand(x, "one_hot", "x")
    rank = aval_of(positions).ndim + 1
    dimension = canonical_axis("one_hot", axis, rank)
    kind = aval_of(positions).dtype
    if dtypes.kind_of(kind) not in ("i", "u", "f"):
        positions = convert(positions, dtypes.default_dtype("i"))
    elif dtypes.kind_of(kind) in ("i", "u") and num_classes - 1 > dtypes.iinfo(kind).max:
        # The class numbers must fit the dtype in which they are compared.
        positions = convert(positions, position_dtype(num_classes))
    kind = aval_of(positions).dtype
    shape = tuple(num_classes if d == dimension else 1 for d in range(rank))
    classes = iota_like(kind, shape, dimension)
    return convert(lax.eq(expand_dims(positions, dimension), classes), dtype)
