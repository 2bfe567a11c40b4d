"""Reading slices at positions known at run time: the `gather` primitive.

The operands of a gather are an array and its start indices. The last dimension of the indices holds
index vectors; the others are batch dimensions, which the result has too. Each index vector is the
position where one slice of the operand begins.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.counting import counted
from dovetail._core.base.errors import DTypeError
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import dtype_name
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import (
    Linear,
    batch_size,
    full,
    is_linear,
    move_dimension,
)
from dovetail._core.ir.avals import ShapedArray, aval_of, make_aval, shape_of
from dovetail._core.ir.dimensions import is_symbolic_dim, largest_known, min_dim
from dovetail._core.ops.indexing.divisions import gather_labels
from dovetail._core.ops.shape.dimensions import integers
from dovetail._core.trace.divisions import Labels
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

Shape = tuple[int, ...]

#: A single object, so that parameters holding it are equal: NaN does not equal NaN.
NAN: Final = float("nan")

_INT32: Final = np.dtype(np.int32)
_INT64: Final = np.dtype(np.int64)
_BOOL: Final = np.dtype(bool)


class GatherScatterMode(enum.Enum):
    """What happens to indices that are out of bounds.

    CLIP moves a slice to the nearest place where it fits. FILL_OR_DROP reads a fill value for any
    slice that is partly out of bounds, and drops the updates of such a slice. PROMISE_IN_BOUNDS is
    the user's promise that there are none. If it is broken, reads are clipped and updates are
    dropped here, but derivatives and other backends may behave differently.
    """

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3

    @staticmethod
    def from_any(mode: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode that a user's argument names.

        Args:
            mode: a mode; ``"clip"``, ``"fill"``, ``"drop"`` or ``"promise_in_bounds"``; None for
                ``"fill"``, the default of updates.

        Raises:
            ValueError: the name is unknown.

        Example:
            >>> from dovetail import lax
            >>> lax.GatherScatterMode.from_any("drop")
            <GatherScatterMode.FILL_OR_DROP: 2>
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        try:
            return _MODES[mode]
        except (KeyError, TypeError):
            raise ValueError(
                f"unknown mode {mode!r} for indices out of bounds: it must be one of "
                "'fill' (reading), 'drop' (updating), 'clip', 'promise_in_bounds', or None"
            ) from None


_MODES: Final[dict[str | None, GatherScatterMode]] = {
    None: GatherScatterMode.FILL_OR_DROP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
}


# A tuple: parameters are hashed for every equation, and tuples hash without running Python code.
class GatherDimensionNumbers(NamedTuple):
    """The roles of dimensions in a gather.

    Attributes:
        offset_dims: dimensions of the result that run over a slice, ascending.
        collapsed_slice_dims: dimensions of the operand that are dropped from the result, ascending;
            slices have size 1 there.
        start_index_map: for each component of an index vector, the dimension of the operand that it
            indexes.
        operand_batching_dims: dimensions of the operand that are paired with dimensions of the
            start indices, ascending; slices have size 1 there and the result lacks them.
        start_indices_batching_dims: the paired dimensions of the start indices, in the same order.

    Reference: https://openxla.org/stablehlo/spec#gather
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


# Shared by gather and scatter.


def dims_after_insertion(dims: Sequence[int], at: int) -> tuple[int, ...]:
    """Dimension numbers after a new dimension has been inserted at `at`."""
    return tuple([d + (d >= at) for d in dims])


def kept_dims(rank: int, *left_out: Sequence[int]) -> tuple[int, ...]:
    """The dimensions of an operand that are in none of the lists."""
    gone = {d for dims in left_out for d in dims}
    return tuple([d for d in range(rank) if d not in gone])


def batch_positions(rank: int, window_dims: Sequence[int]) -> tuple[int, ...]:
    """The dimensions of a gather's result (or of updates) that come from the indices."""
    return kept_dims(rank, window_dims)


