"""Which dimensions of a BCOO array are stored in which way, and their order: `bcoo_transpose_p`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import numpy as np

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.experimental.sparse.bcoo_elements import batched_info, counts, require_bcoo
from dovetail.experimental.sparse.bcoo_order import fitted, full
from dovetail.experimental.sparse.coordinates import Coordinates
from dovetail.experimental.sparse.entries import marked
from dovetail.experimental.sparse.formats import SparseEfficiencyError, SparseEfficiencyWarning
from dovetail.experimental.sparse.layouts import SparseInfo, bcoo_layout, position_dtype
from dovetail.experimental.sparse.primitives import BatchedRules, made
from dovetail.extend.arguments import warn_user
from dovetail.extend.avals import aval_of, make_aval

C = TypeVar("C", bound=Coordinates)


def _iota(shape: Sequence[int], dim: int, dtype: Any) -> Any:
    return lax.broadcasted_iota(np.dtype(dtype), tuple(shape), dim)


def _fewer_dense(mat: C, n_dense: int) -> C:
    """The leading dense dimensions as sparse ones: every element has a place of its own."""
    layout = mat.layout
    moved = layout.dense[: layout.n_dense - n_dense]
    kept = layout.dense[len(moved) :]
    dtype = position_dtype(mat.indices.dtype, (*layout.sparse, *moved))
    indices = mat.indices.astype(dtype)
    batch, nse = indices.shape[: layout.n_batch], layout.nse
    grid = (*batch, nse, *moved)
    columns = [
        jnp.broadcast_to(indices[..., i].reshape(*batch, nse, *[1] * len(moved)), grid)
        for i in range(layout.n_sparse)
    ]
    columns += [_iota(grid, len(batch) + 1 + i, dtype) for i in range(len(moved))]
    size = nse * math.prod(moved)
    return mat.like(
        mat.data.reshape(*mat.data.shape[: layout.n_batch], size, *kept),
        jnp.stack(columns, -1).reshape(*batch, size, len(columns)),
        mat.shape,
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def _fewer_batch(mat: C, n_batch: int) -> C:
    """The trailing batch dimensions as sparse ones."""
    layout = mat.layout
    kept, moved = layout.batch[:n_batch], layout.batch[n_batch:]
    data, indices = full(layout, mat.data, mat.indices)
    dtype = position_dtype(indices.dtype, (*moved, *layout.sparse))
    indices = indices.astype(dtype)
    grid = indices.shape[:-1]
    columns = [_iota(grid, n_batch + i, dtype) for i in range(len(moved))]
    columns += [indices[..., i] for i in range(layout.n_sparse)]
    size = math.prod(moved) * layout.nse
    return mat.like(
        data.reshape(*kept, size, *layout.dense),
        jnp.stack(columns, -1).reshape(*kept, size, len(columns)),
        mat.shape,
        unique_indices=mat.unique_indices,
    )


def _more_dense(mat: C, n_dense: int) -> C:
    """The trailing sparse dimensions as dense ones: each element in an array of zeros."""
    layout = mat.layout
    count = n_dense - layout.n_dense
    moved = layout.sparse[layout.n_sparse - count :]
    split = layout.n_sparse - count
    rank = len(mat.data.shape) + count
    columns = mat.indices[..., split:]
    first = layout.n_batch + 1
    here = jnp.ones((1,) * rank, bool)
    for i in range(count):
        places = _iota(_spread(rank, first + i, moved[i]), first + i, columns.dtype)
        column = columns[..., i]
        here = here & (column.reshape(*column.shape, *[1] * (rank - column.ndim)) == places)
    data = mat.data.reshape(*mat.data.shape[:first], *[1] * count, *layout.dense)
    return mat.like(
        jnp.where(here, data, np.zeros((), data.dtype)),
        mat.indices[..., :split],
        mat.shape,
    )


def _spread(rank: int, dim: int, size: int) -> list[int]:
    return [size if d == dim else 1 for d in range(rank)]


def _more_batch(mat: C, n_batch: int) -> C:
    """The leading sparse dimensions as batch dimensions: each index has all places."""
    layout = mat.layout
    count = n_batch - layout.n_batch
    moved, kept = layout.sparse[:count], layout.sparse[count:]
    data, indices = full(layout, mat.data, mat.indices)
    batch, nse = layout.batch, layout.nse
    grid = (*batch, *moved, nse)
    here = jnp.ones(grid, bool)
    for i in range(count):
        column = indices[..., i].reshape(*batch, *[1] * count, nse)
        here &= column == _iota(grid, len(batch) + i, indices.dtype)
    rest = indices[..., count:].astype(position_dtype(indices.dtype, kept))
    rest = jnp.broadcast_to(rest.reshape(*batch, *[1] * count, nse, len(kept)), (*grid, len(kept)))
    data = data.reshape(*batch, *[1] * count, nse, *layout.dense)
    data = jnp.where(here.reshape(*grid, *[1] * layout.n_dense), data, np.zeros((), data.dtype))
    made = mat.like(data, marked(rest, here, kept), mat.shape, unique_indices=mat.unique_indices)
    return fitted(made)


def relaid(mat: C, n_batch: int, n_dense: int) -> C:
    """The array with other numbers of batch and dense dimensions, whatever that takes."""
    if n_dense < mat.n_dense:
        mat = _fewer_dense(mat, n_dense)
    if n_batch < mat.n_batch:
        mat = _fewer_batch(mat, n_batch)
    if n_dense > mat.n_dense:
        mat = _more_dense(mat, n_dense)
    if n_batch > mat.n_batch:
        mat = _more_batch(mat, n_batch)
    return mat


def _is_inefficient(mat: Coordinates, n_batch: int, n_dense: int) -> str:
    """What makes a change of layout take more places; empty if nothing does."""
    layout = mat.layout
    if n_batch > layout.n_batch:
        first = layout.shape[layout.n_batch : n_batch]
        left = math.prod(layout.shape[n_batch : len(layout.shape) - n_dense])
        if math.prod(first) * min(layout.nse, left) > layout.nse:
            return f"increasing n_batch from {layout.n_batch} to {n_batch}"
    if n_dense > layout.n_dense:
        last = layout.shape[len(layout.shape) - n_dense : len(layout.shape) - layout.n_dense]
        if math.prod(last) > 1:
            return f"increasing n_dense from {layout.n_dense} to {n_dense}"
    return ""


def bcoo_update_layout(
    mat: C,
    *,
    n_batch: int | None = None,
    n_dense: int | None = None,
    on_inefficient: str | None = "error",
) -> C:
    """The array with other numbers of batch and dense dimensions.

    Args:
        mat: a BCOO array.
        n_batch: how many leading dimensions are batch dimensions; by default as before.
        n_dense: how many trailing dimensions are stored whole; by default as before.
        on_inefficient: what to do if that takes more memory: "error", "warn", or None for nothing.

    Returns:
        The same array. Its positions need not be sorted.

    Raises:
        SparseEfficiencyError: it would take more memory than before.
        ValueError: there are not as many dimensions, or `on_inefficient` is something else.

    Example:
        >>> from dovetail.experimental import sparse
        >>> mat = sparse.BCOO.fromdense(jnp.ones((2, 3)), n_batch=1)
        >>> sparse.bcoo_update_layout(mat, n_batch=0)
        BCOO(float32[2, 3], nse=6)
    """
    require_bcoo("bcoo_update_layout", "mat", mat)
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(
            "bcoo_update_layout: on_inefficient must be 'error', 'warn' or None, got "
            f"{on_inefficient!r}"
        )
    n_batch, n_dense = counts(
        "bcoo_update_layout",
        mat.ndim,
        mat.n_batch if n_batch is None else n_batch,
        mat.n_dense if n_dense is None else n_dense,
    )
    reason = _is_inefficient(mat, n_batch, n_dense)
    if reason and on_inefficient is not None:
        text = (
            f"bcoo_update_layout: {reason} stores more than before, for an array of shape "
            f"{mat.shape} with nse={mat.nse}; on_inefficient=None does so silently"
        )
        if on_inefficient == "error":
            raise SparseEfficiencyError(text)
        warn_user(text, SparseEfficiencyWarning)
    return relaid(mat, n_batch, n_dense)


class _Transpose(BatchedRules):
    """Dimensions in another order, each kind among themselves."""

    name = "bcoo_transpose"
    multiple_results = True
    linear = (0,)

    def formula(
        self, data: Any, indices: Any, *, permutation: tuple[int, ...], spinfo: SparseInfo
    ) -> tuple[Any, Any]:
        batch, sparse, dense = self._parts(aval_of(data), aval_of(indices), permutation, spinfo)
        n = len(batch)
        return (
            jnp.transpose(data, (*batch, n, *(n + 1 + d for d in dense))),
            jnp.transpose(indices, (*batch, n, n + 1))[..., np.array(sparse, int)],
        )

    def _parts(
        self, data: Any, indices: Any, permutation: tuple[int, ...], spinfo: SparseInfo
    ) -> tuple[list[int], list[int], list[int]]:
        """The permutations of the batch, sparse and dense dimensions."""
        layout = bcoo_layout(self.name, data, indices, spinfo.shape)
        if sorted(permutation) != list(range(len(spinfo.shape))):
            raise TypeError(
                f"bcoo_transpose: permutation must have each of the {len(spinfo.shape)} dimensions "
                f"once, got {permutation}"
            )
        first, last = layout.n_batch, layout.n_batch + layout.n_sparse
        batch, sparse, dense = permutation[:first], permutation[first:last], permutation[last:]
        if max(batch, default=-1) >= first or min(dense, default=last) < last:
            raise NotImplementedError(
                f"bcoo_transpose_p keeps the kinds of dimensions apart, got the permutation "
                f"{permutation} with n_batch={first} and n_dense={layout.n_dense}"
            )
        return list(batch), [d - first for d in sparse], [d - last for d in dense]

    def abstract(
        self, data: Any, indices: Any, *, permutation: tuple[int, ...], spinfo: SparseInfo
    ) -> list[Any]:
        batch, _, dense = self._parts(data, indices, permutation, spinfo)
        n = len(batch)
        moved = (*batch, n, *(n + 1 + d for d in dense))
        return [
            make_aval(tuple(data.shape[d] for d in moved), data.dtype),
            make_aval((*(indices.shape[d] for d in batch), *indices.shape[-2:]), indices.dtype),
        ]

    def reference(
        self, data: Any, indices: Any, *, permutation: tuple[int, ...], spinfo: SparseInfo
    ) -> list[Any]:
        data, indices = np.asarray(data), np.asarray(indices)
        batch, sparse, dense = self._parts(data, indices, permutation, spinfo)
        n = len(batch)
        columns = [indices[..., d] for d in sparse] or [indices[..., 0][..., :0]]
        moved = np.stack(columns, -1) if sparse else indices
        return [
            np.transpose(data, (*batch, n, *(n + 1 + d for d in dense))),
            np.transpose(moved, (*batch, n, n + 1)),
        ]

    def batched_params(self, size: int, **params: Any) -> dict[str, Any]:
        permutation = (0, *(d + 1 for d in params["permutation"]))
        return {"permutation": permutation, "spinfo": batched_info(size, params["spinfo"])}


bcoo_transpose_p: Final = made(_Transpose())


def transposed(mat: C, permutation: tuple[int, ...]) -> C:
    """The dimensions in another order; what mixes kinds makes sparse dimensions of both."""
    ndim = mat.ndim
    n_batch, n_dense = mat.n_batch, mat.n_dense
    while sorted(permutation[:n_batch]) != list(range(n_batch)):
        n_batch -= 1
    while sorted(permutation[ndim - n_dense :]) != list(range(ndim - n_dense, ndim)):
        n_dense -= 1
    mat = relaid(mat, n_batch, n_dense)
    data, indices = bcoo_transpose_p.bind(
        mat.data, mat.indices, permutation=permutation, spinfo=mat.info
    )
    sparse = permutation[n_batch : ndim - n_dense]
    return mat.like(
        data,
        indices,
        tuple(mat.shape[d] for d in permutation),
        indices_sorted=mat.indices_sorted and list(sparse) == sorted(sparse),
        unique_indices=mat.unique_indices,
    )


def bcoo_transpose(mat: C, *, permutation: Sequence[int]) -> C:
    """The array with its dimensions in another order.

    Args:
        mat: a BCOO array.
        permutation: for each dimension of the result, which one of `mat` it is.

    Returns:
        A BCOO array. Where batch or dense dimensions change places with others, these are sparse
        ones of the result.

    Raises:
        TypeError: `permutation` has not every dimension once.

    Differs:
        JAX raises a NotImplementedError where kinds of dimensions change places.

        >>> from dovetail.experimental import sparse
        >>> sparse.BCOO.fromdense(jnp.ones((2, 3)), n_batch=1).T
        BCOO(float32[3, 2], nse=6)

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.bcoo_transpose(sparse.empty((2, 3)), permutation=(1, 0)).shape
        (3, 2)
    """
    require_bcoo("bcoo_transpose", "mat", mat)
    order = tuple(int(d) for d in permutation)
    if sorted(order) != list(range(mat.ndim)):
        raise TypeError(
            f"bcoo_transpose: permutation must have each of the {mat.ndim} dimensions of an array "
            f"of shape {mat.shape} once, got {order}"
        )
    return transposed(mat, order)
