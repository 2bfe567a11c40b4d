"""Linear equations, inverses and pseudoinverses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from dovetail import custom_jvp, jvp, lax
from dovetail.errors import ConcretizationTypeError, ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    broadcast_result,
    canonical_axes,
    convert,
    counted,
    integer,
    literal,
    same_dtype,
    weak_of,
)
from dovetail.extend.avals import Tracer, aval_of
from dovetail.extend.matrices import (
    diagonal,
    geqrf_p,
    identity,
    matrix_adjoint,
    product,
    real_dtype,
    rows_in_order,
    scaled_columns,
    solve_triangular,
)
from dovetail.lax import custom_linear_solve
from dovetail.numpy.compiled import compiled, compiled_with, plain
from dovetail.numpy.conditions import pick, spread
from dovetail.numpy.linalg.decompositions import checked_matrices, factored, matrix_operand, rounded
from dovetail.numpy.matrices import triu
from dovetail.numpy.shapes import permuted, reshaped
from dovetail.numpy.sorting import argsort
from dovetail.typing import Array, ArrayLike

# ---------------------------------------------------------------------------------- square matrices


def solution(a: Any, b: Any) -> Any:
    """``a^-1 @ b`` for matrices of one dtype with equal batch dimensions.

    Derivatives reuse the same factors.
    """
    weak = weak_of(a) and weak_of(b)
    if not aval_of(b).size:
        return convert(b, aval_of(b).dtype, weak)
    packed, _, permutation = lax.linalg.lu(lax.stop_gradient(a))

    def solve(_: Any, y: Any) -> Any:
        y = solve_triangular(packed, rows_in_order(y, permutation), unit_diagonal=True)
        return solve_triangular(packed, y, lower=False)

    def solve_transposed(_: Any, y: Any) -> Any:
        y = solve_triangular(packed, y, lower=False, transpose_a=True)
        y = solve_triangular(packed, y, unit_diagonal=True, transpose_a=True)
        return rows_in_order(y, plain(argsort)(permutation))

    x = custom_linear_solve(lambda x: product(a, x), b, solve, solve_transposed)
    return convert(x, aval_of(x).dtype, weak)


def inverse(a: Any) -> Any:
    """``a^-1`` for matrices in a dtype for factorisation."""
    shape = aval_of(a).shape
    eye = identity(shape[-1], shape[-1], aval_of(a).dtype)
    return solution(a, spread(eye, shape))


@compiled
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solve linear equations ``a @ x = b``.

    Args:
        a: square matrices of shape ``(..., n, n)``.
        b: right-hand sides: matrices of shape ``(..., n, k)``, whose other dimensions broadcast
            with those of `a`; or one vector of shape ``(n,)`` for all matrices.

    Returns:
        An array of shape ``(..., n, k)`` or ``(..., n)``. For singular matrices, elements are
        infinite or nan; NumPy raises an error.

    Raises:
        ValueError: the matrices in `a` are not square, or `b` has the wrong number of rows.
        TypeError: the other dimensions do not broadcast.

    Example:
        >>> import dovetail.numpy as jnp
        >>> a = jnp.array([[2., 0.], [1., 4.]])
        >>> print(jnp.linalg.solve(a, jnp.array([2., 9.])))
        [1. 2.]
    """
    return _solved("linalg.solve", a, b)


def _solved(function: str, a: Any, b: Any) -> Any:
    left, right = same_dtype([array_like(a, function, "a"), array_like(b, function, "b")])
    left, dtype = factored(function, checked_matrices(function, left, "a", square=True))
    right, _ = factored(function, right, "b")
    (*stack, _, size), shape = aval_of(left).shape, aval_of(right).shape
    if not shape:
        raise ValueError(f"{function}: b must be a vector or matrices, got a scalar")
    if shape[0 if len(shape) == 1 else -2] != size:
        advice = ""
        if len(shape) > 1 and shape[-1] == size:
            advice = "; write b[..., None] for a stack of vectors, and [..., 0] of the result"
        raise ValueError(
            f"{function}: b must have {counted(size, 'row')}, as the matrices in a, got the shapes "
            f"{aval_of(left).shape} of a and {shape} of b{advice}"
        )
    if len(shape) == 1:
        columns = _stacked(function, left, reshaped(right, (size, 1)), tuple(stack), ())
        return rounded(reshaped(columns, aval_of(columns).shape[:-1]), dtype)
    return rounded(_stacked(function, left, right, tuple(stack), shape[:-2]), dtype)


