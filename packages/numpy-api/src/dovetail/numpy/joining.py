"""Joining, splitting and repeating arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    array_sequence,
    canonical_axis,
    canonical_shape,
    convert,
    counted,
    integer,
    literal,
    requested_dtype,
    require_kind,
    same_dtype,
    value,
    weak_of,
)
from dovetail.extend.avals import Tracer, aval_of
from dovetail.extend.checks import require_host_memory
from dovetail.extend.unchecked import slice_dimension
from dovetail.lax import concatenate_p, split_p, stack_p, tile_p, unstack_p
from dovetail.numpy.compiled import compiled, compiled_with, divided_program
from dovetail.numpy.gathering import take
from dovetail.numpy.shapes import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_to,
    operand,
    reshaped,
)
from dovetail.typing import Array, ArrayLike, DTypeLike, NestedArrayLike, ShapeLike, Sharding

Shape = tuple[int, ...]


def _joined(function: str, arrays: Any, dtype: Any) -> list[Any]:
    """Checked arrays of one dtype."""
    values = array_sequence(arrays, function)
    if not values:
        raise ValueError(f"{function} needs at least one array")
    target = requested_dtype(function, dtype)
    if target is None:
        return [value(v) for v in same_dtype(values)]
    return [value(convert(v, target)) for v in values]


def concatenate(
    arrays: Sequence[ArrayLike] | ArrayLike, axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """Join arrays along an existing dimension.

    Args:
        arrays: sequence of arrays whose shapes differ only in that dimension; or an array, whose
            slices along the first dimension are joined.
        axis: the dimension; None to flatten the arrays first.
        dtype: dtype of the result; the common one if None.

    Returns:
        An array.

    Raises:
        ValueError: there are no arrays.
        TypeError: the ranks or the other sizes differ.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.concatenate([jnp.arange(3), jnp.array([7., 8.])]))
        [0. 1. 2. 7. 8.]
    """
    _check_one_sequence("concatenate", axis)
    if isinstance(arrays, (Array, np.ndarray)) and arrays.ndim > 1 and arrays.shape[0]:
        x = operand(arrays, "concatenate", "arrays")
        # Over explicit axes of a mesh a dimension cannot be merged with one that is divided.
        if aval_of(x).division is None:
            return _slices_joined(x, axis, dtype)
    values = _joined("concatenate", arrays, dtype)
    shapes = [aval_of(v).shape for v in values]
    if axis is None:
        values = [reshaped(v, (math.prod(s),)) for v, s in zip(values, shapes, strict=True)]
        return _concatenated(values, 0)
    rank = len(shapes[0])
    if not rank or any(len(s) != rank for s in shapes):
        raise ShapeError(
            "concatenate needs arrays of equal rank, of one dimension at least, got shapes "
            f"{', '.join(map(str, shapes))}; stack joins along a new dimension"
        )
    dimension = canonical_axis("concatenate", axis, rank)
    for d in range(rank):
        if d != dimension and any(s[d] != shapes[0][d] for s in shapes):
            raise TypeError(
                f"concatenate along axis {dimension} needs equal sizes in all others, got shapes "
                f"{', '.join(map(str, shapes))}; choose another axis, or slice or pad them first"
            )
    return _concatenated(values, dimension)


def _check_one_sequence(name: str, following: Any) -> None:
    """Refuse arrays as arguments of their own: the second is taken for another argument."""
    if isinstance(following, (Array, np.ndarray, tuple, list)):
        raise TypeError(f"{name} takes the arrays as one sequence: write {name}([a, b])")


def _slices_joined(x: Any, axis: int | None, dtype: Any) -> Any:
    """The slices of an array along its first dimension joined: a reshape, whatever their number."""
    target = requested_dtype("concatenate", dtype)
    x = x if target is None else value(convert(x, target))
    count, *sizes = aval_of(x).shape
    if axis is None:
        return reshaped(x, (count * math.prod(sizes),))
    dimension = canonical_axis("concatenate", axis, len(sizes))
    if dimension:
        x = lax.transpose(x, (*range(1, dimension + 1), 0, *range(dimension + 1, len(sizes) + 1)))
    sizes[dimension] *= count
    return reshaped(x, tuple(sizes))


def _concatenated(values: Sequence[Any], dimension: int) -> Any:
    return values[0] if len(values) == 1 else concatenate_p.bind(*values, dimension=dimension)


def concat(arrays: Sequence[ArrayLike] | ArrayLike, /, *, axis: int | None = 0) -> Array:
    """The array API standard's name for `concatenate`.

    Args:
        arrays: sequence of arrays.
        axis: the dimension; None to flatten the arrays first.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.concat([jnp.arange(2), jnp.arange(3)]))
        [0 1 0 1 2]
    """
    return concatenate(arrays, axis)


@compiled_with("axis")
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Append values to an array. Each call makes a copy.

    Args:
        arr: array.
        values: array of the same rank.
        axis: the dimension to join along; None to flatten both first.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.append(jnp.arange(3), 7))
        [0 1 2 7]
    """
    parts = [operand(arr, "append", "arr"), operand(values, "append", "values")]
    return concatenate(parts, axis)


