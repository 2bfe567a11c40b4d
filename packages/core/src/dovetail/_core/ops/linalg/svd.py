"""The singular value decomposition."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, overload

import numpy as np

from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import convert_element_type, neg
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import full
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ops.elementwise.arithmetic import add, div, mul, sub
from dovetail._core.ops.elementwise.comparison import gt
from dovetail._core.ops.elementwise.complex import complex as from_parts
from dovetail._core.ops.elementwise.complex import imag, real
from dovetail._core.ops.elementwise.extrema import max as larger
from dovetail._core.ops.elementwise.operands import real_dtype
from dovetail._core.ops.elementwise.selection import select
from dovetail._core.ops.elementwise.signs import abs as absolute
from dovetail._core.ops.linalg.eigen import EighImplementation, eigh_p
from dovetail._core.ops.linalg.eigen_matrices import (
    Subset,
    cannot_compute,
    canonical_subset,
    check_subset,
    column,
    columns,
    diagonal,
    each_matrix,
    row,
    scaled_columns,
    subset_range,
    zeros_of,
)
from dovetail._core.ops.linalg.matrices import (
    batch_all,
    check_factored,
    check_matrices,
    is_complex,
    matrix_adjoint,
    on_diagonal,
    part,
    product,
    where_mask,
)
from dovetail._core.ops.linalg.polar import MOST_ITERATIONS, qdwh_p
from dovetail._core.ops.linalg.qr import qr_p
from dovetail._core.ops.shape.joining import concatenate_p
from dovetail._core.ops.shape.reshaping import reverse
from dovetail._core.trace.divisions import Labels, leading_labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class SvdAlgorithm(enum.Enum):
    """An algorithm for singular values.

    DEFAULT is the platform's choice. QR and DIVIDE_AND_CONQUER need LAPACK or a similar library.
    POLAR, by a polar decomposition and the eigenvalues of its positive factor, and JACOBI, which
    finds these by rotations, run on any platform.
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


class Svd(Primitive):
    """Singular values, the largest first, and left and right singular vectors.

    The left vectors are columns; the right ones are rows, and conjugated. The results are NaN if no
    values are found.
    """

    name = "svd"
    multiple_results = True
    accepts_zeros = True

    def abstract(
        self,
        x: Any,
        *,
        full_matrices: bool,
        compute_uv: bool,
        subset_by_index: Subset,
        algorithm: SvdAlgorithm | None,
    ) -> Any:
        check_factored(self.name, x)
        check_matrices(self.name, x, "x")
        *batch, rows, cols = x.shape
        rank = min(rows, cols)
        check_subset(self.name, subset_by_index, rank)
        if subset_by_index is not None and full_matrices and compute_uv:
            raise ValueError(
                "svd: full_matrices and subset_by_index exclude each other: of some singular "
                "values there are only their own vectors"
            )
        start, stop = subset_range(subset_by_index, rank)
        count = stop - start
        values = make_aval((*batch, count), real_dtype(x.dtype), x.weak_type)
        if not compute_uv:
            return [values]
        left, right = (rows, cols) if full_matrices else (count, count)
        return [
            values,
            make_aval((*batch, rows, left), x.dtype, x.weak_type),
            make_aval((*batch, right, cols), x.dtype, x.weak_type),
        ]

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return leading_labels(avals, results)

    def reference(
        self,
        x: Any,
        *,
        full_matrices: bool,
        compute_uv: bool,
        subset_by_index: Subset,
        algorithm: SvdAlgorithm | None,
    ) -> Any:
        aval = aval_of(np.asarray(x))
        outs = self.abstract(
            aval,
            full_matrices=full_matrices,
            compute_uv=compute_uv,
            subset_by_index=subset_by_index,
            algorithm=algorithm,
        )

        def decomposed(matrix: Any) -> Any:
            u, s, vh = np.linalg.svd(matrix, full_matrices)
            if subset_by_index is not None:
                kept = slice(*subset_by_index)
                u, s, vh = u[:, kept], s[kept], vh[kept]
            return [s, u, vh][: len(outs)]

        return each_matrix(decomposed, x, outs)

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        full_matrices: bool,
        compute_uv: bool,
        subset_by_index: Subset,
        algorithm: SvdAlgorithm | None,
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        if type(t) is Zero:
            outs = self.bind(
                x,
                full_matrices=full_matrices,
                compute_uv=compute_uv,
                subset_by_index=subset_by_index,
                algorithm=algorithm,
            )
            return outs, [Zero.of(o) for o in outs]
        *_, rows, cols = shape_of(x)
        rank = min(rows, cols)
        s, u, vh = self.bind(
            x,
            full_matrices=full_matrices and compute_uv,
            compute_uv=True,
            subset_by_index=None,
            algorithm=algorithm,
        )
        own_u, own_v = part(u, columns=rank), matrix_adjoint(part(vh, rows=rank))
        change = product(t, own_v)
        inner = product(matrix_adjoint(own_u), change)
        shifts = diagonal(inner)
        outs = [s, u, vh]
        out_tangents = [real(shifts) if is_complex(shifts) else shifts]
        if compute_uv:
            du, dv = _turned(own_u, own_v, s, inner)
            du = _into_the_rest(u, own_u, du, change, inner, s)
            change = product(matrix_adjoint(t), own_u)
            dv = _into_the_rest(matrix_adjoint(vh), own_v, dv, change, matrix_adjoint(inner), s)
            out_tangents += [du, matrix_adjoint(dv)]
        if subset_by_index is not None:
            outs, out_tangents = (
                _chosen(found, *subset_by_index) for found in (outs, out_tangents)
            )
        return outs[: len(out_tangents)], out_tangents

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        return batch_all(self, args, dims, **params)

    def lower(
        self,
        context: Builder,
        x: Any,
        *,
        full_matrices: bool,
        compute_uv: bool,
        subset_by_index: Subset,
        algorithm: SvdAlgorithm | None,
    ) -> Any:
        (aval,), outs = context.avals_in, context.avals_out
        if not aval.size:
            # Without singular values, any orthonormal vectors will do.
            return [
                context.constant(0 if not i else np.broadcast_to(np.eye(*o.shape[-2:]), o.shape), o)
                for i, o in enumerate(outs)
            ]
        if algorithm in (SvdAlgorithm.QR, SvdAlgorithm.DIVIDE_AND_CONQUER):
            raise cannot_compute(
                context,
                self.name,
                algorithm,
                "leave algorithm out, or pass SvdAlgorithm.POLAR, which every platform has",
            )
        jacobi = EighImplementation.JACOBI if algorithm is SvdAlgorithm.JACOBI else None

        def decomposed(x: Any) -> list[Any]:
            found = _by_polar(x, full_matrices, compute_uv, jacobi)
            return found if subset_by_index is None else _chosen(found, *subset_by_index)

        return context.lower_function(decomposed, [aval])(x)


