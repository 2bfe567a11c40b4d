"""Iterations with short recurrences: `cg` and `bicgstab`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.extend.arguments import require_real_number
from dovetail.scipy.sparse.linalg.systems import Operator, inner, norm, solution
from dovetail.typing import Array, ArrayLike

T = TypeVar("T")


def _safe(numerator: Any, denominator: Any) -> tuple[Any, Any]:
    """A quotient that is 0 where it is not a finite number, and whether it is one."""
    quotient = numerator / jnp.where(denominator == 0, jnp.ones_like(denominator), denominator)
    fine = (denominator != 0) & jnp.isfinite(quotient)
    return jnp.where(fine, quotient, 0), fine


def _info(residual: Any, limit: Any, steps: Any, fine: Any) -> Any:
    """What SciPy says: 0, the number of steps, or a negative number for a breakdown."""
    failed = jnp.where(fine, jnp.maximum(steps, 1), -1)
    return jnp.where(norm(residual) <= limit, 0, failed).astype("int32")


def most_steps(caller: str, maxiter: Any, b: Any) -> Any:
    """The largest number of steps.

    Raises:
        TypeError: `maxiter` is no real number.
    """
    if maxiter is None:
        return 10 * b.shape[0]
    require_real_number(caller, "maxiter", maxiter)
    return maxiter


def cg(
    A: ArrayLike | Callable[[T], T],
    b: T,
    x0: T | None = None,
    *,
    tol: ArrayLike = 1e-05,
    atol: ArrayLike = 0.0,
    maxiter: int | None = None,
    M: ArrayLike | Callable[[T], T] | None = None,
) -> tuple[T, Array]:
    """Solve a system with a positive definite, hermitian operator by conjugate gradients.

    Derivatives solve the same system with other right-hand sides, and are as exact as the solution
    (`lax.custom_linear_solve`). They exist for `b` and for what `A` captures, not for `x0`.

    Args:
        A: the operator: a square matrix, or a linear function from trees like `b` to such trees.
        b: the right-hand side: an array, or a tree of arrays if `A` is a function.
        x0: the first guess, a tree like `b`; zeros by default, and where the residual of zeros is
            smaller.
        tol: relative tolerance: the residual is at most ``max(tol * norm(b), atol)``.
        atol: absolute tolerance.
        maxiter: the largest number of steps; ten times the number of unknowns by default.
        M: the preconditioner, an approximation of the inverse of `A` that is positive definite and
            hermitian as `A` is; a matrix or a function.

    Returns:
        The solution, a tree like `b` of inexact dtypes, and a number: 0 if the tolerance has been
        reached, the number of steps if not, -1 where the method broke down.

    Raises:
        TypeError: `A` or `M` is no matrix or function, or returns another tree or other shapes.
        ValueError: `A` or `M` is not square, or `x0` and `b` do not match.

    Algorithm: Y. Saad, Iterative Methods for Sparse Linear Systems, 2nd ed., algorithm 9.1.

    Differs:
        The second result says whether the solution is one; in JAX it is None. Integers are
        promoted to floats, and a matrix of a wider dtype to its own; a right-hand side that is not
        finite has the solution NaN.

        >>> from dovetail.scipy.sparse.linalg import cg
        >>> x, info = cg(np.array([[4, 1], [1, 3]]), np.array([1, 2]), maxiter=1)
        >>> int(info)
        1

    Example:
        >>> from dovetail.scipy.sparse.linalg import cg
        >>> x, info = cg(lambda x: 2.0 * x, jnp.array([1.0, 3.0]))
        >>> x.tolist(), int(info)
        ([0.5, 1.5], 0)
    """

    def method(
        matvec: Operator, b: Any, x: Any, r: Any, precondition: Operator, limit: Any
    ) -> tuple[Any, Any]:
        most = most_steps("cg", maxiter, b)

        def going(state: Any) -> Any:
            _, r, _, _, steps, fine = state
            return (norm(r) > limit) & (steps < most) & fine

        def step(state: Any) -> Any:
            x, r, p, gamma, steps, _ = state
            image = matvec(p)
            alpha, fine = _safe(gamma, inner(p, image))
            x, r = x + alpha * p, r - alpha * image
            z = precondition(r)
            following = inner(r, z)
            beta, _ = _safe(following, gamma)
            return x, r, z + beta * p, following, steps + 1, fine

        p = precondition(r)
        state = (x, r, p, inner(r, p), jnp.zeros((), "int32"), jnp.array(True))
        x, r, _, _, steps, fine = lax.while_loop(going, step, state)
        return x, _info(r, limit, steps, fine)

    return solution("cg", method, (A, b, x0, M), (tol, atol), symmetric=True)


def bicgstab(
    A: ArrayLike | Callable[[T], T],
    b: T,
    x0: T | None = None,
    *,
    tol: ArrayLike = 1e-05,
    atol: ArrayLike = 0.0,
    maxiter: int | None = None,
    M: ArrayLike | Callable[[T], T] | None = None,
) -> tuple[T, Array]:
    """Solve a system by stabilized biconjugate gradients.

    Derivatives solve the system or its transpose, and are as exact as the solution
    (`lax.custom_linear_solve`). They exist for `b` and for what `A` captures, not for `x0`.

    Args:
        A: the operator: a square matrix, or a linear function from trees like `b` to such trees.
        b: the right-hand side: an array, or a tree of arrays if `A` is a function.
        x0: the first guess, a tree like `b`; zeros by default, and where the residual of zeros is
            smaller.
        tol: relative tolerance: the residual is at most ``max(tol * norm(b), atol)``.
        atol: absolute tolerance.
        maxiter: the largest number of steps; ten times the number of unknowns by default.
        M: the preconditioner, an approximation of the inverse of `A`; a matrix or a function. For
            gradients its transpose is used, or itself if it is a function that has none.

    Returns:
        The solution, a tree like `b` of inexact dtypes, and a number: 0 if the tolerance has been
        reached, the number of steps if not, -1 where the method broke down.

    Raises:
        TypeError: `A` or `M` is no matrix or function, or returns another tree or other shapes.
        ValueError: `A` or `M` is not square, or `x0` and `b` do not match.

    Algorithm: H. A. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992), 631, with the
    preconditioner on the right.

    Differs:
        The second result says whether the solution is one; in JAX it is None. After a breakdown
        the solution is the last one before it, where it is NaN in JAX.

        >>> from dovetail.scipy.sparse.linalg import bicgstab
        >>> x, info = bicgstab(np.array([[0.0, 1.0], [-1.0, 0.0]]), np.array([1.0, 0.0]))
        >>> x.tolist(), int(info)
        ([0.0, 0.0], -1)

    Example:
        >>> from dovetail.scipy.sparse.linalg import bicgstab
        >>> x, info = bicgstab(jnp.array([[2.0, 1.0], [0.0, 4.0]]), jnp.array([3.0, 4.0]))
        >>> np.round(x, 4).tolist(), int(info)
        ([1.0, 1.0], 0)
    """

    def method(
        matvec: Operator, b: Any, x: Any, r: Any, precondition: Operator, limit: Any
    ) -> tuple[Any, Any]:
        most = most_steps("bicgstab", maxiter, b)
        shadow = r

        def going(state: Any) -> Any:
            _, r, _, _, steps, fine = state
            return (norm(r) > limit) & (steps < most) & fine

        def step(state: Any) -> Any:
            x, r, p, rho, steps, _ = state
            direction = precondition(p)
            v = matvec(direction)
            alpha, fine = _safe(rho, inner(shadow, v))
            s = r - alpha * v
            half = precondition(s)
            t = matvec(half)
            omega, moved = _safe(inner(t, s), inner(t, t))
            # A residual that vanishes after half a step is the end, not a breakdown.
            moved |= norm(s) <= limit
            left = s - omega * t
            following = inner(shadow, left)
            beta, _ = _safe(following, rho)
            ratio, _ = _safe(alpha, omega)
            return (
                x + alpha * direction + omega * half,
                left,
                left + beta * ratio * (p - omega * v),
                following,
                steps + 1,
                fine & moved & ((following != 0) & (omega != 0) | (norm(left) <= limit)),
            )

        state = (x, r, r, inner(r, r), jnp.zeros((), "int32"), jnp.array(True))
        x, r, _, _, steps, fine = lax.while_loop(going, step, state)
        return x, _info(r, limit, steps, fine)

    return solution("bicgstab", method, (A, b, x0, M), (tol, atol))
