"""Matrices whose elements are those of vectors, at fixed places."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    broadcast_result,
    convert,
    counted,
    inexact,
    integer,
    literal,
    same_dtype,
    value,
    weak_of,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.unchecked import reverse
from dovetail.numpy.compiled import compiled, compiled_with, plain
from dovetail.numpy.conditions import pick, spread
from dovetail.numpy.gathering import take
from dovetail.scipy.linalg.matrix_operands import choice
from dovetail.typing import Array, ArrayLike


def _vectors(function: str, argument: str, x: Any, scalars: bool = False) -> Any:
    """An argument that holds vectors; a scalar, if allowed, is a vector of one element."""
    x = value(array_like(x, function, argument))
    if aval_of(x).ndim:
        return x
    if not scalars:
        raise ShapeError(f"{function}: {argument} must have one dimension or more, got a scalar")
    return lax.expand_dims(x, (0,))


def _placed(x: Any, table: np.ndarray[Any, Any]) -> Any:
    """Matrices with the elements of vectors at the places where a table has their numbers."""
    if not table.size:
        shape = (*aval_of(x).shape[:-1], *table.shape)
        return lax.full(shape, 0, aval_of(x).dtype)
    return plain(take)(x, table.astype(np.int32), axis=aval_of(x).ndim - 1, mode="clip")


def _joined(vectors: list[Any]) -> Any:
    """Vectors of one dtype, one behind the other; leading dimensions broadcast."""
    stack = broadcast_result("scipy.linalg", [aval_of(v).shape[:-1] for v in vectors], True)
    vectors = [spread(v, (*stack, aval_of(v).shape[-1])) for v in vectors]
    return lax.concatenate(vectors, len(stack))


def _padded(x: Any, *numbers: float) -> Any:
    """Vectors with more elements, which are the same for all."""
    more = [lax.full((1,), n, aval_of(x).dtype) for n in numbers]
    return _joined([x, *more])


def _tail(x: Any) -> Any:
    """Vectors without their first element."""
    rank = aval_of(x).ndim
    return lax.slice_in_dim(x, min(1, aval_of(x).shape[-1]), None, axis=rank - 1)


def _places(rows: int, columns: int) -> tuple[Any, Any]:
    return np.ogrid[:rows, :columns]  # type: ignore[return-value]


@compiled
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Matrices with constant diagonals.

    Args:
        c: first columns, of shape ``(..., m)``, or a scalar.
        r: first rows, of shape ``(..., n)``, or a scalar, whose leading dimensions broadcast with
            those of `c`. The first element is not read. If None, the conjugate of `c`.

    Returns:
        An array of shape ``(..., m, n)`` of the common dtype.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> print(linalg.toeplitz(jnp.array([1, 2, 3]), jnp.array([1, 8, 9])))
        [[1 8 9]
         [2 1 8]
         [3 2 1]]
    """
    column = _vectors("scipy.linalg.toeplitz", "c", c, scalars=True)
    if r is None:
        row = lax.conj(column) if dtypes.kind_of(aval_of(column).dtype) == "c" else column
    else:
        row = _vectors("scipy.linalg.toeplitz", "r", r, scalars=True)
        column, row = (value(v) for v in same_dtype([column, row]))
    m, n = aval_of(column).shape[-1], aval_of(row).shape[-1]
    i, j = _places(m, n)
    elements = _joined([reverse(column, (aval_of(column).ndim - 1,)), _tail(row)])
    return _placed(elements, j - i + m - 1)