svd_p: Final = Svd()


def _chosen(found: Sequence[Any], start: int, stop: int) -> list[Any]:
    """A range of the values, and their vectors."""
    s, *vectors = found
    chosen = [columns(s, start, stop)]
    if vectors:
        u, vh = vectors
        kept = slice(start, stop)
        chosen += [part(u, columns=kept), part(vh, rows=kept)]
    return chosen


def _turned(u: Any, v: Any, s: Any, inner: Any) -> tuple[Any, Any]:
    """The mutual changes of singular vectors, where ``u^H @ dx @ v`` is `inner`.

    Source: Townsend, "Differentiating the singular value decomposition", 2016. A complex pair of
    vectors may be multiplied by a common phase; here the right one keeps its own.
    """
    size = shape_of(s)[-1]
    own = on_diagonal(size, size)
    gaps = mul(add(row(s), column(s)), sub(row(s), column(s)))
    gaps = where_mask(own, full(shape_of(gaps), np.inf, aval_of(gaps).dtype), gaps)
    inverse = convert_element_type(div(1, gaps), aval_of(inner).dtype)
    right = scaled_columns(inner, s)
    left = matrix_adjoint(scaled_columns(matrix_adjoint(inner), s))
    du = product(u, mul(inverse, add(right, matrix_adjoint(right))))
    dv = product(v, mul(inverse, add(left, matrix_adjoint(left))))
    if is_complex(inner):
        there = gt(s, 0)
        divisor = select(there, s, add(zeros_of(s), 1))
        turned = select(there, div(imag(diagonal(inner)), divisor), zeros_of(s))
        du = add(du, scaled_columns(u, from_parts(zeros_of(s), turned)))
    return du, dv


def _into_the_rest(vectors: Any, own: Any, change: Any, image: Any, inner: Any, s: Any) -> Any:
    """The changes of singular vectors orthogonal to them, added to `change`.

    If more vectors were added to make the matrix square, these change so that all stay orthonormal;
    other choices of them have other derivatives.

    Args:
        vectors: all vectors of a side.
        own: those that belong to singular values.
        change: their mutual change.
        image: the change of the matrix (or its adjoint) times the vectors of the other side.
        inner: ``own^H @ image``.
        s: the singular values.
    """
    rows, rank = shape_of(own)[-2:]
    if rows == rank:
        return change
    inverse = div(1, s)
    rest = sub(image, product(own, inner))
    change = add(change, scaled_columns(rest, inverse))
    count = shape_of(vectors)[-1]
    if count == rank:
        return change
    added = part(vectors, columns=slice(rank, count))
    mixed = scaled_columns(product(matrix_adjoint(added), image), inverse)
    return concatenate_p.bind(
        change, neg(product(own, matrix_adjoint(mixed))), dimension=len(shape_of(own)) - 1
    )


