"""Solving linear equations with triangular matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import add_tangents, neg
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import is_linear
from dovetail._core.ir.avals import make_aval, shape_of
from dovetail._core.ops.linalg.matrices import (
    batch_all,
    batch_columns,
    check_batch,
    check_floats,
    check_matrices,
    complex_conjugate,
    is_complex,
    matrix_transpose,
    product,
    triangular_part,
)
from dovetail._core.ops.shape.reshaping import add_dimensions, squeeze_dimensions
from dovetail._core.trace.divisions import Labels, leading_labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

NDArray = np.ndarray[Any, Any]


class TriangularSolve(Primitive):
    """Solves ``op(a) @ x = b``, or ``x @ op(a) = b``, for triangular matrices `a`.

    Only one triangle of `a` is read.
    """

    name = "triangular_solve"
    linear_in: ClassVar[Sequence[slice]] = (slice(1, 2),)
    accepts_zeros = True

    def abstract(
        self,
        a: Any,
        b: Any,
        *,
        left_side: bool,
        lower: bool,
        transpose_a: bool,
        conjugate_a: bool,
        unit_diagonal: bool,
    ) -> Any:
        check_floats(self.name, a, b)
        check_matrices(self.name, a, "a", square=True)
        check_matrices(self.name, b, "b")
        check_batch(self.name, a.shape[:-2], b, "b", 2)
        size = b.shape[-2 if left_side else -1]
        if size != a.shape[-1]:
            raise ValueError(
                f"triangular_solve: with left_side={left_side} the "
                f"{'rows' if left_side else 'columns'} of b must be as many as those of a, got the "
                f"shapes {a.shape} of a and {b.shape} of b"
            )
        return make_aval(b.shape, b.dtype, a.weak_type and b.weak_type)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return leading_labels(avals, results)

    def reference(
        self,
        a: Any,
        b: Any,
        *,
        left_side: bool,
        lower: bool,
        transpose_a: bool,
        conjugate_a: bool,
        unit_diagonal: bool,
    ) -> Any:
        dtype = np.asarray(b).dtype
        wide = np.complex128 if dtypes.kind_of(dtype) == "c" else np.float64
        a, b = np.asarray(a).astype(wide), np.asarray(b).astype(wide)
        a = np.tril(a) if lower else np.triu(a)
        if unit_diagonal:
            a = np.where(np.eye(a.shape[-1], dtype=bool), 1, a)
        if conjugate_a:
            a = a.conj()
        if transpose_a:
            a = a.swapaxes(-1, -2)
        if not left_side:
            a, b = a.swapaxes(-1, -2), b.swapaxes(-1, -2)
        x = substituted(a, b, lower ^ transpose_a ^ (not left_side))
        return (x if left_side else x.swapaxes(-1, -2)).astype(dtype)

    def jvp(
        self,
        primals: Sequence[Any],
        tangents: Sequence[Any],
        *,
        left_side: bool,
        lower: bool,
        transpose_a: bool,
        conjugate_a: bool,
        unit_diagonal: bool,
    ) -> tuple[Any, Any]:
        (a, b), (s, t) = primals, tangents
        params = {
            "left_side": left_side,
            "lower": lower,
            "transpose_a": transpose_a,
            "conjugate_a": conjugate_a,
            "unit_diagonal": unit_diagonal,
        }
        x = self.bind(a, b, **params)
        change: Any = Zero.of(x) if type(t) is Zero else t
        if type(s) is not Zero:
            # op(a) @ dx = db - op(da) @ x
            s = triangular_part(s, lower, (-1 if lower else 1) if unit_diagonal else 0)
            s = complex_conjugate(s) if conjugate_a else s
            s = matrix_transpose(s) if transpose_a else s
            change = add_tangents(change, neg(product(s, x) if left_side else product(x, s)))
        if type(change) is Zero:
            return x, change
        return x, self.bind(a, change, **params)

    def transpose(
        self,
        ct: Any,
        a: Any,
        b: Any,
        *,
        transpose_a: bool,
        conjugate_a: bool,
        **params: Any,
    ) -> Sequence[Any]:
        if not is_linear(b):
            return None, None
        return None, self.bind(
            a, ct, transpose_a=not transpose_a, conjugate_a=conjugate_a, **params
        )

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, left_side: bool, **params: Any
    ) -> tuple[Any, Any]:
        (a, b), (d, e) = args, dims
        if d is not None:
            return batch_all(self, args, dims, left_side=left_side, **params)
        # One matrix for the whole batch, which becomes further right-hand sides.
        assert e is not None
        merged, restore = batch_columns(b, e, columns=left_side)
        return restore(self.bind(a, merged, left_side=left_side, **params))

    def lower(
        self,
        context: Builder,
        a: Any,
        b: Any,
        *,
        left_side: bool,
        lower: bool,
        transpose_a: bool,
        conjugate_a: bool,
        unit_diagonal: bool,
    ) -> Any:
        (matrix, _), (out,) = context.avals_in, context.avals_out
        work = out
        if out.dtype.itemsize < 4:
            work = out.update(dtype=np.dtype(np.float32))
            a = context.convert(a, matrix, matrix.update(dtype=work.dtype))
            b = context.convert(b, out, work)
        conjugate_a = conjugate_a and out.dtype.kind == "c"
        if conjugate_a and not transpose_a:
            (a,) = context.lower_function(complex_conjugate, [matrix])(a)
        kind = "NO_TRANSPOSE"
        if transpose_a:
            kind = "ADJOINT" if conjugate_a else "TRANSPOSE"
        x = context.op(
            "triangular_solve",
            [a, b],
            work,
            {
                "left_side": left_side,
                "lower": lower,
                "unit_diagonal": unit_diagonal,
                "transpose_a": context.transpose_kind(kind),
            },
        )
        return context.convert(x, work, out)


triangular_solve_p: Final = TriangularSolve()


def substituted(a: NDArray, b: NDArray, lower: bool) -> NDArray:
    """The solutions of ``a @ x = b`` with triangular NumPy matrices, row by row."""
    x = np.zeros(b.shape, b.dtype)
    rows = range(a.shape[-1])
    for i in rows if lower else reversed(rows):
        solved = (a[..., i, None, :] @ x)[..., 0, :]
        x[..., i, :] = (b[..., i, :] - solved) / a[..., i, i, None]
    return x


# Functions for rules


def solve_triangular(
    a: Any,
    b: Any,
    *,
    left_side: bool = True,
    lower: bool = True,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """``op(a)^-1 @ b``, or ``b @ op(a)^-1``, for triangular matrices `a`."""
    return triangular_solve_p.bind(
        a,
        b,
        conjugate_a=conjugate_a and is_complex(a),
        left_side=left_side,
        lower=lower,
        transpose_a=transpose_a,
        unit_diagonal=unit_diagonal,
    )


# Public functions


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solve linear equations with triangular matrices: ``op(a) @ x = b`` or ``x @ op(a) = b``.

    Args:
        a: triangular matrices of shape ``(..., m, m)``, floating point or complex. The other
            triangle is not read. Zeros on the diagonal are not detected; they make elements of the
            result infinite or NaN.
        b: right-hand sides of the dtype and batch dimensions of `a`, of shape ``(..., m, n)`` with
            `left_side`, otherwise ``(..., n, m)``; or one for each matrix, of shape ``(..., m)``.
        left_side: whether ``op(a)`` is to the left of ``x``.
        lower: whether to use the lower triangle of `a`, otherwise the upper one.
        transpose_a: whether ``op(a)`` is the transpose of `a`.
        conjugate_a: whether ``op(a)`` is the complex conjugate of `a` (with `transpose_a`, the
            adjoint).
        unit_diagonal: whether to take the diagonal of `a` as ones, without reading it.

    Returns:
        The solutions, of the shape and dtype of `b`.

    Raises:
        TypeError: the dtypes differ, or are neither floating point nor complex; or the numbers of
            dimensions or the batch dimensions are incompatible.
        ValueError: the sizes of the matrices are incompatible.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> a, b = np.array([[2.0, 0.0], [1.0, 4.0]]), np.array([2.0, 9.0])
        >>> lax.linalg.triangular_solve(a, b, left_side=True, lower=True).tolist()
        [1.0, 2.0]
    """
    a = as_operand(a, "lax.linalg.triangular_solve", "a")
    b = as_operand(b, "lax.linalg.triangular_solve", "b")
    rank = len(shape_of(b))
    single = rank == len(shape_of(a)) - 1
    if single:
        rank += 1
        b = add_dimensions(b, (rank - 1 if left_side else rank - 2,))
    x = solve_triangular(
        a,
        b,
        left_side=bool(left_side),
        lower=bool(lower),
        transpose_a=bool(transpose_a),
        conjugate_a=bool(conjugate_a),
        unit_diagonal=bool(unit_diagonal),
    )
    return squeeze_dimensions(x, (rank - 1 if left_side else rank - 2,)) if single else x