def stack(
    arrays: Sequence[ArrayLike] | ArrayLike,
    axis: int = 0,
    out: None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Join arrays of the same shape along a new dimension.

    Args:
        arrays: sequence of arrays, or an array.
        axis: position of the new dimension in the result.
        out: not supported, since arrays are immutable.
        dtype: dtype of the result; the common one if None.

    Returns:
        An array with one more dimension.

    Raises:
        ValueError: the shapes differ, or there are no arrays.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.stack([jnp.zeros(2), jnp.ones(2)], axis=1))
        [[0. 1.]
         [0. 1.]]
    """
    if out is not None:
        raise NotImplementedError("stack does not take out=: arrays are immutable")
    _check_one_sequence("stack", axis)
    values = _joined("stack", arrays, dtype)
    shapes = {aval_of(v).shape for v in values}
    if len(shapes) > 1:
        raise ValueError(
            f"stack needs arrays of one shape, got {', '.join(map(str, sorted(shapes)))}; slice or "
            "pad them first, or join them along an axis that they have with concatenate"
        )
    return stack_p.bind(*values, axis=canonical_axis("stack", axis, aval_of(values[0]).ndim + 1))


def _each(function: str, at_least: Callable[..., Any], tup: Any) -> list[Any]:
    return [at_least(x) for x in array_sequence(tup, function, "tup")]


@compiled_with("dtype")
def vstack(tup: Sequence[ArrayLike] | ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """Stack arrays vertically, along the first dimension; vectors become rows.

    Args:
        tup: sequence of arrays.
        dtype: dtype of the result; the common one if None.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.vstack([jnp.zeros(2), jnp.ones(2)]))
        [[0. 0.]
         [1. 1.]]
    """
    _check_one_sequence("vstack", dtype)
    return concatenate(_each("vstack", atleast_2d, tup), 0, dtype)


@compiled_with("dtype")
def hstack(tup: Sequence[ArrayLike] | ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """Stack arrays horizontally, along the second dimension (vectors: the only one).

    Args:
        tup: sequence of arrays.
        dtype: dtype of the result; the common one if None.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.hstack([jnp.zeros(2), jnp.ones(2)]))
        [0. 0. 1. 1.]
    """
    _check_one_sequence("hstack", dtype)
    values = _each("hstack", atleast_1d, tup)
    if not values:
        raise ValueError("hstack needs at least one array")
    return concatenate(values, 0 if aval_of(values[0]).ndim == 1 else 1, dtype)


@compiled_with("dtype")
def dstack(tup: Sequence[ArrayLike] | ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """Stack arrays in depth, along the third dimension.

    Args:
        tup: sequence of arrays.
        dtype: dtype of the result; the common one if None.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.dstack([jnp.zeros((2, 3)), jnp.ones((2, 3))]).shape
        (2, 3, 2)
    """
    _check_one_sequence("dstack", dtype)
    return concatenate(_each("dstack", atleast_3d, tup), 2, dtype)


@compiled
def column_stack(tup: Sequence[ArrayLike] | ArrayLike) -> Array:
    """Stack vectors as the columns of a matrix; matrices are joined horizontally.

    Args:
        tup: sequence of arrays of rank 2 or less.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.column_stack([jnp.zeros(2), jnp.ones(2)]))
        [[0. 1.]
         [0. 1.]]
    """
    columns = []
    for x in array_sequence(tup, "column_stack", "tup"):
        array = value(x)
        rank = aval_of(array).ndim
        columns.append(reshaped(array, (aval_of(array).size, 1)) if rank < 2 else array)
    return concatenate(columns, 1)


# ---------------------------------------------------------------------------------- splitting


def block(arrays: NestedArrayLike) -> Array:
    """Assemble an array from nested lists of blocks.

    The innermost lists are joined along the last dimension, those around them along the one before,
    and so on. Blocks of lower rank get dimensions of size one in front.

    Args:
        arrays: an array or scalar, or a list of arrays, or of lists of equal depth.

    Returns:
        An array.

    Raises:
        TypeError: there is a tuple, or the shapes do not fit.
        ValueError: a list is empty, or the depths differ.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.block([[jnp.eye(2), jnp.zeros((2, 1))], [jnp.ones((1, 2)), 7]]))
        [[1. 0. 0.]
         [0. 1. 0.]
         [1. 1. 7.]]
    """
    depths: set[int] = set()
    rank = _block_rank(arrays, 0, depths)
    if len(depths) > 1:
        raise ValueError(
            f"block: all arrays must be inside equally many lists, got depths {sorted(depths)}"
        )
    return _block(arrays, max(rank, *depths))


def _block_rank(arrays: Any, depth: int, depths: set[int]) -> int:
    """The largest rank of the blocks; also records the nesting depth."""
    if isinstance(arrays, tuple):
        raise TypeError("block takes lists of arrays, no tuples; write list(arrays)")
    if not isinstance(arrays, list):
        depths.add(depth)
        return int(aval_of(array_like(arrays, "block", "arrays")).ndim)
    if not arrays:
        raise ValueError("block: a list of arrays must not be empty")
    return max(_block_rank(part, depth + 1, depths) for part in arrays)


@compiled_with("rank")
def _block(arrays: Any, rank: int) -> Any:
    if not isinstance(arrays, list):
        return operand(arrays, "block", "arrays")
    return _blocks(arrays, rank)[0]


def _blocks(arrays: Any, rank: int) -> tuple[Any, int]:
    """The blocks as one array, and the dimension along which to join it with others."""
    if not isinstance(arrays, list):
        x = operand(arrays, "block", "arrays")
        x_shape = aval_of(x).shape
        return reshaped(x, (1,) * (rank - len(x_shape)) + x_shape), rank - 1
    parts = [_blocks(part, rank) for part in arrays]
    dimension = parts[0][1]
    return concatenate([part for part, _ in parts], dimension), dimension - 1


def array_split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """Split an array along a dimension into parts whose sizes differ by at most one.

    Args:
        ary: array.
        indices_or_sections: number of parts, or the positions at which to cut.
        axis: the dimension.

    Returns:
        A list of arrays.

    Example:
        >>> import dovetail.numpy as jnp
        >>> [part.tolist() for part in jnp.array_split(jnp.arange(5), 2)]
        [[0, 1, 2], [3, 4]]
    """
    return _split("array_split", ary, indices_or_sections, axis)


def split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """Split an array along a dimension into parts of equal size.

    Args:
        ary: array.
        indices_or_sections: number of parts, or the positions at which to cut.
        axis: the dimension.

    Returns:
        A list of arrays.

    Raises:
        ValueError: the size is not divisible by the number of parts; `array_split` accepts any
            number.

    Example:
        >>> import dovetail.numpy as jnp
        >>> [part.tolist() for part in jnp.split(jnp.arange(5), [1, 3])]
        [[0], [1, 2], [3, 4]]
    """
    return _split("split", ary, indices_or_sections, axis)


#: Bytes of an equation's result, of an array and of what holds them, at the least.
_EACH_PART: Final = 1024


def _split(function: str, ary: Any, indices_or_sections: Any, axis: int) -> list[Any]:
    x = operand(ary, function, "ary")
    x_shape = aval_of(x).shape
    dimension = canonical_axis(function, axis, len(x_shape))
    size = x_shape[dimension]
    if isinstance(indices_or_sections, Sequence) and not isinstance(indices_or_sections, str):
        indices_or_sections = list(indices_or_sections)
    if not isinstance(indices_or_sections, (int, list)):
        array_like(indices_or_sections, function, "indices_or_sections")
    if isinstance(indices_or_sections, list) or np.ndim(indices_or_sections):
        cuts = [integer(function, "indices_or_sections", i) for i in indices_or_sections]
        bounds = [slice(i).indices(size)[1] for i in cuts]
        starts, stops = [0, *bounds], [*bounds, size]
        if any(b < a for a, b in zip(starts, stops, strict=True)):
            return [
                slice_dimension(x, a, max(a, b), dimension)
                for a, b in zip(starts, stops, strict=True)
            ]
        sizes = tuple(b - a for a, b in zip(starts, stops, strict=True))
    else:
        count = integer(function, "indices_or_sections", indices_or_sections)
        if count < 1:
            raise ValueError(f"{function}: the number of parts must be positive, got {count}")
        part, rest = divmod(size, count)
        if rest and function != "array_split":
            raise ValueError(
                f"{function}: {counted(size, 'element')} along axis {dimension} do not divide "
                f"into {count} equal parts; array_split takes any number of parts"
            )
        require_host_memory(_EACH_PART * count, f"{counted(count, 'part')} of {function}")
        sizes = (part + 1,) * rest + (part,) * (count - rest)
    if len(sizes) == 1:
        return [x]
    return list(split_p.bind(x, sizes=sizes, axis=dimension))


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """`split` along the second dimension, or the only one of a vector.

    Args:
        ary: array of rank 1 or more.
        indices_or_sections: number of parts, or the positions at which to cut.

    Example:
        >>> import dovetail.numpy as jnp
        >>> [part.shape for part in jnp.hsplit(jnp.ones((2, 4)), 2)]
        [(2, 2), (2, 2)]
    """
    x = operand(ary, "hsplit", "ary")
    return _split("hsplit", x, indices_or_sections, 0 if aval_of(x).ndim == 1 else 1)


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """`split` along the first dimension.

    Args:
        ary: array of rank 1 or more.
        indices_or_sections: number of parts, or the positions at which to cut.

    Example:
        >>> import dovetail.numpy as jnp
        >>> [part.shape for part in jnp.vsplit(jnp.ones((2, 4)), 2)]
        [(1, 4), (1, 4)]
    """
    return _split("vsplit", ary, indices_or_sections, 0)


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """`split` along the third dimension.

    Args:
        ary: array of rank 3 or more.
        indices_or_sections: number of parts, or the positions at which to cut.

    Example:
        >>> import dovetail.numpy as jnp
        >>> [part.shape for part in jnp.dsplit(jnp.ones((1, 2, 4)), 2)]
        [(1, 2, 2), (1, 2, 2)]
    """
    return _split("dsplit", ary, indices_or_sections, 2)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Split an array into its slices along a dimension; the inverse of `stack`.

    Args:
        x: array of rank 1 or more.
        axis: the dimension.

    Returns:
        A tuple of arrays with one dimension less.

    Example:
        >>> import dovetail.numpy as jnp
        >>> [row.tolist() for row in jnp.unstack(jnp.array([[1, 2], [3, 4]]))]
        [[1, 2], [3, 4]]
    """
    array = operand(x, "unstack", "x")
    rank = aval_of(array).ndim
    if not rank:
        raise ValueError("unstack needs an array of rank 1 or more, got a scalar")
    return tuple(unstack_p.bind(array, axis=canonical_axis("unstack", axis, rank)))


