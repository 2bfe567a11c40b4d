"""BCOO arrays in other shapes: reshaped, broadcast, squeezed, reversed, concatenated, summed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.experimental.sparse.bcoo_elements import require_bcoo
from dovetail.experimental.sparse.bcoo_layouts import relaid, transposed
from dovetail.experimental.sparse.bcoo_order import full
from dovetail.experimental.sparse.coordinates import Coordinates
from dovetail.experimental.sparse.entries import inside, marked, masked
from dovetail.experimental.sparse.layouts import Layout, position_dtype
from dovetail.extend import dtypes
from dovetail.extend.arguments import canonical_axes, canonical_axis, canonical_shape
from dovetail.typing import Sharding

C = TypeVar("C", bound=Coordinates)
Shape = tuple[int, ...]


def with_columns(
    mat: C,
    columns: Sequence[Any],
    sizes: Sequence[int],
    shape: Sequence[int],
    used: Any,
    **flags: bool,
) -> C:
    """The elements of `mat` at other positions, of which not all may be.

    Args:
        mat: its elements are those of the result.
        columns: the positions in each dimension, of shape (*batch, nse).
        sizes: of these dimensions.
        shape: of the result.
        used: which places are used.
        **flags: what is known of the positions.
    """
    if not columns:
        indices = jnp.zeros((*mat.indices.shape[:-1], 0), mat.indices.dtype)
        return mat.like(masked(mat.data, used), indices, shape, **flags)
    dtype = position_dtype(mat.indices.dtype, tuple(sizes))
    stacked = jnp.stack([column.astype(dtype) for column in columns], -1)
    return mat.like(mat.data, marked(stacked, used, sizes), shape, **flags)


# ----------------------------------------------------------------------------- reshape


def _groups(old: Shape, new: Shape) -> list[tuple[list[int], list[int]]]:
    """The fewest dimensions at a time that are as large before as after, in order."""
    groups = []
    i = j = 0
    while i < len(old) or j < len(new):
        first, second = [], []
        a = b = 1
        while True:
            if i < len(old) and (a <= b or j == len(new)):
                first.append(i)
                a *= old[i]
                i += 1
            elif j < len(new):
                second.append(j)
                b *= new[j]
                j += 1
            if a == b or (i == len(old) and j == len(new)):
                break
        groups.append((first, second))
    return groups


def _wide(dtype: Any, size: int) -> Any:
    """A dtype that numbers all positions."""
    if size <= dtypes.iinfo(dtype).max:
        return dtype
    if size < 2**31:
        return np.dtype(np.int32)
    wide = dtypes.canonicalize_dtype(np.dtype(np.int64))
    if wide.itemsize < 8:
        raise OverflowError(
            f"bcoo_reshape: positions up to {size} need integers of 64 bits; set the option "
            "enable_x64"
        )
    return wide


def reshaped(mat: C, new_sizes: Shape, n_batch: int, n_dense: int) -> C:
    """The array in another shape, whose batch dimensions are as large as before, and so on."""
    layout = mat.layout
    batch, dense = new_sizes[:n_batch], new_sizes[len(new_sizes) - n_dense :]
    sizes = new_sizes[n_batch : len(new_sizes) - n_dense]
    data, indices = mat.data, mat.indices
    if batch != layout.batch:
        # Dimensions of size 1 cannot stand for others any more.
        data, indices = full(layout, data, indices)
        data = data.reshape(*batch, *data.shape[layout.n_batch :])
        indices = indices.reshape(*batch, *indices.shape[layout.n_batch :])
    data = data.reshape(*data.shape[: n_batch + 1], *dense)
    made = mat.like(data, indices, (*batch, *layout.sparse, *dense))
    if sizes == layout.sparse:
        flags = {"indices_sorted": mat.indices_sorted, "unique_indices": mat.unique_indices}
        return mat.like(data, indices, new_sizes, **flags)
    columns: list[Any] = [None] * len(sizes)
    for before, after in _groups(layout.sparse, sizes):
        size = math.prod(layout.sparse[d] for d in before)
        dtype = _wide(indices.dtype, size)
        number = jnp.zeros(indices.shape[:-1], dtype)
        for d in before:
            number = number * layout.sparse[d] + indices[..., d].astype(dtype)
        for d in reversed(after):
            length = jnp.full_like(number, max(sizes[d], 1))
            columns[d] = lax.rem(number, length)
            number = lax.div(number, length)
    return with_columns(
        made,
        columns,
        sizes,
        new_sizes,
        made.used,
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def _like_counts(layout: Layout, new_sizes: Shape) -> tuple[int, int] | None:
    """How many batch and dense dimensions a new shape has if each kind stays as large."""
    batch, dense = math.prod(layout.batch), math.prod(layout.dense)
    sparse = math.prod(layout.sparse)
    n = len(new_sizes)
    fitting = [
        (i, j)
        for i in range(n + 1)
        for j in range(n + 1 - i)
        if math.prod(new_sizes[:i]) == batch
        and math.prod(new_sizes[n - j :]) == dense
        and math.prod(new_sizes[i : n - j]) == sparse
        and (i > 0) == (layout.n_batch > 0)
        and (j > 0) == (layout.n_dense > 0)
    ]
    if not fitting:
        return None
    return min(fitting, key=lambda c: abs(c[0] - layout.n_batch) + abs(c[1] - layout.n_dense))


def bcoo_reshape(
    mat: C,
    *,
    new_sizes: Sequence[int],
    dimensions: Sequence[int] | None = None,
    sharding: Sharding | None = None,
) -> C:
    """The elements of a BCOO array, in row-major order, in another shape.

    Args:
        mat: a BCOO array.
        new_sizes: the shape, with as many elements.
        dimensions: an order of the dimensions of `mat` to take before.
        sharding: must be None.

    Returns:
        A BCOO array. Its batch and dense dimensions are those of `mat`, if the shape can be cut so;
        otherwise all dimensions are sparse.

    Raises:
        TypeError: the shape has another number of elements.

    Differs:
        JAX raises a NotImplementedError where the new shape mixes kinds of dimensions.

        >>> from dovetail.experimental import sparse
        >>> mat = sparse.BCOO.fromdense(jnp.ones((2, 3)), n_batch=1)
        >>> mat.reshape(3, 2)
        BCOO(float32[3, 2], nse=6)

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.bcoo_reshape(sparse.eye(4), new_sizes=(2, 8))
        BCOO(float32[2, 8], nse=4)
    """
    require_bcoo("bcoo_reshape", "mat", mat)
    if sharding is not None:
        raise NotImplementedError("bcoo_reshape: sharding must be None")
    if dimensions is not None:
        mat = transposed(mat, canonical_axes("bcoo_reshape", dimensions, mat.ndim, "dimensions"))
    shape = canonical_shape("bcoo_reshape", new_sizes, "new_sizes")
    if math.prod(shape) != mat.size:
        raise TypeError(
            f"bcoo_reshape: an array of shape {mat.shape} has {mat.size} elements, the new shape "
            f"{shape} has {math.prod(shape)}"
        )
    found = _like_counts(mat.layout, shape)
    if found is None:
        mat, found = relaid(mat, 0, 0), (0, 0)
    return reshaped(mat, shape, *found)


def bcoo_squeeze(arr: C, *, dimensions: Sequence[int]) -> C:
    """A BCOO array without some of its dimensions of size 1.

    Args:
        arr: a BCOO array.
        dimensions: which to leave out.

    Raises:
        ValueError: one has another size.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.bcoo_squeeze(sparse.empty((1, 3)), dimensions=(0,)).shape
        (3,)
    """
    require_bcoo("bcoo_squeeze", "arr", arr)
    gone = canonical_axes("bcoo_squeeze", tuple(dimensions), arr.ndim, "dimensions")
    for d in gone:
        if arr.shape[d] != 1:
            raise ValueError(
                f"bcoo_squeeze: dimension {d} of an array of shape {arr.shape} has not the size 1"
            )
    return squeezed(arr, gone)


def squeezed(arr: C, gone: Sequence[int]) -> C:
    """A BCOO array without some of its dimensions of size 1."""
    kept = [d for d in range(arr.ndim) if d not in gone]
    n_batch = sum(d < arr.n_batch for d in kept)
    n_dense = sum(d >= arr.ndim - arr.n_dense for d in kept)
    return reshaped(arr, tuple(arr.shape[d] for d in kept), n_batch, n_dense)


# ----------------------------------------------------------------------------- broadcast


def bcoo_broadcast_in_dim(
    mat: C,
    *,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    sharding: Sharding | None = None,
) -> C:
    """A BCOO array repeated along new dimensions, and along those of size 1.

    Args:
        mat: a BCOO array.
        shape: of the result.
        broadcast_dimensions: for each dimension of `mat`, in increasing order, which one of the
            result it is.
        sharding: must be None.

    Returns:
        A BCOO array. New dimensions in front are batch dimensions, whose elements are stored once;
        those among dense ones are dense; others are sparse, and each element is stored as often as
        it is repeated.

    Raises:
        ValueError: the shapes do not fit.

    Differs:
        JAX has no new sparse dimensions of more than one element.

        >>> from dovetail.experimental import sparse
        >>> mat = sparse.eye(2)
        >>> sparse.bcoo_broadcast_in_dim(mat, shape=(2, 3, 2), broadcast_dimensions=(0, 2))
        BCOO(float32[2, 3, 2], nse=6)

    Example:
        >>> from dovetail.experimental import sparse
        >>> mat = sparse.eye(2)
        >>> sparse.bcoo_broadcast_in_dim(mat, shape=(5, 2, 2), broadcast_dimensions=(1, 2))
        BCOO(float32[5, 2, 2], nse=2, n_batch=1)
    """
    require_bcoo("bcoo_broadcast_in_dim", "mat", mat)
    if sharding is not None:
        raise NotImplementedError("bcoo_broadcast_in_dim: sharding must be None")
    sizes = canonical_shape("bcoo_broadcast_in_dim", shape)
    dims = tuple(int(d) for d in broadcast_dimensions)
    fits = (
        len(dims) == mat.ndim and list(dims) == sorted({*dims}) and {*dims} <= {*range(len(sizes))}
    )
    if not fits or any(n not in (1, sizes[d]) for n, d in zip(mat.shape, dims, strict=True)):
        raise ValueError(
            f"bcoo_broadcast_in_dim: an array of shape {mat.shape} does not go to the shape "
            f"{sizes} with broadcast_dimensions {dims}"
        )
    return _broadcast(mat, sizes, dims)


def _broadcast(mat: C, shape: Shape, dims: Shape) -> C:
    layout = mat.layout
    batch_dims, rest = dims[: layout.n_batch], dims[layout.n_batch :]
    sparse_dims, dense_dims = rest[: layout.n_sparse], rest[layout.n_sparse :]
    # Where each kind begins: what stands before the first sparse dimension is of the batch.
    first = rest[0] if rest else len(shape)
    last = dense_dims[0] if dense_dims else len(shape)
    if sparse_dims:
        first = sparse_dims[0]
    data, indices = mat.data, mat.indices

    new_batch = [1] * first
    for i, d in enumerate(batch_dims):
        new_batch[d] = data.shape[i]
    data = data.reshape(*new_batch, *data.shape[layout.n_batch :])
    for i, d in enumerate(batch_dims):
        new_batch[d] = indices.shape[i]
    indices = indices.reshape(*new_batch, *indices.shape[layout.n_batch :])

    new_sparse = shape[first:last]
    old = {d - first: i for i, d in enumerate(sparse_dims)}
    repeated = [i for i, n in enumerate(new_sparse) if i not in old or layout.sparse[old[i]] != n]
    times = [new_sparse[i] for i in repeated]
    lead = data.shape[: first + 1]
    data = data.reshape(*lead, *[1] * len(times), *layout.dense)
    data = jnp.broadcast_to(data, (*lead, *times, *layout.dense))
    data = data.reshape(*lead[:-1], lead[-1] * math.prod(times), *layout.dense)

    new_dense = shape[last:]
    spread = [1] * len(new_dense)
    for i, d in enumerate(dense_dims):
        spread[d - last] = layout.dense[i]
    data = data.reshape(*data.shape[: first + 1], *spread)
    data = jnp.broadcast_to(data, (*data.shape[: first + 1], *new_dense))
    if not repeated and list(old.values()) == list(range(len(new_sparse))):
        flags = {"indices_sorted": mat.indices_sorted, "unique_indices": mat.unique_indices}
        return mat.like(data, indices, shape, **flags)

    grid = (*indices.shape[:-1], *times)
    dtype = position_dtype(indices.dtype, new_sparse)

    def spread_out(x: Any) -> Any:
        return jnp.broadcast_to(x.reshape(*x.shape, *[1] * len(times)), grid)

    columns = []
    for i in range(len(new_sparse)):
        if i in repeated:
            at = indices.ndim - 1 + repeated.index(i)
            columns.append(lax.broadcasted_iota(dtype, grid, at))
        else:
            columns.append(spread_out(indices[..., old[i]]))
    flat = (*grid[:first], grid[first] * math.prod(times))
    used = spread_out(inside(indices, layout.sparse)).reshape(flat)
    widened = mat.like(data, jnp.zeros((*flat, 0), indices.dtype), shape)
    return with_columns(
        widened,
        [column.reshape(flat) for column in columns],
        new_sparse,
        shape,
        used,
        unique_indices=mat.unique_indices,
    )


def broadcast_to(mat: C, shape: Shape) -> C:
    """A BCOO array repeated to a shape, as NumPy does."""
    if mat.shape == shape:
        return mat
    return _broadcast(mat, shape, tuple(range(len(shape) - mat.ndim, len(shape))))


# ----------------------------------------------------------------------------- rev, concatenate


def bcoo_rev(operand: C, dimensions: Sequence[int]) -> C:
    """A BCOO array whose elements stand in reverse order along some dimensions.

    Args:
        operand: a BCOO array.
        dimensions: which.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.bcoo_rev(sparse.eye(2), (0,)).todense()
        Array([[0., 1.],
               [1., 0.]], dtype=float32)
    """
    require_bcoo("bcoo_rev", "operand", operand)
    dims = canonical_axes("bcoo_rev", tuple(dimensions), operand.ndim, "dimensions")
    layout = operand.layout
    n_batch, n_sparse = layout.n_batch, layout.n_sparse
    batch = tuple(d for d in dims if d < n_batch)
    dense = tuple(d - n_sparse + 1 for d in dims if d >= n_batch + n_sparse)
    data = lax.rev(operand.data, (*batch, *dense))
    indices = lax.rev(operand.indices, batch)
    made = operand.like(
        data,
        indices,
        operand.shape,
        indices_sorted=operand.indices_sorted,
        unique_indices=operand.unique_indices,
    )
    turned = {d - n_batch for d in dims if n_batch <= d < n_batch + n_sparse}
    if not turned:
        return made
    columns = [
        layout.sparse[i] - 1 - indices[..., i] if i in turned else indices[..., i]
        for i in range(n_sparse)
    ]
    return with_columns(
        made,
        columns,
        layout.sparse,
        operand.shape,
        made.used,
        unique_indices=operand.unique_indices,
    )


def common_layout(mats: Sequence[C]) -> list[C]:
    """Arrays with the same numbers of batch and dense dimensions, the fewest of any."""
    n_batch = min(mat.n_batch for mat in mats)
    n_dense = min(mat.n_dense for mat in mats)
    return [relaid(mat, n_batch, n_dense) for mat in mats]


def joined(mats: Sequence[C], shape: Shape) -> C:
    """The sum of arrays of one shape and layout, whose elements are stored side by side."""
    dtype = np.result_type(*(mat.indices.dtype for mat in mats))
    parts = [full(mat.layout, mat.data, mat.indices.astype(dtype)) for mat in mats]
    at = mats[0].n_batch
    data = jnp.concatenate([data for data, _ in parts], at)
    return mats[0].like(data, jnp.concatenate([indices for _, indices in parts], at), shape)


def bcoo_concatenate(operands: Sequence[C], *, dimension: int) -> C:
    """BCOO arrays one behind the other.

    Args:
        operands: BCOO arrays, of shapes that differ in `dimension` alone.
        dimension: along which they are joined.

    Returns:
        A BCOO array, with as many batch and dense dimensions as the operand that has fewest.

    Raises:
        ValueError: there is none, or shapes do not fit.

    Differs:
        Operands may have different numbers of batch and dense dimensions. What unused places hold
        is never in the result; in JAX the position of such a place may become one that is used.

        >>> from dovetail.experimental import sparse
        >>> mat = sparse.BCOO(([9.0], [[0, 3]]), shape=(2, 3))
        >>> float(sparse.bcoo_concatenate([mat, mat], dimension=1).todense().sum())
        0.0

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.bcoo_concatenate([sparse.eye(2), sparse.eye(2)], dimension=0)
        BCOO(float32[4, 2], nse=4)
    """
    mats = list(operands)
    if not mats:
        raise ValueError("bcoo_concatenate requires at least one array")
    for i, mat in enumerate(mats):
        require_bcoo("bcoo_concatenate", f"operands[{i}]", mat)
    d = canonical_axis("bcoo_concatenate", dimension, mats[0].ndim, "dimension")
    rest = {(mat.ndim, mat.shape[:d], mat.shape[d + 1 :]) for mat in mats}
    if len(rest) > 1:
        raise ValueError(
            f"bcoo_concatenate: shapes must be alike but for dimension {d}, got "
            f"{', '.join(str(mat.shape) for mat in mats)}"
        )
    mats = common_layout(mats)
    size = sum(mat.shape[d] for mat in mats)
    shape = (*mats[0].shape[:d], size, *mats[0].shape[d + 1 :])
    if d < mats[0].n_batch:
        return _stacked(mats, shape, d)
    moved, offset = [], 0
    for mat in mats:
        moved.append(_placed(mat, shape, d, offset))
        offset += mat.shape[d]
    result = joined(moved, shape)
    result.unique_indices = all(m.unique_indices for m in mats) and d < len(shape) - result.n_dense
    return result


def _placed(mat: C, shape: Shape, d: int, offset: int) -> C:
    """The array as a part of a larger one."""
    layout = mat.layout
    column = d - layout.n_batch
    if column < layout.n_sparse:
        sizes = shape[layout.n_batch : layout.n_batch + layout.n_sparse]
        dtype = position_dtype(mat.indices.dtype, sizes)
        columns = [mat.indices[..., i].astype(dtype) for i in range(layout.n_sparse)]
        columns[column] = columns[column] + np.array(offset, dtype)
        return with_columns(mat, columns, sizes, shape, mat.used)
    padding = [(0, 0)] * mat.data.ndim
    padding[d - layout.n_sparse + 1] = (offset, shape[d] - offset - mat.shape[d])
    return mat.like(jnp.pad(mat.data, padding), mat.indices, shape)


def _stacked(mats: Sequence[C], shape: Shape, d: int) -> C:
    """Arrays one behind the other along a batch dimension."""
    nse = max(mat.nse for mat in mats)
    at = mats[0].n_batch
    dtype = np.result_type(*(position_dtype(mat.indices.dtype, mat.layout.sparse) for mat in mats))
    datas, positions = [], []
    for mat in mats:
        layout = mat.layout
        data, indices = full(layout, mat.data, mat.indices.astype(dtype))
        more = [(0, 0)] * at + [(0, nse - mat.nse)]
        datas.append(jnp.pad(data, more + [(0, 0)] * layout.n_dense))
        unused = jnp.broadcast_to(
            np.array(layout.sparse, dtype), (*layout.batch, nse - mat.nse, layout.n_sparse)
        )
        positions.append(jnp.concatenate([indices, unused], at))
    return mats[0].like(
        jnp.concatenate(datas, d),
        jnp.concatenate(positions, d),
        shape,
        indices_sorted=all(mat.indices_sorted for mat in mats),
        unique_indices=all(mat.unique_indices for mat in mats),
    )


def padded(mat: C, config: Sequence[tuple[int, int, int]]) -> C:
    """The array with zeros before, behind and between its elements, as `lax.pad` puts them."""
    layout = mat.layout
    n_batch, n_sparse = layout.n_batch, layout.n_sparse
    batch, sparse = config[:n_batch], config[n_batch : n_batch + n_sparse]
    if any(c != (0, 0, 0) for c in batch):
        return padded(relaid(mat, 0, layout.n_dense), config)
    dense = config[n_batch + n_sparse :]
    if any(c != (0, 0, 0) for c in dense):
        zero = np.zeros((), mat.data.dtype)
        whole = [(0, 0, 0)] * (n_batch + 1)
        mat = mat.with_data(lax.pad(mat.data, zero, [*whole, *dense]))
    shape = tuple(
        low + high + n + max(n - 1, 0) * between
        for n, (low, high, between) in zip(layout.shape, config, strict=True)
    )
    sizes = shape[n_batch : n_batch + n_sparse]
    used, columns = mat.used, []
    dtype = position_dtype(mat.indices.dtype, sizes)
    for i, (low, _, between) in enumerate(sparse):
        column = mat.indices[..., i].astype(dtype) * np.array(between + 1, dtype)
        column = column + np.array(low, dtype)
        used &= (column >= 0) & (column < sizes[i])
        columns.append(column)
    return with_columns(mat, columns, sizes, shape, used, unique_indices=mat.unique_indices)


# ----------------------------------------------------------------------------- sums


def bcoo_reduce_sum(mat: C, *, axes: Sequence[int]) -> C:
    """The sum of a BCOO array over some dimensions.

    Args:
        mat: a BCOO array.
        axes: which.

    Returns:
        A BCOO array, in which positions may be there several times.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.bcoo_reduce_sum(sparse.eye(3), axes=(0,)).todense()
        Array([1., 1., 1.], dtype=float32)
    """
    require_bcoo("bcoo_reduce_sum", "mat", mat)
    return summed_over(mat, canonical_axes("bcoo_reduce_sum", tuple(axes), mat.ndim, "axes"))


def summed_over(mat: C, axes: Shape) -> C:
    """The sum over some dimensions."""
    layout = mat.layout
    n_batch, n_sparse = layout.n_batch, layout.n_sparse
    kept = tuple(n for d, n in enumerate(mat.shape) if d not in axes)
    dense = tuple(d - n_sparse + 1 for d in axes if d >= n_batch + n_sparse)
    data, indices = mat.data, mat.indices
    if dense:
        data = jnp.sum(data, dense, dtype=data.dtype)
    shape = tuple(n for d, n in enumerate(mat.shape) if d < n_batch + n_sparse or d not in axes)
    flags = {"indices_sorted": mat.indices_sorted, "unique_indices": mat.unique_indices}
    mat = mat.like(data, indices, shape, **flags)
    batch = [d for d in axes if d < n_batch]
    if batch:
        mat = _merged_batch(mat, batch)
    columns = [i for i in range(n_sparse) if n_batch + i not in axes]
    if len(columns) == n_sparse:
        return mat
    sizes = [layout.sparse[i] for i in columns]
    taken = [mat.indices[..., i] for i in columns]
    return with_columns(mat, taken, sizes, kept, mat.used)


def _merged_batch(mat: C, gone: Sequence[int]) -> C:
    """The sum over batch dimensions: what they hold is stored side by side."""
    layout = mat.layout
    data, indices = full(layout, mat.data, mat.indices)
    kept = [d for d in range(layout.n_batch) if d not in gone]
    n = layout.n_batch
    sizes = [layout.shape[d] for d in kept]
    nse = layout.nse * math.prod(layout.shape[d] for d in gone)
    data = jnp.transpose(data, (*kept, *gone, *range(n, data.ndim)))
    indices = jnp.transpose(indices, (*kept, *gone, n, n + 1))
    return mat.like(
        data.reshape(*sizes, nse, *layout.dense),
        indices.reshape(*sizes, nse, layout.n_sparse),
        (*sizes, *layout.shape[n:]),
    )
