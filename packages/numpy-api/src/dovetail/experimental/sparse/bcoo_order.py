"""The order of stored elements: `bcoo_sort_indices_p`, `bcoo_sum_duplicates_p`."""

from __future__ import annotations

from typing import Any, Final, TypeVar

import numpy as np

from dovetail import numpy as jnp
from dovetail.experimental.sparse.bcoo_elements import batched_info, places, require_bcoo
from dovetail.experimental.sparse.coordinates import Coordinates
from dovetail.experimental.sparse.entries import (
    begins_of,
    full_batch,
    inside,
    marked,
    order_of,
    scattered,
    take_places,
)
from dovetail.experimental.sparse.layouts import (
    Layout,
    SparseInfo,
    bcoo_layout,
    position_dtype,
)
from dovetail.experimental.sparse.primitives import BatchedRules, made
from dovetail.extend.arguments import integer
from dovetail.extend.avals import Tracer, aval_of, make_aval

C = TypeVar("C", bound=Coordinates)


def full(layout: Layout, data: Any, indices: Any) -> tuple[Any, Any]:
    """Elements and positions with all their batch dimensions."""
    return (
        full_batch(data, layout.n_batch, layout.batch),
        full_batch(indices, layout.n_batch, layout.batch),
    )


class _OfPlaces(BatchedRules):
    """Rules of a primitive that rearranges places."""

    multiple_results = True
    linear = (0,)

    def batched_params(self, size: int, **params: Any) -> dict[str, Any]:
        return {**params, "spinfo": batched_info(size, params["spinfo"])}

    def results(self, data: Any, indices: Any, layout: Layout, nse: int) -> list[Any]:
        """Avals of elements and positions in a number of places."""
        dtype = position_dtype(indices.dtype, layout.sparse)
        return [
            make_aval((*layout.batch, nse, *layout.dense), data.dtype),
            make_aval((*layout.batch, nse, layout.n_sparse), dtype),
        ]


class _SortIndices(_OfPlaces):
    """Elements in the order of their positions, unused places last."""

    name = "bcoo_sort_indices"

    def formula(self, data: Any, indices: Any, *, spinfo: SparseInfo) -> tuple[Any, Any]:
        layout = bcoo_layout(self.name, aval_of(data), aval_of(indices), spinfo.shape)
        data, indices = full(layout, data, indices)
        indices = indices.astype(position_dtype(indices.dtype, layout.sparse))
        order, _, _ = order_of(indices, layout.sparse)
        indices = marked(indices, inside(indices, layout.sparse), layout.sparse)
        n_batch = layout.n_batch
        return take_places(data, order, n_batch), take_places(indices, order, n_batch)

    def abstract(self, data: Any, indices: Any, *, spinfo: SparseInfo) -> list[Any]:
        layout = bcoo_layout(self.name, data, indices, spinfo.shape)
        return self.results(data, indices, layout, layout.nse)

    def reference(self, data: Any, indices: Any, *, spinfo: SparseInfo) -> list[Any]:
        layout = bcoo_layout(self.name, np.asarray(data), np.asarray(indices), spinfo.shape)
        data = np.broadcast_to(data, (*layout.batch, *np.shape(data)[layout.n_batch :]))
        used = places(layout, indices)
        sorted_data = np.zeros_like(data)
        dtype = position_dtype(np.asarray(indices).dtype, layout.sparse)
        positions = np.empty((*layout.batch, layout.nse, layout.n_sparse), dtype)
        positions[...] = np.array(layout.sparse, dtype)
        for batch in np.ndindex(*layout.batch):
            found = sorted((p, k) for b, k, p in used if b == batch)
            left = [k for k in range(layout.nse) if k not in {k for _, k in found}]
            for place, (position, k) in enumerate(found):
                positions[(*batch, place)] = position
                sorted_data[(*batch, place)] = data[(*batch, k)]
            for place, k in enumerate(left, len(found)):
                sorted_data[(*batch, place)] = data[(*batch, k)]
        return [sorted_data, positions]


bcoo_sort_indices_p: Final = made(_SortIndices())


