"""The class of BCOO arrays, and what makes them of dense ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dovetail import numpy as jnp
from dovetail.experimental.sparse import control as control  # the rules of branches and loops
from dovetail.experimental.sparse import rules
from dovetail.experimental.sparse.bcoo_arithmetic import merged_if_repeated, refuse_dense
from dovetail.experimental.sparse.bcoo_elements import (
    bcoo_todense_p,
    fromdense,
    require_bcoo,
    todense,
)
from dovetail.experimental.sparse.bcoo_layouts import bcoo_update_layout, transposed
from dovetail.experimental.sparse.bcoo_order import (
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    without_zeros,
)
from dovetail.experimental.sparse.bcoo_shapes import bcoo_reshape
from dovetail.experimental.sparse.coordinates import Coordinates
from dovetail.experimental.sparse.formats import JAXSparse
from dovetail.experimental.sparse.layouts import index_dtype_for
from dovetail.experimental.sparse.sparsification import sparsify
from dovetail.extend import dtypes
from dovetail.extend.arguments import canonical_axes
from dovetail.extend.avals import ArrayClass, array_conversion
from dovetail.extend.tracebacks import bounded
from dovetail.typing import Array, ArrayLike, DTypeLike


def _is_operand(x: Any) -> bool:
    """Whether an operator takes an operand beside a BCOO array."""
    if isinstance(x, (Coordinates, ArrayClass, np.ndarray, np.generic, bool, int, float, complex)):
        return True
    return not isinstance(x, JAXSparse) and array_conversion(x) is not None


@bounded
class BCOO(Coordinates):
    """A sparse array by the positions of its elements, with batch and dense dimensions.

    Of the dimensions (*batch, *sparse, *dense) the stored elements have positions in the sparse
    ones; each index of the batch has its own positions; dense dimensions are stored whole. It is a
    pytree with the leaves `data` and `indices`.

    A place whose position is negative, or not below the size, is unused, whatever its element is.
    There are such places because shapes must not depend on values. Elements of one position are
    added.

    Args:
        args: the elements, of shape (*batch, nse, *dense), and their positions, integers of shape
            (*batch, nse, n_sparse). Batch dimensions of one of them may be 1.
        shape: sizes of all dimensions.
        indices_sorted: a promise that positions are in lexicographic order.
        unique_indices: a promise that no position is there twice.

    Raises:
        ValueError: the shapes do not fit together.
        TypeError: positions are not integers.

    Attributes:
        data: the elements.
        indices: their positions.
        shape: sizes of the dimensions.
        indices_sorted: whether positions are known to be sorted.
        unique_indices: whether positions are known to differ.

    Differs:
        A negative position is an unused place. In JAX it counts from the end in some functions,
        and in others is an element that is nowhere.

        >>> from dovetail.experimental import sparse
        >>> sparse.BCOO(([1.0, 2.0], [[-1], [0]]), shape=(2,)).todense()
        Array([2., 0.], dtype=float32)

        As an argument of functions that map over leaves, such as the one of `lax.scan`, it has the
        batch dimensions that its leaves have there; in JAX it is an error.

        >>> from dovetail.experimental import sparse
        >>> mats = sparse.BCOO.fromdense(jnp.ones((4, 2, 3)), n_batch=1)
        >>> dt.lax.scan(lambda s, mat: (s + mat.sum(), mat.shape[0]), 0.0, mats)[0]
        Array(24., dtype=float32)

    Example:
        >>> from dovetail.experimental import sparse
        >>> mat = sparse.BCOO.fromdense(jnp.array([[0.0, 1.0], [2.0, 0.0]]))
        >>> mat
        BCOO(float32[2, 2], nse=2)
        >>> mat @ jnp.array([1.0, 10.0])
        Array([10.,  2.], dtype=float32)
    """

    @classmethod
    def fromdense(
        cls,
        mat: ArrayLike,
        *,
        nse: int | None = None,
        index_dtype: DTypeLike = np.int32,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:
        """The sparse array of a dense one: see `bcoo_fromdense`."""
        return bcoo_fromdense(
            mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch
        )

    @classmethod
    def from_scipy_sparse(
        cls,
        mat: Any,
        *,
        index_dtype: DTypeLike | None = None,
        n_dense: int = 0,
        n_batch: int = 0,
    ) -> BCOO:
        """The sparse array of one of SciPy's.

        Args:
            mat: an array or matrix of `scipy.sparse`.
            index_dtype: dtype of the positions; by default SciPy's.
            n_dense: how many dimensions are stored whole.
            n_batch: how many dimensions are batch dimensions.

        Raises:
            TypeError: `mat` is none of SciPy's.
        """
        if not hasattr(mat, "tocoo"):
            raise TypeError(
                "BCOO.from_scipy_sparse takes an array of scipy.sparse, got "
                f"{type(mat).__name__}; BCOO.fromdense takes a dense one"
            )
        mat = mat.tocoo()
        positions = mat.coords if hasattr(mat, "coords") else (mat.row, mat.col)
        given = positions[0].dtype if index_dtype is None else index_dtype
        dtype = index_dtype_for("BCOO.from_scipy_sparse", given, mat.shape)
        indices = np.stack(positions, -1).astype(dtype)
        made = cls((jnp.asarray(mat.data), jnp.asarray(indices)), shape=mat.shape)
        return made.update_layout(n_dense=n_dense, n_batch=n_batch, on_inefficient=None)

    def to_bcoo(self) -> BCOO:
        """This array."""
        return self

    def _reference(self) -> Any:
        return bcoo_todense_p.reference(self.data, self.indices, spinfo=self.info)

    def todense(self) -> Array:
        """The array with all its elements."""
        return todense(self)

    def sort_indices(self) -> BCOO:
        """The array with its stored elements in the order of their positions."""
        return bcoo_sort_indices(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The array with each position once: elements that have the same are added.

        Args:
            nse: how many places the result has; by default as many as are needed, which are
                counted, so that it must be given where positions are traced.
            remove_zeros: whether places that hold 0 become unused before.

        Raises:
            ValueError: `nse` is needed, or negative.
        """
        return bcoo_sum_duplicates(without_zeros(self) if remove_zeros else self, nse)

    def update_layout(
        self,
        *,
        n_batch: int | None = None,
        n_dense: int | None = None,
        on_inefficient: str | None = "error",
    ) -> BCOO:
        """The array with other numbers of batch and dense dimensions: see `bcoo_update_layout`."""
        return bcoo_update_layout(
            self, n_batch=n_batch, n_dense=n_dense, on_inefficient=on_inefficient
        )

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """The array with its dimensions in another order, by default reversed."""
        if axes is None:
            return transposed(self, tuple(reversed(range(self.ndim))))
        order = canonical_axes("BCOO.transpose", tuple(axes), self.ndim, "axes")
        if len(order) != self.ndim:
            raise TypeError(
                f"BCOO.transpose: axes must have each of the {self.ndim} dimensions once, got "
                f"{tuple(axes)}"
            )
        return transposed(self, order)

    def reshape(self, *shape: Any, order: str = "C") -> BCOO:
        """The elements in another shape, given as integers or as a sequence of them.

        Args:
            *shape: sizes of the dimensions, of which one may be -1.
            order: must be "C".
        """
        if order != "C":
            raise NotImplementedError(f"BCOO.reshape: order must be 'C', got {order!r}")
        given = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        sizes = [int(n) for n in given]
        if sizes.count(-1) == 1:
            others = int(np.prod([n for n in sizes if n != -1]))
            sizes[sizes.index(-1)] = self.size // others if others else 0
        return bcoo_reshape(self, new_sizes=tuple(sizes))

    def sum(
        self,
        axis: int | Sequence[int] | None = None,
        dtype: DTypeLike | None = None,
        *,
        keepdims: bool = False,
    ) -> Any:
        """The sum over some dimensions, or all; dense if no dimension is left.

        Args:
            axis: which dimensions; by default all.
            dtype: of the sum.
            keepdims: whether they are kept, with the size 1.
        """
        axes = canonical_axes("BCOO.sum", axis, self.ndim)
        # Sums of narrow integers are wider, as those of dense arrays.
        wide = jnp.zeros(0, self.dtype).sum().dtype if dtype is None else dtype
        mat = self if wide == self.dtype else self.astype(wide)
        result = rules.reduce_sum(mat, axes=axes)
        if keepdims:
            sizes = tuple(1 if d in axes else n for d, n in enumerate(self.shape))
            return result.reshape(sizes)
        return result

    def astype(self, dtype: DTypeLike) -> BCOO:
        """The array with elements of another dtype."""
        wanted = dtypes.canonicalize_dtype(dtypes.as_dtype(dtype))
        widens = dtypes.promote_types(self.dtype, wanted) == wanted
        mat = self if widens and dtypes.kind_of(self.dtype) != "b" else merged_if_repeated(self)
        return mat.with_data(mat.data.astype(wanted))

    def __getitem__(self, index: Any) -> BCOO:
        return sparsify(lambda mat: mat[index])(self)

    def __iter__(self) -> Iterator[BCOO]:
        return iter([self[i] for i in range(len(self))])

    def __neg__(self) -> BCOO:
        return self.with_data(-self.data)

    def __pos__(self) -> BCOO:
        return self

    def __abs__(self) -> BCOO:
        mat = merged_if_repeated(self)
        return mat.with_data(abs(mat.data))

    def __add__(self, other: Any) -> Any:
        return rules.add(self, other) if _is_operand(other) else NotImplemented

    def __radd__(self, other: Any) -> Any:
        return rules.add(other, self) if _is_operand(other) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return rules.subtract(self, other) if _is_operand(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return rules.subtract(other, self) if _is_operand(other) else NotImplemented

    def __mul__(self, other: Any) -> Any:
        return rules.multiply(self, other) if _is_operand(other) else NotImplemented

    def __rmul__(self, other: Any) -> Any:
        return rules.multiply(other, self) if _is_operand(other) else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        return rules.divide(self, other) if _is_operand(other) else NotImplemented

    def __rtruediv__(self, other: Any) -> Any:
        return rules.divide(other, self) if _is_operand(other) else NotImplemented

    def __matmul__(self, other: Any) -> Any:
        return rules.matmul(self, other) if _is_operand(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> Any:
        return rules.matmul(other, self) if _is_operand(other) else NotImplemented

    def __pow__(self, other: Any) -> BCOO:
        return sparsify(lambda mat: mat**other)(self)

    def _compared(self, other: Any) -> Any:
        refuse_dense("a comparison of a sparse array")

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _compared


def bcoo_todense(mat: BCOO) -> Array:
    """The dense array of a BCOO array: sums of elements that have the same position.

    Args:
        mat: a BCOO array.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.bcoo_todense(sparse.BCOO(([1.0, 2.0], [[1], [1]]), shape=(3,)))
        Array([0., 3., 0.], dtype=float32)
    """
    require_bcoo("bcoo_todense", "mat", mat)
    return todense(mat)


def bcoo_fromdense(
    mat: ArrayLike,
    *,
    nse: int | None = None,
    n_batch: int = 0,
    n_dense: int = 0,
    index_dtype: DTypeLike = jnp.int32,
) -> BCOO:
    """The BCOO array of a dense one.

    Args:
        mat: a dense array.
        nse: how many places there are for each index of the batch. What does not fit is left out.
            By default as many as elements other than 0, which are counted: so it must be given
            where `mat` is traced.
        n_batch: how many leading dimensions are batch dimensions.
        n_dense: how many trailing dimensions are stored whole.
        index_dtype: dtype of the positions.

    Returns:
        A BCOO array with sorted and unique positions; those of unused places are the sizes.

    Raises:
        ConcretizationTypeError: `nse` is needed.
        ValueError: there are not as many dimensions.
        OverflowError: `index_dtype` is too narrow.

    Example:
        >>> from dovetail.experimental import sparse
        >>> sparse.bcoo_fromdense(jnp.array([[0, 1], [0, 2]])).indices
        Array([[0, 1],
               [1, 1]], dtype=int32)
    """
    result: BCOO = fromdense("bcoo_fromdense", BCOO, mat, nse, n_batch, n_dense, index_dtype)
    return result
