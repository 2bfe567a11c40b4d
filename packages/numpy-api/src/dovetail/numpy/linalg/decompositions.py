"""Matrix factorisations, eigenvalues and singular values."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

import numpy as np
from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend.arguments import array_like, convert, inexact, integer, literal, value
from dovetail.extend.avals import aval_of
from dovetail.extend.indexing import take_along
from dovetail.extend.matrices import (
    columns,
    geqrf_p,
    matrix_adjoint,
    matrix_transpose,
    rows_in_order,
    scaled_columns,
)
from dovetail.numpy.compiled import compiled, compiled_with, plain
from dovetail.numpy.conditions import pick
from dovetail.numpy.sorting import argsort
from dovetail.typing import Array, ArrayLike

_FLOAT32 = np.dtype("float32")


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors of general matrices.

    Attributes:
        eigenvalues: of shape ``(..., n)``.
        eigenvectors: in columns, of shape ``(..., n, n)``.
    """

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Eigenvalues and eigenvectors of Hermitian matrices.

    Attributes:
        eigenvalues: in ascending order, of shape ``(..., n)``.
        eigenvectors: in columns, of shape ``(..., n, n)``.
    """

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """The factors of matrices: an orthogonal (or unitary) and an upper triangular one.

    Attributes:
        Q: the orthogonal factor.
        R: the upper triangular factor.
    """

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """Singular values and singular vectors of matrices.

    Attributes:
        U: left singular vectors, in columns.
        S: singular values, the largest first.
        Vh: right singular vectors, conjugated, in rows.
    """

    U: Array
    S: Array
    Vh: Array


# ------------------------------------------------------------------------------------- arguments


def matrix_operand(
    function: str, a: Any, argument: str = "a", square: bool = False
) -> tuple[Any, Any]:
    """An argument that holds matrices, in a dtype for factorisation.

    Returns:
        The matrices, and the dtype of results: floats of 16 bits or fewer are factored in float32,
        and the results rounded.

    Raises:
        NonArrayArgumentError: it is not an array.
        TypeError: its dtype is not numeric.
        ValueError: it has fewer than two dimensions, or the matrices are not square.
    """
    x = checked_matrices(function, array_like(a, function, argument), argument, square)
    return factored(function, x, argument)


def checked_matrices(function: str, x: Any, argument: str, square: bool = False) -> Any:
    """A checked argument that holds matrices.

    Raises:
        ValueError: it has fewer than two dimensions, or the matrices are not square.
    """
    shape = aval_of(x).shape
    if len(shape) < 2:
        raise ShapeError(
            f"{function}: {argument} must have two dimensions or more, those of a matrix last, got "
            f"the shape {shape}"
        )
    if square and shape[-1] != shape[-2]:
        raise ShapeError(
            f"{function}: the matrices in {argument} must be square, got the shape {shape}"
        )
    return x


def factored(function: str, x: Any, argument: str = "a") -> tuple[Any, Any]:
    """A checked argument in a dtype for factorisation, and the dtype of results."""
    x = value(inexact(function, x, argument))
    dtype = aval_of(x).dtype
    return (convert(x, _FLOAT32) if dtype.itemsize < 4 else x), dtype


def rounded(x: Any, dtype: Any) -> Any:
    """A result in the dtype of results, if that has 16 bits or fewer."""
    return convert(x, dtype) if dtype.itemsize < 4 else x


# ---------------------------------------------------------------------------------- factorisations


@compiled_with("upper", "symmetrize_input")
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The Cholesky factors of positive definite Hermitian (or real symmetric) matrices.

    Unlike NumPy's, it symmetrizes first. For matrices that are not positive definite it returns
    nan, where NumPy raises an error.

    Args:
        a: matrices of shape ``(..., n, n)``.
        upper: whether to return the upper factor ``u``, with ``a = u^H @ u``, instead of the lower
            one, with ``a = l @ l^H``.
        symmetrize_input: whether to factor ``(a + a^H) / 2``. If not, only the triangle of `a` that
            the factor occupies is read.

    Returns:
        An array of the shape of `a`, with zeros in the other triangle.

    Raises:
        ValueError: the matrices are not square.

    Differs:
        With `upper` and without `symmetrize_input` the upper triangle is read.

        >>> a = jnp.array([[4.0, 2.0], [jnp.nan, 5.0]])
        >>> print(jnp.linalg.cholesky(a, upper=True, symmetrize_input=False))
        [[2. 1.]
         [0. 2.]]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]])))
        [[2. 0.]
         [1. 2.]]
    """
    x, dtype = matrix_operand("linalg.cholesky", a, square=True)
    if upper and not symmetrize_input:
        x = matrix_adjoint(x)
    factor = lax.linalg.cholesky(x, symmetrize_input=bool(symmetrize_input))
    return rounded(matrix_adjoint(factor) if upper else factor, dtype)


