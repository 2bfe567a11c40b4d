"""Iterations that minimize the residual: `gmres`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.extend.arguments import integer
from dovetail.scipy.sparse.linalg.iterations import most_steps
from dovetail.scipy.sparse.linalg.systems import Operator, norm, solution
from dovetail.typing import Array, ArrayLike

T = TypeVar("T")


def _combination(coefficients: Any, vectors: Any) -> Any:
    return jnp.matmul(coefficients, vectors, precision=lax.Precision.HIGHEST)


def _orthogonal(vectors: Any, w: Any) -> tuple[Any, Any]:
    """The direction of `w` across orthonormal vectors, and its coefficients, the last for that.

    Gram and Schmidt's method is run twice, which is enough: L. Giraud, J. Langou, M. Rozloznik,
    Comput. Math. Appl. 50 (2005), 1069.
    """
    before = norm(w)
    coefficients = jnp.zeros(vectors.shape[0], w.dtype)
    for _ in range(2):
        found = _combination(jnp.conj(vectors), w)
        w, coefficients = w - _combination(found, vectors), coefficients + found
    length = norm(w)
    # What is left of a dependent vector is rounding.
    length = jnp.where(length > 4 * jnp.finfo(length.dtype).eps * before, length, 0)
    return jnp.where(length > 0, w / jnp.where(length > 0, length, 1), 0), (coefficients, length)


def _least_squares(triangle: Any, right: Any) -> Any:
    """The solution of a triangular system, 0 for columns that depend on others."""
    diagonal = jnp.abs(jnp.diagonal(triangle))
    alive = diagonal > jnp.finfo(diagonal.dtype).eps * jnp.max(diagonal)
    matrix = jnp.where(
        alive[:, None] & alive[None, :], triangle, jnp.diag((~alive).astype(triangle.dtype))
    )
    right = jnp.where(alive, right, 0)
    return lax.linalg.triangular_solve(matrix, right[:, None], left_side=True)[:, 0]


def _extended(matvec: Operator, precondition: Operator, vectors: Any, columns: Any, k: Any) -> Any:
    """One step of Arnoldi's: a further vector, and a further column of the Hessenberg matrix."""
    direction, (column, length) = _orthogonal(vectors, matvec(precondition(vectors[k])))
    column = column.at[k + 1].set(length.astype(column.dtype))
    return vectors.at[k + 1].set(direction), columns.at[:, k].set(column), column, length


def _batched(matvec: Operator, precondition: Operator, r: Any, restart: int, limit: Any) -> Any:
    """The correction from a whole Krylov space, by one QR decomposition."""
    beta = norm(r)
    vectors = jnp.zeros((restart + 1, r.size), r.dtype).at[0].set(r / beta)
    columns = jnp.zeros((restart + 1, restart), r.dtype)

    def step(k: Any, state: Any) -> Any:
        vectors, columns = state
        return _extended(matvec, precondition, vectors, columns, k)[:2]

    vectors, columns = lax.fori_loop(0, restart, step, (vectors, columns))
    q, triangle = lax.linalg.qr(columns, full_matrices=False)
    y = _least_squares(triangle, beta * jnp.conj(q[0]))
    return _combination(y, vectors[:-1]), restart


def _incremental(matvec: Operator, precondition: Operator, r: Any, restart: int, limit: Any) -> Any:
    """The correction from a Krylov space that grows until the residual is small.

    The Hessenberg matrix is kept triangular by rotations, whose product is kept, too.
    """
    beta = norm(r)
    vectors = jnp.zeros((restart + 1, r.size), r.dtype).at[0].set(r / beta)
    columns = jnp.zeros((restart + 1, restart), r.dtype)

    def going(state: Any) -> Any:
        _, _, _, left, k = state
        return (k < restart) & (left > limit)

    def step(state: Any) -> Any:
        vectors, triangle, rotations, _, k = state
        vectors, _, column, length = _extended(matvec, precondition, vectors, columns, k)
        column = _combination(rotations, column)
        pair = lax.dynamic_slice(column, (k,), (2,))
        size = norm(pair)
        a, b = pair[0], pair[1]
        rotation = jnp.array([[jnp.conj(a), jnp.conj(b)], [-b, a]]) / jnp.where(size > 0, size, 1)
        rotation = jnp.where(size > 0, rotation, jnp.eye(2, dtype=r.dtype))
        rows = lax.dynamic_slice(rotations, (k, 0), (2, restart + 1))
        rotations = lax.dynamic_update_slice(rotations, _combination(rotation, rows), (k, 0))
        column = column.at[k].set(size.astype(column.dtype)).at[k + 1].set(0)
        left = beta * jnp.abs(rotations[k + 1, 0])
        # A vector that depends on those before it ends the space.
        return vectors, triangle.at[:, k].set(column), rotations, left * (length > 0), k + 1

    state = (vectors, columns, jnp.eye(restart + 1, dtype=r.dtype), beta, jnp.zeros((), "int32"))
    vectors, triangle, rotations, _, k = lax.while_loop(going, step, state)
    right = beta * rotations[:restart, 0]
    y = _least_squares(triangle[:restart], jnp.where(jnp.arange(restart) < k, right, 0))
    return _combination(y, vectors[:-1]), k


