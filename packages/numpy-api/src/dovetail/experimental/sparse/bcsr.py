"""BCSR arrays, by compressed rows, and their primitives.

These are `bcsr_todense_p`, `bcsr_extract_p`, `bcsr_fromdense_p` and `bcsr_dot_general_p`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dovetail import numpy as jnp
from dovetail.experimental.sparse.bcoo import BCOO
from dovetail.experimental.sparse.bcoo_elements import (
    batched_info,
    bcoo_extract_p,
    bcoo_fromdense_p,
    bcoo_todense_p,
    counts,
    extracted,
    nonzero_count,
)
from dovetail.experimental.sparse.bcoo_order import bcoo_sort_indices
from dovetail.experimental.sparse.bcoo_products import (
    bcoo_dot_general,
    dense_product,
    result_dtype,
)
from dovetail.experimental.sparse.bcoo_shapes import bcoo_broadcast_in_dim, bcoo_concatenate
from dovetail.experimental.sparse.convertible import Convertible
from dovetail.experimental.sparse.coordinates import is_array
from dovetail.experimental.sparse.entries import full_batch
from dovetail.experimental.sparse.formats import JAXSparse
from dovetail.experimental.sparse.layouts import (
    Description,
    Layout,
    SparseInfo,
    bcoo_layout,
    bcsr_layout,
    check_batch_axes,
    index_dtype_for,
    require_positions,
    with_shape,
)
from dovetail.experimental.sparse.primitives import BatchedRules, Rules, made
from dovetail.experimental.sparse.products import (
    DotNumbers,
    checked_numbers,
    is_by_rows,
    sparse_times_dense,
)
from dovetail.experimental.sparse.rows import (
    coordinates_of,
    indptr_of,
    numpy_coordinates_of,
    rows_times_dense,
)
from dovetail.extend.arguments import array_like, integer, value
from dovetail.extend.avals import Zero, aval_of, make_aval
from dovetail.extend.batching import register_batched_node
from dovetail.extend.tracebacks import bounded
from dovetail.typing import Array, ArrayLike, DTypeLike, Sharding


class _ToDense(BatchedRules):
    """The sums of elements at their positions."""

    name = "bcsr_todense"
    linear = (0,)

    def formula(self, data: Any, indices: Any, indptr: Any, *, spinfo: SparseInfo) -> Any:
        return bcoo_todense_p.bind(data, coordinates_of(indices, indptr), spinfo=spinfo)

    def abstract(self, data: Any, indices: Any, indptr: Any, *, spinfo: SparseInfo) -> Any:
        bcsr_layout(self.name, data, indices, indptr, spinfo.shape)
        return make_aval(spinfo.shape, data.dtype)

    def reference(self, data: Any, indices: Any, indptr: Any, *, spinfo: SparseInfo) -> Any:
        positions = numpy_coordinates_of(indices, indptr)
        return bcoo_todense_p.reference(data, positions, spinfo=spinfo)

    def batched_params(self, size: int, **params: Any) -> dict[str, Any]:
        return {"spinfo": batched_info(size, params["spinfo"])}


bcsr_todense_p: Final = made(_ToDense())


class _Extract(BatchedRules):
    """Elements of a dense array at positions."""

    name = "bcsr_extract"
    linear = (2,)
    dense_operands = (2,)

    def formula(self, indices: Any, indptr: Any, mat: Any) -> Any:
        return extracted(coordinates_of(indices, indptr), mat)

    def abstract(self, indices: Any, indptr: Any, mat: Any) -> Any:
        require_positions(self.name, "indices", indices)
        require_positions(self.name, "indptr", indptr)
        n_batch = indices.ndim - 1
        if n_batch < 0 or indptr.ndim != n_batch + 1 or mat.ndim < n_batch + 2:
            raise ValueError(
                f"{self.name}: indices of shape (*batch, nse) and indptr of shape (*batch, rows + "
                f"1) must fit an array of shape (*batch, rows, columns, *dense); got "
                f"{indices.shape}, {indptr.shape} and {mat.shape}"
            )
        shape = (*mat.shape[:n_batch], indices.shape[-1], *mat.shape[n_batch + 2 :])
        data = make_aval(shape, mat.dtype)
        bcsr_layout(self.name, data, indices, indptr, mat.shape)
        return data

    def reference(self, indices: Any, indptr: Any, mat: Any) -> Any:
        positions = numpy_coordinates_of(indices, indptr)
        return bcoo_extract_p.reference(positions, mat, assume_unique=True)

    def batched_params(self, size: int, **params: Any) -> dict[str, Any]:
        return params


bcsr_extract_p: Final = made(_Extract())


class _FromDense(Rules):
    """Elements other than 0 of a dense array, and their compressed rows."""

    name = "bcsr_fromdense"
    multiple_results = True

    def formula(self, mat: Any, **params: Any) -> tuple[Any, Any, Any]:
        data, positions = bcoo_fromdense_p.bind(mat, **params)
        n_rows = aval_of(mat).shape[params["n_batch"]]
        return data, positions[..., 1], indptr_of(positions[..., 0], n_rows)

    def abstract(
        self, mat: Any, *, nse: int, n_batch: int, n_dense: int, index_dtype: Any
    ) -> list[Any]:
        batch, dtype = mat.shape[:n_batch], np.dtype(index_dtype)
        return [
            make_aval((*batch, nse, *mat.shape[n_batch + 2 :]), mat.dtype),
            make_aval((*batch, nse), dtype),
            make_aval((*batch, mat.shape[n_batch] + 1), dtype),
        ]

    def reference(self, mat: Any, **params: Any) -> list[Any]:
        data, positions = bcoo_fromdense_p.reference(mat, **params)
        n_rows = np.shape(mat)[params["n_batch"]]
        rows = positions[..., 0]
        below = rows[..., None, :] < np.arange(n_rows + 1)[:, None]
        return [data, positions[..., 1], below.sum(-1).astype(rows.dtype)]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        data, indices, indptr = bcsr_fromdense_p.bind(*primals, **params)
        tangent = bcsr_extract_p.bind(indices, indptr, tangents[0])
        return [data, indices, indptr], [tangent, Zero.of(indices), Zero.of(indptr)]

    def batch(
        self, operands: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        (dim,) = dims
        assert dim is not None
        params["n_batch"] += 1
        return bcsr_fromdense_p.bind(jnp.moveaxis(operands[0], dim, 0), **params), [0, 0, 0]


bcsr_fromdense_p: Final = made(_FromDense())


class _DotGeneral(Rules):
    """A sparse array by compressed rows times a dense one."""

    name = "bcsr_dot_general"
    linear = (0, 3)
    generates_nan = True

    def formula(
        self,
        data: Any,
        indices: Any,
        indptr: Any,
        rhs: Any,
        *,
        dimension_numbers: DotNumbers,
        preferred_element_type: Any,
        lhs_spinfo: SparseInfo,
    ) -> Any:
        positions = coordinates_of(indices, indptr)
        layout = bcoo_layout(self.name, aval_of(data), aval_of(positions), lhs_spinfo.shape)
        dtype = result_dtype(self.name, data.dtype, rhs.dtype, preferred_element_type)
        if is_by_rows(layout, rhs, dimension_numbers, dtype):
            parts = (data.astype(dtype), indices, indptr)
            return rows_times_dense(*parts, layout.shape[1], rhs.astype(dtype))
        return sparse_times_dense(layout, data, positions, rhs, dimension_numbers, dtype)

    def abstract(
        self,
        data: Any,
        indices: Any,
        indptr: Any,
        rhs: Any,
        *,
        dimension_numbers: DotNumbers,
        preferred_element_type: Any,
        lhs_spinfo: SparseInfo,
    ) -> Any:
        bcsr_layout(self.name, data, indices, indptr, lhs_spinfo.shape)
        _, shape = checked_numbers(self.name, dimension_numbers, lhs_spinfo.shape, rhs.shape)
        return make_aval(
            shape, result_dtype(self.name, data.dtype, rhs.dtype, preferred_element_type)
        )

    def reference(
        self,
        data: Any,
        indices: Any,
        indptr: Any,
        rhs: Any,
        *,
        dimension_numbers: DotNumbers,
        preferred_element_type: Any,
        lhs_spinfo: SparseInfo,
    ) -> Any:
        lhs = bcsr_todense_p.reference(data, indices, indptr, spinfo=lhs_spinfo)
        dtype = result_dtype(self.name, lhs.dtype, rhs.dtype, preferred_element_type)
        return dense_product(lhs, np.asarray(rhs), dimension_numbers, dtype)


bcsr_dot_general_p: Final = made(_DotGeneral())


@bounded
class BCSR(Convertible):
    """A sparse array by compressed rows, with batch and dense dimensions.

    Of the dimensions (*batch, rows, columns, *dense) the stored elements have columns, and each row
    has a range of places. It is a pytree with the leaves `data`, `indices` and `indptr`.

    Args:
        args: the elements, of shape (*batch, nse, *dense); their columns, integers of shape
            (*batch, nse); and where rows begin, integers of shape (*batch, rows + 1), of which the
            last says where the last row ends. Batch dimensions may be 1.
        shape: sizes of all dimensions.
        indices_sorted: a promise that the columns of each row are sorted.
        unique_indices: a promise that no position is there twice.

    Raises:
        ValueError: the shapes do not fit together.
        TypeError: positions are not integers.

    Attributes:
        data: the elements.
        indices: their columns.
        indptr: where rows begin.
        shape: sizes of the dimensions.

    Differs:
        There are operators, methods and products with other sparse arrays, all those that BCOO
        arrays have; in JAX there is the product with a dense array alone.

        >>> from dovetail.experimental import sparse
        >>> mat = sparse.BCSR.fromdense(jnp.eye(2))
        >>> (2 * mat + mat).T
        BCSR(float32[2, 2], nse=4)

    Example:
        >>> from dovetail.experimental import sparse
        >>> mat = sparse.BCSR.fromdense(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
        >>> mat.indptr
        Array([0, 1, 2], dtype=int32)
        >>> mat @ jnp.array([1.0, 10.0])
        Array([10.,  2.], dtype=float32)
    """

    _parts = ("data", "indices", "indptr")

    #: The number of batch dimensions before something else took the place of the leaves.
    _n_batch: int = 0

    indices: Array
    indptr: Array
    indices_sorted: bool
    unique_indices: bool

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        indices_sorted: bool = False,
        unique_indices: bool = False,
    ) -> None:
        parts = [
            value(array_like(jnp.asarray(x), "BCSR", name))
            for x, name in zip(args, self._parts, strict=True)
        ]
        super().__init__(parts, shape=shape)
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        self._layout()

    @classmethod
    def _made(cls, data: Any, indices: Any, indptr: Any, info: SparseInfo) -> BCSR:
        mat = object.__new__(BCSR)
        mat.data, mat.indices, mat.indptr = data, indices, indptr
        mat.shape, mat.indices_sorted, mat.unique_indices = info
        return mat

    def _layout(self) -> Layout:
        data, indices, indptr = map(aval_of, (self.data, self.indices, self.indptr))
        return bcsr_layout("BCSR", data, indices, indptr, self.shape)

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    def _description(self) -> Description:
        known = hasattr(self.indices, "shape")
        return Description(
            self._info, max(len(self.indices.shape) - 1, 0) if known else self._n_batch
        )

    def spread(self) -> BCSR:
        """The array with leaves of full size along all batch dimensions."""
        parts = (self.data, self.indices, self.indptr)
        if not (all(map(is_array, parts)) and self.n_batch):
            return self
        layout = self._layout()
        data, indices, indptr = (full_batch(x, layout.n_batch, layout.batch) for x in parts)
        return self._made(data, indices, indptr, self._info)

    def check_axes(self, what: str, added: bool) -> None:
        """Refuse axes of `vmap`, which stand in the place of leaves, that are not of the batch."""
        axes: list[Any] = [self.data, self.indices, self.indptr]
        check_batch_axes("BCSR", Description(self._info, self._n_batch), axes, what, added)

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Sequence[Any]) -> BCSR:
        """The inverse of `tree_flatten`; batch dimensions of the leaves become those of the array.

        Transformations that map over the leaves take batch dimensions away or add some.
        """
        data, indices, indptr = children
        info, n_before = aux_data
        if all(map(is_array, children)) and indices.ndim >= 1:
            n_batch = indices.ndim - 1
            n_dense = data.ndim - 1 - n_batch
            if indptr.ndim == n_batch + 1 and 0 <= n_dense <= len(info.shape) - 2:
                parts: list[Any] = [x.shape[:n_batch] for x in children]
                info = info._replace(shape=with_shape(info.shape, 2 + n_dense, parts, n_batch))
        mat = cls._made(data, indices, indptr, info)
        mat._n_batch = n_before
        return mat

    @classmethod
    def fromdense(
        cls,
        mat: ArrayLike,
        *,
        nse: int | None = None,
        index_dtype: DTypeLike = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCSR:
        """The sparse array of a dense one: see `bcsr_fromdense`."""
        return bcsr_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """The BCSR array of a BCOO array with two sparse dimensions.

        Raises:
            ValueError: it has another number of sparse dimensions.
        """
        if not isinstance(arr, BCOO):
            raise TypeError(f"BCSR.from_bcoo takes a BCOO array, got {type(arr).__name__}")
        if arr.n_sparse != 2:
            raise ValueError(
                f"BCSR.from_bcoo: there must be two sparse dimensions, got n_sparse={arr.n_sparse}"
                " of " + repr(arr)
            )
        arr = arr if arr.indices_sorted else bcoo_sort_indices(arr)
        indptr = indptr_of(arr.indices[..., 0], arr.shape[arr.n_batch])
        return cls._made(arr.data, arr.indices[..., 1], indptr, arr.info)

    @classmethod
    def from_scipy_sparse(
        cls,
        mat: Any,
        *,
        index_dtype: DTypeLike | None = None,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCSR:
        """The sparse array of one of SciPy's: see `BCOO.from_scipy_sparse`."""
        made = BCOO.from_scipy_sparse(
            mat, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )
        return cls.from_bcoo(made)

    @classmethod
    def _holds(cls, arr: BCOO) -> bool:
        return arr.n_sparse == 2

    @property
    def nse(self) -> int:
        """The number of stored elements for each index of the batch."""
        return int(self.indices.shape[-1])

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        return len(self.indices.shape) - 1

    @property
    def n_sparse(self) -> int:
        """The number of sparse dimensions, which is 2."""
        return 2

    @property
    def n_dense(self) -> int:
        """The number of dense dimensions."""
        return self.ndim - self.n_batch - 2

    def _further(self) -> str:
        return "".join(
            f", {name}={count}"
            for name, count in (("n_batch", self.n_batch), ("n_dense", self.n_dense))
            if count
        )

    def to_bcoo(self) -> BCOO:
        """The BCOO array of the same elements."""
        indices = coordinates_of(self.indices, self.indptr)
        return BCOO.made(self.data, indices, self._info)

    def todense(self) -> Array:
        """The array with all its elements."""
        return bcsr_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The array with its dimensions in another order, by default reversed."""
        return self._back(self.to_bcoo().transpose(axes))

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The array with each position once: as of a BCOO array."""
        return self.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))

    def __matmul__(self, other: Any) -> Any:
        if not isinstance(other, JAXSparse) and is_array(other) and 1 <= other.ndim <= 2:
            numbers = (((self.ndim - 1,), (0,)), ((), ()))
            return bcsr_dot_general(self, other, dimension_numbers=numbers)
        return super().__matmul__(other)


