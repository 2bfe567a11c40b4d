"""Reductions that ignore nan."""

from __future__ import annotations

import math
from typing import Any

from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import Axis, array_like, literal, no_out, value
from dovetail.extend.avals import aval_of
from dovetail.lax import reduce_prod_p, reduce_sum_p
from dovetail.numpy.averages import mean_of, variance
from dovetail.numpy.compiled import compiled_with, plain
from dovetail.numpy.conditions import as_mask, pick, spread
from dovetail.numpy.reductions import accumulated, extreme
from dovetail.numpy.shapes import broadcast_shapes
from dovetail.typing import Array, ArrayLike, DTypeLike


def _numbers(function: str, a: Any) -> tuple[Any, Any]:
    """The operand, and where it is not nan."""
    x = value(array_like(a, function, "a"))
    return x, lax.eq(x, x)


def _counting(function: str, is_number: Any, where: Any) -> Any:
    if where is None:
        return is_number
    mask = as_mask(function, where)
    shape = broadcast_shapes(aval_of(is_number).shape, aval_of(mask).shape)
    return lax.bitwise_and(spread(is_number, shape), spread(mask, shape))


@compiled_with("axis", "dtype", "keepdims")
def nansum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """`sum` that treats nan as zero.

    Args:
        a: array or scalar.
        axis: dimension or dimensions; all if None.
        dtype: dtype of the result and of the computation.
        out: not supported, since arrays are immutable.
        keepdims: whether to keep the dimensions, with size one.
        initial: value that the sum starts with.
        where: boolean array that broadcasts with `a`: which elements to include.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.nansum(jnp.array([1., jnp.nan, 2.])))
        3.0
    """
    no_out("nansum", out)
    x, is_number = _numbers("nansum", a)
    x = pick(is_number, x, literal(0, aval_of(x).dtype))
    return accumulated("nansum", reduce_sum_p, lax.add, 0, x, axis, dtype, keepdims, initial, where)


@compiled_with("axis", "dtype", "keepdims")
def nanprod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """`prod` that treats nan as one.

    Args:
        a: array or scalar.
        axis: dimension or dimensions; all if None.
        dtype: dtype of the result and of the computation.
        out: not supported, since arrays are immutable.
        keepdims: whether to keep the dimensions, with size one.
        initial: value that the product starts with.
        where: boolean array that broadcasts with `a`: which elements to include.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.nanprod(jnp.array([2., jnp.nan, 3.])))
        6.0
    """
    no_out("nanprod", out)
    x, is_number = _numbers("nanprod", a)
    x = pick(is_number, x, literal(1, aval_of(x).dtype))
    return accumulated(
        "nanprod", reduce_prod_p, lax.mul, 1, x, axis, dtype, keepdims, initial, where
    )


def _nan_extreme(
    function: str,
    largest: bool,
    a: Any,
    axis: Any,
    keepdims: bool,
    initial: Any,
    where: Any,
) -> Any:
    x, is_number = _numbers(function, a)
    if dtypes.kind_of(aval_of(x).dtype) not in ("f", "c"):
        return extreme(function, largest, x, axis, keepdims, initial, where)
    dtype = aval_of(x).dtype
    worst = -math.inf if largest else math.inf
    bound = complex(worst, worst) if dtypes.kind_of(dtype) == "c" else worst
    filled = pick(is_number, x, literal(bound, dtype))
    result = extreme(function, largest, filled, axis, keepdims, initial, where)
    if initial is not None:
        return result
    from dovetail.numpy.reductions import any as any_of  # deferred: needed only for floats

    has_numbers = plain(any_of)(is_number, axis, None, keepdims)
    return pick(has_numbers, result, literal(math.nan, dtype))


