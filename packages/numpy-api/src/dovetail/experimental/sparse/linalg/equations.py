"""Linear equations with a sparse matrix: `spsolve`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import dovetail as dt
from dovetail import lax
from dovetail import numpy as jnp
from dovetail.experimental.sparse.bcoo_elements import bcoo_todense_p
from dovetail.experimental.sparse.layouts import SparseInfo, require_positions
from dovetail.experimental.sparse.matrices import CSR
from dovetail.experimental.sparse.primitives import Rules, made
from dovetail.experimental.sparse.rows import numpy_coordinates_of
from dovetail.extend import ShapedArray, dtypes
from dovetail.extend.arguments import array_like, inexact, value
from dovetail.extend.avals import Zero, aval_of, make_aval
from dovetail.typing import Array, ArrayLike

_ORDERS: Final = {0: "NATURAL", 1: "COLAMD", 2: "MMD_ATA", 3: "MMD_AT_PLUS_A"}


def _solved(data: Any, indices: Any, indptr: Any, b: Any, reorder: int) -> Any:
    """The solution, by SciPy."""
    from scipy.sparse import csr_array  # deferred: takes a tenth of a second
    from scipy.sparse.linalg import MatrixRankWarning  # deferred: the same
    from scipy.sparse.linalg import spsolve as solve  # deferred: the same

    data, indices, indptr, b = (np.asarray(x) for x in (data, indices, indptr, b))
    n = b.shape[0]
    used = slice(0, int(indptr[-1]) if n else 0)
    matrix = csr_array((data[used], indices[used], indptr), shape=(n, n))
    matrix.sum_duplicates()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MatrixRankWarning)  # the result is nan, which says it
        solution = solve(matrix.tocsc(), b, permc_spec=_ORDERS[reorder])
    return np.asarray(solution, b.dtype).reshape(b.shape)


class _Solve(Rules):
    """The solution of a linear system, on the host."""

    name = "spsolve"
    linear = (3,)
    generates_nan = True

    def formula(
        self, data: Any, indices: Any, indptr: Any, b: Any, *, tol: float, reorder: int
    ) -> Any:
        struct = dt.ShapeDtypeStruct(aval_of(b).shape, aval_of(b).dtype)

        def on_host(data: Any, indices: Any, indptr: Any, b: Any) -> Any:
            return _solved(data, indices, indptr, b, reorder)

        operands = (data, indices, indptr, b)
        return dt.pure_callback(on_host, struct, *operands)

    def abstract(
        self, data: Any, indices: Any, indptr: Any, b: Any, *, tol: float, reorder: int
    ) -> Any:
        require_positions(self.name, "indices", indices)
        require_positions(self.name, "indptr", indptr)
        shapes = [x.shape for x in (data, indices, indptr, b)]
        if any(len(shape) != 1 for shape in shapes) or shapes[0] != shapes[1]:
            raise ValueError(
                "spsolve: data, indices, indptr and b must be vectors, and data and indices of one "
                f"length; got the shapes {', '.join(map(str, shapes))}"
            )
        if shapes[2][0] != shapes[3][0] + 1:
            raise ValueError(
                f"spsolve: indptr must have one element more than b, which has {shapes[3][0]}; got "
                f"{shapes[2][0]}"
            )
        if data.dtype != b.dtype or dtypes.kind_of(b.dtype) not in "fc":
            raise ValueError(
                f"spsolve: data and b must have one floating or complex dtype, got {data.dtype} "
                f"and {b.dtype}"
            )
        if dtypes.itemsize_bits(b.dtype) < 32:
            raise ValueError(
                f"spsolve: data and b must be of 32 bits or more, got {b.dtype}; convert them with "
                "astype"
            )
        return make_aval(b.shape, b.dtype)

    def reference(
        self, data: Any, indices: Any, indptr: Any, b: Any, *, tol: float, reorder: int
    ) -> Any:
        n = len(b)
        positions = numpy_coordinates_of(indices, indptr)
        matrix = bcoo_todense_p.reference(data, positions, spinfo=SparseInfo((n, n)))
        return np.linalg.solve(matrix, b).astype(np.asarray(b).dtype)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        data, indices, indptr, b = primals
        x = spsolve_p.bind(*primals, **params)
        change = None if type(tangents[3]) is Zero else tangents[3]
        if type(tangents[0]) is not Zero:
            moved = -(_matrix(tangents[0], indices, indptr, b) @ x)
            change = moved if change is None else lax.add(change, moved)
        if change is None:
            return x, Zero.of(x)
        return x, spsolve_p.bind(data, indices, indptr, change, **params)

    def batch(
        self, operands: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        pairs = enumerate(zip(operands, dims, strict=True))
        leading = {i: jnp.moveaxis(x, d, 0) for i, (x, d) in pairs if d is not None}

        def solved(parts: list[Any]) -> Any:
            given = list(operands)
            for i, part in zip(leading, parts, strict=True):
                given[i] = part
            return spsolve_p.bind(*given, **params)

        return lax.map(solved, list(leading.values())), 0

    def transpose(self, cotangent: Any, *operands: Any, **params: Any) -> Sequence[Any]:
        data, indices, indptr, b = operands
        if not isinstance(b, ShapedArray) or type(cotangent) is Zero:
            return [None] * 4
        turned = CSR.from_bcoo(_matrix(data, indices, indptr, b).to_bcoo().transpose())
        parts = (turned.data, turned.indices, turned.indptr)
        return [None, None, None, spsolve_p.bind(*parts, cotangent, **params)]


def _matrix(data: Any, indices: Any, indptr: Any, b: Any) -> CSR:
    n = aval_of(b).shape[0]
    return CSR((data, indices, indptr), shape=(n, n))


spsolve_p: Final = made(_Solve())


def spsolve(
    data: ArrayLike,
    indices: ArrayLike,
    indptr: ArrayLike,
    b: ArrayLike,
    tol: float = 1e-6,
    reorder: int = 1,
) -> Array:
    """The solution of a linear system whose matrix is sparse, by a direct method.

    It is computed on the host, by SuperLU as SciPy has it, on every backend. Batches are solved one
    by one. Derivatives solve one more system with the matrix, or its transpose.

    Args:
        data: elements of the matrix, which is of the CSR format.
        indices: their columns.
        indptr: where rows begin.
        b: the right-hand side, a vector.
        tol: accepted for compatibility: the method is direct.
        reorder: how columns are ordered to keep factors sparse: 0 as they are, 1 by COLAMD, 2 and 3
            by minimum degree of the normal equations and of the sum with the transpose.

    Returns:
        The solution, a vector; nan if the matrix is singular.

    Raises:
        ValueError: shapes or dtypes do not fit, or `reorder` is something else.

    Differs:
        Integers are converted to floats, where JAX rounds the solution to integers. There are
        batches. A singular matrix gives nan without a warning.

        >>> from dovetail.experimental.sparse.linalg import spsolve
        >>> spsolve(jnp.array([2]), jnp.array([0]), jnp.array([0, 1]), jnp.array([1]))
        Array([0.5], dtype=float32)

    Example:
        >>> from dovetail.experimental import sparse
        >>> from dovetail.experimental.sparse.linalg import spsolve
        >>> mat = sparse.CSR.fromdense(jnp.array([[2.0, 0.0], [1.0, 4.0]]))
        >>> spsolve(mat.data, mat.indices, mat.indptr, jnp.array([2.0, 9.0]))
        Array([1., 2.], dtype=float32)
    """
    what = "spsolve"
    if reorder not in _ORDERS:
        raise ValueError(f"{what}: reorder must be one of {list(_ORDERS)}, got {reorder!r}")
    elements, right = value(inexact(what, data, "data")), value(inexact(what, b, "b"))
    columns, begins = (
        value(array_like(x, what, name)) for x, name in ((indices, "indices"), (indptr, "indptr"))
    )
    operands = (jnp.asarray(elements), columns, begins, jnp.asarray(right))
    return spsolve_p.bind(*operands, tol=float(tol), reorder=int(reorder))
