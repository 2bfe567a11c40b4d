"""Special matrices, and parts of matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    canonical_axes,
    convert,
    host_array,
    integer,
    literal,
    no_out,
    requested_dtype,
    require_kind,
    shape_of_argument,
    weak_of,
)
from dovetail.extend.avals import Tracer, aval_of
from dovetail.extend.checks import require_host_memory
from dovetail.extend.dimensions import known_at_most, largest_known
from dovetail.extend.eager import evaluation_trace, trace_state
from dovetail.extend.unchecked import iota_like, position_dtype
from dovetail.numpy.compiled import compiled_with
from dovetail.numpy.conditions import pick
from dovetail.numpy.creation import SMALL, on_device
from dovetail.numpy.shapes import operand, permuted, reshaped
from dovetail.typing import Array, ArrayLike, DeviceLike, DTypeLike, IntLike

_INT32 = np.dtype("int32")
#: Bytes of an index of NumPy's.
_EACH_INDEX = 8


def _size(function: str, argument: str, value: Any) -> int:
    size = integer(function, argument, value)
    if size < 0:
        raise ShapeError(f"{function}: {argument} must not be negative, got {size}")
    return size


def _is_unknown(k: Any) -> bool:
    """Whether a diagonal is traced, so that the program computes where it is."""
    return isinstance(k, Tracer) and k.concrete() is None


def _traced_offset(function: str, argument: str, k: Any) -> Any:
    """A traced diagonal: an integer scalar."""
    require_kind(function, k, "iu", f"an integer as {argument}")
    if aval_of(k).shape:
        raise ValueError(f"{function}: {argument} must be a scalar, got shape {aval_of(k).shape}")
    return k


def _offsets(shape: tuple[int, ...], k: Any) -> tuple[Any, Any]:
    """Row numbers shifted by `k`, and column numbers, for the last two dimensions of a shape."""
    rank = len(shape)
    dtype = position_dtype(largest_known(shape[-2:]) + (abs(k) if type(k) is int else 0))
    rows, columns = (iota_like(dtype, shape, d) for d in (rank - 2, rank - 1))
    if type(k) is int:
        return (lax.add(rows, literal(k, dtype)) if k else rows), columns
    return lax.add(rows, convert(k, dtype)), columns


def eye(
    N: IntLike,
    M: IntLike | None = None,
    k: IntLike = 0,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
) -> Array:
    """Create a matrix with ones on a diagonal and zeros elsewhere.

    Args:
        N: number of rows.
        M: number of columns; `N` if None.
        k: which diagonal: 0 is the main one, positive values are above it. It may be traced.
        dtype: dtype of the result; the default float if None.
        device: device on which the array is placed and stays.

    Returns:
        An array of shape ``(N, M)``.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.eye(3, k=1))
        [[0. 1. 0.]
         [0. 0. 1.]
         [0. 0. 0.]]
    """
    rows = _size("eye", "N", N)
    columns = rows if M is None else _size("eye", "M", M)
    target = requested_dtype("eye", dtype) or dtypes.default_dtype("f")
    if _is_unknown(k):
        moved, numbers = _offsets((rows, columns), _traced_offset("eye", "k", k))
        return on_device(convert(lax.eq(moved, numbers), target), device)
    offset = integer("eye", "k", k)
    if known_at_most(rows * columns, SMALL) and trace_state.trace is evaluation_trace:
        return on_device(host_array(np.eye(rows, columns, offset, target)), device)
    return on_device(_eye((rows, columns), offset, target), device)


@compiled_with("shape", "k", "dtype")
def _eye(shape: tuple[int, int], k: int, dtype: Any) -> Any:
    return convert(lax.eq(*_offsets(shape, k)), dtype)


def identity(n: IntLike, dtype: DTypeLike | None = None) -> Array:
    """Create an identity matrix.

    Args:
        n: number of rows and columns.
        dtype: dtype of the result; the default float if None.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.identity(2, int))
        [[1 0]
         [0 1]]
    """
    return eye(n, dtype=dtype)


def tri(
    N: IntLike, M: IntLike | None = None, k: IntLike = 0, dtype: DTypeLike | None = None
) -> Array:
    """Create a matrix with ones on and below a diagonal, and zeros above it.

    Args:
        N: number of rows.
        M: number of columns; `N` if None.
        k: which diagonal: 0 is the main one, positive values are above it. It may be traced.
        dtype: dtype of the result; the default float if None.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.tri(3, dtype=int))
        [[1 0 0]
         [1 1 0]
         [1 1 1]]
    """
    rows = _size("tri", "N", N)
    columns = rows if M is None else _size("tri", "M", M)
    target = requested_dtype("tri", dtype) or dtypes.default_dtype("f")
    if _is_unknown(k):
        return _below((rows, columns), _traced_offset("tri", "k", k), target)
    return _tri((rows, columns), integer("tri", "k", k), target)


@compiled_with("shape", "k", "dtype")
def _tri(shape: tuple[int, int], k: int, dtype: Any) -> Any:
    return _below(shape, k, dtype)


def _below(shape: tuple[int, ...], k: Any, dtype: Any) -> Any:
    """Ones on and below the diagonal `k`, and zeros above it."""
    return convert(lax.ge(*_offsets(shape, k)), dtype)


def _triangle(function: str, m: Any, k: int, lower: bool) -> Any:
    x, diagonal = operand(m, function, "m"), integer(function, "k", k)
    if aval_of(x).ndim < 1:
        raise ValueError(f"{function} needs an array of rank 1 or more, got a scalar")
    shape = aval_of(x).shape
    if len(shape) == 1:
        # As in NumPy, a vector is repeated as the rows of a square matrix.
        shape = (*shape, *shape)
        x = lax.broadcast_in_dim(x, shape, (1,))
    zero = literal(0, aval_of(x).dtype, weak_of(x))
    moved, columns = _offsets(shape, diagonal)
    keep = lax.ge(moved, columns) if lower else lax.le(moved, columns)
    return pick(keep, x, zero)


@compiled_with("k")
def tril(m: ArrayLike, k: int = 0) -> Array:
    """The lower triangle of matrices, with zeros above a diagonal.

    Args:
        m: array of rank 2 or more: matrices in its last two dimensions.
        k: last diagonal to keep: 0 is the main one, positive values are above it.

    Differs:
        A vector stands for the matrix whose rows are all equal to it, as in NumPy; so in `triu`.

        >>> print(jnp.tril(jnp.arange(1, 3)))
        [[1 0]
         [1 2]]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.tril(jnp.ones((3, 3), int)))
        [[1 0 0]
         [1 1 0]
         [1 1 1]]
    """
    return _triangle("tril", m, k, True)


@compiled_with("k")
def triu(m: ArrayLike, k: int = 0) -> Array:
    """The upper triangle of matrices, with zeros below a diagonal.

    Args:
        m: array of rank 2 or more: matrices in its last two dimensions.
        k: first diagonal to keep: 0 is the main one, positive values are above it.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.triu(jnp.ones((3, 3), int), 1))
        [[0 1 1]
         [0 0 1]
         [0 0 0]]
    """
    return _triangle("triu", m, k, False)


def tril_indices(n: IntLike, k: IntLike = 0, m: IntLike | None = None) -> tuple[Array, Array]:
    """The indices of the lower triangle of a matrix.

    Args:
        n: number of rows.
        k: last diagonal to include.
        m: number of columns; `n` if None.

    Returns:
        A tuple of row numbers and column numbers.

    Example:
        >>> import dovetail.numpy as jnp
        >>> rows, columns = jnp.tril_indices(2)
        >>> print(rows, columns)
        [0 1 1] [0 0 1]
    """
    return _triangle_indices("tril_indices", np.tril_indices, n, k, m)


def triu_indices(n: IntLike, k: IntLike = 0, m: IntLike | None = None) -> tuple[Array, Array]:
    """The indices of the upper triangle of a matrix.

    Args:
        n: number of rows.
        k: first diagonal to include.
        m: number of columns; `n` if None.

    Returns:
        A tuple of row numbers and column numbers.

    Example:
        >>> import dovetail.numpy as jnp
        >>> rows, columns = jnp.triu_indices(2)
        >>> print(rows, columns)
        [0 0 1] [0 1 1]
    """
    return _triangle_indices("triu_indices", np.triu_indices, n, k, m)


def _triangle_indices(
    function: str, indices: Callable[..., Any], n: Any, k: Any, m: Any
) -> tuple[Any, Any]:
    rows = _size(function, "n", n)
    columns = rows if m is None else _size(function, "m", m)
    if not rows or not columns:  # of which NumPy makes tables as long as the other one
        rows = columns = 0
    # All diagonals further out are the same: there is nothing on them.
    offset = max(-rows, min(columns, integer(function, "k", k)))
    # A mask, and two numbers for about half of its elements.
    require_host_memory(_EACH_INDEX * rows * columns, f"the indices of a {rows}x{columns} triangle")
    found = indices(rows, offset, columns)
    return _index_array(found[0]), _index_array(found[1])


def _index_array(numbers: np.ndarray[Any, Any]) -> Any:
    return host_array(np.ascontiguousarray(numbers, dtypes.default_dtype("i")))


def diag(v: ArrayLike, k: int = 0) -> Array:
    """Build a matrix from its diagonal, or extract the diagonal of a matrix.

    Args:
        v: vector, the diagonal to use; or matrix.
        k: which diagonal: 0 is the main one, positive values are above it.

    Returns:
        A matrix for a vector, a vector for a matrix.

    Raises:
        ValueError: `v` is neither a vector nor a matrix.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.diag(jnp.array([1, 2])))
        [[1 0]
         [0 2]]
        >>> print(jnp.diag(jnp.array([[1, 2], [3, 4]])))
        [1 4]
    """
    x = operand(v, "diag", "v")
    rank = aval_of(x).ndim
    offset = integer("diag", "k", k)
    if rank == 1:
        return _diagonal_matrix(x, offset)
    if rank == 2:
        return diagonal(x, offset)
    raise ValueError(f"diag takes a vector or a matrix, got an array of rank {rank}")


@compiled_with("k")
def _diagonal_matrix(x: Any, k: int) -> Any:
    (count,) = aval_of(x).shape
    size = count + abs(k)
    zero = literal(0, aval_of(x).dtype, weak_of(x))
    # For k >= 0 the vector starts at column k; below the main diagonal it starts at column 0.
    padded = lax.pad(x, zero, [(max(k, 0), size - count - max(k, 0), 0)])
    spread = lax.broadcast_in_dim(padded, (size, size), (1,))
    return pick(lax.eq(*_offsets((size, size), k)), spread, zero)


@compiled_with("k")
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Build a matrix whose diagonal is a flattened array.

    Args:
        v: array.
        k: which diagonal: 0 is the main one, positive values are above it.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.diagflat(jnp.array([[1], [2]])))
        [[1 0]
         [0 2]]
    """
    x = operand(v, "diagflat", "v")
    x = convert(reshaped(x, (aval_of(x).size,)), aval_of(x).dtype)
    return _diagonal_matrix(x, integer("diagflat", "k", k))


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Extract diagonals of matrices.

    Args:
        a: array of rank 2 or more.
        offset: which diagonal: 0 is the main one, positive values are above it.
        axis1: the dimension of the rows.
        axis2: the dimension of the columns.

    Returns:
        An array with the other dimensions, and last the one along the diagonal.

    Raises:
        ValueError: the rank is less than 2, or both dimensions are the same.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.diagonal(jnp.arange(6).reshape(2, 3), 1))
        [1 5]
    """
    return _diagonal(operand(a, "diagonal"), integer("diagonal", "offset", offset), axis1, axis2)


@compiled_with("offset", "axis1", "axis2")
def _diagonal(x: Any, offset: int, axis1: int, axis2: int) -> Any:
    x = _matrices_last("diagonal", x, axis1, axis2)
    shape = aval_of(x).shape
    rows, columns = shape[-2:]
    length = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    if not length:
        return lax.slice_in_dim(reshaped(x, (*shape[:-2], rows * columns)), 0, 0, axis=-1)
    # In row-major order, the elements of a diagonal are columns + 1 positions apart.
    first = max(offset, 0) - min(offset, 0) * columns
    flat = reshaped(x, (*shape[:-2], rows * columns))
    last = first + (length - 1) * (columns + 1) + 1
    picked = lax.slice_in_dim(flat, first, last, columns + 1, axis=len(shape) - 2)
    # That of a square matrix alone is not weakly typed, as in JAX.
    is_main = rows == columns and not offset and len(shape) == 2
    return convert(picked, aval_of(x).dtype, weak_of(x) and not is_main)


def _matrices_last(function: str, x: Any, axis1: int, axis2: int) -> Any:
    rank = aval_of(x).ndim
    if rank < 2:
        raise ValueError(f"{function} needs an array of rank 2 or more, got rank {rank}")
    plane = canonical_axes(function, (axis1, axis2), rank, "axis1 and axis2")
    others = tuple(d for d in range(rank) if d not in plane)
    return permuted(x, others + plane)


@compiled_with("offset", "axis1", "axis2", "dtype", "out")
def trace(
    a: ArrayLike,
    offset: IntLike = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Sum the elements on a diagonal of matrices.

    Args:
        a: array of rank 2 or more.
        offset: which diagonal: 0 is the main one, positive values are above it. It may be
            traced.
        axis1: the dimension of the rows.
        axis2: the dimension of the columns.
        dtype: dtype of the result, in which the sum is computed.
        out: not supported, since arrays are immutable.

    Returns:
        An array with the other dimensions.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.trace(jnp.arange(4).reshape(2, 2)))
        3
    """
    no_out("trace", out)
    from dovetail.numpy.reductions import sum as total  # deferred: it imports this module

    if not _is_unknown(offset):
        offset = integer("trace", "offset", offset)
        return total(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)
    x = _matrices_last("trace", operand(a, "trace"), axis1, axis2)
    on_diagonal = lax.eq(*_offsets(aval_of(x).shape, _traced_offset("trace", "offset", offset)))
    # Of a sum over both dimensions only one diagonal is left.
    return total(pick(on_diagonal, x, literal(0, aval_of(x).dtype)), axis=(-2, -1), dtype=dtype)


