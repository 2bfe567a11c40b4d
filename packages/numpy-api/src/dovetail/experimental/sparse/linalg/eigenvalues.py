"""The largest eigenvalues of a matrix that is only applied to vectors: `lobpcg_standard`.

Method: A. V. Knyazev, Toward the optimal preconditioned eigensolver: locally optimal block
preconditioned conjugate gradient method, SIAM J. Sci. Comput. 23 (2001), 517.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

import dovetail as dt
from dovetail import lax
from dovetail import numpy as jnp
from dovetail.experimental.sparse.formats import JAXSparse
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, inexact, integer, value
from dovetail.typing import Array, ArrayLike

_product = partial(jnp.matmul, precision=lax.Precision.HIGHEST)


def _adjoint(x: Any) -> Any:
    return jnp.conj(x.T)


def _largest(operator: Callable[[Any], Any], basis: Any, k: int) -> tuple[Any, Any, Any]:
    """The best approximations in the span of orthonormal vectors: values, coefficients, images."""
    images = operator(basis)
    small = _product(_adjoint(basis), images)
    values, vectors = jnp.linalg.eigh((small + _adjoint(small)) / 2)
    order = slice(None, -k - 1, -1)
    return values[order], vectors[:, order], images


def _iterate(A: Any, X: Any, tol: Any, m: int) -> tuple[Any, Any, Any]:
    operator = A if callable(A) else lambda x: A @ x
    n, k = X.shape

    def residuals(theta: Any, vectors: Any, images: Any) -> Any:
        return images - vectors * theta.astype(images.dtype)

    def going(state: Any) -> Any:
        step, theta, vectors, images, _ = state
        sizes = jnp.linalg.norm(residuals(theta, vectors, images), axis=0)
        scale = jnp.linalg.norm(images, axis=0) + jnp.abs(theta)
        return (step < m) & (sizes > tol * n * scale).any()

    def advance(state: Any) -> Any:
        step, theta, vectors, images, directions = state
        wide = jnp.concatenate([vectors, residuals(theta, vectors, images), directions], 1)
        # Vectors that depend on those before them are replaced by any others.
        basis, _ = jnp.linalg.qr(wide)
        theta, mix, basis_images = _largest(operator, basis, k)
        new = _product(basis, mix)
        directions = new - _product(vectors, _product(_adjoint(vectors), new))
        return step + 1, theta, new, _product(basis_images, mix), directions

    start, _ = jnp.linalg.qr(X)
    theta, mix, images = _largest(operator, start, k)
    vectors, images = _product(start, mix), _product(images, mix)
    state = (jnp.int32(0), theta, vectors, images, jnp.zeros_like(vectors))
    step, theta, vectors, _, _ = lax.while_loop(going, advance, state)
    return theta, vectors, step


_of_matrix = dt.jit(_iterate, static_argnums=3)
_of_function = dt.jit(_iterate, static_argnums=(0, 3))


def lobpcg_standard(
    A: ArrayLike | JAXSparse | Callable[[Array], Array],
    X: ArrayLike,
    m: int = 100,
    tol: ArrayLike | None = None,
) -> tuple[Array, Array, Array]:
    """The largest eigenvalues of a Hermitian matrix, by products with it alone.

    Args:
        A: a Hermitian matrix of shape (n, n), dense or sparse, or a function that multiplies a
            matrix of shape (n, j) by it.
        X: k vectors to start from, of shape (n, k) with 5 k < n. They should be independent.
        m: the most steps.
        tol: how small residuals must be, relative to n times the size of the image and the
            eigenvalue; by default the precision of the dtype.

    Returns:
        The k largest eigenvalues in decreasing order; orthonormal eigenvectors of shape (n, k); and
        the number of steps.

    Raises:
        ValueError: shapes do not fit, or there are too many vectors.
        TypeError: `A` gives another dtype than that of `X`.

    Differs:
        `A` may be a sparse array, and matrices may be complex.

        >>> from dovetail.experimental import sparse
        >>> from dovetail.experimental.sparse.linalg import lobpcg_standard
        >>> mat = sparse.BCOO.fromdense(jnp.diag(jnp.arange(1.0, 21.0)))
        >>> bool(abs(lobpcg_standard(mat, jnp.ones((20, 1)))[0][0] - 20) < 1e-3)
        True

    Example:
        >>> from dovetail.experimental.sparse.linalg import lobpcg_standard
        >>> matrix = jnp.diag(jnp.arange(1.0, 21.0))
        >>> values, vectors, steps = lobpcg_standard(matrix, jnp.eye(20, 2)[::-1])
        >>> values.round()
        Array([20., 19.], dtype=float32)
    """
    what = "lobpcg_standard"
    vectors = value(inexact(what, X, "X"))
    if vectors.ndim != 2:
        raise ValueError(f"{what}: X must have the shape (n, k), got {vectors.shape}")
    n, k = vectors.shape
    if k == 0 or 5 * k >= n:
        raise ValueError(
            f"{what}: X must have at least one vector, and fewer than n / 5, got k={k} for n={n}; "
            "for more use jnp.linalg.eigh"
        )
    steps = integer(what, "m", m)
    if steps < 0:
        raise ValueError(f"{what}: m must not be negative, got {steps}")
    matrix: Any = A
    if isinstance(A, JAXSparse) or not callable(A):
        matrix = A if isinstance(A, JAXSparse) else value(array_like(A, what, "A"))
        if matrix.shape != (n, n):
            raise ValueError(
                f"{what}: A must have the shape {(n, n)} for X of shape {(n, k)}, got "
                f"{matrix.shape}"
            )
        if dtypes.kind_of(matrix.dtype) in "biu":
            matrix = matrix.astype(vectors.dtype)
        vectors = vectors.astype(dtypes.promote_types(matrix.dtype, vectors.dtype))
    else:
        image = dt.eval_shape(A, vectors)
        if getattr(image, "shape", None) != (n, k):
            raise ValueError(
                f"{what}: A must give an array of the shape of its argument, {(n, k)}, got {image}"
            )
        if image.dtype != vectors.dtype:
            raise TypeError(
                f"{what}: A must give the dtype of its argument, {vectors.dtype}, got {image.dtype}"
            )
    limit = jnp.asarray(jnp.finfo(vectors.dtype).eps if tol is None else tol)
    run: Any = _of_matrix
    if callable(matrix):
        run = _of_function if isinstance(matrix, Hashable) else _iterate
    result: tuple[Array, Array, Array] = run(matrix, vectors, limit, steps)
    return result
