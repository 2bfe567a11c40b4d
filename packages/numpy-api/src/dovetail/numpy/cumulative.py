"""Cumulative sums and products, differences of neighbours, and integrals of samples."""

from __future__ import annotations

from typing import Any

from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    canonical_axis,
    convert,
    inexact_dtype,
    integer,
    literal,
    no_out,
    promoted_pair,
    requested_dtype,
    value,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.unchecked import slice_dimension
from dovetail.numpy.compiled import compiled_with, plain
from dovetail.numpy.conditions import pick
from dovetail.numpy.joining import concatenate
from dovetail.numpy.reductions import summed
from dovetail.numpy.shapes import operand, reshaped
from dovetail.typing import Array, ArrayLike, DTypeLike


def _cumulative(
    function: str, compute: Any, a: Any, axis: Any, dtype: Any, identity: Any = None
) -> Any:
    x = value(array_like(a, function, "a"))
    if identity is not None:
        x = pick(lax.ne(x, x), literal(identity, aval_of(x).dtype), x)
    target = requested_dtype(function, dtype)
    if target is None:
        target = aval_of(x).dtype
        if dtypes.kind_of(target) == "b":
            target = dtypes.default_dtype("i")
    if axis is None:
        x, axis = reshaped(x, (aval_of(x).size,)), 0
    axis = canonical_axis(function, axis, aval_of(x).ndim)
    _check_counts(function, compute, x, axis, dtype, target)
    return _running(compute, x, axis, target)


def _check_counts(function: str, compute: Any, x: Any, axis: int, asked: Any, target: Any) -> None:
    """Refuse to count booleans in a default dtype that cannot hold the last count."""
    if asked is None and compute is lax.cumsum and aval_of(x).dtype == bool:
        dtypes.check_holds(aval_of(x).shape[axis], target, function)


def _running(compute: Any, x: Any, axis: int, dtype: Any) -> Any:
    """A cumulative sum or product in a dtype; for booleans, a disjunction or conjunction."""
    x = convert(x, dtype)
    if dtypes.kind_of(dtype) != "b":
        return compute(x, axis=axis)
    extreme = lax.cummax if compute is lax.cumsum else lax.cummin
    return lax.convert_element_type(extreme(lax.convert_element_type(x, "int8"), axis=axis), dtype)


@compiled_with("axis", "dtype")
def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """The cumulative sum of elements along a dimension.

    Args:
        a: array or scalar.
        axis: dimension; None to flatten the array first.
        dtype: dtype of the result; that of `a` if None (the default integer for booleans).
        out: not supported, since arrays are immutable.

    Returns:
        An array of the shape of `a`, or a vector if `axis` is None.

    Raises:
        OverflowError: the default integer type cannot count so many booleans.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.cumsum(jnp.array([1, 2, 3])))
        [1 3 6]
    """
    no_out("cumsum", out)
    return _cumulative("cumsum", lax.cumsum, a, axis, dtype)


@compiled_with("axis", "dtype")
def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """The cumulative product of elements along a dimension.

    Args:
        a: array or scalar.
        axis: dimension; None to flatten the array first.
        dtype: dtype of the result; that of `a` if None (the default integer for booleans).
        out: not supported, since arrays are immutable.

    Returns:
        An array of the shape of `a`, or a vector if `axis` is None.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.cumprod(jnp.array([1, 2, 3])))
        [1 2 6]
    """
    no_out("cumprod", out)
    return _cumulative("cumprod", lax.cumprod, a, axis, dtype)


@compiled_with("axis", "dtype")
def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """`cumsum` that treats nan as zero.

    Args:
        a: array or scalar.
        axis: dimension; None to flatten the array first.
        dtype: dtype of the result; that of `a` if None.
        out: not supported, since arrays are immutable.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.nancumsum(jnp.array([1., jnp.nan, 3.])))
        [1. 1. 4.]
    """
    no_out("nancumsum", out)
    return _cumulative("nancumsum", lax.cumsum, a, axis, dtype, 0)


@compiled_with("axis", "dtype")
def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """`cumprod` that treats nan as one.

    Args:
        a: array or scalar.
        axis: dimension; None to flatten the array first.
        dtype: dtype of the result; that of `a` if None.
        out: not supported, since arrays are immutable.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.nancumprod(jnp.array([2., jnp.nan, 3.])))
        [2. 2. 6.]
    """
    no_out("nancumprod", out)
    return _cumulative("nancumprod", lax.cumprod, a, axis, dtype, 1)


def _standard(
    function: str, compute: Any, x: Any, axis: Any, dtype: Any, include_initial: bool, start: int
) -> Any:
    x = value(array_like(x, function))
    rank = aval_of(x).ndim
    if axis is None:
        if rank != 1:
            raise ValueError(f"{function} needs axis for an array of rank {rank}")
        axis = 0
    axis = canonical_axis(function, axis, rank)
    target = requested_dtype(function, dtype)
    if target is None:
        target = aval_of(x).dtype
        kind = dtypes.kind_of(target)
        if kind in ("b", "i", "u"):
            default = dtypes.default_dtype("i" if kind == "b" else kind)
            if dtypes.itemsize_bits(target) < dtypes.itemsize_bits(default):
                target = default
    _check_counts(function, compute, x, axis, dtype, target)
    result = _running(compute, x, axis, target)
    if include_initial:
        shape = aval_of(x).shape
        first = lax.full((*shape[:axis], 1, *shape[axis + 1 :]), start, target)
        result = concatenate([first, result], axis)
    return result


