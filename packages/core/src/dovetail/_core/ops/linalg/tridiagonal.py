"""Reduction of matrices to Hessenberg or tridiagonal form, by reflections of rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import full
from dovetail._core.ir.avals import aval_of, make_aval
from dovetail._core.ops.elementwise.arithmetic import add, mul, sub
from dovetail._core.ops.elementwise.complex import real
from dovetail._core.ops.elementwise.operands import real_dtype
from dovetail._core.ops.linalg.eigen_matrices import diagonal, each_matrix
from dovetail._core.ops.linalg.loops import element_at, lower_loop, with_element
from dovetail._core.ops.linalg.matrices import (
    batch_all,
    check_factored,
    check_matrices,
    hermitian,
    is_complex,
    matrix_adjoint,
    part,
    product,
    triangular_part,
)
from dovetail._core.ops.linalg.qr import reflected, reflection
from dovetail._core.ops.shape.reshaping import reverse, squeeze_dimensions
from dovetail._core.trace.divisions import Labels, leading_labels
from dovetail._core.trace.primitive import Primitive

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class ReflectionReduction(Primitive):
    """A reduction of square matrices by reflections; their vectors replace the zeros."""

    multiple_results = True
    no_derivative = "it gives reflections, of which no derivative is known to be of use"

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return leading_labels(avals, results)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        return batch_all(self, args, dims, **params)


class Hessenberg(ReflectionReduction):
    """``x = q @ h @ q^H`` with zeros in ``h`` below the first subdiagonal."""

    name = "hessenberg"

    def abstract(self, a: Any) -> Any:
        check_factored(self.name, a)
        check_matrices(self.name, a, "a", square=True)
        size = max(a.shape[-1] - 1, 0)
        return [
            make_aval(a.shape, a.dtype, a.weak_type),
            make_aval((*a.shape[:-2], size), a.dtype, a.weak_type),
        ]

    def reference(self, a: Any) -> Any:
        import scipy.linalg  # deferred: only references need it

        def reduced(matrix: Any) -> Any:
            if not matrix.size:
                return matrix, np.zeros(0)
            (gehrd,) = scipy.linalg.get_lapack_funcs(["gehrd"], [matrix])
            return gehrd(matrix)[:2]

        return each_matrix(reduced, a, self.abstract(aval_of(np.asarray(a))))

    def lower(self, context: Builder, a: Any) -> Any:
        (aval,) = context.avals_in
        *batch, size, _ = aval.shape
        rank = aval.ndim

        def first(a: Any) -> list[Any]:
            return [a, full((*batch, max(size - 1, 0)), 0, aval.dtype)]

        def step(k: Any, a: Any, taus: Any) -> list[Any]:
            after = add(k, 1)
            v, tau, column = reflection(element_at(a, k, rank - 1), after)
            a = sub(a, mul(product(a, v), mul(tau, matrix_adjoint(v))))
            a = with_element(reflected(a, v, tau, k), column, k, rank - 1)
            return [a, with_element(taus, squeeze_dimensions(tau, (rank - 1,)), k, rank - 2)]

        return lower_loop(
            context,
            [a],
            first=first,
            step=step,
            last=lambda *found: found,
            count=max(size - 1, 0) if aval.size else 0,
        )


hessenberg_p: Final = Hessenberg()


class Tridiagonal(ReflectionReduction):
    """``x = q @ t @ q^H`` for Hermitian ``x``, with ``t`` real, symmetric and tridiagonal.

    One triangle of the matrices is read.
    """

    name = "tridiagonal"

    def abstract(self, a: Any, *, lower: bool) -> Any:
        check_factored(self.name, a)
        check_matrices(self.name, a, "a", square=True)
        *batch, size, _ = a.shape
        dtype = real_dtype(a.dtype)
        beside = max(size - 1, 0)
        return [
            make_aval(a.shape, a.dtype, a.weak_type),
            make_aval((*batch, size), dtype, a.weak_type),
            make_aval((*batch, beside), dtype, a.weak_type),
            make_aval((*batch, beside), a.dtype, a.weak_type),
        ]

    def reference(self, a: Any, *, lower: bool) -> Any:
        import scipy.linalg  # deferred: only references need it

        def reduced(matrix: Any) -> Any:
            if not matrix.size:
                return matrix, np.zeros(0), np.zeros(0), np.zeros(0)
            name = "hetrd" if matrix.dtype.kind == "c" else "sytrd"
            (routine,) = scipy.linalg.get_lapack_funcs([name], [matrix])
            return routine(matrix, lower=lower)[:4]

        return each_matrix(reduced, a, self.abstract(aval_of(np.asarray(a)), lower=lower))

    def lower(self, context: Builder, a: Any, *, lower: bool) -> Any:
        (aval,) = context.avals_in
        rank, size = aval.ndim, aval.shape[-1]
        both = (rank - 2, rank - 1)

        def reduced(a: Any) -> list[Any]:
            """For the lower triangle, from the first column on."""
            packed, taus = hessenberg_p.bind(hermitian(a))
            values = diagonal(packed)
            beside = diagonal(
                part(packed, rows=slice(min(size, 1), size), columns=max(size - 1, 0))
            )
            if is_complex(a):
                values, beside = real(values), real(beside)
            return [
                add(triangular_part(packed), triangular_part(a, lower=False, offset=1)),
                values,
                beside,
                taus,
            ]

        def turned(a: Any) -> list[Any]:
            """For the upper triangle, from the last column on: the same, reversed."""
            packed, *others = reduced(reverse(a, both))
            return [reverse(packed, both), *[reverse(x, (rank - 2,)) for x in others]]

        return context.lower_function(reduced if lower else turned, [aval])(a)


tridiagonal_p: Final = Tridiagonal()


# Public functions


def hessenberg(a: ArrayLike) -> list[Array]:
    """The Hessenberg form of square matrices: ``a = q @ h @ q^H``.

    Args:
        a: square matrices of shape ``(..., n, n)``, floating point or complex.

    Returns:
        A list of two arrays: one of the shape of `a`, with ``h`` in the upper triangle and the
        first subdiagonal and, below that, the vectors of the reflections whose product is ``q``;
        and their factors, of shape ``(..., n - 1)``. ``q`` has a one at the top left of its
        otherwise zero first row and column. `householder_product` makes the rest from the first
        array without its first row and last column.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128, or `a` is not a
            matrix.
        ValueError: the matrices are not square.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> packed, taus = lax.linalg.hessenberg(np.array([[1.0, 2.0], [3.0, 4.0]]))
        >>> packed.tolist(), taus.tolist()
        ([[1.0, 2.0], [3.0, 4.0]], [0.0])
    """
    return list(hessenberg_p.bind(as_operand(a, "lax.linalg.hessenberg", "a")))


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> list[Array]:
    """The tridiagonal form of Hermitian (or real symmetric) matrices: ``a = q @ t @ q^H``.

    Args:
        a: square matrices of shape ``(..., n, n)``, floating point or complex.
        lower: which triangle of `a` is read.

    Returns:
        A list: an array of the shape of `a`, with ``t`` and the vectors of the reflections whose
        product is ``q`` in the triangle that is read, and the other triangle of `a`; the diagonal
        of ``t``, of shape ``(..., n)``, and its off-diagonal, of shape ``(..., n - 1)``, both
        real; and the factors of the reflections, of shape ``(..., n - 1)``. With `lower`,
        `householder_product` makes ``q`` from them as for `hessenberg`.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128, or `a` is not a
            matrix.
        ValueError: the matrices are not square.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> _, diagonal, beside, _ = lax.linalg.tridiagonal(np.array([[1.0, 0.0], [2.0, 3.0]]))
        >>> diagonal.tolist(), beside.tolist()
        ([1.0, 3.0], [2.0])
    """
    return list(tridiagonal_p.bind(as_operand(a, "lax.linalg.tridiagonal", "a"), lower=bool(lower)))