@compiled
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Matrices with constant antidiagonals.

    Args:
        c: first columns, of shape ``(..., m)``.
        r: last rows, of shape ``(..., n)``, whose leading dimensions broadcast with those of `c`.
            The first element is not read. If None, m zeros.

    Returns:
        An array of shape ``(..., m, n)`` of the common dtype.

    Raises:
        ValueError: an argument is a scalar.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> print(linalg.hankel(jnp.array([1, 2, 3]), jnp.array([3, 8, 9])))
        [[1 2 3]
         [2 3 8]
         [3 8 9]]
    """
    column = _vectors("scipy.linalg.hankel", "c", c)
    if r is None:
        row = lax.full(aval_of(column).shape, 0, aval_of(column).dtype)
    else:
        row = _vectors("scipy.linalg.hankel", "r", r)
        column, row = (value(v) for v in same_dtype([column, row]))
    i, j = _places(aval_of(column).shape[-1], aval_of(row).shape[-1])
    return _placed(_joined([column, _tail(row)]), i + j)


@compiled
def circulant(c: ArrayLike) -> Array:
    """Matrices whose columns are a vector, each rotated by one more place.

    Args:
        c: first columns, of shape ``(..., n)``, or a scalar.

    Returns:
        An array of shape ``(..., n, n)`` of the dtype of `c`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> print(linalg.circulant(jnp.array([1, 2, 3])))
        [[1 3 2]
         [2 1 3]
         [3 2 1]]
    """
    column = _vectors("scipy.linalg.circulant", "c", c, scalars=True)
    n = aval_of(column).shape[-1]
    i, j = _places(n, n)
    return _placed(column, (i - j) % max(n, 1))


def _coefficients(function: str, a: Any, least: int) -> Any:
    """Coefficients of polynomials without the first, as parts of it, negated, and a one and a zero.

    Returns:
        An array of shape ``(..., n + 1)`` for n coefficients.
    """
    x = _vectors(function, "a", value(inexact(function, array_like(a, function, "a"))), True)
    shape = aval_of(x).shape
    if shape[-1] < least:
        raise ShapeError(
            f"{function}: the last dimension of a must have {counted(least, 'element')} or more, "
            f"got the shape {shape}"
        )
    first = lax.slice_in_dim(x, 0, 1, axis=len(shape) - 1)
    rest = _tail(x)
    rest = lax.neg(lax.div(rest, spread(first, aval_of(rest).shape)))
    return _padded(rest, 1, 0)


@compiled
def companion(a: ArrayLike) -> Array:
    """Companion matrices, whose eigenvalues are the roots of polynomials.

    Args:
        a: coefficients of polynomials, the highest first, of shape ``(..., n)`` with ``n >= 2``.

    Returns:
        An array of shape ``(..., n - 1, n - 1)``, floating point or complex; infinite or nan if the
        first coefficient is zero, where SciPy raises an error.

    Raises:
        ValueError: there are fewer than two coefficients.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> print(linalg.companion(jnp.array([2., -6., 4.])))
        [[ 3. -2.]
         [ 1.  0.]]
    """
    elements = _coefficients("scipy.linalg.companion", a, 2)
    size = aval_of(elements).shape[-1] - 2
    table = np.full((size, size), size + 1)
    table[0] = np.arange(size)
    table[np.arange(1, size), np.arange(size - 1)] = size
    return _placed(elements, table)


@compiled
def fiedler_companion(a: ArrayLike) -> Array:
    """Companion matrices with five diagonals, whose eigenvalues are the roots of polynomials.

    Source: Fiedler, "A note on companion matrices", 2003.

    Args:
        a: coefficients of polynomials, the highest first, of shape ``(..., n)`` with ``n >= 1``.

    Returns:
        An array of shape ``(..., n - 1, n - 1)``, floating point or complex; infinite or nan if the
        first coefficient is zero, where SciPy raises an error.

    Raises:
        ValueError: there are no coefficients.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> print(linalg.fiedler_companion(jnp.array([1., -2., 3., -4.])))
        [[ 2. -3.  1.]
         [ 1.  0.  0.]
         [ 0.  4.  0.]]
    """
    elements = _coefficients("scipy.linalg.fiedler_companion", a, 1)
    size = aval_of(elements).shape[-1] - 2
    one, zero = size, size + 1
    table = np.full((size, size), zero)
    if size:
        table[0, 0] = 0
    # Coefficients stand in rows 0, 2, 4 ..., two in each but the first, beside the diagonal.
    for k in range(1, size):
        row = 2 * (k // 2)
        table[row, row + (1 if k % 2 else -1)] = k
    for row in range(0, size - 2, 2):
        table[row, row + 2] = one
    for row in range(1, size, 2):
        table[row, max(row - 2, 0)] = one
    return _placed(elements, table)


_MODES = ("full", "same", "valid")


@compiled_with("n", "mode")
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Matrices whose products with vectors are convolutions with a vector.

    Args:
        a: vectors of shape ``(..., m)`` to convolve with.
        n: number of columns: the size of the other vectors.
        mode: "full" for all of the convolution, ``m + n - 1`` rows; "same" for ``max(m, n)`` rows
            in the middle; "valid" for the ``max(m, n) - min(m, n) + 1`` rows without an influence
            of the boundaries.

    Returns:
        An array of shape ``(..., rows, n)`` of the dtype of `a`.

    Raises:
        ValueError: `a` is a scalar or empty, `n` is not positive, or `mode` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> print(linalg.convolution_matrix(jnp.array([1, 2]), 3))
        [[1 0 0]
         [2 1 0]
         [0 2 1]
         [0 0 2]]
    """
    function = "scipy.linalg.convolution_matrix"
    choice(function, "mode", mode, _MODES)
    x = _vectors(function, "a", a)
    count, m = integer(function, "n", n), aval_of(x).shape[-1]
    if count < 1:
        raise ValueError(f"{function}: n must be positive, got {count}")
    if not m:
        raise ShapeError(f"{function}: a must not be empty, got the shape {aval_of(x).shape}")
    least = min(m, count)
    rows = {"full": m + count - 1, "same": max(m, count), "valid": max(m, count) - least + 1}[mode]
    first = {"full": 0, "same": (least - 1) // 2, "valid": least - 1}[mode]
    if rows * count >= 2**40:
        raise ValueError(
            f"{function}: n must be less, got {count}, which makes {rows * count} elements"
        )
    i, j = _places(rows, count)
    table = i + first - j
    return _placed(_padded(x, 0), np.where((table >= 0) & (table < m), table, m))


@compiled
def fiedler(a: ArrayLike) -> Array:
    """Symmetric matrices of the distances between numbers.

    Args:
        a: numbers of shape ``(..., n)``, or a scalar.

    Returns:
        An array of shape ``(..., n, n)``: ``abs(a[..., i] - a[..., j])``, real.

    Differs:
        Distances of unsigned integers do not wrap around.

        >>> from dovetail.scipy import linalg
        >>> print(linalg.fiedler(jnp.array([1, 4], "uint8")))
        [[0 3]
         [3 0]]

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> print(linalg.fiedler(jnp.array([1, 4, 9])))
        [[0 3 8]
         [3 0 5]
         [8 5 0]]
    """
    function = "scipy.linalg.fiedler"
    x = _vectors(function, "a", a, scalars=True)
    dtype, rank = aval_of(x).dtype, aval_of(x).ndim
    if dtypes.kind_of(dtype) == "b":
        raise TypeError(f"{function}: a must hold numbers, got dtype bool; convert it first")
    shape = (*aval_of(x).shape, aval_of(x).shape[-1])
    down = lax.broadcast_in_dim(x, shape, tuple(range(rank)))
    along = lax.broadcast_in_dim(x, shape, (*range(rank - 1), rank))
    if dtypes.kind_of(dtype) == "u":
        larger = lax.gt(down, along)
        return pick(larger, lax.sub(down, along), lax.sub(along, down))
    distance = lax.abs(lax.sub(down, along))
    return convert(distance, aval_of(distance).dtype, weak_of(x))


@compiled
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Leslie matrices, which describe how a population of several ages grows.

    Args:
        f: fecundities, the first rows, of shape ``(..., n)`` with ``n >= 2``.
        s: survivals, the elements below the diagonal, of shape ``(..., n - 1)``, whose leading
            dimensions broadcast with those of `f`.

    Returns:
        An array of shape ``(..., n, n)`` of the common dtype.

    Raises:
        ValueError: the sizes do not match.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> print(linalg.leslie(jnp.array([0, 4, 2]), jnp.array([7, 8])))
        [[0 4 2]
         [7 0 0]
         [0 8 0]]
    """
    function = "scipy.linalg.leslie"
    first, below = (
        value(v)
        for v in same_dtype(
            [_vectors(function, "f", f, scalars=True), _vectors(function, "s", s, scalars=True)]
        )
    )
    shapes = aval_of(first).shape, aval_of(below).shape
    n = shapes[0][-1]
    if n < 2 or shapes[1][-1] != n - 1:
        raise ShapeError(
            f"{function}: f must have two elements or more, and s one less, got the shapes "
            f"{shapes[0]} of f and {shapes[1]} of s"
        )
    table = np.full((n, n), 2 * n - 1)
    table[0] = np.arange(n)
    table[np.arange(1, n), np.arange(n - 1)] = np.arange(n, 2 * n - 1)
    return _placed(_padded(_joined([first, below]), 0), table)


@compiled
def block_diag(*arrs: ArrayLike) -> Array:
    """A matrix with other matrices along its diagonal, and zeros elsewhere.

    Args:
        *arrs: matrices; vectors and scalars are matrices of one row.

    Returns:
        A matrix of the common dtype. Without arguments it has the shape ``(1, 0)``.

    Raises:
        ValueError: an argument has more than two dimensions.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> print(linalg.block_diag(jnp.ones((2, 2)), 3.))
        [[1. 1. 0.]
         [1. 1. 0.]
         [0. 0. 3.]]
    """
    function = "scipy.linalg.block_diag"
    if not arrs:
        return lax.full((1, 0), 0, dtypes.default_dtype("f"))
    blocks = [value(array_like(x, function, f"arrs[{k}]")) for k, x in enumerate(arrs)]
    for k, block in enumerate(blocks):
        if aval_of(block).ndim > 2:
            raise ShapeError(
                f"{function}: the arguments must have two dimensions or fewer, got the shape "
                f"{aval_of(block).shape} of arrs[{k}]; for stacks of them use dovetail.vmap"
            )
    blocks = [value(v) for v in same_dtype(blocks)]
    blocks = [lax.expand_dims(v, tuple(range(2 - aval_of(v).ndim))) for v in blocks]
    width = sum(aval_of(v).shape[1] for v in blocks)
    zero = literal(0, aval_of(blocks[0]).dtype)
    rows, start = [], 0
    for block in blocks:
        columns = aval_of(block).shape[1]
        rows.append(lax.pad(block, zero, [(0, 0, 0), (start, width - start - columns, 0)]))
        start += columns
    return lax.concatenate(rows, 0)
