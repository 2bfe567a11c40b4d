"""Products of Householder reflections, as produced by QR factorisations.

A reflection is the identity minus ``tau * v @ v^H``, where ``v`` is a column of a matrix below its
diagonal, with a one on the diagonal and zeros above.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import add_tangents
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import broadcast_in_dim, full, is_linear
from dovetail._core.ir.avals import ShapedArray, aval_of, make_aval, shape_of
from dovetail._core.ops.elementwise.arithmetic import mul, sub
from dovetail._core.ops.linalg.matrices import (
    batch_all,
    batch_columns,
    check_batch,
    check_factored,
    check_matrices,
    complex_conjugate,
    identity,
    matrix_adjoint,
    on_diagonal,
    part,
    product,
    triangular_part,
    where_mask,
)
from dovetail._core.ops.linalg.triangular import solve_triangular
from dovetail._core.ops.shape.reshaping import add_dimensions
from dovetail._core.trace.divisions import Labels, leading_labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero
from dovetail._core.transform.jvp import jvp_flat

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

NDArray = np.ndarray[Any, Any]


def _check_reflections(name: str, a: ShapedArray, taus: ShapedArray) -> None:
    check_factored(name, a, taus)
    check_matrices(name, a, "a")
    check_batch(name, a.shape[:-2], taus, "taus", 1)
    if taus.shape[-1] > min(a.shape[-2:]):
        raise ValueError(
            f"{name}: taus must not be longer than the diagonal of a, got the shapes {a.shape} of "
            f"a and {taus.shape} of taus"
        )


class HouseholderProduct(Primitive):
    """The first columns of a product of reflections."""

    name = "householder_product"

    def abstract(self, a: Any, taus: Any) -> Any:
        _check_reflections(self.name, a, taus)
        if a.shape[-2] < a.shape[-1]:
            raise ValueError(
                "householder_product: the matrices in a must have at least as many rows as "
                f"columns, got the shape {a.shape}"
            )
        return make_aval(a.shape, a.dtype, a.weak_type and taus.weak_type)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return leading_labels(avals, results)

    def reference(self, a: Any, taus: Any) -> Any:
        a = np.asarray(a)
        start = np.broadcast_to(np.eye(*a.shape[-2:], dtype=a.dtype), a.shape)
        return _reference(a, taus, start, transpose=False)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = self.bind(*primals)
        return out, jvp_flat(lambda *args: [_columns(*args)], primals, tangents)[1][0]

    def batch(self, args: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, Any]:
        return batch_all(self, args, dims)

    def lower(self, context: Builder, *values: Any) -> Any:
        return context.lower_function(_columns, context.avals_in)(*values)


householder_product_p: Final = HouseholderProduct()


class Ormqr(Primitive):
    """Matrices times a product of reflections, or times its adjoint, from either side."""

    name = "ormqr"
    accepts_zeros = True

    def abstract(self, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
        _check_reflections(self.name, a, taus)
        check_factored(self.name, a, c)
        check_matrices(self.name, c, "c")
        check_batch(self.name, a.shape[:-2], c, "c", 2)
        if c.shape[-2 if left else -1] != a.shape[-2]:
            raise ValueError(
                f"ormqr: with left={left} the matrices in c must have as many "
                f"{'rows' if left else 'columns'} as those in a have rows, got the shapes "
                f"{a.shape} of a and {c.shape} of c"
            )
        return make_aval(c.shape, c.dtype, all(v.weak_type for v in (a, taus, c)))

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return leading_labels(avals, results)

    def reference(self, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
        if left:
            return _reference(a, taus, c, transpose=transpose)
        turned = np.asarray(c).swapaxes(-1, -2).conj()
        return _reference(a, taus, turned, transpose=not transpose).swapaxes(-1, -2).conj()

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        (a, taus, c), (*of_reflections, t) = primals, tangents
        out = self.bind(a, taus, c, **params)
        tangent: Any = Zero.of(out) if type(t) is Zero else self.bind(a, taus, t, **params)
        if any(type(s) is not Zero for s in of_reflections):
            zeros = [*of_reflections, Zero.of(c)]
            _, (other,) = jvp_flat(lambda *x: [_multiplied(*x, **params)], primals, zeros)
            tangent = add_tangents(tangent, other)
        return out, tangent

    def transpose(
        self, ct: Any, a: Any, taus: Any, c: Any, *, left: bool, transpose: bool
    ) -> Sequence[Any]:
        if not is_linear(c):
            return None, None, None
        turned = self.bind(a, taus, complex_conjugate(ct), left=left, transpose=not transpose)
        return None, None, complex_conjugate(turned)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, left: bool, transpose: bool
    ) -> tuple[Any, Any]:
        params = {"left": left, "transpose": transpose}
        *reflections, c = args
        *moving, d = dims
        if d is None or any(e is not None for e in moving):
            return batch_all(self, args, dims, **params)
        merged, restore = batch_columns(c, d, columns=left)
        return restore(self.bind(*reflections, merged, **params))

    def lower(self, context: Builder, *values: Any, left: bool, transpose: bool) -> Any:
        def multiplied(a: Any, taus: Any, c: Any) -> Any:
            return _multiplied(a, taus, c, left=left, transpose=transpose)

        return context.lower_function(multiplied, context.avals_in)(*values)


ormqr_p: Final = Ormqr()


def _reference(a: Any, taus: Any, c: Any, *, transpose: bool) -> NDArray:
    """Reflections applied to NumPy matrices one after another, the last one first."""
    a, taus = np.asarray(a), np.asarray(taus)
    wide = np.complex128 if dtypes.kind_of(a.dtype) == "c" else np.float64
    out = np.array(c, wide)
    numbers = range(taus.shape[-1])
    for k in numbers if transpose else reversed(numbers):
        v = a[..., :, k, None].astype(wide)
        v[..., :k, :], v[..., k, :] = 0, 1
        tau = taus[..., k, None, None].conj() if transpose else taus[..., k, None, None]
        out -= tau * v * (v.conj().swapaxes(-1, -2) @ out)
    return out.astype(a.dtype)


# The product of all reflections is the identity minus v @ t @ v^H, where t is triangular:
# t^-1 = diag(1 / taus) + the strict upper triangle of v^H @ v. To allow for zeros in taus, t is
# written (1 + diag(taus) @ triangle)^-1 @ diag(taus).
# Source: Joffrain and others, "Accumulating Householder transformations, revisited", 2006.


def _vectors(a: Any, taus: Any) -> tuple[Any, Any, Any]:
    """The vectors of reflections, `taus` as columns, and the matrix ``diag(taus) @ triangle``."""
    rows, count = shape_of(a)[-2], shape_of(taus)[-1]
    below = triangular_part(part(a, columns=count), offset=-1)
    mask = on_diagonal(rows, count)
    v = where_mask(mask, full(shape_of(below), 1, aval_of(a).dtype), below)
    scale = add_dimensions(taus, (len(shape_of(taus)),))
    return (
        v,
        scale,
        mul(scale, triangular_part(product(matrix_adjoint(v), v), lower=False, offset=1)),
    )


def _columns(a: Any, taus: Any) -> Any:
    """The first columns of the product, as many as in `a`."""
    rows, columns = shape_of(a)[-2:]
    v, scale, inner = _vectors(a, taus)
    right = mul(scale, matrix_adjoint(part(v, rows=columns)))
    right = solve_triangular(inner, right, lower=False, unit_diagonal=True)
    rank = len(shape_of(a))
    one = identity(rows, columns, aval_of(a).dtype)
    return sub(broadcast_in_dim(one, shape_of(a), (rank - 2, rank - 1)), product(v, right))


def _multiplied(a: Any, taus: Any, c: Any, *, left: bool, transpose: bool) -> Any:
    """The product of reflections, or its adjoint, times `c`; or `c` times either."""
    if not left:
        turned = _multiplied(a, taus, matrix_adjoint(c), left=True, transpose=not transpose)
        return matrix_adjoint(turned)
    v, scale, inner = _vectors(a, taus)
    right = product(matrix_adjoint(v), c)
    if transpose:
        right = solve_triangular(
            inner, right, lower=False, transpose_a=True, conjugate_a=True, unit_diagonal=True
        )
        right = mul(complex_conjugate(scale), right)
    else:
        right = mul(scale, right)
        right = solve_triangular(inner, right, lower=False, unit_diagonal=True)
    return sub(c, product(v, right))


# Public functions


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The first columns of a product of Householder reflections.

    Args:
        a: matrices of shape ``(..., m, n)`` with m >= n, of dtype float32, float64, complex64 or
            complex128. Reflection i is the identity minus ``taus[..., i] * v @ v^H``, where ``v``
            is column i of `a` below the diagonal, with a one on the diagonal and zeros above.
        taus: of shape ``(..., k)`` with k <= n, of the same dtype.

    Returns:
        The first n columns of the product of all k reflections, the first one leftmost: an array
        of shape ``(..., m, n)``.

    Raises:
        TypeError: the dtypes differ or are not supported; or the numbers of dimensions or the batch
            dimensions are incompatible.
        ValueError: the sizes are incompatible.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.linalg.householder_product(np.array([[0.0], [1.0]]), np.array([1.0])).tolist()
        [[0.0], [-1.0]]
    """
    return householder_product_p.bind(
        as_operand(a, "lax.linalg.householder_product", "a"),
        as_operand(taus, "lax.linalg.householder_product", "taus"),
    )


