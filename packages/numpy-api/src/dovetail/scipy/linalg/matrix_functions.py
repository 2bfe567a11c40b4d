"""Square roots and other functions of matrices, and the equations of their derivatives.

All are found column by column from the complex Schur form, where a column is the solution of a
triangular system.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dovetail import custom_jvp, jvp, lax
from dovetail.errors import ShapeError
from dovetail.extend.arguments import (
    array_like,
    broadcast_result,
    convert,
    integer,
    literal,
    require_callable,
    same_dtype,
)
from dovetail.extend.avals import aval_of
from dovetail.extend.matrices import (
    as_columns,
    as_rows,
    diagonal,
    matrix_adjoint,
    matrix_transpose,
    on_diagonal,
    product,
    real_dtype,
    where_mask,
    zeros_of,
)
from dovetail.extend.matrices import solve_triangular as substituted
from dovetail.lax import custom_linear_solve
from dovetail.numpy.compiled import compiled, compiled_with
from dovetail.numpy.conditions import pick, spread
from dovetail.numpy.linalg.decompositions import (
    checked_matrices,
    factored,
    matrix_operand,
    rounded,
)
from dovetail.numpy.linalg.solvers import solution
from dovetail.scipy.linalg.matrix_operands import (
    INT32,
    as_complex,
    before,
    choice,
    column_element,
    column_of,
    diagonal_column,
    each_column,
    is_complex,
    kept_in_triangle,
    shifted_solution,
)
from dovetail.typing import Array, ArrayLike


def _sandwich(z: Any, x: Any, w: Any) -> Any:
    """``z @ x @ w^H``."""
    return product(product(z, x), matrix_adjoint(w))


# -------------------------------------------------------------------------- Sylvester's equation


def _triangular_sylvester(t: Any, s: Any, f: Any) -> Any:
    """The solution of ``t @ y + y @ s = f`` for upper triangular matrices.

    Source: Golub and Van Loan, "Matrix Computations", algorithm 7.6.2.
    """
    values = diagonal_column(s)

    def step(k: Any, y: Any) -> Any:
        known = product(y, column_of(s, k))
        return shifted_solution(t, column_element(values, k), lax.sub(column_of(f, k), known))

    # Further columns are zero, so that only those that are known count.
    return each_column(aval_of(s).shape[-1], step, zeros_of(f))


def _sylvester(a: Any, b: Any, c: Any, forward: Any, backward: Any) -> Any:
    """The solution ``x`` of ``a @ x + x @ b = c``, with all derivatives.

    Args:
        a: matrices.
        b: matrices.
        c: right-hand sides.
        forward: from right-hand sides to solutions.
        backward: from right-hand sides to solutions of ``b @ x + x @ a = c``.
    """

    def applied(x: Any) -> Any:
        return lax.add(product(a, x), product(x, b))

    def transposed(_: Any, y: Any) -> Any:
        # a^T @ x + x @ b^T = y is the equation b @ x^T + x^T @ a = y^T.
        return matrix_transpose(backward(matrix_transpose(y)))

    return custom_linear_solve(applied, c, lambda _, y: forward(y), transposed)


def _by_schur(form_a: Any, form_b: Any) -> tuple[Any, Any]:
    """Solvers of Sylvester's equation and of that with both matrices exchanged."""
    (t, z), (s, w) = form_a, form_b

    def forward(y: Any) -> Any:
        f = product(product(matrix_adjoint(z), as_complex(y)), w)
        x = _sandwich(z, _triangular_sylvester(t, s, f), w)
        return x if is_complex(y) else lax.real(x)

    def backward(y: Any) -> Any:
        f = product(product(matrix_adjoint(w), as_complex(y)), z)
        x = _sandwich(w, _triangular_sylvester(s, t, f), z)
        return x if is_complex(y) else lax.real(x)

    return forward, backward


