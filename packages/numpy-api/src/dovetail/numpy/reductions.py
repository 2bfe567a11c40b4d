"""Reductions: sums, products, extremes, logic, means and variances."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    Axis,
    array_like,
    broadcast_result,
    canonical_axes,
    convert,
    literal,
    no_out,
    requested_dtype,
    require_kind,
    value,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.unchecked import broadcast_in_dim, convert_element_type
from dovetail.lax import (
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
    reduce_sum_p,
)
from dovetail.numpy.compiled import compiled_with
from dovetail.numpy.conditions import as_mask, pick, truth
from dovetail.typing import Array, ArrayLike, DTypeLike

Shape = tuple[int, ...]


# ----------------------------------------------------------------------------- what they share


def strong(x: Any) -> Any:
    """An operand without weak typing, which a reduction does not pass on."""
    aval = aval_of(x)
    return convert_element_type(x, aval.dtype, False) if aval.weak_type else x


def masked(function: str, x: Any, where: Any, identity: Any) -> Any:
    """The operand, with the identity of the reduction where a mask is false."""
    mask = as_mask(function, where)
    shape = aval_of(x).shape
    common = broadcast_result(function, (shape, aval_of(mask).shape), explicit=True)
    if common != shape:
        x = lax.broadcast_in_dim(x, common, tuple(range(len(common) - len(shape), len(common))))
    return pick(mask, x, literal(identity, aval_of(x).dtype))


def kept(x: Any, shape: Shape, axes: Shape) -> Any:
    """A reduced operand with the dimensions removed from `shape` restored, with size one."""
    sizes = tuple(1 if d in axes else n for d, n in enumerate(shape))
    return broadcast_in_dim(x, sizes, tuple(d for d in range(len(shape)) if d not in axes))


def summed(x: Any, axes: Shape) -> Any:
    """The sum over dimensions."""
    return reduce_sum_p.bind(x, axes=axes, out_sharding=None) if axes else x


def _finish(x: Any, shape: Shape, axes: Shape, keepdims: bool) -> Any:
    return kept(x, shape, axes) if keepdims else x


def sum_dtype(dtype: Any, promote_integers: bool) -> Any:
    """The dtype of a sum: booleans are counted, narrow integers added in the default dtype."""
    kind = dtypes.kind_of(dtype)
    if kind == "b":
        return dtypes.default_dtype("i") if promote_integers else np.dtype("int32")
    if promote_integers and kind in ("i", "u"):
        default = dtypes.default_dtype(kind)
        return default if dtypes.itemsize_bits(dtype) < dtypes.itemsize_bits(default) else dtype
    return dtype


def accumulated(
    function: str,
    primitive: Any,
    combine: Callable[[Any, Any], Any],
    identity: int,
    a: Any,
    axis: Any,
    dtype: Any,
    keepdims: bool,
    initial: Any,
    where: Any,
    promote_integers: bool = True,
) -> Any:
    """`sum` or one of its relatives, with the name `function`."""
    x = array_like(a, function, "a")
    require_kind(function, x, "biufc", "numbers and booleans")
    is_counted = dtype is None and identity == 0 and aval_of(x).dtype == bool
    target = requested_dtype(function, dtype) or sum_dtype(aval_of(x).dtype, promote_integers)
    x = value(strong(convert(x, target)))
    if where is not None:
        x = masked(function, x, where, identity)
    shape = aval_of(x).shape
    axes = canonical_axes(function, axis, len(shape))
    if is_counted:
        dtypes.check_holds(math.prod(shape[dimension] for dimension in axes), target, function)
    if dtypes.kind_of(target) == "b":
        # A sum of booleans in bool is a disjunction, a product a conjunction.
        primitive = reduce_or_p if identity == 0 else reduce_and_p
        combine = lax.bitwise_or if identity == 0 else lax.bitwise_and
    if primitive is reduce_sum_p:
        result = summed(x, axes)
    else:
        result = primitive.bind(x, axes=axes) if axes else x
    if initial is not None:
        result = combine(_initial(function, initial, target), result)
    return _finish(result, shape, axes, keepdims)


def _initial(function: str, initial: Any, dtype: Any) -> Any:
    start = array_like(initial, function, "initial")
    if aval_of(start).shape:
        raise ShapeError(
            f"{function}: initial must be a scalar, got an array of shape {aval_of(start).shape}"
        )
    return convert(start, dtype)


# ------------------------------------------------------------------------------ sums and products


@compiled_with("axis", "dtype", "keepdims", "promote_integers")
def sum(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Sum elements along dimensions.

    Args:
        a: array or scalar.
        axis: dimension or dimensions; all if None.
        dtype: dtype of the result and of the computation.
        out: not supported, since arrays are immutable.
        keepdims: whether to keep the dimensions, with size one.
        initial: value that the sum starts with.
        where: boolean array that broadcasts with `a`: which elements to include.
        promote_integers: whether to add small integers in the default integer type.

    Returns:
        An array without these dimensions; 0 if there are no elements.

    Raises:
        ValueError: a dimension is out of bounds or named twice.
        OverflowError: the default integer type cannot count so many booleans.

    Differs:
        A dimension that is not there is NumPy's `AxisError`, a ValueError and an IndexError. An
        axis may be a list or an array.

        >>> jnp.sum(jnp.ones((2, 3)), axis=2)
        Traceback (most recent call last):
            ...
        numpy.exceptions.AxisError: sum: axis 2 is out of bounds for an array of ...
        >>> print(jnp.sum(jnp.ones((2, 3)), axis=[0, 1]))
        6.0

        Numbers of 16 bits are added in float32 and rounded once by the lowering of
        `reduce_sum`, so that a jaxpr shows one operation where JAX shows two conversions more.
        So in products, means, running sums and recurrences.

        >>> print([e.primitive.name for e in dt.make_jaxpr(jnp.sum)(jnp.ones(3, "bfloat16")).eqns])
        ['reduce_sum']

        Without `axis` the dimensions that a mask adds are summed, too; so in other reductions.

        >>> print(jnp.sum(jnp.ones(3), where=jnp.ones((2, 1), bool)))
        6.0

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.array([[1., 2.], [3., 4.]])
        >>> print(jnp.sum(x), jnp.sum(x, axis=0), jnp.sum(x, where=x > 1))
        10.0 [4. 6.] 9.0
    """
    no_out("sum", out)
    return accumulated(
        "sum", reduce_sum_p, lax.add, 0, a, axis, dtype, keepdims, initial, where, promote_integers
    )