class _SumDuplicates(_OfPlaces):
    """The sums of elements of one position, in order; what does not fit is left out."""

    name = "bcoo_sum_duplicates"

    def formula(self, data: Any, indices: Any, *, spinfo: SparseInfo, nse: int) -> tuple[Any, Any]:
        layout = bcoo_layout(self.name, aval_of(data), aval_of(indices), spinfo.shape)
        data, indices = full(layout, data, indices)
        indices = indices.astype(position_dtype(indices.dtype, layout.sparse))
        n_batch, batch = layout.n_batch, layout.batch
        order, keys, bounds = order_of(indices, layout.sparse)
        begins = begins_of(keys, (*batch, layout.nse))
        if keys:
            used = keys[0] < bounds[0]
            begins &= used
        rank = jnp.cumsum(begins, -1, dtype=np.dtype(np.int32)) - 1
        if keys:
            rank = jnp.where(used, rank, nse)
        sums = scattered(
            take_places(data, order, n_batch),
            rank[..., None],
            (*batch, nse, *layout.dense),
            n_batch,
            indices_sorted=True,
        )
        firsts = scattered(
            jnp.where(begins, order + 1, 0),
            rank[..., None],
            (*batch, nse),
            n_batch,
            indices_sorted=True,
        )
        positions = take_places(indices, firsts - 1, n_batch)
        return sums, marked(positions, firsts > 0, layout.sparse)

    def abstract(self, data: Any, indices: Any, *, spinfo: SparseInfo, nse: int) -> list[Any]:
        layout = bcoo_layout(self.name, data, indices, spinfo.shape)
        return self.results(data, indices, layout, nse)

    def reference(self, data: Any, indices: Any, *, spinfo: SparseInfo, nse: int) -> list[Any]:
        layout = bcoo_layout(self.name, np.asarray(data), np.asarray(indices), spinfo.shape)
        data = np.broadcast_to(data, (*layout.batch, *np.shape(data)[layout.n_batch :]))
        used = places(layout, indices)
        sums = np.zeros((*layout.batch, nse, *layout.dense), data.dtype)
        dtype = position_dtype(np.asarray(indices).dtype, layout.sparse)
        positions = np.empty((*layout.batch, nse, layout.n_sparse), dtype)
        positions[...] = np.array(layout.sparse, dtype)
        for batch in np.ndindex(*layout.batch):
            found = sorted({p for b, _, p in used if b == batch})
            for place, position in enumerate(found[:nse]):
                positions[(*batch, place)] = position
                for b, k, p in used:
                    if (b, p) == (batch, position):
                        sums[(*batch, place)] += data[(*batch, k)]
        return [sums, positions]


bcoo_sum_duplicates_p: Final = made(_SumDuplicates())


def bcoo_sort_indices(mat: C) -> C:
    """The array with its stored elements in the order of their positions.

    Args:
        mat: a BCOO array.

    Returns:
        The same array; unused places come last, and their positions are the sizes.

    Example:
        >>> from dovetail.experimental import sparse
        >>> mat = sparse.BCOO(([1.0, 2.0], [[1], [0]]), shape=(2,))
        >>> sparse.bcoo_sort_indices(mat).data
        Array([2., 1.], dtype=float32)
    """
    require_bcoo("bcoo_sort_indices", "mat", mat)
    data, indices = bcoo_sort_indices_p.bind(mat.data, mat.indices, spinfo=mat.info)
    unique = mat.unique_indices
    return mat.like(data, indices, mat.shape, indices_sorted=True, unique_indices=unique)


def known(x: Any) -> Any:
    """The value of an array, None if it is traced and not known."""
    while isinstance(x, Tracer):
        x = x.concrete()
    return x


def count_positions(mat: Coordinates) -> int | None:
    """How many different positions there are, the most for any index of the batch.

    None if they are not known, because something is traced.
    """
    indices = known(mat.indices)
    if indices is None:
        return None
    sizes = mat.layout.sparse
    order, keys, bounds = order_of(indices, sizes)
    del order
    begins = begins_of(keys, indices.shape[:-1])
    if keys:
        begins = begins & (keys[0] < bounds[0])
    return int(jnp.max(begins.sum(-1), initial=0))


def summed(mat: C, nse: int) -> C:
    """The array with each position once, in a number of places."""
    data, indices = bcoo_sum_duplicates_p.bind(mat.data, mat.indices, spinfo=mat.info, nse=nse)
    return mat.like(data, indices, mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_sum_duplicates(mat: C, nse: int | None = None) -> C:
    """The array with each position once: elements that have the same are added.

    Args:
        mat: a BCOO array.
        nse: how many places the result has. What does not fit is left out. By default as many as
            are needed, which are counted: so it must be given where `mat` is traced.

    Returns:
        The same array, with sorted and unique positions.

    Raises:
        ValueError: `nse` is needed, or negative.

    Example:
        >>> from dovetail.experimental import sparse
        >>> mat = sparse.BCOO(([1.0, 2.0, 4.0], [[1], [0], [1]]), shape=(2,))
        >>> sparse.bcoo_sum_duplicates(mat).data
        Array([2., 5.], dtype=float32)
    """
    require_bcoo("bcoo_sum_duplicates", "mat", mat)
    if nse is None:
        counted = count_positions(mat)
        if counted is None:
            raise ValueError(
                "bcoo_sum_duplicates: nse must be given where positions are traced, as in jit and "
                f"vmap; nse={mat.nse} is always enough"
            )
        return summed(mat, counted)
    nse = integer("bcoo_sum_duplicates", "nse", nse)
    if nse < 0:
        raise ValueError(f"bcoo_sum_duplicates: nse must not be negative, got {nse}")
    return summed(mat, nse)


def without_zeros(mat: C) -> C:
    """The array with places unused whose elements are all 0."""
    layout = mat.layout
    indices = mat.indices.astype(position_dtype(mat.indices.dtype, layout.sparse))
    axes = tuple(range(layout.n_batch + 1, aval_of(mat.data).ndim))
    kept = (mat.data != 0).any(axes) & mat.used
    return mat.like(
        mat.data,
        marked(indices, kept, layout.sparse),
        mat.shape,
        unique_indices=mat.unique_indices,
    )


def fitted(mat: C) -> C:
    """The array in no more places than there are positions."""
    layout = mat.layout
    most = int(np.prod(layout.sparse, dtype=object))
    return summed(mat, most) if layout.nse > most else mat
