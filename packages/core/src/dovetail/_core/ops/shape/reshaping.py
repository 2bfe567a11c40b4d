"""Shape operations on one array: broadcasting, reshaping, squeezing, reversing, tiling."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import ShapeError
from dovetail._core.base.typing import Array, ArrayLike, ShapeLike, Sharding
from dovetail._core.basis import structural
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import Linear, is_linear, reduce_sum
from dovetail._core.ir.avals import make_aval, shape_of
from dovetail._core.ops.calls.out_sharding import asked_division, placed
from dovetail._core.ops.shape.dimensions import (
    canonical_dimensions,
    canonical_shape,
    integer,
    integers,
)
from dovetail._core.trace.divisions import Labels, divided_alike
from dovetail._core.trace.tracer import ArrayClass

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

Shape = tuple[int, ...]


class Squeeze(Linear):
    """Removes dimensions of size one."""

    name = "squeeze"
    keeps_elements = True
    generates_nan = False

    def abstract(self, x: Any, *, dimensions: tuple[int, ...]) -> Any:
        if any(x.shape[d] != 1 for d in dimensions):
            raise ValueError(
                f"squeeze removes dimensions of size one; dimensions {dimensions} of an operand of "
                f"shape {x.shape} are not all of that size"
            )
        shape = tuple(n for i, n in enumerate(x.shape) if i not in dimensions)
        return make_aval(shape, x.dtype, x.weak_type)

    def labels(
        self, avals: Sequence[Any], results: Sequence[Any], *, dimensions: tuple[int, ...]
    ) -> Labels:
        own = range(avals[0].ndim)
        return Labels([own], [[d for d in own if d not in dimensions]])

    def reference(self, x: Any, *, dimensions: tuple[int, ...]) -> Any:
        return np.squeeze(x, dimensions)

    def transpose(self, ct: Any, x: Any, *, dimensions: tuple[int, ...]) -> Sequence[Any]:
        return (structural.reshape(ct, x.shape) if is_linear(x) else None,)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, dimensions: tuple[int, ...]
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        shifted = tuple(i + (i >= d) for i in dimensions)
        return squeeze_dimensions(x, shifted), d - sum(i < d for i in shifted)

    def lower(self, context: Builder, x: Any, *, dimensions: tuple[int, ...]) -> Any:
        return context.reshape(x, context.avals_out[0])


squeeze_p: Final = Squeeze()


class Reverse(Linear):
    """The elements in reverse order along some dimensions."""

    name = "rev"
    generates_nan = False

    def abstract(self, x: Any, *, dimensions: tuple[int, ...]) -> Any:
        return x

    def labels(
        self, avals: Sequence[Any], results: Sequence[Any], *, dimensions: tuple[int, ...]
    ) -> Labels:
        return divided_alike(avals, results)

    def reference(self, x: Any, *, dimensions: tuple[int, ...]) -> Any:
        return np.flip(x, dimensions)

    def transpose(self, ct: Any, x: Any, *, dimensions: tuple[int, ...]) -> Sequence[Any]:
        return (reverse(ct, dimensions) if is_linear(x) else None,)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, dimensions: tuple[int, ...]
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        return reverse(x, tuple(i + (i >= d) for i in dimensions)), d

    def lower(self, context: Builder, x: Any, *, dimensions: tuple[int, ...]) -> Any:
        return context.reverse(x, context.avals_out[0], dimensions)


rev_p: Final = Reverse()


class Tile(Linear):
    """The operand repeated side by side along each dimension."""

    name = "tile"
    generates_nan = False

    def abstract(self, x: Any, *, reps: tuple[int, ...]) -> Any:
        if len(reps) != x.ndim or any(r < 0 for r in reps):
            raise ShapeError(
                f"tile: reps {reps} must be one non-negative integer for each dimension of the "
                f"operand of shape {x.shape}"
            )
        shape = tuple(n * r for n, r in zip(x.shape, reps, strict=True))
        return make_aval(shape, x.dtype, x.weak_type)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return divided_alike(avals, results)

    def reference(self, x: Any, *, reps: tuple[int, ...]) -> Any:
        return np.tile(x, reps)

    def transpose(self, ct: Any, x: Any, *, reps: tuple[int, ...]) -> Sequence[Any]:
        if not is_linear(x):
            return (None,)
        folded = structural.reshape(ct, self._interleaved(reps, x.shape))
        return (reduce_sum(folded, tuple(range(0, 2 * len(reps), 2))),)

    @staticmethod
    def _interleaved(reps: tuple[int, ...], shape: Shape) -> Shape:
        return tuple(n for pair in zip(reps, shape, strict=True) for n in pair)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, reps: tuple[int, ...]
    ) -> tuple[Any, Any]:
        (x,), (d,) = args, dims
        assert d is not None
        return self.bind(x, reps=(*reps[:d], 1, *reps[d:])), d

    def lower(self, context: Builder, x: Any, *, reps: tuple[int, ...]) -> Any:
        (aval,), (out,) = context.avals_in, context.avals_out
        spread = make_aval(self._interleaved(reps, aval.shape), aval.dtype)
        copies = context.broadcast_in_dim(x, spread, range(1, spread.ndim, 2))
        return context.reshape(copies, out)


tile_p: Final = Tile()


# Functions for rules; the arguments are already canonical.


def squeeze_dimensions(x: Any, dimensions: tuple[int, ...]) -> Any:
    """`x` without some of its dimensions of size 1."""
    return squeeze_p.bind(x, dimensions=dimensions) if dimensions else x


def reverse(x: Any, dimensions: tuple[int, ...]) -> Any:
    """`x` reversed along some dimensions."""
    return rev_p.bind(x, dimensions=dimensions) if dimensions else x


def add_dimensions(x: Any, dimensions: tuple[int, ...]) -> Any:
    """`x` with new dimensions of size 1 at these (increasing) positions of the result."""
    shape = list(shape_of(x))
    for d in dimensions:
        shape.insert(d, 1)
    original = tuple([i for i in range(len(shape)) if i not in dimensions])
    return structural.broadcast_in_dim_p.bind(
        x, shape=tuple(shape), broadcast_dimensions=original, sharding=None
    )


# Public functions


def broadcast(
    operand: ArrayLike, sizes: Sequence[int], *, out_sharding: Sharding | None = None
) -> Array:
    """Repeat an array along new leading dimensions.

    Args:
        operand: an array or scalar.
        sizes: sizes of the new dimensions.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of shape ``(*sizes, *operand.shape)``.

    Raises:
        TypeError: `sizes` is not a shape.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.broadcast(np.ones(3), (2,)).shape
        (2, 3)
    """
    x = as_operand(operand, "lax.broadcast", "operand")
    new = canonical_shape(sizes, "broadcast", "sizes")
    if not new and isinstance(x, ArrayClass):
        return placed("lax.broadcast", x, out_sharding)
    shape = (*new, *shape_of(x))
    dims = tuple(range(len(new), len(shape)))
    wanted = asked_division("lax.broadcast", out_sharding, shape)
    made = structural.broadcast_in_dim_p.bind(
        x, shape=shape, broadcast_dimensions=dims, sharding=wanted
    )
    return placed("lax.broadcast", made, out_sharding)


def broadcast_in_dim(
    operand: ArrayLike,
    shape: ShapeLike,
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Repeat an array along new dimensions and along its dimensions of size 1.

    Args:
        operand: an array or scalar.
        shape: shape of the result.
        broadcast_dimensions: for each dimension of `operand`, the dimension of the result that it
            becomes; all distinct. If they do not increase, the operand is transposed.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape.

    Raises:
        TypeError: `operand` cannot be broadcast to that shape in that way.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.broadcast_in_dim(np.arange(2), (2, 3), (0,)).tolist()
        [[0, 0, 0], [1, 1, 1]]
    """
    x = as_operand(operand, "lax.broadcast_in_dim", "operand")
    sizes = canonical_shape(shape, "broadcast_in_dim")
    dims = integers(broadcast_dimensions, "broadcast_in_dim", "broadcast_dimensions")
    if sizes == shape_of(x) and dims == tuple(range(len(sizes))) and isinstance(x, ArrayClass):
        return placed("lax.broadcast_in_dim", x, out_sharding)
    if len(set(dims)) == len(dims) == len(shape_of(x)) and list(dims) != sorted(dims):
        x = transpose(x, sorted(range(len(dims)), key=dims.__getitem__))
        dims = tuple(sorted(dims))
    wanted = asked_division("lax.broadcast_in_dim", out_sharding, sizes)
    made = structural.broadcast_in_dim_p.bind(
        x, shape=sizes, broadcast_dimensions=dims, sharding=wanted
    )
    return placed("lax.broadcast_in_dim", made, out_sharding)


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Broadcast an array to the shape of another, with trailing dimensions aligned.

    Args:
        arr: an array or scalar.
        like_arr: the array that provides the shape.

    Returns:
        An array of the shape of `like_arr`.

    Raises:
        TypeError: `arr` cannot be broadcast to that shape.
        ValueError: `like_arr` has fewer dimensions than `arr`.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.broadcast_like(np.ones(3), np.ones((2, 3))).shape
        (2, 3)
    """
    x = as_operand(arr, "lax.broadcast_like", "arr")
    shape = shape_of(as_operand(like_arr, "lax.broadcast_like", "like_arr"))
    rank = len(shape_of(x))
    if rank > len(shape):
        raise ValueError(
            f"lax.broadcast_like: an array of shape {shape_of(x)} does not go to the shape "
            f"{shape}, which has fewer dimensions"
        )
    return broadcast_in_dim(x, shape, range(len(shape) - rank, len(shape)))


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Add leading dimensions of size 1 until there are `rank` of them.

    Args:
        x: an array or scalar.
        rank: the required number of dimensions; an array with at least as many is returned
            unchanged.

    Returns:
        An array.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.broadcast_to_rank(np.ones(3), 2).shape
        (1, 3)
    """
    x = as_operand(x, "lax.broadcast_to_rank")
    rank = integer(rank, "broadcast_to_rank", "rank")
    have = len(shape_of(x))
    if have >= rank and isinstance(x, ArrayClass):
        return x
    return add_dimensions(x, tuple(range(max(rank - have, 0))))


