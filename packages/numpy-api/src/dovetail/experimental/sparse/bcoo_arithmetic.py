"""Sums and products of BCOO arrays, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeVar

import numpy as np

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.experimental.sparse.bcoo_elements import require_bcoo, todense
from dovetail.experimental.sparse.bcoo_order import summed
from dovetail.experimental.sparse.bcoo_shapes import broadcast_to, common_layout, joined
from dovetail.experimental.sparse.coordinates import Coordinates
from dovetail.experimental.sparse.entries import (
    full_batch,
    gathered,
    keys_of,
    marked,
    masked,
    take_places,
)
from dovetail.experimental.sparse.layouts import position_dtype
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, value
from dovetail.extend.avals import aval_of, shape_of
from dovetail.typing import Array, ArrayLike

C = TypeVar("C", bound=Coordinates)
Shape = tuple[int, ...]


def common_shape(what: str, x: Shape, y: Shape) -> Shape:
    """The shape that two broadcast to.

    Raises:
        ValueError: they do not.
    """
    try:
        return tuple(np.broadcast_shapes(x, y))
    except ValueError:
        raise ValueError(f"{what}: shapes {x} and {y} do not broadcast") from None


def merged_if_repeated(mat: C) -> C:
    """The array with each position once."""
    return mat if mat.unique_indices else summed(mat, mat.nse)


def values_at(mat: Coordinates, dense: Any) -> Any:
    """The elements of a dense array, which is broadcast, at the positions of a sparse one."""
    layout = mat.layout
    shape = (1,) * (mat.ndim - aval_of(dense).ndim) + aval_of(dense).shape
    dense = dense.reshape(shape)
    n_batch, n_sparse = layout.n_batch, layout.n_sparse
    # Dimensions of size 1 are the same at every position.
    needed = [i for i in range(n_sparse) if shape[n_batch + i] != 1 or layout.sparse[i] == 1]
    gone = tuple(n_batch + i for i in range(n_sparse) if i not in needed)
    dense = lax.squeeze(dense, gone)
    if not needed:
        return jnp.expand_dims(dense, n_batch)
    indices = mat.indices[..., np.array(needed)]
    batch = np.broadcast_shapes(shape[:n_batch], indices.shape[:n_batch])
    dense = full_batch(dense, n_batch, batch)
    indices = full_batch(indices, n_batch, batch)
    return gathered(dense, indices, n_batch, range(n_batch, n_batch + len(needed)))


def with_dense(what: str, mat: C, dense: Any, operation: Callable[[Any, Any], Any]) -> C:
    """An operation with a dense array, of which 0 and anything give 0, such as a product."""
    shape = common_shape(what, mat.shape, shape_of(dense))
    mat = broadcast_to(mat, shape)
    if not shape_of(dense):
        return mat.with_data(operation(mat.data, dense))
    found = values_at(mat, jnp.asarray(dense))
    used = mat.used.reshape(*mat.used.shape, *[1] * mat.n_dense)
    # In unused places nothing is divided by 0.
    found = jnp.where(used, found, np.ones((), found.dtype))
    return mat.with_data(operation(mat.data, found))


def bcoo_multiply_dense(sp_mat: Coordinates, v: ArrayLike) -> Array:
    """The product of a BCOO array and a dense one, element by element.

    Args:
        sp_mat: a BCOO array.
        v: an array that broadcasts to its shape.

    Returns:
        The elements of the product at the positions of `sp_mat`.

    Raises:
        ValueError: `v` does not broadcast to the shape of `sp_mat`.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.bcoo_multiply_dense(sparse.eye(2), jnp.array([3.0, 4.0]))
        Array([3., 4.], dtype=float32)
    """
    require_bcoo("bcoo_multiply_dense", "sp_mat", sp_mat)
    dense = value(array_like(v, "bcoo_multiply_dense", "v"))
    if common_shape("bcoo_multiply_dense", sp_mat.shape, dense.shape) != sp_mat.shape:
        raise ValueError(
            f"bcoo_multiply_dense: v of shape {dense.shape} must broadcast to the shape "
            f"{sp_mat.shape} of the sparse array"
        )
    return with_dense("bcoo_multiply_dense", sp_mat, dense, jnp.multiply).data


def bcoo_multiply_sparse(lhs: C, rhs: C) -> C:
    """The product of two BCOO arrays, element by element.

    Args:
        lhs: a BCOO array.
        rhs: a BCOO array of a shape that broadcasts with that of `lhs`.

    Returns:
        A BCOO array with as many places as the operand that has fewer.

    Raises:
        ValueError: shapes do not broadcast.

    Differs:
        In JAX the result has as many places as there are pairs of stored elements.

        >>> from dovetail.experimental import sparse
        >>> sparse.eye(1000) * sparse.eye(1000)
        BCOO(float32[1000, 1000], nse=1000)

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.bcoo_multiply_sparse(sparse.eye(2), 3 * sparse.eye(2)).todense()
        Array([[3., 0.],
               [0., 3.]], dtype=float32)
    """
    require_bcoo("bcoo_multiply_sparse", "lhs", lhs)
    require_bcoo("bcoo_multiply_sparse", "rhs", rhs)
    shape = common_shape("bcoo_multiply_sparse", lhs.shape, rhs.shape)
    left, right = common_layout([broadcast_to(lhs, shape), broadcast_to(rhs, shape)])
    if left.nse <= right.nse:
        return _matched(left, right)
    return _matched(right, left)


def _matched(mat: C, other: C) -> C:
    """The elements of `mat`, each times the one of `other` at its position."""
    layout = mat.layout
    n_batch, batch = layout.n_batch, layout.batch
    if not layout.n_sparse:
        return mat.with_data(mat.data * jnp.sum(other.data, n_batch, keepdims=True))
    other = summed(other, other.nse)
    other_data = full_batch(other.data, n_batch, batch)
    dtype = position_dtype(np.promote_types(mat.indices.dtype, other.indices.dtype), layout.sparse)
    indices = full_batch(mat.indices.astype(dtype), n_batch, batch)
    others = full_batch(other.indices.astype(dtype), n_batch, batch)
    keys, _ = keys_of(indices, layout.sparse)
    other_keys, _ = keys_of(others, layout.sparse)
    place = _first_not_below(other_keys, keys, other.nse)
    found = mat.used & (place < other.nse)
    for key, other_key in zip(keys, other_keys, strict=True):
        found &= take_places(other_key, place, n_batch) == key
    factors = masked(take_places(other_data, place, n_batch), found)
    return mat.like(
        mat.data * factors,
        marked(indices, found, layout.sparse),
        mat.shape,
        unique_indices=mat.unique_indices,
    )


def _first_not_below(sorted_keys: list[Any], keys: list[Any], size: int) -> Any:
    """For each of some numbers the first place of sorted ones that is not below it.

    Both are lists of columns, compared as tuples. The search halves what is left at each step.
    """
    n_batch = keys[0].ndim - 1
    low = jnp.zeros(keys[0].shape, np.int32)
    high = jnp.full(keys[0].shape, size, np.int32)
    for _ in range(size.bit_length()):
        middle = (low + high) // 2
        below = jnp.zeros(low.shape, bool)
        equal = open_ = low < high
        for column, key in zip(sorted_keys, keys, strict=True):
            there = take_places(column, middle, n_batch)
            below |= equal & (there < key)
            equal &= there == key
        low = jnp.where(below, middle + 1, low)
        high = jnp.where(open_ & ~below, middle, high)
    return low


def added(what: str, x: C, y: C, sign: int = 1) -> C:
    """The sum or difference of two sparse arrays."""
    dtype = dtypes.result_type(x.data, y.data)
    operation = jnp.add if sign > 0 else jnp.subtract
    if x.indices is y.indices and x.shape == y.shape:
        return x.with_data(operation(x.data, y.data))
    shape = common_shape(what, x.shape, y.shape)
    left, right = common_layout([broadcast_to(x, shape), broadcast_to(y, shape)])
    data = right.data.astype(dtype)
    right = right.with_data(data if sign > 0 else -data)
    return joined([left.with_data(left.data.astype(dtype)), right], shape)


def added_to_dense(what: str, mat: Coordinates, dense: Any) -> Any:
    """The sum of a sparse and a dense array, which has the shape of the dense one."""
    shape = shape_of(dense)
    if common_shape(what, mat.shape, shape) != shape:
        refuse_dense(
            f"{what} of a sparse array of shape {mat.shape} and a dense one of shape {shape}"
        )
    return jnp.add(todense(broadcast_to(mat, shape)), dense)


def refuse_dense(what: str) -> NoReturn:
    """Refuse what would have no zeros."""
    raise NotImplementedError(
        f"{what} is dense, which would store what is not stored now; if you want that, use "
        "sparse.todense(mat) or mat.todense()"
    )
