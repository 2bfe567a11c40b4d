"""Products of vectors, matrices and tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    asked_division,
    broadcast_result,
    canonical_axes,
    canonical_axis,
    convert,
    divided,
    integer,
    no_out,
    placed,
    promoted_pair,
    requested_dtype,
    require_kind,
    same_dtype,
    value,
    weak_of,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.contractions import dot_precision, multiplied
from dovetail.numpy.compiled import compiled, compiled_with, plain
from dovetail.numpy.shapes import moveaxis, permuted, reshaped
from dovetail.typing import Array, ArrayLike, DTypeLike, Sharding

Dims = tuple[int, ...]

#: From so many elements on, rows of a Kronecker product are put together first.
_MANY_ELEMENTS = 1 << 14


def contracted(
    x: Any,
    y: Any,
    contracting: tuple[Dims, Dims],
    batch: tuple[Dims, Dims] = ((), ()),
    precision: Any = None,
    out: Any = None,
    wanted: Any = None,
) -> Any:
    """Sums of products of two checked operands of one dtype.

    They are in the dtype `out` (None: that of the operands), and `wanted` is the division that
    types are asked for (None: as the operands are divided).
    """
    dtype = aval_of(x).dtype if out is None else out
    sums = multiplied(
        x,
        y,
        dimension_numbers=(contracting, batch),
        precision=dot_precision(precision),
        preferred_element_type=dtype,
        wanted=wanted,
    )
    return convert(sums, dtype, weak=out is None and weak_of(x) and weak_of(y))


def _contracted(
    function: str,
    out_sharding: Any,
    x: Any,
    y: Any,
    contracting: tuple[Dims, Dims],
    precision: Any,
    out: Any,
) -> Any:
    """`contracted` for the user's function, divided over devices as its argument asks."""
    rank = aval_of(x).ndim + aval_of(y).ndim - 2 * len(contracting[0])
    wanted = asked_division(function, out_sharding, rank, sums=True)
    sums = contracted(x, y, contracting, precision=precision, out=out, wanted=wanted)
    if wanted is not None and wanted.unreduced:
        return sums
    return placed(function, sums, out_sharding)


def _pair(
    function: str, a: Any, b: Any, first: str, second: str, out: Any = None
) -> tuple[Any, Any]:
    """Two operands of one dtype.

    If the dtype `out` of the result was asked for, they may differ whatever the mode of promotion
    is.
    """
    x, y = array_like(a, function, first), array_like(b, function, second)
    x, y = same_dtype([x, y]) if out is None else combined([x, y])
    return value(x), value(y)


def combined(values: Sequence[Any]) -> list[Any]:
    """Checked operands in their common dtype, whatever the mode of promotion is."""
    try:
        return same_dtype(values)
    except dtypes.TypePromotionError:
        dtype = dtypes.common_dtype(*[aval_of(v).dtype for v in values])
        return [convert(v, dtype) for v in values]


def _mismatch(function: str, x: Any, y: Any, dimensions: tuple[int, int]) -> ShapeError:
    shapes = aval_of(x).shape, aval_of(y).shape
    sizes = [s[d] for s, d in zip(shapes, dimensions, strict=True)]
    return ShapeError(
        f"{function}: dimension {dimensions[0]} of the first operand, of shape {shapes[0]}, and "
        "dimension "
        f"{dimensions[1]} of the second, of shape {shapes[1]}, must have equal sizes, got "
        f"{sizes[0]} and {sizes[1]}"
    )