@compiled_with("axis", "dtype", "include_initial")
def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """`cumsum` as defined by the array API standard.

    Args:
        x: array of rank 1 or more.
        axis: dimension; may be omitted only for vectors.
        dtype: dtype of the result; if None, that of `x`, but small integers become default ones.
        include_initial: whether to start the result with an additional 0.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.cumulative_sum(jnp.array([1, 2, 3]), include_initial=True))
        [0 1 3 6]
    """
    return _standard("cumulative_sum", lax.cumsum, x, axis, dtype, include_initial, 0)


@compiled_with("axis", "dtype", "include_initial")
def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """`cumprod` as defined by the array API standard.

    Args:
        x: array of rank 1 or more.
        axis: dimension; may be omitted only for vectors.
        dtype: dtype of the result; if None, that of `x`, but small integers become default ones.
        include_initial: whether to start the result with an additional 1.

    Differs:
        Small integers are multiplied in the default integer dtype, as in the array API standard.

        >>> print(jnp.cumulative_prod(jnp.full(3, 100, "int8")))
        [    100   10000 1000000]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.cumulative_prod(jnp.array([1, 2, 3]), include_initial=True))
        [1 1 2 6]
    """
    return _standard("cumulative_prod", lax.cumprod, x, axis, dtype, include_initial, 1)


@compiled_with("n", "axis")
def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """Differences of neighbouring elements along a dimension.

    Args:
        a: array of rank 1 or more; a scalar, too, if `n` is 0.
        n: number of times to take differences.
        axis: dimension.
        prepend: scalar, or array of the same rank, to put before the array first.
        append: scalar or array to put after the array first.

    Returns:
        An array that is smaller by `n` along the dimension. Differences of booleans show where they
        change.

    Raises:
        ValueError: `n` is negative, or `a` is a scalar.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.diff(jnp.array([1, 4, 9, 16])), jnp.diff(jnp.array([1, 4, 9, 16]), 2))
        [3 5 7] [2 2]
    """
    x = operand(a, "diff")
    count = integer("diff", "n", n)
    rank = aval_of(x).ndim
    if count < 0:
        raise ValueError(f"diff: n must not be negative, got {count}")
    if count == 0:  # of scalars, too, as in NumPy
        return x
    if not rank:
        raise ValueError("diff needs an array of rank 1 or more, got a scalar")
    dimension = canonical_axis("diff", axis, rank)
    x = _extended(x, dimension, prepend, append)
    for _ in range(min(count, aval_of(x).shape[dimension])):  # then nothing is left
        size = aval_of(x).shape[dimension]
        later = slice_dimension(x, min(1, size), size, dimension)
        earlier = slice_dimension(x, 0, max(size - 1, 0), dimension)
        x = (lax.ne if aval_of(x).dtype == bool else lax.sub)(later, earlier)
    return x


def _extended(x: Any, dimension: int, prepend: Any, append: Any) -> Any:
    shape = aval_of(x).shape
    one = tuple(1 if d == dimension else n for d, n in enumerate(shape))
    parts = []
    for name, part in (("prepend", prepend), ("", x), ("append", append)):
        if part is None:
            continue
        if name:
            part = operand(part, "diff", name)
            if not aval_of(part).ndim:
                part = lax.broadcast_in_dim(part, one, ())
        parts.append(part)
    return concatenate(parts, dimension) if len(parts) > 1 else x


@compiled_with("axis")
def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Integrate samples by the trapezoidal rule.

    Args:
        y: array of samples.
        x: positions of the samples: a vector, or an array of the shape of `y`; equally spaced if
            None.
        dx: distance between neighbours if `x` is None.
        axis: dimension along which to integrate.

    Returns:
        A float or complex array without this dimension.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.trapezoid(jnp.array([1., 2., 3.])), jnp.trapezoid(jnp.array([1., 3.]), dx=2.))
        4.0 4.0
    """
    samples = operand(y, "trapezoid", "y")
    given = [samples] if x is None else [samples, operand(x, "trapezoid", "x")]
    out = inexact_dtype(dtypes.result_type(*given))
    samples = convert(samples, out)
    shape = aval_of(samples).shape
    dimension = canonical_axis("trapezoid", axis, len(shape))
    size = shape[dimension]
    sums = lax.add(
        slice_dimension(samples, min(1, size), size, dimension),
        slice_dimension(samples, 0, max(size - 1, 0), dimension),
    )
    if x is None:
        width = array_like(dx, "trapezoid", "dx")
    else:
        width = plain(diff)(x, 1, -1 if aval_of(operand(x, "trapezoid", "x")).ndim == 1 else axis)
        if aval_of(width).ndim == 1:
            if aval_of(width).size != aval_of(sums).shape[dimension]:
                raise ValueError(
                    f"trapezoid: x must have one place for each of the {size} samples, got shape "
                    f"{aval_of(x).shape}"
                )
            width = lax.broadcast_in_dim(width, aval_of(sums).shape, (dimension,))
    if dtypes.kind_of(aval_of(width).dtype) in ("b", "i", "u"):
        width = convert(width, out)
    sums, width = promoted_pair("trapezoid", sums, width)
    areas = lax.mul(lax.mul(sums, width), literal(0.5, sums.dtype))
    return summed(areas, (dimension,))