def _stacked(function: str, a: Any, b: Any, of_a: tuple[int, ...], of_b: tuple[int, ...]) -> Any:
    """Solutions for stacks of matrices and right-hand sides that broadcast."""
    if of_a == of_b:
        return solution(a, b)
    size, count = aval_of(b).shape[-2:]
    stack = broadcast_result(function, (of_a, of_b), explicit=True)
    if math.prod(of_a) == 1:
        # One matrix for all right-hand sides: merge these as columns of one.
        rank = len(of_b)
        b = permuted(b, (rank, *range(rank), rank + 1))
        merged = solution(reshaped(a, (size, size)), reshaped(b, (size, math.prod(of_b) * count)))
        solutions = permuted(
            reshaped(merged, (size, *of_b, count)), (*range(1, rank + 1), 0, rank + 1)
        )
        return spread(solutions, (*stack, size, count))
    return solution(spread(a, (*stack, size, size)), spread(b, (*stack, size, count)))


@compiled
def inv(a: ArrayLike) -> Array:
    """The inverses of square matrices.

    To solve equations, use `solve`, which is faster and more accurate.

    Args:
        a: matrices of shape ``(..., n, n)``.

    Returns:
        An array of the shape of `a`. For singular matrices, elements are infinite or nan; NumPy
        raises an error.

    Raises:
        ValueError: the matrices are not square.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.inv(jnp.array([[2., 0.], [0., 4.]])))
        [[0.5  0.  ]
         [0.   0.25]]
    """
    x, dtype = matrix_operand("linalg.inv", a, square=True)
    return rounded(inverse(x), dtype)


# ------------------------------------------------------------------------------ tensors as matrices


@compiled_with("ind")
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of a tensor, viewed as a matrix whose rows are its first dimensions.

    Args:
        a: array whose first `ind` dimensions have as many elements as the others.
        ind: number of dimensions that make up the rows.

    Returns:
        An array of shape ``a.shape[ind:] + a.shape[:ind]``; its `tensordot` with `a`, over `ind`
        dimensions, is an identity.

    Raises:
        ValueError: `ind` is not positive, or the numbers of elements differ.

    Example:
        >>> import dovetail.numpy as jnp
        >>> a = jnp.eye(6).reshape(2, 3, 6)
        >>> jnp.linalg.tensorinv(a).shape
        (6, 2, 3)
    """
    count = integer("linalg.tensorinv", "ind", ind)
    if count < 1:
        raise ValueError(f"linalg.tensorinv: ind must be positive, got {count}")
    x, dtype = factored("linalg.tensorinv", array_like(a, "linalg.tensorinv", "a"))
    shape = aval_of(x).shape
    rows, columns = shape[:count], shape[count:]
    size = math.prod(columns)
    if math.prod(rows) != size:
        raise ValueError(
            f"linalg.tensorinv: the first {counted(count, 'dimension')} of a must have as many "
            f"elements as the others, got the shape {shape}; choose another ind"
        )
    return rounded(reshaped(inverse(reshaped(x, (size, size))), columns + rows), dtype)


@compiled_with("axes")
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Solve the tensor equation ``tensordot(a, x, x.ndim) = b``.

    Args:
        a: array of shape ``b.shape + x.shape``, where `x` has as many elements as `b`.
        b: array.
        axes: dimensions of `a` to move to its end first, in this order.

    Returns:
        The array ``x``.

    Raises:
        ValueError: the shapes do not match.

    Example:
        >>> import dovetail.numpy as jnp
        >>> a = 2 * jnp.eye(6).reshape(6, 2, 3)
        >>> print(jnp.linalg.tensorsolve(a, jnp.arange(6.)))
        [[0.  0.5 1. ]
         [1.5 2.  2.5]]
    """
    function = "linalg.tensorsolve"
    left, right = same_dtype([array_like(a, function, "a"), array_like(b, function, "b")])
    left, dtype = factored(function, left)
    right, _ = factored(function, right, "b")
    if axes is not None:
        rank = aval_of(left).ndim
        moved = canonical_axes(function, axes, rank, "axes")
        left = permuted(left, (*(d for d in range(rank) if d not in moved), *moved))
    shape, rows_shape = aval_of(left).shape, aval_of(right).shape
    columns = shape[len(rows_shape) :]
    size = math.prod(columns)
    if shape[: len(rows_shape)] != rows_shape or math.prod(rows_shape) != size:
        raise ValueError(
            f"{function}: a must have the shape of b and then that of the solution, which has as "
            f"many elements, got the shape {shape} of a"
            f"{' with axes moved to its end' if axes is not None else ''} and {rows_shape} of b"
        )
    x = solution(reshaped(left, (size, size)), reshaped(right, (size, 1)))
    return rounded(reshaped(x, columns), dtype)


