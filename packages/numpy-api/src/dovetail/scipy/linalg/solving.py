"""Linear equations, by factorisations that are made here or given."""

from __future__ import annotations

from typing import Any

from dovetail import lax
from dovetail.errors import ShapeError
from dovetail.extend.arguments import array_like, convert
from dovetail.extend.avals import aval_of
from dovetail.extend.matrices import matrix_adjoint, product, rows_in_order
from dovetail.extend.matrices import solve_triangular as substituted
from dovetail.lax import custom_linear_solve
from dovetail.numpy.compiled import compiled_with, plain
from dovetail.numpy.linalg import det as determinant
from dovetail.numpy.linalg import inv as inverse
from dovetail.numpy.linalg import solve as general_solution
from dovetail.numpy.linalg.decompositions import rounded
from dovetail.numpy.sorting import argsort
from dovetail.scipy.linalg.matrix_operands import (
    INT32,
    choice,
    is_complex,
    with_sides,
    without_column,
)
from dovetail.typing import Array, ArrayLike


def _by_cholesky(factor: Any, b: Any, lower: bool) -> Any:
    """``a^-1 @ b`` from the factor of `a`."""
    if lower:
        b = substituted(factor, b)
        return substituted(factor, b, transpose_a=True, conjugate_a=True)
    b = substituted(factor, b, lower=False, transpose_a=True, conjugate_a=True)
    return substituted(factor, b, lower=False)


