"""Eigenvalues of tridiagonal matrices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend.arguments import array_like, convert, integer, literal, same_dtype
from dovetail.extend.avals import aval_of
from dovetail.extend.matrices import columns, matrix_adjoint, on_diagonal
from dovetail.numpy.compiled import compiled_with
from dovetail.numpy.conditions import pick, spread
from dovetail.numpy.linalg.decompositions import factored, rounded
from dovetail.scipy.linalg.matrix_operands import INT32, choice, is_complex, real_of
from dovetail.typing import Array, ArrayLike


def _range(function: str, select: str, given: Any, size: int) -> tuple[int, int]:
    """Which eigenvalues to return: the number of the first and of the one behind the last."""
    choice(function, "select", select, ("a", "i", "v"))
    if select == "v":
        raise NotImplementedError(
            f'{function}: select="v" is not implemented, because the number of results would '
            "depend on values; compare the eigenvalues of all with the limits"
        )
    if select == "a":
        return 0, size
    if not isinstance(given, (tuple, list)) or len(given) != 2:
        raise ValueError(
            f'{function}: select_range must be a pair (first, last) with select="i", got {given!r}'
        )
    first, last = (integer(function, "select_range", v) for v in given)
    if not 0 <= first <= last < size:
        raise ValueError(
            f"{function}: select_range must be (first, last) with 0 <= first <= last < {size}, the "
            f"number of eigenvalues, got {given}"
        )
    return first, last + 1


def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Array | None = None,
) -> Array | tuple[Array, Array]:
    """Eigenvalues and eigenvectors of Hermitian (or real symmetric) tridiagonal matrices.

    They are computed from the whole matrix, which takes memory for n**2 elements and is exact to
    the precision of the dtype.

    Args:
        d: diagonals, of shape ``(..., n)``; the real parts count.
        e: elements above the diagonal, of shape ``(..., n - 1)``; those below are their conjugates.
        eigvals_only: whether to compute eigenvalues only.
        select: "a" for all eigenvalues, "i" for those with numbers in `select_range`. "v" is not
            implemented.
        select_range: the numbers of the first and the last eigenvalue, both included, with "i".
        tol: ignored, because results are exact.
        key: ignored, because nothing is random.

    Returns:
        A pair of the eigenvalues, real and in ascending order, of shape ``(..., k)``, and the
        orthonormal eigenvectors, in columns, of shape ``(..., n, k)``; or the eigenvalues alone.

    Raises:
        ValueError: the shapes do not match, or `select` or `select_range` is not one of these.
        NotImplementedError: `select` is "v".

    Differs:
        It has derivatives, and takes stacks of matrices and integers.

        >>> from dovetail.scipy import linalg
        >>> total = lambda d: linalg.eigh_tridiagonal(d, jnp.ones(1), eigvals_only=True).sum()
        >>> print(dt.grad(total)(jnp.array([1., 3.])).round(4))
        [1. 1.]

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> print(linalg.eigh_tridiagonal(jnp.zeros(2), jnp.array([2.]), eigvals_only=True))
        [-2.  2.]
    """
    if select_range is not None and not isinstance(select_range, Iterable):
        raise TypeError(
            "scipy.linalg.eigh_tridiagonal: select_range must be a pair of integers, got "
            f"{select_range!r:.80}"
        )
    chosen = None if select_range is None else tuple(select_range)
    return _eigh_tridiagonal(d, e, bool(eigvals_only), select, chosen)


@compiled_with("eigvals_only", "select", "select_range")
def _eigh_tridiagonal(
    d: Any, e: Any, eigvals_only: bool, select: str, select_range: Any
) -> Array | tuple[Array, Array]:
    function = "scipy.linalg.eigh_tridiagonal"
    x, above = same_dtype([array_like(d, function, "d"), array_like(e, function, "e")])
    x, dtype = factored(function, x, "d")
    above, _ = factored(function, above, "e")
    shape, rank = aval_of(x).shape, aval_of(x).ndim
    if not rank or not shape[-1] or aval_of(above).shape != (*shape[:-1], shape[-1] - 1):
        raise ShapeError(
            f"{function}: e must have one element less than d, which must have some, got the "
            f"shapes {shape} of d and {aval_of(above).shape} of e"
        )
    size = shape[-1]
    start, stop = _range(function, select, select_range, size)
    if is_complex(x):
        x = convert(lax.real(x), aval_of(x).dtype)
    square = (*shape, size)
    zero = literal(0, aval_of(x).dtype)
    zeros = spread(zero, square)
    on = spread(on_diagonal(size, size), square)
    along = (*range(rank - 1), rank)
    middle = pick(on, lax.broadcast_in_dim(x, square, along), zeros)
    row, column = (lax.broadcasted_iota(INT32, (size, size), i) for i in (0, 1))
    beside = lax.eq(lax.add(row, literal(1, aval_of(row).dtype)), column)
    above = lax.pad(above, zero, [(0, 0, 0)] * (rank - 1) + [(1, 0, 0)])
    upper = pick(spread(beside, square), lax.broadcast_in_dim(above, square, along), zeros)
    matrix = lax.add(middle, lax.add(upper, matrix_adjoint(upper)))
    vectors, values = lax.linalg.eigh(matrix, symmetrize_input=False)
    values = rounded(columns(values, start, stop), real_of(dtype))
    if eigvals_only:
        return values
    return values, rounded(columns(vectors, start, stop), dtype)
