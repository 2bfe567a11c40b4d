"""Indices as the dimension numbers of gathers and scatters."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np
from dovetail import enable_x64, lax
from dovetail.errors import IndexShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import Literal
from dovetail.extend.avals import aval_of, make_aval, shape_of
from dovetail.extend.dimensions import is_symbolic_dim, known_at_most, largest_known
from dovetail.extend.unchecked import (
    broadcast_in_dim,
    convert_element_type,
    iota_like,
    make_literal,
)
from dovetail.lax import (
    GatherDimensionNumbers,
    add_p,
    concatenate_p,
    lt_p,
    min_p,
    mul_p,
    select_n_p,
)
from dovetail.numpy.indexing.parsing import HIGHEST, INT32, INT64, Along, Index, Span, clipped

Shape = tuple[int, ...]


class Plan:
    """An index as the dimension numbers of a gather or scatter.

    A single gather can do all of NumPy's indexing except for three things: dimensions that the
    operand does not have (`fresh`, added before it), and descending order and new dimensions of the
    result (`flips`, `new_dims`, applied after it). A span with step 1 is a slice of the gather; its
    start is one component of the index vectors. Every other span, and every position, is a separate
    component over batch dimensions. Arrays share their batch dimensions, the group; it comes where
    the first array is, or first of all if they are separated. So one pass over the items, in order,
    counts dimensions in three ways: of the operand, of the batch, and of the result.

    Attributes:
        shape: the shape of the operand, after dimensions have been added at `fresh`.
        fresh: dimensions of size 1 to add to the operand.
        axes: the dimensions of the operand with positions that may be out of bounds.
        numbers: dimension numbers of the gather.
        slice_sizes: sizes of the slices.
        batch_shape: the shape of the indices without their last dimension.
        flips: dimensions of the gather's result to reverse.
        new_dims: dimensions to add to it afterwards.
        out_shape: the shape after that.
    """

    __slots__ = (
        "_components",
        "axes",
        "batch_shape",
        "flips",
        "fresh",
        "new_dims",
        "numbers",
        "out_shape",
        "shape",
        "slice_sizes",
    )

    def __init__(self, index: Index, shape: Shape) -> None:
        group = self._group_shape(index)
        operand: list[int] = []
        fresh: list[int] = []
        axes: list[int] = []
        collapsed: list[int] = []
        sizes: list[int] = []
        offsets: list[int] = []
        flips: list[int] = []
        new: list[int] = []
        batch: list[int] = []
        out: list[int] = []
        gathered = 0  # dimensions of the gather's result so far
        group_at: int | None = None
        # For each indexed axis: its positions and their batch dimensions, or None for the group.
        components: list[tuple[int, Any, bool, tuple[int, ...] | None]] = []
        if index.separated:
            group_at = 0
            batch += group
            out += group
            gathered += len(group)
        remaining = iter(shape)
        for item in index.items:
            if item is None:
                new.append(len(out))
                out.append(1)
                continue
            axis = len(operand)
            if isinstance(item, Span):
                operand.append(next(remaining))
                out.append(item.size)
                if item.flip:
                    flips.append(gathered)
                if item.step == 1:
                    offsets.append(gathered)
                    sizes.append(item.size)
                    if type(item.start) is not int or item.start or item.size != operand[-1]:
                        components.append((axis, item.start, True, ()))
                else:
                    components.append((axis, item, True, (len(batch),)))
                    batch.append(item.size)
                    collapsed.append(axis)
                    sizes.append(1)
                gathered += 1
                continue
            if isinstance(item, Along) and item.fresh:
                fresh.append(axis)
                operand.append(1)
            else:
                operand.append(next(remaining))
            if index.arrays and group_at is None:
                group_at = len(batch)
                batch += group
                out += group
                gathered += len(group)
            value = item.array if isinstance(item, Along) else item.value
            components.append((axis, value, item.wrapped, None))
            axes.append(axis)
            collapsed.append(axis)
            sizes.append(1)
        self.shape = tuple(operand)
        self.fresh = tuple(fresh)
        self.axes = tuple(axes)
        self.slice_sizes = tuple(sizes)
        self.batch_shape = tuple(batch)
        self.flips = tuple(flips)
        self.new_dims = tuple(new)
        self.out_shape = tuple(out)
        end = (group_at or 0) + len(group)
        self._components = [
            (axis, value, wrapped, _last_dims(value, end) if dims is None else dims)
            for axis, value, wrapped, dims in components
        ]
        self.numbers = GatherDimensionNumbers(
            tuple(offsets), tuple(collapsed), tuple([c[0] for c in components])
        )

    @staticmethod
    def _group_shape(index: Index) -> Shape:
        if not index.arrays:
            return ()
        shapes = [shape_of(item.array) for item in index.items if isinstance(item, Along)]
        if len(shapes) == 1:
            return shapes[0]
        try:
            return lax.broadcast_shapes(*shapes)  # NumPy's takes no more than 32 dimensions
        except ValueError:
            raise IndexShapeError(
                "shape mismatch: indexing arrays could not be broadcast together with shapes "
                f"{' '.join(map(str, shapes))}"
            ) from None

    def indices(self) -> Any:
        """The array of index vectors."""
        parts = self._components
        batch = self.batch_shape
        dtype = index_dtype(self.shape, [c[1] for c in parts])
        count = len(parts)
        if not count:
            return np.zeros((*batch, 0), dtype)
        # Host arrays are narrowed if 64-bit types are off.
        narrow = dtype is INT64 and not enable_x64.value
        small = count > 1 and known_at_most(count * prod(batch), _SMALL) and not narrow
        if small and all(_of_host(c[1]) for c in parts):
            host = np.empty((*batch, count), dtype)
            for number, (_, value, _, dims) in enumerate(parts):
                if type(value) is Span:
                    value = np.arange(value.size, dtype=np.int64) * value.step + value.start
                spread = np.ones(len(batch), int)
                spread[list(dims)] = np.shape(value)
                host[..., number] = np.reshape(clipped(value, dtype), spread)
            return host
        columns = []
        for axis, value, wrapped, dims in parts:
            if type(value) is int:
                value = Literal(clipped(value, dtype)[()], make_aval((), dtype))
            elif is_symbolic_dim(value):
                value = make_literal(value, dtype)
            elif type(value) is np.ndarray:
                value = clipped(value, INT32 if narrow else dtype)
                if narrow:
                    value = convert_element_type(value, dtype)
                elif value.shape == batch:
                    columns.append(value.reshape(*batch, 1))
                    continue
            elif type(value) is Span:
                value = _spaced(value, dtype)
            else:
                value = normalized(value, self.shape[axis], wrapped, dtype)
            columns.append(broadcast_in_dim(value, (*batch, 1), dims))
        return columns[0] if count == 1 else concatenate_p.bind(*columns, dimension=len(batch))


def _last_dims(value: Any, end: int) -> tuple[int, ...]:
    """The dimensions before `end` that positions run over, among those of all index arrays."""
    return (
        () if type(value) is int or is_symbolic_dim(value) else tuple(range(end - value.ndim, end))
    )


#: Up to this size, static positions are a constant of the program.
_SMALL: Final = 256


def _of_host(value: Any) -> bool:
    return type(value) in (int, np.ndarray) or (type(value) is Span and type(value.start) is int)


def index_dtype(shape: Shape, values: Sequence[Any]) -> Any:
    """The dtype for computations with positions."""
    if largest_known(shape) > HIGHEST:
        return INT64
    for value in values:
        if type(value) is Span:
            value = value.start
        known = type(value) in (int, np.ndarray) or is_symbolic_dim(value)
        if not known and value.dtype.itemsize == 8:
            return INT64
    return INT32


def normalized(value: Any, size: int, wrapped: bool, dtype: Any) -> Any:
    """Traced positions in a signed dtype, negative ones counted from the end."""
    own_dtype = aval_of(value).dtype
    if dtypes.kind_of(own_dtype) == "u":
        if own_dtype.itemsize >= dtype.itemsize:
            value = min_p.bind(value, make_literal(np.iinfo(dtype).max, own_dtype))
        return in_dtype(value, dtype)
    value = in_dtype(value, dtype)
    if wrapped:
        return value
    negative = lt_p.bind(value, make_literal(0, dtype))
    return select_n_p.bind(negative, value, add_p.bind(value, make_literal(size, dtype)))


def in_dtype(value: Any, dtype: Any) -> Any:
    """Traced positions in a dtype; weak typing does not matter."""
    return value if value.dtype == dtype else convert_element_type(value, dtype)


def _spaced(span: Span, dtype: Any) -> Any:
    """The positions of a span as an array."""
    places = iota_like(dtype, (span.size,), 0)
    if span.step != 1:
        places = mul_p.bind(places, make_literal(span.step, dtype))
    if type(span.start) is int:
        return add_p.bind(places, make_literal(span.start, dtype)) if span.start else places
    return add_p.bind(places, in_dtype(span.start, dtype))


def typed_start(start: Any, dtype: Any) -> Any:
    """The first position of a slice as a scalar of a dtype."""
    return make_literal(start, dtype) if type(start) is int else in_dtype(start, dtype)
