"""Means, variances and weighted averages along dimensions."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np
from dovetail import lax
from dovetail.errors import DTypeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    Axis,
    array_like,
    broadcast_result,
    canonical_axes,
    convert,
    inexact_dtype,
    literal,
    no_out,
    promoted_pair,
    requested_dtype,
    value,
)
from dovetail.extend.avals import aval_of
from dovetail.lax import (
    reduce_sum_p,
)
from dovetail.numpy.compiled import compiled_with, plain
from dovetail.numpy.conditions import as_mask, pick
from dovetail.numpy.reductions import Shape, kept, masked, strong, summed
from dovetail.numpy.reductions import sum as total_of
from dovetail.typing import Array, ArrayLike, DTypeLike


def computed_in(dtype: Any) -> Any:
    """The dtype in which means are computed: 16-bit floats would lose precision or overflow."""
    if dtypes.kind_of(dtype) == "f" and dtypes.itemsize_bits(dtype) < 32:
        return np.dtype("float32")
    return dtype


def _wider(dtype: Any, requested: Any) -> Any:
    """The dtype in which a result is computed that is then converted to the one asked for."""
    floats = all(dtypes.kind_of(d) in ("f", "c") for d in (dtype, requested))
    if floats and min(map(dtypes.itemsize_bits, (dtype, requested))) <= 8:
        return max(dtype, requested, key=dtypes.itemsize_bits)  # they do not promote by themselves
    return dtypes.common_dtype(dtype, requested)


def count_of(function: str, x: Any, axes: Shape, where: Any, dtype: Any) -> Any:
    """The number of elements: an operand of a real dtype, with reduced dimensions of size one."""
    shape = aval_of(x).shape
    if where is None:
        return literal(math.prod(shape[d] for d in axes), dtype)
    mask = as_mask(function, where)
    mask_shape = aval_of(mask).shape
    spread = lax.broadcast_in_dim(
        mask, shape, tuple(range(len(shape) - len(mask_shape), len(shape)))
    )
    counts = reduce_sum_p.bind(convert(spread, dtype), axes=axes, out_sharding=None)
    return kept(counts, shape, axes)


def real_dtype(dtype: Any) -> Any:
    """The dtype of the parts of complex numbers; other dtypes unchanged."""
    return dtypes.finfo(dtype).dtype if dtypes.kind_of(dtype) == "c" else dtype


def _mean(function: str, x: Any, axes: Shape, where: Any, computed: Any) -> Any:
    """The mean in the dtype `computed`, with reduced dimensions of size one."""
    x = value(strong(convert(x, computed)))
    if where is not None:
        x = masked(function, x, where, 0)
    shape = aval_of(x).shape
    total = summed(x, axes)
    count = convert(count_of(function, x, axes, where, real_dtype(computed)), computed)
    return lax.div(kept(total, shape, axes), count)


def _drop(x: Any, axes: Shape, keepdims: bool) -> Any:
    return x if keepdims or not axes else lax.squeeze(x, axes)


@compiled_with("axis", "dtype", "keepdims")
def mean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """The arithmetic mean of elements along dimensions.

    Args:
        a: array or scalar.
        axis: dimension or dimensions; all if None.
        dtype: dtype of the result; a float if None. Means in 16 bits are computed in 32.
        out: not supported, since arrays are immutable.
        keepdims: whether to keep the dimensions, with size one.
        where: boolean array that broadcasts with `a`: which elements to include.

    Returns:
        A float or complex array without these dimensions; nan if there are no elements.

    Differs:
        Integers of two bits become floats, as all integers do; so in other functions that compute
        in floats.

        >>> print(jnp.mean(jnp.ones(2, "int2")).dtype)
        float32

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.mean(jnp.array([[1, 2], [3, 4]]), axis=0))
        [2. 3.]
    """
    no_out("mean", out)
    return mean_of("mean", a, axis, dtype, keepdims, where)


def mean_of(function: str, a: Any, axis: Any, dtype: Any, keepdims: bool, where: Any) -> Any:
    """`mean` or one of its relatives, with the name `function`."""
    x = array_like(a, function, "a")
    target = requested_dtype(function, dtype) or inexact_dtype(aval_of(x).dtype)
    if dtypes.kind_of(target) == "b":
        raise TypeError(f"{function}: dtype must be one of numbers, got {target}")
    shape = _common_shape(function, x, where)
    axes = canonical_axes(function, axis, len(shape))
    result = _drop(_mean(function, x, axes, where, computed_in(target)), axes, keepdims)
    return convert(result, target)


def _common_shape(function: str, x: Any, where: Any) -> Shape:
    shapes = [aval_of(x).shape]
    if where is not None:
        shapes.append(aval_of(array_like(where, function, "where")).shape)
    return broadcast_result(function, shapes, explicit=True)


@compiled_with("axis", "dtype", "keepdims")
def var(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Array:
    """The variance of elements along dimensions: the mean squared deviation from their mean.

    Args:
        a: array or scalar.
        axis: dimension or dimensions; all if None.
        dtype: dtype of the result; a float if None.
        out: not supported, since arrays are immutable.
        ddof: number subtracted from the count of elements in the divisor; 1 for a sample.
        keepdims: whether to keep the dimensions, with size one.
        where: boolean array that broadcasts with `a`: which elements to include.
        mean: the mean, if already known, with size one in the reduced dimensions.
        correction: the array API standard's name for `ddof`.

    Returns:
        A float array without these dimensions; nan if there are no elements.

    Raises:
        ValueError: both `ddof` and `correction` are given.

    Differs:
        A `dtype` of integers is that of the result, here and in `std`.

        >>> print(jnp.var(jnp.arange(5), dtype="int8").dtype)
        int8

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.var(jnp.array([1., 3., 5., 7.])), jnp.var(jnp.array([1., 3.]), ddof=1))
        5.0 2.0
    """
    no_out("var", out)
    return variance("var", a, axis, dtype, ddof, keepdims, where, mean, correction)


def variance(
    function: str,
    a: Any,
    axis: Any,
    dtype: Any,
    ddof: Any,
    keepdims: bool,
    where: Any,
    mean: Any,
    correction: Any,
    root: bool = False,
    of_few: float = 0.0,
) -> Any:
    """`var` or one of its relatives, with the name `function`; `root` takes the square root.

    `of_few` is the divisor if there are no more elements than `ddof`.
    """
    if correction is not None:
        if not (isinstance(ddof, int) and ddof == 0):
            raise ValueError(f"{function}: ddof and correction mean the same; give one of them")
        ddof = correction
    x = array_like(a, function, "a")
    requested = requested_dtype(function, dtype)
    if requested is not None and dtypes.kind_of(requested) == "b":
        raise DTypeError(f"{function}: dtype must be one of numbers, got {requested}")
    inexact = inexact_dtype(aval_of(x).dtype)
    target = requested or real_dtype(inexact)
    if (
        requested is not None
        and dtypes.kind_of(inexact) == "c"
        and dtypes.kind_of(requested) in ("b", "i", "u")
    ):
        raise DTypeError(
            f"{function}: the variance of complex numbers is a real number, which {requested} does "
            "not hold; give a floating-point dtype, or take x.real first"
        )
    computed = computed_in(inexact if requested is None else _wider(inexact, target))
    shape = _common_shape(function, x, where)
    axes = canonical_axes(function, axis, len(shape))
    x = value(strong(convert(x, computed)))
    if mean is None:
        centre = _mean(function, x, axes, where, computed)
    else:
        centre = convert(array_like(mean, function, "mean"), computed)
    x, centre = promoted_pair(function, x, centre)
    centred = lax.sub(x, centre)
    if dtypes.kind_of(computed) == "c":
        squares = lax.add(lax.square(lax.real(centred)), lax.square(lax.imag(centred)))
    else:
        squares = lax.square(centred)
    if where is not None:
        squares = masked(function, squares, where, 0)
    total = summed(squares, axes)
    real = aval_of(squares).dtype
    count = count_of(function, squares, axes, where, real)
    fewer = array_like(ddof, function, "ddof" if correction is None else "correction")
    if aval_of(fewer).shape:
        raise TypeError(f"{function}: ddof must be a scalar, got shape {aval_of(fewer).shape}")
    divisor = lax.sub(count, convert(fewer, real))
    enough = lax.gt(divisor, literal(0, real))
    divisor = pick(enough, divisor, literal(of_few, real))
    result = lax.div(kept(total, aval_of(squares).shape, axes), divisor)
    result = _drop(lax.sqrt(result) if root else result, axes, keepdims)
    return convert(result, target)


@compiled_with("axis", "dtype", "keepdims")
def std(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Array:
    """The standard deviation of elements along dimensions: the square root of the variance.

    Args:
        a: array or scalar.
        axis: dimension or dimensions; all if None.
        dtype: dtype of the result; a float if None.
        out: not supported, since arrays are immutable.
        ddof: number subtracted from the count of elements in the divisor; 1 for a sample.
        keepdims: whether to keep the dimensions, with size one.
        where: boolean array that broadcasts with `a`: which elements to include.
        mean: the mean, if already known, with size one in the reduced dimensions.
        correction: the array API standard's name for `ddof`.

    Returns:
        A float array without these dimensions; nan if there are no elements.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.std(jnp.array([[1., 3.], [2., 6.]]), axis=1))
        [1. 2.]
    """
    no_out("std", out)
    return variance("std", a, axis, dtype, ddof, keepdims, where, mean, correction, root=True)


@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: Literal[False] = False,
    keepdims: bool = False,
) -> Array: ...
@overload
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    *,
    returned: Literal[True],
    keepdims: bool = False,
) -> tuple[Array, Array]: ...
@compiled_with("axis", "returned", "keepdims")
def average(
    a: ArrayLike,
    axis: Axis = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, Array]:
    """The weighted mean of elements along dimensions.

    Args:
        a: array or scalar.
        axis: dimension or dimensions; all if None.
        weights: array of the shape of `a`, or with the sizes of the dimensions in `axis`, in the
            same order; equal weights if None.
        returned: whether to return the sum of the weights too.
        keepdims: whether to keep the dimensions, with size one.

    Returns:
        A float or complex array without these dimensions, or a pair of it and the sum of the
        weights.

    Raises:
        ValueError: the shape of the weights does not fit.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.average(jnp.array([1., 2., 4.]), weights=jnp.array([3., 1., 0.])))
        1.25
    """
    x = array_like(a, "average", "a")
    shape = aval_of(x).shape
    axes = canonical_axes("average", axis, len(shape))
    if weights is None:
        result = plain(mean)(x, axis, None, None, keepdims)
        total = lax.full_like(result, math.prod(shape[d] for d in axes))
        return (result, total) if returned else result
    w = array_like(weights, "average", "weights")
    if aval_of(w).shape != shape:
        sizes = tuple(shape[d] for d in axes)
        if axis is None or aval_of(w).shape != sizes:
            raise ValueError(
                f"average: weights of shape {aval_of(w).shape} do not fit an array of shape "
                f"{shape}: they need its shape"
                + ("" if axis is None else f", or that of the dimensions in axis, {sizes}")
            )
        # Broadcasting needs the dimensions in the order of the array.
        order = sorted(range(len(axes)), key=axes.__getitem__)
        w = lax.broadcast_in_dim(lax.transpose(w, order), shape, tuple(sorted(axes)))
    x, w = promoted_pair("average", x, w)
    out = inexact_dtype(x.dtype)
    x, w = convert(x, out), convert(w, out)
    total = plain(total_of)(w, axis, None, None, keepdims)
    result = lax.div(plain(total_of)(lax.mul(x, w), axis, None, None, keepdims), total)
    return (result, total) if returned else result
