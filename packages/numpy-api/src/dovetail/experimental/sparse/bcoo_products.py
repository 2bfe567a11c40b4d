"""Products of BCOO arrays with dense ones and with each other.

The primitives are `bcoo_dot_general_p`, `bcoo_dot_general_sampled_p` and `bcoo_spdot_general_p`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.experimental.sparse.bcoo_elements import (
    batched_info,
    bcoo_extract_p,
    bcoo_todense_p,
    extracted,
)
from dovetail.experimental.sparse.bcoo_layouts import relaid, transposed
from dovetail.experimental.sparse.bcoo_order import full
from dovetail.experimental.sparse.coordinates import Coordinates
from dovetail.experimental.sparse.entries import (
    gathered,
    inside,
    marked,
    masked,
    scattered,
    wide_dtype,
)
from dovetail.experimental.sparse.layouts import (
    Layout,
    SparseInfo,
    bcoo_layout,
    position_dtype,
    require_positions,
)
from dovetail.experimental.sparse.primitives import Rules, batch_size, made
from dovetail.experimental.sparse.products import (
    DotNumbers,
    checked_numbers,
    free_dims,
    is_by_rows,
    sparse_times_dense,
)
from dovetail.experimental.sparse.rows import rows_times_dense, sorted_indptr
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, value
from dovetail.extend.avals import aval_of, make_aval
from dovetail.typing import Array, ArrayLike, DTypeLike, Sharding

Shape = tuple[int, ...]


def result_dtype(what: str, lhs: Any, rhs: Any, preferred: Any) -> Any:
    """The dtype of a product."""
    if preferred is None:
        return dtypes.result_type(lhs, rhs)
    dtype = dtypes.canonicalize_dtype(dtypes.as_dtype(preferred))
    if dtypes.kind_of(dtypes.result_type(lhs, rhs)) == "c" and dtypes.kind_of(dtype) != "c":
        raise TypeError(
            f"{what}: preferred_element_type of a product of complex numbers must be complex, got "
            f"{dtype}"
        )
    return dtype


class _DotGeneral(Rules):
    """A sparse array times a dense one."""

    name = "bcoo_dot_general"
    linear = (0, 2)
    generates_nan = True

    def _checked(
        self, data: Any, indices: Any, rhs: Any, numbers: Any, spinfo: SparseInfo
    ) -> tuple[Layout, DotNumbers, Shape]:
        layout = bcoo_layout(self.name, data, indices, spinfo.shape)
        numbers, shape = checked_numbers(self.name, numbers, spinfo.shape, rhs.shape)
        return layout, numbers, shape

    def formula(
        self,
        data: Any,
        indices: Any,
        rhs: Any,
        *,
        dimension_numbers: DotNumbers,
        preferred_element_type: Any,
        lhs_spinfo: SparseInfo,
    ) -> Any:
        dtype = result_dtype(self.name, data.dtype, rhs.dtype, preferred_element_type)
        layout = bcoo_layout(self.name, aval_of(data), aval_of(indices), lhs_spinfo.shape)
        if lhs_spinfo.indices_sorted and is_by_rows(layout, rhs, dimension_numbers, dtype):
            n_rows, n_columns = layout.shape
            indptr = sorted_indptr(indices[:, 0].astype(np.int32), n_rows)
            parts = (data.astype(dtype), indices[:, 1], indptr)
            return rows_times_dense(*parts, n_columns, rhs.astype(dtype))
        return sparse_times_dense(layout, data, indices, rhs, dimension_numbers, dtype)

    def abstract(
        self,
        data: Any,
        indices: Any,
        rhs: Any,
        *,
        dimension_numbers: DotNumbers,
        preferred_element_type: Any,
        lhs_spinfo: SparseInfo,
    ) -> Any:
        _, _, shape = self._checked(data, indices, rhs, dimension_numbers, lhs_spinfo)
        return make_aval(
            shape, result_dtype(self.name, data.dtype, rhs.dtype, preferred_element_type)
        )

    def reference(
        self,
        data: Any,
        indices: Any,
        rhs: Any,
        *,
        dimension_numbers: DotNumbers,
        preferred_element_type: Any,
        lhs_spinfo: SparseInfo,
    ) -> Any:
        lhs = bcoo_todense_p.reference(data, indices, spinfo=lhs_spinfo)
        dtype = result_dtype(self.name, lhs.dtype, rhs.dtype, preferred_element_type)
        return dense_product(lhs, np.asarray(rhs), dimension_numbers, dtype)

    def batch(
        self,
        operands: Sequence[Any],
        dims: Sequence[int | None],
        *,
        dimension_numbers: DotNumbers,
        preferred_element_type: Any,
        lhs_spinfo: SparseInfo,
    ) -> tuple[Any, Any]:
        size = batch_size(operands, dims)
        data, indices, rhs = operands
        (lc, rc), (lb, rb) = dimension_numbers
        other = {"preferred_element_type": preferred_element_type}
        at = dims[2]
        if dims[0] is None and dims[1] is None:
            assert at is not None
            # A further free dimension of rhs.
            rc, rb = (tuple(d + (d >= at) for d in part) for part in (rc, rb))
            numbers: DotNumbers = ((lc, rc), (lb, rb))
            result = bcoo_dot_general_p.bind(
                data, indices, rhs, dimension_numbers=numbers, lhs_spinfo=lhs_spinfo, **other
            )
            n_lhs = len(lhs_spinfo.shape) - len(lc)
            free = free_dims(aval_of(rhs).ndim, rc, rb)
            return result, n_lhs + free.index(at)
        parts = [
            jnp.expand_dims(x, 0) if d is None else jnp.moveaxis(x, d, 0)
            for x, d in zip((data, indices), dims[:2], strict=True)
        ]
        info = batched_info(size, lhs_spinfo)
        lc, lb = (tuple(d + 1 for d in part) for part in (lc, lb))
        if at is None:
            # A further free dimension of lhs, which comes behind the batch of the product.
            numbers = ((lc, rc), (lb, rb))
            result = bcoo_dot_general_p.bind(
                *parts, rhs, dimension_numbers=numbers, lhs_spinfo=info, **other
            )
            return result, len(lb)
        rc, rb = (tuple(d + 1 for d in part) for part in (rc, rb))
        numbers = ((lc, rc), ((0, *lb), (0, *rb)))
        rhs = jnp.moveaxis(rhs, at, 0)
        result = bcoo_dot_general_p.bind(
            *parts, rhs, dimension_numbers=numbers, lhs_spinfo=info, **other
        )
        return result, 0


bcoo_dot_general_p: Final = made(_DotGeneral())


def dense_product(lhs: Any, rhs: Any, numbers: DotNumbers, dtype: Any) -> Any:
    """For NumPy: the product of dense arrays."""
    (lc, rc), (lb, rb) = numbers
    left, right = list(range(lhs.ndim)), [lhs.ndim + d for d in range(rhs.ndim)]
    for a, b in zip((*lc, *lb), (*rc, *rb), strict=True):
        right[b] = left[a]
    out = [left[d] for d in (*lb, *free_dims(lhs.ndim, lc, lb))]
    out += [right[d] for d in free_dims(rhs.ndim, rc, rb)]
    wide = np.result_type(dtype, np.float64) if dtypes.kind_of(dtype) == "f" else dtype
    return np.einsum(lhs.astype(wide), left, rhs.astype(wide), right, out).astype(dtype)


class _Sampled(Rules):
    """Elements at some positions of a product of dense arrays."""

    name = "bcoo_dot_general_sampled"
    linear = (0, 1)
    generates_nan = True

    def formula(self, A: Any, B: Any, indices: Any, *, dimension_numbers: DotNumbers) -> Any:
        lhs, rhs = aval_of(A), aval_of(B)
        (lc, rc), (lb, rb) = dimension_numbers
        free_a, free_b = free_dims(lhs.ndim, lc, lb), free_dims(rhs.ndim, rc, rb)
        n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
        if n_batch != len(lb) or n_sparse != len(free_a) + len(free_b):
            product = lax.dot_general(A, B, dimension_numbers, precision=lax.Precision.HIGHEST)
            return extracted(indices, product)
        dtype = dtypes.result_type(A.dtype, B.dtype)
        wide = wide_dtype(dtype)
        # (*batch, *free, *contracted), of which the free ones are at positions.
        A = jnp.transpose(A, (*lb, *free_a, *lc)).astype(wide)
        B = jnp.transpose(B, (*rb, *free_b, *rc)).astype(wide)
        indices = jnp.broadcast_to(indices, (*A.shape[:n_batch], *indices.shape[n_batch:]))
        split = len(free_a)
        rows = gathered(A, indices[..., :split], n_batch, range(n_batch, n_batch + split))
        columns = gathered(B, indices[..., split:], n_batch, range(n_batch, n_batch + len(free_b)))
        axes = tuple(range(n_batch + 1, rows.ndim))
        found = jnp.sum(rows * columns, axes, dtype=wide).astype(dtype)
        sizes = [*(lhs.shape[d] for d in free_a), *(rhs.shape[d] for d in free_b)]
        return masked(found, inside(indices, sizes))

    def abstract(self, A: Any, B: Any, indices: Any, *, dimension_numbers: DotNumbers) -> Any:
        require_positions(self.name, "indices", indices)
        _, shape = checked_numbers(self.name, dimension_numbers, A.shape, B.shape)
        n_batch, n_sparse = indices.ndim - 2, indices.shape[-1] if indices.ndim else 0
        batch = indices.shape[: max(n_batch, 0)]
        if (
            n_batch < 0
            or n_batch + n_sparse > len(shape)
            or not all(n in (1, size) for n, size in zip(batch, shape[:n_batch], strict=True))
        ):
            raise ValueError(
                f"{self.name}: indices of shape (*batch, nse, n_sparse) must fit the product, of "
                f"shape {shape}; got {indices.shape}"
            )
        result = (*shape[:n_batch], indices.shape[-2], *shape[n_batch + n_sparse :])
        return make_aval(result, dtypes.result_type(A.dtype, B.dtype))

    def reference(self, A: Any, B: Any, indices: Any, *, dimension_numbers: DotNumbers) -> Any:
        A, B = np.asarray(A), np.asarray(B)
        dtype = dtypes.result_type(A.dtype, B.dtype)
        product = dense_product(A, B, dimension_numbers, dtype)
        reference: Any = bcoo_extract_p.reference(indices, product, assume_unique=True)
        return reference


bcoo_dot_general_sampled_p: Final = made(_Sampled())


class _SparseDotGeneral(Rules):
    """The product of two sparse arrays, as a sparse array.

    Both have no dense dimensions, and their batch dimensions are the first of the product's batch.
    There are as many places as pairs of stored elements, or as positions if these are fewer.
    """

    name = "bcoo_spdot_general"
    multiple_results = True
    linear = (0, 2)
    generates_nan = True

    def _checked(self, lhs: Layout, rhs: Layout, numbers: Any) -> tuple[DotNumbers, Shape, int]:
        numbers, shape = checked_numbers(self.name, numbers, lhs.shape, rhs.shape)
        n = lhs.n_batch
        leading = tuple(range(n))
        if (
            lhs.n_dense
            or rhs.n_dense
            or rhs.n_batch != n
            or numbers[1][0][:n] != leading
            or numbers[1][1][:n] != leading
        ):
            raise NotImplementedError(
                "bcoo_spdot_general_p takes arrays without dense dimensions whose batch dimensions "
                f"are the first of the product's, got n_batch={n}, n_dense={lhs.n_dense} and "
                f"n_batch={rhs.n_batch}, n_dense={rhs.n_dense} for {numbers}; bcoo_dot_general "
                "takes others"
            )
        return numbers, shape, min(lhs.nse * rhs.nse, math.prod(shape[n:]))

    def formula(
        self,
        lhs_data: Any,
        lhs_indices: Any,
        rhs_data: Any,
        rhs_indices: Any,
        *,
        lhs_spinfo: SparseInfo,
        rhs_spinfo: SparseInfo,
        dimension_numbers: DotNumbers,
        preferred_element_type: Any,
    ) -> tuple[Any, Any]:
        lhs = bcoo_layout(self.name, aval_of(lhs_data), aval_of(lhs_indices), lhs_spinfo.shape)
        rhs = bcoo_layout(self.name, aval_of(rhs_data), aval_of(rhs_indices), rhs_spinfo.shape)
        numbers, shape, nse = self._checked(lhs, rhs, dimension_numbers)
        dtype = result_dtype(self.name, lhs_data.dtype, rhs_data.dtype, preferred_element_type)
        n, pairs = lhs.n_batch, lhs.nse * rhs.nse
        positions = position_dtype(
            np.promote_types(lhs_indices.dtype, rhs_indices.dtype), shape[n:]
        )
        if nse < pairs and math.prod(rhs.sparse) <= pairs:
            dense = bcoo_todense_p.bind(rhs_data, rhs_indices, spinfo=rhs_spinfo)
            product = sparse_times_dense(lhs, lhs_data, lhs_indices, dense, numbers, dtype)
            return product.reshape(*shape[:n], nse), all_positions(shape, n, positions)
        data, indices = self._pairs(
            (lhs, lhs_data, lhs_indices), (rhs, rhs_data, rhs_indices), numbers, shape, dtype
        )
        if nse == pairs:
            return data, indices
        places = jnp.where(inside(indices, shape[n:]), _ranks(indices, shape[n:]), nse)
        sums = scattered(data, places[..., None], (*shape[:n], nse), n)
        return sums, all_positions(shape, n, positions)

    def _pairs(
        self, lhs: Any, rhs: Any, numbers: DotNumbers, shape: Shape, dtype: Any
    ) -> tuple[Any, Any]:
        """The product of each stored element of lhs with each of rhs that it meets."""
        (lc, rc), (lb, rb) = numbers
        (left, lhs_data, lhs_indices), (right, rhs_data, rhs_indices) = lhs, rhs
        n = left.n_batch
        lhs_data, lhs_indices = full(left, lhs_data, lhs_indices)
        rhs_data, rhs_indices = full(right, rhs_data, rhs_indices)
        grid = (*left.batch, left.nse, right.nse)

        def column(indices: Any, d: int, axis: int) -> Any:
            return jnp.expand_dims(indices[..., d - n], axis)

        lhs_used, rhs_used = (
            inside(lhs_indices, left.sparse),
            inside(rhs_indices, right.sparse),
        )
        lhs_data, rhs_data = masked(lhs_data, lhs_used), masked(rhs_data, rhs_used)
        meets = jnp.expand_dims(lhs_used, -1) & jnp.expand_dims(rhs_used, -2)
        for a, b in zip((*lc, *lb[n:]), (*rc, *rb[n:]), strict=True):
            meets &= column(lhs_indices, a, -1) == column(rhs_indices, b, -2)
        columns = [column(lhs_indices, d, -1) for d in lb[n:]]
        columns += [column(lhs_indices, d, -1) for d in free_dims(len(left.shape), lc, lb)]
        columns += [column(rhs_indices, d, -2) for d in free_dims(len(right.shape), rc, rb)]
        data = jnp.expand_dims(lhs_data, -1).astype(dtype) * jnp.expand_dims(rhs_data, -2).astype(
            dtype
        )
        data = jnp.where(meets, data, np.zeros((), dtype))
        kept = np.promote_types(lhs_indices.dtype, rhs_indices.dtype)
        kept = position_dtype(kept, shape[n:])
        flat = (*left.batch, left.nse * right.nse)
        if not columns:
            return data.reshape(flat), jnp.zeros((*flat, 0), kept)
        stacked = jnp.stack([jnp.broadcast_to(c.astype(kept), grid) for c in columns], -1)
        marks = marked(stacked, meets, shape[n:])
        return data.reshape(flat), marks.reshape(*flat, len(columns))

    def abstract(
        self,
        lhs_data: Any,
        lhs_indices: Any,
        rhs_data: Any,
        rhs_indices: Any,
        *,
        lhs_spinfo: SparseInfo,
        rhs_spinfo: SparseInfo,
        dimension_numbers: DotNumbers,
        preferred_element_type: Any,
    ) -> list[Any]:
        lhs = bcoo_layout(self.name, lhs_data, lhs_indices, lhs_spinfo.shape)
        rhs = bcoo_layout(self.name, rhs_data, rhs_indices, rhs_spinfo.shape)
        _, shape, nse = self._checked(lhs, rhs, dimension_numbers)
        dtype = result_dtype(self.name, lhs_data.dtype, rhs_data.dtype, preferred_element_type)
        positions = np.promote_types(lhs_indices.dtype, rhs_indices.dtype)
        n = lhs.n_batch
        return [
            make_aval((*shape[:n], nse), dtype),
            make_aval((*shape[:n], nse, len(shape) - n), position_dtype(positions, shape[n:])),
        ]

    def reference(
        self,
        lhs_data: Any,
        lhs_indices: Any,
        rhs_data: Any,
        rhs_indices: Any,
        *,
        lhs_spinfo: SparseInfo,
        rhs_spinfo: SparseInfo,
        dimension_numbers: DotNumbers,
        preferred_element_type: Any,
    ) -> list[Any]:
        """The dense product, in the places of a full array; only its sum is comparable."""
        lhs = bcoo_todense_p.reference(lhs_data, lhs_indices, spinfo=lhs_spinfo)
        rhs = bcoo_todense_p.reference(rhs_data, rhs_indices, spinfo=rhs_spinfo)
        dtype = result_dtype(self.name, lhs.dtype, rhs.dtype, preferred_element_type)
        product = dense_product(lhs, rhs, dimension_numbers, dtype)
        n = np.ndim(lhs_indices) - 2
        batch, sparse = product.shape[:n], product.shape[n:]
        pairs = np.shape(lhs_data)[-1] * np.shape(rhs_data)[-1]
        nse = min(pairs, math.prod(sparse))
        data = np.zeros((*batch, nse), dtype)
        indices = np.empty((*batch, nse, len(sparse)), np.asarray(lhs_indices).dtype)
        indices[...] = np.array(sparse)
        for at in np.ndindex(*batch):
            found = [p for p in np.ndindex(*sparse) if nse < pairs or product[(*at, *p)] != 0]
            for k, p in enumerate(found):
                data[(*at, k)], indices[(*at, k)] = product[(*at, *p)], p
        return [data, indices]

    def batch(
        self,
        operands: Sequence[Any],
        dims: Sequence[int | None],
        *,
        lhs_spinfo: SparseInfo,
        rhs_spinfo: SparseInfo,
        dimension_numbers: DotNumbers,
        preferred_element_type: Any,
    ) -> tuple[Any, Any]:
        size = batch_size(operands, dims)
        moved = [
            jnp.expand_dims(x, 0) if d is None else jnp.moveaxis(x, d, 0)
            for x, d in zip(operands, dims, strict=True)
        ]
        (lc, rc), (lb, rb) = (
            tuple(tuple(d + 1 for d in dims) for dims in pair) for pair in dimension_numbers
        )
        results = bcoo_spdot_general_p.bind(
            *moved,
            lhs_spinfo=batched_info(size, lhs_spinfo),
            rhs_spinfo=batched_info(size, rhs_spinfo),
            dimension_numbers=((lc, rc), ((0, *lb), (0, *rb))),
            preferred_element_type=preferred_element_type,
        )
        return results, [0, 0]


bcoo_spdot_general_p: Final = made(_SparseDotGeneral())


def all_positions(shape: Shape, n_batch: int, dtype: Any) -> Any:
    """The positions of all elements in order."""
    sparse = shape[n_batch:]
    nse = math.prod(sparse)
    columns = [lax.broadcasted_iota(dtype, sparse, i).reshape(nse) for i in range(len(sparse))]
    grid = jnp.stack(columns, -1) if columns else jnp.zeros((nse, 0), dtype)
    return jnp.broadcast_to(grid, (*shape[:n_batch], nse, len(sparse)))


def _ranks(indices: Any, sizes: Shape) -> Any:
    """The numbers of positions in row-major order; there are few enough for 32 bits."""
    number = jnp.zeros(indices.shape[:-1], np.int32)
    for i, size in enumerate(sizes):
        number = number * size + indices[..., i].astype(np.int32)
    return number


def bcoo_dot_general(
    lhs: Coordinates | ArrayLike,
    rhs: Coordinates | ArrayLike,
    *,
    dimension_numbers: DotNumbers,
    precision: None = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Sharding | None = None,
) -> Any:
    """`lax.dot_general` of arrays of which one or both are BCOO arrays.

    Args:
        lhs: a BCOO array or a dense one.
        rhs: a BCOO array or a dense one.
        dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``.
        precision: must be None: products are computed as exactly as the dtype allows.
        preferred_element_type: dtype of the result.
        out_sharding: must be None.

    Returns:
        A BCOO array if both operands are; otherwise a dense one. A sparse product has as many
        places as there are pairs of stored elements, or as positions if these are fewer.

    Raises:
        TypeError: dimensions do not fit.

    Differs:
        Any dimension of the sparse array may be contracted or be of the batch. JAX raises a
        NotImplementedError where dense ones are contracted, or sparse ones are of the batch.

        >>> from dovetail.experimental import sparse
        >>> mat = sparse.BCOO.fromdense(jnp.ones((2, 3)), n_dense=1)
        >>> mat @ jnp.ones(3)
        Array([3., 3.], dtype=float32)

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.bcoo_dot_general(
        ...     sparse.eye(2), jnp.array([3.0, 4.0]), dimension_numbers=(((1,), (0,)), ((), ()))
        ... )
        Array([3., 4.], dtype=float32)
    """
    what = "bcoo_dot_general"
    if precision is not None:
        raise NotImplementedError(f"{what}: precision must be None")
    if out_sharding is not None:
        raise NotImplementedError(f"{what}: out_sharding must be None")
    if isinstance(lhs, Coordinates) and isinstance(rhs, Coordinates):
        return _sparse_product(lhs, rhs, dimension_numbers, preferred_element_type)
    if isinstance(lhs, Coordinates):
        right = value(array_like(rhs, what, "rhs"))
        numbers, _ = checked_numbers(what, dimension_numbers, lhs.shape, right.shape)
        dtype = result_dtype(what, lhs.dtype, right.dtype, preferred_element_type)
        return bcoo_dot_general_p.bind(
            lhs.data,
            lhs.indices,
            right,
            dimension_numbers=numbers,
            preferred_element_type=dtype,
            lhs_spinfo=lhs.info,
        )
    left = value(array_like(lhs, what, "lhs"))
    if not isinstance(rhs, Coordinates):
        right = value(array_like(rhs, what, "rhs"))
        return lax.dot_general(
            left, right, dimension_numbers, preferred_element_type=preferred_element_type
        )
    numbers, _ = checked_numbers(what, dimension_numbers, left.shape, rhs.shape)
    (lc, rc), (lb, rb) = numbers
    swapped = bcoo_dot_general(
        rhs,
        left,
        dimension_numbers=((rc, lc), (rb, lb)),
        preferred_element_type=preferred_element_type,
    )
    n = len(lb)
    n_rhs = rhs.ndim - len(rc) - n
    order = (*range(n), *range(n + n_rhs, swapped.ndim), *range(n, n + n_rhs))
    return jnp.transpose(swapped, order)


def _sparse_product(lhs: Any, rhs: Any, dimension_numbers: Any, preferred: Any) -> Any:
    what = "bcoo_dot_general"
    numbers, shape = checked_numbers(what, dimension_numbers, lhs.shape, rhs.shape)
    (lc, rc), (lb, rb) = numbers
    # The batch of the product in front, as batch dimensions where both have them.
    n = 0
    while n < len(lb) and lb[n] < lhs.n_batch and rb[n] < rhs.n_batch:
        n += 1
    sides = []
    for mat, contracting, batch in ((lhs, lc, lb), (rhs, rc, rb)):
        free = free_dims(mat.ndim, contracting, batch)
        order = (*batch, *free, *contracting)
        mat = relaid(mat, mat.n_batch, 0)
        mat = relaid(transposed(mat, order), n, 0)
        first = len(batch) + len(free)
        sides.append((mat, tuple(range(first, mat.ndim))))
    (left, left_contracting), (right, right_contracting) = sides
    batch = tuple(range(len(lb)))
    data, indices = bcoo_spdot_general_p.bind(
        left.data,
        left.indices,
        right.data,
        right.indices,
        lhs_spinfo=left.info,
        rhs_spinfo=right.info,
        dimension_numbers=((left_contracting, right_contracting), (batch, batch)),
        preferred_element_type=result_dtype(what, lhs.dtype, rhs.dtype, preferred),
    )
    is_full = indices.shape[-2] < left.nse * right.nse
    return lhs.like(data, indices, shape, indices_sorted=is_full, unique_indices=is_full)


def bcoo_dot_general_sampled(
    A: ArrayLike, B: ArrayLike, indices: ArrayLike, *, dimension_numbers: DotNumbers
) -> Array:
    """Some elements of a product of dense arrays, without the others.

    Args:
        A: an array.
        B: an array.
        indices: positions in the product, integers of shape (*batch, nse, n_sparse).
        dimension_numbers: as of `lax.dot_general`.

    Returns:
        The elements, of shape (*batch, nse, *dense); 0 for positions that are outside.

    Example:
        >>> from dovetail.experimental import sparse
        >>> x = jnp.array([[1.0, 2.0], [3.0, 4.0]])
        >>> numbers = (((1,), (0,)), ((), ()))
        >>> sparse.bcoo_dot_general_sampled(x, x, jnp.array([[1, 0]]), dimension_numbers=numbers)
        Array([15.], dtype=float32)
    """
    what = "bcoo_dot_general_sampled"
    left, right = value(array_like(A, what, "A")), value(array_like(B, what, "B"))
    positions = value(array_like(indices, what, "indices"))
    numbers, _ = checked_numbers(what, dimension_numbers, left.shape, right.shape)
    return bcoo_dot_general_sampled_p.bind(left, right, positions, dimension_numbers=numbers)