# ------------------------------------------------------------------------- matrices of any rank


def squares(x: Any) -> Any:
    """The squared magnitudes of numbers."""
    if dtypes.kind_of(aval_of(x).dtype) == "c":
        return lax.add(lax.square(lax.real(x)), lax.square(lax.imag(x)))
    return lax.square(x)


@custom_jvp
def _pseudoinverse(a: Any, cutoff: Any) -> tuple[Any, Any]:
    """Pseudoinverses and singular values.

    Args:
        a: matrices.
        cutoff: the largest ratio to the largest singular value that counts as zero, for each
            matrix.
    """
    u, s, vh = lax.linalg.svd(a, full_matrices=False)
    scaled = scaled_columns(matrix_adjoint(vh), _inverses(s, cutoff))
    return product(scaled, matrix_adjoint(u)), s


@_pseudoinverse.defjvp
def _changed_pseudoinverse(primals: Any, tangents: Any) -> Any:
    """The derivatives among matrices of the same rank.

    Source: Golub and Pereyra, "The differentiation of pseudo-inverses and nonlinear least squares
    problems whose variables separate", 1973, equation 4.12.
    """
    (a, cutoff), (change, _) = primals, tangents
    p, s = _pseudoinverse(a, cutoff)
    back, q = matrix_adjoint(change), matrix_adjoint(p)
    # The order of products avoids any intermediate with the larger size in both dimensions.
    if a.shape[-2] >= a.shape[-1]:
        left = product(product(p, q), lax.sub(back, product(product(back, a), p)))
        right = product(product(lax.sub(back, product(product(p, a), back)), q), p)
    else:
        left = product(p, product(q, lax.sub(back, product(back, product(a, p)))))
        right = product(lax.sub(back, product(p, product(a, back))), product(q, p))
    around = product(product(p, change), p)
    u, _, vh = lax.linalg.svd(a, full_matrices=False)
    shifts = diagonal(product(product(matrix_adjoint(u), change), matrix_adjoint(vh)))
    shifts = lax.real(shifts) if dtypes.kind_of(aval_of(shifts).dtype) == "c" else shifts
    return (p, s), (lax.sub(lax.add(left, right), around), shifts)


