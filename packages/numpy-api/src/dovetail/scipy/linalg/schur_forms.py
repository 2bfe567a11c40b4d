"""Matrices in triangular, nearly triangular and Hessenberg form, by unitary transformations."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail import lax, vmap
from dovetail.errors import ShapeError
from dovetail.extend.arguments import array_like, literal, same_dtype
from dovetail.extend.avals import aval_of
from dovetail.extend.matrices import matrix_adjoint, part, product, real_dtype
from dovetail.numpy.compiled import compiled_with
from dovetail.numpy.conditions import pick
from dovetail.numpy.linalg.decompositions import (
    checked_matrices,
    factored,
    matrix_operand,
    rounded,
)
from dovetail.numpy.shapes import reshaped
from dovetail.scipy.linalg.matrix_operands import INT32, as_complex, choice, kept_in_triangle
from dovetail.typing import Array, ArrayLike


@compiled_with("output")
def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """The Schur decomposition of square matrices: ``a = z @ t @ z^H``.

    Args:
        a: matrices of shape ``(..., n, n)``.
        output: "complex" for complex results also of real matrices, with ``t`` upper triangular.
            With "real" a pair of complex eigenvalues of a real matrix is a block of two rows and
            columns on the diagonal of ``t``.

    Returns:
        The pair of ``t`` and the unitary (or orthogonal) ``z``, of the shape of `a`. They are nan
        if the computation fails, as for nan and infinities. They have no derivatives, because they
        are some of many. Only available on the CPU.

    Raises:
        ValueError: the matrices are not square, or `output` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> t, z = linalg.schur(jnp.array([[1., 4.], [0., 3.]]))
        >>> print(t)
        [[1. 4.]
         [0. 3.]]
    """
    function = "scipy.linalg.schur"
    choice(function, "output", output, ("real", "complex"))
    x, dtype = matrix_operand(function, a, square=True)
    if output == "complex":
        t, z = lax.linalg.schur(as_complex(x))
        return t, z
    t, z = lax.linalg.schur(x)
    return rounded(t, dtype), rounded(z, dtype)


def _rotated(t: Any, z: Any) -> tuple[Any, Any]:
    """One matrix in complex Schur form, by a rotation for each pair of rows, from below.

    Source: Golub and Van Loan, "Matrix Computations", sections 7.4.1 and 7.6.
    """
    size = aval_of(t).shape[0]
    dtype = aval_of(t).dtype
    real = real_dtype(dtype)
    precision = literal(float(np.finfo(real).eps), real)

    def element(x: Any, i: int, j: int) -> Any:
        return lax.squeeze(lax.slice(x, (i, j), (i + 1, j + 1)), (0, 1))

    def body(step: Any, matrices: tuple[Any, Any]) -> tuple[Any, Any]:
        t, z = matrices
        first = lax.sub(lax.full((), size - 2, INT32), lax.convert_element_type(step, INT32))
        block = lax.dynamic_slice(t, (first, first), (2, 2))
        a, b, c, d = (element(block, i, j) for i in (0, 1) for j in (0, 1))
        scale = lax.mul(precision, lax.add(lax.abs(a), lax.abs(d)))
        needed = lax.gt(lax.abs(c), scale)
        half = lax.mul(lax.sub(a, d), literal(0.5, dtype))
        root = lax.sqrt(lax.add(lax.mul(half, half), lax.mul(b, c)))
        # An eigenvalue of the block, less its last element.
        shift = lax.add(half, root)
        square = lax.add(
            lax.add(lax.square(lax.real(shift)), lax.square(lax.imag(shift))),
            lax.add(lax.square(lax.real(c)), lax.square(lax.imag(c))),
        )
        length = lax.sqrt(pick(needed, square, literal(1, real)))
        length = lax.convert_element_type(length, dtype)
        one, zero = (lax.full((), v, dtype) for v in (1, 0))
        cosine = pick(needed, lax.div(shift, length), one)
        sine = pick(needed, lax.div(c, length), zero)
        rows = [[lax.conj(cosine), lax.conj(sine)], [lax.neg(sine), cosine]]
        g = lax.concatenate([reshaped(v, (1,)) for row in rows for v in row], 0)
        g = reshaped(g, (2, 2))
        pair = product(g, lax.dynamic_slice_in_dim(t, first, 2, 0))
        t = lax.dynamic_update_slice_in_dim(t, pair, first, 0)
        back = matrix_adjoint(g)
        pair = product(lax.dynamic_slice_in_dim(t, first, 2, 1), back)
        t = lax.dynamic_update_slice_in_dim(t, pair, first, 1)
        pair = product(lax.dynamic_slice_in_dim(z, first, 2, 1), back)
        return t, lax.dynamic_update_slice_in_dim(z, pair, first, 1)

    t, z = lax.fori_loop(0, max(size - 1, 0), body, (kept_in_triangle(t, offset=-1), z))
    return kept_in_triangle(t), z


@compiled_with("check_finite")
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form of matrices from the real one.

    Args:
        T: matrices in real Schur form, of shape ``(..., n, n)``. What is below the first
            subdiagonal is not read.
        Z: their orthogonal transformations, of the same shape.
        check_finite: ignored.

    Returns:
        The pair of complex arrays of the same shape: an upper triangular ``t`` and a unitary ``z``
        with ``z @ t @ z^H`` equal to ``Z @ T @ Z^H``.

    Raises:
        ValueError: the matrices are not square or of different shapes.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> t, z = linalg.rsf2csf(*linalg.schur(jnp.array([[0., 2.], [-2., 0.]])))
        >>> print(jnp.diag(t).round(4))
        [0.+2.j 0.-2.j]
    """
    function = "scipy.linalg.rsf2csf"
    t, z = same_dtype([array_like(T, function, "T"), array_like(Z, function, "Z")])
    t, _ = factored(function, checked_matrices(function, t, "T", square=True), "T")
    z, _ = factored(function, z, "Z")
    shape = aval_of(t).shape
    if aval_of(z).shape != shape:
        raise ShapeError(
            f"{function}: T and Z must have one shape, got {shape} and {aval_of(z).shape}"
        )
    t, z = as_complex(t), as_complex(z)
    if not aval_of(t).size:
        return t, z
    if len(shape) == 2:
        return _rotated(t, z)
    count = aval_of(t).size // (shape[-1] * shape[-1])
    one = (count, *shape[-2:])
    t, z = vmap(_rotated)(reshaped(t, one), reshaped(z, one))
    return reshaped(t, shape), reshaped(z, shape)


