"""Reductions: sums, products, extremes, logic, means and variances."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, overload

import numpy as np
from dovetail import lax
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
from dovetail.numpy.compiled import compiled_with, plain
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
    common = broadcast_result(function, (shape, aval_of(mask).shape))
    if common != shape:
        x = lax.broadcast_in_dim(x, common, tuple(range(len(common) - len(shape), len(common))))
    return pick(mask, x, literal(identity, aval_of(x).dtype))


def kept(x: Any, shape: Shape, axes: Shape) -> Any:
    """A reduced operand with the dimensions removed from `shape` restored, with size one."""
    sizes = tuple(1 if d in axes else n for d, n in enumerate(shape))
    return broadcast_in_dim(x, sizes, tuple(d for d in range(len(shape)) if d not in axes))


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
    target = requested_dtype(function, dtype) or sum_dtype(aval_of(x).dtype, promote_integers)
    x = value(strong(convert(x, target)))
    if where is not None:
        x = masked(function, x, where, identity)
    shape = aval_of(x).shape
    axes = canonical_axes(function, axis, len(shape))
    parameters: dict[str, Any] = {"axes": axes}
    if primitive is reduce_sum_p:
        parameters["out_sharding"] = None
    if dtypes.kind_of(target) == "b":
        # A sum of booleans in bool is a disjunction, a product a conjunction.
        primitive, parameters = (reduce_or_p if identity == 0 else reduce_and_p), {"axes": axes}
        combine = lax.bitwise_or if identity == 0 else lax.bitwise_and
    result = primitive.bind(x, **parameters) if axes else x
    if initial is not None:
        result = combine(_initial(function, initial, target), result)
    return _finish(result, shape, axes, keepdims)


def _initial(function: str, initial: Any, dtype: Any) -> Any:
    start = array_like(initial, function, "initial")
    if aval_of(start).shape:
        raise TypeError(
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

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.count_nonzero(jnp.array([[1, 0], [2, 3]]), axis=0))
        [2 1]
    """
    x = truth(array_like(a, "count_nonzero", "a"))
    return accumulated(
        "count_nonzero", reduce_sum_p, lax.add, 0, x, axis, None, keepdims, None, None
    )


# ----------------------------------------------------------------------------------------- means


def computed_in(dtype: Any) -> Any:
    """The dtype in which means are computed: 16-bit floats would lose precision or overflow."""
    if dtypes.kind_of(dtype) == "f" and dtypes.itemsize_bits(dtype) < 32:
        return np.dtype("float32")
    return dtype


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
    total = reduce_sum_p.bind(x, axes=axes, out_sharding=None) if axes else x
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
    return broadcast_result(function, shapes)


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
        A `dtype` of integers is that of the result.

        >>> print(jnp.var(jnp.arange(5), dtype="int8").dtype)
        int8

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.var(jnp.array([1., 2., 4.])), jnp.var(jnp.array([1., 2., 4.]), ddof=1))
        1.5555556 2.3333333
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
    inexact = inexact_dtype(aval_of(x).dtype)
    target = requested or real_dtype(inexact)
    if (
        requested is not None
        and dtypes.kind_of(inexact) == "c"
        and dtypes.kind_of(requested) != "c"
    ):
        target = requested
    computed = computed_in(
        dtypes.promote_types(inexact, target) if requested is not None else inexact
    )
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
    total = reduce_sum_p.bind(squares, axes=axes, out_sharding=None) if axes else squares
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
    total = plain(sum)(w, axis, None, None, keepdims)
    result = lax.div(plain(sum)(lax.mul(x, w), axis, None, None, keepdims), total)
    return (result, total) if returned else result
