"""Updated copies of arrays: elements replaced, inserted or deleted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from dovetail import lax
from dovetail.errors import ConcretizationTypeError, IndexShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    canonical_axes,
    canonical_axis,
    convert,
    literal,
    require_kind,
    value,
    weak_of,
)
from dovetail.extend.avals import Tracer, aval_of
from dovetail.extend.unchecked import iota_like, position_dtype, slice_dimension
from dovetail.numpy.compiled import compiled, compiled_with, plain
from dovetail.numpy.conditions import pick, spread, truth
from dovetail.numpy.gathering import take
from dovetail.numpy.joining import concatenate
from dovetail.numpy.nonzeros import indices_of_nonzero
from dovetail.numpy.shapes import broadcast_to, moveaxis, operand, reshaped
from dovetail.typing import Array, ArrayLike


def _refuse_in_place(function: str, call: str, inplace: Any) -> None:
    if inplace:
        raise ValueError(
            f"{function} cannot change an array, which is immutable: write x = {function}({call}, "
            "inplace=False) to get a changed copy"
        )


def _flat(x: Any) -> Any:
    return reshaped(x, (math.prod(aval_of(x).shape),))


def _repeated(values: Any, count: int) -> Any:
    """A vector of `count` elements: those of a nonempty vector, repeated."""
    (size,) = aval_of(values).shape
    if size < count:
        values = _flat(broadcast_to(values, (-(-count // size), size)))
    return slice_dimension(values, 0, count, 0)


# -------------------------------------------------------------------------------- other elements


def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """Put values at positions of the flattened array, in a copy.

    NumPy changes the argument in place; here ``inplace=False`` is required.

    Args:
        a: array.
        ind: integer array of positions. Booleans are the positions 0 and 1.
        v: values, repeated if there are fewer of them than positions; surplus ones are ignored. If
            a position occurs several times, it gets one of its values.
        mode: what to do with positions out of bounds: None takes the nearest one, and negative
            positions count from the end; "clip" takes the nearest one, which is the first for
            negative positions; "wrap" takes the position modulo the size.
        inplace: must be False.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        ValueError: `inplace` is not False, or the mode is not one of these.
        TypeError: the positions are not integers.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.put(jnp.zeros(5), jnp.array([0, 2, -1]), jnp.array([1, 2]), inplace=False))
        [1. 0. 2. 0. 1.]
    """
    _refuse_in_place("put", "x, ind, v", inplace)
    if mode not in (None, "clip", "wrap"):
        raise ValueError(
            f"put: mode must be None, 'clip' or 'wrap', got {mode!r}; a compiled program cannot "
            "raise"
        )
    return _put(a, ind, v, mode)


@compiled_with("mode")
def _put(a: Any, ind: Any, v: Any, mode: str | None) -> Any:
    x, where, values = operand(a, "put"), operand(ind, "put", "ind"), operand(v, "put", "v")
    require_kind("put", where, "biu", "integer positions")
    if dtypes.kind_of(aval_of(where).dtype) == "b":
        where = convert(where, dtypes.default_dtype("i"))
    shape = aval_of(x).shape
    size, count = math.prod(shape), aval_of(where).size
    if not size or not count or not aval_of(values).size:
        return x
    mode = "nearest" if mode is None else mode
    where = _flat(where)
    if mode == "wrap":
        from dovetail.numpy.arithmetic import remainder  # deferred: needed only in this mode

        where = plain(remainder)(where, size)
    else:
        # In a dtype that holds the size and is not narrowed.
        where = _wide(where, size)
        zero, last = literal(0, where.dtype), literal(size - 1, where.dtype)
        if mode == "nearest":
            where = _counted_from_front(where, size)
        where = lax.clamp(zero, where, last)
    values = convert(_repeated(_flat(values), count), aval_of(x).dtype)
    return reshaped(_flat(x).at[where].set(values, mode="promise_in_bounds"), shape)


def _wide(where: Any, size: int) -> Any:
    """Positions in a dtype of at least 32 bits that holds a size."""
    dtype = aval_of(where).dtype
    wide = position_dtype(size)
    return where if dtype.itemsize >= wide.itemsize else convert(where, wide)


def _counted_from_front(where: Any, size: int) -> Any:
    """Positions, with negative ones counted from the end."""
    dtype = aval_of(where).dtype
    if dtypes.kind_of(dtype) == "u":
        return where
    below = lax.lt(where, literal(0, dtype))
    return pick(below, lax.add(where, literal(size, dtype)), where)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """Put values at positions along a dimension that differ between rows, in a copy.

    The counterpart of `take_along_axis`. NumPy changes the argument in place; here
    ``inplace=False`` is required.

    Args:
        arr: array.
        indices: integer array of the same rank, which broadcasts with `arr` in the other
            dimensions; negative ones count from the end.
        values: array or scalar that broadcasts to `indices`.
        axis: dimension; None for positions in the flattened array.
        inplace: must be False.
        mode: what to do with positions out of bounds: "drop" (the default) ignores them, "clip"
            takes the nearest one.

    Returns:
        An array of the shape and dtype of `arr`.

    Raises:
        ValueError: `inplace` is not False, or the shapes do not fit.
        TypeError: the indices are not integers.

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.array([[7, 3, 5], [2, 9, 4]])
        >>> largest = jnp.argmax(x, axis=1, keepdims=True)
        >>> print(jnp.put_along_axis(x, largest, 0, axis=1, inplace=False))
        [[0 3 5]
         [2 0 4]]
    """
    _refuse_in_place("put_along_axis", "x, indices, values, axis", inplace)
    return _put_along_axis(arr, indices, values, axis, mode)


@compiled_with("axis", "mode")
def _put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None, mode: str | None) -> Any:
    x = operand(arr, "put_along_axis", "arr")
    where = operand(indices, "put_along_axis", "indices")
    given = operand(values, "put_along_axis", "values")
    require_kind("put_along_axis", where, "iu", "integer indices")
    shape = aval_of(x).shape
    if axis is None:
        return reshaped(_put_along(_flat(x), where, given, 0, mode), shape)
    dimension = canonical_axis("put_along_axis", axis, len(shape))
    return _put_along(x, where, given, dimension, mode)


def _put_along(x: Any, where: Any, values: Any, axis: int, mode: str | None) -> Any:
    shape, places = aval_of(x).shape, aval_of(where).shape
    if len(shape) != len(places):
        raise ValueError(
            f"put_along_axis needs indices of the rank of the array, got shapes {shape} and "
            f"{places}"
        )
    if any(
        d != axis and n not in (1, m) for d, (n, m) in enumerate(zip(places, shape, strict=True))
    ):
        raise ValueError(
            f"put_along_axis: indices of shape {places} do not fit an array of shape {shape}; "
            f"sizes in dimensions other than {axis} must be 1 or equal"
        )
    full = tuple(places[d] if d == axis else n for d, n in enumerate(shape))
    actual = aval_of(values).shape
    try:
        values = broadcast_to(values, full)
    except ValueError:
        raise ValueError(
            f"put_along_axis: values of shape {actual} cannot be broadcast to the shape {full} of "
            "the indices"
        ) from None
    values = convert(values, aval_of(x).dtype, weak_of(x))
    if full[axis] == 1 and mode in (None, "drop", "clip"):
        # One element of each row: comparing all positions is faster than a scatter.
        size = shape[axis]
        where = _counted_from_front(_wide(where, size), size)
        if mode == "clip":
            where = lax.clamp(literal(0, where.dtype), where, literal(size - 1, where.dtype))
        places = iota_like(where.dtype, shape, axis)
        return pick(lax.eq(places, spread(where, shape)), values, x)
    index: list[Any] = [
        iota_like(position_dtype(n), tuple(n if d == e else 1 for e in range(len(full))), d)
        for d, n in enumerate(full)
    ]
    index[axis] = broadcast_to(where, full)
    return x.at[tuple(index)].set(values, mode=mode)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """Put values, one after another, where a mask is true, in a copy.

    NumPy changes the argument in place; here ``inplace=False`` is required.

    Args:
        arr: array.
        mask: array of as many elements; nonzero numbers count as true.
        vals: values for these positions in row-major order, repeated if there are too few.
        inplace: must be False.

    Returns:
        An array of the shape and dtype of `arr`.

    Raises:
        ValueError: `inplace` is not False, the sizes differ, or there are no values.

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.arange(5)
        >>> print(jnp.place(x, x % 2 == 0, jnp.array([10, 20]), inplace=False))
        [10  1 20  3 10]
    """
    _refuse_in_place("place", "x, mask, vals", inplace)
    x, where = operand(arr, "place", "arr"), operand(mask, "place", "mask")
    values = array_like(vals, "place", "vals")
    if aval_of(x).size != aval_of(where).size:
        raise ValueError(
            "place needs a mask of as many elements as the array, got shapes "
            f"{aval_of(where).shape} and {aval_of(x).shape}"
        )
    if not aval_of(values).size:
        raise ValueError("place: vals must hold at least one value")
    return _place(x, where, values)


@compiled
def _place(x: Any, where: Any, values: Any) -> Any:
    aval = aval_of(x)
    chosen = _flat(truth(where))
    values = convert(_flat(values), aval.dtype, aval.weak_type)
    (size,) = aval_of(values).shape
    if not aval.size:
        return x
    if size > 1:
        default = dtypes.default_dtype("i")
        number = lax.sub(lax.cumsum(convert(chosen, default)), literal(1, default))
        # Before the first position the number is -1; the value taken there is not used.
        number = lax.rem(lax.max(number, literal(0, default)), literal(size, default))
        values = take(values, number, mode="promise_in_bounds")
    return reshaped(pick(chosen, spread(values, (aval.size,)), _flat(x)), aval.shape)


def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """Fill the main diagonal of an array, in a copy.

    NumPy changes the argument in place; here ``inplace=False`` is required.

    Args:
        a: array of rank 2, or of higher rank with equal sizes.
        val: the elements, in row-major order, repeated if there are too few.
        wrap: whether the diagonal of a matrix with more rows than columns starts again after an
            empty row, as long as there are rows.
        inplace: must be False.

    Returns:
        An array of the shape and dtype of `a`.

    Raises:
        NotImplementedError: `inplace` is not False.
        ValueError: the shape has no diagonal, or `val` is empty.

    Differs:
        `wrap` is supported.

        >>> print(jnp.fill_diagonal(jnp.zeros((4, 2), int), 1, wrap=True, inplace=False))
        [[1 0]
         [0 1]
         [0 0]
         [1 0]]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fill_diagonal(jnp.zeros((2, 3)), jnp.array([5, 6]), inplace=False))
        [[5. 0. 0.]
         [0. 6. 0.]]
    """
    if inplace:
        raise NotImplementedError(
            "fill_diagonal cannot change an array, which is immutable: write "
            "x = fill_diagonal(x, val, inplace=False) to get a changed copy"
        )
    x, values = operand(a, "fill_diagonal"), array_like(val, "fill_diagonal", "val")
    shape = aval_of(x).shape
    if len(shape) < 2:
        raise ValueError(f"fill_diagonal needs an array of rank 2 or more, got shape {shape}")
    if len(shape) > 2 and len(set(shape)) > 1:
        raise ValueError(
            f"fill_diagonal needs equal sizes where there are more than 2 dimensions, got {shape}"
        )
    if not aval_of(values).size:
        raise ValueError("fill_diagonal: val must hold at least one value")
    return _fill_diagonal(x, values, bool(wrap))


@compiled_with("wrap")
def _fill_diagonal(x: Any, values: Any, wrap: bool) -> Any:
    shape = aval_of(x).shape
    size = math.prod(shape)
    if not size:
        return x
    step = sum(math.prod(shape[d + 1 :]) for d in range(len(shape)))
    end = size if wrap or len(shape) > 2 else min(size, shape[1] * shape[1])
    count = len(range(0, end, step))
    values = convert(_repeated(_flat(values), count), aval_of(x).dtype)
    return reshaped(_flat(x).at[:end:step].set(values), shape)


# ------------------------------------------------------------------------- more, fewer elements


def _positions(function: str, obj: Any, size: int) -> Any:
    """The argument `obj` as positions: a host array for a slice, otherwise a checked operand."""
    if isinstance(obj, slice):
        return np.arange(*obj.indices(size), dtype=np.int32)
    return operand(obj, function, "obj")


def _opened(function: str, arr: Any, axis: Any) -> tuple[Any, int]:
    """The array, flattened for None, and one of its dimensions."""
    x = operand(arr, function, "arr")
    if axis is None:
        return _flat(x), 0
    return x, canonical_axis(function, axis, aval_of(x).ndim)


def insert(
    arr: ArrayLike, obj: slice | ArrayLike, values: ArrayLike, axis: int | None = None
) -> Array:
    """Insert elements or slices before positions, in a copy of the array.

    Args:
        arr: array.
        obj: positions in the original `arr` before which to insert: an integer, an integer vector,
            or a slice. Positions out of bounds mean the nearest end; NumPy raises an error.
        values: values to insert, converted to the dtype of `arr`. For a single integer position,
            one slice, or several stacked along the first dimension; otherwise an array that
            broadcasts to one slice for each position.
        axis: dimension; None to flatten the array first.

    Returns:
        A larger array.

    Raises:
        TypeError: the positions are not integers.
        ValueError: the values do not fit.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.insert(jnp.arange(4), 2, 9), jnp.insert(jnp.arange(3), jnp.array([1, 3]), 9))
        [0 1 9 2 3] [0 9 1 2 9]
        >>> print(jnp.insert(jnp.zeros((2, 2)), 1, jnp.array([5., 6.]), axis=1))
        [[0. 5. 0.]
         [0. 6. 0.]]
    """
    x, dimension = _opened("insert", arr, axis)
    where = _positions("insert", obj, aval_of(x).shape[dimension])
    require_kind("insert", where, "iu", "integer positions; write jnp.flatnonzero(mask) for a mask")
    if aval_of(where).ndim > 1:
        raise ValueError(
            f"insert: obj must be an integer, a vector or a slice, got shape {aval_of(where).shape}"
        )
    return _insert(x, where, array_like(values, "insert", "values"), dimension)


@compiled_with("axis")
def _insert(x: Any, where: Any, values: Any, axis: int) -> Any:
    shape = aval_of(x).shape
    size = shape[axis]
    is_single = not aval_of(where).ndim
    actual = aval_of(values).shape
    if len(actual) > len(shape):
        raise ValueError(
            f"insert: values of shape {actual} have more dimensions than the array of shape {shape}"
        )
    aval = aval_of(x)
    values = convert(values, aval.dtype, aval.weak_type)
    values = reshaped(values, (1,) * (len(shape) - len(actual)) + actual)
    if is_single:
        # Several slices for one position are stacked along the first dimension.
        values = moveaxis(values, 0, axis)
    count = aval_of(values).shape[axis] if aval_of(where).size == 1 else aval_of(where).size
    full = (*shape[:axis], count, *shape[axis + 1 :])
    if any(n not in (1, m) for n, m in zip(aval_of(values).shape, full, strict=True)):
        raise ValueError(
            f"insert: values of shape {actual} do not fit: {count} slices of an array of shape "
            f"{shape} along axis {axis} have shape {full}"
        )
    if not count:
        return x
    where = _wide(where, size + count)
    dtype = aval_of(where).dtype
    zero, end = literal(0, dtype), literal(size, dtype)
    where = lax.clamp(zero, _counted_from_front(where, size), end)
    where = convert(where, position_dtype(size + count))
    joined = concatenate([x, broadcast_to(values, full)], axis)
    return take(joined, _origins(where, size, count), axis=axis, mode="promise_in_bounds")


def _origins(where: Any, size: int, count: int) -> Any:
    """For each slice of the result, its position among the old slices followed by the new ones."""
    dtype = aval_of(where).dtype
    results = iota_like(dtype, (size + count,), 0)
    length = literal(size, dtype)
    if aval_of(where).size == 1:
        first = spread(reshaped(where, ()), (size + count,))
        beyond = lax.sub(results, first)
        is_new = lax.bitwise_and(
            lax.ge(beyond, literal(0, dtype)), lax.lt(beyond, literal(count, dtype))
        )
        old = pick(lax.lt(results, first), results, lax.sub(results, literal(count, dtype)))
        return pick(is_new, lax.add(beyond, length), old)
    counted = iota_like(dtype, (count,), 0)
    before, order = lax.sort((where, counted), num_keys=1, is_stable=True)
    places = lax.add(before, counted)
    zeros = value(lax.broadcast_in_dim(literal(0, dtype), (size + count,), ()))
    marks = zeros.at[places].set(value(literal(1, dtype)), unique_indices=True)
    passed = lax.cumsum(marks)
    old = lax.sub(results, passed)
    return old.at[places].set(lax.add(order, length), unique_indices=True)


def delete(
    arr: ArrayLike,
    obj: slice | ArrayLike,
    axis: int | None = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """Delete elements or slices, in a copy of the array.

    Args:
        arr: array.
        obj: positions to delete: an integer, a slice, an integer array, or a boolean mask. Arrays
            must not be traced, since the size of the result depends on them.
        axis: dimension; None to flatten the array first.
        assume_unique_indices: a promise that no position is repeated; integer arrays may then be
            traced, but must not hold positions out of bounds.

    Returns:
        A smaller array.

    Raises:
        IndexShapeError: a position that is not traced is out of bounds.
        ValueError: the numbers of booleans and positions differ.
        TypeError: the positions are neither integers nor booleans.
        ConcretizationTypeError: the size of the result would not be known while tracing.

    Differs:
        One traced position is taken.

        >>> print(dt.jit(lambda i: jnp.delete(jnp.arange(4), i))(1))
        [0 2 3]

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.array([10, 20, 30, 40])
        >>> print(jnp.delete(x, 1), jnp.delete(x, jnp.array([0, -1])), jnp.delete(x, slice(1, 3)))
        [10 30 40] [20 30] [10 40]
    """
    x, dimension = _opened("delete", arr, axis)
    size = aval_of(x).shape[dimension]
    where = _positions("delete", obj, size)
    require_kind("delete", where, "biu", "integers and booleans as positions")
    concrete = where.concrete() if isinstance(where, Tracer) else where
    if isinstance(obj, int | np.generic):
        concrete = obj
    is_mask = dtypes.kind_of(aval_of(where).dtype) == "b"
    if concrete is not None:
        host_positions = np.asarray(concrete)
        if not is_mask:  # NumPy has no positions of fewer than eight bits
            host_positions = host_positions.astype(np.int64)
        _check_positions(host_positions, size, dimension)
        if not host_positions.ndim and not is_mask:
            return _without(x, host_positions, dimension)
        keep = np.ones(size, bool)
        keep[host_positions.ravel() if is_mask else host_positions] = False
        return _taken(x, np.flatnonzero(keep).astype(position_dtype(keep.size)), dimension)
    if not aval_of(where).ndim and not is_mask:
        return _without(x, where, dimension) if size else x
    if is_mask or not assume_unique_indices:
        raise ConcretizationTypeError(
            where,
            "the argument obj of delete, on which the size of the result depends; give integer "
            "positions and assume_unique_indices=True",
        )
    return _without_several(x, where, dimension)


def _check_positions(found: np.ndarray[Any, Any], size: int, axis: int) -> None:
    if found.dtype == bool:
        if found.shape != (size,):
            raise ValueError(
                f"delete: {size} booleans are needed for axis {axis}, one for each position, got "
                f"shape {found.shape}"
            )
        return
    wrong = found[(found < -size) | (found >= size)]
    if wrong.size:
        raise IndexShapeError(
            f"delete: position {wrong[0]} is out of bounds for axis {axis} of size {size}"
        )


@compiled_with("axis")
def _without(x: Any, where: Any, axis: int) -> Any:
    size = aval_of(x).shape[axis]
    where = _counted_from_front(_wide(where, size), size)
    dtype = aval_of(where).dtype
    earlier = slice_dimension(x, 0, size - 1, axis)
    later = slice_dimension(x, 1, size, axis)
    places = iota_like(dtype, aval_of(earlier).shape, axis)
    return pick(lax.lt(places, spread(where, aval_of(places).shape)), earlier, later)


@compiled_with("axis")
def _taken(x: Any, keep: Any, axis: int) -> Any:
    return take(x, keep, axis=axis, mode="promise_in_bounds")


@compiled_with("axis")
def _without_several(x: Any, where: Any, axis: int) -> Any:
    size = aval_of(x).shape[axis]
    keep = value(lax.full((size,), True, np.dtype(bool))).at[_flat(where)].set(False)
    (places,) = indices_of_nonzero(keep, max(size - aval_of(where).size, 0))
    return take(x, places, axis=axis, mode="promise_in_bounds")


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """Trim zeros from the ends of an array.

    Args:
        filt: array, which must not be traced: the size of the result depends on it.
        trim: which zeros to remove: "f" in front, "b" at the back, "fb" for both.
        axis: dimension or dimensions to trim; all if None. Slices are removed if they hold only
            zeros.

    Returns:
        An array of the same rank.

    Raises:
        ConcretizationTypeError: `filt` is traced.
        ValueError: `trim` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.trim_zeros(jnp.array([0, 0, 1, 0, 2, 0])))
        [1 0 2]
    """
    x = operand(filt, "trim_zeros", "filt")
    ends = trim.lower() if isinstance(trim, str) else trim
    if ends not in ("f", "b", "fb", "bf"):
        raise ValueError(f"trim_zeros: trim must be 'f', 'b' or 'fb', got {trim!r}")
    concrete = x.concrete() if isinstance(x, Tracer) else x
    if concrete is None:
        raise ConcretizationTypeError(
            x,
            "the argument filt of trim_zeros, on which the size of the result depends; cut with a "
            "slice of known size instead, such as filt[2:-1]",
        )
    nonzero = np.asarray(concrete) != 0
    index = [slice(None)] * nonzero.ndim
    for dimension in canonical_axes("trim_zeros", axis, nonzero.ndim):
        (places,) = np.nonzero(nonzero.any(tuple(d for d in range(nonzero.ndim) if d != dimension)))
        if not places.size:
            index[dimension] = slice(0, 0)
            continue
        first = int(places[0]) if "f" in ends else 0
        last = int(places[-1]) + 1 if "b" in ends else nonzero.shape[dimension]
        index[dimension] = slice(first, last)
    return x[tuple(index)]
