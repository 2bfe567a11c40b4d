"""Shapes of arrays, and rearranging their elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np
from dovetail import lax
from dovetail.errors import NonArrayArgumentError, ShapeError
from dovetail.extend.arguments import (
    array_like,
    broadcast_result,
    canonical_axes,
    canonical_axis,
    canonical_shape,
    integer,
    placed,
    shape_of_argument,
    value,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.strictness import strictness
from dovetail.extend.unchecked import broadcast_in_dim
from dovetail.lax import reshape_p, rev_p, squeeze_p, transpose_p
from dovetail.numpy.compiled import compiled_with
from dovetail.typing import Array, ArrayLike, NestedArrayLike, ShapeLike, Sharding

Shape = tuple[int, ...]


def operand(x: Any, function: str, argument: str = "a") -> Any:
    """A checked argument as a value that has a shape: array, tracer or NumPy array."""
    return value(array_like(x, function, argument))


def _shape_of(function: str, x: Any) -> Shape:
    """The shape of a value, or of a nested sequence of values."""
    own = getattr(x, "shape", None)
    if isinstance(own, tuple):
        return own
    if isinstance(x, (list, tuple)):
        inner = {_shape_of(function, element) for element in x}
        if len(inner) > 1:
            raise ValueError(
                f"{function}: the elements of a sequence must have equal shapes, got "
                f"{' and '.join(map(str, sorted(inner)))}"
            )
        return (len(x), *(next(iter(inner)) if inner else ()))
    try:
        return shape_of_argument(x, function, "a")
    except NonArrayArgumentError:
        return ()


def ndim(a: NestedArrayLike) -> int:
    """The number of dimensions of an array.

    Args:
        a: array, scalar, or nested sequence of these; anything else counts as a scalar.

    Raises:
        ValueError: the elements of a sequence have different shapes.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.ndim(jnp.ones((2, 3)))
        2
    """
    return len(_shape_of("ndim", a))


def shape(a: NestedArrayLike) -> Shape:
    """The shape of an array.

    Args:
        a: array, scalar, or nested sequence of these; anything else counts as a scalar.

    Raises:
        ValueError: the elements of a sequence have different shapes.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.shape(jnp.ones((2, 3))), jnp.shape(1.5)
        ((2, 3), ())
    """
    return _shape_of("shape", a)


def size(a: NestedArrayLike, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements of an array, or along some of its dimensions.

    Args:
        a: array, scalar, or nested sequence of these; anything else counts as a scalar.
        axis: dimension or dimensions; all if None.

    Raises:
        ValueError: the elements of a sequence have different shapes, or an axis is out of bounds.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.size(jnp.ones((2, 3))), jnp.size(jnp.ones((2, 3)), axis=1)
        (6, 3)
    """
    sizes = _shape_of("size", a)
    return math.prod(sizes[d] for d in canonical_axes("size", axis, len(sizes)))


# ------------------------------------------------------------------------- elements stay in order


def reshaped(x: Any, sizes: Shape) -> Any:
    """A checked operand in another shape."""
    if aval_of(x).shape == sizes:
        return x
    return reshape_p.bind(x, new_sizes=sizes, dimensions=None, sharding=None)


def complete_shape(function: str, shape: Any, count: int, have: Shape) -> Shape:
    """A new shape for `count` elements, with a size of -1 inferred.

    Raises:
        TypeError: the numbers of elements differ.
    """
    if type(shape) is int:
        shape = (shape,)
    elif not isinstance(shape, (tuple, list)):
        shape = tuple(shape) if getattr(shape, "ndim", 0) == 1 else (shape,)
    sizes = [n if type(n) is int else integer(function, "shape", n) for n in shape]
    unknown = [i for i, n in enumerate(sizes) if n == -1]
    if len(unknown) > 1:
        raise ShapeError(f"{function}: only one size can be -1, got the shape {tuple(sizes)}")
    if unknown:
        product = math.prod(n for n in sizes if n != -1)
        if product == 0 or count % product:
            raise ShapeError(
                f"{function}: an array of shape {have}, of size {count}, does not go into shape "
                f"{tuple(sizes)}: the known sizes multiply to {product}, which does not divide "
                f"{count}"
            )
        sizes[unknown[0]] = count // product
    if any(n < 0 for n in sizes):
        raise ShapeError(f"{function}: sizes must not be negative, got the shape {tuple(sizes)}")
    if math.prod(sizes) != count:
        raise ShapeError(
            f"{function}: cannot reshape an array of shape {have}, of size {count}, into shape "
            f"{tuple(sizes)}, of size {math.prod(sizes)}; one may be -1, and stands for the rest"
        )
    return tuple(sizes)