def broadcast_shapes(*shapes: ShapeLike) -> Shape:
    """The common shape to which arrays of these shapes broadcast, as in NumPy.

    Args:
        *shapes: shapes; trailing dimensions are aligned, and size 1 is compatible with any size.

    Returns:
        A shape.

    Raises:
        ValueError: the shapes are incompatible.

    Example:
        >>> from dovetail import lax
        >>> lax.broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
    valid = [canonical_shape(s, "broadcast_shapes", "each shape") for s in shapes]
    rank = max(map(len, valid), default=0)
    out = []
    for sizes in zip(*[(1,) * (rank - len(s)) + s for s in valid], strict=True):
        size = next((n for n in sizes if n != 1), 1)
        if any(n not in (1, size) for n in sizes):
            raise ValueError(
                "Incompatible shapes for broadcasting, in lax.broadcast_shapes: "
                f"{', '.join(map(str, valid))}; aligned at the last dimension, sizes must be equal "
                "or one"
            )
        out.append(size)
    return tuple(out)


def shape_as_value(shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """A shape as an array of integers.

    Args:
        shape: a sequence of integers.

    Returns:
        A NumPy array of int32: like shapes, it is known at trace time.

    Raises:
        TypeError: `shape` is not a sequence of integers.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> print(lax.shape_as_value(np.ones((2, 3)).shape))
        [2 3]
    """
    sizes = integers(shape, "shape_as_value", "shape")
    for size in sizes:
        dtypes.check_fits(size, np.dtype(np.int32), "shape_as_value")
    return np.array(sizes, np.int32)


def reshape(
    operand: ArrayLike,
    new_sizes: ShapeLike,
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """The same elements in another shape, in row-major order.

    Args:
        operand: an array or scalar.
        new_sizes: the new shape, with as many elements. Unlike in `dovetail.numpy.reshape`, no size
            is inferred.
        dimensions: a permutation of the dimensions of `operand`, in which its elements are read;
            None for their present order.
        out_sharding: how the result is divided over the `Explicit` axes of a mesh: a
            `PartitionSpec` over the current mesh or a `NamedSharding`; as follows from the operand
            if None.

    Returns:
        An array of shape `new_sizes`.

    Raises:
        TypeError: the numbers of elements differ, or `new_sizes` is not a shape.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.reshape(np.arange(4), (2, 2)).tolist()
        [[0, 1], [2, 3]]
    """
    x = as_operand(operand, "lax.reshape", "operand")
    if hasattr(new_sizes, "__index__") and not hasattr(new_sizes, "__len__"):
        new_sizes = (new_sizes,)
    sizes = integers(new_sizes, "reshape", "new_sizes")
    shape = shape_of(x)
    if any(n < 0 for n in sizes):
        raise ShapeError(
            f"lax.reshape: new_sizes must not be negative, got {sizes} for an operand of shape "
            f"{shape}; dovetail.numpy.reshape infers one size given as -1"
        )
    if dimensions is not None:
        order = integers(dimensions, "reshape", "dimensions")
        if sorted(order) != list(range(len(shape))):
            raise TypeError(
                f"lax.reshape: dimensions {order} must be a permutation of the dimensions of the "
                f"operand of shape {shape}"
            )
        x = structural.transpose(x, order)
    elif sizes == shape and isinstance(x, ArrayClass) and out_sharding is None:
        return x
    if prod(sizes) != prod(shape):
        raise ShapeError(
            f"lax.reshape: an operand of shape {shape} has {prod(shape)} elements, new_sizes "
            f"{sizes} has {prod(sizes)}"
        )
    wanted = asked_division("lax.reshape", out_sharding, sizes)
    made = structural.reshape_p.bind(x, dimensions=None, new_sizes=sizes, sharding=wanted)
    return placed("lax.reshape", made, out_sharding)


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Permute the dimensions of an array.

    Args:
        operand: an array.
        permutation: for each dimension of the result, the dimension of `operand` that it comes
            from. Unlike in `dovetail.numpy.transpose`, it is required, and not negative.

    Returns:
        An array.

    Raises:
        TypeError: `permutation` is not a permutation of the dimensions.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.transpose(np.ones((2, 3)), (1, 0)).shape
        (3, 2)
    """
    x = as_operand(operand, "lax.transpose", "operand")
    order = integers(permutation, "transpose", "permutation")
    if order == tuple(range(len(shape_of(x)))) and isinstance(x, ArrayClass):
        return x
    return structural.transpose_p.bind(x, permutation=order)


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Remove dimensions of size 1.

    Args:
        array: an array.
        dimensions: the dimensions to remove; negative ones count from the end.

    Returns:
        An array.

    Raises:
        ValueError: a dimension is out of bounds, repeated, or not of size 1.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.squeeze(np.ones((1, 3)), (0,)).shape
        (3,)
    """
    x = as_operand(array, "lax.squeeze", "array")
    dims = canonical_dimensions(dimensions, len(shape_of(x)), "squeeze")
    if not dims and isinstance(x, ArrayClass):
        return x
    return squeeze_p.bind(x, dimensions=dims)


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Add dimensions of size 1.

    Args:
        array: an array or scalar.
        dimensions: the positions of the new dimensions in the result; negative ones count from its
            end.

    Returns:
        An array.

    Raises:
        ValueError: a position is out of bounds or repeated.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.expand_dims(np.ones(3), (0,)).shape
        (1, 3)
    """
    x = as_operand(array, "lax.expand_dims", "array")
    new = integers(dimensions, "expand_dims", "dimensions")
    dims = canonical_dimensions(new, len(shape_of(x)) + len(new), "expand_dims")
    if not dims and isinstance(x, ArrayClass):
        return x
    return add_dimensions(x, tuple(sorted(dims)))


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverse the order of the elements along some dimensions.

    Args:
        operand: an array.
        dimensions: the dimensions; negative ones count from the end.

    Returns:
        An array of the same shape.

    Raises:
        ValueError: a dimension is out of bounds or repeated.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.rev(np.arange(3), (0,)).tolist()
        [2, 1, 0]
    """
    x = as_operand(operand, "lax.rev", "operand")
    return rev_p.bind(x, dimensions=canonical_dimensions(dimensions, len(shape_of(x)), "rev"))


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merge adjacent dimensions into one.

    Args:
        operand: an array.
        start_dimension: the first of them; negative ones count from the end.
        stop_dimension: one past the last of them; the rank by default.

    Returns:
        An array with the same elements in the same order.

    Raises:
        ValueError: `stop_dimension` comes before `start_dimension`.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.collapse(np.ones((2, 3, 4)), 0, 2).shape
        (6, 4)
    """
    x = as_operand(operand, "lax.collapse", "operand")
    shape = shape_of(x)
    first = integer(start_dimension, "collapse", "start_dimension")
    last = (
        len(shape)
        if stop_dimension is None
        else integer(stop_dimension, "collapse", "stop_dimension")
    )
    start, stop, _ = slice(first, last).indices(len(shape))
    if stop < start:
        raise ValueError(
            f"lax.collapse: of an operand of shape {shape} the dimensions from {start_dimension} "
            f"to before {stop_dimension} are none"
        )
    return reshape(x, (*shape[:start], prod(shape[start:stop]), *shape[stop:]))


def tile(operand: ArrayLike, reps: ShapeLike) -> Array:
    """Repeat an array side by side along each of its dimensions.

    Args:
        operand: an array.
        reps: how often, for each dimension. `dovetail.numpy.tile` also takes shorter and longer
            ones.

    Returns:
        An array of shape ``operand.shape * reps``.

    Raises:
        TypeError: `reps` is not a sequence of integers.
        ValueError: `reps` does not have one non-negative number for each dimension.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.tile(np.arange(2), (2,)).tolist()
        [0, 1, 0, 1]
    """
    x = as_operand(operand, "lax.tile", "operand")
    return tile_p.bind(x, reps=integers(reps, "tile", "reps"))