@compiled_with("N", "increasing")
def vander(x: ArrayLike, N: IntLike | None = None, increasing: bool = False) -> Array:
    """Build the Vandermonde matrix: each row holds the powers of an element of a vector.

    Args:
        x: vector.
        N: number of columns; the size of `x` if None.
        increasing: whether the powers increase from left to right.

    Returns:
        A matrix.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.vander(jnp.array([1, 2, 3]), 3))
        [[1 1 1]
         [4 2 1]
         [9 3 1]]
    """
    values = operand(x, "vander", "x")
    if aval_of(values).ndim != 1:
        raise ValueError(f"vander takes a vector, got shape {aval_of(values).shape}")
    if dtypes.kind_of(aval_of(values).dtype) == "b":
        values = convert(values, dtypes.default_dtype("i"))
    rows = aval_of(values).size
    count = rows if N is None else _size("vander", "N", N)
    values = convert(values, aval_of(values).dtype)
    ones = lax.full_like(values, 1, shape=(rows, min(count, 1)))
    factors = lax.broadcast_in_dim(values, (rows, max(count - 1, 0)), (0,))
    powers = lax.cumprod(lax.concatenate([ones, factors], 1), axis=1)
    return powers if increasing else lax.rev(powers, (1,))


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """The indices of the lower triangle of a matrix, from an example.

    Args:
        arr: matrix that gives the shape.
        k: last diagonal to include.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.tril_indices_from(jnp.ones((2, 2)))[0])
        [0 1 1]
    """
    rows, columns = _matrix_shape("tril_indices_from", arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """The indices of the upper triangle of a matrix, from an example.

    Args:
        arr: matrix that gives the shape.
        k: first diagonal to include.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.triu_indices_from(jnp.ones((2, 2)))[1])
        [0 1 1]
    """
    rows, columns = _matrix_shape("triu_indices_from", arr)
    return triu_indices(rows, k, columns)


def _matrix_shape(function: str, x: Any) -> tuple[int, int]:
    shape = shape_of_argument(x, function, "arr")
    if len(shape) != 2:
        raise ValueError(f"{function} takes a matrix, got shape {shape}")
    return shape[0], shape[1]


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array whose sizes are all equal.

    Args:
        n: the size of each dimension.
        ndim: the number of dimensions.

    Returns:
        A tuple of `ndim` integer vectors.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.zeros((2, 2)).at[jnp.diag_indices(2)].set(1.))
        [[1. 0.]
         [0. 1.]]
    """
    count = _size("diag_indices", "n", n)
    require_host_memory(_EACH_INDEX * count, f"the indices of a diagonal of {count} elements")
    rank = _size("diag_indices", "ndim", ndim)
    require_host_memory(8 * rank, f"a tuple of {rank} vectors")
    return (_index_array(np.arange(count)),) * rank


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array, from an example.

    Args:
        arr: array of rank 2 or more, with equal sizes, that gives the shape.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.diag_indices_from(jnp.ones((2, 2)))[0])
        [0 1]
    """
    shape = shape_of_argument(arr, "diag_indices_from", "arr")
    if len(shape) < 2 or len(set(shape)) != 1:
        raise ValueError(
            "diag_indices_from takes an array of rank 2 or more with equal sizes, got shape "
            f"{shape}"
        )
    return diag_indices(shape[0], len(shape))