_QR_MODES = ("reduced", "complete", "r", "raw")


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete", "raw"] = "reduced") -> QRResult: ...
@overload
def qr(a: ArrayLike, *, mode: Literal["r"]) -> Array: ...
@overload
def qr(a: ArrayLike, mode: str = "reduced") -> QRResult | Array: ...
@compiled_with("mode")
def qr(a: ArrayLike, mode: str = "reduced") -> QRResult | Array:
    """The QR factorisation of matrices: ``a = q @ r``, with ``q^H @ q`` the identity.

    Args:
        a: matrices of shape ``(..., m, n)``.
        mode: "reduced" for factors with ``k = min(m, n)`` columns and rows, "complete" for ``k =
            m``, "r" for the second factor of "reduced" alone, "raw" for the reflections in LAPACK's
            form.

    Returns:
        A named tuple of ``Q``, of shape ``(..., m, k)``, and the upper triangular ``R``, of shape
        ``(..., k, n)``; or ``R`` alone. With "raw" the pair of an array of shape ``(..., n, m)``,
        the transposed matrix of ``R`` and the reflection vectors, and one of shape ``(..., min(m,
        n))``, the reflection factors.

        They are differentiable where the first min(m, n) columns are linearly independent, but not
        with "raw", nor with "complete" if m > n.

    Raises:
        ValueError: `mode` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> q, r = jnp.linalg.qr(jnp.array([[0., 2.], [-3., 1.]]))
        >>> print(r)
        [[-3.  1.]
         [ 0.  2.]]
    """
    if mode not in _QR_MODES:
        raise ValueError(f"linalg.qr: mode must be one of {', '.join(_QR_MODES)}, got {mode!r}")
    x, dtype = matrix_operand("linalg.qr", a)
    if mode == "raw":
        packed, factors = geqrf_p.bind(x)
        return QRResult(rounded(matrix_transpose(packed), dtype), rounded(factors, dtype))
    q, r = lax.linalg.qr(x, full_matrices=mode == "complete")
    return rounded(r, dtype) if mode == "r" else QRResult(rounded(q, dtype), rounded(r, dtype))


# ------------------------------------------------------------------------------------- eigenvalues