def reshape(
    a: ArrayLike,
    shape: ShapeLike,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Change the shape of an array, keeping its elements in order.

    Args:
        a: array or scalar.
        shape: a size, or a sequence of sizes; one may be -1 and is inferred.
        order: "C" for row-major order of elements, "F" for column-major order.
        copy: True to give the result its own memory; False raises only where a view would be
            needed.
        out_sharding: a `PartitionSpec` over the current mesh, or a `NamedSharding`, for the result.

    Returns:
        An array of that shape. It is never a view: arrays are immutable.

    Raises:
        TypeError: the shape has a different number of elements.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.reshape(jnp.arange(6), (2, -1)))
        [[0 1 2]
         [3 4 5]]
    """
    x = operand(a, "reshape")
    x_shape = aval_of(x).shape
    sizes = complete_shape("reshape", shape, math.prod(x_shape), x_shape)
    if order not in ("C", "A", "F"):
        raise ValueError(f"reshape: order must be 'C' or 'F', got {order!r}")
    if isinstance(a, np.ndarray) and not strictness().results_are_arrays:
        return a.reshape(sizes, order=order)  # type: ignore[call-overload]
    if order == "F":
        return placed("reshape", _transposed(reshaped(_transposed(x), sizes[::-1])), out_sharding)
    if out_sharding is not None:
        return lax.reshape(x, sizes, out_sharding=out_sharding)
    return reshaped(x, sizes)


def _transposed(x: Any) -> Any:
    return permuted(x, tuple(range(aval_of(x).ndim))[::-1])


def permuted(x: Any, permutation: Shape) -> Any:
    """A checked operand with its dimensions permuted."""
    if permutation == tuple(range(len(permutation))):
        return x
    return transpose_p.bind(x, permutation=permutation)


@compiled_with("order", "out_sharding")
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Sharding | None = None) -> Array:
    """Flatten an array to one dimension.

    Args:
        a: array or scalar.
        order: "C" for row-major order, "F" for column-major order.
        out_sharding: a `PartitionSpec` over the current mesh, or a `NamedSharding`, for the result.

    Returns:
        An array of rank 1.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.ravel(jnp.array([[1, 2], [3, 4]]), order="F"))
        [1 3 2 4]
    """
    if order not in ("C", "F", "A", "K"):
        raise ValueError(f"ravel: order must be 'C', 'F', 'A' or 'K', got {order!r}")
    sizes = (-1,) if size(a) else (0,)
    return reshape(a, sizes, "C" if order in ("K", "A") else order, out_sharding=out_sharding)


def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """Insert dimensions of size one.

    Args:
        a: array or scalar.
        axis: position of the new dimension in the result, or several positions.

    Returns:
        An array with that many more dimensions.

    Raises:
        ValueError: a position is out of bounds or named twice.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.expand_dims(jnp.ones(3), (0, -1)).shape
        (1, 3, 1)
    """
    x = operand(a, "expand_dims")
    positions = tuple(axis) if isinstance(axis, Sequence) else (axis,)
    rank = aval_of(x).ndim + len(positions)
    new = set(canonical_axes("expand_dims", positions, rank))
    old_positions = tuple(i for i in range(rank) if i not in new)
    sizes = iter(aval_of(x).shape)
    result = tuple(1 if i in new else next(sizes) for i in range(rank))
    return broadcast_in_dim(x, result, old_positions)


def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """Remove dimensions of size one from an array.

    Args:
        a: array or scalar.
        axis: dimension or dimensions to remove; all of size one if None.

    Returns:
        An array with that many fewer dimensions.

    Raises:
        ValueError: the size of a dimension to remove is not one.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.squeeze(jnp.ones((1, 3, 1))).shape, jnp.squeeze(jnp.ones((1, 3, 1)), 0).shape
        ((3,), (3, 1))
    """
    x = operand(a, "squeeze")
    dims = aval_of(x).shape
    if axis is None:
        axes = tuple(i for i, n in enumerate(dims) if n == 1)
    else:
        axes = tuple(sorted(canonical_axes("squeeze", axis, len(dims))))
        wrong = [d for d in axes if dims[d] != 1]
        if wrong:
            raise ValueError(
                f"squeeze: axis {wrong[0]} of an array of shape {dims} has size {dims[wrong[0]]}; "
                "only dimensions of size one can be dropped"
            )
    return squeeze_p.bind(x, dimensions=axes) if axes else x


def broadcast_to(
    array: ArrayLike, shape: ShapeLike, *, out_sharding: Sharding | None = None
) -> Array:
    """Broadcast an array to a shape.

    Args:
        array: array or scalar.
        shape: a size, or a sequence of sizes.
        out_sharding: a `PartitionSpec` over the current mesh, or a `NamedSharding`, for the result.

    Returns:
        An array of that shape.

    Raises:
        ValueError: the array does not broadcast to it.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.broadcast_to(jnp.arange(2), (2, 2)))
        [[0 1]
         [0 1]]
    """
    if out_sharding is not None:
        return placed("broadcast_to", broadcast_to(array, shape), out_sharding)
    x: Any = array_like(array, "broadcast_to", "array")
    sizes = canonical_shape("broadcast_to", shape)
    x_shape = aval_of(x).shape
    missing = len(sizes) - len(x_shape)
    if missing < 0 or any(n not in (1, m) for n, m in zip(x_shape, sizes[missing:], strict=True)):
        raise ValueError(
            f"broadcast_to: an array of shape {x_shape} cannot be broadcast to shape {sizes}; from "
            "the last dimension on, its sizes must be 1 or those of the new shape"
        )
    if x_shape == sizes:
        return value(x)
    return broadcast_in_dim(x, sizes, tuple(range(missing, len(sizes))))


def broadcast_shapes(*shapes: ShapeLike) -> Shape:
    """The common shape to which shapes broadcast.

    Args:
        *shapes: sizes, or sequences of sizes.

    Raises:
        ValueError: they do not broadcast.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
    if not shapes:
        return ()
    checked = [canonical_shape("broadcast_shapes", s, "shapes") for s in shapes]
    try:
        return broadcast_result("broadcast_shapes", checked, explicit=True)
    except TypeError as error:
        raise ValueError(str(error)) from None