@compiled_with("axis", "dtype", "keepdims", "promote_integers")
def prod(
    a: ArrayLike,
    axis: Axis = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Multiply elements along dimensions.

    Args:
        a: array or scalar.
        axis: dimension or dimensions; all if None.
        dtype: dtype of the result and of the computation.
        out: not supported, since arrays are immutable.
        keepdims: whether to keep the dimensions, with size one.
        initial: value that the product starts with.
        where: boolean array that broadcasts with `a`: which elements to include.
        promote_integers: whether to multiply small integers in the default integer type.

    Returns:
        An array without these dimensions; 1 if there are no elements.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.prod(jnp.array([[1, 2], [3, 4]]), axis=1))
        [ 2 12]
    """
    no_out("prod", out)
    return accumulated(
        "prod",
        reduce_prod_p,
        lax.mul,
        1,
        a,
        axis,
        dtype,
        keepdims,
        initial,
        where,
        promote_integers,
    )


# ------------------------------------------------------------------------------------- extremes


def extreme(
    function: str, largest: bool, a: Any, axis: Any, keepdims: bool, initial: Any, where: Any
) -> Any:
    """`max`, `min` or one of their relatives, with the name `function`."""
    x = value(strong(array_like(a, function, "a")))
    require_kind(function, x, "biufc", "numbers and booleans")
    shape = aval_of(x).shape
    axes = canonical_axes(function, axis, len(shape))
    if where is not None:
        if initial is None:
            raise ValueError(
                f"{function} with where needs initial: the result where no element counts"
            )
        x = masked(function, x, where, _worst(aval_of(x).dtype, largest))
        if aval_of(x).shape != shape:
            shape = aval_of(x).shape
            axes = canonical_axes(function, axis, len(shape))
    elif initial is None and 0 in [shape[d] for d in axes]:
        raise ValueError(
            f"{function} of no elements is undefined: an array of shape {shape} is reduced over "
            f"axes {axes}" + ("" if function == "ptp" else "; give initial to say what it is")
        )
    primitive = reduce_max_p if largest else reduce_min_p
    result = primitive.bind(x, axes=axes) if axes else x
    if initial is not None:
        start = _initial(function, initial, aval_of(x).dtype)
        result = (lax.max if largest else lax.min)(start, result)
    return _finish(result, shape, axes, keepdims)


def _worst(dtype: Any, largest: bool) -> Any:
    """The number that never wins: the identity of the extreme."""
    kind = dtypes.kind_of(dtype)
    if kind == "b":
        return not largest
    if kind in ("f", "c"):
        worst = -math.inf if largest else math.inf
        return complex(worst, worst) if kind == "c" else worst
    limits = dtypes.iinfo(dtype)
    return int(limits.min if largest else limits.max)


@compiled_with("axis", "keepdims")
def max(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The largest element along dimensions; nan if any element is nan.

    Args:
        a: array or scalar.
        axis: dimension or dimensions; all if None.
        out: not supported, since arrays are immutable.
        keepdims: whether to keep the dimensions, with size one.
        initial: further value to compare with, in the dtype of `a`.
        where: boolean array that broadcasts with `a`: which elements to include; requires
            `initial`.

    Returns:
        An array without these dimensions. If several elements are largest, they share the gradient.

    Raises:
        ValueError: there are no elements and no `initial`.

    Differs:
        The largest and the smallest of complex numbers are nan where a part of one is nan, as
        in NumPy.

        >>> print(jnp.isnan(jnp.max(jnp.array([complex(-1, np.nan), 2j]))))
        True

        The extremes of many real numbers are nan, too, where one is. On the CPU, XLA leaves nan out
        where there are 4,096 or more, and so does JAX.

        >>> print(jnp.max(jnp.arange(5000.0).at[7].set(jnp.nan)))
        nan

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.max(jnp.array([[1, 5], [7, 2]]), axis=1))
        [5 7]
    """
    no_out("max", out)
    return extreme("max", True, a, axis, keepdims, initial, where)