def position_of_batch(dims: Sequence[int], before: int, rank: int, wanted: int) -> int:
    """Where the dimension of a batch may stand in a gather's result, or in updates.

    Args:
        dims: the dimensions there, ascending, of the kind that the batch becomes one of.
        before: how many of them come before the batch.
        rank: the rank there, without the batch.
        wanted: the place that moves no data; the nearest one that keeps the order is chosen.
    """
    lowest = dims[before - 1] + 1 if before else 0
    highest = dims[before] if before < len(dims) else rank
    return min(max(wanted, lowest), highest)


def canonical_numbers(numbers: Any, kind: type[Any], function: str) -> Any:
    """Dimension numbers of that type, with fields as tuples of Python integers."""
    if not isinstance(numbers, kind):
        raise TypeError(
            f"lax.{function}: dimension_numbers must be a lax.{kind.__name__}, got "
            f"{type(numbers).__name__}"
        )
    fields = [
        integers(values, function, f"dimension_numbers.{name}")
        for name, values in zip(numbers._fields, numbers, strict=True)
    ]
    return kind(*fields)


def check_indices(name: str, indices: Any) -> None:
    """Raise TypeError unless `indices` is an array of index vectors."""
    if dtypes.kind_of(indices.dtype) not in ("i", "u"):
        raise DTypeError(f"{name}: indices must be integers, got dtype {dtype_name(indices.dtype)}")
    if not indices.ndim:
        raise TypeError(
            f"{name}: indices must have at least one dimension, the last of which holds index "
            "vectors; got a scalar"
        )


def check_numbers(
    name: str,
    operand: Any,
    indices: Any,
    window_dims: tuple[int, ...],
    removed: tuple[int, ...],
    index_map: tuple[int, ...],
    operand_batching: tuple[int, ...],
    indices_batching: tuple[int, ...],
    out_rank: int,
) -> None:
    """Raise TypeError unless dimension numbers fit the operand and the indices."""

    def check_dims(what: str, dims: tuple[int, ...], rank: int, of: str, ascending: bool) -> None:
        if not all(0 <= d < rank for d in dims):
            raise TypeError(
                f"{name}: {what} {dims} must be dimensions of {of}, which has {rank} of them"
            )
        if len(set(dims)) != len(dims):
            raise TypeError(f"{name}: {what} {dims} must not name a dimension twice")
        if ascending and any(a >= b for a, b in pairwise(dims)):
            raise TypeError(f"{name}: {what} {dims} must be ascending")

    rank = operand.ndim
    read = name == "gather"
    removed_name = "collapsed_slice_dims" if read else "inserted_window_dims"
    window_name = "offset_dims" if read else "update_window_dims"
    map_name = "start_index_map" if read else "scatter_dims_to_operand_dims"
    batching_name = "start_indices_batching_dims" if read else "scatter_indices_batching_dims"
    check_dims(window_name, window_dims, out_rank, "the result" if read else "the updates", True)
    check_dims(removed_name, removed, rank, "the operand", True)
    check_dims("operand_batching_dims", operand_batching, rank, "the operand", True)
    check_dims(map_name, index_map, rank, "the operand", False)
    check_dims(batching_name, indices_batching, indices.ndim - 1, "the indices but the last", False)
    if set(removed) & set(operand_batching) or set(index_map) & set(operand_batching):
        raise TypeError(
            f"{name}: operand_batching_dims {operand_batching} must not be in {removed_name} "
            f"{removed} or {map_name} {index_map}"
        )
    if len(index_map) != indices.shape[-1]:
        raise TypeError(
            f"{name}: {map_name} {index_map} must name one dimension for each of the "
            f"{indices.shape[-1]} components of an index vector (indices have shape "
            f"{indices.shape})"
        )
    if len(window_dims) + len(removed) + len(operand_batching) != rank:
        raise TypeError(
            f"{name}: {window_name} {window_dims}, {removed_name} {removed} and "
            f"operand_batching_dims {operand_batching} must together be as many as the operand of "
            f"shape {operand.shape} has dimensions"
        )
    if len(operand_batching) != len(indices_batching) or any(
        operand.shape[a] != indices.shape[b]
        for a, b in zip(operand_batching, indices_batching, strict=False)
    ):
        raise TypeError(
            f"{name}: operand_batching_dims {operand_batching} and {batching_name} "
            f"{indices_batching} must pair dimensions of equal sizes, of operand {operand.shape} "
            f"and indices {indices.shape}"
        )