def broadcast_arrays(*args: ArrayLike) -> tuple[Array, ...]:
    """Broadcast arrays to their common shape.

    Args:
        *args: arrays or scalars.

    Returns:
        A tuple of as many arrays, all of the same shape.

    Raises:
        ValueError: they do not broadcast.

    Example:
        >>> import dovetail.numpy as jnp
        >>> x, y = jnp.broadcast_arrays(jnp.ones((2, 1)), jnp.ones(3))
        >>> x.shape, y.shape
        ((2, 3), (2, 3))
    """
    values = [array_like(a, "broadcast_arrays", f"args[{i}]") for i, a in enumerate(args)]
    common = broadcast_shapes(*(aval_of(v).shape for v in values))
    return tuple(broadcast_to(v, common) for v in values)


def _at_least(function: str, arrays: tuple[Any, ...], rank: int) -> Any:
    results = []
    for i, a in enumerate(arrays):
        x = operand(a, function, f"arys[{i}]")
        x_shape = aval_of(x).shape
        if len(x_shape) < rank:
            if rank == 3 and x_shape:
                sizes = (1, *x_shape, 1)[-3:] if len(x_shape) == 1 else (*x_shape, 1)
            else:
                sizes = (1,) * (rank - len(x_shape)) + x_shape
            x = reshaped(x, sizes)
        results.append(x)
    return results[0] if len(results) == 1 else results