@custom_jvp
def _fitted(a: Any, columns: Any, cutoff: Any) -> tuple[Any, Any]:
    """The solutions of least squares, and the singular values of a matrix, with `cutoff` as above.

    Of a matrix with no fewer rows than columns, the triangular factor has the same singular values.
    Where that is far from singular, as most are, its equations are solved as they are.
    """
    rows, size = aval_of(a).shape
    if rows < size or not size:
        u, s, vh = lax.linalg.svd(a, full_matrices=False)
        return _fitted_by(u, s, vh, columns, cutoff), s
    if aval_of(columns).shape[1] == 1:
        # It becomes what it is turned into beside the factor. Of several, one with NaN would spoil
        # others.
        packed, _ = geqrf_p.bind(lax.concatenate([a, columns], 1))
        packed = lax.slice_in_dim(packed, 0, size)
        turned = lax.slice_in_dim(packed, size, size + 1, axis=1)
        packed = lax.slice_in_dim(packed, 0, size, axis=1)
    else:
        packed, taus = geqrf_p.bind(a)
        turned = lax.linalg.ormqr(packed, taus, columns, transpose=True)
        packed, turned = (lax.slice_in_dim(each, 0, size) for each in (packed, turned))
    factor = triu(packed)
    unit = identity(size, size, factor.dtype)
    x, inverse = (solve_triangular(factor, each, lower=False) for each in (turned, unit))
    # The Frobenius norm is a bound of the largest singular value, unless it underflows.
    norms = [lax.reduce_sum(squares(each), (0, 1)) for each in (factor, inverse)]
    least = literal(float(np.finfo(norms[0].dtype).tiny) ** 0.5, norms[0].dtype)
    bound = lax.mul(lax.mul(*norms), lax.square(cutoff))
    regular = lax.lt(bound, literal(1, bound.dtype)) & lax.gt(lax.min(*norms), least)

    def by_singular_values(_: Any) -> Any:
        return _fitted_by(*lax.linalg.svd(factor), turned, cutoff)

    x = lax.cond(regular, lambda x: x, by_singular_values, x)
    return x, lax.linalg.svd(factor, compute_uv=False)


def _fitted_by(u: Any, s: Any, vh: Any, columns: Any, cutoff: Any) -> Any:
    """The solutions of least squares by singular vectors and values."""
    factors = lax.expand_dims(_inverses(s, cutoff), (1,))
    turned = product(matrix_adjoint(u), columns)
    scaled = lax.mul(turned, spread(convert(factors, aval_of(turned).dtype), aval_of(turned).shape))
    return product(matrix_adjoint(vh), scaled)


@_fitted.defjvp
def _changed_fit(primals: Any, tangents: Any) -> Any:
    """The derivatives by those of the pseudo-inverse."""

    def fitted(a: Any, columns: Any, cutoff: Any) -> tuple[Any, Any]:
        inverse, s = _pseudoinverse(a, cutoff)
        return product(inverse, columns), s

    return jvp(fitted, primals, tangents)


def _inverses(s: Any, cutoff: Any) -> Any:
    """The inverses of singular values, zero for those that count as zero."""
    dtype = aval_of(s).dtype
    # A nan does not count as zero.
    vanishing = lax.le(s, _limits(s, cutoff))
    factors = lax.div(literal(1, dtype), pick(vanishing, literal(1, dtype), s))
    return pick(vanishing, literal(0, dtype), factors)


def _limits(s: Any, cutoff: Any) -> Any:
    """The threshold up to which values count as zero, as a column for each matrix.

    The largest of them is the first one.
    """
    last = aval_of(s).ndim - 1
    cutoffs = lax.expand_dims(cutoff, (last,))
    if not aval_of(s).size:
        return lax.mul(cutoffs, cutoffs)
    return lax.mul(cutoffs, lax.slice_in_dim(s, 0, 1, axis=last))


def _cutoff(function: str, argument: str, given: Any, x: Any, factor: int) -> Any:
    """The ratio of singular values that counts as zero, for each matrix in `x`.

    Args:
        function: name of the user's function.
        argument: name of the argument.
        given: the argument: None, a number, or one for each matrix.
        x: the matrices.
        factor: factor of the default, which is this times the larger size and the precision.
    """
    *stack, rows, columns = aval_of(x).shape
    dtype = real_dtype(aval_of(x).dtype)
    if given is None:
        precision = float(np.finfo(dtype).eps)
        return spread(literal(factor * max(rows, columns) * precision, dtype), tuple(stack))
    ratio = array_like(given, function, argument)
    if dtypes.kind_of(aval_of(ratio).dtype) not in ("i", "u", "f"):
        raise TypeError(f"{function}: {argument} must be a real number, got {ratio.dtype}")
    if broadcast_result(function, (aval_of(ratio).shape, tuple(stack)), explicit=True) != (*stack,):
        raise ValueError(
            f"{function}: {argument} must be a number or one for each matrix, got the shape "
            f"{aval_of(ratio).shape} for a stack of shape {tuple(stack)}"
        )
    return spread(convert(ratio, dtype), tuple(stack))


