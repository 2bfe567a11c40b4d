"""Orthogonal (or unitary) factors of matrices, and products with them."""

from __future__ import annotations

from typing import Any

from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend.arguments import array_like, broadcast_result, integer, same_dtype
from dovetail.extend.avals import aval_of
from dovetail.extend.matrices import matrix_adjoint, product, scaled_columns
from dovetail.numpy.compiled import compiled_with
from dovetail.numpy.conditions import spread
from dovetail.numpy.linalg.decompositions import (
    checked_matrices,
    factored,
    matrix_operand,
    rounded,
)
from dovetail.numpy.shapes import reshaped
from dovetail.scipy.linalg.matrix_operands import choice, is_complex
from dovetail.typing import Array, ArrayLike


@compiled_with("side", "method", "eps", "max_iterations")
def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """The polar decomposition of matrices: ``a = u @ p``, or ``a = p @ u``.

    Args:
        a: matrices of shape ``(..., m, n)``.
        side: "right" for ``u @ p``, "left" for ``p @ u``.
        method: "qdwh" for Halley's iteration with dynamic weights (Nakatsukasa and Higham, 2013),
            which wants ``m >= n`` for the right side and ``m <= n`` for the left one, or "svd".
        eps: the target precision of "qdwh"; None for that of the dtype.
        max_iterations: the maximum number of iterations of "qdwh"; None for 10.

    Returns:
        The pair of ``u``, of the shape of `a`, whose columns (or rows, if there are fewer) are
        orthonormal, and the Hermitian, positive semidefinite ``p``, of shape ``(..., n, n)`` on the
        right or ``(..., m, m)`` on the left.

    Raises:
        ValueError: `side` or `method` is not one of these.
        NotImplementedError: `method` is "qdwh", and the shape is not one of those.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> u, p = linalg.polar(jnp.array([[0., 2.], [-3., 0.]]))
        >>> print(u.round(4) + 0., p.round(4) + 0., sep="\\n")
        [[ 0.  1.]
         [-1.  0.]]
        [[3. 0.]
         [0. 2.]]
    """
    function = "scipy.linalg.polar"
    choice(function, "side", side, ("right", "left"))
    choice(function, "method", method, ("qdwh", "svd"))
    x, dtype = matrix_operand(function, a)
    rows, columns = aval_of(x).shape[-2:]
    if method == "svd":
        left, values, right = lax.linalg.svd(x, full_matrices=False)
        u = product(left, right)
        if side == "right":
            p = product(scaled_columns(matrix_adjoint(right), values), right)
        else:
            p = product(scaled_columns(left, values), matrix_adjoint(left))
        return rounded(u, dtype), rounded(p, dtype)
    if rows < columns if side == "right" else rows > columns:
        wanted = "as many rows as columns, or more" if side == "right" else "no more rows"
        raise NotImplementedError(
            f'{function}: with method="qdwh" and side={side!r} the matrices must have {wanted}'
            f"{'' if side == 'right' else ' than columns'}, got the shape {aval_of(x).shape}; use "
            'method="svd"'
        )
    if max_iterations is not None:
        max_iterations = integer(function, "max_iterations", max_iterations)
    x = x if side == "right" else matrix_adjoint(x)
    u, p, _, _ = lax.linalg.qdwh(x, max_iterations=max_iterations, eps=eps)
    u = u if side == "right" else matrix_adjoint(u)
    return rounded(u, dtype), rounded(p, dtype)


@compiled_with("mode", "pivoting", "conjugate", "overwrite_a", "overwrite_c")
def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """The QR factors of matrices, of which the first is multiplied with other matrices.

    Args:
        a: matrices of shape ``(..., m, n)``, with factors ``q`` of ``k = min(m, n)`` columns.
        c: with mode "right" matrices of shape ``(..., p, m)``, or a vector of shape ``(m,)``; with
            "left" of shape ``(..., k, p)`` or ``(k,)``. Leading dimensions broadcast.
        mode: "right" for the product ``c @ q``, "left" for ``q @ c``.
        pivoting: whether to permute columns, to make the diagonal of ``r`` decrease.
        conjugate: whether to use the complex conjugate of ``q``.
        overwrite_a: ignored.
        overwrite_c: ignored.

    Returns:
        A tuple of the product, of shape ``(..., p, k)`` or ``(k,)`` with "right", ``(..., m, p)``
        or ``(m,)`` with "left"; the upper triangular ``r``, of shape ``(..., k, n)``; and with
        `pivoting` the order of the columns, int32 of shape ``(..., n)``.

    Raises:
        ValueError: `mode` is not one of these, or the shapes do not match.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> a = jnp.array([[0., 2.], [-3., 1.]])
        >>> product, r = linalg.qr_multiply(a, jnp.array([1., 2.]))
        >>> print(product + 0.)
        [2. 1.]
    """
    function = "scipy.linalg.qr_multiply"
    choice(function, "mode", mode, ("right", "left"))
    x, other = same_dtype([array_like(a, function, "a"), array_like(c, function, "c")])
    x, dtype = factored(function, checked_matrices(function, x, "a"))
    other, _ = factored(function, other, "c")
    shape, other_shape = aval_of(x).shape, aval_of(other).shape
    single = len(other_shape) == 1
    wanted = shape[-2] if mode == "right" else min(shape[-2:])
    place = -1 if mode == "right" or single else -2
    if not other_shape or other_shape[place] != wanted:
        what = "columns" if mode == "right" else "rows"
        raise ShapeError(
            f"{function}: with mode={mode!r} c must have {wanted} {what}, or be a vector of so "
            f"many elements, got the shapes {shape} of a and {other_shape} of c"
        )
    if single:
        other = reshaped(other, (1, wanted) if mode == "right" else (wanted, 1))
    q, r, *order = lax.linalg.qr(x, pivoting=bool(pivoting), full_matrices=False)
    if conjugate and is_complex(q):
        q = lax.conj(q)
    stack = broadcast_result(function, (shape[:-2], aval_of(other).shape[:-2]), explicit=True)
    q, other = (spread(v, (*stack, *aval_of(v).shape[-2:])) for v in (q, other))
    result: Any = product(other, q) if mode == "right" else product(q, other)
    if single:
        rest = aval_of(result).shape
        result = reshaped(result, (*rest[:-2], rest[-1] if mode == "right" else rest[-2]))
    return (rounded(result, dtype), rounded(r, dtype), *order)
