"""Triangular factors and eigenvalues of matrices."""

from __future__ import annotations

from typing import Any

from dovetail import lax
from dovetail.extend.arguments import array_like, broadcast_result, same_dtype
from dovetail.extend.avals import aval_of
from dovetail.extend.matrices import (
    identity,
    matrix_adjoint,
    part,
    product,
    rows_in_order,
)
from dovetail.extend.matrices import solve_triangular as substituted
from dovetail.numpy.compiled import compiled_with, plain
from dovetail.numpy.conditions import spread
from dovetail.numpy.linalg import cholesky as cholesky_factor
from dovetail.numpy.linalg import svd as singular_values
from dovetail.numpy.linalg.decompositions import (
    checked_matrices,
    factored,
    matrix_operand,
    rounded,
)
from dovetail.numpy.sorting import argsort
from dovetail.scipy.linalg.matrix_operands import choice, kept_in_triangle, real_of
from dovetail.typing import Array, ArrayLike


@compiled_with("lower", "overwrite_a", "check_finite")
def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """The Cholesky factors of positive definite Hermitian (or real symmetric) matrices.

    Args:
        a: matrices of shape ``(..., n, n)``, of which the triangle that the factor occupies is
            read.
        lower: whether to return the lower factor ``l``, with ``a = l @ l^H``, instead of the upper
            one, with ``a = u^H @ u``.
        overwrite_a: ignored.
        check_finite: ignored.

    Returns:
        An array of the shape of `a`, with zeros in the other triangle; nan for matrices that are
        not positive definite, where SciPy raises an error.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> print(linalg.cholesky(jnp.array([[4., 2.], [2., 5.]])))
        [[2. 1.]
         [0. 2.]]
    """
    return plain(cholesky_factor)(a, upper=not lower, symmetrize_input=False)


def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """The Cholesky factors of positive definite matrices, for `cho_solve`.

    Args:
        a: matrices of shape ``(..., n, n)``, of which the triangle that the factor occupies is
            read.
        lower: whether to return the lower factor instead of the upper one.
        overwrite_a: ignored.
        check_finite: ignored.

    Returns:
        The pair of the factors, of the shape of `a`, with zeros in the other triangle (where SciPy
        has other numbers), and `lower`. Factors are nan for matrices that are not positive
        definite, where SciPy raises an error.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> factor, lower = linalg.cho_factor(jnp.array([[4., 2.], [2., 5.]]), lower=True)
        >>> print(factor, lower)
        [[2. 0.]
         [1. 2.]] True
    """
    return cholesky(a, bool(lower)), bool(lower)


