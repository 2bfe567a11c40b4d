"""From dense to BCOO and back: `bcoo_todense_p`, `bcoo_extract_p`, `bcoo_fromdense_p`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.errors import ConcretizationTypeError
from dovetail.experimental.sparse.coordinates import Coordinates
from dovetail.experimental.sparse.entries import (
    begins_of,
    full_batch,
    gathered,
    marked,
    masked,
    order_of,
    scattered,
    volume,
)
from dovetail.experimental.sparse.layouts import (
    Layout,
    SparseInfo,
    bcoo_layout,
    index_dtype_for,
    require_positions,
)
from dovetail.experimental.sparse.primitives import BatchedRules, batch_size, made
from dovetail.extend.arguments import array_like, integer, value
from dovetail.extend.avals import Tracer, Zero, aval_of, make_aval
from dovetail.typing import ArrayLike

Shape = tuple[int, ...]


def places(layout: Layout, indices: Any) -> list[tuple[Shape, int, Shape]]:
    """For NumPy: batch index, place and position of each used place."""
    indices = np.broadcast_to(indices, (*layout.batch, *np.shape(indices)[layout.n_batch :]))
    found = []
    for batch in np.ndindex(*layout.batch):
        for k in range(layout.nse):
            position = tuple(int(i) for i in indices[(*batch, k)])
            if all(0 <= i < n for i, n in zip(position, layout.sparse, strict=True)):
                found.append((batch, k, position))
    return found


class _ToDense(BatchedRules):
    """The sums of elements at their positions."""

    name = "bcoo_todense"
    linear = (0,)

    def formula(self, data: Any, indices: Any, *, spinfo: SparseInfo) -> Any:
        layout = bcoo_layout(self.name, aval_of(data), aval_of(indices), spinfo.shape)
        n_batch = layout.n_batch
        if not layout.n_sparse:
            return full_batch(jnp.sum(data, n_batch, dtype=data.dtype), n_batch, layout.batch)
        return scattered(
            full_batch(data, n_batch, layout.batch),
            full_batch(indices, n_batch, layout.batch),
            spinfo.shape,
            n_batch,
            indices_sorted=spinfo.indices_sorted,
            unique_indices=spinfo.unique_indices,
        )

    def abstract(self, data: Any, indices: Any, *, spinfo: SparseInfo) -> Any:
        bcoo_layout(self.name, data, indices, spinfo.shape)
        return make_aval(spinfo.shape, data.dtype)

    def reference(self, data: Any, indices: Any, *, spinfo: SparseInfo) -> Any:
        layout = bcoo_layout(self.name, np.asarray(data), np.asarray(indices), spinfo.shape)
        data = np.broadcast_to(data, (*layout.batch, *np.shape(data)[layout.n_batch :]))
        result = np.zeros(spinfo.shape, data.dtype)
        for batch, k, position in places(layout, indices):
            result[(*batch, *position)] += data[(*batch, k)]
        return result

    def batched_params(self, size: int, **params: Any) -> dict[str, Any]:
        return {"spinfo": batched_info(size, params["spinfo"])}


def batched_info(size: int, info: SparseInfo) -> SparseInfo:
    """What is known of a batch of sparse arrays."""
    return info._replace(shape=(size, *info.shape))


bcoo_todense_p: Final = made(_ToDense())


def todense(mat: Coordinates) -> Any:
    """The dense array."""
    return bcoo_todense_p.bind(mat.data, mat.indices, spinfo=mat.info)


def first_of_each(indices: Any, sizes: Sequence[int]) -> Any:
    """Which places are the first ones of their positions, of shape (*batch, nse)."""
    shape = aval_of(indices).shape[:-1]
    order, keys, _ = order_of(indices, sizes)
    begins = begins_of(keys, shape)
    return scattered(begins.astype(np.int32), order[..., None], shape, len(shape) - 1) > 0


class _Extract(BatchedRules):
    """Elements of a dense array at positions, 0 in unused places.

    Unless positions are known to differ, all but the first of each are 0.
    """

    name = "bcoo_extract"
    linear = (1,)
    dense_operands = (1,)

    def formula(self, indices: Any, arr: Any, *, assume_unique: bool) -> Any:
        n_batch, n_sparse = self._split(aval_of(indices), aval_of(arr))
        shape = aval_of(arr).shape
        batch, sparse = shape[:n_batch], shape[n_batch : n_batch + n_sparse]
        indices = full_batch(indices, n_batch, batch)
        found = gathered(arr, indices, n_batch, range(n_batch, n_batch + n_sparse))
        return found if assume_unique else masked(found, first_of_each(indices, sparse))

    def _split(self, indices: Any, arr: Any) -> tuple[int, int]:
        """The numbers of batch and of sparse dimensions, checked."""
        require_positions(self.name, "indices", indices)
        n_batch, n_sparse = indices.ndim - 2, indices.shape[-1] if indices.ndim else 0
        fits = n_batch >= 0 and n_batch + n_sparse <= arr.ndim
        if not fits or any(
            n not in (1, size)
            for n, size in zip(indices.shape[:n_batch], arr.shape[:n_batch], strict=False)
        ):
            raise ValueError(
                f"{self.name}: indices of shape (*batch, nse, n_sparse) must fit the array, got "
                f"{indices.shape} for an array of shape {arr.shape}"
            )
        return n_batch, n_sparse

    def abstract(self, indices: Any, arr: Any, *, assume_unique: bool) -> Any:
        n_batch, n_sparse = self._split(indices, arr)
        shape = (*arr.shape[:n_batch], indices.shape[-2], *arr.shape[n_batch + n_sparse :])
        return make_aval(shape, arr.dtype)

    def reference(self, indices: Any, arr: Any, *, assume_unique: bool) -> Any:
        indices, arr = np.asarray(indices), np.asarray(arr)
        n_batch, n_sparse = self._split(indices, arr)
        nse = indices.shape[-2]
        dense = arr.shape[n_batch + n_sparse :]
        layout = Layout(n_batch, n_sparse, len(dense), nse, arr.shape)
        result = np.zeros((*arr.shape[:n_batch], nse, *dense), arr.dtype)
        seen = set()
        for batch, k, position in places(layout, indices):
            if assume_unique or (batch, position) not in seen:
                result[(*batch, k)] = arr[(*batch, *position)]
            seen.add((batch, position))
        return result

    def batched_params(self, size: int, **params: Any) -> dict[str, Any]:
        return params


bcoo_extract_p: Final = made(_Extract())


def extracted(indices: Any, arr: Any, assume_unique: bool = True) -> Any:
    """Elements of a dense array at positions."""
    return bcoo_extract_p.bind(indices, arr, assume_unique=assume_unique)


def bcoo_extract(
    sparr: Coordinates, arr: ArrayLike, *, assume_unique: bool | None = None
) -> Coordinates:
    """The elements of a dense array at the positions of a sparse one.

    Args:
        sparr: a BCOO array, whose positions are used.
        arr: a dense array of its shape.
        assume_unique: whether no position is there twice. Otherwise the first of those that are
            equal gets the element, and the others 0. By default what `sparr` says.

    Returns:
        A BCOO array with elements of `arr`.

    Raises:
        ValueError: the shapes differ.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.bcoo_extract(sparse.eye(2), jnp.array([[1, 2], [3, 4]])).data
        Array([1, 4], dtype=int32)
    """
    require_bcoo("bcoo_extract", "sparr", sparr)
    dense = value(array_like(arr, "bcoo_extract", "arr"))
    if dense.shape != sparr.shape:
        raise ValueError(
            f"bcoo_extract: arr must have the shape of sparr, {sparr.shape}, got {dense.shape}"
        )
    unique = sparr.unique_indices if assume_unique is None else bool(assume_unique)
    return sparr.with_data(extracted(sparr.indices, dense, unique))


def require_bcoo(what: str, name: str, mat: Any) -> None:
    """Refuse what is no BCOO array."""
    if not isinstance(mat, Coordinates):
        raise TypeError(
            f"{what} requires {name} to be a BCOO array, got {type(mat).__name__}; "
            "BCOO.fromdense makes one of a dense array"
        )


class _FromDense(BatchedRules):
    """Elements other than 0 of a dense array, and their positions in order."""

    name = "bcoo_fromdense"
    multiple_results = True
    dense_operands = (0,)

    def formula(
        self, mat: Any, *, nse: int, n_batch: int, n_dense: int, index_dtype: Any
    ) -> tuple[Any, Any]:
        shape = aval_of(mat).shape
        n_sparse = len(shape) - n_batch - n_dense
        sizes = shape[n_batch : n_batch + n_sparse]
        nonzero = (mat != 0).any(tuple(range(len(shape) - n_dense, len(shape))))
        indices = positions_where(nonzero, n_batch, nse, index_dtype)
        if not sizes:
            # There is one position, which the first place has.
            first = jnp.arange(nse) == 0
            wide = jnp.expand_dims(mat, n_batch)
            return masked(wide, first.reshape(*[1] * n_batch, nse)), indices
        return gathered(mat, indices, n_batch, range(n_batch, n_batch + len(sizes))), indices

    def abstract(
        self, mat: Any, *, nse: int, n_batch: int, n_dense: int, index_dtype: Any
    ) -> list[Any]:
        n_sparse = mat.ndim - n_batch - n_dense
        batch = mat.shape[:n_batch]
        return [
            make_aval((*batch, nse, *mat.shape[n_batch + n_sparse :]), mat.dtype),
            make_aval((*batch, nse, n_sparse), np.dtype(index_dtype)),
        ]

    def reference(
        self, mat: Any, *, nse: int, n_batch: int, n_dense: int, index_dtype: Any
    ) -> list[Any]:
        mat = np.asarray(mat)
        batch, sparse, dense = split_shape(mat.shape, n_batch, n_dense)
        data = np.zeros((*batch, nse, *dense), mat.dtype)
        indices = np.empty((*batch, nse, len(sparse)), index_dtype)
        indices[...] = np.array(sparse, index_dtype)
        for at in np.ndindex(*batch):
            found = [p for p in np.ndindex(*sparse) if np.any(mat[(*at, *p)] != 0)]
            for k, position in enumerate(itertools.islice(found, nse)):
                data[(*at, k)] = mat[(*at, *position)]
                indices[(*at, k)] = position
        return [data, indices]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        data, indices = bcoo_fromdense_p.bind(*primals, **params)
        unique = indices.shape[-1] > 0  # the only position of no dimension is in all places
        return [data, indices], [extracted(indices, tangents[0], unique), Zero.of(indices)]

    def batch(
        self, operands: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        batch_size(operands, dims)
        (mat,), (dim,) = operands, dims
        assert dim is not None
        params["n_batch"] += 1
        return bcoo_fromdense_p.bind(jnp.moveaxis(mat, dim, 0), **params), [0, 0]


def split_shape(shape: Shape, n_batch: int, n_dense: int) -> tuple[Shape, Shape, Shape]:
    """The sizes of batch, sparse and dense dimensions."""
    end = len(shape) - n_dense
    return shape[:n_batch], shape[n_batch:end], shape[end:]


def positions_where(chosen: Any, n_batch: int, nse: int, index_dtype: Any) -> Any:
    """The positions of chosen elements in order, of shape (*batch, nse, n); then the sizes.

    Args:
        chosen: booleans of shape (*batch, *sizes).
        n_batch: number of batch dimensions.
        nse: how many places there are.
        index_dtype: of the positions.
    """
    shape = aval_of(chosen).shape
    batch, sizes = shape[:n_batch], shape[n_batch:]
    total = volume(sizes)
    flat = chosen.reshape(*batch, total)
    dtype = np.dtype(np.int32 if total < 2**31 else np.int64)
    # The place of each chosen element is the number of those before it.
    rank = jnp.cumsum(flat, -1, dtype=dtype) - 1
    rank = jnp.where(flat, rank, nse)
    where = jnp.broadcast_to(jnp.arange(total, dtype=dtype), flat.shape)
    ones = scattered(where + 1, rank[..., None], (*batch, nse), n_batch, unique_indices=False)
    found = ones - 1  # -1 in places that are left
    columns = []
    stride = total
    for size in sizes:
        stride //= max(size, 1)
        column = lax.div(found, jnp.full_like(found, max(stride, 1)))
        columns.append(lax.rem(column, jnp.full_like(column, max(size, 1))).astype(index_dtype))
    if not columns:
        return jnp.zeros((*batch, nse, 0), index_dtype)
    return marked(jnp.stack(columns, -1), found >= 0, sizes)


bcoo_fromdense_p: Final = made(_FromDense())


def fromdense(
    what: str, cls: type[Any], mat: Any, nse: Any, n_batch: Any, n_dense: Any, index_dtype: Any
) -> Any:
    """A BCOO array of a dense one, checked."""
    if isinstance(mat, Coordinates):
        raise TypeError(f"{what} takes a dense array, got {type(mat).__name__}")
    mat = value(array_like(jnp.asarray(mat), what, "mat"))
    n_batch, n_dense = counts(what, mat.ndim, n_batch, n_dense)
    _, sparse, _ = split_shape(mat.shape, n_batch, n_dense)
    dtype = index_dtype_for(what, index_dtype, sparse)
    if nse is None:
        nse = nonzero_count(what, mat, n_batch, n_dense)
    nse = integer(what, "nse", nse)
    if nse < 0:
        raise ValueError(f"{what}: nse must not be negative, got {nse}")
    data, indices = bcoo_fromdense_p.bind(
        mat, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=dtype
    )
    return cls.made(data, indices, SparseInfo(mat.shape, True, True))


def counts(what: str, ndim: int, n_batch: Any, n_dense: Any) -> tuple[int, int]:
    """Numbers of dimensions that a user gives, checked."""
    n_batch = integer(what, "n_batch", n_batch)
    n_dense = integer(what, "n_dense", n_dense)
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > ndim:
        raise ValueError(
            f"{what}: n_batch and n_dense must not be negative, nor together exceed the {ndim} "
            f"dimensions that there are; got {n_batch} and {n_dense}"
        )
    return n_batch, n_dense


def nonzero_count(what: str, mat: Any, n_batch: int, n_dense: int) -> int:
    """The number of places that the elements other than 0 take."""
    known = mat.concrete() if isinstance(mat, Tracer) else mat
    if known is None or isinstance(known, Tracer):
        raise ConcretizationTypeError(mat, f"nse, which {what} counts if it is not given,")
    axes = tuple(range(mat.ndim - n_dense, mat.ndim))
    nonzero = (np.asarray(known) != 0).any(axes)
    counted = nonzero.sum(tuple(range(n_batch, nonzero.ndim)))
    return int(np.max(counted, initial=0))