def _by_eigenvectors(a: Any, b: Any) -> tuple[Any, Any, Any, Any]:
    """The same by diagonalisation, and the eigenvalues."""
    (p, v), (q, w) = (lax.linalg.eig(x, compute_left_eigenvectors=False) for x in (a, b))

    def solver(v: Any, p: Any, w: Any, q: Any) -> Callable[[Any], Any]:
        def solve(y: Any) -> Any:
            f = product(solution(v, as_complex(y)), w)
            shape = aval_of(f).shape
            sums = lax.add(spread(as_columns(p), shape), spread(as_rows(q), shape))
            x = product(v, lax.div(f, sums))
            # x @ w^-1, as the transposed solution of w^T.
            x = matrix_transpose(solution(matrix_transpose(w), matrix_transpose(x)))
            return x if is_complex(y) else lax.real(x)

        return solve

    return solver(v, p, w, q), solver(w, q, v, p), p, q


@compiled_with("method")
def solve_sylvester(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: ArrayLike = 1e-8
) -> Array:
    """Solve Sylvester's equation ``A @ x + x @ B = C``.

    Source: Bartels and Stewart, "Solution of the matrix equation AX + XB = C", 1972.

    Args:
        A: square matrices of shape ``(..., m, m)``.
        B: square matrices of shape ``(..., n, n)``.
        C: matrices of shape ``(..., m, n)``. Leading dimensions broadcast.
        method: "schur", or "eigen" for a solution by eigenvectors, which is faster and less
            accurate if these are nearly linearly dependent.
        tol: the magnitude up to which a sum of an eigenvalue of `A` and one of `B` counts as zero,
            where there is not one solution.

    Returns:
        The solutions, of shape ``(..., m, n)``; nan where there is not one. They have all
        derivatives, by the equation itself. Only available on the CPU.

    Raises:
        ValueError: the shapes do not match, or `method` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> a, b = jnp.array([[1., 0.], [0., 3.]]), jnp.array([[1.]])
        >>> print(linalg.solve_sylvester(a, b, jnp.array([[2.], [8.]])))
        [[1.]
         [2.]]
    """
    function = "scipy.linalg.solve_sylvester"
    choice(function, "method", method, ("schur", "eigen"))
    operands = same_dtype([array_like(v, function, n) for v, n in ((A, "A"), (B, "B"), (C, "C"))])
    operands = [
        checked_matrices(function, v, n, square=n != "C")
        for v, n in zip(operands, "ABC", strict=True)
    ]
    (a, dtype), (b, _), (c, _) = (factored(function, v) for v in operands)
    shapes = [aval_of(v).shape for v in (a, b, c)]
    if shapes[2][-2:] != (shapes[0][-1], shapes[1][-1]):
        raise ShapeError(
            f"{function}: C must have the rows of A and the columns of B, got the shapes "
            f"{shapes[0]} of A, {shapes[1]} of B and {shapes[2]} of C"
        )
    stack = broadcast_result(function, [s[:-2] for s in shapes], explicit=True)
    a, b, c = (spread(v, (*stack, *aval_of(v).shape[-2:])) for v in (a, b, c))
    if not aval_of(c).size:
        return rounded(c, dtype)
    known = [as_complex(lax.stop_gradient(v)) for v in (a, b)]
    if method == "schur":
        forms = [lax.linalg.schur(v) for v in known]
        forward, backward = _by_schur(*forms)
        p, q = (diagonal(t) for t, _ in forms)
    else:
        forward, backward, p, q = _by_eigenvectors(*known)
    x = _sylvester(a, b, c, forward, backward)
    shape = aval_of(x).shape
    sums = lax.abs(lax.add(spread(as_columns(p), shape), spread(as_rows(q), shape)))
    rank = len(shape)
    least = lax.reduce_min(sums, (rank - 2, rank - 1))
    limit = spread(convert(array_like(tol, function, "tol"), aval_of(sums).dtype), tuple(stack))
    # Not a comparison that nan passes.
    single = lax.expand_dims(lax.gt(least, limit), (rank - 2, rank - 1))
    return rounded(pick(single, x, spread(literal(math.nan, aval_of(x).dtype), shape)), dtype)