@compiled_with("precision", "preferred_element_type", "out_sharding")
def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """The matrix product: ``a @ b``.

    Args:
        a: array of rank 1 or more; matrices in its last two dimensions, or a vector (a row).
        b: array of rank 1 or more; matrices in its last two dimensions, or a vector (a column).
        precision: accuracy of the products: None, "default", "high", "highest", or a pair of them.
        preferred_element_type: dtype of the result, in which the products are summed.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`. With ``unreduced`` the sum over the devices is not added up.

    Returns:
        An array of matrices; the leading dimensions are broadcast. Vectors add no dimension.

    Raises:
        TypeError: the sizes of the summed dimensions differ.
        ValueError: an operand is a scalar.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1])))
        [3 7]
    """
    x, y = _pair("matmul", a, b, "a", "b", preferred_element_type)
    out = requested_dtype("matmul", preferred_element_type)
    left, right = aval_of(x).shape, aval_of(y).shape
    for i, shape in enumerate((left, right)):
        if not shape:
            raise ValueError(
                f"matmul: operand {i} is a scalar; it needs one dimension at least. "
                "Scale an array with * instead"
            )
    column = len(right) - 2 if len(right) > 1 else 0
    if left[-1] != right[column]:
        raise _mismatch("matmul", x, y, (len(left) - 1, column))
    if len(right) <= 2:
        summed = (len(left) - 1,), (column,)
        return _contracted("matmul", out_sharding, x, y, summed, precision, out)
    rank = max(len(left) - 2, len(right) - 2) + (len(left) > 1) + 1
    wanted = asked_division("matmul", out_sharding, rank, sums=True)
    wanted = wanted if wanted is not None and wanted.unreduced else None
    return divided(
        "matmul",
        out_sharding,
        lambda: _batched_matmul(x, y, precision, out, wanted),
        sums=True,
    )


def _batched_matmul(x: Any, y: Any, precision: Any, out: Any, wanted: Any) -> Any:
    """`matmul` of stacks; a dimension that only one of them has is no batch dimension."""
    left, right = aval_of(x).shape, aval_of(y).shape
    x_is_vector, y_is_vector = len(left) == 1, len(right) == 1
    x_stack, y_stack = left[:-2], right[:-2]
    stack = broadcast_result("matmul", (x_stack, y_stack))
    rank = len(stack)
    x_padded = (1,) * (rank - len(x_stack)) + x_stack
    y_padded = (1,) * (rank - len(y_stack)) + y_stack
    # A stack dimension is a batch dimension if both operands have it. If one lacks it or has size
    # one there, it is dropped from that operand and is a free dimension of the other.
    batch = [d for d in range(rank) if x_padded[d] == y_padded[d] != 1]
    ones = [d for d in range(rank) if x_padded[d] == y_padded[d] == 1]
    x_own = [d for d in range(rank) if d not in batch and d not in ones and x_padded[d] != 1]
    y_own = [d for d in range(rank) if d not in batch and d not in ones and y_padded[d] != 1]
    x_kept = sorted(batch + x_own)
    y_kept = sorted(batch + y_own)
    x = reshaped(x, tuple(x_padded[d] for d in x_kept) + left[-2:])
    y = reshaped(y, tuple(y_padded[d] for d in y_kept) + right[-2:])
    x_rank, y_rank = aval_of(x).ndim, aval_of(y).ndim
    numbers = tuple(x_kept.index(d) for d in batch), tuple(y_kept.index(d) for d in batch)
    summed = (x_rank - 1,), (y_rank - (1 if y_is_vector else 2),)
    # The dimensions of the product: batch, free of x, rows, free of y, columns.
    names: list[Any] = [*batch, *x_own]
    if not x_is_vector:
        names.append("rows")
    names += y_own
    if not y_is_vector:
        names.append("columns")
    if wanted is not None:
        places = {"rows": rank, "columns": rank + (not x_is_vector)}
        wanted = wanted.permuted([places.get(n, n) for n in names])
    result = contracted(x, y, summed, numbers, precision, out, wanted)
    order: list[Any] = sorted(n for n in names if isinstance(n, int))
    order += [n for n in ("rows", "columns") if n in names]
    result = permuted(result, tuple(names.index(n) for n in order))
    shape = stack + (() if x_is_vector else left[-2:-1]) + (() if y_is_vector else right[-1:])
    return reshaped(result, shape)


@compiled_with("precision", "preferred_element_type", "out_sharding")
def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """The dot product: sum over the last dimension of `a` and the second to last of `b`.

    For matrices and vectors this is the matrix product; scalars multiply.

    Args:
        a: array or scalar.
        b: array or scalar.
        precision: accuracy of the products: None, "default", "high", "highest", or a pair of them.
        preferred_element_type: dtype of the result, in which the products are summed.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`. With ``unreduced`` the sum over the devices is not added up.

    Returns:
        An array with the remaining dimensions of `a`, then those of `b`.

    Raises:
        TypeError: the sizes of the summed dimensions differ.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.dot(jnp.array([1, 2, 3]), jnp.array([4, 5, 6])))
        32
    """
    x, y = _pair("dot", a, b, "a", "b", preferred_element_type)
    out = requested_dtype("dot", preferred_element_type)
    left, right = aval_of(x).shape, aval_of(y).shape
    if not left or not right:
        product = lax.mul(x, y)
        product = product if out is None else convert(product, out)
        return placed("dot", product, out_sharding)
    column = max(len(right) - 2, 0)
    if left[-1] != right[column]:
        raise _mismatch("dot", x, y, (len(left) - 1, column))
    summed = (len(left) - 1,), (column,)
    return _contracted("dot", out_sharding, x, y, summed, precision, out)


