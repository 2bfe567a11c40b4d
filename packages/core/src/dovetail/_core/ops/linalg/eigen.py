"""Eigenvalues and eigenvectors."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import source
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import convert_element_type, neg
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import full
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ops.elementwise.arithmetic import add, div, mul, sub
from dovetail._core.ops.elementwise.comparison import eq
from dovetail._core.ops.elementwise.complex import complex as from_parts
from dovetail._core.ops.elementwise.complex import imag, real
from dovetail._core.ops.elementwise.operands import real_dtype
from dovetail._core.ops.elementwise.selection import select
from dovetail._core.ops.elementwise.signs import abs as absolute
from dovetail._core.ops.linalg.eigen_jacobi import lower_jacobi
from dovetail._core.ops.linalg.eigen_matrices import (
    ON_THE_CPU,
    Subset,
    cannot_compute,
    canonical_subset,
    check_subset,
    column,
    columns,
    complex_of,
    diagonal,
    each_matrix,
    row,
    scaled_columns,
    subset_range,
    zeros_of,
)
from dovetail._core.ops.linalg.lu import lu_p
from dovetail._core.ops.linalg.matrices import (
    INT32,
    batch_all,
    check_factored,
    check_matrices,
    complex_conjugate,
    floating,
    hermitian,
    is_complex,
    matrix_adjoint,
    on_diagonal,
    product,
    rows_in_order,
    where_mask,
)
from dovetail._core.ops.linalg.triangular import solve_triangular
from dovetail._core.ops.reduction.reductions import argmax, reduce_sum
from dovetail._core.ops.shape.creation import iota_like
from dovetail._core.trace.divisions import Labels, leading_labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class EighImplementation(enum.Enum):
    """An algorithm for the eigenvalues of Hermitian matrices.

    QR reduces a matrix to tridiagonal form first; it needs LAPACK or a similar library. JACOBI
    rotates rows and columns until the matrix is diagonal, on any platform. QDWH, which divides the
    spectrum by polar decompositions, is known by name only: no platform has it.
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class Eigh(Primitive):
    """Eigenvectors, in columns, and ascending eigenvalues of Hermitian matrices.

    One triangle of the matrices is read. The results are NaN if no eigenvalues are found.
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
        check_subset(self.name, subset_by_index, x.shape[-1])
        start, stop = subset_range(subset_by_index, x.shape[-1])
        count = stop - start
        return [
            make_aval((*x.shape[:-1], count), x.dtype, x.weak_type),
            make_aval((*x.shape[:-2], count), real_dtype(x.dtype), x.weak_type),
        ]

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return leading_labels(avals, results)

    def reference(self, x: Any, *, lower: bool, subset_by_index: Subset, **params: Any) -> Any:
        aval = aval_of(np.asarray(x))
        outs = self.abstract(aval, lower=lower, subset_by_index=subset_by_index, **params)
        start, stop = subset_range(subset_by_index, aval.shape[-1])

        def decomposed(matrix: Any) -> Any:
            values, vectors = np.linalg.eigh(matrix, "L" if lower else "U")
            return vectors[:, start:stop], values[start:stop]

        return each_matrix(decomposed, np.tril(x) if lower else np.triu(x), outs)

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
        start, stop = subset_range(subset_by_index, size)
        vectors, values = self.bind(
            x,
            lower=lower,
            sort_eigenvalues=sort_eigenvalues or subset_by_index is not None,
            subset_by_index=None,
            algorithm=algorithm,
        )
        chosen, eigenvalues = columns(vectors, start, stop), columns(values, start, stop)
        change = hermitian(t if lower else matrix_adjoint(t))
        inner = product(matrix_adjoint(vectors), product(change, chosen))
        own = columns(on_diagonal(size, size), start, stop)
        shifts = reduce_sum(where_mask(own, inner, zeros_of(inner)), (len(shape_of(inner)) - 2,))
        gaps = sub(row(eigenvalues), column(values))
        gaps = where_mask(own, full(shape_of(gaps), np.inf, aval_of(gaps).dtype), gaps)
        turned = mul(inner, convert_element_type(div(1, gaps), aval_of(inner).dtype))
        return [chosen, eigenvalues], [
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
        if not aval.size or not outs[0].size:
            return [context.constant(0, out) for out in outs]
        if algorithm not in (None, EighImplementation.JACOBI):
            raise cannot_compute(
                context,
                self.name,
                algorithm,
                "leave implementation out, or pass EighImplementation.JACOBI, which every platform "
                "has",
            )
        results = lower_jacobi(context, x, lower)
        if subset_by_index is None:
            return results
        whole = [aval, outs[1].update(shape=aval.shape[:-1])]
        chosen = context.lower_function(
            lambda *parts: [columns(p, *subset_by_index) for p in parts], whole
        )
        return chosen(*results)


eigh_p: Final = Eigh()


class EigImplementation(enum.Enum):
    """The library for eigenvalues of general matrices: LAPACK on the CPU.

    On NVIDIA GPUs it is CUSOLVER, which computes no left eigenvectors; MAGMA, if installed; or
    LAPACK, which runs on the host.
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class Eig(Primitive):
    """Eigenvalues of general matrices, and left and right eigenvectors, in columns.

    The results are NaN if no eigenvalues are found.
    """

    name = "eig"
    multiple_results = True
    accepts_zeros = True

    def abstract(
        self,
        x: Any,
        *,
        compute_left_eigenvectors: bool,
        compute_right_eigenvectors: bool,
        enable_eigvec_derivs: bool,
        implementation: EigImplementation | None,
    ) -> Any:
        check_factored(self.name, x)
        check_matrices(self.name, x, "x", square=True)
        dtype = complex_of(x.dtype)
        vectors = make_aval(x.shape, dtype, x.weak_type)
        count = compute_left_eigenvectors + compute_right_eigenvectors
        return [make_aval(x.shape[:-1], dtype, x.weak_type), *[vectors] * count]

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return leading_labels(avals, results)

    def reference(
        self,
        x: Any,
        *,
        compute_left_eigenvectors: bool,
        compute_right_eigenvectors: bool,
        **params: Any,
    ) -> Any:
        import scipy.linalg  # deferred: only references need it

        outs = self.abstract(
            aval_of(np.asarray(x)),
            compute_left_eigenvectors=compute_left_eigenvectors,
            compute_right_eigenvectors=compute_right_eigenvectors,
            **params,
        )

        def decomposed(matrix: Any) -> Any:
            if not matrix.size:
                return [np.zeros(out.shape[np.ndim(x) - 2 :]) for out in outs]
            values, left, right = scipy.linalg.eig(matrix, left=True, right=True)
            vectors = [left] * compute_left_eigenvectors + [right] * compute_right_eigenvectors
            return [values, *vectors]

        return each_matrix(decomposed, x, outs)

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        compute_left_eigenvectors: bool,
        compute_right_eigenvectors: bool,
        enable_eigvec_derivs: bool,
        implementation: EigImplementation | None,
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        if type(t) is Zero:
            outs = self.bind(
                x,
                compute_left_eigenvectors=compute_left_eigenvectors,
                compute_right_eigenvectors=compute_right_eigenvectors,
                enable_eigvec_derivs=enable_eigvec_derivs,
                implementation=implementation,
            )
            return outs, [Zero.of(o) for o in outs]
        if (compute_left_eigenvectors or compute_right_eigenvectors) and not enable_eigvec_derivs:
            raise NotImplementedError(
                "eig: derivatives of eigenvectors exist only where all eigenvalues differ, which "
                "nothing can check here; pass enable_eigvec_derivs=True if they do, or "
                "compute_left_eigenvectors=False and compute_right_eigenvectors=False if only "
                "eigenvalues are needed"
            )
        # The derivative of the eigenvalues needs the right vectors.
        values, *vectors = self.bind(
            x,
            compute_left_eigenvectors=compute_left_eigenvectors,
            compute_right_eigenvectors=True,
            enable_eigvec_derivs=True,
            implementation=implementation,
        )
        change = convert_element_type(t, aval_of(values).dtype)
        right = vectors[-1]
        inner = _solved(right, product(change, right))
        outs, out_tangents = [values], [diagonal(inner)]
        if compute_left_eigenvectors:
            left = vectors[0]
            inner_left = _solved(left, product(matrix_adjoint(change), left))
            outs.append(left)
            out_tangents.append(_changed_vectors(left, complex_conjugate(values), inner_left))
        if compute_right_eigenvectors:
            outs.append(right)
            out_tangents.append(_changed_vectors(right, values, inner))
        return outs, out_tangents

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        return batch_all(self, args, dims, **params)

    def lower(
        self, context: Builder, x: Any, *, implementation: EigImplementation | None, **params: Any
    ) -> Any:
        if not context.avals_in[0].size:
            return [context.constant(0, out) for out in context.avals_out]
        raise cannot_compute(
            context,
            self.name,
            implementation,
            f"it needs LAPACK, which only the CPU has; {ON_THE_CPU}"
            if implementation is None
            else "leave implementation out",
        )