@compiled
def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues and eigenvectors of general square matrices: ``a @ v = v * w``.

    Args:
        a: matrices of shape ``(..., n, n)``.

    Returns:
        A named tuple of the eigenvalues, of shape ``(..., n)`` and in no particular order, and the
        eigenvectors of length one, in columns, of shape ``(..., n, n)``. Both are complex even if
        all values are real, unlike NumPy's. They are nan if the computation fails, as for nan and
        infinities.

        The vectors have no derivative here: see `dovetail.lax.linalg.eig`. Only available on the
        CPU.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> import dovetail.numpy as jnp
        >>> w, v = jnp.linalg.eig(jnp.array([[2., 1.], [0., 3.]]))
        >>> print(w)
        [2.+0.j 3.+0.j]
    """
    x, _ = matrix_operand("linalg.eig", a, square=True)
    return EigResult(*lax.linalg.eig(x, compute_left_eigenvectors=False))


@compiled
def eigvals(a: ArrayLike) -> Array:
    """Eigenvalues of general square matrices.

    Args:
        a: matrices of shape ``(..., n, n)``.

    Returns:
        A complex array of shape ``(..., n)``, in no particular order; nan if the computation fails.
        It is differentiable where all eigenvalues of a matrix differ. Only available on the CPU.

    Raises:
        ValueError: the matrices are not square.

    Differs:
        Those of large and of small matrices are right; JAX's are scaled.

        >>> print(jnp.linalg.eigvals(jnp.diag(jnp.array([2.0, 1e18]))).real)
        [2.e+00 1.e+18]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.eigvals(jnp.array([[2., 1.], [0., 3.]])))
        [2.+0.j 3.+0.j]
    """
    x, _ = matrix_operand("linalg.eigvals", a, square=True)
    (values,) = lax.linalg.eig(x, compute_left_eigenvectors=False, compute_right_eigenvectors=False)
    return values


def _of_hermitian(
    function: str, a: Any, triangle_read: Any, symmetrize_input: Any
) -> tuple[Any, Any]:
    if triangle_read not in (None, "L", "U"):
        raise ValueError(f"{function}: UPLO must be None, 'L' or 'U', got {triangle_read!r}")
    x, dtype = matrix_operand(function, a, square=True)
    vectors, values = lax.linalg.eigh(
        x, lower=triangle_read != "U", symmetrize_input=bool(symmetrize_input)
    )
    return rounded(values, dtype), rounded(vectors, dtype)


@compiled_with("UPLO", "symmetrize_input")
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues and eigenvectors of Hermitian (or real symmetric) matrices: ``a @ v = v * w``.

    Unlike NumPy's, it symmetrizes first.

    Args:
        a: matrices of shape ``(..., n, n)``.
        UPLO: triangle to read: "L" (or None) for the lower one, "U" for the upper one. Only used
            without `symmetrize_input`.
        symmetrize_input: whether to decompose ``(a + a^H) / 2``.

    Returns:
        A named tuple of the eigenvalues, real and in ascending order, of shape ``(..., n)``, and
        the orthonormal eigenvectors, in columns, of shape ``(..., n, n)``. They are nan if the
        computation fails, as for nan and infinities; so are derivatives of the vectors of equal
        eigenvalues.

    Raises:
        ValueError: the matrices are not square, or `UPLO` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> w, v = jnp.linalg.eigh(jnp.array([[1., 0.], [0., -2.]]))
        >>> print(w)
        [-2.  1.]
    """
    return EighResult(*_of_hermitian("linalg.eigh", a, UPLO, symmetrize_input))