@compiled_with("precision", "preferred_element_type")
def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The dot product of two arrays as vectors; the first is conjugated.

    Args:
        a: array; its elements are taken in row-major order.
        b: array with as many elements.
        precision: accuracy of the products: None, "default", "high", "highest", or a pair of them.
        preferred_element_type: dtype of the result, in which the products are summed.

    Returns:
        An array of rank 0.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.vdot(jnp.array([1j, 2]), jnp.array([1j, 3])))
        (7+0j)
    """
    x, y = _pair("vdot", a, b, "a", "b", preferred_element_type)
    if dtypes.kind_of(aval_of(x).dtype) == "c":
        x = lax.conj(x)
    x, y = (reshaped(v, (math.prod(aval_of(v).shape),)) for v in (x, y))
    if x.shape != y.shape:
        raise TypeError(f"vdot needs arrays with equally many elements, got {x.size} and {y.size}")
    out = requested_dtype("vdot", preferred_element_type)
    return contracted(x, y, ((0,), (0,)), precision=precision, out=out)


@compiled_with("precision", "preferred_element_type")
def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The inner product: sum over the last dimensions of two arrays; scalars multiply.

    Args:
        a: array or scalar.
        b: array or scalar.
        precision: accuracy of the products: None, "default", "high", "highest", or a pair of them.
        preferred_element_type: dtype of the result, in which the products are summed.

    Returns:
        An array with the remaining dimensions of `a`, then those of `b`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.inner(jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1])))
        [12 34]
    """
    x, y = _pair("inner", a, b, "a", "b", preferred_element_type)
    out = requested_dtype("inner", preferred_element_type)
    left, right = aval_of(x).shape, aval_of(y).shape
    if not left or not right:
        product = lax.mul(x, y)
        return product if out is None else convert(product, out)
    if left[-1] != right[-1]:
        raise _mismatch("inner", x, y, (len(left) - 1, len(right) - 1))
    numbers = (len(left) - 1,), (len(right) - 1,)
    return contracted(x, y, numbers, precision=precision, out=out)


@compiled
def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """The outer product: each element of one array times each of the other.

    Args:
        a: array; its elements are taken in row-major order.
        b: array, likewise.
        out: not supported, since arrays are immutable.

    Returns:
        A matrix with a row for each element of `a`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.outer(jnp.array([1, 2]), jnp.array([10, 20])))
        [[10 20]
         [20 40]]
    """
    no_out("outer", out)
    x, y = _pair("outer", a, b, "a", "b")
    x = reshaped(x, (math.prod(aval_of(x).shape), 1))
    y = reshaped(y, (1, math.prod(aval_of(y).shape)))
    return lax.mul(x, y)


def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[int] | Sequence[Sequence[int]] = 2,
    *,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """The tensor dot product: sum over several dimensions of two arrays.

    Args:
        a: array.
        b: array.
        axes: a number n, for the last n dimensions of `a` and the first n of `b`; or a pair of
            dimensions or of sequences of dimensions.
        precision: accuracy of the products: None, "default", "high", "highest", or a pair of them.
        preferred_element_type: dtype of the result, in which the products are summed.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`. With ``unreduced`` the sum over the devices is not added up.

    Returns:
        An array with the remaining dimensions of `a`, then those of `b`.

    Raises:
        TypeError: the sizes of the summed dimensions differ.
        ValueError: `axes` does not fit the arrays.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.tensordot(jnp.ones((2, 3, 4)), jnp.ones((4, 3, 5)), axes=([1, 2], [1, 0])).shape
        (2, 5)
    """
    if isinstance(axes, (tuple, list)):
        if len(axes) != 2:
            raise ShapeError(f"tensordot: axes must be a number or a pair, got {axes}")
        first, second = (tuple(d) if isinstance(d, (tuple, list)) else (d,) for d in axes)
        axes = first, second
    return _tensordot(a, b, axes, precision, preferred_element_type, out_sharding)