def _by_polar(
    x: Any, full_matrices: bool, compute_uv: bool, algorithm: EighImplementation | None
) -> list[Any]:
    """The decomposition from the polar one, ``x = p @ h``, and the eigenvectors of ``h``."""
    *_, rows, cols = shape_of(x)
    if rows < cols:
        found = _by_polar(matrix_adjoint(x), full_matrices, compute_uv, algorithm)
        return [found[0], *[matrix_adjoint(vectors) for vectors in found[:0:-1]]]
    p, h, _, _ = qdwh_p.bind(x, is_hermitian=False, max_iterations=MOST_ITERATIONS, eps=None)
    v, w = eigh_p.bind(
        h, lower=True, sort_eigenvalues=True, subset_by_index=None, algorithm=algorithm
    )
    last = len(shape_of(w)) - 1
    s = larger(reverse(w, (last,)), 0)
    if not compute_uv:
        return [s]
    v = reverse(v, (last + 1,))
    # Vectors of singular values near zero may not be unit vectors, and others have to be added.
    q, r = qr_p.bind(product(p, v), full_matrices=full_matrices, pivoting=False, use_magma=None)
    factors = diagonal(part(r, rows=cols))
    length = absolute(factors)
    there = gt(length, 0)
    length = convert_element_type(length, aval_of(factors).dtype)
    ones = add(zeros_of(factors), 1)
    u = scaled_columns(
        part(q, columns=cols), select(there, div(factors, select(there, length, ones)), ones)
    )
    if shape_of(q)[-1] > cols:
        others = part(q, columns=slice(cols, shape_of(q)[-1]))
        u = concatenate_p.bind(u, others, dimension=last + 1)
    return [s, u, matrix_adjoint(v)]


# Public functions


@overload
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: Literal[False],
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Array: ...
@overload
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Array | tuple[Array, Array, Array]: ...
def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Array | tuple[Array, Array, Array]:
    """The singular value decomposition of matrices: ``x = (u * s) @ vh``.

    Args:
        x: matrices of shape ``(..., m, n)``, floating point or complex.
        full_matrices: whether to extend ``u`` and ``vh`` to square matrices.
        compute_uv: whether to compute ``u`` and ``vh``.
        subset_by_index: ``(start, end)`` for the singular values from the `start`-th largest to
            before the `end`-th largest, and their vectors; None for all. Not with `full_matrices`.
        algorithm: an `SvdAlgorithm`; None for the platform's default.

    Returns:
        ``u``, ``s`` and ``vh``; only ``s`` without `compute_uv`. ``s`` holds the ``k = min(m, n)``
        singular values, of shape ``(..., k)``, real, the largest first. The left singular vectors
        are the columns of ``u``, of shape ``(..., m, k)``; the right ones are the conjugated rows
        of ``vh``, of shape ``(..., k, n)``. With `full_matrices`, these shapes are ``(..., m, m)``
        and ``(..., n, n)``. Vectors are not unique: their sign or phase, the vectors of equal
        singular values, and the added ones, are up to the algorithm. Results are NaN if the
        computation fails, as for NaN and infinities. The derivatives of vectors of equal singular
        values are NaN.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128, `x` is not a matrix,
            or `algorithm` is of another type.
        ValueError: the subset is out of range.
        NotImplementedError: the platform does not have the requested algorithm.

    Differs:
        With `full_matrices` it has a derivative: vectors that are added turn only against the
        others.

        >>> f = lambda a: lax.linalg.svd(a, full_matrices=True)[1].sum()
        >>> print(dt.grad(f)(jnp.array([[2.0], [0.0]])))
        [[1.]
         [0.]]

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> s = lax.linalg.svd(np.array([[0.0, 2.0], [3.0, 0.0]]), compute_uv=False)
        >>> s.tolist()
        [3.0, 2.0]
    """
    if algorithm is not None and not isinstance(algorithm, SvdAlgorithm):
        raise TypeError(
            "lax.linalg.svd: algorithm must be a lax.linalg.SvdAlgorithm or None, got "
            f"{algorithm!r}"
        )
    x = as_operand(x, "lax.linalg.svd")
    check_matrices("svd", aval_of(x), "x")
    s, *vectors = svd_p.bind(
        x,
        full_matrices=bool(full_matrices),
        compute_uv=bool(compute_uv),
        subset_by_index=canonical_subset(subset_by_index, min(shape_of(x)[-2:]), "linalg.svd"),
        algorithm=algorithm,
    )
    return (vectors[0], s, vectors[1]) if compute_uv else s
