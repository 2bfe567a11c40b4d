"""Slices at positions known only at run time, and updates of such slices.

Positions are clamped to keep the slice inside the array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.counting import counted
from dovetail._core.base.errors import DTypeError, ShapeError
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis import structural
from dovetail._core.basis.elementwise import convert_element_type, dtype_name
from dovetail._core.basis.operands import as_operand, equal_dtypes, make_literal
from dovetail._core.basis.structural import (
    Linear,
    batch_size,
    full,
    is_linear,
    move_dimension,
    to_front,
)
from dovetail._core.hlo.expressions import Expression
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ir.dimensions import largest_known, max_dim, min_dim
from dovetail._core.ir.jaxpr import Literal
from dovetail._core.ops.elementwise.arithmetic import add_p
from dovetail._core.ops.elementwise.comparison import lt_p
from dovetail._core.ops.elementwise.remainders import rem_p
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.indexing.gather import (
    GatherDimensionNumbers,
    GatherScatterMode,
    gather_slices,
)
from dovetail._core.ops.indexing.scatter import ScatterDimensionNumbers, bind_scatter, scatter_p
from dovetail._core.ops.shape.creation import position_dtype
from dovetail._core.ops.shape.dimensions import (
    canonical_dimension,
    canonical_dimensions,
    integers,
    replaced,
)
from dovetail._core.ops.shape.joining import concatenate_p, unstack_p
from dovetail._core.ops.shape.reshaping import add_dimensions, squeeze_dimensions
from dovetail._core.trace.divisions import Labels, divided_alike, sliced_labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.tracer import ArrayClass
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

Shape = tuple[int, ...]
INT32: Final = np.dtype(np.int32)


def _check_indices(name: str, rank: int, indices: Sequence[Any]) -> None:
    if len(indices) != rank:
        raise TypeError(
            f"{name} takes one start index for each dimension of the operand: {rank}, got "
            f"{len(indices)}"
        )
    for index in indices:
        if index.ndim:
            raise TypeError(f"{name}: start indices must be scalars, got shape {index.shape}")
        if dtypes.kind_of(index.dtype) not in ("i", "u") or index.dtype != indices[0].dtype:
            raise TypeError(
                f"{name}: start indices must be integers of one dtype, got "
                f"{', '.join(dtype_name(i.dtype) for i in indices)}"
            )


def _clipped(indices: Sequence[Any], shape: Shape, sizes: Shape) -> list[int]:
    return [min(max(int(i), 0), n - size) for i, n, size in zip(indices, shape, sizes, strict=True)]


def _index_vectors(indices: Sequence[Any], dims: Sequence[int | None], size: int) -> Any:
    """Start indices, some of them batched, as an array of shape ``(size, rank)``."""
    columns = [
        structural.reshape(to_front(i, d, size), (size, 1))
        for i, d in zip(indices, dims, strict=True)
    ]
    return concatenate_p.bind(*columns, dimension=1)


def _check_bounds(checks: Any, x: Any, indices: Sequence[Any], window: Shape) -> None:
    """Check for start indices, one for each dimension, that are out of bounds."""
    shape = shape_of(x)
    for axis, index in enumerate(indices):
        literal_index = index.val if type(index) is Literal else None
        if literal_index is None or not 0 <= literal_index <= shape[axis] - window[axis]:
            checks.check_indices(shape, structural.reshape(index, (1,)), (axis,), (window[axis],))


class DynamicSlice(Linear):
    """A slice of the operand at start indices, one scalar for each dimension."""

    name = "dynamic_slice"
    generates_nan = False

    def abstract(self, x: Any, *indices: Any, slice_sizes: Shape) -> Any:
        _check_indices("dynamic_slice", x.ndim, indices)
        if len(slice_sizes) != x.ndim or any(
            not 0 <= size <= n for size, n in zip(slice_sizes, x.shape, strict=False)
        ):
            raise ShapeError(
                f"dynamic_slice: slice_sizes {slice_sizes} must be one size for each dimension of "
                f"the operand, from 0 to its size, for an operand of shape {x.shape}"
            )
        return make_aval(slice_sizes, x.dtype, x.weak_type)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], *, slice_sizes: Shape) -> Labels:
        return sliced_labels(avals, results)

    def reference(self, x: Any, *indices: Any, slice_sizes: Shape) -> Any:
        x = np.asarray(x)
        starts = _clipped(indices, x.shape, slice_sizes)
        parts = [slice(i, i + n) for i, n in zip(starts, slice_sizes, strict=True)]
        return x[tuple(parts)]

    def transpose(self, ct: Any, x: Any, *indices: Any, slice_sizes: Shape) -> Sequence[Any]:
        if not is_linear(x):
            return (None,) * (1 + len(indices))
        zeros = structural.full(x.shape, 0, x.dtype)
        return (dynamic_update_slice_p.bind(zeros, ct, *indices), *[None] * len(indices))

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, slice_sizes: Shape
    ) -> tuple[Any, Any]:
        (x, *indices), (d, *index_dims) = args, dims
        if all(e is None for e in index_dims):
            assert d is not None
            zero = make_literal(0, aval_of(indices[0]).dtype if indices else INT32)
            indices.insert(d, zero)
            sizes = (*slice_sizes[:d], shape_of(x)[d], *slice_sizes[d:])
            return self.bind(x, *indices, slice_sizes=sizes), d
        vectors = _index_vectors(indices, index_dims, batch_size(args, dims))
        rank = len(slice_sizes)
        window = tuple(range(1, rank + 1))
        if d is None:
            numbers = GatherDimensionNumbers(window, (), tuple(range(rank)))
        else:
            x = move_dimension(x, d, 0)
            numbers = GatherDimensionNumbers(window, (), window, (0,), (0,))
            # An empty batch has no slice of size 1 to take.
            slice_sizes = (min_dim(shape_of(x)[0], 1), *slice_sizes)
        return gather_slices(x, vectors, numbers, slice_sizes, mode=GatherScatterMode.CLIP), 0

    def lower(self, context: Builder, x: Any, *indices: Any, slice_sizes: Shape) -> Any:
        if not indices:
            return x
        starts = _limited(context, indices, slice_sizes)
        return context.dynamic_slice(x, context.avals_out[0], starts)

    def check(self, checks: Any, *args: Any, slice_sizes: Shape) -> Any:
        _check_bounds(checks, args[0], args[1:], slice_sizes)
        return self.bind(*args, slice_sizes=slice_sizes)


class DynamicUpdateSlice(Primitive):
    """The operand with a slice replaced at start indices, one scalar for each dimension."""

    name = "dynamic_update_slice"
    linear_in: ClassVar[Sequence[slice]] = (slice(2),)
    accepts_zeros = True
    generates_nan = False

    def abstract(self, x: Any, update: Any, *indices: Any) -> Any:
        if update.ndim != x.ndim or any(n > m for n, m in zip(update.shape, x.shape, strict=True)):
            raise TypeError(
                f"dynamic_update_slice: an update of shape {update.shape} does not fit into an "
                f"operand of shape {x.shape}: ranks must be equal, and sizes not larger"
            )
        if update.dtype != x.dtype:
            raise TypeError(
                "dynamic_update_slice requires operand and update of one dtype, got "
                f"{dtype_name(x.dtype)} and {dtype_name(update.dtype)}"
            )
        _check_indices("dynamic_update_slice", x.ndim, indices)
        return make_aval(x.shape, x.dtype, x.weak_type and update.weak_type)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return divided_alike(avals, results)

    def reference(self, x: Any, update: Any, *indices: Any) -> Any:
        out, update = np.array(x), np.asarray(update)
        starts = _clipped(indices, out.shape, update.shape)
        parts = [slice(i, i + n) for i, n in zip(starts, update.shape, strict=True)]
        out[tuple(parts)] = update
        return out

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        out = self.bind(*primals)
        if type(tangents[0]) is Zero and type(tangents[1]) is Zero:
            return out, Zero.of(out)
        t, s = map(structural.instantiate_zeros, tangents[:2])
        return out, self.bind(t, s, *primals[2:])

    def transpose(self, ct: Any, x: Any, update: Any, *indices: Any) -> Sequence[Any]:
        for_x = for_update = None
        shape = update.shape
        if is_linear(x):
            zeros = structural.full(shape, 0, ct.dtype)
            for_x = self.bind(ct, zeros, *indices)
        if is_linear(update):
            for_update = dynamic_slice_p.bind(ct, *indices, slice_sizes=shape)
        return for_x, for_update, *[None] * len(indices)

    def batch(self, args: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, Any]:
        (x, update, *indices), (d, e, *index_dims) = args, dims
        size = batch_size(args, dims)
        x, update = to_front(x, d, size), to_front(update, e, size)
        if all(i is None for i in index_dims):
            zero = make_literal(0, aval_of(indices[0]).dtype if indices else INT32)
            return self.bind(x, update, zero, *indices), 0
        rank = len(indices)
        window = tuple(range(1, rank + 1))
        numbers = ScatterDimensionNumbers(
            update_window_dims=window,
            inserted_window_dims=(),
            scatter_dims_to_operand_dims=window,
            operand_batching_dims=(0,),
            scatter_indices_batching_dims=(0,),
        )
        vectors = _index_vectors(indices, index_dims, size)
        out = bind_scatter(
            scatter_p,
            x,
            vectors,
            update,
            numbers,
            indices_are_sorted=True,
            unique_indices=True,
            mode=GatherScatterMode.CLIP,
        )
        return out, 0

    def lower(self, context: Builder, x: Any, update: Any, *indices: Any) -> Any:
        if not indices:
            return update
        starts = _limited(context, indices, context.avals_in[1].shape)
        return context.dynamic_update_slice(x, update, context.avals_out[0], starts)

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        x, update, *indices = args
        _check_bounds(checks, x, indices, shape_of(update))
        return self.bind(*args)


def _limited(context: Builder, indices: Sequence[Any], sizes: Shape) -> Sequence[Any]:
    """Start indices from which a slice is within the operand, where XLA does not see to it."""
    if not context.mistakes_slices:
        return indices
    operand, avals = context.avals_in[0], context.avals_in[-len(indices) :]
    limited = []
    for index, aval, n, size in zip(indices, avals, operand.shape, sizes, strict=True):
        last = min(n - size, np.iinfo(aval.dtype).max)
        limited.append(Expression(context, index, aval).clamp(0, last).value)
    return limited


dynamic_slice_p: Final = DynamicSlice()
dynamic_update_slice_p: Final = DynamicUpdateSlice()


# Public functions


def _start_indices(
    start_indices: Any, shape: Shape, function: str, allow_negative_indices: Any
) -> list[Any]:
    """Start indices as scalars of one dtype; negative ones count from the end."""
    indices: list[Any]
    if isinstance(start_indices, ArrayClass | np.ndarray | Literal):
        if start_indices.ndim != 1:
            raise TypeError(
                f"lax.{function}: start_indices must be a sequence of scalars, or an array of "
                f"rank 1, got an array of shape {start_indices.shape}"
            )
        if isinstance(start_indices, np.ndarray):
            indices = list(start_indices)
        else:
            indices = unstack_p.bind(start_indices, axis=0)
    else:
        try:
            indices = list(start_indices)
        except TypeError:
            raise TypeError(
                f"lax.{function}: start_indices must be a sequence of scalars, got "
                f"{type(start_indices).__name__}"
            ) from None
    if len(indices) != len(shape):
        raise ValueError(
            f"lax.{function} takes one start index for each dimension of an operand of shape "
            f"{shape}, got {len(indices)}"
        )
    if isinstance(allow_negative_indices, bool):
        wrap = [allow_negative_indices] * len(shape)
    else:
        if not np.iterable(allow_negative_indices):
            raise TypeError(
                f"lax.{function}: allow_negative_indices must be a bool or a sequence of bools, "
                f"got {allow_negative_indices!r:.80}"
            )
        wrap = [bool(w) for w in allow_negative_indices]
        if len(wrap) != len(shape):
            raise ValueError(
                f"lax.{function}: allow_negative_indices must be a bool, or one for each of the "
                f"{counted(len(shape), 'dimension')} of the operand"
            )
    operands: list[Any] = [
        i if type(i) is int else as_operand(i, f"lax.{function}", "start_indices") for i in indices
    ]
    avals = [aval_of(o) for o in operands if type(o) is not int]
    given = {a.dtype for a in avals if not a.weak_type}
    if len(given) > 1:
        raise TypeError(
            f"lax.{function}: start indices must be of one integer dtype, got "
            f"{', '.join(sorted(map(dtype_name, given)))}; convert with lax.convert_element_type"
        )
    values = [_scalar_index(o, function) for o in operands]
    for dim, (value, may_wrap) in enumerate(zip(values, wrap, strict=True)):
        if isinstance(value, int) and value < 0 and not may_wrap:
            raise ValueError(
                f"lax.{function}: the start index {value} of dimension {dim} is below zero, which "
                "allow_negative_indices=False rules out"
            )
    default = position_dtype(largest_known(shape))
    dtype = next((v.dtype for v in values if not isinstance(v, int)), default)
    return [
        # Starts are moved into bounds in the end; these then fit every dtype.
        make_literal(min_dim(max_dim(v + n if v < 0 and w else v, 0), n), dtype)
        if isinstance(v, int)
        else _from_end(v, n, dtype)
        if w and dtypes.kind_of(dtype) == "i"
        else v
        for v, n, w in zip(values, shape, wrap, strict=True)
    ]


def _scalar_index(value: Any, function: str) -> Any:
    """A checked start index: a Python int if static, otherwise an array of 32 or 64 bits."""
    if type(value) is int:
        return value
    if value.ndim or dtypes.kind_of(value.dtype) not in ("i", "u"):
        raise TypeError(
            f"lax.{function}: each start index must be an integer scalar, got "
            f"{aval_of(value).short_name()}"
        )
    if type(value) is Literal:
        return int(value.val)
    # In fewer bits, adding the size of a dimension could overflow.
    return convert_element_type(value, INT32) if value.dtype.itemsize < 4 else value


def _from_end(index: Any, size: int, dtype: Any) -> Any:
    """`index`, plus `size` where it is negative."""
    negative = lt_p.bind(index, make_literal(0, dtype))
    return select_n_p.bind(negative, index, add_p.bind(index, make_literal(size, dtype)))


def dynamic_slice(
    operand: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """A slice of an array, of static size, at a position known only at run time.

    Args:
        operand: an array.
        start_indices: an integer scalar for each dimension, clamped to keep the slice inside the
            array.
        slice_sizes: size of the slice in each dimension.
        allow_negative_indices: whether negative start indices count from the end; a bool, or one
            for each dimension. False saves the check if they are known not to be negative.

    Returns:
        An array of shape `slice_sizes`.

    Raises:
        TypeError: start indices are not integers or have different dtypes, or a size is too large.
        ValueError: the number of start indices is not the rank.

    Differs:
        An integer of Python goes with start indices of any dtype.

        >>> print(lax.dynamic_slice(jnp.ones((2, 2)), (0, jnp.int8(1)), (1, 1)))
        [[1.]]

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.dynamic_slice(np.arange(5), (3,), (2,)).tolist()
        [3, 4]
    """
    x = as_operand(operand, "lax.dynamic_slice", "operand")
    sizes = integers(slice_sizes, "dynamic_slice", "slice_sizes")
    indices = _start_indices(start_indices, shape_of(x), "dynamic_slice", allow_negative_indices)
    return dynamic_slice_p.bind(x, *indices, slice_sizes=sizes)


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """An array with a slice replaced, at a position known only at run time.

    Args:
        operand: an array.
        update: an array of the same rank and dtype, no larger in any dimension.
        start_indices: an integer scalar for each dimension, clamped to keep the update inside the
            array.
        allow_negative_indices: whether negative start indices count from the end; a bool, or one
            for each dimension.

    Returns:
        An array of the shape of `operand`.

    Raises:
        TypeError: ranks, sizes or dtypes are incompatible, or start indices are not integers.
        ValueError: the number of start indices is not the rank.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.dynamic_update_slice(np.zeros(4), np.ones(2), (1,)).tolist()
        [0.0, 1.0, 1.0, 0.0]
    """
    x, part = equal_dtypes("dynamic_update_slice", operand, update)
    indices = _start_indices(
        start_indices, shape_of(x), "dynamic_update_slice", allow_negative_indices
    )
    # The result has a dtype of its own, also where all operands are weakly typed.
    x = convert_element_type(x, aval_of(x).dtype)
    return dynamic_update_slice_p.bind(x, part, *indices)


def _along(index: Any, axis: int, rank: int) -> list[Any]:
    indices: list[Any] = [0] * rank
    indices[axis] = index
    return indices


def dynamic_slice_in_dim(
    operand: ArrayLike,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """A slice of an array along one dimension, at a position known only at run time.

    Args:
        operand: an array.
        start_index: an integer scalar; see `dynamic_slice`.
        slice_size: size of the slice.
        axis: the dimension; negative ones count from the end.
        allow_negative_indices: whether a negative start index counts from the end.

    Returns:
        An array of the same rank.

    Raises:
        TypeError: an argument is of the wrong kind, or the size is too large.
        ValueError: the dimension is out of bounds.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.dynamic_slice_in_dim(np.arange(5), 1, 2).tolist()
        [1, 2]
    """
    x = as_operand(operand, "lax.dynamic_slice_in_dim", "operand")
    shape = shape_of(x)
    axis = canonical_dimension(axis, len(shape), "dynamic_slice_in_dim")
    (size,) = integers((slice_size,), "dynamic_slice_in_dim", "slice_size")
    return dynamic_slice(
        x,
        _along(start_index, axis, len(shape)),
        replaced(shape, axis, size),
        allow_negative_indices=allow_negative_indices,
    )


def dynamic_index_in_dim(
    operand: ArrayLike,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The slice of an array at one position of a dimension, known only at run time.

    Args:
        operand: an array.
        index: an integer scalar; clamped if out of bounds.
        axis: the dimension; negative ones count from the end.
        keepdims: whether to keep the dimension, with size 1.
        allow_negative_indices: whether a negative index counts from the end.

    Returns:
        An array.

    Raises:
        TypeError: an argument is of the wrong kind.
        ValueError: the dimension is out of bounds.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.dynamic_index_in_dim(np.arange(5), 1, keepdims=False).tolist()
        1
    """
    x = as_operand(operand, "lax.dynamic_index_in_dim", "operand")
    axis = canonical_dimension(axis, len(shape_of(x)), "dynamic_index_in_dim")
    part = dynamic_slice_in_dim(x, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return part if keepdims else squeeze_dimensions(part, (axis,))


def dynamic_update_slice_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """An array with a slice along one dimension replaced, at a position known only at run time.

    Args:
        operand: an array.
        update: an array of the same rank and dtype, no larger in any dimension.
        start_index: an integer scalar; see `dynamic_update_slice`.
        axis: the dimension; negative ones count from the end.
        allow_negative_indices: whether a negative start index counts from the end.

    Returns:
        An array of the shape of `operand`.

    Raises:
        TypeError: ranks, sizes or dtypes are incompatible.
        ValueError: the dimension is out of bounds.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.dynamic_update_slice_in_dim(np.zeros(4), np.ones(2), 1, 0).tolist()
        [0.0, 1.0, 1.0, 0.0]
    """
    x = as_operand(operand, "lax.dynamic_update_slice_in_dim", "operand")
    rank = len(shape_of(x))
    axis = canonical_dimension(axis, rank, "dynamic_update_slice_in_dim")
    return dynamic_update_slice(
        x,
        update,
        _along(start_index, axis, rank),
        allow_negative_indices=allow_negative_indices,
    )


def dynamic_update_index_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """An array with the slice at one position of a dimension replaced, known only at run time.

    Args:
        operand: an array.
        update: an array of the same rank, or without that dimension.
        index: an integer scalar; clamped if out of bounds.
        axis: the dimension; negative ones count from the end.
        allow_negative_indices: whether a negative index counts from the end.

    Returns:
        An array of the shape of `operand`.

    Raises:
        TypeError: ranks, sizes or dtypes are incompatible.
        ValueError: the dimension is out of bounds.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.dynamic_update_index_in_dim(np.zeros(3), 1.0, 1, 0).tolist()
        [0.0, 1.0, 0.0]
    """
    x, part = equal_dtypes("dynamic_update_index_in_dim", operand, update)
    rank = len(shape_of(x))
    axis = canonical_dimension(axis, rank, "dynamic_update_index_in_dim")
    if len(shape_of(part)) != rank:
        part = add_dimensions(part, (axis,))
    return dynamic_update_slice_in_dim(
        x, part, index, axis, allow_negative_indices=allow_negative_indices
    )


def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """Elements or slices of an array at several indices.

    Args:
        src: an array.
        idxs: a sequence of integer arrays of one shape, one for each of `axes`. They are taken
            modulo the size of the dimension, so none is out of bounds.
        axes: the indexed dimensions.

    Returns:
        An array with the dimensions of the indices, followed by the dimensions of `src` that are
        not indexed.

    Raises:
        TypeError: an argument is of the wrong kind, the shapes of the indices differ, or an indexed
            dimension is empty.
        ValueError: the number of index arrays is not that of axes, or an axis is out of bounds.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> x = np.arange(6).reshape(2, 3)
        >>> lax.index_take(x, (np.array([0, -1]), np.array([1, 2])), (0, 1)).tolist()
        [1, 5]
    """
    x = as_operand(src, "lax.index_take", "src")
    shape = shape_of(x)
    dims = canonical_dimensions(axes, len(shape), "index_take", "axes")
    if not np.iterable(idxs):
        raise TypeError(f"lax.index_take: idxs must be a sequence of arrays, got {idxs!r:.80}")
    indices = [as_operand(i, "lax.index_take", "idxs") for i in idxs]
    if not indices or len(indices) != len(dims):
        raise ValueError(
            "lax.index_take takes an array of indices for each axis, got "
            f"{counted(len(indices), 'array')} for axes {dims}"
        )
    first = shape_of(indices[0])
    columns = []
    for index, d in zip(indices, dims, strict=True):
        aval = aval_of(index)
        if dtypes.kind_of(aval.dtype) not in ("i", "u") or aval.shape != first:
            raise DTypeError(
                "lax.index_take: indices must be arrays of integers of one shape, got "
                f"{', '.join(aval_of(i).short_name() for i in indices)}"
            )
        if not shape[d] and aval.size:
            raise TypeError(
                f"lax.index_take: dimension {d} of src, of shape {shape}, is empty: no index is in "
                "bounds"
            )
        columns.append(add_dimensions(_wrapped(index, shape[d]), (len(first),)))
    numbers = GatherDimensionNumbers(
        offset_dims=tuple(range(len(first), len(first) + len(shape) - len(dims))),
        collapsed_slice_dims=tuple(sorted(dims)),
        start_index_map=dims,
    )
    sizes = tuple([1 if d in dims else n for d, n in enumerate(shape)])
    vectors = concatenate_p.bind(*columns, dimension=len(first))
    if not aval_of(vectors).size:
        kept = tuple([n for d, n in enumerate(shape) if d not in dims])
        return full((*first, *kept), 0, aval_of(x).dtype)
    mode = GatherScatterMode.PROMISE_IN_BOUNDS
    return gather_slices(x, vectors, numbers, sizes, mode=mode)


def _wrapped(index: Any, size: int) -> Any:
    """Indices modulo the size of a dimension, as int32 or a wider type."""
    dtype = aval_of(index).dtype
    if dtype.itemsize < 4:
        index, dtype = convert_element_type(index, INT32), INT32
    rest = rem_p.bind(index, make_literal(max(size, 1), dtype))
    if dtypes.kind_of(dtype) == "u":
        return convert_element_type(rest, INT32) if size < 2**31 else rest
    rest = _from_end(rest, size, dtype)
    return convert_element_type(rest, INT32) if size < 2**31 else rest
