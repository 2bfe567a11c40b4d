"""Compressed rows: for each row where its elements begin, and the row of each element."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail import numpy as jnp
from dovetail.experimental.sparse.entries import scattered
from dovetail.extend.avals import aval_of


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
