"""Arrays as sets: unique elements, unions, intersections and differences.

The number of elements of a set depends on values. Without `size`, the functions compute it first,
so the arrays must not be traced. With `size`, results have that many elements, under `jit` too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from dovetail import lax
from dovetail.errors import ConcretizationTypeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    canonical_axis,
    convert,
    integer,
    literal,
    same_dtype,
    value,
)
from dovetail.extend.avals import Tracer, aval_of
from dovetail.extend.eager import evaluation_trace, use_trace
from dovetail.extend.unchecked import iota_like
from dovetail.lax import sort_p
from dovetail.numpy.compiled import compiled_with, plain
from dovetail.numpy.conditions import pick, spread
from dovetail.numpy.creation import host_array_on, place_of
from dovetail.numpy.gathering import take
from dovetail.numpy.lookups import isin
from dovetail.numpy.nonzeros import default_or_wide, indices_of_nonzero
from dovetail.numpy.shapes import moveaxis, reshaped
from dovetail.typing import Array, ArrayLike


class UniqueAllResult(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


class _Marked(NamedTuple):
    """Elements, of which those with a flag are the result.

    Attributes:
        flags: a boolean vector: which positions are in the result.
        columns: arrays with an entry for each position, each with its fill value (None for the
            first entry in the result, or 0).
        whole: arrays that are results unchanged.
    """

    flags: Array
    columns: Sequence[tuple[Any, Any]]
    whole: Sequence[Any] = ()


# ------------------------------------------------------------------------------------ selecting


def _select(
    function: str,
    mark: Callable[..., _Marked],
    operands: tuple[Any, ...],
    size: int | None,
    fill_value: Any,
    *options: Any,
    lengths: bool = False,
) -> tuple[list[Any], list[Any]]:
    """The entries that `mark` flags, and the other arrays that it returns.

    Args:
        function: name of the user's function.
        mark: a function of the operands and the options, which must be hashable.
        operands: checked arrays.
        size: number of entries; None for all.
        fill_value: fill value of the first column.
        *options: further arguments of `mark`.
        lengths: whether the last entries are to be the distances of each flag to the next one, or
            to the end.
    """
    if size is not None:
        count = integer(function, "size", size)
        if count < 0:
            raise ValueError(f"{function}: size must not be negative, got {count}")
        return _entries(operands, fill_value, function, mark, options, lengths, count)
    concrete = [x.concrete() if isinstance(x, Tracer) else x for x in operands]
    for x, now in zip(operands, concrete, strict=True):
        if now is None:
            raise ConcretizationTypeError(
                x,
                f"the number of elements that {function} returns, which depends on values; "
                "give size=",
            )
    # Evaluate even while a function is traced: all values are known.
    with use_trace(evaluation_trace):
        flags, columns, whole = _marks(tuple(concrete), mark, options)
        places = np.flatnonzero(np.asarray(flags))
        if not any(isinstance(x, Tracer) for x in operands):
            place = place_of(*operands)
            all_differ = len(places) == flags.shape[0]
            selected = [np.asarray(c) if all_differ else np.asarray(c)[places] for c in columns]
            if lengths:
                (count,) = flags.shape
                distances = np.diff(places, append=count)
                selected.append(distances.astype(default_or_wide(count)))
            return [host_array_on(place, c) for c in selected], whole
    return _entries(operands, fill_value, function, mark, options, lengths, len(places))


@compiled_with("mark", "options")
def _marks(operands: Any, mark: Any, options: Any) -> tuple[Any, list[Any], list[Any]]:
    marked = mark(*operands, *options)
    return marked.flags, [column for column, _ in marked.columns], list(marked.whole)


@compiled_with("function", "mark", "options", "lengths", "size")
def _entries(
    operands: Any,
    fill_value: Any,
    function: str,
    mark: Any,
    options: Any,
    lengths: bool,
    size: int,
) -> tuple[list[Any], list[Any]]:
    flags, columns, whole = mark(*operands, *options)
    (count,) = aval_of(flags).shape
    # With lengths one more, which says where the last group ends.
    (found,) = indices_of_nonzero(flags, size + lengths, count)
    places = lax.slice_in_dim(found, 0, size)
    present = lax.lt(places, literal(count, aval_of(places).dtype))
    selected = []
    for number, (column, fill) in enumerate(columns):
        if not number and fill_value is not None:
            fill = array_like(fill_value, function, "fill_value")
            _check_fill(function, aval_of(fill).shape, aval_of(column).shape[1:])
        selected.append(_filled(column, places, present, fill))
    if lengths:
        distances = lax.sub(lax.slice_in_dim(found, 1, size + 1), places)
        selected.append(convert(distances, default_or_wide(count)))
    return selected, list(whole)


def _check_fill(function: str, shape: tuple[int, ...], entry: tuple[int, ...]) -> None:
    fits = zip(reversed(shape), reversed(entry), strict=False)
    if len(shape) > len(entry) or any(n not in (1, m) for n, m in fits):
        requirement = (
            f"broadcast to the shape {entry} of what it fills up" if entry else "be a scalar"
        )
        raise ValueError(f"{function}: fill_value must {requirement}, got shape {shape}")


def _filled(column: Any, places: Any, found: Any, fill: Any) -> Any:
    """Entries at some positions; a fill value where there is none."""
    aval = aval_of(column)
    (size,) = aval_of(places).shape
    shape = (size, *aval.shape[1:])
    zero = literal(0, aval.dtype, aval.weak_type)
    if not math.prod(shape):
        return spread(zero, shape)
    if not aval.shape[0]:
        entries = spread(zero, shape)
    else:
        entries = take(column, places, axis=0, mode="clip")
    if fill is None:
        first = lax.slice_in_dim(entries, 0, 1)
        one = lax.broadcast_in_dim(lax.slice_in_dim(found, 0, 1), aval_of(first).shape, (0,))
        fill = pick(one, first, zero)
    else:
        fill = convert(fill, aval.dtype, aval.weak_type)
    return pick(lax.broadcast_in_dim(found, shape, (0,)), entries, fill)


# ------------------------------------------------------------------------------------ comparing


def _flat(x: Any, function: str, argument: str) -> Any:
    """A checked argument as a vector."""
    x = value(array_like(x, function, argument))
    return reshaped(x, (aval_of(x).size,))


def _keys(x: Any) -> Any:
    """Elements as compared: all complex numbers that contain nan are alike."""
    dtype = aval_of(x).dtype
    if dtypes.kind_of(dtype) != "c":
        return x
    return pick(lax.ne(x, x), literal(complex(math.nan, math.nan), dtype), x)


def _ordered(rows: Any, numbered: bool = True) -> tuple[Any, Any]:
    """The rows of a matrix in lexicographic order, and their numbers; the sort is stable.

    Args:
        rows: matrix.
        numbered: whether the numbers are needed; without them, elements are sorted faster.
    """
    count, width = aval_of(rows).shape
    if width == 1 and not numbered:
        (ordered,) = sort_p.bind(reshaped(rows, (count,)), dimension=0, is_stable=True, num_keys=1)
        return reshaped(ordered, (count, 1)), None
    numbers = iota_like(default_or_wide(count), (count,), 0)
    if width == 1:
        ordered, numbers = sort_p.bind(
            reshaped(rows, (count,)), numbers, dimension=0, is_stable=True, num_keys=1
        )
        return reshaped(ordered, (count, 1)), numbers

    def sort_by(order: Any, column: Any) -> tuple[Any, None]:
        keys = take(column, order, mode="promise_in_bounds", unique_indices=True)
        _, order = sort_p.bind(keys, order, dimension=0, is_stable=True, num_keys=1)
        return order, None

    # Sort by the last column first, in a loop: the program's size does not depend on their number.
    if count and width:
        numbers, _ = lax.scan(sort_by, numbers, lax.transpose(rows, (1, 0)), reverse=True)
    return take(rows, numbers, axis=0, mode="promise_in_bounds", unique_indices=True), numbers


def _repeats(ordered: Any, equal_nan: bool) -> Any:
    """Whether each of some sorted rows equals the one before it."""
    count, width = aval_of(ordered).shape
    if not count:
        return lax.full((0,), False, bool)
    before = lax.slice_in_dim(ordered, 0, count - 1)
    after = lax.slice_in_dim(ordered, 1, count)
    same = lax.eq(before, after)
    if equal_nan and dtypes.kind_of(aval_of(ordered).dtype) in ("f", "c"):
        both_nan = lax.bitwise_and(lax.ne(before, before), lax.ne(after, after))
        same = lax.bitwise_or(same, both_nan)
    same = reshaped(same, (count - 1,)) if width == 1 else lax.reduce_and(same, (1,))
    return _shifted(same, False)


def _shifted(flags: Any, first: bool) -> Any:
    """Flags with one more in front."""
    return lax.concatenate([lax.full((1,), first, bool), flags], 0)


# --------------------------------------------------------------------------------------- unique


def _mark_unique(x: Any, axis: int | None, equal_nan: bool, index: bool, inverse: bool) -> _Marked:
    shape = aval_of(x).shape
    if axis is None:
        moved = reshaped(x, (math.prod(shape),))
    else:
        moved = plain(moveaxis)(x, axis, 0)
    sizes = aval_of(moved).shape
    count, dtype = sizes[0], default_or_wide(sizes[0])
    rows = reshaped(_keys(moved), (count, math.prod(sizes[1:])))
    ordered, numbers = _ordered(rows, index or inverse)
    first = lax.bitwise_not(_repeats(ordered, equal_nan))
    columns: list[tuple[Any, Any]] = [(reshaped(ordered, sizes), None)]
    if index:
        columns.append((numbers, None))
    whole = []
    if inverse:
        groups = lax.sub(lax.cumsum(convert(first, dtype)), literal(1, dtype))
        group_numbers = value(lax.full((count,), 0, dtype))
        group_numbers = group_numbers.at[numbers].set(
            groups, mode="promise_in_bounds", unique_indices=True
        )
        whole.append(reshaped(group_numbers, shape) if axis is None else group_numbers)
    return _Marked(first, columns, whole)


def _unique(
    function: str,
    ar: Any,
    index: bool,
    inverse: bool,
    counts: bool,
    axis: int | None,
    equal_nan: bool,
    size: int | None,
    fill_value: Any,
    argument: str = "x",
) -> list[Any]:
    """The unique elements, then the other requested outputs, in the order of the arguments."""
    x = value(array_like(ar, function, argument))
    shape = aval_of(x).shape
    dimension = None if axis is None else canonical_axis(function, axis, len(shape))
    count = math.prod(shape) if dimension is None else shape[dimension]
    if size and not count and fill_value is None:
        raise ValueError(
            f"{function} of no elements has none to fill up {size} with: give fill_value"
        )
    if index or inverse or counts:
        dtypes.check_holds(count, dtypes.default_dtype("i"), function)
    flags = bool(equal_nan), bool(index), bool(inverse)
    selected, whole = _select(
        function,
        _mark_unique,
        (x,),
        size,
        fill_value,
        dimension,
        *flags,
        lengths=bool(counts),
    )
    if dimension:
        selected[0] = moveaxis(selected[0], 0, dimension)
    if inverse:
        selected.insert(2 if index else 1, whole[0])
    return selected


@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array: ...
@overload
def unique(
    ar: ArrayLike,
    *,
    return_index: Literal[True],
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, ...]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    *,
    return_inverse: Literal[True],
    return_counts: bool = False,
    axis: int | None = None,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, ...]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    *,
    return_counts: Literal[True],
    axis: int | None = None,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, ...]: ...
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array | tuple[Array, ...]:
    """Find the unique elements of an array, in ascending order.

    Differs from NumPy's in `size` and `fill_value`; and `equal_nan` also applies with `axis`.

    Args:
        ar: array or scalar.
        return_index: whether to return the position of the first occurrence of each.
        return_inverse: whether to return the positions in the result that reconstruct the array.
        return_counts: whether to return the number of occurrences of each.
        axis: dimension along which to find unique slices; None for unique elements.
        equal_nan: whether all nan are one element. Complex numbers that contain nan are alike.
        size: number of elements to return; required if `ar` is traced. Any others are left out.
        fill_value: value for missing elements; the first element if None. Missing indices are the
            first index, missing counts 0.
        sorted: whether they must be sorted. They always are.

    Returns:
        An array, or a tuple of it and those requested of: a vector of indices in the flattened
        array (or along `axis`), an array of positions of the shape of `ar` (a vector with `axis`),
        and a vector of counts.

    Raises:
        ConcretizationTypeError: `ar` is traced and `size` is not given.
        ValueError: the axis is out of bounds, `size` is negative, or there is no element to fill
            with.

    Differs:
        No `size` is needed in a traced function for values that are known there, and gradients
        pass. Of equal elements the first is returned.

        >>> known = np.array([3, 1, 3])
        >>> print(dt.jit(lambda x: x * jnp.unique(known))(2))
        [2 6]

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.array([3, 1, 3, 2])
        >>> print(jnp.unique(x))
        [1 2 3]
        >>> values, counts = jnp.unique(x, return_counts=True, size=4, fill_value=-1)
        >>> print(values, counts)
        [ 1  2  3 -1] [1 1 2 0]
        >>> print(jnp.unique(jnp.array([[1, 2], [0, 5], [1, 2]]), axis=0))
        [[0 5]
         [1 2]]
    """
    outputs = _unique(
        "unique",
        ar,
        return_index,
        return_inverse,
        return_counts,
        axis,
        equal_nan,
        size,
        fill_value,
        "ar",
    )
    return tuple(outputs) if len(outputs) > 1 else outputs[0]


def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueAllResult:
    """`unique` with all of its outputs, as defined by the array API standard.

    Each nan is a separate element.

    Args:
        x: array or scalar.
        size: number of elements to return; required if `x` is traced.
        fill_value: value for missing elements; the first element if None.

    Returns:
        A named tuple: `values`, `indices` of their first occurrences in the flattened array,
        `inverse_indices` of the shape of `x`, and `counts`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> result = jnp.unique_all(jnp.array([3, 1, 3]))
        >>> print(result.values, result.indices, result.inverse_indices, result.counts)
        [1 3] [1 0] [1 0 1] [1 2]
    """
    outputs = _unique("unique_all", x, True, True, True, None, False, size, fill_value)
    return UniqueAllResult(*outputs)


def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCountsResult:
    """The unique elements and their counts, as defined by the array API standard.

    Each nan is a separate element.

    Args:
        x: array or scalar.
        size: number of elements to return; required if `x` is traced.
        fill_value: value for missing elements; the first element if None.

    Returns:
        A named tuple of vectors: `values` and `counts`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> result = jnp.unique_counts(jnp.array([3, 1, 3]))
        >>> print(result.values, result.counts)
        [1 3] [1 2]
    """
    outputs = _unique("unique_counts", x, False, False, True, None, False, size, fill_value)
    return UniqueCountsResult(*outputs)


def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverseResult:
    """The unique elements and the position of each element among them (array API standard).

    Each nan is a separate element.

    Args:
        x: array or scalar.
        size: number of elements to return; required if `x` is traced.
        fill_value: value for missing elements; the first element if None.

    Returns:
        A named tuple: a vector `values`, and `inverse_indices` of the shape of `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> result = jnp.unique_inverse(jnp.array([3, 1, 3]))
        >>> print(result.values, result.inverse_indices)
        [1 3] [1 0 1]
    """
    outputs = _unique("unique_inverse", x, False, True, False, None, False, size, fill_value)
    return UniqueInverseResult(*outputs)


def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """The unique elements, as defined by the array API standard.

    Each nan is a separate element.

    Args:
        x: array or scalar.
        size: number of elements to return; required if `x` is traced.
        fill_value: value for missing elements; the first element if None.

    Returns:
        A sorted vector.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.unique_values(jnp.array([3, 1, 3])))
        [1 3]
    """
    return _unique("unique_values", x, False, False, False, None, False, size, fill_value)[0]


# ------------------------------------------------------------------------------------ two arrays


def _pair(function: str, ar1: Any, ar2: Any, keeps_weak: bool = True) -> tuple[Any, Any]:
    """Two arguments as vectors of one dtype."""
    x, y = same_dtype([_flat(ar1, function, "ar1"), _flat(ar2, function, "ar2")])
    if keeps_weak:
        return x, y
    return convert(x, aval_of(x).dtype), convert(y, aval_of(y).dtype)


def _joined(x: Any, y: Any, nan_of_each: bool) -> tuple[Any, Any, Any, Any]:
    """The elements of two vectors in order; among equal ones, those of the first come first.

    Args:
        x: vector.
        y: vector of the same dtype.
        nan_of_each: whether all nan of one vector are one element. Those of different vectors are
            always different.

    Returns:
        The elements, their positions in the concatenated vectors, whether they repeat the previous
        one, and whether they are from the second vector.
    """
    keys = _keys(lax.concatenate([x, y], 0))
    count = aval_of(keys).size
    ordered, numbers = _ordered(reshaped(keys, (count, 1)))
    repeats = _repeats(ordered, nan_of_each)
    second = lax.ge(numbers, literal(aval_of(x).size, aval_of(numbers).dtype))
    ordered = reshaped(ordered, (count,))
    if count and nan_of_each:
        other = lax.ne(lax.slice_in_dim(second, 0, count - 1), lax.slice_in_dim(second, 1, count))
        first_nan = lax.bitwise_and(_shifted(other, False), lax.ne(ordered, ordered))
        repeats = lax.bitwise_and(repeats, lax.bitwise_not(first_nan))
    return ordered, numbers, repeats, second


def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """The union of two arrays: the unique elements of either, in ascending order.

    Args:
        ar1: array or scalar.
        ar2: array or scalar.
        size: number of elements to return; required if an array is traced. Any others are left out.
        fill_value: value for missing elements; the first element if None.

    Returns:
        A vector of the common dtype.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.union1d(jnp.array([3, 1]), jnp.array([2, 3])))
        [1 2 3]
        >>> print(jnp.union1d(jnp.array([3, 1]), jnp.array([2, 3]), size=4, fill_value=0))
        [1 2 3 0]
    """
    joined = lax.concatenate(list(_pair("union1d", ar1, ar2)), 0)
    return _unique("union1d", joined, False, False, False, None, True, size, fill_value)[0]


def _mark_common(x: Any, y: Any, indices: bool) -> _Marked:
    ordered, numbers, repeats, second = _joined(x, y, nan_of_each=False)
    count, dtype = aval_of(ordered).size, aval_of(numbers).dtype
    if not count:
        empty = numbers
        return _Marked(repeats, [(ordered, None), *[(empty, None)] * (2 * indices)])
    # Among equal elements, there is at most one position where the second vector begins.
    first_before = _shifted(lax.bitwise_not(lax.slice_in_dim(second, 0, count - 1)), False)
    flags = lax.bitwise_and(lax.bitwise_and(repeats, second), first_before)
    columns: list[tuple[Any, Any]] = [(ordered, None)]
    if indices:
        sizes = [literal(aval_of(v).size, dtype) for v in (x, y)]
        starts = pick(repeats, literal(0, dtype), iota_like(dtype, (count,), 0))
        earliest = take(numbers, lax.cummax(starts), mode="promise_in_bounds")
        columns += [(earliest, sizes[0]), (lax.sub(numbers, sizes[0]), sizes[1])]
    return _Marked(flags, columns)


@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: Literal[False] = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array: ...
@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    return_indices: Literal[True],
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> tuple[Array, Array, Array]: ...
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, Array, Array]:
    """The intersection of two arrays: the unique elements of both, in ascending order.

    Args:
        ar1: array or scalar.
        ar2: array or scalar.
        assume_unique: ignored; accepted for compatibility with NumPy.
        return_indices: whether to return the positions of the first occurrences in each array.
        size: number of elements to return; required if an array is traced. Any others are left out.
        fill_value: value for missing elements; the first element if None, or 0 if there is none.
            Missing indices are the sizes of the arrays.

    Returns:
        A vector of the common dtype; with `return_indices` a tuple of it and two vectors of indices
        in the flattened arrays. Nan is never in both arrays.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.

    Example:
        >>> import dovetail.numpy as jnp
        >>> values, first, second = jnp.intersect1d(
        ...     jnp.array([5, 3, 1]), jnp.array([4, 5, 3]), return_indices=True
        ... )
        >>> print(values, first, second)
        [3 5] [1 0] [2 1]
    """
    operands = _pair("intersect1d", ar1, ar2, keeps_weak=False)
    with_indices = bool(return_indices)
    if with_indices:
        count = sum(aval_of(each).size for each in operands)
        dtypes.check_holds(count, dtypes.default_dtype("i"), "intersect1d")
    outputs, _ = _select("intersect1d", _mark_common, operands, size, fill_value, with_indices)
    return tuple(outputs) if with_indices else outputs[0]


def _mark_rest(x: Any, y: Any, as_they_are: bool) -> _Marked:
    zero = literal(0, aval_of(x).dtype)
    if as_they_are or not aval_of(x).size:
        return _Marked(plain(isin)(x, y, invert=True), [(x, zero)])
    count = aval_of(x).size
    ordered, _ = _ordered(reshaped(_keys(x), (count, 1)))
    first = lax.bitwise_not(_repeats(ordered, True))
    ordered = reshaped(ordered, (count,))
    return _Marked(lax.bitwise_and(first, plain(isin)(ordered, y, invert=True)), [(ordered, zero)])


def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The set difference: the unique elements of one array not in another, in ascending order.

    Args:
        ar1: array or scalar.
        ar2: array or scalar.
        assume_unique: whether the elements of `ar1` are already unique; they then keep their order,
            and duplicates are not removed.
        size: number of elements to return; required if an array is traced. Any others are left out.
        fill_value: value for missing elements; 0 if None.

    Returns:
        A vector of the dtype of `ar1`. Nan is never in the other array.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.

    Differs:
        The promise `assume_unique` is believed here, where it keeps the order, and by no other
        function of sets.

        >>> print(jnp.setdiff1d(jnp.array([3, 1, 2]), jnp.array([1]), assume_unique=True))
        [3 2]
        >>> print(jnp.intersect1d(jnp.array([1, 1, 2]), jnp.array([1]), assume_unique=True))
        [1]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.setdiff1d(jnp.array([3, 1, 2, 1]), jnp.array([2])))
        [1 3]
    """
    operands = _flat(ar1, "setdiff1d", "ar1"), _flat(ar2, "setdiff1d", "ar2")
    outputs, _ = _select("setdiff1d", _mark_rest, operands, size, fill_value, bool(assume_unique))
    return outputs[0]


def _mark_different(x: Any, y: Any) -> _Marked:
    ordered, _, repeats, second = _joined(x, y, nan_of_each=True)
    count = aval_of(ordered).size
    starts = lax.bitwise_not(repeats)
    if not count:
        return _Marked(starts, [(ordered, None)])
    ends = lax.concatenate([lax.slice_in_dim(starts, 1, count), lax.full((1,), True, bool)], 0)
    # A run of equal elements begins in the second vector only if all are from there, and ends in
    # the first only if all are from that.
    flags = pick(second, starts, ends)
    return _Marked(flags, [(ordered, None)])


def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The symmetric difference: the unique elements of exactly one array, in ascending order.

    Args:
        ar1: array or scalar.
        ar2: array or scalar.
        assume_unique: ignored; accepted for compatibility with NumPy.
        size: number of elements to return; required if an array is traced. Any others are left out.
        fill_value: value for missing elements; the first element if None, or 0 if there is none.

    Returns:
        A vector of the common dtype. Nan is never in both arrays, so there can be two of them.

    Raises:
        ConcretizationTypeError: an array is traced and `size` is not given.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.setxor1d(jnp.array([3, 1, 2]), jnp.array([2, 4])))
        [1 3 4]
    """
    operands = _pair("setxor1d", ar1, ar2, keeps_weak=False)
    return _select("setxor1d", _mark_different, operands, size, fill_value)[0][0]