@compiled_with("hermitian")
def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: ArrayLike | None = None,
) -> Array:
    """The Moore-Penrose pseudoinverses of matrices.

    Args:
        a: matrices of shape ``(..., m, n)``.
        rtol: the largest ratio to the largest singular value of a matrix that counts as zero, a
            number or one for each matrix. If None, ``10 * max(m, n)`` times the precision, unlike
            NumPy's.
        hermitian: whether to use ``(a + a^H) / 2`` as a Hermitian matrix.
        rcond: another name for `rtol`.

    Returns:
        An array of shape ``(..., n, m)``. Its derivatives are those among matrices of the same
        rank.

    Raises:
        ValueError: both `rtol` and `rcond` are given, or Hermitian matrices are not square.

    Differs:
        It has a derivative also where singular values are equal; so has `lstsq`.

        >>> print(dt.grad(lambda a: jnp.linalg.pinv(a).sum())(jnp.eye(2)))
        [[-1. -1.]
         [-1. -1.]]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.pinv(jnp.array([[2., 0.], [0., 0.], [0., 4.]])))
        [[0.5  0.   0.  ]
         [0.   0.   0.25]]
    """
    if rtol is not None and rcond is not None:
        raise ValueError("linalg.pinv: rtol and rcond are the same, give one of them only")
    x, dtype = matrix_operand("linalg.pinv", a, square=bool(hermitian))
    if hermitian:
        half = literal(0.5, aval_of(x).dtype)
        x = lax.mul(lax.add(x, matrix_adjoint(x)), half)
    name, tolerance = ("rtol", rtol) if rcond is None else ("rcond", rcond)
    inverses, _ = _pseudoinverse(x, _cutoff("linalg.pinv", name, tolerance, x, 10))
    return rounded(inverses, dtype)