def cho_solve(
    c_and_lower: tuple[ArrayLike, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve linear equations from a Cholesky factor.

    Args:
        c_and_lower: pair of the factors, of shape ``(..., n, n)``, and whether they are lower ones,
            as `cho_factor` returns it. The other triangle is not read.
        b: right-hand sides: one vector of shape ``(n,)``, or matrices of shape ``(..., n, k)``,
            whose other dimensions broadcast with those of the factors.
        overwrite_b: ignored.
        check_finite: ignored.

    Returns:
        The solutions, of shape ``(..., n)`` or ``(..., n, k)``.

    Raises:
        ValueError: the shapes do not match.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> a = jnp.array([[4., 2.], [2., 5.]])
        >>> print(linalg.cho_solve(linalg.cho_factor(a), jnp.array([8., 12.])))
        [1. 2.]
    """
    if not isinstance(c_and_lower, (tuple, list)) or len(c_and_lower) != 2:
        raise TypeError(
            "scipy.linalg.cho_solve: c_and_lower must be a pair of an array and a boolean, as "
            f"cho_factor returns it, got {type(c_and_lower).__name__}"
        )
    factor, lower = c_and_lower
    return _cho_solve(factor, b, bool(lower))


@compiled_with("lower")
def _cho_solve(c: Any, b: Any, lower: bool) -> Array:
    factor, right, dtype, single = with_sides("scipy.linalg.cho_solve", c, b, ("c", "b"))
    x = _by_cholesky(factor, right, lower)
    return rounded(without_column(x, single), dtype)


@compiled_with("lower", "overwrite_a", "overwrite_b", "debug", "check_finite", "assume_a")
def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """Solve linear equations ``a @ x = b``.

    Args:
        a: square matrices of shape ``(..., n, n)``.
        b: right-hand sides: one vector of shape ``(n,)``, or matrices of shape ``(..., n, k)``,
            whose other dimensions broadcast with those of `a`.
        lower: which triangle of `a` is read if it is positive definite: the lower or the upper one.
            Otherwise both are read.
        overwrite_a: ignored.
        overwrite_b: ignored.
        debug: ignored.
        check_finite: ignored.
        assume_a: what is known of `a`: "gen" for nothing, "sym" for symmetric, "her" for Hermitian,
            "pos" for positive definite, where the solution is by a Cholesky factorisation.

    Returns:
        The solutions, of shape ``(..., n)`` or ``(..., n, k)``. For singular matrices elements are
        infinite or nan, and for matrices that are not positive definite, with "pos", nan; SciPy
        raises an error.

    Raises:
        ValueError: the shapes do not match, or `assume_a` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> a = jnp.array([[4., 2.], [2., 5.]])
        >>> print(linalg.solve(a, jnp.array([8., 12.]), assume_a="pos"))
        [1. 2.]
    """
    function = "scipy.linalg.solve"
    choice(function, "assume_a", assume_a, ("gen", "sym", "her", "pos"))
    left, right, dtype, single = with_sides(function, a, b)
    if assume_a != "pos":
        return plain(general_solution)(a, b)
    known = lax.stop_gradient(left)
    # LAPACK reads the lower triangle of what it is given.
    factor = lax.linalg.cholesky(known if lower else matrix_adjoint(known), symmetrize_input=False)

    def solved(_: Any, y: Any) -> Any:
        return _by_cholesky(factor, y, lower=True)

    def solved_transposed(_: Any, y: Any) -> Any:
        return lax.conj(_by_cholesky(factor, lax.conj(y), True)) if is_complex(y) else solved(_, y)

    x = custom_linear_solve(lambda x: product(left, x), right, solved, solved_transposed)
    return rounded(without_column(x, single), dtype)


_TRANSPOSED = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}


def _operation(function: str, trans: Any, choices: tuple[Any, ...]) -> tuple[bool, bool]:
    """Whether matrices are transposed, and whether they are conjugated."""
    choice(function, "trans", trans, choices)
    kind = _TRANSPOSED[trans]
    return kind > 0, kind == 2


@compiled_with("trans", "lower", "unit_diagonal", "overwrite_b", "debug", "check_finite")
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: object = None,
    check_finite: bool = True,
) -> Array:
    """Solve linear equations with triangular matrices: ``op(a) @ x = b``.

    Args:
        a: triangular matrices of shape ``(..., n, n)``. The other triangle is not read.
        b: right-hand sides: one vector of shape ``(n,)``, or matrices of shape ``(..., n, k)``,
            whose other dimensions broadcast with those of `a`.
        trans: what ``op(a)`` is: 0 or "N" for `a`, 1 or "T" for its transpose, 2 or "C" for its
            adjoint.
        lower: whether to read the lower triangle of `a`, otherwise the upper one.
        unit_diagonal: whether to take the diagonal of `a` as ones, without reading it.
        overwrite_b: ignored.
        debug: ignored.
        check_finite: ignored.

    Returns:
        The solutions, of shape ``(..., n)`` or ``(..., n, k)``. If there are zeros on the diagonal,
        elements are infinite or nan.

    Raises:
        ValueError: the shapes do not match, or `trans` is not one of these.

    Differs:
        A stack of vectors, which JAX deprecates because it can be taken for a matrix, is refused.

        >>> from dovetail.scipy import linalg
        >>> a, b = jnp.ones((2, 3, 3)), jnp.ones((2, 3))
        >>> try:
        ...     linalg.solve_triangular(a, b)
        ... except ValueError as error:
        ...     print(str(error)[:60])
        scipy.linalg.solve_triangular: b with the shape (2, 3) besid
        >>> linalg.solve_triangular(a, b[..., None])[..., 0].shape
        (2, 3)

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> a = jnp.array([[2., 0.], [1., 4.]])
        >>> print(linalg.solve_triangular(a, jnp.array([2., 9.]), lower=True))
        [1. 2.]
    """
    function = "scipy.linalg.solve_triangular"
    transposed, conjugated = _operation(function, trans, (0, 1, 2, "N", "T", "C"))
    left, right, dtype, single = with_sides(function, a, b)
    x = substituted(
        left,
        right,
        lower=bool(lower),
        transpose_a=transposed,
        conjugate_a=conjugated,
        unit_diagonal=bool(unit_diagonal),
    )
    return rounded(without_column(x, single), dtype)


def lu_solve(
    lu_and_piv: tuple[Array, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve linear equations ``op(a) @ x = b`` from the LU factors of `a`.

    Args:
        lu_and_piv: pair of packed factors, of shape ``(..., n, n)``, and exchanged rows, of shape
            ``(..., n)``, as `lu_factor` returns it.
        b: right-hand sides: one vector of shape ``(n,)``, or matrices of shape ``(..., n, k)``,
            whose other dimensions broadcast with those of the factors.
        trans: what ``op(a)`` is: 0 for `a`, 1 for its transpose, 2 for its adjoint.
        overwrite_b: ignored.
        check_finite: ignored.

    Returns:
        The solutions, of shape ``(..., n)`` or ``(..., n, k)``.

    Raises:
        ValueError: the shapes do not match, or `trans` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> factors = linalg.lu_factor(jnp.array([[2., 0.], [1., 4.]]))
        >>> print(linalg.lu_solve(factors, jnp.array([2., 9.])))
        [1. 2.]
    """
    if not isinstance(lu_and_piv, (tuple, list)) or len(lu_and_piv) != 2:
        raise TypeError(
            "scipy.linalg.lu_solve: lu_and_piv must be a pair of arrays, as lu_factor returns it, "
            f"got {type(lu_and_piv).__name__}"
        )
    return _lu_solve(*lu_and_piv, b, trans)


@compiled_with("trans")
def _lu_solve(lu: Any, piv: Any, b: Any, trans: Any) -> Array:
    function = "scipy.linalg.lu_solve"
    transposed, conjugated = _operation(function, trans, (0, 1, 2))
    packed, right, dtype, single = with_sides(function, lu, b, ("lu", "b"))
    pivots = convert(array_like(piv, function, "piv"), INT32)
    shape, stack = aval_of(pivots).shape, aval_of(packed).shape[:-2]
    if shape != aval_of(array_like(lu, function, "lu")).shape[:-1]:
        raise ShapeError(
            f"{function}: piv must have the shape of lu without its last dimension, got the shapes "
            f"{aval_of(lu).shape} of lu and {shape} of piv"
        )
    order = lax.linalg.lu_pivots_to_permutation(pivots, shape[-1])
    order = lax.broadcast_in_dim(
        order, (*stack, shape[-1]), tuple(range(len(stack) + 1 - len(shape), len(stack) + 1))
    )
    if not transposed:
        x = substituted(packed, rows_in_order(right, order), unit_diagonal=True)
        x = substituted(packed, x, lower=False)
    else:
        x = substituted(packed, right, lower=False, transpose_a=True, conjugate_a=conjugated)
        x = substituted(packed, x, unit_diagonal=True, transpose_a=True, conjugate_a=conjugated)
        x = rows_in_order(x, plain(argsort)(order))
    return rounded(without_column(x, single), dtype)


@compiled_with("overwrite_a", "check_finite")
def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinants of square matrices.

    Args:
        a: matrices of shape ``(..., n, n)``.
        overwrite_a: ignored.
        check_finite: ignored.

    Returns:
        An array of shape ``(...)``, as of `dovetail.numpy.linalg.det`.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> print(linalg.det(jnp.array([[1., 2.], [3., 4.]])))
        -2.0
    """
    return plain(determinant)(a)


@compiled_with("overwrite_a", "check_finite")
def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverses of square matrices.

    To solve equations, use `solve`, which is faster and more accurate.

    Args:
        a: matrices of shape ``(..., n, n)``.
        overwrite_a: ignored.
        check_finite: ignored.

    Returns:
        An array of the shape of `a`. For singular matrices elements are infinite or nan; SciPy
        raises an error.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> print(linalg.inv(jnp.array([[2., 0.], [0., 4.]])))
        [[0.5  0.  ]
         [0.   0.25]]
    """
    return plain(inverse)(a)