register_batched_node(BCSR)


def _require(what: str, name: str, mat: Any) -> None:
    if not isinstance(mat, BCSR):
        raise TypeError(f"{what} requires {name} to be a BCSR array, got {type(mat).__name__}")


def bcsr_todense(mat: BCSR) -> Array:
    """The dense array of a BCSR array.

    Args:
        mat: a BCSR array.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.bcsr_todense(sparse.BCSR(([3.0], [1], [0, 0, 1]), shape=(2, 2)))
        Array([[0., 0.],
               [0., 3.]], dtype=float32)
    """
    _require("bcsr_todense", "mat", mat)
    return bcsr_todense_p.bind(mat.data, mat.indices, mat.indptr, spinfo=mat._info)


def bcsr_fromdense(
    mat: ArrayLike,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = jnp.int32,
) -> BCSR:
    """The BCSR array of a dense one.

    Args:
        mat: a dense array.
        nse: how many places there are for each index of the batch. What does not fit is left out.
            By default as many as elements other than 0, which are counted: so it must be given
            where `mat` is traced.
        n_batch: how many leading dimensions are batch dimensions.
        n_dense: how many trailing dimensions are stored whole; two are left between.
        index_dtype: dtype of the positions.

    Raises:
        ValueError: not two dimensions are left.
        ConcretizationTypeError: `nse` is needed.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.bcsr_fromdense(jnp.array([[0, 1], [0, 2]])).indptr
        Array([0, 1, 2], dtype=int32)
    """
    what = "bcsr_fromdense"
    if isinstance(mat, JAXSparse):
        raise TypeError(f"{what} takes a dense array, got {type(mat).__name__}")
    dense = value(array_like(jnp.asarray(mat), what, "mat"))
    n_batch, n_dense = counts(what, dense.ndim, n_batch, n_dense)
    if dense.ndim - n_batch - n_dense != 2:
        raise ValueError(
            f"{what}: two sparse dimensions must be left of an array of shape {dense.shape}, got "
            f"n_batch={n_batch} and n_dense={n_dense}"
        )
    if nse is None:
        nse = nonzero_count(what, dense, n_batch, n_dense)
    nse = integer(what, "nse", nse)
    if nse < 0:
        raise ValueError(f"{what}: nse must not be negative, got {nse}")
    sizes = (*dense.shape[n_batch : n_batch + 2], nse)
    dtype = index_dtype_for(what, index_dtype, sizes)
    data, indices, indptr = bcsr_fromdense_p.bind(
        dense, nse=nse, n_batch=n_batch, n_dense=n_dense, index_dtype=dtype
    )
    return BCSR._made(data, indices, indptr, SparseInfo(dense.shape, True, True))


