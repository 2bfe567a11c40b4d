"""COO, CSR and CSC: matrices without batch or dense dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from dovetail import numpy as jnp
from dovetail.experimental.sparse.bcoo import BCOO
from dovetail.experimental.sparse.bcoo_elements import nonzero_count
from dovetail.experimental.sparse.bcoo_layouts import relaid
from dovetail.experimental.sparse.bcoo_order import bcoo_sort_indices
from dovetail.experimental.sparse.convertible import Convertible
from dovetail.experimental.sparse.coordinates import is_array
from dovetail.experimental.sparse.formats import JAXSparse
from dovetail.experimental.sparse.layouts import SparseInfo, index_dtype_for
from dovetail.experimental.sparse.matrix_rules import (
    COOInfo,
    check_coo,
    check_csr,
    check_matrix,
    coo_fromdense_p,
    coo_matmat_p,
    coo_matvec_p,
    coo_todense_p,
    csr_fromdense_p,
    csr_matmat_p,
    csr_matvec_p,
    csr_todense_p,
)
from dovetail.experimental.sparse.rows import coordinates_of, indptr_of
from dovetail.extend.arguments import array_like, canonical_axes, integer, value
from dovetail.extend.avals import aval_of
from dovetail.extend.tracebacks import bounded
from dovetail.typing import Array, ArrayLike, DTypeLike

Shape = tuple[int, ...]


@bounded
class _Matrix(Convertible):
    """A matrix of three vectors."""

    def __init__(self, args: Sequence[Any], *, shape: Sequence[int]) -> None:
        name = type(self).__name__
        parts = [
            value(array_like(jnp.asarray(x), name, part))
            for x, part in zip(args, self._parts, strict=True)
        ]
        super().__init__(parts, shape=shape)
        self._check()

    def _check(self) -> None:
        """Refuse arrays that do not fit together."""
        raise NotImplementedError

    @property
    def nse(self) -> int:
        """The number of stored elements."""
        return int(self.data.shape[0])

    def _swapped(self, axes: Sequence[int] | None) -> bool:
        """Whether an order of the dimensions is the other one."""
        name = f"{type(self).__name__}.transpose"
        order = (1, 0) if axes is None else canonical_axes(name, tuple(axes), 2, "axes")
        if len(order) != 2:
            raise TypeError(f"{name}: axes must have both dimensions once, got {axes}")
        return order == (1, 0)

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
    ) -> Self:
        """The sparse matrix of a dense one.

        Args:
            mat: a dense matrix.
            nse: how many places there are; by default as many as elements other than 0.
            index_dtype: dtype of the positions.
        """
        raise NotImplementedError(f"{cls.__name__} is not made of dense matrices")

    def _matmul(self, other: Any) -> Any:
        """The product with a dense operand; NotImplemented for others."""
        return NotImplemented

    def __matmul__(self, other: Any) -> Any:
        if not isinstance(other, JAXSparse) and is_array(other) and 1 <= other.ndim <= 2:
            return self._matmul(value(array_like(other, "matmul", "other")))
        return super().__matmul__(other)


@bounded
class COO(_Matrix):
    """A sparse matrix by rows and columns of its elements.

    Args:
        args: the elements, their rows and their columns, vectors of one length.
        shape: numbers of rows and columns.
        rows_sorted: a promise that rows are sorted.
        cols_sorted: a promise that columns are sorted.

    Raises:
        ValueError: the shapes do not fit together.
        TypeError: positions are not integers.

    Differs:
        COO, CSR and CSC have the operators and methods of BCOO arrays, and derivatives and batches
        of every function; in JAX they have products with dense arrays alone. What `fromdense` has
        no element for is an unused place, whose position is the size, in place of 0.

        >>> from dovetail.experimental import sparse
        >>> mat = sparse.COO.fromdense(jnp.eye(2))
        >>> mat + mat
        COO(float32[2, 2], nse=4)

    Example:
        >>> from dovetail.experimental import sparse
        >>> mat = sparse.COO.fromdense(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
        >>> mat @ jnp.array([1.0, 10.0])
        Array([10.,  2.], dtype=float32)
    """

    _parts = ("data", "row", "col")

    row: Array
    col: Array
    _rows_sorted: bool
    _cols_sorted: bool

    def __init__(
        self,
        args: tuple[Any, Any, Any],
        *,
        shape: Sequence[int],
        rows_sorted: bool = False,
        cols_sorted: bool = False,
    ) -> None:
        super().__init__(args, shape=shape)
        self._rows_sorted, self._cols_sorted = bool(rows_sorted), bool(cols_sorted)

    @classmethod
    def _made(cls, parts: Sequence[Any], info: COOInfo) -> COO:
        mat = object.__new__(COO)
        mat.data, mat.row, mat.col = parts
        mat.shape, mat._rows_sorted, mat._cols_sorted = info
        return mat

    def _check(self) -> None:
        check_coo("COO", aval_of(self.data), aval_of(self.row), aval_of(self.col), self.shape)

    def _description(self) -> COOInfo:
        return COOInfo(self.shape, self._rows_sorted, self._cols_sorted)

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Sequence[Any]) -> COO:
        """The inverse of `tree_flatten`."""
        return cls._made(children, COOInfo(*aux_data))

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
    ) -> COO:
        """The COO matrix of a dense one: see `coo_fromdense`."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    def to_bcoo(self) -> BCOO:
        """The BCOO array of the same elements."""
        dtype = np.promote_types(self.row.dtype, self.col.dtype)
        indices = jnp.stack([self.row.astype(dtype), self.col.astype(dtype)], -1)
        return BCOO.made(self.data, indices, SparseInfo(self.shape))

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> COO:
        """The COO matrix of a BCOO array of two dimensions."""
        arr = relaid(arr, 0, 0)
        info = COOInfo(arr.shape, rows_sorted=arr.indices_sorted)
        return cls._made((arr.data, arr.indices[:, 0], arr.indices[:, 1]), info)

    def todense(self) -> Array:
        """The dense matrix."""
        return coo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """The matrix with its dimensions in another order, by default the other one."""
        if not self._swapped(axes):
            return self
        info = COOInfo(self.shape[::-1], self._cols_sorted, self._rows_sorted)
        return self._made((self.data, self.col, self.row), info)

    def _matmul(self, other: Any) -> Any:
        return coo_matvec(self, other) if other.ndim == 1 else coo_matmat(self, other)


@bounded
class CSR(_Matrix):
    """A sparse matrix by compressed rows.

    Args:
        args: the elements and their columns, vectors of one length; and where rows begin, of which
            the last says where the last row ends.
        shape: numbers of rows and columns.

    Raises:
        ValueError: the shapes do not fit together.
        TypeError: positions are not integers.

    Example:
        >>> from dovetail.experimental import sparse
        >>> mat = sparse.CSR.fromdense(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
        >>> mat.T
        CSC(float32[2, 2], nse=2)
    """

    _parts = ("data", "indices", "indptr")

    indices: Array
    indptr: Array

    @classmethod
    def _made(cls, parts: Sequence[Any], shape: Shape) -> Self:
        mat = object.__new__(cls)
        mat.data, mat.indices, mat.indptr = parts
        mat.shape = shape
        return mat

    def _check(self) -> None:
        data, indices, indptr = map(aval_of, (self.data, self.indices, self.indptr))
        check_csr(type(self).__name__, data, indices, indptr, self.shape)

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Sequence[Any]) -> Self:
        """The inverse of `tree_flatten`."""
        return cls._made(children, tuple(aux_data))

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
    ) -> Self:
        """The CSR matrix of a dense one: see `csr_fromdense`."""
        made = csr_fromdense(mat, nse=nse, index_dtype=index_dtype)
        return cls._made((made.data, made.indices, made.indptr), made.shape)

    def to_bcoo(self) -> BCOO:
        """The BCOO array of the same elements."""
        indices = coordinates_of(self.indices, self.indptr)
        return BCOO.made(self.data, indices, SparseInfo(self.shape))

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> Self:
        """The CSR matrix of a BCOO array of two dimensions."""
        arr = relaid(arr, 0, 0)
        arr = arr if arr.indices_sorted else bcoo_sort_indices(arr)
        indptr = indptr_of(arr.indices[:, 0], arr.shape[0])
        return cls._made((arr.data, arr.indices[:, 1], indptr), arr.shape)

    def todense(self) -> Array:
        """The dense matrix."""
        return csr_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The matrix with its dimensions in another order, by default the other one."""
        if not self._swapped(axes):
            return self
        return CSC._made((self.data, self.indices, self.indptr), self.shape[::-1])

    def _matmul(self, other: Any) -> Any:
        return csr_matvec(self, other) if other.ndim == 1 else csr_matmat(self, other)


@bounded
class CSC(_Matrix):
    """A sparse matrix by compressed columns: the transpose of a CSR matrix.

    Args:
        args: the elements and their rows, vectors of one length; and where columns begin, of which
            the last says where the last column ends.
        shape: numbers of rows and columns.

    Raises:
        ValueError: the shapes do not fit together.
        TypeError: positions are not integers.

    Example:
        >>> from dovetail.experimental import sparse
        >>> mat = sparse.CSC.fromdense(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
        >>> mat @ jnp.array([1.0, 10.0])
        Array([10.,  2.], dtype=float32)
    """

    _parts = ("data", "indices", "indptr")

    indices: Array
    indptr: Array

    @classmethod
    def _made(cls, parts: Sequence[Any], shape: Shape) -> CSC:
        mat = object.__new__(CSC)
        mat.data, mat.indices, mat.indptr = parts
        mat.shape = shape
        return mat

    def _check(self) -> None:
        data, indices, indptr = map(aval_of, (self.data, self.indices, self.indptr))
        check_csr("CSC", data, indices, indptr, self.shape[::-1])

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Sequence[Any]) -> CSC:
        """The inverse of `tree_flatten`."""
        return cls._made(children, tuple(aux_data))

    @classmethod
    def fromdense(
        cls, mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
    ) -> CSC:
        """The CSC matrix of a dense one."""
        dense = value(array_like(jnp.asarray(mat), "CSC.fromdense", "mat"))
        check_matrix("CSC.fromdense", dense.shape)
        transposed: CSC = csr_fromdense(dense.T, nse=nse, index_dtype=index_dtype).T
        return transposed

    def _rows(self) -> CSR:
        """The transpose, by compressed rows."""
        return CSR._made((self.data, self.indices, self.indptr), self.shape[::-1])

    def to_bcoo(self) -> BCOO:
        """The BCOO array of the same elements."""
        return self._rows().to_bcoo().transpose()

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> CSC:
        """The CSC matrix of a BCOO array of two dimensions."""
        transposed: CSC = CSR.from_bcoo(arr.transpose()).T
        return transposed

    def todense(self) -> Array:
        """The dense matrix."""
        return csr_todense(self._rows()).T

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The matrix with its dimensions in another order, by default the other one."""
        return self._rows() if self._swapped(axes) else self

    def _matmul(self, other: Any) -> Any:
        product = csr_matvec if other.ndim == 1 else csr_matmat
        return product(self._rows(), other, transpose=True)


def _require(what: str, mat: Any, wanted: type[Any]) -> None:
    if not isinstance(mat, wanted):
        raise TypeError(
            f"{what} requires mat to be a {wanted.__name__} matrix, got {type(mat).__name__}"
        )


def _dense_of(what: str, mat: Any, nse: Any, index_dtype: Any) -> tuple[Any, int, Any]:
    """The arguments of a function that makes a matrix, checked."""
    if isinstance(mat, JAXSparse):
        raise TypeError(f"{what} takes a dense array, got {type(mat).__name__}")
    dense = value(array_like(jnp.asarray(mat), what, "mat"))
    check_matrix(what, dense.shape)
    count = integer(what, "nse", nonzero_count(what, dense, 0, 0) if nse is None else nse)
    if count < 0:
        raise ValueError(f"{what}: nse must not be negative, got {count}")
    return dense, count, index_dtype_for(what, index_dtype, (*dense.shape, count))


def coo_fromdense(
    mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = jnp.int32
) -> COO:
    """The COO matrix of a dense one.

    Args:
        mat: a dense matrix.
        nse: how many places there are. What does not fit is left out. By default as many as
            elements other than 0, which are counted: so it must be given where `mat` is traced.
        index_dtype: dtype of the positions.

    Raises:
        ConcretizationTypeError: `nse` is needed.
        ValueError: it is not a matrix.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.coo_fromdense(jnp.array([[0, 1], [0, 2]])).col
        Array([1, 1], dtype=int32)
    """
    dense, count, dtype = _dense_of("coo_fromdense", mat, nse, index_dtype)
    parts = coo_fromdense_p.bind(dense, nse=count, index_dtype=dtype)
    return COO._made(parts, COOInfo(dense.shape, rows_sorted=True))


def csr_fromdense(
    mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
) -> CSR:
    """The CSR matrix of a dense one.

    Args:
        mat: a dense matrix.
        nse: how many places there are. What does not fit is left out. By default as many as
            elements other than 0, which are counted: so it must be given where `mat` is traced.
        index_dtype: dtype of the positions.

    Raises:
        ConcretizationTypeError: `nse` is needed.
        ValueError: it is not a matrix.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.csr_fromdense(jnp.array([[0, 1], [0, 2]])).indptr
        Array([0, 1, 2], dtype=int32)
    """
    dense, count, dtype = _dense_of("csr_fromdense", mat, nse, index_dtype)
    parts = csr_fromdense_p.bind(dense, nse=count, index_dtype=dtype)
    return CSR._made(parts, dense.shape)


def coo_todense(mat: COO) -> Array:
    """The dense matrix of a COO matrix.

    Args:
        mat: a COO matrix.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.coo_todense(sparse.COO(([3.0], [1], [0]), shape=(2, 2)))
        Array([[0., 0.],
               [3., 0.]], dtype=float32)
    """
    _require("coo_todense", mat, COO)
    return coo_todense_p.bind(mat.data, mat.row, mat.col, spinfo=mat._description())


def csr_todense(mat: CSR) -> Array:
    """The dense matrix of a CSR matrix.

    Args:
        mat: a CSR matrix.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.csr_todense(sparse.CSR(([3.0], [0], [0, 0, 1]), shape=(2, 2)))
        Array([[0., 0.],
               [3., 0.]], dtype=float32)
    """
    _require("csr_todense", mat, CSR)
    return csr_todense_p.bind(mat.data, mat.indices, mat.indptr, shape=mat.shape)


def _coo_product(primitive: Any, mat: COO, rhs: ArrayLike, name: str, transpose: bool) -> Any:
    what = primitive.name
    _require(what, mat, COO)
    dense = value(array_like(rhs, what, name))
    return primitive.bind(
        mat.data, mat.row, mat.col, dense, spinfo=mat._description(), transpose=bool(transpose)
    )


def _csr_product(primitive: Any, mat: CSR, rhs: ArrayLike, name: str, transpose: bool) -> Any:
    what = primitive.name
    _require(what, mat, CSR)
    dense = value(array_like(rhs, what, name))
    return primitive.bind(
        mat.data, mat.indices, mat.indptr, dense, shape=mat.shape, transpose=bool(transpose)
    )


def coo_matvec(mat: COO, v: ArrayLike, transpose: bool = False) -> Array:
    """The product of a COO matrix and a vector.

    Args:
        mat: a COO matrix.
        v: a vector.
        transpose: whether the transpose of the matrix is meant.

    Raises:
        ValueError: shapes do not fit.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.coo_matvec(sparse.COO.fromdense(jnp.eye(2)), jnp.array([1.0, 2.0]))
        Array([1., 2.], dtype=float32)
    """
    return _coo_product(coo_matvec_p, mat, v, "v", transpose)


def coo_matmat(mat: COO, B: ArrayLike, *, transpose: bool = False) -> Array:
    """The product of a COO matrix and a dense one.

    Args:
        mat: a COO matrix.
        B: a dense matrix.
        transpose: whether the transpose of `mat` is meant.

    Raises:
        ValueError: shapes do not fit.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.coo_matmat(sparse.COO.fromdense(jnp.eye(2)), jnp.ones((2, 3))).shape
        (2, 3)
    """
    return _coo_product(coo_matmat_p, mat, B, "B", transpose)


def csr_matvec(mat: CSR, v: ArrayLike, transpose: bool = False) -> Array:
    """The product of a CSR matrix and a vector.

    Args:
        mat: a CSR matrix.
        v: a vector.
        transpose: whether the transpose of the matrix is meant.

    Raises:
        ValueError: shapes do not fit.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.csr_matvec(sparse.CSR.fromdense(jnp.eye(2)), jnp.array([1.0, 2.0]))
        Array([1., 2.], dtype=float32)
    """
    return _csr_product(csr_matvec_p, mat, v, "v", transpose)


def csr_matmat(mat: CSR, B: ArrayLike, *, transpose: bool = False) -> Array:
    """The product of a CSR matrix and a dense one.

    Args:
        mat: a CSR matrix.
        B: a dense matrix.
        transpose: whether the transpose of `mat` is meant.

    Raises:
        ValueError: shapes do not fit.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.csr_matmat(sparse.CSR.fromdense(jnp.eye(2)), jnp.ones((2, 3))).shape
        (2, 3)
    """
    return _csr_product(csr_matmat_p, mat, B, "B", transpose)