@compiled_with("axis", "keepdims")
def min(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """The smallest element along dimensions; nan if any element is nan.

    Args:
        a: array or scalar.
        axis: dimension or dimensions; all if None.
        out: not supported, since arrays are immutable.
        keepdims: whether to keep the dimensions, with size one.
        initial: further value to compare with, in the dtype of `a`.
        where: boolean array that broadcasts with `a`: which elements to include; requires
            `initial`.

    Returns:
        An array without these dimensions. If several elements are smallest, they share the
        gradient.

    Raises:
        ValueError: there are no elements and no `initial`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.min(jnp.array([[1, 5], [7, 2]]), axis=1))
        [1 2]
    """
    no_out("min", out)
    return extreme("min", False, a, axis, keepdims, initial, where)


@compiled_with("axis", "keepdims")
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """The difference between the largest and the smallest element along dimensions.

    Args:
        a: array or scalar.
        axis: dimension or dimensions; all if None.
        out: not supported, since arrays are immutable.
        keepdims: whether to keep the dimensions, with size one.

    Returns:
        An array without these dimensions.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.ptp(jnp.array([3, 9, 4])))
        6
    """
    no_out("ptp", out)
    x = array_like(a, "ptp", "a")
    require_kind("ptp", x, "iufc", "numbers; any(x) != all(x) tells whether booleans differ")
    highest, lowest = (extreme("ptp", m, x, axis, keepdims, None, None) for m in (True, False))
    return lax.sub(highest, lowest)


# ---------------------------------------------------------------------------------------- logic


def _logical(
    function: str, primitive: Any, identity: bool, a: Any, axis: Any, keepdims: bool, where: Any
) -> Any:
    x = value(truth(array_like(a, function, "a")))
    if where is not None:
        x = masked(function, x, where, identity)
    shape = aval_of(x).shape
    axes = canonical_axes(function, axis, len(shape))
    return _finish(primitive.bind(x, axes=axes) if axes else x, shape, axes, keepdims)


@compiled_with("axis", "keepdims")
def all(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Test whether all elements along dimensions are true (nonzero).

    Args:
        a: array or scalar.
        axis: dimension or dimensions; all if None.
        out: not supported, since arrays are immutable.
        keepdims: whether to keep the dimensions, with size one.
        where: boolean array that broadcasts with `a`: which elements to include.

    Returns:
        A boolean array without these dimensions; True if there are no elements.

    Differs:
        Imaginary numbers are true, as in NumPy, here, in `any` and where numbers become
        predicates; JAX looks at their real parts.

        >>> print(jnp.all(jnp.array([1j])), jnp.array([1j]).astype(bool))
        True [ True]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.all(jnp.array([[True, False], [True, True]]), axis=1))
        [False  True]
    """
    no_out("all", out)
    return _logical("all", reduce_and_p, True, a, axis, keepdims, where)


@compiled_with("axis", "keepdims")
def any(
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Test whether any element along dimensions is true (nonzero).

    Args:
        a: array or scalar.
        axis: dimension or dimensions; all if None.
        out: not supported, since arrays are immutable.
        keepdims: whether to keep the dimensions, with size one.
        where: boolean array that broadcasts with `a`: which elements to include.

    Returns:
        A boolean array without these dimensions; False if there are no elements.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.any(jnp.array([[True, False], [False, False]]), axis=1))
        [ True False]
    """
    no_out("any", out)
    return _logical("any", reduce_or_p, False, a, axis, keepdims, where)


@compiled_with("axis", "keepdims")
def count_nonzero(a: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Array:
    """Count the nonzero elements along dimensions.

    Args:
        a: array or scalar.
        axis: dimension or dimensions; all if None.
        keepdims: whether to keep the dimensions, with size one.

    Returns:
        An integer array without these dimensions.

    Raises:
        OverflowError: the default integer type cannot count so many elements.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.count_nonzero(jnp.array([[1, 0], [2, 3]]), axis=0))
        [2 1]
    """
    x = truth(array_like(a, "count_nonzero", "a"))
    return accumulated(
        "count_nonzero", reduce_sum_p, lax.add, 0, x, axis, None, keepdims, None, None
    )