@compiled_with("axes", "precision", "preferred_element_type", "out_sharding")
def _tensordot(
    a: Any, b: Any, axes: Any, precision: Any, preferred_element_type: Any, out_sharding: Any
) -> Any:
    x, y = _pair("tensordot", a, b, "a", "b", preferred_element_type)
    left, right = aval_of(x).shape, aval_of(y).shape
    if isinstance(axes, tuple):
        first = canonical_axes("tensordot", axes[0], len(left), "axes")
        second = canonical_axes("tensordot", axes[1], len(right), "axes")
    else:
        axes = integer("tensordot", "axes (or a pair of sequences)", axes)
        if not 0 <= axes <= min(len(left), len(right)):
            raise ShapeError(
                f"tensordot: axes={axes} does not fit arrays of ranks {len(left)} and {len(right)}"
            )
        first = tuple(range(len(left) - axes, len(left)))
        second = tuple(range(axes))
    if len(first) != len(second):
        raise ShapeError(f"tensordot: axes must name equally many dimensions, got {axes}")
    for d, e in zip(first, second, strict=True):
        if left[d] != right[e]:
            raise _mismatch("tensordot", x, y, (d, e))
    out = requested_dtype("tensordot", preferred_element_type)
    return _contracted("tensordot", out_sharding, x, y, (first, second), precision, out)


@compiled_with("axis", "precision", "preferred_element_type")
def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: lax.PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """The dot products of vectors along a dimension; those in `x1` are conjugated.

    Args:
        x1: array.
        x2: array that broadcasts with `x1`, of the same size along the dimension.
        axis: dimension of the vectors, counted before broadcasting.
        precision: accuracy of the products: None, "default", "high", "highest", or a pair of them.
        preferred_element_type: dtype of the result, in which the products are summed.

    Returns:
        An array without this dimension.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1])))
        [12 34]
    """
    x, y = _pair("vecdot", x1, x2, "x1", "x2", preferred_element_type)
    dims = [canonical_axis("vecdot", axis, aval_of(v).ndim) for v in (x, y)]
    sizes = [aval_of(v).shape[d] for v, d in zip((x, y), dims, strict=True)]
    if sizes[0] != sizes[1]:
        raise _mismatch("vecdot", x, y, (dims[0], dims[1]))
    if dtypes.kind_of(aval_of(x).dtype) == "c":
        x = lax.conj(x)
    x, y = (moveaxis(v, d, -1) for v, d in zip((x, y), dims, strict=True))
    row = reshaped(x, (*x.shape[:-1], 1, sizes[0]))
    column = reshaped(y, (*y.shape, 1))
    product = plain(matmul)(
        row, column, precision=precision, preferred_element_type=preferred_element_type
    )
    return lax.squeeze(product, (-2, -1))