def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """The elements of a dense array at the positions of a BCSR array.

    Args:
        indices: columns, of shape (*batch, nse).
        indptr: where rows begin, of shape (*batch, rows + 1).
        mat: a dense array of shape (*batch, rows, columns, *dense).

    Returns:
        The elements, of shape (*batch, nse, *dense).

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.bcsr_extract(jnp.array([1]), jnp.array([0, 0, 1]), jnp.array([[1, 2], [3, 4]]))
        Array([4], dtype=int32)
    """
    columns, begins, dense = (
        value(array_like(jnp.asarray(x), "bcsr_extract", name))
        for x, name in ((indices, "indices"), (indptr, "indptr"), (mat, "mat"))
    )
    return bcsr_extract_p.bind(columns, begins, dense)


def bcsr_dot_general(
    lhs: BCSR | ArrayLike,
    rhs: BCSR | ArrayLike,
    *,
    dimension_numbers: DotNumbers,
    precision: None = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: Sharding | None = None,
) -> Any:
    """`lax.dot_general` of arrays of which one or both are BCSR arrays.

    Args:
        lhs: a BCSR array or a dense one.
        rhs: a BCSR array or a dense one.
        dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``.
        precision: must be None.
        preferred_element_type: dtype of the result.
        out_sharding: must be None.

    Returns:
        A dense array if one operand is; otherwise a sparse one.

    Differs:
        JAX takes a BCSR array as `lhs` and a dense array as `rhs` alone.

        >>> from dovetail.experimental import sparse
        >>> jnp.ones(2) @ sparse.BCSR.fromdense(jnp.eye(2))
        Array([1., 1.], dtype=float32)

    Example:
        >>> from dovetail.experimental import sparse
        >>> mat = sparse.BCSR.fromdense(jnp.eye(2))
        >>> sparse.bcsr_dot_general(
        ...     mat, jnp.array([3.0, 4.0]), dimension_numbers=(((1,), (0,)), ((), ()))
        ... )
        Array([3., 4.], dtype=float32)
    """
    what = "bcsr_dot_general"
    if not isinstance(lhs, BCSR) or isinstance(rhs, JAXSparse):
        left, right = (x.to_bcoo() if isinstance(x, BCSR) else x for x in (lhs, rhs))
        result = bcoo_dot_general(
            left,
            right,
            dimension_numbers=dimension_numbers,
            precision=precision,
            preferred_element_type=preferred_element_type,
            out_sharding=out_sharding,
        )
        fits = isinstance(result, BCOO) and BCSR._holds(result)
        return BCSR.from_bcoo(result) if fits else result
    for name, given in (("precision", precision), ("out_sharding", out_sharding)):
        if given is not None:
            raise NotImplementedError(f"{what}: {name} must be None")
    dense = value(array_like(rhs, what, "rhs"))
    numbers, _ = checked_numbers(what, dimension_numbers, lhs.shape, dense.shape)
    return bcsr_dot_general_p.bind(
        lhs.data,
        lhs.indices,
        lhs.indptr,
        dense,
        dimension_numbers=numbers,
        preferred_element_type=result_dtype(what, lhs.dtype, dense.dtype, preferred_element_type),
        lhs_spinfo=lhs._info,
    )