@compiled_with("permute_l", "overwrite_a", "check_finite")
def lu(
    a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """The LU factors of matrices: ``a = p @ l @ u``, with exchanged rows.

    Args:
        a: matrices of shape ``(..., m, n)``.
        permute_l: whether to return the product ``p @ l`` instead of ``p`` and ``l``.
        overwrite_a: ignored.
        check_finite: ignored.

    Returns:
        A tuple of the permutations ``p``, real, of shape ``(..., m, m)``, the lower triangular
        ``l`` with ones on the diagonal, of shape ``(..., m, k)`` with ``k = min(m, n)``, and the
        upper triangular ``u``, of shape ``(..., k, n)``; or the pair of ``p @ l`` and ``u``.

    Raises:
        ValueError: there are fewer than two dimensions.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> p, l, u = linalg.lu(jnp.array([[1., 2.], [2., 8.]]))
        >>> print(p, l, u, sep="\\n")
        [[0. 1.]
         [1. 0.]]
        [[1.  0. ]
         [0.5 1. ]]
        [[ 2.  8.]
         [ 0. -2.]]
    """
    x, dtype = matrix_operand("scipy.linalg.lu", a)
    packed, _, order = lax.linalg.lu(x)
    *stack, rows, columns = aval_of(x).shape
    count = min(rows, columns)
    left = kept_in_triangle(part(packed, columns=count), lower=True, offset=-1)
    ones = spread(identity(rows, count, aval_of(x).dtype), aval_of(left).shape)
    left = lax.add(left, ones)
    upper = rounded(kept_in_triangle(part(packed, rows=count)), dtype)
    back = plain(argsort)(order)
    if permute_l:
        return rounded(rows_in_order(left, back), dtype), upper
    eye = spread(identity(rows, rows, real_of(dtype)), (*stack, rows, rows))
    return rows_in_order(eye, back), rounded(left, dtype), upper


@compiled_with("overwrite_a", "check_finite")
def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """The LU factors of matrices in one array, for `lu_solve`.

    Args:
        a: matrices of shape ``(..., m, n)``.
        overwrite_a: ignored.
        check_finite: ignored.

    Returns:
        The pair of an array of the shape of `a`, with ``u`` in the upper triangle and ``l``,
        without its ones, below; and of the rows that each row was exchanged with, int32 of shape
        ``(..., min(m, n))``.

    Raises:
        ValueError: there are fewer than two dimensions.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> packed, exchanged = linalg.lu_factor(jnp.array([[1., 2.], [2., 8.]]))
        >>> print(packed, exchanged)
        [[ 2.   8. ]
         [ 0.5 -2. ]] [1 1]
    """
    x, dtype = matrix_operand("scipy.linalg.lu_factor", a)
    packed, pivots, _ = lax.linalg.lu(x)
    return rounded(packed, dtype), pivots


@compiled_with("overwrite_a", "lwork", "mode", "pivoting", "check_finite")
def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: object = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array] | tuple[Array, Array] | tuple[Array, Array, Array]:
    """The QR factors of matrices: ``a = q @ r``, or ``a[:, p] = q @ r`` with exchanged columns.

    Args:
        a: matrices of shape ``(..., m, n)``.
        overwrite_a: ignored.
        lwork: ignored.
        mode: "full" for a square ``q``, "economic" for a ``q`` with ``k = min(m, n)`` columns, "r"
            for the second factor of "full" alone.
        pivoting: whether to permute columns, to make the diagonal of ``r`` decrease.
        check_finite: ignored.

    Returns:
        A tuple of the unitary ``q``, of shape ``(..., m, m)`` or ``(..., m, k)``, except with mode
        "r"; the upper triangular ``r``, of shape ``(..., m, n)`` or ``(..., k, n)``; and with
        `pivoting` the order of the columns, int32 of shape ``(..., n)``. Derivatives are those of
        `dovetail.lax.linalg.qr`.

    Raises:
        ValueError: `mode` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> q, r, p = linalg.qr(jnp.array([[0., 2.], [-3., 4.]]), pivoting=True)
        >>> print(bool(jnp.allclose(q @ r, jnp.array([[2., 0.], [4., -3.]]), atol=1e-6)), p)
        True [1 0]
    """
    function = "scipy.linalg.qr"
    choice(function, "mode", mode, ("full", "r", "economic"))
    x, dtype = matrix_operand(function, a)
    rows, columns = aval_of(x).shape[-2:]
    # Without q the rows of zeros need no factors.
    full = mode == "full"
    q, r, *order = lax.linalg.qr(x, pivoting=bool(pivoting), full_matrices=full)
    if mode == "r" and rows > columns:
        rank = aval_of(r).ndim
        widths = [(0, 0, 0)] * (rank - 2) + [(0, rows - columns, 0), (0, 0, 0)]
        r = lax.pad(r, lax.full((), 0, aval_of(r).dtype), widths)
    if mode == "r":
        return (rounded(r, dtype), *order)
    return (rounded(q, dtype), rounded(r, dtype), *order)


@compiled_with("full_matrices", "compute_uv", "overwrite_a", "check_finite", "lapack_driver")
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array | tuple[Array, Array, Array]:
    """The singular value decomposition of matrices: ``a = (u * s) @ vh``.

    Args:
        a: matrices of shape ``(..., m, n)``.
        full_matrices: whether to add vectors that make ``u`` and ``vh`` square.
        compute_uv: whether to compute ``u`` and ``vh``.
        overwrite_a: ignored.
        check_finite: ignored.
        lapack_driver: "gesdd" or "gesvd"; which function computes it is the platform's choice.

    Returns:
        A tuple of ``u``, of shape ``(..., m, k)``, the ``k = min(m, n)`` singular values ``s``, the
        largest first, and ``vh``, of shape ``(..., k, n)``; with `full_matrices` the vectors are of
        shape ``(..., m, m)`` and ``(..., n, n)``. Without `compute_uv`, the values alone.

    Raises:
        ValueError: `lapack_driver` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> print(linalg.svd(jnp.array([[0., 2.], [3., 0.]]), compute_uv=False))
        [3. 2.]
    """
    choice("scipy.linalg.svd", "lapack_driver", lapack_driver, ("gesdd", "gesvd"))
    factors = plain(singular_values)(a, bool(full_matrices), bool(compute_uv))
    return tuple(factors) if compute_uv else factors  # type: ignore[return-value]