def signed_indices(
    context: Builder, indices: Any, aval: ShapedArray, sizes: Sequence[int]
) -> tuple[Any, ShapedArray]:
    """Indices in a signed dtype that can also hold the sizes they are compared with.

    Unsigned ones too large for it become its maximum, which is out of bounds as well.
    """
    dtype = aval.dtype
    wide = largest_known(sizes) > np.iinfo(np.int32).max
    target = _INT64 if wide or dtype.itemsize == 8 else _INT32
    if dtype == target:
        return indices, aval
    out = aval.update(dtype=target, weak_type=False)
    if dtypes.kind_of(dtype) == "u" and dtype.itemsize == target.itemsize:
        largest = context.constant(np.asarray(np.iinfo(target).max, dtype), aval)
        indices = context.min(indices, largest, aval)
    return context.convert(indices, aval, out), out


def index_limits(
    context: Builder, aval: ShapedArray, sizes: Sequence[int], windows: Sequence[int]
) -> Any:
    """For each component of each index vector, the largest value in bounds."""
    most = [n - w for n, w in zip(sizes, windows, strict=True)]
    if any(map(is_symbolic_dim, most)):
        given = make_aval((len(most),), context.size_aval.dtype)
        wanted = given.update(dtype=aval.dtype)
        vector = context.convert(context.sizes(most), given, wanted)
        return context.broadcast_in_dim(vector, aval, (aval.ndim - 1,))
    limits = np.asarray(most, aval.dtype)
    if len(set(limits.tolist())) == 1:
        return context.constant(limits[0], aval)
    vector = context.constant(limits, make_aval(limits.shape, aval.dtype))
    return context.broadcast_in_dim(vector, aval, (aval.ndim - 1,))


def window_corner(
    index: Any, index_map: Sequence[int], shape: Sequence[int], window: Sequence[int], clip: bool
) -> tuple[list[int], bool]:
    """In plain Python: where the slice of an index vector begins, and whether it is in bounds."""
    corner = [0] * len(shape)
    for component, dim in zip(np.asarray(index).tolist(), index_map, strict=True):
        corner[dim] = component
    inside = all(0 <= c <= n - w for c, n, w in zip(corner, shape, window, strict=True))
    if clip:
        corner = [max(0, min(c, n - w)) for c, n, w in zip(corner, shape, window, strict=True)]
    return corner, inside or clip


def default_fill(dtype: Any) -> Any:
    """The value that replaces a slice that is out of bounds.

    NaN, the smallest signed or the largest unsigned integer, True; for random keys, all bits set.
    """
    kind = dtypes.kind_of(dtype)
    if kind in ("f", "c"):
        return NAN
    if kind == "i":
        return int(dtypes.iinfo(dtype).min)
    if kind == "u":
        return int(dtypes.iinfo(dtype).max)
    if kind == "b":
        return True
    return int(dtypes.iinfo(dtype.physical(())[1]).max)


def canonical_fill(fill_value: Any, dtype: Any, function: str) -> Any:
    """A fill value as a Python scalar, which can be part of a program's cache key.

    Raises:
        TypeError: it is not a scalar, or it is complex and the dtype is not.
        OverflowError: an integer dtype cannot hold an integer.
    """
    if fill_value is None:
        return default_fill(dtype)
    if not isinstance(fill_value, (bool, int, float, complex)):
        if isinstance(fill_value, np.generic) or (
            isinstance(fill_value, np.ndarray) and not fill_value.ndim
        ):
            fill_value = fill_value.item()
        else:
            raise TypeError(
                f"{function}: fill_value must be a Python or NumPy scalar known while tracing, got "
                f"{type(fill_value).__name__}; write fill_value.item() if it is a concrete array"
            )
    if isinstance(fill_value, complex) and dtypes.kind_of(dtype) != "c":
        raise TypeError(
            f"{function}: fill_value {fill_value} is complex, and the operand is of dtype "
            f"{dtype_name(dtype)}; write fill_value.real"
        )
    if type(fill_value) is int and dtypes.kind_of(dtype) in ("i", "u"):
        dtypes.check_fits(fill_value, dtype, function)
    return NAN if fill_value != fill_value else fill_value