@overload
def atleast_1d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...
@overload
def atleast_1d(*arys: ArrayLike) -> Array | list[Array]: ...
def atleast_1d(*arys: ArrayLike) -> Array | list[Array]:
    """Convert inputs to arrays with at least one dimension.

    Args:
        *arys: arrays or scalars.

    Returns:
        One array, or a list of arrays if there are several inputs.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.atleast_1d(2.).shape
        (1,)
    """
    return _at_least("atleast_1d", arys, 1)


@overload
def atleast_2d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...
@overload
def atleast_2d(*arys: ArrayLike) -> Array | list[Array]: ...
def atleast_2d(*arys: ArrayLike) -> Array | list[Array]:
    """Convert inputs to arrays with at least two dimensions; new ones come first.

    Args:
        *arys: arrays or scalars.

    Returns:
        One array, or a list of arrays if there are several inputs.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.atleast_2d(jnp.ones(3)).shape
        (1, 3)
    """
    return _at_least("atleast_2d", arys, 2)


@overload
def atleast_3d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...
@overload
def atleast_3d(*arys: ArrayLike) -> Array | list[Array]: ...
def atleast_3d(*arys: ArrayLike) -> Array | list[Array]:
    """Arrays of rank 3 or more: ``(n,)`` becomes ``(1, n, 1)``, ``(m, n)`` becomes ``(m, n, 1)``.

    Args:
        *arys: arrays or scalars.

    Returns:
        One array, or a list of arrays if there are several inputs.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.atleast_3d(jnp.ones((2, 3))).shape
        (2, 3, 1)
    """
    return _at_least("atleast_3d", arys, 3)


# ---------------------------------------------------------------------------- dimensions move


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Permute the dimensions of an array.

    Args:
        a: array or scalar.
        axes: for each dimension of the result, the dimension of `a` that it is; reversed if None.

    Returns:
        An array.

    Raises:
        ValueError: `axes` is not a permutation of the dimensions.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.transpose(jnp.array([[1, 2], [3, 4]])))
        [[1 3]
         [2 4]]
    """
    x = operand(a, "transpose")
    rank = aval_of(x).ndim
    if axes is None:
        return _transposed(x)
    permutation: Any = axes
    if not isinstance(axes, tuple | list) or len(axes) == rank:
        permutation = canonical_axes("transpose", axes, rank, "axes")
    if len(permutation) != rank:
        raise ShapeError(f"transpose: axes {axes} must name each of the {rank} dimensions once")
    return permuted(x, permutation)


def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """The array API standard's name for `transpose`.

    Args:
        a: array.
        axes: for each dimension of the result, the dimension of `a` that it is.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.permute_dims(jnp.ones((2, 3, 4)), (2, 0, 1)).shape
        (4, 2, 3)
    """
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Transpose matrices: exchange the last two dimensions of an array.

    Args:
        x: array of rank 2 or more.

    Raises:
        ValueError: it has fewer dimensions.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.matrix_transpose(jnp.ones((5, 2, 3))).shape
        (5, 3, 2)
    """
    if (rank := aval_of(operand(x, "matrix_transpose", "x")).ndim) < 2:
        raise ValueError(f"matrix_transpose needs an array of rank 2 or more, got rank {rank}")
    return swapaxes(x, -1, -2)


