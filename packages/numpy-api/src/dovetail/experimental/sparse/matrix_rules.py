"""The primitives on COO and CSR matrices.

These are `coo_todense_p`, `coo_fromdense_p`, `coo_matvec_p` and `coo_matmat_p`, and the same four
for CSR.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from dovetail import numpy as jnp
from dovetail.experimental.sparse.bcoo_elements import (
    bcoo_fromdense_p,
    bcoo_todense_p,
    extracted,
)
from dovetail.experimental.sparse.bcoo_products import dense_product, result_dtype
from dovetail.experimental.sparse.layouts import (
    SparseInfo,
    bcoo_layout,
    require_positions,
)
from dovetail.experimental.sparse.primitives import Rules, made
from dovetail.experimental.sparse.products import is_by_rows, sparse_times_dense
from dovetail.experimental.sparse.rows import (
    coordinates_of,
    indptr_of,
    numpy_coordinates_of,
    rows_times_dense,
)
from dovetail.extend.avals import Zero, aval_of, make_aval

Shape = tuple[int, ...]


class COOInfo(NamedTuple):
    """What is known of a COO matrix besides its arrays.

    Attributes:
        shape: sizes of the dimensions.
        rows_sorted: whether rows are sorted.
        cols_sorted: whether columns are sorted.
    """

    shape: Shape
    rows_sorted: bool = False
    cols_sorted: bool = False


class _MatrixRules(Rules):
    """Rules of a primitive on the arrays of a matrix."""

    def positions(self, first: Any, second: Any) -> Any:
        """Positions of shape (nse, 2)."""
        raise NotImplementedError

    def numpy_positions(self, first: Any, second: Any) -> Any:
        """The same in NumPy."""
        raise NotImplementedError

    def shape_of(self, params: dict[str, Any]) -> Shape:
        """The shape of the matrix."""
        raise NotImplementedError

    def check(self, data: Any, first: Any, second: Any, shape: Shape) -> None:
        """Refuse arrays that do not fit together."""
        raise NotImplementedError


class _Coo(_MatrixRules):
    """Rules of a primitive on rows and columns."""

    def positions(self, row: Any, col: Any) -> Any:
        dtype = np.promote_types(row.dtype, col.dtype)
        return jnp.stack([row.astype(dtype), col.astype(dtype)], -1)

    def numpy_positions(self, row: Any, col: Any) -> Any:
        return np.stack([row, col], -1)

    def shape_of(self, params: dict[str, Any]) -> Shape:
        shape: Shape = params["spinfo"].shape
        return shape

    def check(self, data: Any, row: Any, col: Any, shape: Shape) -> None:
        check_coo(self.name, data, row, col, shape)


class _Csr(_MatrixRules):
    """Rules of a primitive on compressed rows."""

    def positions(self, indices: Any, indptr: Any) -> Any:
        return coordinates_of(indices, indptr)

    def numpy_positions(self, indices: Any, indptr: Any) -> Any:
        return numpy_coordinates_of(indices, indptr)

    def shape_of(self, params: dict[str, Any]) -> Shape:
        shape: Shape = params["shape"]
        return shape

    def check(self, data: Any, indices: Any, indptr: Any, shape: Shape) -> None:
        check_csr(self.name, data, indices, indptr, shape)


def check_matrix(what: str, shape: Shape) -> None:
    """Refuse a shape that is not one of a matrix."""
    if len(shape) != 2:
        raise ValueError(f"{what} must have two dimensions, got the shape {shape}")


def check_coo(what: str, data: Any, row: Any, col: Any, shape: Shape) -> None:
    """Refuse arrays that do not make a COO matrix."""
    check_matrix(what, shape)
    require_positions(what, "row", row)
    require_positions(what, "col", col)
    if len(data.shape) != 1 or not data.shape == row.shape == col.shape:
        raise ValueError(
            f"{what}: data, row and col must be vectors of one length, got the shapes "
            f"{data.shape}, {row.shape} and {col.shape}"
        )


def check_csr(what: str, data: Any, indices: Any, indptr: Any, shape: Shape) -> None:
    """Refuse arrays that do not make a CSR matrix."""
    check_matrix(what, shape)
    require_positions(what, "indices", indices)
    require_positions(what, "indptr", indptr)
    if len(data.shape) != 1 or data.shape != indices.shape or indptr.shape != (shape[0] + 1,):
        raise ValueError(
            f"{what}: data and indices must be vectors of one length, and indptr one of length "
            f"{shape[0] + 1} for the shape {shape}; got the shapes {data.shape}, {indices.shape} "
            f"and {indptr.shape}"
        )


class _ToDense(_MatrixRules):
    """The sums of elements at their positions."""

    linear = (0,)

    def formula(self, data: Any, *rest: Any, **params: Any) -> Any:
        info = SparseInfo(self.shape_of(params))
        return bcoo_todense_p.bind(data, self.positions(*rest), spinfo=info)

    def abstract(self, data: Any, *rest: Any, **params: Any) -> Any:
        first, second = rest
        self.check(data, first, second, self.shape_of(params))
        return make_aval(self.shape_of(params), data.dtype)

    def reference(self, data: Any, *rest: Any, **params: Any) -> Any:
        info = SparseInfo(self.shape_of(params))
        return bcoo_todense_p.reference(data, self.numpy_positions(*rest), spinfo=info)


class _CooToDense(_Coo, _ToDense):
    name = "coo_todense"


class _CsrToDense(_Csr, _ToDense):
    name = "csr_todense"


coo_todense_p: Final = made(_CooToDense())
csr_todense_p: Final = made(_CsrToDense())


class _FromDense(_MatrixRules):
    """Elements other than 0 of a dense matrix, and their positions."""

    multiple_results = True

    def parts(self, positions: Any, n_rows: int) -> tuple[Any, Any]:
        """The arrays that positions of shape (nse, 2) are stored as."""
        raise NotImplementedError

    def formula(self, mat: Any, *, nse: int, index_dtype: Any) -> tuple[Any, Any, Any]:
        data, positions = bcoo_fromdense_p.bind(
            mat, nse=nse, n_batch=0, n_dense=0, index_dtype=index_dtype
        )
        return data, *self.parts(positions, aval_of(mat).shape[0])

    def abstract(self, mat: Any, *, nse: int, index_dtype: Any) -> list[Any]:
        check_matrix(self.name, mat.shape)
        dtype = np.dtype(index_dtype)
        structs = self.parts_avals(nse, mat.shape[0])
        return [make_aval((nse,), mat.dtype), *(make_aval(n, dtype) for n in structs)]

    def parts_avals(self, nse: int, n_rows: int) -> tuple[Shape, Shape]:
        """The shapes of the arrays that positions are stored as."""
        raise NotImplementedError

    def numpy_parts(self, positions: Any, n_rows: int) -> tuple[Any, Any]:
        """`parts` in NumPy."""
        raise NotImplementedError

    def reference(self, mat: Any, *, nse: int, index_dtype: Any) -> list[Any]:
        data, positions = bcoo_fromdense_p.reference(
            mat, nse=nse, n_batch=0, n_dense=0, index_dtype=index_dtype
        )
        return [data, *self.numpy_parts(positions, np.shape(mat)[0])]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        data, *rest = self.primitive.bind(*primals, **params)
        tangent = extracted(self.positions(*rest), tangents[0])
        return [data, *rest], [tangent, *map(Zero.of, rest)]


class _CooFromDense(_Coo, _FromDense):
    name = "coo_fromdense"

    def parts(self, positions: Any, n_rows: int) -> tuple[Any, Any]:
        return positions[:, 0], positions[:, 1]

    def parts_avals(self, nse: int, n_rows: int) -> tuple[Shape, Shape]:
        return (nse,), (nse,)

    def numpy_parts(self, positions: Any, n_rows: int) -> tuple[Any, Any]:
        return positions[:, 0], positions[:, 1]


class _CsrFromDense(_Csr, _FromDense):
    name = "csr_fromdense"

    def parts(self, positions: Any, n_rows: int) -> tuple[Any, Any]:
        return positions[:, 1], indptr_of(positions[:, 0], n_rows)

    def parts_avals(self, nse: int, n_rows: int) -> tuple[Shape, Shape]:
        return (nse,), (n_rows + 1,)

    def numpy_parts(self, positions: Any, n_rows: int) -> tuple[Any, Any]:
        begins = (positions[:, 0] < np.arange(n_rows + 1)[:, None]).sum(-1)
        return positions[:, 1], begins.astype(positions.dtype)


coo_fromdense_p: Final = made(_CooFromDense())
csr_fromdense_p: Final = made(_CsrFromDense())


class _Product(_MatrixRules):
    """A matrix, or its transpose, times a vector or a dense matrix.

    Attributes:
        rhs_ndim: the number of dimensions of the dense operand.
    """

    linear = (0, 3)
    generates_nan = True
    rhs_ndim = 1

    def formula(
        self, data: Any, first: Any, second: Any, rhs: Any, *, transpose: bool, **params: Any
    ) -> Any:
        positions = self.positions(first, second)
        layout = bcoo_layout(self.name, aval_of(data), aval_of(positions), self.shape_of(params))
        dtype = result_dtype(self.name, data.dtype, rhs.dtype, None)
        numbers = (((0 if transpose else 1,), (0,)), ((), ()))
        if isinstance(self, _Csr) and is_by_rows(layout, rhs, numbers, dtype):
            parts = (data.astype(dtype), first, second)
            return rows_times_dense(*parts, layout.shape[1], rhs.astype(dtype))
        return sparse_times_dense(layout, data, positions, rhs, numbers, dtype)

    def abstract(
        self, data: Any, first: Any, second: Any, rhs: Any, *, transpose: bool, **params: Any
    ) -> Any:
        shape = self.shape_of(params)
        self.check(data, first, second, shape)
        rows, columns = reversed(shape) if transpose else shape
        if rhs.ndim != self.rhs_ndim or rhs.shape[0] != columns:
            operand = "a vector" if self.rhs_ndim == 1 else "a matrix"
            of_transpose = "the transpose of " if transpose else ""
            raise ValueError(
                f"{self.name}: {of_transpose}a matrix of shape {shape} takes {operand} whose "
                f"first dimension is {columns}, got the shape {rhs.shape}"
            )
        return make_aval(
            (rows, *rhs.shape[1:]), result_dtype(self.name, data.dtype, rhs.dtype, None)
        )

    def reference(
        self, data: Any, first: Any, second: Any, rhs: Any, *, transpose: bool, **params: Any
    ) -> Any:
        info = SparseInfo(self.shape_of(params))
        positions = self.numpy_positions(first, second)
        lhs = bcoo_todense_p.reference(data, positions, spinfo=info)
        rhs = np.asarray(rhs)
        dtype = result_dtype(self.name, lhs.dtype, rhs.dtype, None)
        return dense_product(lhs, rhs, (((0 if transpose else 1,), (0,)), ((), ())), dtype)


class _CooMatvec(_Coo, _Product):
    name = "coo_matvec"


class _CooMatmat(_Coo, _Product):
    name = "coo_matmat"
    rhs_ndim = 2


class _CsrMatvec(_Csr, _Product):
    name = "csr_matvec"


class _CsrMatmat(_Csr, _Product):
    name = "csr_matmat"
    rhs_ndim = 2


coo_matvec_p: Final = made(_CooMatvec())
coo_matmat_p: Final = made(_CooMatmat())
csr_matvec_p: Final = made(_CsrMatvec())
csr_matmat_p: Final = made(_CsrMatmat())
