"""Parsing of indices: whatever NumPy allows in brackets, checked and fitted to a shape."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from dovetail import enable_x64
from dovetail.errors import NonConcreteBooleanIndexError, NoValueError
from dovetail.extend import dtypes
from dovetail.extend.avals import ArrayClass, Tracer, array_conversion, as_array
from dovetail.extend.dimensions import as_size, is_symbolic_dim, max_dim, min_dim
from dovetail.extend.dtypes import dtype_name
from dovetail.extend.indexing import Slice
from dovetail.extend.unchecked import convert_element_type
from dovetail.lax import clamp, stack

Shape = tuple[int, ...]

INT32: Final = np.dtype(np.int32)
INT64: Final = np.dtype(np.int64)
LOWEST: Final = -(2**31)
HIGHEST: Final = 2**31 - 1


# Created for every eager index, so not frozen: frozen instances take twice as long to create.


@dataclass(slots=True, eq=False)
class At:
    """One position in a dimension, which the result then lacks.

    Attributes:
        value: an int, or a scalar array of integers.
        wrapped: whether negative values have been dealt with.
    """

    value: Any
    wrapped: bool


@dataclass(slots=True, eq=False)
class Span:
    """Evenly spaced positions of a dimension.

    Attributes:
        start: the first position; an int, or a scalar array that is not negative.
        size: number of positions.
        step: the distance between them, positive.
        flip: whether they are taken in descending order.
    """

    start: Any
    size: int
    step: int = 1
    flip: bool = False


@dataclass(slots=True, eq=False)
class Along:
    """Positions of a dimension from an array of integers.

    Attributes:
        array: the positions.
        wrapped: whether negative values have been dealt with.
        fresh: whether the dimension is a new one, of size 1: what a boolean scalar indexes.
    """

    array: Any
    wrapped: bool
    fresh: bool = False


Item = At | Span | Along | None


@dataclass(slots=True, eq=False)
class Index:
    """A parsed index.

    Attributes:
        items: the items in order; None for a new dimension.
        arrays: whether there is an `Along` among them.
        separated: whether the items that NumPy calls advanced (`Along`, and `At` next to one) stand
            apart, so that their dimensions come first in the result.
    """

    items: list[Item]
    arrays: bool = False
    separated: bool = False


def parse(index: Any, shape: Shape, wrap: bool = True) -> Index:
    """Parse an index of an array.

    Args:
        index: what stands in the brackets.
        shape: the shape of the array.
        wrap: whether negative positions count from the end.

    Raises:
        IndexError: there are too many indices, or one does not fit its dimension.
        TypeError: something in it cannot be an index.
        NonConcreteBooleanIndexError: it holds a traced mask.
    """
    if isinstance(index, tuple):
        entries: Sequence[Any] = index
    else:
        if isinstance(index, list):
            raise TypeError(
                "an array cannot be indexed with a list: write x[dovetail.numpy.array(index)] to "
                "take these positions, or x[tuple(index)] to index several dimensions"
            )
        entries = (index,)
    checked = []
    used = 0
    ellipsis: int | None = None
    for number, entry in enumerate(entries):
        kind = type(entry)
        if kind is int or kind is slice or kind is Slice:
            used += 1
        elif entry is Ellipsis:
            if ellipsis is not None:
                raise IndexError("an index can only have a single ellipsis ('...')")
            ellipsis = number
        elif entry is not None:
            entry = _entry(entry, number)
            kind = type(entry)
            if kind is not bool:
                used += entry.ndim if kind is not int and entry.dtype == np.bool_ else 1
        checked.append(entry)
    if used > len(shape):
        raise IndexError(
            f"too many indices: the array is {len(shape)}-dimensional, but {used} were indexed "
            f"(its shape is {shape}); leave some out, or insert dimensions with None first"
        )
    if ellipsis is None:
        ellipsis = len(checked)
        checked.append(Ellipsis)
    items: list[Item] = []
    places: list[int] = []  # of advanced entries
    scalars: list[int] = []
    axis = 0
    arrays = False
    for number, entry in enumerate(checked):
        kind = type(entry)
        if kind is int:
            items.append(At(_wrapped(entry, axis, shape, wrap), True))
            scalars.append(number)
            axis += 1
        elif kind is slice:
            items.append(span_of(entry, shape[axis], number))
            axis += 1
        elif kind is Slice:
            items.append(_inside(entry, axis, shape, number))
            axis += 1
        elif entry is None:
            items.append(None)
        elif entry is Ellipsis:
            items += [Span(0, size) for size in shape[axis : axis + len(shape) - used]]
            axis += len(shape) - used
        elif kind is bool:
            arrays = True
            places.append(number)
            items.append(Along(np.zeros(int(entry), np.int32), True, fresh=True))
        elif entry.dtype == np.bool_:
            arrays = True
            places.append(number)
            items.extend(_mask(entry, shape, axis, number))
            axis += entry.ndim
        elif entry.ndim:
            arrays = True
            places.append(number)
            items.append(_along(entry, axis, shape, wrap))
            axis += 1
        else:
            if not shape[axis]:
                raise empty_dimension(axis, shape)
            items.append(At(entry, not wrap))
            scalars.append(number)
            axis += 1
    separated = False
    if arrays and len(checked) > 1:
        places = sorted(places + scalars)
        separated = places[-1] - places[0] + 1 != len(places)
    return Index(items, arrays, separated)


def empty_dimension(axis: int, shape: Shape) -> IndexError:
    """The error for a position in an empty dimension."""
    return IndexError(
        f"index is out of bounds for axis {axis} with size 0 (the shape of the array is {shape})"
    )


def _wrapped(value: int, axis: int, shape: Shape, wrap: bool) -> int:
    size = shape[axis]
    if not size:
        raise empty_dimension(axis, shape)
    return value + size if value < 0 and wrap else value


def _inside(entry: Slice, axis: int, shape: Shape, number: int) -> Span:
    """The positions of a slice made by `ds`, moved into bounds."""
    last = shape[axis] - entry.extent
    if last < 0:
        raise IndexError(
            f"{entry!r:.80} at position {number} of the index takes {entry.extent} positions, and "
            f"axis {axis} has {shape[axis]} (the shape of the array is {shape})"
        )
    start: Any = entry.start
    if type(start) is not int:
        start = _entry(start, number)
    if type(start) is int:
        return Span(min(max(start, 0), last), entry.size, entry.stride)
    if type(start) is bool or start.ndim:
        raise TypeError(
            f"the start of a slice is an integer, got {entry.start!r:.80} at position {number} of "
            "the index"
        )
    if start.dtype.itemsize < INT32.itemsize:
        start = convert_element_type(start, INT32)
    least, greatest = np.asarray(0, start.dtype), np.asarray(last, start.dtype)
    start = clamp(least, start, greatest)
    if last <= HIGHEST:
        start = convert_element_type(start, INT32)
    return Span(start, entry.size, entry.stride)


def _entry(entry: Any, number: int) -> Any:
    """An entry of an index, other than int, slice, None or Ellipsis, as an int, bool or array."""
    if isinstance(entry, (bool, np.bool_)):
        return bool(entry)
    if isinstance(entry, (list, tuple)):
        entry = _from_sequence(entry, number)
    elif isinstance(entry, np.generic):
        entry = np.asarray(entry)
    elif type(entry) is not np.ndarray and isinstance(entry, np.ma.MaskedArray):
        raise NoValueError(
            f"position {number} of the index is a masked array, and its mask would be lost; fill "
            "it first, with value.filled(number)"
        )
    elif not isinstance(entry, (ArrayClass, np.ndarray)):
        if isinstance(entry, (str, bytes)):
            raise TypeError(
                f"an array cannot be indexed with a string, got {entry!r} at position {number} of "
                "the index"
            )
        if is_symbolic_dim(entry):
            return entry.dimension_as_value()
        if hasattr(entry, "__index__"):
            return operator.index(entry)
        if not (hasattr(entry, "__array__") or array_conversion(entry) is not None):
            if isinstance(entry, (float, complex)):
                raise _wrong_type(type(entry).__name__, number)
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or "
                f"boolean arrays are valid indices, got {entry!r:.80} at position {number} of the "
                "index"
            )
        entry = as_array(entry)
    dtype = entry.dtype
    # NumPy arrays may have the other byte order, which the table of kinds does not contain.
    kind = dtypes.kind_of(dtype) or getattr(dtype, "kind", None)
    if kind == "b":
        return _concrete_mask(entry)
    if kind not in ("i", "u"):
        raise _wrong_type(f"an array of dtype {dtype_name(dtype)}", number)
    if not entry.ndim and isinstance(entry, np.ndarray):
        return int(entry)
    return entry


def _wrong_type(what: str, number: int) -> TypeError:
    return TypeError(
        f"an index must have integer or boolean type, got {what} at position {number} of the "
        "index; convert it with .astype(int) or int() if its values are whole numbers"
    )


def _concrete_mask(mask: Any) -> Any:
    if isinstance(mask, Tracer):
        value = mask.concrete()
        if value is None:
            raise NonConcreteBooleanIndexError(mask)
        mask = value
    mask = np.asarray(mask)
    return bool(mask) if not mask.ndim else mask


def _from_sequence(entries: Sequence[Any], number: int) -> Any:
    """A list in an index as an array."""
    if holds_arrays(entries):
        return stacked(entries)
    try:
        array = np.asarray(entries)
    except ValueError as error:
        raise IndexError(
            f"the list at position {number} of the index is no array: {error}"
        ) from None
    return array.astype(np.int32) if not array.size and array.dtype.kind == "f" else array


def holds_arrays(entries: Any) -> bool:
    """Whether nested lists hold an array or tracer."""
    return isinstance(entries, ArrayClass) or (
        isinstance(entries, (list, tuple)) and any(holds_arrays(e) for e in entries)
    )


def stacked(entries: Any) -> Any:
    """Nested lists that hold arrays or tracers, as one array."""
    if not isinstance(entries, (list, tuple)):
        return entries
    parts = [stacked(e) for e in entries]
    dtype = dtypes.result_type(*parts)
    if dtypes.kind_of(dtype) in ("i", "u"):
        for part in parts:
            if type(part) is int:
                dtypes.check_fits(part, dtype, "a list with arrays")
    return stack([convert_element_type(p, dtype) for p in parts])


def span_of(entry: slice, size: int, number: int) -> Span:
    """The positions that a slice selects in a dimension."""
    if type(entry.step) is int and not entry.step:
        raise ValueError(f"the step of a slice cannot be zero, got {entry} at position {number}")
    if any(map(is_symbolic_dim, (size, entry.start, entry.stop, entry.step))):
        return _symbolic_span(entry, size)
    try:
        start, stop, step = entry.indices(size)
    except TypeError:
        parts = (entry.start, entry.stop, entry.step)
        if any(isinstance(p, Tracer) and p.concrete() is None for p in parts):
            raise IndexError(
                f"the bounds of a slice must be static integers, got {entry} at position {number} "
                "of the index: the shape of the result would depend on traced values. Write "
                "lax.dynamic_slice_in_dim(x, start, size) for a slice of static size, or use a "
                "mask and dovetail.numpy.where"
            ) from None
        raise TypeError(
            f"the bounds of a slice must be integers or None, got {entry} at position {number} of "
            "the index"
        ) from None
    count = len(range(start, stop, step))
    if not count:
        return Span(0, 0)
    if step < 0:
        return Span(start + (count - 1) * step, count, -step, count > 1)
    return Span(start, count, step if count > 1 else 1)


def _symbolic_span(entry: slice, size: Any) -> Span:
    """The positions that a slice selects, where its bounds or the size are symbolic."""
    step = 1 if entry.step is None else operator.index(entry.step)
    lowest, highest = (0, size) if step > 0 else (-1, size - 1)

    def bound(given: Any, default: Any) -> Any:
        if given is None:
            return default
        given = as_size(given)
        if given < 0:
            return max_dim(size + given, lowest)
        return min_dim(given, highest)

    start = bound(entry.start, lowest if step > 0 else highest)
    stop = bound(entry.stop, highest if step > 0 else lowest)
    width = stop - start if step > 0 else start - stop
    count: Any = max_dim(-(-width // abs(step)), 0)
    if step < 0:
        return Span(start + (count - 1) * step, count, -step, True)
    return Span(start, count, step)


def _mask(mask: Any, shape: Shape, axis: int, number: int) -> list[Along]:
    """The positions where a mask is true, one array for each of its dimensions."""
    sizes = shape[axis : axis + mask.ndim]
    # An empty mask fits any array, as in NumPy.
    if any(n not in (0, m) for n, m in zip(mask.shape, sizes, strict=True)):
        raise IndexError(
            f"boolean index did not match shape of indexed array: the mask at position {number} "
            f"of the index has shape {mask.shape}, the array has {sizes} there"
        )
    return [Along(places.astype(np.int32), True) for places in np.nonzero(mask)]


def _along(entry: Any, axis: int, shape: Shape, wrap: bool) -> Along:
    if not isinstance(entry, np.ndarray):
        return Along(entry, not wrap)
    size = shape[axis]
    # Positions out of bounds stay so in fewer bits.
    if entry.dtype == np.uint64:
        entry = np.minimum(entry, np.uint64(np.iinfo(np.int64).max))
    wide = entry.astype(np.int64)
    if wrap and entry.dtype.kind == "i":
        wide = np.where(wide < 0, wide + size, wide)
    dtype: Any = INT32
    if size > HIGHEST:
        if enable_x64.value:
            dtype = INT64
        elif wide.size and wide.max() > HIGHEST:
            raise OverflowError(
                f"positions in an array beyond {HIGHEST} need 64 bits: switch them on with "
                'dovetail.config.update("enable_x64", True)'
            )
    return Along(clipped(wide, dtype), True)


def clipped(value: Any, dtype: Any) -> Any:
    """Positions on the host in an index dtype; those out of bounds stay so."""
    info = np.iinfo(dtype)
    if type(value) is int:
        return np.asarray(min(max(value, info.min), info.max), dtype)
    return value if value.dtype == dtype else np.clip(value, info.min, info.max).astype(dtype)