def bcsr_broadcast_in_dim(
    mat: BCSR,
    *,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    sharding: Sharding | None = None,
) -> BCSR:
    """A BCSR array repeated along new dimensions: see `bcoo_broadcast_in_dim`.

    Args:
        mat: a BCSR array.
        shape: of the result.
        broadcast_dimensions: for each dimension of `mat` which one of the result it is.
        sharding: must be None.

    Raises:
        ValueError: the result would not have two sparse dimensions.

    Example:
        >>> from dovetail.experimental import sparse
        >>> mat = sparse.BCSR.fromdense(jnp.eye(2))
        >>> sparse.bcsr_broadcast_in_dim(mat, shape=(3, 2, 2), broadcast_dimensions=(1, 2))
        BCSR(float32[3, 2, 2], nse=2, n_batch=1)
    """
    _require("bcsr_broadcast_in_dim", "mat", mat)
    result = bcoo_broadcast_in_dim(
        mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions, sharding=sharding
    )
    return BCSR.from_bcoo(result)


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """BCSR arrays one behind the other: see `bcoo_concatenate`.

    Args:
        operands: BCSR arrays, of shapes that differ in `dimension` alone.
        dimension: along which they are joined.

    Example:
        >>> from dovetail.experimental import sparse
        >>> mat = sparse.BCSR.fromdense(jnp.eye(2))
        >>> sparse.bcsr_concatenate([mat, mat], dimension=0)
        BCSR(float32[4, 2], nse=4)
    """
    mats = list(operands)
    for i, mat in enumerate(mats):
        _require("bcsr_concatenate", f"operands[{i}]", mat)
    return BCSR.from_bcoo(bcoo_concatenate([mat.to_bcoo() for mat in mats], dimension=dimension))


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """A BCSR array with each position once: see `bcoo_sum_duplicates`.

    Args:
        mat: a BCSR array.
        nse: how many places the result has; by default as many as are needed, which are counted.

    Raises:
        ValueError: `nse` is needed, or negative.

    Example:
        >>> from dovetail.experimental import sparse
        >>> mat = sparse.BCSR(([1.0, 2.0], [0, 0], [0, 2]), shape=(1, 2))
        >>> sparse.bcsr_sum_duplicates(mat)
        BCSR(float32[1, 2], nse=1)
    """
    _require("bcsr_sum_duplicates", "mat", mat)
    return mat.sum_duplicates(nse, remove_zeros=False)