eig_p: Final = Eig()


def _solved(x: Any, y: Any) -> Any:
    """``x^-1 @ y``."""
    packed, _, permutation = lu_p.bind(x)
    solution = solve_triangular(packed, rows_in_order(y, permutation), unit_diagonal=True)
    return solve_triangular(packed, solution, lower=False)


def _changed_vectors(vectors: Any, values: Any, inner: Any) -> Any:
    """The derivative of eigenvectors `vectors`, if their matrix changes by ``vectors @ inner @
    vectors^-1``.

    The remaining freedom is fixed as by LAPACK: vectors have length one, and a real largest
    element.
    """
    size, rank = shape_of(inner)[-1], len(shape_of(inner))
    own = on_diagonal(size, size)
    gaps = where_mask(own, add(zeros_of(inner), 1), sub(row(values), column(values)))
    change = product(vectors, where_mask(own, zeros_of(inner), div(inner, gaps)))
    longer = real(reduce_sum(mul(complex_conjugate(vectors), change), (rank - 2,)))
    best = argmax(absolute(vectors), rank - 2, INT32)
    mask = eq(iota_like(INT32, shape_of(vectors), rank - 2), row(best))
    largest = real(reduce_sum(select(mask, vectors, zeros_of(vectors)), (rank - 2,)))
    turned = imag(reduce_sum(select(mask, change, zeros_of(change)), (rank - 2,)))
    factors = neg(from_parts(longer, div(turned, largest)))
    return add(change, scaled_columns(vectors, factors))


