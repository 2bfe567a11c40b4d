"""Compressed rows: where each row begins, the row of each element, and products by rows."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.experimental.sparse.entries import gathered, inside, masked, scattered
from dovetail.experimental.sparse.primitives import Rules, made
from dovetail.extend.avals import aval_of, make_aval


def rows_of(indptr: Any, nse: int) -> Any:
    """The row of each place; the number of rows for places that belong to none.

    Args:
        indptr: where rows begin, and the last ends, of shape (*batch, rows + 1).
        nse: number of places.
    """
    ends = indptr[..., 1:]
    ones = jnp.ones(ends.shape, np.int32)
    n_batch = aval_of(ends).ndim - 1
    counts = scattered(ones, ends[..., None], (*ends.shape[:-1], nse), n_batch)
    return jnp.cumsum(counts, -1, dtype=np.dtype(np.int32)).astype(indptr.dtype)


def indptr_of(rows: Any, n_rows: int) -> Any:
    """Where rows begin, from the row of each place; rows are sorted, and those of no row last."""
    n_batch = aval_of(rows).ndim - 1
    ones = jnp.ones(rows.shape, np.int32)
    counts = scattered(ones, rows[..., None], (*rows.shape[:-1], n_rows), n_batch)
    ends = jnp.cumsum(counts, -1, dtype=np.dtype(np.int32))
    begin = jnp.zeros((*rows.shape[:-1], 1), np.int32)
    return jnp.concatenate([begin, ends], -1).astype(rows.dtype)


def coordinates_of(indices: Any, indptr: Any) -> Any:
    """Positions in both dimensions, of shape (*batch, nse, 2), of compressed rows."""
    rows = rows_of(indptr, aval_of(indices).shape[-1])
    dtype = np.promote_types(indices.dtype, indptr.dtype)
    batch = np.broadcast_shapes(indices.shape[:-1], rows.shape[:-1])
    columns = jnp.broadcast_to(indices, (*batch, indices.shape[-1]))
    rows = jnp.broadcast_to(rows, columns.shape)
    return jnp.stack([rows.astype(dtype), columns.astype(dtype)], -1)


def numpy_coordinates_of(indices: Any, indptr: Any) -> Any:
    """`coordinates_of` in NumPy, row by row."""
    indices, indptr = np.asarray(indices), np.asarray(indptr)
    batch = np.broadcast_shapes(indices.shape[:-1], indptr.shape[:-1])
    indices = np.broadcast_to(indices, (*batch, indices.shape[-1]))
    indptr = np.broadcast_to(indptr, (*batch, indptr.shape[-1]))
    n_rows = indptr.shape[-1] - 1
    result = np.empty((*indices.shape, 2), np.promote_types(indices.dtype, indptr.dtype))
    for at in np.ndindex(*batch):
        result[(*at, slice(None), 0)] = n_rows
        result[(*at, slice(None), 1)] = indices[at]
        for row in range(n_rows):
            result[(*at, slice(indptr[(*at, row)], indptr[(*at, row + 1)]), 0)] = row
    return result


class _CsrDot(Rules):
    """A matrix by compressed rows times a dense one, of one dtype.

    All columns are in bounds, and `indptr` goes from somewhere not below 0 to somewhere not above
    the number of elements without falling. A backend may rely on it.
    """

    name = "csr_dot"
    linear = (0, 3)
    generates_nan = True

    def formula(self, data: Any, indices: Any, indptr: Any, rhs: Any) -> Any:
        rows = rows_of(indptr, aval_of(indices).shape[0])
        products = data[:, None] * gathered(rhs, indices[:, None], 0, (0,))
        n_rows = aval_of(indptr).shape[0] - 1
        # Elements before the first row are those of none.
        rows = jnp.where(jnp.arange(rows.shape[0]) < indptr[0], n_rows, rows)
        return scattered(products, rows[:, None], (n_rows, rhs.shape[1]), 0)

    def abstract(self, data: Any, indices: Any, indptr: Any, rhs: Any) -> Any:
        return make_aval((indptr.shape[0] - 1, rhs.shape[1]), data.dtype)

    def reference(self, data: Any, indices: Any, indptr: Any, rhs: Any) -> Any:
        result = np.zeros((len(indptr) - 1, np.shape(rhs)[1]), np.asarray(data).dtype)
        for row in range(len(indptr) - 1):
            for k in range(indptr[row], indptr[row + 1]):
                result[row] += data[k] * rhs[indices[k]]
        return result


csr_dot_p: Final = made(_CsrDot())


def rows_times_dense(data: Any, indices: Any, indptr: Any, n_columns: int, rhs: Any) -> Any:
    """The product of compressed rows and a dense matrix, whatever positions there are."""
    nse = aval_of(indices).shape[0]
    begins = lax.cummax(jnp.clip(indptr, 0, nse))
    in_bounds = inside(indices[:, None], (n_columns,))
    columns = jnp.where(in_bounds, indices, 0)
    place = jnp.arange(nse, dtype=begins.dtype)
    # What an unused place holds, even nan, must meet no element, nor any cotangent.
    used = in_bounds & (place >= begins[0]) & (place < begins[-1])
    return csr_dot_p.bind(masked(data, used), columns, begins, rhs)


def sorted_indptr(rows: Any, n_rows: int) -> Any:
    """Where rows begin in sorted positions, of which some may be of no row, at either end."""
    bins = jnp.clip(rows, -1, n_rows) + 1
    counts = scattered(jnp.ones(rows.shape, np.int32), bins[:, None], (n_rows + 1,), 0)
    return jnp.cumsum(counts, dtype=np.dtype(np.int32))
