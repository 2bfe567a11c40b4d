"""Eigenvalues and eigenvectors."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail.core.base import dtypes
from dovetail.core.base.errors import MissingRuleError
from dovetail.core.basis.elementwise import convert_element_type, dtype_kind
from dovetail.core.basis.operands import operand as as_operand
from dovetail.core.basis.structural import full
from dovetail.core.ir.avals import aval_of, make_aval, shape_of
from dovetail.core.ops.arithmetic import add, div, mul, sub
from dovetail.core.ops.complex import real
from dovetail.core.ops.dimensions import integers
from dovetail.core.ops.linalg.eigen_jacobi import lower_jacobi
from dovetail.core.ops.linalg.eigen_matrices import (
    column,
    columns,
    each_matrix,
    real_part_dtype,
    row,
    zeros_of,
)
from dovetail.core.ops.linalg.matrices import (
    adjoint,
    batch_all,
    check_factored,
    check_matrices,
    hermitian,
    is_complex,
    on_diagonal,
    product,
    where,
)
from dovetail.core.ops.reduction import reduce_sum
from dovetail.core.trace.primitive import Primitive
from dovetail.core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail.core.hlo.builder import Builder

Subset = tuple[int, int] | None


class EighImplementation(enum.Enum):
    """How eigenvalues of Hermitian matrices are found.

    QR reduces a matrix to three diagonals first; it needs LAPACK or a library like it. JACOBI
    rotates rows and columns until nothing is left off the diagonal, on any platform. QDWH divides
    the spectrum by polar decompositions.
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class Eigh(Primitive):
    """Eigenvectors, in columns, and ascending eigenvalues of Hermitian matrices.

    One triangle of the matrices is read. Where no eigenvalues are found, the results are NaN.
    """

    name = "eigh"
    multiple_results = True
    accepts_zeros = True

    def abstract(
        self,
        x: Any,
        *,
        lower: bool,
        sort_eigenvalues: bool,
        subset_by_index: Subset,
        algorithm: EighImplementation | None,
    ) -> Any:
        check_factored(self.name, x)
        check_matrices(self.name, x, "x", square=True)
        check_subset(self.name, subset_by_index, x.shape[-1], "eigenvalues")
        start, stop = _range(subset_by_index, x.shape[-1])
        count = stop - start
        return [
            make_aval((*x.shape[:-1], count), x.dtype),
            make_aval((*x.shape[:-2], count), real_part_dtype(x.dtype)),
        ]

    def reference(self, x: Any, *, lower: bool, subset_by_index: Subset, **params: Any) -> Any:
        aval = aval_of(np.asarray(x))
        outs = self.abstract(aval, lower=lower, subset_by_index=subset_by_index, **params)
        start, stop = _range(subset_by_index, aval.shape[-1])

        def decomposed(matrix: Any) -> Any:
            values, vectors = np.linalg.eigh(matrix, "L" if lower else "U")
            return vectors[:, start:stop], values[start:stop]

        return each_matrix(decomposed, x, outs)

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        lower: bool,
        sort_eigenvalues: bool,
        subset_by_index: Subset,
        algorithm: EighImplementation | None,
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        if type(t) is Zero:
            outs = self.bind(
                x,
                lower=lower,
                sort_eigenvalues=sort_eigenvalues,
                subset_by_index=subset_by_index,
                algorithm=algorithm,
            )
            return outs, [Zero.of(o) for o in outs]
        size = shape_of(x)[-1]
        start, stop = _range(subset_by_index, size)
        vectors, values = self.bind(
            x,
            lower=lower,
            sort_eigenvalues=sort_eigenvalues or subset_by_index is not None,
            subset_by_index=None,
            algorithm=algorithm,
        )
        chosen, found = columns(vectors, start, stop), columns(values, start, stop)
        change = hermitian(t if lower else adjoint(t))
        inner = product(adjoint(vectors), product(change, chosen))
        own = columns(on_diagonal(size, size), start, stop)
        shifts = reduce_sum(where(own, inner, zeros_of(inner)), (len(shape_of(inner)) - 2,))
        gaps = sub(row(found), column(values))
        gaps = where(own, full(shape_of(gaps), np.inf, aval_of(gaps).dtype), gaps)
        turned = mul(inner, convert_element_type(div(1, gaps), aval_of(inner).dtype))
        return [chosen, found], [
            product(vectors, turned),
            real(shifts) if is_complex(shifts) else shifts,
        ]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        return batch_all(self, args, dims, **params)

    def lower(
        self,
        context: Builder,
        x: Any,
        *,
        lower: bool,
        sort_eigenvalues: bool,
        subset_by_index: Subset,
        algorithm: EighImplementation | None,
    ) -> Any:
        (aval,), outs = context.avals_in, context.avals_out
        if algorithm not in (None, EighImplementation.JACOBI):
            names = " and ".join(map(repr, context.platforms))
            raise MissingRuleError(
                f"eigh: the implementation {algorithm.name} does not exist on platform {names}; "
                "leave implementation out, or pass EighImplementation.JACOBI, which any platform "
                "can run"
            )
        if not aval.size or not outs[0].size:
            return [context.constant(0, out) for out in outs]
        found = lower_jacobi(context, x, lower)
        if subset_by_index is None:
            return found
        whole = [aval, outs[1].update(shape=aval.shape[:-1])]
        chosen = context.lower_function(
            lambda *parts: [columns(p, *subset_by_index) for p in parts], whole
        )
        return chosen(*found)