class Gather(Linear):
    """Slices of the operand, one for each index vector."""

    name = "gather"
    generates_nan = False

    def abstract(
        self,
        operand: Any,
        indices: Any,
        *,
        dimension_numbers: GatherDimensionNumbers,
        fill_value: Any,
        indices_are_sorted: bool,
        mode: GatherScatterMode,
        slice_sizes: Shape,
        unique_indices: bool,
    ) -> Any:
        check_indices("gather", indices)
        numbers = dimension_numbers
        out_rank = indices.ndim - 1 + len(numbers.offset_dims)
        check_numbers(
            "gather",
            operand,
            indices,
            numbers.offset_dims,
            numbers.collapsed_slice_dims,
            numbers.start_index_map,
            numbers.operand_batching_dims,
            numbers.start_indices_batching_dims,
            out_rank,
        )
        if len(slice_sizes) != operand.ndim:
            raise TypeError(
                f"gather: slice_sizes {slice_sizes} must have one entry for each of the "
                f"{counted(operand.ndim, 'dimension')} of the operand of shape {operand.shape}"
            )
        for dim, (size, most) in enumerate(zip(slice_sizes, operand.shape, strict=True)):
            if not 0 <= size <= most:
                raise TypeError(
                    f"gather: slice_sizes {slice_sizes} has {size} for dimension {dim}, where the "
                    f"operand of shape {operand.shape} has size {most}"
                )
        removed = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
        if any(slice_sizes[d] != min(1, operand.shape[d]) for d in removed):
            raise TypeError(
                f"gather: slice_sizes {slice_sizes} must be 1 in collapsed_slice_dims "
                f"{numbers.collapsed_slice_dims} and operand_batching_dims "
                f"{numbers.operand_batching_dims}"
            )
        return make_aval(
            gather_shape(indices.shape, numbers, slice_sizes), operand.dtype, operand.weak_type
        )

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        operand, indices = avals
        numbers, sizes = params["dimension_numbers"], params["slice_sizes"]
        return gather_labels(operand, indices, results[0], numbers, sizes)

    def reference(self, operand: Any, indices: Any, **params: Any) -> Any:
        operand, indices = np.asarray(operand), np.asarray(indices)
        numbers = params["dimension_numbers"]
        sizes = params["slice_sizes"]
        fill = params["mode"] is GatherScatterMode.FILL_OR_DROP
        removed = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
        out = np.empty(gather_shape(indices.shape, numbers, sizes), operand.dtype)
        positions = batch_positions(out.ndim, numbers.offset_dims)
        for batch in np.ndindex(indices.shape[:-1]):
            corner, inside = window_corner(
                indices[batch], numbers.start_index_map, operand.shape, sizes, not fill
            )
            for dim, of in zip(
                numbers.operand_batching_dims, numbers.start_indices_batching_dims, strict=True
            ):
                corner[dim] = batch[of]
            place: list[Any] = [slice(None)] * out.ndim
            for position, number in zip(positions, batch, strict=True):
                place[position] = number
            if inside:
                window = tuple(slice(c, c + n) for c, n in zip(corner, sizes, strict=True))
                out[tuple(place)] = np.squeeze(operand[window], removed)
            else:
                out[tuple(place)] = params["fill_value"]
        return out

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        out = self.bind(*primals, **params)
        t = tangents[0]
        if type(t) is Zero:
            return out, Zero.of(out)
        if params["mode"] is GatherScatterMode.FILL_OR_DROP:
            params["fill_value"] = 0
        return out, self.bind(t, primals[1], **params)

    def transpose(
        self,
        ct: Any,
        operand: Any,
        indices: Any,
        *,
        dimension_numbers: GatherDimensionNumbers,
        fill_value: Any,
        indices_are_sorted: bool,
        mode: GatherScatterMode,
        slice_sizes: Shape,
        unique_indices: bool,
    ) -> Sequence[Any]:
        if not is_linear(operand):
            return (None, None)
        from dovetail._core.ops.indexing.scatter import (  # deferred: scatter imports this
            scatter_add_updates,
            scatter_numbers,
        )

        zeros = full(operand.shape, 0, operand.dtype)
        summed = scatter_add_updates(
            zeros,
            indices,
            ct,
            scatter_numbers(dimension_numbers),
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
        )
        return (summed, None)

    def batch(
        self,
        args: Sequence[Any],
        dims: Sequence[int | None],
        *,
        dimension_numbers: GatherDimensionNumbers,
        fill_value: Any,
        indices_are_sorted: bool,
        mode: GatherScatterMode,
        slice_sizes: Shape,
        unique_indices: bool,
    ) -> tuple[Any, Any]:
        operand, indices = args
        at, indices_at = dims
        n = dimension_numbers
        batch = len(shape_of(indices)) - 1
        if indices_at is None:
            # The batch becomes one more dimension of every slice.
            assert at is not None
            size = shape_of(operand)[at]
            kept = kept_dims(len(slice_sizes), n.collapsed_slice_dims, n.operand_batching_dims)
            before = sum(d < at for d in kept)
            out_rank = batch + len(n.offset_dims)
            position = position_of_batch(n.offset_dims, before, out_rank, out_rank if at else 0)
            offset_dims = (
                *n.offset_dims[:before],
                position,
                *[d + 1 for d in n.offset_dims[before:]],
            )
            numbers = GatherDimensionNumbers(
                offset_dims,
                dims_after_insertion(n.collapsed_slice_dims, at),
                dims_after_insertion(n.start_index_map, at),
                dims_after_insertion(n.operand_batching_dims, at),
                n.start_indices_batching_dims,
            )
            sizes = (*slice_sizes[:at], size, *slice_sizes[at:])
        else:
            size = batch_size(args, dims)
            if indices_at == batch:
                # The dimension of index vectors has to stay last.
                indices, indices_at = move_dimension(indices, indices_at, 0), 0
            out_rank = batch - 1 + len(n.offset_dims)
            positions = batch_positions(out_rank, n.offset_dims)
            wanted = out_rank if indices_at else 0
            position = position_of_batch(positions, indices_at, out_rank, wanted)
            offset_dims = dims_after_insertion(n.offset_dims, position)
            indices_are_sorted = False
            if at is None:
                # Different elements of the batch may read the same slices.
                unique_indices = False
                numbers = n._replace(
                    offset_dims=offset_dims,
                    start_indices_batching_dims=dims_after_insertion(
                        n.start_indices_batching_dims, indices_at
                    ),
                )
                sizes = slice_sizes
            else:
                operand_batching, indices_batching = with_batching(
                    n.operand_batching_dims, n.start_indices_batching_dims, at, indices_at
                )
                numbers = GatherDimensionNumbers(
                    offset_dims,
                    dims_after_insertion(n.collapsed_slice_dims, at),
                    dims_after_insertion(n.start_index_map, at),
                    operand_batching,
                    indices_batching,
                )
                # An empty batch has no slice of size 1 to take.
                sizes = (*slice_sizes[:at], min_dim(size, 1), *slice_sizes[at:])
        out = gather_slices(
            operand,
            indices,
            numbers,
            sizes,
            mode=mode,
            fill_value=fill_value,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
        )
        return out, position

    def lower(
        self,
        context: Builder,
        operand: Any,
        indices: Any,
        *,
        dimension_numbers: GatherDimensionNumbers,
        fill_value: Any,
        indices_are_sorted: bool,
        mode: GatherScatterMode,
        slice_sizes: Shape,
        unique_indices: bool,
    ) -> Any:
        numbers = dimension_numbers
        operand_aval, aval = context.avals_in
        (out,) = context.avals_out
        sizes = [operand_aval.shape[d] for d in numbers.start_index_map]
        windows = [slice_sizes[d] for d in numbers.start_index_map]
        indices, aval = signed_indices(context, indices, aval, sizes)
        extra = context.physical_dimensions(out)
        windows_and_data = (*slice_sizes, *extra)
        dynamic = any(map(is_symbolic_dim, windows_and_data))
        sizes_of_slices = {} if dynamic else {"slice_sizes": context.i64_array(windows_and_data)}
        result = context.op(
            "stablehlo.dynamic_gather" if dynamic else "stablehlo.gather",
            [operand, indices, *([context.sizes(windows_and_data)] if dynamic else [])],
            out,
            {
                "dimension_numbers": context.gather_dimension_numbers(
                    offset_dims=(
                        *numbers.offset_dims,
                        *range(out.ndim, out.ndim + len(extra)),
                    ),
                    collapsed_slice_dims=numbers.collapsed_slice_dims,
                    start_index_map=numbers.start_index_map,
                    index_vector_dim=aval.ndim - 1,
                    operand_batching_dims=numbers.operand_batching_dims,
                    start_indices_batching_dims=numbers.start_indices_batching_dims,
                ),
                **sizes_of_slices,
                "indices_are_sorted": indices_are_sorted,
            },
        )
        if mode is not GatherScatterMode.FILL_OR_DROP or not sizes:
            return result
        mask = inside_mask(context, indices, aval, sizes, windows)
        positions = batch_positions(out.ndim, numbers.offset_dims)
        wide = context.broadcast_in_dim(mask, make_aval(out.shape, _BOOL), positions)
        fill = context.constant(fill_value, out)
        return context.select(wide, result, fill, out)

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        operand, indices = args
        axes = params["dimension_numbers"].start_index_map
        windows = [params["slice_sizes"][axis] for axis in axes]
        checks.check_indices(shape_of(operand), indices, axes, windows)
        return self.bind(*args, **params)