@compiled_with("hermitian")
def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """The rank of matrices: the number of singular values that count as nonzero.

    Args:
        M: matrices of shape ``(..., m, n)``. The rank of a vector or scalar is 1 unless all
            elements are zero.
        rtol: the largest ratio to the largest singular value of a matrix that counts as zero, a
            number or one for each matrix. If None, ``max(m, n)`` times the precision.
        hermitian: whether to use ``(M + M^H) / 2`` as a Hermitian matrix, which is faster.
        tol: the largest singular value that counts as zero, instead of `rtol`.

    Returns:
        An integer array of shape ``(...)``.

    Raises:
        ValueError: both `rtol` and `tol` are given, or Hermitian matrices are not square.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.matrix_rank(jnp.array([[1., 2.], [2., 4.]])))
        1
    """
    function = "linalg.matrix_rank"
    if rtol is not None and tol is not None:
        raise ValueError(f"{function}: give one of rtol and tol only")
    x, _ = factored(function, array_like(M, function, "M"), "M")
    integers = dtypes.default_dtype("i")
    if aval_of(x).ndim < 2:
        some = lax.reduce_or(lax.ne(x, literal(0, aval_of(x).dtype)), tuple(range(aval_of(x).ndim)))
        return convert(some, integers)
    if hermitian:
        _, w = lax.linalg.eigh(checked_matrices(function, x, "M", square=True))
        s = lax.rev(lax.sort(lax.abs(w)), (aval_of(w).ndim - 1,))
    else:
        s = lax.linalg.svd(x, compute_uv=False)
    name, tolerance = ("rtol", rtol) if tol is None else ("tol", tol)
    cutoff = _cutoff(function, name, tolerance, x, 1)
    limits = _limits(s, cutoff) if tol is None else lax.expand_dims(cutoff, (s.ndim - 1,))
    return lax.reduce_sum(convert(lax.gt(s, spread(limits, s.shape)), integers), (s.ndim - 1,))


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: ArrayLike | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Solve linear equations ``a @ x = b`` by least squares, with solutions of minimum norm.

    Args:
        a: matrix of shape ``(m, n)``.
        b: right-hand sides, of shape ``(m,)`` or ``(m, k)``.
        rcond: the largest ratio to the largest singular value of `a` that counts as zero. If None,
            ``max(m, n)`` times the precision; if negative, the precision.
        numpy_resid: whether the residuals have the shape ``(0,)``, as in NumPy, if the rank is less
            than n or m is not greater. This shape depends on values, so it is not available under
            `jit`.

    Returns:
        A tuple of the solutions, of shape ``(n,)`` or ``(n, k)``; the sums of squared residuals, of
        shape ``(1,)`` or ``(k,)``; the rank of `a`, an integer; and its singular values, of shape
        ``(min(m, n),)``. Derivatives are those among matrices of the same rank.

    Raises:
        ValueError: the shapes do not match.
        ConcretizationTypeError: `numpy_resid` is used under `jit`.

    Differs:
        A singular value that equals the cut-off counts as zero.

        >>> a = jnp.diag(jnp.array([1.0, 0.5]))
        >>> _, _, rank, _ = jnp.linalg.lstsq(a, jnp.ones(2), rcond=0.5)
        >>> print(rank)
        1

        Singular values are real, also where there are none.

        >>> print(jnp.linalg.lstsq(jnp.ones((0, 2), "complex64"), jnp.ones(0))[3].dtype)
        float32

        Sums of squares have a derivative where nothing is left to fit, too.

        >>> residuals = lambda a: jnp.linalg.lstsq(a, jnp.ones(1))[1].sum()
        >>> print(dt.grad(residuals)(jnp.array([[0.5]])))
        [[0.]]

    Example:
        >>> import dovetail.numpy as jnp
        >>> a = jnp.array([[1., 0.], [1., 1.], [1., 2.]])
        >>> x, residuals, rank, s = jnp.linalg.lstsq(a, jnp.array([1., 3., 5.]))
        >>> print(x.round(4), rank)
        [1. 2.] 2
    """
    x, residuals, rank, s = _least_squares(a, b, rcond)
    if numpy_resid:
        if isinstance(rank, Tracer) and rank.concrete() is None:
            raise ConcretizationTypeError(
                rank, "the rank of a, on which linalg.lstsq with numpy_resid=True depends"
            )
        rows, columns = aval_of(a).shape
        if rows <= columns or int(rank) < columns:
            residuals = lax.slice_in_dim(residuals, 0, 0)
    return x, residuals, rank, s


@compiled
def _least_squares(a: Any, b: Any, rcond: Any) -> tuple[Any, Any, Any, Any]:
    function = "linalg.lstsq"
    left, right = same_dtype([array_like(a, function, "a"), array_like(b, function, "b")])
    left, dtype = factored(function, left)
    right, _ = factored(function, right, "b")
    shape, right_shape = aval_of(left).shape, aval_of(right).shape
    if len(shape) != 2 or len(right_shape) not in (1, 2) or right_shape[0] != shape[0]:
        raise ShapeError(
            f"{function}: a must be a matrix, and b a vector or a matrix with as many rows, got "
            f"the shapes {shape} and {right_shape}; for stacks of them use dovetail.vmap"
        )
    columns = right if len(right_shape) == 2 else reshaped(right, (*right_shape, 1))
    cutoff = _cutoff(function, "rcond", rcond, left, 1)
    precision = literal(float(np.finfo(aval_of(cutoff).dtype).eps), aval_of(cutoff).dtype)
    cutoff = pick(lax.lt(cutoff, literal(0, aval_of(cutoff).dtype)), precision, cutoff)
    x, s = _fitted(left, columns, cutoff)
    rank = lax.reduce_sum(
        convert(lax.gt(s, spread(_limits(s, cutoff), s.shape)), dtypes.default_dtype("i")), (0,)
    )
    residuals = lax.reduce_sum(squares(lax.sub(columns, product(left, x))), (0,))
    x = x if len(right_shape) == 2 else reshaped(x, (shape[1],))
    s = convert(s, aval_of(s).dtype, weak_of(left) and weak_of(right))
    return rounded(x, dtype), rounded(residuals, dtype), rank, rounded(s, dtype)
