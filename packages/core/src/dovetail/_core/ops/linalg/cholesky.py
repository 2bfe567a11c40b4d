"""The Cholesky factorisation, and its rank-one update."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import broadcast_in_dim, full
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ops.elementwise.arithmetic import add, div, mul, sub
from dovetail._core.ops.elementwise.comparison import eq, gt
from dovetail._core.ops.elementwise.complex import real
from dovetail._core.ops.elementwise.extrema import max as larger
from dovetail._core.ops.elementwise.powers import sqrt
from dovetail._core.ops.elementwise.selection import select
from dovetail._core.ops.elementwise.signs import abs as absolute
from dovetail._core.ops.linalg.loops import element_at, lower_loop, with_element
from dovetail._core.ops.linalg.matrices import (
    batch_all,
    check_batch,
    check_factored,
    check_floats,
    check_matrices,
    floating,
    hermitian,
    is_complex,
    matrix_adjoint,
    matrix_transpose,
    nan_of,
    on_diagonal,
    product,
    triangular_part,
    where_mask,
)
from dovetail._core.ops.linalg.triangular import solve_triangular
from dovetail._core.ops.reduction.reductions import reduce_and
from dovetail._core.ops.shape.reshaping import add_dimensions, squeeze_dimensions
from dovetail._core.trace.divisions import Labels, leading_labels
from dovetail._core.trace.primitive import Primitive

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class Cholesky(Primitive):
    """The lower triangular matrix whose product with its adjoint is a positive definite matrix.

    Only the lower triangle is read. If a matrix is not positive definite, the lower triangle of the
    result is NaN.
    """

    name = "cholesky"

    def abstract(self, x: Any) -> Any:
        check_factored(self.name, x)
        check_matrices(self.name, x, "x", square=True)
        return make_aval(x.shape, x.dtype, x.weak_type)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return leading_labels(avals, results)

    def reference(self, x: Any) -> Any:
        x = np.asarray(x)
        out = np.zeros_like(x)
        for index in np.ndindex(x.shape[:-2]):
            try:
                out[index] = np.linalg.cholesky(x[index])
            except np.linalg.LinAlgError:
                out[index] = np.tril(np.full_like(x[index], nan_of(x.dtype)))
        return out

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        root = self.bind(*primals)
        return root, changed_root(root, hermitian(tangents[0]))

    def batch(self, args: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, Any]:
        return batch_all(self, args, dims)

    def lower(self, context: Builder, x: Any) -> Any:
        (aval,) = context.avals_out
        if not aval.size:
            return context.constant(0, aval)
        if is_complex(aval):
            (x,) = context.lower_function(_real_on_the_diagonal, [aval])(x)
        root = context.op("cholesky", [x], aval, {"lower": True})
        return context.lower_function(_positive_only, [aval])(root)


cholesky_p: Final = Cholesky()


def changed_root(root: Any, change: Any) -> Any:
    """The derivative of the Cholesky factor `root`, if its Hermitian product changes by `change`.

    Source: Murray, "Differentiation of the Cholesky decomposition", 2016, equation 8.
    """
    inner = solve_triangular(root, change)
    inner = solve_triangular(root, inner, left_side=False, transpose_a=True, conjugate_a=True)
    size = shape_of(root)[-1]
    half = where_mask(on_diagonal(size, size), mul(inner, 0.5), triangular_part(inner))
    return product(root, half)


def _real_on_the_diagonal(x: Any) -> Any:
    """A matrix without the imaginary parts of its diagonal, which XLA ignores too."""
    shape = shape_of(x)
    mask = broadcast_in_dim(on_diagonal(*shape[-2:]), shape, (len(shape) - 2, len(shape) - 1))
    return select(mask, convert_element_type(real(x), aval_of(x).dtype), x)


def _positive_only(root: Any) -> Any:
    """The lower triangle of a computed factor, NaN if a pivot was not positive."""
    shape = shape_of(root)
    parts = real(root) if is_complex(root) else root
    mask = broadcast_in_dim(on_diagonal(*shape[-2:]), shape, (len(shape) - 2, len(shape) - 1))
    dtype = aval_of(root).dtype
    positive = gt(select(mask, parts, full(shape, 1, aval_of(parts).dtype)), 0)
    good = reduce_and(positive, (len(shape) - 2, len(shape) - 1))
    good = broadcast_in_dim(good, shape, tuple(range(len(shape) - 2)))
    return triangular_part(select(good, root, full(shape, nan_of(dtype), dtype)))


class CholeskyUpdate(Primitive):
    """The Cholesky factor of a matrix after adding the outer product of a vector with itself.

    The factor is upper triangular here; the other triangle is not read, and is zero in the result.
    """

    name = "cholesky_update"

    def abstract(self, r: Any, w: Any) -> Any:
        check_floats(self.name, r, w, kinds="f")
        check_matrices(self.name, r, "r_matrix", square=True)
        check_batch(self.name, r.shape[:-2], w, "w_vector", 1)
        if w.shape[-1] != r.shape[-1]:
            raise ValueError(
                "cholesky_update: w_vector must be as long as the rows of r_matrix, got the shapes "
                f"{r.shape} of r_matrix and {w.shape} of w_vector"
            )
        return make_aval(r.shape, r.dtype, r.weak_type and w.weak_type)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return leading_labels(avals, results)

    def reference(self, r: Any, w: Any) -> Any:
        dtype = np.asarray(r).dtype
        r, w = np.triu(np.asarray(r, np.float64)), np.array(w, np.float64)
        for k in range(r.shape[-1]):
            pivot, value, row = r[..., k, k], w[..., k], r[..., k, :].copy()
            length = np.where(value == 0, 1, np.hypot(pivot, value))
            c = np.where(value == 0, 1, pivot / length)[..., None]
            s = (value / length)[..., None]
            r[..., k, :], w = c * row + s * w, c * w - s * row
        return r.astype(dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (r, w), (s, t) = primals, tangents
        out = self.bind(r, w)
        # The factor of r^T r + w w^T is the transpose of the one from the Cholesky factorisation.
        rank = len(shape_of(r))
        column, change = (add_dimensions(v, (rank - 1,)) for v in (w, t))
        half = add(
            product(
                matrix_transpose(triangular_part(s, lower=False)), triangular_part(r, lower=False)
            ),
            product(change, matrix_transpose(column)),
        )
        return out, matrix_transpose(
            changed_root(matrix_transpose(out), add(half, matrix_transpose(half)))
        )

    def batch(self, args: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, Any]:
        return batch_all(self, args, dims)

    def lower(self, context: Builder, r: Any, w: Any) -> Any:
        (out,) = context.avals_out
        work = np.dtype(np.float32) if out.dtype.itemsize < 4 else out.dtype
        rank = out.ndim

        def first(r: Any, w: Any) -> tuple[Any, Any]:
            return convert_element_type(r, work), convert_element_type(w, work)

        def rotate(k: Any, r: Any, w: Any) -> tuple[Any, Any]:
            """Make element k of w zero by a rotation of w and row k of r."""
            row = squeeze_dimensions(element_at(r, k, rank - 2), (rank - 2,))
            pivot, value = element_at(row, k, rank - 2), element_at(w, k, rank - 2)
            largest = larger(absolute(pivot), absolute(value))
            x, y = div(pivot, largest), div(value, largest)
            length = sqrt(add(mul(x, x), mul(y, y)))
            nothing = eq(value, 0)
            c = select(nothing, full(shape_of(value), 1, work), div(x, length))
            s = select(nothing, full(shape_of(value), 0, work), div(y, length))
            turned = add(mul(c, row), mul(s, w))
            turned = add_dimensions(turned, (rank - 2,))
            return with_element(r, turned, k, rank - 2), sub(mul(c, w), mul(s, row))

        return lower_loop(
            context,
            [r, w],
            first=first,
            step=rotate,
            last=lambda r, w: convert_element_type(triangular_part(r, lower=False), out.dtype),
            count=out.shape[-1],
        )


cholesky_update_p: Final = CholeskyUpdate()


# Public functions


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The Cholesky factorisation of positive definite matrices: ``x = l @ l^H``.

    Args:
        x: Hermitian (if real, symmetric) matrices of shape ``(..., n, n)``. Integers and booleans
            are converted to floating point.
        symmetrize_input: whether to first average `x` with its adjoint. Otherwise the upper
            triangle is not read.

    Returns:
        The lower triangular matrices ``l``, of the shape of `x`. For matrices that are not positive
        definite, the lower triangle is NaN.

    Raises:
        TypeError: `x` is not a stack of matrices, or has an unsupported dtype.
        ValueError: the matrices are not square.

    Differs:
        Without `symmetrize_input` the derivative is that of what is read, the lower triangle.

        >>> a = jnp.array([[4.0, 2.0], [2.0, 5.0]])
        >>> f = lambda a: lax.linalg.cholesky(a, symmetrize_input=False).sum()
        >>> print(dt.grad(f)(a)[0, 1])
        0.0

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.linalg.cholesky(np.array([[4.0, 2.0], [2.0, 5.0]])).tolist()
        [[2.0, 0.0], [1.0, 2.0]]
    """
    x = as_operand(x, "lax.linalg.cholesky", "x")
    check_matrices("cholesky", aval_of(x), "x", square=True)
    x = floating(x)
    if symmetrize_input:
        x = mul(add(x, matrix_adjoint(x)), 0.5)
    return cholesky_p.bind(x)


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Update a Cholesky factorisation: from ``r`` to the factor of ``r^T @ r + w @ w^T``.

    The number of operations is proportional to ``n**2``; a new factorisation takes ``n**3``.

    Args:
        r_matrix: upper triangular matrices of shape ``(..., n, n)``, real. The lower triangle is
            not read.
        w_vector: vectors of shape ``(..., n)``, of the same dtype.

    Returns:
        Upper triangular matrices of the shape of `r_matrix`.

    Raises:
        TypeError: the dtypes differ or are not floating point; or the numbers of dimensions or the
            batch dimensions are incompatible.
        ValueError: the sizes are incompatible.

    Differs:
        There are zeros below the diagonal of the result.

        >>> print(lax.linalg.cholesky_update(jnp.eye(2), jnp.array([1.0, 0.0]))[1, 0])
        0.0

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> r = lax.linalg.cholesky_update(2 * np.eye(2), np.array([0.0, 1.5]))
        >>> r.tolist()
        [[2.0, 0.0], [0.0, 2.5]]
    """
    return cholesky_update_p.bind(
        as_operand(r_matrix, "lax.linalg.cholesky_update", "r_matrix"),
        as_operand(w_vector, "lax.linalg.cholesky_update", "w_vector"),
    )