eigh_p: Final = Eigh()


def _range(subset: Subset, size: int) -> tuple[int, int]:
    return (0, size) if subset is None else subset


def check_subset(name: str, subset: Subset, size: int, what: str) -> None:
    """Refuse a range that is not among so many values.

    Raises:
        ValueError: it is not.
    """
    start, stop = _range(subset, size)
    if not 0 <= start <= stop <= size:
        raise ValueError(
            f"{name}: subset_by_index must be (start, end) with 0 <= start <= end <= {size}, the "
            f"number of {what}, got {subset}"
        )


# Functions for users


def canonical_subset(subset: Any, size: int, function: str) -> Subset:
    """The range of values that a user asks for; None for all of them.

    Raises:
        TypeError: it is no pair of integers.
    """
    if subset is None:
        return None
    found = integers(subset, function, "subset_by_index")
    if len(found) != 2:
        raise ValueError(
            f"lax.{function}: subset_by_index must be a pair (start, end), got {subset!r}"
        )
    return None if found == (0, size) else (found[0], found[1])


def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Any, Any]:
    """Eigenvectors and eigenvalues of Hermitian (or real symmetric) matrices: ``x @ v = v * w``.

    Args:
        x: square matrices of shape ``(..., n, n)``, floating point or complex; integers are
            converted.
        lower: which triangle of `x` is read, where `symmetrize_input` is False; derivatives are
            those with respect to its elements.
        symmetrize_input: whether to decompose ``(x + x^H) / 2``.
        sort_eigenvalues: whether eigenvalues have to ascend. Otherwise their order is up to the
            implementation, which may sort them all the same.
        subset_by_index: ``(start, end)`` for the eigenvalues from the `start`-th smallest to before
            the `end`-th smallest, and their vectors; None for all.
        implementation: an `EighImplementation`; None for the one that suits the platform.

    Returns:
        The pair of `v`, orthonormal eigenvectors in columns, of shape ``(..., n, k)``, and `w`, the
        eigenvalues, real, of shape ``(..., k)``. Each vector is one of many: its sign or phase, and
        vectors of equal eigenvalues, are up to the implementation. Results are NaN where the
        computation fails, as it does for NaN and infinities. Derivatives of the vectors of equal
        eigenvalues are NaN.

    Raises:
        TypeError: the dtype is none of float32, float64, complex64 and complex128, or
            `implementation` is of another type.
        ValueError: the matrices are not square, or there are no such eigenvalues.
        NotImplementedError: the platform does not have the implementation asked for.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> v, w = lax.linalg.eigh(np.array([[2.0, 1.0], [1.0, 2.0]]))
        >>> [round(value, 5) for value in w.tolist()]
        [1.0, 3.0]
    """
    if implementation is not None and not isinstance(implementation, EighImplementation):
        raise TypeError(
            "lax.linalg.eigh: implementation must be a lax.linalg.EighImplementation or None, got "
            f"{implementation!r}"
        )
    x = as_operand(x, "lax.linalg.eigh")
    aval = aval_of(x)
    if dtype_kind(aval.dtype) in ("b", "i", "u"):
        aval = aval.update(dtype=dtypes.canonicalize_dtype(np.float64))
        x = convert_element_type(x, aval.dtype)
    check_factored("eigh", aval)
    check_matrices("eigh", aval, "x", square=True)
    if symmetrize_input:
        x = mul(add(x, adjoint(x)), 0.5)
    vectors, values = eigh_p.bind(
        x,
        lower=bool(lower),
        sort_eigenvalues=bool(sort_eigenvalues),
        subset_by_index=canonical_subset(subset_by_index, shape_of(x)[-1], "linalg.eigh"),
        algorithm=implementation,
    )
    return vectors, values