# ---------------------------------------------------------------------------------- repeating


def tile(A: ArrayLike, reps: ShapeLike) -> Array:
    """Repeat an array as a whole.

    Args:
        A: array or scalar.
        reps: number of repetitions for each dimension, aligned at the last; an integer for the last
            dimension only.

    Returns:
        An array.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.tile(jnp.arange(3), 2))
        [0 1 2 0 1 2]
    """
    x = operand(A, "tile", "A")
    repetitions: Any = reps
    repetitions = (
        tuple(repetitions)
        if isinstance(repetitions, (tuple, list)) or np.ndim(repetitions)
        else (repetitions,)
    )
    counts = tuple(integer("tile", "reps", n) for n in repetitions)
    if any(n < 0 for n in counts):
        raise ValueError(f"tile: reps must not be negative, got {counts}")
    x_shape = aval_of(x).shape
    rank = max(len(x_shape), len(counts))
    x = reshaped(x, (1,) * (rank - len(x_shape)) + x_shape)
    counts = (1,) * (rank - len(counts)) + counts
    return x if all(n == 1 for n in counts) else tile_p.bind(x, reps=counts)


def repeat(
    a: ArrayLike,
    repeats: ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Repeat each element of an array.

    Args:
        a: array or scalar.
        repeats: number of repetitions: an integer, or one for each position along the dimension.
        axis: the dimension; None to flatten the array first.
        total_repeat_length: size of the result along the dimension, required if `repeats` is
            traced; the result is truncated, or its last element repeated, to this size.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array.

    Raises:
        ConcretizationTypeError: `repeats` is traced and `total_repeat_length` is not given.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.repeat(jnp.arange(3), 2), jnp.repeat(jnp.arange(3), jnp.array([1, 0, 2])))
        [0 0 1 1 2 2] [0 2 2]
    """
    x = operand(a, "repeat")
    flat = axis is None or not aval_of(x).ndim
    dimension = canonical_axis("repeat", 0 if axis is None else axis, max(aval_of(x).ndim, 1))
    given: Any = repeats
    traced = isinstance(given, Tracer) and given.concrete() is None
    if not traced and not np.ndim(given) and total_repeat_length is None:
        times = integer("repeat", "repeats", given)
        program = divided_program("repeat", out_sharding, _repeat_each)
        return program(x, times, None if flat else dimension)
    if flat:
        x, dimension = reshaped(x, (aval_of(x).size,)), 0
    count = aval_of(x).shape[dimension]
    if not traced:
        given = np.asarray(given)
        given = given if given.size else given.astype(np.int64)
    require_kind("repeat", given, "biu", "integers as repeats")
    if np.shape(given) not in ((), (1,), (count,)):
        raise ValueError(
            f"repeat: repeats must be an integer, or one for each of the {count} positions of the "
            f"dimension, got shape {np.shape(given)}"
        )
    if total_repeat_length is None:
        if traced:
            integer("repeat", "repeats (or give total_repeat_length)", given)
        counts = np.broadcast_to(given.astype(np.int64), (count,))
        if np.any(counts < 0):
            raise ValueError("repeat: repeats must not be negative")
        require_host_memory(4 * int(counts.astype(object).sum()), "a table of what repeat copies")
        positions: Any = np.repeat(np.arange(count, dtype=np.int32), counts)
    else:
        length = integer("repeat", "total_repeat_length", total_repeat_length)
        positions = _traced_positions(given, count, length)
    return divided_program("repeat", out_sharding, _taken)(x, positions, dimension)


@compiled_with("dimension")
def _taken(x: Any, positions: Any, dimension: int) -> Any:
    return take(x, positions, axis=dimension, mode="clip")


@compiled_with("count", "dimension")
def _repeat_each(x: Any, count: int, dimension: int | None) -> Any:
    if count < 0:
        raise ShapeError(f"repeat: repeats must not be negative, got {count}")
    if dimension is None:
        x, dimension = reshaped(x, (aval_of(x).size,)), 0
    x_shape = aval_of(x).shape
    spread = x_shape[: dimension + 1] + (1,) + x_shape[dimension + 1 :]
    wide = x_shape[: dimension + 1] + (count,) + x_shape[dimension + 1 :]
    result = x_shape[:dimension] + (x_shape[dimension] * count,) + x_shape[dimension + 1 :]
    return reshaped(broadcast_to(reshaped(x, spread), wide), result)


def _traced_positions(repeats: Any, size: int, length: int) -> Any:
    """For each element of the result, its position in the input."""
    counts = broadcast_to(repeats, (size,))
    if dtypes.kind_of(aval_of(counts).dtype) == "b":
        counts = convert(counts, dtypes.default_dtype("i"))
    ends = lax.cumsum(counts)
    steps = lax.full((length,), 0, np.int32).at[ends[:-1]].add(1, mode="drop")
    return lax.cumsum(steps)


def resize(a: ArrayLike, new_shape: ShapeLike) -> Array:
    """Fill a new shape with the elements of an array in row-major order, repeated or cut off.

    Args:
        a: array or scalar. If it has no elements, the result is filled with zeros.
        new_shape: a size, or a sequence of sizes.

    Returns:
        An array of that shape.

    Raises:
        ValueError: a size is negative.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.resize(jnp.array([1, 2, 3]), (2, 4)))
        [[1 2 3 1]
         [2 3 1 2]]
    """
    return _resized(operand(a, "resize"), canonical_shape("resize", new_shape, "new_shape"))


@compiled_with("new_shape")
def _resized(x: Any, new_shape: Shape) -> Any:
    count, size = math.prod(new_shape), math.prod(aval_of(x).shape)
    if not size:
        return value(broadcast_to(literal(0, aval_of(x).dtype, weak_of(x)), new_shape))
    flat = reshaped(x, (size,))
    if size < count:
        flat = tile_p.bind(flat, reps=(-(-count // size),))
    return reshaped(slice_dimension(flat, 0, count, 0), new_shape)