# --------------------------------------------------------------------------------- square roots


def _vanishing_as_one(t: Any) -> tuple[Any, Any]:
    """Triangular matrices with ones for zeros on the diagonal; and where these were."""
    size = aval_of(t).shape[-1]
    zero = lax.eq(t, zeros_of(t))
    zero = lax.bitwise_and(zero, spread(on_diagonal(size, size), aval_of(t).shape))
    ones = spread(literal(1, aval_of(t).dtype), aval_of(t).shape)
    rank = aval_of(t).ndim
    return pick(zero, ones, t), lax.expand_dims(lax.reduce_or(zero, (rank - 1,)), (rank - 1,))


def _plus(t: Any, shift: Any) -> Any:
    """Matrices with a number, of shape ``(..., 1, 1)``, added on the diagonal."""
    moved = lax.add(t, spread(shift, aval_of(t).shape))
    return where_mask(on_diagonal(*aval_of(t).shape[-2:]), moved, t)


def _triangular_root(t: Any) -> Any:
    """The square root of upper triangular matrices.

    Source: Björck and Hammarling, "A Schur method for the square root of a matrix", 1983.
    """
    size = aval_of(t).shape[-1]
    roots = lax.sqrt(diagonal_column(t))
    row = lax.broadcasted_iota(INT32, aval_of(roots).shape, aval_of(roots).ndim - 2)

    def step(k: Any, r: Any) -> Any:
        shift = column_element(roots, k)
        system, vanishing = _vanishing_as_one(_plus(r, shift))
        above = substituted(system, before(k, column_of(t, k)), lower=False)
        # Without a root: two eigenvalues zero, and something that couples them.
        wrong = lax.bitwise_and(vanishing, lax.ne(above, zeros_of(above)))
        above = pick(wrong, spread(literal(math.nan, above.dtype), above.shape), above)
        here = lax.eq(row, convert(k, INT32))
        return pick(here, spread(shift, above.shape), above)

    return each_column(size, step, zeros_of(t))


def _root_and_form(a: Any) -> tuple[Any, Any, Any]:
    t, z = lax.linalg.schur(a)
    r = _triangular_root(t)
    return _sandwich(z, r, z), r, z


@custom_jvp
def _root(a: Any) -> Any:
    return _root_and_form(a)[0]


@_root.defjvp
def _changed_root(primals: Any, tangents: Any) -> Any:
    """The derivative ``d`` of the root ``x`` solves ``x @ d + d @ x = change``."""
    (a,), (change,) = primals, tangents
    x = _root(a)
    _, r, z = _root_and_form(lax.stop_gradient(a))
    return x, _sylvester(x, x, change, *_by_schur((r, z), (r, z)))


