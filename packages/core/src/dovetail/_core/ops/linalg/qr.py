"""The QR factorisation, with and without column pivoting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.operands import as_operand, make_literal
from dovetail._core.basis.structural import broadcast_to, full, move_dimension
from dovetail._core.ir.avals import ShapedArray, aval_of, make_aval, shape_of
from dovetail._core.ops.elementwise.arithmetic import add, div, mul, neg, sub
from dovetail._core.ops.elementwise.bitwise import bitwise_and, bitwise_not
from dovetail._core.ops.elementwise.comparison import eq, ge, gt, lt
from dovetail._core.ops.elementwise.complex import complex as complex_number
from dovetail._core.ops.elementwise.complex import imag, real
from dovetail._core.ops.elementwise.extrema import max as larger
from dovetail._core.ops.elementwise.powers import sqrt
from dovetail._core.ops.elementwise.selection import select
from dovetail._core.ops.elementwise.signs import abs as absolute
from dovetail._core.ops.indexing.sorting import take_along
from dovetail._core.ops.linalg.householder import householder_product_p
from dovetail._core.ops.linalg.loops import element_at, exchanged, lower_loop, with_element
from dovetail._core.ops.linalg.matrices import (
    INT32,
    batch_all,
    check_factored,
    check_matrices,
    complex_conjugate,
    is_complex,
    matrix_adjoint,
    matrix_transpose,
    on_diagonal,
    part,
    product,
    rows_in_order,
    triangular_part,
    where_mask,
)
from dovetail._core.ops.linalg.triangular import solve_triangular
from dovetail._core.ops.reduction.reductions import argmax, reduce_max, reduce_sum
from dovetail._core.ops.shape.creation import iota_like
from dovetail._core.ops.shape.joining import concatenate_p
from dovetail._core.ops.shape.reshaping import add_dimensions, squeeze_dimensions
from dovetail._core.ops.shape.slicing import pad_with
from dovetail._core.trace.divisions import Labels, leading_labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

NDArray = np.ndarray[Any, Any]


class Reflecting(Primitive):
    """Makes matrices triangular by reflections; their vectors replace the zeros."""

    multiple_results = True
    no_derivative = "it is a step of qr, which has one"

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return leading_labels(avals, results)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        return batch_all(self, args, dims, **params)


def _packed_avals(name: str, a: ShapedArray) -> list[ShapedArray]:
    check_factored(name, a)
    check_matrices(name, a, "a")
    return [make_aval(a.shape, a.dtype), make_aval((*a.shape[:-2], min(a.shape[-2:])), a.dtype)]


class Geqrf(Reflecting):
    """QR factorisation: triangle and vectors in one matrix, and the factors of the reflections."""

    name = "geqrf"

    def abstract(self, a: Any) -> Any:
        return _packed_avals(self.name, a)

    def reference(self, a: Any) -> Any:
        packed, taus, _ = _reference(a, pivoting=False)
        return [packed, taus]

    def lower(self, context: Builder, a: Any) -> Any:
        (aval,) = context.avals_in
        size = min(aval.shape[-2:])

        def first(a: Any) -> tuple[Any, Any]:
            return a, full((*aval.shape[:-2], size), 0, aval.dtype)

        return lower_loop(
            context,
            [a],
            first=first,
            step=_reflect,
            last=lambda *found: found,
            count=size,
        )


geqrf_p: Final = Geqrf()


class Geqp3(Reflecting):
    """QR factorisation that always takes the longest remaining column next.

    The results are those of `geqrf` and the order of the columns.
    """

    name = "geqp3"

    def abstract(self, a: Any) -> Any:
        outs = _packed_avals(self.name, a)
        return [*outs, make_aval((*a.shape[:-2], a.shape[-1]), INT32)]

    def reference(self, a: Any) -> Any:
        return _reference(a, pivoting=True)

    def lower(self, context: Builder, a: Any) -> Any:
        (aval,) = context.avals_in
        *batch, rows, columns = aval.shape
        size, rank = min(rows, columns), aval.ndim
        vectors = (*batch, columns)

        def first(a: Any) -> tuple[Any, Any, Any]:
            order = iota_like(INT32, vectors, rank - 2)
            return a, full((*batch, size), 0, aval.dtype), order

        def step(k: Any, a: Any, taus: Any, order: Any) -> tuple[Any, Any, Any]:
            length = _lengths(k, a)
            numbers = iota_like(INT32, vectors, rank - 2)
            length = select(ge(numbers, k), length, full(vectors, -1, aval_of(length).dtype))
            best = add_dimensions(argmax(length, rank - 2, INT32), (rank - 2,))
            positions = exchanged(numbers, numbers, k, best, best, k)
            a = matrix_transpose(rows_in_order(matrix_transpose(a), positions))
            return *_reflect(k, a, taus), take_along(order, positions, rank - 2)

        return lower_loop(
            context, [a], first=first, step=step, last=lambda *found: found, count=size
        )


geqp3_p: Final = Geqp3()


def _reference(a: Any, pivoting: bool) -> list[NDArray]:
    a = np.asarray(a)
    wide = np.complex128 if dtypes.kind_of(a.dtype) == "c" else np.float64
    *batch, rows, columns = a.shape
    packed = np.zeros(a.shape, wide)
    taus = np.zeros((*batch, min(rows, columns)), wide)
    order = np.zeros((*batch, columns), np.int32)
    order[...] = np.arange(columns)
    for index in np.ndindex(*batch) if a.size else ():
        matrix = a[index].astype(wide)
        if pivoting:
            order[index] = _longest_first(matrix)
        raw, taus[index] = np.linalg.qr(matrix[:, order[index]], mode="raw")
        packed[index] = raw.T
    return [packed.astype(a.dtype), taus.astype(a.dtype), order]


def _longest_first(matrix: NDArray) -> NDArray:
    """Columns ordered so that each is the longest, after removing its part along earlier ones."""
    rest, order = matrix.copy(), np.arange(matrix.shape[1])
    for k in range(min(matrix.shape)):
        best = k + int(np.argmax(np.linalg.norm(rest[:, k:], axis=0)))
        rest[:, [k, best]], order[[k, best]] = rest[:, [best, k]], order[[best, k]]
        length = np.linalg.norm(rest[:, k])
        direction = rest[:, k] / (length or 1)
        rest -= np.outer(direction, direction.conj() @ rest)
    return order


def _squares(x: Any) -> Any:
    """The squares of absolute values."""
    if not is_complex(x):
        return mul(x, x)
    x, y = real(x), imag(x)
    return add(mul(x, x), mul(y, y))


def _largest(x: Any, dimensions: tuple[int, ...]) -> Any:
    """The divisor before squaring, with these dimensions of size 1; never zero."""
    size = larger(absolute(real(x)), absolute(imag(x))) if is_complex(x) else absolute(x)
    largest = add_dimensions(reduce_max(size, dimensions), dimensions)
    return select(eq(largest, 0), _filled(largest, 1), largest)


def _filled(x: Any, value: float) -> Any:
    return full(shape_of(x), value, aval_of(x).dtype)


def _scaled(x: Any, scale: Any) -> Any:
    if not is_complex(x):
        return div(x, scale)
    return complex_number(div(real(x), scale), div(imag(x), scale))


def _lengths(k: Any, a: Any) -> Any:
    """Squared lengths of columns from row `k` on, up to a factor."""
    rank = len(shape_of(a))
    squares = _squares(_scaled(a, _largest(a, (rank - 2, rank - 1))))
    squares = _kept(squares, ge(iota_like(INT32, shape_of(a), rank - 2), k))
    return reduce_sum(squares, (rank - 2,))


def _kept(x: Any, mask: Any) -> Any:
    return select(mask, x, _filled(x, 0))


def reflection(column: Any, k: Any) -> tuple[Any, Any, Any]:
    """The reflection that makes a column, of shape ``(..., n, 1)``, zero below row `k`.

    Returns:
        Its vector, which is zero above row `k` and one there; its factor; and the column with the
        new element at row `k`, and the vector below it.

    Source: LAPACK's larfg.
    """
    rank, dtype = len(shape_of(column)), aval_of(column).dtype
    numbers = iota_like(INT32, shape_of(column), rank - 2)
    scale = _largest(_kept(column, ge(numbers, k)), (rank - 2, rank - 1))
    below = _scaled(_kept(column, gt(numbers, k)), scale)
    head = _scaled(element_at(column, k, rank - 2), scale)
    rest = add_dimensions(reduce_sum(_squares(below), (rank - 2, rank - 1)), (rank - 2, rank - 1))
    length = sqrt(add(_squares(head), rest))
    first = real(head) if is_complex(head) else head
    nothing = eq(rest, 0)
    if is_complex(head):
        nothing = bitwise_and(nothing, eq(imag(head), 0))
    # The sign that avoids cancellation in the difference from the first element.
    beta = select(lt(first, 0), length, neg(length))
    beta, diagonal = select(nothing, _filled(first, 1), beta), select(nothing, first, beta)
    diagonal, beta = (convert_element_type(v, dtype) for v in (mul(diagonal, scale), beta))
    tau = _kept(div(sub(beta, head), beta), bitwise_not(nothing))
    below = div(below, select(nothing, _filled(head, 1), sub(head, beta)))
    v = select(eq(numbers, k), _filled(below, 1), below)
    corner = select(eq(numbers, k), broadcast_to(diagonal, shape_of(column)), column)
    return v, tau, select(gt(numbers, k), below, corner)


def reflected(a: Any, v: Any, tau: Any, k: Any) -> Any:
    """Matrices with their columns after `k` reflected, by the adjoint of a reflection."""
    inner = product(matrix_adjoint(v), a)
    after = gt(iota_like(INT32, shape_of(inner), len(shape_of(a)) - 1), k)
    return sub(a, mul(mul(complex_conjugate(tau), v), _kept(inner, after)))


def _reflect(k: Any, a: Any, taus: Any) -> tuple[Any, Any]:
    """Zero column `k` below the diagonal, by a reflection of all columns from there on."""
    rank = len(shape_of(a))
    v, tau, column = reflection(element_at(a, k, rank - 1), k)
    a = with_element(reflected(a, v, tau, k), column, k, rank - 1)
    return a, with_element(taus, squeeze_dimensions(tau, (rank - 1,)), k, rank - 2)


class Qr(Primitive):
    """Factors ``x = q @ r``, or ``x[:, p] = q @ r``, where ``q`` is orthogonal (unitary) and ``r``
    upper triangular."""

    name = "qr"
    multiple_results = True

    def abstract(
        self, x: Any, *, full_matrices: bool, pivoting: bool, use_magma: bool | None = None
    ) -> Any:
        check_factored(self.name, x)
        check_matrices(self.name, x, "x")
        *batch, rows, columns = x.shape
        inner = rows if full_matrices else min(rows, columns)
        outs = [
            make_aval((*batch, rows, inner), x.dtype, x.weak_type),
            make_aval((*batch, inner, columns), x.dtype, x.weak_type),
        ]
        return [*outs, make_aval((*batch, columns), INT32)] if pivoting else outs

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return leading_labels(avals, results)

    def reference(
        self, x: Any, *, full_matrices: bool, pivoting: bool, use_magma: bool | None = None
    ) -> Any:
        packed, taus, order = _reference(x, pivoting)
        rows, columns = packed.shape[-2:]
        inner = rows if full_matrices else min(rows, columns)
        padded = np.concatenate([packed, np.zeros((*packed.shape[:-1], rows), packed.dtype)], -1)
        q = householder_product_p.reference(padded[..., :inner], taus)
        r = np.triu(packed)[..., :inner, :]
        return [q, r, order] if pivoting else [q, r]

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        full_matrices: bool,
        pivoting: bool,
        use_magma: bool | None = None,
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        outs = self.bind(x, full_matrices=full_matrices, pivoting=pivoting, use_magma=use_magma)
        q, r, *order = outs
        if order:
            t = matrix_transpose(rows_in_order(matrix_transpose(t), order[0]))
        rows, columns = shape_of(x)[-2:]
        if full_matrices and rows > columns:
            changes = _changed_full_factors(q, r, t)
        else:
            changes = _changed_factors(q, r, t)
        return outs, [*changes, *map(Zero.of, order)]

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], **params: Any
    ) -> tuple[Any, Any]:
        outs = self.bind(move_dimension(args[0], dims[0] or 0, 0), **params)
        return outs, [0] * len(outs)

    def lower(
        self,
        context: Builder,
        x: Any,
        *,
        full_matrices: bool,
        pivoting: bool,
        use_magma: bool | None = None,
    ) -> Any:
        def factor(x: Any) -> Any:
            packed, taus, *order = (geqp3_p if pivoting else geqrf_p).bind(x)
            rows, columns = shape_of(x)[-2:]
            inner = rows if full_matrices else min(rows, columns)
            wide = part(packed, columns=min(inner, columns))
            if inner > columns:
                config = (*((0, 0, 0) for _ in shape_of(x)[1:]), (0, inner - columns, 0))
                wide = pad_with(wide, make_literal(0, aval_of(x).dtype), config)
            q = householder_product_p.bind(wide, taus)
            return q, triangular_part(part(packed, rows=inner), lower=False), *order

        return context.lower_function(factor, context.avals_in)(x)


qr_p: Final = Qr()


def _changed_factors(q: Any, r: Any, change: Any) -> tuple[Any, Any]:
    """The derivatives of both factors, if their product changes by `change`.

    ``q^H @ dq`` is skew-Hermitian, so it is determined by its strict lower triangle, that of ``q^H
    @ dx @ r^-1``. Columns beyond a square follow from it.
    Source: Walter and others, "Structured higher-order algorithmic differentiation in the forward
    and reverse mode with application in optimum experimental design", 2012, section 3.
    """
    size = shape_of(q)[-1]
    solved = solve_triangular(
        part(r, columns=size), part(change, columns=size), left_side=False, lower=False
    )
    inner = product(matrix_adjoint(q), solved)
    strict = triangular_part(inner, offset=-1)
    skew = sub(strict, matrix_adjoint(strict))
    if is_complex(q):
        # The diagonal of r stays real.
        turning = sub(inner, convert_element_type(real(inner), aval_of(q).dtype))
        skew = where_mask(on_diagonal(size, size), turning, skew)
    dq = add(sub(solved, product(q, inner)), product(q, skew))
    dr = triangular_part(sub(product(matrix_adjoint(q), change), product(skew, r)), lower=False)
    return dq, dr


def _changed_full_factors(q: Any, r: Any, change: Any) -> tuple[Any, Any]:
    """The derivatives of both factors of matrices with more rows than columns, for a square ``q``.

    The columns of ``q`` beyond those of the matrix follow from the others, because ``q`` is a
    product of reflections: ``I - V T V^H``, where the n columns of ``V`` are a unit lower triangle
    over a rectangle. Written in blocks of n and of the other rows and columns, this says
    ``q_2 = E_2 + (q_1 - E_1) g`` with ``g = (q_11 - I)^-H q_21^H``.
    """
    rows, columns = shape_of(change)[-2:]
    rest, dtype = slice(columns, rows), aval_of(q).dtype
    first, triangle = part(q, columns=columns), part(r, rows=columns)
    d_first, d_triangle = _changed_factors(first, triangle, change)
    moved = where_mask(on_diagonal(rows, columns), sub(first, _filled(first, 1)), first)
    corner, below = matrix_adjoint(part(moved, rows=columns)), part(first, rows=rest)
    d_corner, d_below = part(d_first, rows=columns), part(d_first, rows=rest)
    g = _solved(corner, matrix_adjoint(below))
    dg = _solved(corner, sub(matrix_adjoint(d_below), product(matrix_adjoint(d_corner), g)))
    d_rest = add(product(d_first, g), product(moved, dg))
    missing = full((*shape_of(q)[:-2], rows - columns, columns), 0, dtype)
    rank = len(shape_of(q))
    dq = concatenate_p.bind(d_first, d_rest, dimension=rank - 1)
    return dq, concatenate_p.bind(d_triangle, missing, dimension=rank - 2)


def _solved(a: Any, b: Any) -> Any:
    """The solution ``x`` of ``a @ x = b`` for square matrices."""
    q, r = qr_p.bind(a, full_matrices=False, pivoting=False, use_magma=None)
    return solve_triangular(r, product(matrix_adjoint(q), b), left_side=True, lower=False)


# Public functions


def qr(
    x: ArrayLike,
    *,
    pivoting: bool = False,
    full_matrices: bool = True,
    use_magma: bool | None = None,
) -> tuple[Array, ...]:
    """The QR factorisation of matrices: ``x = q @ r``, with ``q^H @ q`` the identity.

    It uses Householder reflections, like LAPACK. The diagonal of ``r`` is therefore real, and its
    elements may be negative.

    Args:
        x: matrices of shape ``(..., m, n)``, of dtype float32, float64, complex64 or complex128.
        pivoting: whether to permute columns, to make the diagonal of ``r`` decrease.
        full_matrices: whether ``q`` is square; otherwise it has min(m, n) columns.
        use_magma: which library computes the factorisation on a GPU; ignored elsewhere.

    Returns:
        ``q`` of shape ``(..., m, k)`` and upper triangular ``r`` of shape ``(..., k, n)``, where k
        is m or min(m, n); with `pivoting` also the order of the columns, int32 of shape ``(...,
        n)``: ``x[:, order] = q @ r``.

        They are differentiable if the first min(m, n) columns (after permuting) are linearly
        independent; with `full_matrices` and m > n, also no column may be zero below the diagonal
        already.

    Raises:
        TypeError: `x` is not a stack of matrices, or has an unsupported dtype.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> q, r = lax.linalg.qr(np.array([[0.0, 2.0], [-3.0, 1.0]]))
        >>> r.tolist()
        [[-3.0, 1.0], [0.0, 2.0]]
    """
    x = as_operand(x, "lax.linalg.qr", "x")
    return tuple(
        qr_p.bind(
            x, full_matrices=bool(full_matrices), pivoting=bool(pivoting), use_magma=use_magma
        )
    )