@compiled
def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker product: each element of `a` times the array `b`.

    Args:
        a: array or scalar.
        b: array or scalar.

    Returns:
        An array whose sizes are products of those of `a` and `b`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.kron(jnp.array([1, 10]), jnp.array([1, 2])))
        [ 1  2 10 20]
    """
    x, y = _pair("kron", a, b, "a", "b")
    left, right = aval_of(x).shape, aval_of(y).shape
    rank = max(len(left), len(right))
    left = (1,) * (rank - len(left)) + left
    right = (1,) * (rank - len(right)) + right
    x = reshaped(x, tuple(n for size in left for n in (size, 1)))
    y = reshaped(y, tuple(n for size in right for n in (1, size)))
    sizes = tuple(n * m for n, m in zip(left, right, strict=True))
    # Where one has a single row, all rows of the other would be as much as the result.
    many = all(type(n) is int for n in sizes) and math.prod(sizes) >= _MANY_ELEMENTS
    if many and min(math.prod(left[:-1]), math.prod(right[:-1])) > 1:
        x, y = (_whole_rows(v, left[-1], right[-1]) for v in (x, y))
    x, y = promoted_pair("kron", x, y)
    return reshaped(lax.mul(x, y), sizes)


def _whole_rows(x: Any, left: int, right: int) -> Any:
    """An array whose last dimensions are repeated to `left` and `right`, as one, in memory.

    XLA's loop over parts of rows takes three times as long as over whole ones.
    """
    shape = aval_of(x).shape[:-2]
    dims = tuple(range(len(shape) + 2))
    repeated = lax.broadcast_in_dim(x, (*shape, left, right), dims)
    return lax.optimization_barrier(reshaped(repeated, (*shape, left * right)))


@compiled_with("axisa", "axisb", "axisc", "axis")
def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """The cross product of vectors with three components (or two; the third is then zero).

    Args:
        a: array of vectors.
        b: array of vectors, which broadcasts with `a` in the other dimensions.
        axisa: the dimension of `a` that holds the components.
        axisb: the dimension of `b` that holds the components.
        axisc: the dimension of the result that holds the components.
        axis: overrides all three if given.

    Returns:
        An array of vectors; of only their third components if all vectors have two components.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0])))
        [0 0 1]
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = (convert(v, v.dtype) for v in _pair("cross", a, b, "a", "b"))
    require_kind("cross", x, "iufc", "numbers; write a.astype(int)")
    x = moveaxis(x, canonical_axis("cross", axisa, aval_of(x).ndim, "axisa"), 0)
    y = moveaxis(y, canonical_axis("cross", axisb, aval_of(y).ndim, "axisb"), 0)
    if x.shape[0] not in (2, 3) or y.shape[0] not in (2, 3):
        raise ValueError(
            f"cross needs vectors with 2 or 3 components, got {x.shape[0]} and {y.shape[0]}"
        )
    parts = [
        [lax.index_in_dim(v, i, keepdims=False) if i < v.shape[0] else None for i in range(3)]
        for v in (x, y)
    ]

    def product(i: int, j: int) -> Any:
        first, second = parts[0][i], parts[1][j]
        return (
            None
            if first is None or second is None
            else lax.mul(*promoted_pair("cross", first, second))
        )

    def component(i: int, j: int) -> Any:
        positive, negative = product(i, j), product(j, i)
        if positive is None and negative is None:
            return None
        if negative is None:
            return positive
        return lax.neg(negative) if positive is None else lax.sub(positive, negative)

    third = component(0, 1)
    if x.shape[0] == 2 and y.shape[0] == 2:
        return third
    stacked = lax.stack([component(1, 2), component(2, 0), third], axis=0)
    return moveaxis(stacked, 0, canonical_axis("cross", axisc, stacked.ndim, "axisc"))


@compiled
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply matrices by vectors; both may be stacked.

    Args:
        x1: array of matrices in its last two dimensions.
        x2: array of vectors in its last dimension; the others broadcast.

    Returns:
        An array of vectors.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([[1, 0], [0, 1]])))
        [[1 3]
         [2 4]]
    """
    vectors = value(array_like(x2, "matvec", "x2"))
    if not aval_of(vectors).ndim:
        raise ValueError("matvec needs vectors as x2, got a scalar")
    _check_matrices("matvec", x1, "x1")
    column = reshaped(vectors, (*aval_of(vectors).shape, 1))
    product = matmul(x1, column)
    return reshaped(product, aval_of(product).shape[:-1])


@compiled
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply conjugated vectors by matrices; both may be stacked.

    Args:
        x1: array of vectors in its last dimension.
        x2: array of matrices in its last two dimensions; the others broadcast.

    Returns:
        An array of vectors.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.vecmat(jnp.array([1, 1]), jnp.array([[1, 2], [3, 4]])))
        [4 6]
    """
    vectors = value(array_like(x1, "vecmat", "x1"))
    if not aval_of(vectors).ndim:
        raise ValueError("vecmat needs vectors as x1, got a scalar")
    _check_matrices("vecmat", x2, "x2")
    if dtypes.kind_of(aval_of(vectors).dtype) == "c":
        vectors = lax.conj(vectors)
    shape = aval_of(vectors).shape
    product = matmul(reshaped(vectors, (*shape[:-1], 1, shape[-1])), x2)
    shape = aval_of(product).shape
    return reshaped(product, (*shape[:-2], shape[-1]))


def _check_matrices(function: str, x: Any, argument: str) -> None:
    rank = aval_of(array_like(x, function, argument)).ndim
    if rank < 2:
        raise ValueError(f"{function} needs matrices as {argument}, got an array of rank {rank}")