def ormqr(
    a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False
) -> Array:
    """Multiply by the orthogonal matrix ``q`` that Householder reflections represent.

    It is the ``q`` of a QR factorisation, and is not formed explicitly.

    Args:
        a: matrices of shape ``(..., m, n)``, whose columns hold the reflections as in
            `householder_product`.
        taus: of shape ``(..., k)`` with k <= min(m, n), of the same dtype.
        c: of shape ``(..., m, p)`` with `left`, otherwise ``(..., p, m)``, of the same dtype.
        left: whether ``q`` is to the left of `c`.
        transpose: whether to multiply by the adjoint of ``q`` (for real numbers, the transpose).

    Returns:
        The product, of the shape of `c`.

    Raises:
        TypeError: the dtypes differ or are not supported; or the numbers of dimensions or the batch
            dimensions are incompatible.
        ValueError: the sizes are incompatible.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> a, c = np.array([[0.0], [1.0]]), np.array([[1.0], [2.0]])
        >>> lax.linalg.ormqr(a, np.array([1.0]), c).tolist()
        [[-2.0], [-1.0]]
    """
    function = "lax.linalg.ormqr"
    return ormqr_p.bind(
        as_operand(a, function, "a"),
        as_operand(taus, function, "taus"),
        as_operand(c, function, "c"),
        left=bool(left),
        transpose=bool(transpose),
    )