@compiled_with("calc_q", "overwrite_a", "check_finite")
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]:
    """The Hessenberg form of square matrices: ``a = q @ h @ q^H``.

    Args:
        a: matrices of shape ``(..., n, n)``.
        calc_q: whether to compute the unitary (or orthogonal) ``q``.
        overwrite_a: ignored.
        check_finite: ignored.

    Returns:
        ``h``, of the shape of `a`, zero below the first subdiagonal; or the pair of it and ``q``.
        They have no derivatives.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> h, q = linalg.hessenberg(jnp.arange(9.).reshape(3, 3), calc_q=True)
        >>> print(h[2, 0], bool(jnp.allclose(q @ h @ q.T, jnp.arange(9.).reshape(3, 3), atol=1e-4)))
        0.0 True
    """
    x, dtype = matrix_operand("scipy.linalg.hessenberg", a, square=True)
    shape = aval_of(x).shape
    size, rank = shape[-1], len(shape)
    zero = literal(0, aval_of(x).dtype)
    if size < 2 or not aval_of(x).size:
        form, corner = x, lax.full(shape, 1, aval_of(x).dtype)
    else:
        packed, factors = lax.linalg.hessenberg(x)
        form = kept_in_triangle(packed, offset=-1)
        below = part(packed, rows=slice(1, size), columns=size - 1)
        reflections = lax.linalg.householder_product(below, factors)
        widths = [(0, 0, 0)] * (rank - 2) + [(1, 0, 0)] * 2
        corner = lax.pad(reflections, zero, widths)
        first = np.zeros((size, size))
        first[0, 0] = 1
        corner = lax.add(
            corner, lax.broadcast_in_dim(first.astype(corner.dtype), shape, (rank - 2, rank - 1))
        )
    if not calc_q:
        return rounded(form, dtype)
    return rounded(form, dtype), rounded(corner, dtype)