@compiled_with("UPLO", "symmetrize_input")
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Eigenvalues of Hermitian (or real symmetric) matrices.

    Unlike NumPy's, it symmetrizes first.

    Args:
        a: matrices of shape ``(..., n, n)``.
        UPLO: triangle to read: "L" (or None) for the lower one, "U" for the upper one. Only used
            without `symmetrize_input`.
        symmetrize_input: whether to decompose ``(a + a^H) / 2``.

    Returns:
        A real array of shape ``(..., n)``, in ascending order; nan if the computation fails.

    Raises:
        ValueError: the matrices are not square, or `UPLO` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.eigvalsh(jnp.array([[1., 0.], [0., -2.]])))
        [-2.  1.]
    """
    return _of_hermitian("linalg.eigvalsh", a, UPLO, symmetrize_input)[0]


# --------------------------------------------------------------------------------- singular values


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult | Array: ...
@compiled_with("full_matrices", "compute_uv", "hermitian", "subset_by_index")
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult | Array:
    """The singular value decomposition of matrices: ``a = (u * s) @ vh``.

    Args:
        a: matrices of shape ``(..., m, n)``.
        full_matrices: whether to add vectors that make ``u`` and ``vh`` square.
        compute_uv: whether to compute ``u`` and ``vh``.
        hermitian: whether to decompose ``(a + a^H) / 2`` as a Hermitian matrix, which is faster.
        subset_by_index: ``(start, end)`` for the singular values from the `start`-th largest up to,
            but without, the `end`-th largest, and their vectors; None for all. Vectors then require
            ``full_matrices=False``.

    Returns:
        A named tuple of ``U``, of shape ``(..., m, k)``, the ``k = min(m, n)`` singular values
        ``S``, the largest first, of shape ``(..., k)``, and ``Vh``, of shape ``(..., k, n)``; with
        `full_matrices` the vectors are of shape ``(..., m, m)`` and ``(..., n, n)``. Without
        `compute_uv`, the values alone. They are nan if the computation fails, as for nan and
        infinities; so are derivatives of the vectors of equal singular values.

    Raises:
        ValueError: there are no such singular values, or Hermitian matrices are not square.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.svd(jnp.array([[0., 2.], [3., 0.]]), compute_uv=False))
        [3. 2.]
    """
    subset = _subset("linalg.svd", subset_by_index)
    if subset is not None and full_matrices and compute_uv:
        raise ValueError(
            "linalg.svd: of some singular values there are only their own vectors; pass "
            "full_matrices=False with subset_by_index"
        )
    x, dtype = matrix_operand("linalg.svd", a, square=bool(hermitian))
    if hermitian:
        factors = _of_hermitian_values(x, bool(compute_uv), subset)
    else:
        factors = lax.linalg.svd(
            x,
            full_matrices=bool(full_matrices) and subset is None,
            compute_uv=bool(compute_uv),
            subset_by_index=subset,
        )
    if not compute_uv:
        return rounded(factors, dtype)
    return SVDResult(*[rounded(v, dtype) for v in factors])


def _subset(function: str, given: Any) -> tuple[int, int] | None:
    if given is None:
        return None
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise ValueError(f"{function}: subset_by_index must be a pair (start, end), got {given!r}")
    start, stop = (integer(function, "subset_by_index", n) for n in given)
    return start, stop


def _of_hermitian_values(x: Any, compute_uv: bool, subset: tuple[int, int] | None) -> Any:
    """Singular values of Hermitian matrices: the magnitudes of their eigenvalues."""
    v, w = lax.linalg.eigh(x)
    size = lax.abs(w)
    order = plain(argsort)(size, descending=True)
    if subset is not None:
        start, stop = subset
        if not 0 <= start <= stop <= x.shape[-1]:
            raise ValueError(
                "linalg.svd: subset_by_index must be (start, end) with 0 <= start <= end <= "
                f"{x.shape[-1]}, the number of values, got {subset}"
            )
        order = columns(order, start, stop)
    dimension = aval_of(w).ndim - 1
    s = take_along(size, order, dimension)
    if not compute_uv:
        return s
    signs = take_along(w, order, dimension)
    dtype = aval_of(signs).dtype
    signs = pick(lax.lt(signs, literal(0, dtype)), literal(-1, dtype), literal(1, dtype))
    u = matrix_adjoint(rows_in_order(matrix_adjoint(v), order))
    return u, s, matrix_adjoint(scaled_columns(u, signs))


@compiled
def svdvals(x: ArrayLike, /) -> Array:
    """Singular values of matrices.

    Args:
        x: matrices of shape ``(..., m, n)``.

    Returns:
        A real array of shape ``(..., min(m, n))``, the largest first; nan if the computation fails.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.svdvals(jnp.array([[0., 2.], [3., 0.]])))
        [3. 2.]
    """
    matrices, dtype = matrix_operand("linalg.svdvals", x, "x")
    return rounded(lax.linalg.svd(matrices, compute_uv=False), dtype)