@compiled_with("axis", "keepdims")
def nanmax(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """`max` that ignores nan; nan where all elements are nan.

    Args:
        a: array or scalar; complex numbers are ordered as in `sort`.
        axis: dimension or dimensions; all if None.
        out: not supported, since arrays are immutable.
        keepdims: whether to keep the dimensions, with size one.
        initial: further value to compare with, in the dtype of `a`.
        where: boolean array that broadcasts with `a`: which elements to include; requires
            `initial`.

    Differs:
        Complex numbers with a nan in either part are left out, as in NumPy; so in `nanmin`,
        `nanargmax` and `nanargmin`.

        >>> print(jnp.nanmax(jnp.array([complex(5, np.nan), 2j])))
        2j

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.nanmax(jnp.array([1., jnp.nan, 2.])))
        2.0
    """
    no_out("nanmax", out)
    return _nan_extreme("nanmax", True, a, axis, keepdims, initial, where)


@compiled_with("axis", "keepdims")
def nanmin(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """`min` that ignores nan; nan where all elements are nan.

    Args:
        a: array or scalar; complex numbers are ordered as in `sort`.
        axis: dimension or dimensions; all if None.
        out: not supported, since arrays are immutable.
        keepdims: whether to keep the dimensions, with size one.
        initial: further value to compare with, in the dtype of `a`.
        where: boolean array that broadcasts with `a`: which elements to include; requires
            `initial`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.nanmin(jnp.array([1., jnp.nan, 2.])))
        1.0
    """
    no_out("nanmin", out)
    return _nan_extreme("nanmin", False, a, axis, keepdims, initial, where)


@compiled_with("axis", "dtype", "keepdims")
def nanmean(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """`mean` of the elements that are not nan; nan if there are none.

    Args:
        a: array or scalar.
        axis: dimension or dimensions; all if None.
        dtype: dtype of the result; a float if None.
        out: not supported, since arrays are immutable.
        keepdims: whether to keep the dimensions, with size one.
        where: boolean array that broadcasts with `a`: which elements to include.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.nanmean(jnp.array([1., jnp.nan, 2.])))
        1.5
    """
    no_out("nanmean", out)
    x, is_number = _numbers("nanmean", a)
    counting = _counting("nanmean", is_number, where)
    return mean_of("nanmean", x, axis, dtype, keepdims, counting)


@compiled_with("axis", "dtype", "keepdims")
def nanvar(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """`var` of the elements that are not nan; nan if there are no more than `ddof`.

    Args:
        a: array or scalar.
        axis: dimension or dimensions; all if None.
        dtype: dtype of the result; a float if None.
        out: not supported, since arrays are immutable.
        ddof: number subtracted from the count of elements in the divisor; 1 for a sample.
        keepdims: whether to keep the dimensions, with size one.
        where: boolean array that broadcasts with `a`: which elements to include.
        mean: the mean, if already known, with size one in the dimensions of `axis`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.nanvar(jnp.array([1., jnp.nan, 3.])))
        1.0
    """
    no_out("nanvar", out)
    x, is_number = _numbers("nanvar", a)
    x = pick(is_number, x, literal(0, aval_of(x).dtype))
    counting = _counting("nanvar", is_number, where)
    return variance("nanvar", x, axis, dtype, ddof, keepdims, counting, mean, None, of_few=math.nan)


@compiled_with("axis", "dtype", "keepdims")
def nanstd(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: int = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
) -> Array:
    """`std` of the elements that are not nan; nan if there are no more than `ddof`.

    Args:
        a: array or scalar.
        axis: dimension or dimensions; all if None.
        dtype: dtype of the result; a float if None.
        out: not supported, since arrays are immutable.
        ddof: number subtracted from the count of elements in the divisor; 1 for a sample.
        keepdims: whether to keep the dimensions, with size one.
        where: boolean array that broadcasts with `a`: which elements to include.
        mean: the mean, if already known, with size one in the dimensions of `axis`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.nanstd(jnp.array([1., jnp.nan, 3.])))
        1.0
    """
    no_out("nanstd", out)
    x, is_number = _numbers("nanstd", a)
    x = pick(is_number, x, literal(0, aval_of(x).dtype))
    counting = _counting("nanstd", is_number, where)
    return variance(
        "nanstd", x, axis, dtype, ddof, keepdims, counting, mean, None, True, of_few=math.nan
    )