@compiled_with("blocksize")
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The principal square roots of matrices: ``x @ x = A``.

    Args:
        A: square matrices of shape ``(..., n, n)``.
        blocksize: must be 1; a method by blocks is not implemented.

    Returns:
        A complex array of the shape of `A` (SciPy's is real where it can be); nan where there is no
        root. It has all derivatives where no two eigenvalues of the root add up to zero. Only
        available on the CPU.

    Raises:
        ValueError: the matrices are not square, or `blocksize` is not positive.
        NotImplementedError: `blocksize` is larger than 1.

    Differs:
        Stacks of matrices are taken, and singular matrices that have a root.

        >>> from dovetail.scipy import linalg
        >>> print(linalg.sqrtm(jnp.zeros((2, 1, 1))).shape)
        (2, 1, 1)

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> print(linalg.sqrtm(jnp.array([[4., 5.], [0., 9.]])).real)
        [[2. 1.]
         [0. 3.]]
    """
    function = "scipy.linalg.sqrtm"
    size = integer(function, "blocksize", blocksize)
    if size < 1:
        raise ValueError(f"{function}: blocksize must be positive, got {size}")
    if size > 1:
        raise NotImplementedError(
            f"{function}: blocksize must be 1, because a method by blocks is not implemented, got "
            f"{size}"
        )
    x, _ = matrix_operand(function, A, "A", square=True)
    x = as_complex(x)
    return _root(x) if aval_of(x).size else x


# ------------------------------------------------------------------------------ other functions


def _parlett(t: Any, values: Any) -> Any:
    """A function of upper triangular matrices from its values at the eigenvalues.

    Source: Parlett, "A recurrence among the elements of functions of triangular matrices", 1976.
    Column k of ``t @ f = f @ t`` is a triangular system for the column of ``f``.
    """
    size = aval_of(t).shape[-1]
    f_values, t_values = as_columns(values), diagonal_column(t)
    strict = kept_in_triangle(t, offset=1)
    real = real_dtype(aval_of(t).dtype)
    rank = aval_of(t).ndim
    scale = lax.reduce_max(lax.abs(t), (rank - 2, rank - 1))
    scale = lax.mul(scale, spread(literal(float(np.finfo(real).eps), real), scale.shape))
    linked = lax.gt(lax.abs(strict), spread(lax.expand_dims(scale, (rank - 2, rank - 1)), t.shape))
    column = lax.broadcasted_iota(INT32, aval_of(t).shape, rank - 1)
    row = lax.broadcasted_iota(INT32, aval_of(f_values).shape, rank - 2)

    def step(k: Any, f: Any) -> Any:
        k = convert(k, INT32)
        above = before(k, column_of(t, k))
        f_k, t_k = column_element(f_values, k), column_element(t_values, k)
        right = before(k, product(_plus(f, lax.neg(f_k)), above))
        system, vanishing = _vanishing_as_one(_plus(t, lax.neg(t_k)))
        # Rows from k on are of no concern: their right-hand sides are zero.
        x = substituted(system, right, lower=False)
        # Equal eigenvalues give a derivative, which is not known here, if anything couples them.
        to_others = lax.reduce_or(lax.bitwise_and(linked, lax.le(column, k)), (rank - 1,))
        from_others = lax.reduce_or(
            lax.bitwise_and(linked, lax.eq(column, k)), (rank - 2, rank - 1)
        )
        coupled = lax.bitwise_and(
            lax.expand_dims(to_others, (rank - 1,)),
            spread(lax.expand_dims(from_others, (rank - 2, rank - 1)), row.shape),
        )
        inside = lax.lt(row, k)
        wrong = lax.bitwise_and(lax.bitwise_and(vanishing, coupled), inside)
        x = pick(wrong, spread(literal(math.nan, x.dtype), x.shape), x)
        return pick(lax.eq(row, k), spread(f_k, x.shape), x)

    return each_column(size, step, zeros_of(t))


@compiled
def _form(a: Any) -> tuple[Any, Any, Any]:
    t, z = lax.linalg.schur(a)
    return t, z, diagonal(t)


@compiled
def _from_form(t: Any, z: Any, values: Any) -> tuple[Any, Any]:
    """Functions of matrices, and estimates of their relative errors."""
    f = _parlett(t, values)
    size, rank = aval_of(t).shape[-1], aval_of(t).ndim
    real = real_dtype(aval_of(t).dtype)
    precision = float(np.finfo(real).eps)
    eigenvalues = diagonal(t)
    shape = aval_of(t).shape
    gaps = lax.abs(
        lax.sub(spread(as_columns(eigenvalues), shape), _spread_rows(eigenvalues, shape))
    )
    infinite = spread(literal(math.inf, real), shape)
    gaps = where_mask(on_diagonal(size, size), infinite, gaps)
    least = lax.reduce_min(gaps, (rank - 2, rank - 1))
    strict = lax.abs(kept_in_triangle(t, offset=1))
    norm = lax.reduce_max(lax.reduce_sum(strict, (rank - 2,)), (rank - 2,))
    zero, one, unit = (spread(literal(v, real), norm.shape) for v in (0, 1, precision))
    ratio = pick(lax.gt(norm, zero), lax.div(norm, least), zero)
    error = lax.min(lax.max(lax.mul(ratio, unit), unit), one)
    sound = lax.reduce_and(lax.is_finite(lax.abs(f)), (rank - 2, rank - 1))
    error = pick(sound, error, spread(literal(math.inf, real), error.shape))
    return _sandwich(z, f, z), error


def _spread_rows(values: Any, shape: tuple[int, ...]) -> Any:
    """Vectors as rows of matrices of a shape."""
    return spread(as_rows(values), shape)


def funm(
    A: ArrayLike, func: Callable[[Array], Array], disp: bool = True
) -> Array | tuple[Array, Array]:
    """Functions of matrices, from a function of numbers, by the Schur form.

    Args:
        A: square matrices of shape ``(..., n, n)``.
        func: a function of complex arrays that works element by element.
        disp: if False, estimates of errors are returned, too. Nothing is printed.

    Returns:
        A complex array of the shape of `A`; or the pair of it and a real array of shape ``(...)``
        that estimates the relative error, infinite where elements are not finite. It is less
        accurate the closer eigenvalues are, and nan where equal ones are not independent. For
        exponentials and square roots use `expm` and `sqrtm`. It has derivatives where eigenvalues
        differ. Only available on the CPU.

    Raises:
        ValueError: the matrices are not square, or `func` changes the shape.
        TypeError: `func` is no function.

    Differs:
        Where equal eigenvalues ask for a derivative of `func`, the result is nan; JAX's and SciPy's
        has zeros there.

        >>> from dovetail.scipy import linalg
        >>> print(linalg.funm(jnp.array([[1., 1.], [0., 1.]]), jnp.exp)[0, 1])
        (nan+nanj)

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> print(linalg.funm(jnp.array([[1., 5.], [0., 2.]]), jnp.square).real)
        [[ 1. 15.]
         [ 0.  4.]]
    """
    function = "scipy.linalg.funm"
    require_callable(function, "func", func)
    x, _ = matrix_operand(function, A, "A", square=True)
    x = as_complex(x)

    def values_at(eigenvalues: Any) -> Any:
        values = array_like(func(eigenvalues), function, "func(values)")
        if aval_of(values).shape != aval_of(eigenvalues).shape:
            raise ShapeError(
                f"{function}: func must work element by element, got the shape "
                f"{aval_of(values).shape} for {aval_of(eigenvalues).shape}"
            )
        return convert(values, aval_of(eigenvalues).dtype)

    @custom_jvp
    def applied(x: Any) -> Any:
        t, z, eigenvalues = _form(x)
        return _from_form(t, z, values_at(eigenvalues))

    @applied.defjvp
    def changed(primals: Any, tangents: Any) -> Any:
        """Source: Daleckii and Krein; Higham, "Functions of Matrices", theorem 3.11."""
        (x,), (change,) = primals, tangents
        w, v = lax.linalg.eig(x, compute_left_eigenvectors=False, enable_eigvec_derivs=True)
        ones = spread(literal(1, aval_of(w).dtype), aval_of(w).shape)
        values, slopes = jvp(values_at, (w,), (ones,))
        shape = aval_of(x).shape
        moved = lax.sub(spread(as_columns(w), shape), _spread_rows(w, shape))
        rise = lax.sub(spread(as_columns(values), shape), _spread_rows(values, shape))
        equal = lax.eq(moved, zeros_of(moved))
        run = pick(equal, spread(literal(1, aval_of(w).dtype), shape), moved)
        factors = pick(equal, _spread_rows(slopes, shape), lax.div(rise, run))
        inner = lax.mul(factors, product(solution(v, change), v))
        outer = product(v, inner)
        back = matrix_transpose(solution(matrix_transpose(v), matrix_transpose(outer)))
        result, error = applied(x)
        return (result, error), (back, zeros_of(error))

    if not aval_of(x).size:
        errors = lax.full(aval_of(x).shape[:-2], 0, real_dtype(aval_of(x).dtype))
        return x if disp else (x, errors)
    result, error = applied(x)
    return result if disp else (result, error)