# Public functions


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Eigenvectors and eigenvalues of Hermitian (or real symmetric) matrices: ``x @ v = v * w``.

    Args:
        x: square matrices of shape ``(..., n, n)``, floating point or complex; integers are
            converted.
        lower: which triangle of `x` is read if `symmetrize_input` is False; derivatives are with
            respect to its elements.
        symmetrize_input: whether to decompose ``(x + x^H) / 2``.
        sort_eigenvalues: whether eigenvalues must be ascending. Otherwise their order is up to the
            implementation, which may sort them anyway.
        subset_by_index: ``(start, end)`` for the eigenvalues from the `start`-th smallest to before
            the `end`-th smallest, and their vectors; None for all.
        implementation: an `EighImplementation`; None for the platform's default.

    Returns:
        The pair of `v`, orthonormal eigenvectors in columns, of shape ``(..., n, k)``, and `w`, the
        real eigenvalues, of shape ``(..., k)``. Vectors are not unique: their sign or phase, and
        the vectors of equal eigenvalues, are up to the implementation. Results are NaN if the
        computation fails, as for NaN and infinities. The derivatives of vectors of equal
        eigenvalues are NaN.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128, or `implementation`
            is of another type.
        ValueError: the matrices are not square, or the subset is out of range.
        NotImplementedError: the platform does not have the requested implementation.

    Differs:
        Without `symmetrize_input` the derivative is that of what is read, the lower triangle.
        `subset_by_index` works on every platform.

        >>> v, w = lax.linalg.eigh(jnp.diag(jnp.arange(3.0)), subset_by_index=(0, 2))
        >>> print(w)
        [0. 1.]

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
    x = floating(x)
    aval = aval_of(x)
    check_factored("eigh", aval)
    check_matrices("eigh", aval, "x", square=True)
    if symmetrize_input:
        x = mul(add(x, matrix_adjoint(x)), 0.5)
    vectors, values = eigh_p.bind(
        x,
        lower=bool(lower),
        sort_eigenvalues=bool(sort_eigenvalues),
        subset_by_index=canonical_subset(subset_by_index, shape_of(x)[-1], "linalg.eigh"),
        algorithm=implementation,
    )
    return vectors, values


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Eigenvalues and eigenvectors of general square matrices.

    ``x @ r = r * w``, and ``l^H @ x = w * l^H``.

    Args:
        x: square matrices of shape ``(..., n, n)``, floating point or complex.
        compute_left_eigenvectors: whether to compute ``l``.
        compute_right_eigenvectors: whether to compute ``r``.
        enable_eigvec_derivs: whether vectors may be differentiated. Their derivatives are only
            valid if all eigenvalues are distinct, which is not checked.
        implementation: an `EigImplementation`; None for the platform's default.
        use_magma: an older way to say ``implementation=EigImplementation.MAGMA``.

    Returns:
        A list of the eigenvalues, of shape ``(..., n)``, in no particular order, and, if requested,
        the left and the right eigenvectors, in columns, of shape ``(..., n, n)``. All are complex.
        Vectors have length one and a real largest element. Results are NaN if the computation
        fails, as for NaN and infinities.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128, or `implementation`
            is of another type.
        ValueError: the matrices are not square.
        NotImplementedError: the platform does not have the implementation, or vectors are
            differentiated without `enable_eigvec_derivs`.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> w, l, r = lax.linalg.eig(np.array([[0.0, 1.0], [-1.0, 0.0]]))
        >>> sorted(w.imag.tolist())
        [-1.0, 1.0]
    """
    if implementation is not None and not isinstance(implementation, EigImplementation):
        raise TypeError(
            "lax.linalg.eig: implementation must be a lax.linalg.EigImplementation or None, got "
            f"{implementation!r}"
        )
    if use_magma is not None:
        source.warn(
            "lax.linalg.eig: use_magma is deprecated; pass "
            "implementation=EigImplementation.MAGMA instead",
            DeprecationWarning,
        )
        if use_magma and implementation is None:
            implementation = EigImplementation.MAGMA
    return list(
        eig_p.bind(
            as_operand(x, "lax.linalg.eig"),
            compute_left_eigenvectors=bool(compute_left_eigenvectors),
            compute_right_eigenvectors=bool(compute_right_eigenvectors),
            enable_eigvec_derivs=bool(enable_eigvec_derivs),
            implementation=implementation,
        )
    )