def gmres(
    A: ArrayLike | Callable[[T], T],
    b: T,
    x0: T | None = None,
    *,
    tol: ArrayLike = 1e-05,
    atol: ArrayLike = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: ArrayLike | Callable[[T], T] | None = None,
    solve_method: str = "batched",
) -> tuple[T, Array]:
    """Solve a system by the generalized minimal residual method with restarts.

    Derivatives solve the system or its transpose, and are as exact as the solution
    (`lax.custom_linear_solve`). They exist for `b` and for what `A` captures, not for `x0`.

    Args:
        A: the operator: a square matrix, or a linear function from trees like `b` to such trees.
        b: the right-hand side: an array, or a tree of arrays if `A` is a function.
        x0: the first guess, a tree like `b`; zeros by default, and where the residual of zeros is
            smaller.
        tol: relative tolerance: the residual is at most ``max(tol * norm(b), atol)``.
        atol: absolute tolerance.
        restart: size of the Krylov space between two restarts, at least 1. More need fewer steps
            and more memory.
        maxiter: how often the space is built; ten times the number of unknowns by default.
        M: the preconditioner, an approximation of the inverse of `A`; a matrix or a function. It
            stands on the right, so the tolerances are of the residual itself. For gradients its
            transpose is used, or itself if it is a function that has none.
        solve_method: ``"batched"`` builds each space to its whole size, ``"incremental"`` looks
            at the residual after each step, and stops early.

    Returns:
        The solution, a tree like `b` of inexact dtypes, and a number: 0 if the tolerance has been
        reached, the number of spaces that were built if not, -1 if `b` is not finite. It ends when
        a space brings no progress, too.

    Raises:
        TypeError: `A` or `M` is no matrix or function, or returns another tree or other shapes.
        ValueError: `A` or `M` is not square, `x0` and `b` do not match, `restart` is less than 1,
            or there is no such `solve_method`.

    Algorithm: Y. Saad, M. H. Schultz, SIAM J. Sci. Stat. Comput. 7 (1986), 856.

    Differs:
        The second result says whether the tolerance has been reached; in JAX it is 0 also where
        it has not. The preconditioner is applied on the right, in JAX on the left.

        >>> from dovetail.scipy.sparse.linalg import gmres
        >>> a, b = np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])
        >>> int(gmres(a, b, restart=1, maxiter=1)[1])
        1

    Example:
        >>> from dovetail.scipy.sparse.linalg import gmres
        >>> x, info = gmres(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([3.0, 4.0]))
        >>> np.round(x, 4).tolist(), int(info)
        ([1.0, 1.0], 0)
    """
    methods = {"batched": _batched, "incremental": _incremental}
    if not isinstance(solve_method, str) or solve_method not in methods:
        raise ValueError(
            f"gmres: solve_method must be 'batched' or 'incremental', got {solve_method!r}"
        )
    size = integer("gmres", "restart", restart)
    if size < 1:
        raise ValueError(f"gmres: restart must be at least 1, got {size}")
    correct = methods[solve_method]

    def method(
        matvec: Operator, b: Any, x: Any, r: Any, precondition: Operator, limit: Any
    ) -> tuple[Any, Any]:
        most = most_steps("gmres", maxiter, b)

        def going(state: Any) -> Any:
            _, _, left, built, improves = state
            return (left > limit) & (built < most) & improves

        def step(state: Any) -> Any:
            x, r, left, built, _ = state
            change, _ = correct(matvec, precondition, r, min(size, b.shape[0]), limit)
            found = x + precondition(change)
            residual = b - matvec(found)
            after = norm(residual)
            # The same space is built again if the residual has not changed.
            improves = after < left
            return (
                jnp.where(improves, found, x),
                jnp.where(improves, residual, r),
                jnp.where(improves, after, left),
                built + 1,
                improves,
            )

        state = (x, r, norm(r), jnp.zeros((), "int32"), jnp.array(True))
        x, _, left, built, _ = lax.while_loop(going, step, state)
        return x, jnp.where(left <= limit, 0, jnp.maximum(built, 1)).astype("int32")

    return solution("gmres", method, (A, b, x0, M), (tol, atol))
