"""The polar decomposition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, SupportsFloat

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import ConcretizationTypeError
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import broadcast_in_dim, full, reshape
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ops.elementwise.arithmetic import add, div, mul, sub
from dovetail._core.ops.elementwise.bitwise import bitwise_and, bitwise_not, bitwise_or
from dovetail._core.ops.elementwise.comparison import eq, le, lt
from dovetail._core.ops.elementwise.operands import real_dtype
from dovetail._core.ops.elementwise.powers import rsqrt, sqrt
from dovetail._core.ops.elementwise.selection import select
from dovetail._core.ops.elementwise.signs import abs as absolute
from dovetail._core.ops.linalg.cholesky import cholesky_p
from dovetail._core.ops.linalg.eigen import eigh_p
from dovetail._core.ops.linalg.eigen_matrices import (
    column,
    columns,
    each_matrix,
    row,
    scaled_columns,
    zeros_of,
)
from dovetail._core.ops.linalg.loops import element_at, lower_while
from dovetail._core.ops.linalg.matrices import (
    INT32,
    batch_all,
    check_factored,
    check_matrices,
    identity,
    matrix_adjoint,
    part,
    product,
)
from dovetail._core.ops.linalg.qr import qr_p
from dovetail._core.ops.linalg.triangular import solve_triangular
from dovetail._core.ops.reduction.reductions import reduce_max, reduce_or, reduce_sum
from dovetail._core.ops.shape.creation import iota_like
from dovetail._core.ops.shape.dimensions import integers
from dovetail._core.ops.shape.joining import concatenate_p
from dovetail._core.trace.divisions import Labels, leading_labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.tracer import Tracer
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

BOOL: Final = np.dtype(bool)
#: Enough for any matrix.
MOST_ITERATIONS: Final = 10
#: Iterations with a larger weight need a QR factorisation for accuracy.
LARGE_WEIGHT: Final = 100


class Qdwh(Primitive):
    """The polar decomposition ``x = u @ h``, the number of iterations, and whether they converged.

    The columns of ``u`` are orthonormal, except for those of zero singular values, and ``h`` is
    positive semidefinite.
    """

    name = "qdwh"
    multiple_results = True
    accepts_zeros = True

    def abstract(
        self, x: Any, *, is_hermitian: bool, max_iterations: int, eps: float | None
    ) -> Any:
        check_factored(self.name, x)
        check_matrices(self.name, x, "x", square=is_hermitian)
        *batch, rows, size = x.shape
        if rows < size:
            raise ValueError(
                f"qdwh: x must have at least as many rows as columns, got the shape {x.shape}; "
                "decompose its adjoint"
            )
        return [
            make_aval(x.shape, x.dtype),
            make_aval((*batch, size, size), x.dtype),
            make_aval(tuple(batch), INT32),
            make_aval(tuple(batch), BOOL),
        ]

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return leading_labels(avals, results)

    def reference(self, x: Any, **params: Any) -> Any:
        u, h, steps, converged = self.abstract(aval_of(np.asarray(x)), **params)

        def decomposed(matrix: Any) -> Any:
            left, s, vh = np.linalg.svd(matrix, full_matrices=False)
            return left @ vh, (vh.conj().T * s) @ vh

        # The number of iterations depends on rounding.
        return [
            *each_matrix(decomposed, x, [u, h]),
            np.zeros(steps.shape, INT32),
            np.ones(converged.shape, BOOL),
        ]

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        u, h, *rest = outs = self.bind(x, **params)
        if type(t) is Zero:
            return outs, [Zero.of(o) for o in outs]
        # From dx = du @ h + u @ dh, where u^H @ du = turned is skew:
        # turned @ h + h @ turned = u^H @ dx - dx^H @ u.
        v, w = eigh_p.bind(
            h, lower=True, sort_eigenvalues=True, subset_by_index=None, algorithm=None
        )
        image = product(matrix_adjoint(u), t)
        skew = product(matrix_adjoint(v), product(sub(image, matrix_adjoint(image)), v))
        turned = mul(skew, _inverse(add(row(w), column(w)), aval_of(skew).dtype))
        turned = product(v, product(turned, matrix_adjoint(v)))
        # The complement of the columns of u; also for square matrices, where singular values may be
        # zero.
        others = product(sub(t, product(u, image)), v)
        others = product(scaled_columns(others, _inverse(w, aval_of(w).dtype)), matrix_adjoint(v))
        du = add(product(u, turned), others)
        return outs, [du, sub(image, product(turned, h)), *[Zero.of(o) for o in rest]]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        return batch_all(self, args, dims, **params)

    def lower(
        self,
        context: Builder,
        x: Any,
        *,
        is_hermitian: bool,
        max_iterations: int,
        eps: float | None,
    ) -> Any:
        (aval,), outs = context.avals_in, context.avals_out
        if not aval.size:
            return [context.constant(out.dtype == BOOL, out) for out in outs]
        *batch, _, _ = aval.shape
        rank = aval.ndim
        dtype = real_dtype(aval.dtype)
        eps = float(np.finfo(dtype).eps) if eps is None else eps
        weights = _weights(eps)
        by_qr = min(sum(c > LARGE_WEIGHT for _, _, c in weights), max_iterations)
        table = np.array(weights, dtype)
        enough = (5 * eps) ** (1 / 3)

        def first(x: Any) -> list[Any]:
            u = mul(x, convert_element_type(_spread(_scale(x), aval.shape), aval.dtype))
            for a, b, c in weights[:by_qr]:
                u = _step_by_qr(u, a, b, c)
            counts = full(tuple(batch), by_qr, INT32)
            return [full((), by_qr, INT32), x, u, counts, full(tuple(batch), False, BOOL)]

        def proceed(number: Any, x: Any, u: Any, counts: Any, done: Any) -> Any:
            left = reduce_or(bitwise_not(done), tuple(range(rank - 2)))
            return bitwise_and(left, lt(number, max_iterations))

        def step(number: Any, x: Any, u: Any, counts: Any, done: Any) -> list[Any]:
            here = element_at(table, number, 0)
            a, b, c = (reshape(columns(here, i, i + 1), ()) for i in range(3))
            new = _step_by_cholesky(u, a, b, c)
            change = absolute(sub(new, u))
            change = sqrt(reduce_sum(mul(change, change), (rank - 2, rank - 1)))
            # A matrix of the batch that has converged waits for the others.
            u = select(_spread(done, aval.shape), u, new)
            counts = add(counts, convert_element_type(bitwise_not(done), INT32))
            return [add(number, 1), x, u, counts, bitwise_or(done, le(change, enough))]

        def last(number: Any, x: Any, u: Any, counts: Any, done: Any) -> list[Any]:
            # One Newton-Schulz step, which cubes the remaining error.
            u = sub(mul(u, 1.5), mul(product(u, product(matrix_adjoint(u), u)), 0.5))
            if is_hermitian:
                u = mul(add(u, matrix_adjoint(u)), 0.5)
            h = product(matrix_adjoint(u), x)
            return [u, mul(add(h, matrix_adjoint(h)), 0.5), counts, done]

        return lower_while(context, [x], first=first, proceed=proceed, step=step, last=last)


qdwh_p: Final = Qdwh()


def _inverse(x: Any, dtype: Any) -> Any:
    """Reciprocals; zero for zero, so that directions in which the matrix is zero contribute
    nothing."""
    nothing = eq(x, 0)
    one = full(shape_of(x), 1, aval_of(x).dtype)
    inverse = select(nothing, zeros_of(x), div(one, select(nothing, one, x)))
    return convert_element_type(inverse, dtype)


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    """One value for each matrix, repeated for its elements."""
    return broadcast_in_dim(x, shape, tuple(range(len(shape_of(x)))))


def _scale(x: Any) -> Any:
    """Factors that scale singular values to at most one; 1 for zero matrices."""
    rank = len(shape_of(x))
    sizes = absolute(x)
    one_norm = reduce_max(reduce_sum(sizes, (rank - 2,)), (rank - 2,))
    max_norm = reduce_max(reduce_sum(sizes, (rank - 1,)), (rank - 2,))
    ones = full(shape_of(one_norm), 1, aval_of(one_norm).dtype)
    return select(eq(one_norm, 0), ones, mul(rsqrt(one_norm), rsqrt(max_norm)))


def _weights(smallest: float) -> list[tuple[float, float, float]]:
    """The weights a, b, c of iterations ``u (a + b u^H u) (1 + c u^H u)^-1``, which take singular
    values from `smallest` to one as fast as possible. The last ones serve all further iterations.

    Source: Nakatsukasa, Bai and Gygi, "Optimizing Halley's iteration for computing the matrix polar
    decomposition", 2010.
    """
    weights: list[tuple[float, float, float]] = []
    low = smallest
    while low < 1 - 1e-14 and len(weights) < 30:
        d = (4 * (1 - low**2) / low**4) ** (1 / 3)
        root = (1 + d) ** 0.5
        a = root + 0.5 * (8 - 4 * d + 8 * (2 - low**2) / (low**2 * root)) ** 0.5
        b = (a - 1) ** 2 / 4
        c = a + b - 1
        weights.append((a, b, c))
        low = min(low * (a + b * low**2) / (1 + c * low**2), 1.0)
    return [*weights, (3.0, 1.0, 3.0)]


def _ones(u: Any) -> Any:
    """An identity matrix for each matrix, with a row for each of its columns."""
    *batch, _, size = shape_of(u)
    rank = len(batch) + 2
    ones = identity(size, size, aval_of(u).dtype)
    return broadcast_in_dim(ones, (*batch, size, size), (rank - 2, rank - 1))


def _step_by_qr(u: Any, a: float, b: float, c: float) -> Any:
    rows, size = shape_of(u)[-2:]
    stacked = concatenate_p.bind(mul(u, c**0.5), _ones(u), dimension=len(shape_of(u)) - 2)
    q, _ = qr_p.bind(stacked, full_matrices=False, pivoting=False, use_magma=None)
    upper, under = part(q, rows=rows), part(q, rows=slice(rows, rows + size))
    moved = mul(product(upper, matrix_adjoint(under)), (a - b / c) / c**0.5)
    return add(mul(u, b / c), moved)


def _step_by_cholesky(u: Any, a: Any, b: Any, c: Any) -> Any:
    dtype = aval_of(u).dtype
    ratio = div(b, c)
    outer, inner, weight = (convert_element_type(w, dtype) for w in (ratio, sub(a, ratio), c))
    root = cholesky_p.bind(add(_ones(u), mul(product(matrix_adjoint(u), u), weight)))
    solved = solve_triangular(root, matrix_adjoint(u))
    solved = solve_triangular(root, solved, transpose_a=True, conjugate_a=True)
    return add(mul(u, outer), mul(matrix_adjoint(solved), inner))


# Public functions


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[Any, Any] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """The polar decomposition of matrices, by Halley's iteration with dynamic weights.

    ``x = u @ h``, where ``u`` has orthonormal columns and ``h`` is Hermitian and positive
    semidefinite. It consists of products and factorisations, which accelerators are good at.

    Args:
        x: matrices of shape ``(..., m, n)`` with ``m >= n``, floating point or complex.
        is_hermitian: whether `x` is Hermitian; ``u`` is then made so too.
        max_iterations: the maximum number of iterations; None for 10, which is always enough.
        eps: the target precision, below which singular values, relative to the largest, also count
            as zero; None for that of the dtype.
        dynamic_shape: numbers of rows and columns, which may be traced; elements beyond them count
            as zero.

    Returns:
        ``u`` of the shape of `x`, ``h`` of shape ``(..., n, n)``, and for each matrix the number of
        iterations (int32) and whether they converged. Singular values that are zero stay zero in
        ``u``; those that are nearly zero may become anything in ``u``. Derivatives are those of the
        limit.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128, `x` is not a matrix,
            or an argument is of another type.
        ValueError: there are fewer rows than columns, or an argument is out of range.

    Differs:
        It takes batches, and has a derivative of its own in both modes. The number of
        iterations is an int32, also with ``enable_x64``.

        >>> u, h, _, _ = lax.linalg.qdwh(jnp.ones((3, 1, 1)))
        >>> print(u.shape, h.shape)
        (3, 1, 1) (3, 1, 1)

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> u, h, _, converged = lax.linalg.qdwh(np.array([[0.0, -2.0], [2.0, 0.0]]))
        >>> (np.round(u) + 0.0).tolist(), (np.round(h) + 0.0).tolist(), bool(converged)
        ([[0.0, -1.0], [1.0, 0.0]], [[2.0, 0.0], [0.0, 2.0]], True)
    """
    x = as_operand(x, "lax.linalg.qdwh")
    check_matrices("qdwh", aval_of(x), "x", square=bool(is_hermitian))
    most = MOST_ITERATIONS
    if max_iterations is not None:
        (most,) = integers((max_iterations,), "linalg.qdwh", "max_iterations")
        if most < 0:
            raise ValueError(f"lax.linalg.qdwh: max_iterations must not be negative, got {most}")
    if eps is not None:
        if isinstance(eps, Tracer):
            raise ConcretizationTypeError(eps, "the argument eps of lax.linalg.qdwh")
        if not isinstance(eps, SupportsFloat):
            raise TypeError(f"lax.linalg.qdwh: eps must be a number, got {eps!r:.80}")
        eps = float(eps)
        if not 0 < eps < 1:
            raise ValueError(f"lax.linalg.qdwh: eps must be between 0 and 1, got {eps}")
    if dynamic_shape is not None:
        x = _cut(x, dynamic_shape)
    u, h, steps, converged = qdwh_p.bind(
        x, is_hermitian=bool(is_hermitian), max_iterations=most, eps=eps
    )
    return u, h, steps, converged


def _cut(x: Any, sizes: Any) -> Any:
    """`x` with zeros beyond `sizes`, the numbers of rows and columns to keep."""
    shape = shape_of(x)
    rank = len(shape)
    if not isinstance(sizes, tuple | list) or len(sizes) != 2:
        raise TypeError(f"lax.linalg.qdwh: dynamic_shape must be a pair of integers, got {sizes!r}")
    for size, dimension in zip(sizes, (rank - 2, rank - 1), strict=True):
        limit = as_operand(size, "lax.linalg.qdwh", "dynamic_shape")
        if shape_of(limit) or dtypes.kind_of(aval_of(limit).dtype) not in ("i", "u"):
            raise TypeError(
                "lax.linalg.qdwh: dynamic_shape must be a pair of integers, got "
                f"{aval_of(limit).short_name()} in it"
            )
        inside = lt(iota_like(INT32, shape, dimension), convert_element_type(limit, INT32))
        x = select(inside, x, zeros_of(x))
    return x