gather_p: Final = Gather()


def gather_shape(indices: Shape, numbers: GatherDimensionNumbers, slice_sizes: Shape) -> Shape:
    """The shape of the result of a gather."""
    window = [
        slice_sizes[d]
        for d in kept_dims(
            len(slice_sizes), numbers.collapsed_slice_dims, numbers.operand_batching_dims
        )
    ]
    offsets = iter(window)
    batch = iter(indices[:-1])
    rank = len(indices) - 1 + len(window)
    return tuple([next(offsets if d in numbers.offset_dims else batch) for d in range(rank)])


def with_batching(
    operand_dims: tuple[int, ...], indices_dims: tuple[int, ...], at: int, indices_at: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Paired batching dimensions of operand and indices, with one more pair inserted."""
    pairs = [
        *zip(
            dims_after_insertion(operand_dims, at),
            dims_after_insertion(indices_dims, indices_at),
            strict=True,
        ),
        (at, indices_at),
    ]
    pairs.sort()
    return tuple([a for a, _ in pairs]), tuple([b for _, b in pairs])


def inside_mask(
    context: Builder,
    indices: Any,
    aval: ShapedArray,
    sizes: Sequence[int],
    windows: Sequence[int],
) -> Any:
    """For each index vector, of signed integers, whether its slice is in bounds."""
    bools = make_aval(aval.shape, _BOOL)
    low = context.compare(indices, context.constant(0, aval), "GE", aval)
    high = context.compare(indices, index_limits(context, aval, sizes, windows), "LE", aval)
    both = context.and_(low, high, bools)
    out = make_aval(aval.shape[:-1], _BOOL)
    if aval.shape[-1] == 1:
        return context.reshape(both, out)
    scalar = make_aval((), _BOOL)
    (mask,) = context.reduce(
        [both],
        [context.constant(True, scalar)],
        (aval.ndim - 1,),
        [out],
        lambda a, b: [context.and_(a, b, scalar)],
    )
    return mask


def gather_slices(
    operand: Any,
    indices: Any,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Shape,
    *,
    mode: GatherScatterMode,
    fill_value: Any = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
) -> Any:
    """`gather` on canonical arguments, for rules; `fill_value` is None unless it is used."""
    return gather_p.bind(
        operand,
        indices,
        dimension_numbers=dimension_numbers,
        fill_value=fill_value,
        indices_are_sorted=indices_are_sorted,
        mode=mode,
        slice_sizes=slice_sizes,
        unique_indices=unique_indices,
    )


# Public functions


def gather(
    operand: ArrayLike,
    start_indices: ArrayLike,
    dimension_numbers: GatherDimensionNumbers,
    slice_sizes: Sequence[int],
    *,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    mode: str | GatherScatterMode | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Slices of an array at positions known at run time.

    This is StableHLO's gather. ``x[indices]`` of `dovetail.numpy` is built on it and is easier to
    use.

    Args:
        operand: the array to read.
        start_indices: integers of shape ``(*batch, n)``: the last dimension holds the index
            vectors.
        dimension_numbers: the role of each dimension.
        slice_sizes: size of a slice in each dimension of `operand`.
        unique_indices: a promise that no element is read twice; the gradient may be faster.
        indices_are_sorted: a promise that the index vectors are in ascending order.
        mode: what happens out of bounds: ``"fill"``, ``"clip"`` or ``"promise_in_bounds"``; see
            `GatherScatterMode`. The default is ``"fill"`` if there is a `fill_value`, otherwise
            ``"promise_in_bounds"``: nothing is checked.
        fill_value: the value of slices that are not fully in bounds, in mode ``"fill"``. By default
            NaN, the smallest signed or the largest unsigned integer, or True.

    Returns:
        An array of the dtype of `operand`, with the dimensions `batch` and, at ``offset_dims``,
        those of a slice.

    Raises:
        TypeError: the dimension numbers, sizes and shapes are incompatible.
        ValueError: `mode` is not a known mode.

    Reference: https://openxla.org/stablehlo/spec#gather

    Differs:
        Positions out of bounds are filled where a `fill_value` is given and no mode.

        >>> numbers = lax.GatherDimensionNumbers((), (0,), (0,))
        >>> positions = jnp.array([[1], [9]])
        >>> print(lax.gather(jnp.arange(3), positions, numbers, (1,), fill_value=-1))
        [ 1 -1]

        Slices must fit into the operand, also where there are none.

        >>> numbers = lax.GatherDimensionNumbers((), (0,), (0,))
        >>> lax.gather(jnp.arange(3), jnp.ones((0, 1), int), numbers, (4,))
        Traceback (most recent call last):
            ...
        TypeError: gather: slice_sizes (4,) has 4 for dimension 0, ...

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> numbers = lax.GatherDimensionNumbers((), (0,), (0,))
        >>> print(lax.gather(np.arange(5) * 10, np.array([[3], [1]]), numbers, (1,)))
        [30 10]
    """
    operand = as_operand(operand, "gather", "operand")
    indices = as_operand(start_indices, "gather", "start_indices")
    if mode is None and fill_value is None:
        parsed = GatherScatterMode.PROMISE_IN_BOUNDS
    else:
        parsed = GatherScatterMode.from_any(mode)
    fill = None
    if parsed is GatherScatterMode.FILL_OR_DROP:
        fill = canonical_fill(fill_value, aval_of(operand).dtype, "gather")
    return gather_slices(
        operand,
        indices,
        canonical_numbers(dimension_numbers, GatherDimensionNumbers, "gather"),
        integers(slice_sizes, "gather", "slice_sizes"),
        mode=parsed,
        fill_value=fill,
        indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices),
    )