def _reduced(function: str, a: Any, b: Any, kind: int) -> tuple[Any, Any, Any]:
    """An ordinary problem with the eigenvalues of a generalised one.

    Source: Golub and Van Loan, "Matrix Computations", section 8.7.2.

    Returns:
        Its matrices, the Cholesky factors of `b`, and the dtype of results.
    """
    left, right = same_dtype([array_like(a, function, "a"), array_like(b, function, "b")])
    left, dtype = factored(function, checked_matrices(function, left, "a", square=True))
    right, _ = factored(function, checked_matrices(function, right, "b", square=True), "b")
    shape, right_shape = aval_of(left).shape, aval_of(right).shape
    if shape[-1] != right_shape[-1]:
        raise ValueError(
            f"{function}: a and b must have matrices of one size, got the shapes {shape} and "
            f"{right_shape}"
        )
    stack = broadcast_result(function, (shape[:-2], right_shape[:-2]), explicit=True)
    left, right = (spread(x, (*stack, *shape[-2:])) for x in (left, right))
    factor = lax.linalg.cholesky(right)
    half = lax.full((), 0.5, aval_of(left).dtype)
    left = lax.mul(lax.add(left, matrix_adjoint(left)), spread(half, aval_of(left).shape))
    if kind == 1:
        left = substituted(factor, left)
        left = matrix_adjoint(substituted(factor, matrix_adjoint(left)))
    else:
        left = product(product(matrix_adjoint(factor), left), factor)
    return left, factor, dtype


@compiled_with(
    "lower",
    "eigvals_only",
    "overwrite_a",
    "overwrite_b",
    "turbo",
    "eigvals",
    "type",
    "check_finite",
)
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]:
    """Eigenvalues and eigenvectors of Hermitian (or real symmetric) matrices.

    Unlike SciPy's, it decomposes ``(a + a^H) / 2``, and likewise for `b`.

    Args:
        a: matrices of shape ``(..., n, n)``.
        b: None, or positive definite matrices, whose leading dimensions broadcast with those of
            `a`, for a generalised problem.
        lower: ignored, because both triangles are read.
        eigvals_only: whether to compute eigenvalues only.
        overwrite_a: ignored.
        overwrite_b: ignored.
        turbo: ignored.
        eigvals: must be None, for all eigenvalues.
        type: the generalised problem: 1 for ``a @ v = w * b @ v``, 2 for ``a @ b @ v = w * v``, 3
            for ``b @ a @ v = w * v``.
        check_finite: ignored.

    Returns:
        A pair of the eigenvalues, real and in ascending order, of shape ``(..., n)``, and the
        eigenvectors, in columns, of shape ``(..., n, n)``; or the eigenvalues alone. Vectors ``v``
        are such that ``v^H @ v``, or with `b` ``v^H @ b @ v`` (``v^H @ b^-1 @ v`` for type 3), is
        an identity. All is nan where `b` is not positive definite; derivatives of vectors are nan
        where eigenvalues are equal.

    Raises:
        ValueError: the matrices are not square or of different sizes, or `type` is not one of
            these.
        NotImplementedError: `eigvals` is given.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> a, b = jnp.array([[12., 0.], [0., -2.]]), jnp.array([[4., 0.], [0., 1.]])
        >>> print(linalg.eigh(a, b, eigvals_only=True))
        [-2.  3.]
    """
    function = "scipy.linalg.eigh"
    if eigvals is not None:
        raise NotImplementedError(
            f"{function}: eigvals must be None, for all eigenvalues; take some of them with an "
            "index"
        )
    choice(function, "type", type, (1, 2, 3))
    factor = None
    if b is None:
        x, dtype = matrix_operand(function, a, square=True)
    else:
        x, factor, dtype = _reduced(function, a, b, type)
    vectors, values = lax.linalg.eigh(x)
    values = rounded(values, real_of(dtype))
    if eigvals_only:
        return values
    if factor is not None and type == 3:
        vectors = product(factor, vectors)
    elif factor is not None:
        vectors = substituted(factor, vectors, transpose_a=True, conjugate_a=True)
    return values, rounded(vectors, dtype)