@compiled_with("axis1", "axis2")
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Exchange two dimensions of an array.

    Args:
        a: array.
        axis1: one dimension.
        axis2: the other dimension.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, -1).shape
        (4, 3, 2)
    """
    x = operand(a, "swapaxes")
    rank = aval_of(x).ndim
    order = list(range(rank))
    first = canonical_axis("swapaxes", axis1, rank, "axis1")
    second = canonical_axis("swapaxes", axis2, rank, "axis2")
    order[first], order[second] = second, first
    return permuted(x, tuple(order))


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Move dimensions of an array to new positions; the others keep their order.

    Args:
        a: array.
        source: dimension or dimensions to move.
        destination: new position of each.

    Raises:
        ValueError: the numbers of sources and destinations differ, or one is named twice.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    x = operand(a, "moveaxis")
    rank = aval_of(x).ndim
    for argument, axes in (("source", source), ("destination", destination)):
        if axes is None:
            raise TypeError(f"moveaxis requires {argument} to be one or several integers, got None")
    sources = canonical_axes("moveaxis", source, rank, "source")
    destinations = canonical_axes("moveaxis", destination, rank, "destination")
    if len(sources) != len(destinations):
        raise ValueError(
            f"moveaxis: source {source} and destination {destination} must name equally many "
            "dimensions"
        )
    order = [i for i in range(rank) if i not in sources]
    for there, here in sorted(zip(destinations, sources, strict=True)):
        order.insert(there, here)
    return permuted(x, tuple(order))


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Move one dimension of an array in front of another; `moveaxis` is easier to read.

    Args:
        a: array.
        axis: the dimension to move.
        start: the dimension to move it in front of; the rank of `a` for the end.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
        (4, 2, 3)
    """
    rank = aval_of(operand(a, "rollaxis")).ndim
    here = canonical_axis("rollaxis", axis, rank)
    start = integer("rollaxis", "start", start)
    if not -rank <= start <= rank:
        raise ValueError(f"rollaxis: start {start} is out of bounds for an array of rank {rank}")
    start_axis = start + rank if start < 0 else start
    return moveaxis(a, here, start_axis - 1 if here < start_axis else start_axis)


# ------------------------------------------------------------------------------ elements move


@compiled_with("axis")
def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """Reverse the order of elements along dimensions.

    Args:
        m: array or scalar.
        axis: dimension or dimensions; all if None.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.flip(jnp.arange(3)))
        [2 1 0]
    """
    x = operand(m, "flip", "m")
    axes = canonical_axes("flip", axis, aval_of(x).ndim)
    return rev_p.bind(x, dimensions=axes) if axes else x


def fliplr(m: ArrayLike) -> Array:
    """Reverse the order of the columns of an array.

    Args:
        m: array of rank 2 or more.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.fliplr(jnp.array([[1, 2], [3, 4]])))
        [[2 1]
         [4 3]]
    """
    if (rank := aval_of(operand(m, "fliplr", "m")).ndim) < 2:
        raise ValueError(f"fliplr needs an array of rank 2 or more, got rank {rank}")
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """Reverse the order of the rows of an array.

    Args:
        m: array of rank 1 or more.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.flipud(jnp.array([[1, 2], [3, 4]])))
        [[3 4]
         [1 2]]
    """
    if aval_of(operand(m, "flipud", "m")).ndim < 1:
        raise ValueError("flipud needs an array of rank 1 or more, got a scalar")
    return flip(m, 0)


@compiled_with("k", "axes")
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Rotate an array by multiples of 90 degrees in the plane of two dimensions.

    Args:
        m: array of rank 2 or more.
        k: number of rotations, from the first of `axes` towards the second.
        axes: two different dimensions.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.rot90(jnp.array([[1, 2], [3, 4]])))
        [[2 4]
         [1 3]]
    """
    x = operand(m, "rot90", "m")
    plane = () if axes is None else canonical_axes("rot90", axes, aval_of(x).ndim, "axes")
    if len(plane) != 2:
        raise ValueError(f"rot90: axes must be two different dimensions, got {axes}")
    turns = integer("rot90", "k", k) % 4
    if turns == 0:
        return x
    if turns == 2:
        return rev_p.bind(x, dimensions=plane)
    if turns == 1:
        return swapaxes(rev_p.bind(x, dimensions=(plane[1],)), *plane)
    return rev_p.bind(swapaxes(x, *plane), dimensions=(plane[1],))
