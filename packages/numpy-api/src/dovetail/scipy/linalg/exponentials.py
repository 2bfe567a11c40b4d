"""Exponentials of matrices and their derivatives."""

from __future__ import annotations

import math
from typing import Any

from dovetail import jvp, lax
from dovetail.errors import ShapeError
from dovetail.extend.arguments import array_like, convert, integer, literal, same_dtype
from dovetail.extend.avals import aval_of
from dovetail.extend.matrices import identity, part, product, real_dtype, zeros_of
from dovetail.extend.matrices import solve_triangular as substituted
from dovetail.numpy.compiled import compiled_with
from dovetail.numpy.conditions import pick, spread
from dovetail.numpy.linalg.decompositions import (
    checked_matrices,
    factored,
    matrix_operand,
    rounded,
)
from dovetail.numpy.linalg.solvers import solution
from dovetail.scipy.linalg.matrix_operands import choice, kept_in_triangle
from dovetail.typing import Array, ArrayLike

# Degrees of Padé approximants, and the norms up to which their error is below the precision.
# Source: Higham, "The scaling and squaring method for the matrix exponential revisited", 2005,
# table 2.3 and, for single precision, section 2.
_DEGREES = {4: (7, 3.925724783138660), 8: (13, 5.371920351148152)}


def _coefficients(degree: int) -> list[int]:
    """The coefficients of the numerator of the diagonal Padé approximant, the last one 1.

    Source: Higham 2005, equation 2.2.
    """
    return [
        math.factorial(2 * degree - j) // (math.factorial(degree - j) * math.factorial(j))
        for j in range(degree + 1)
    ]


def _sum(terms: list[tuple[float, Any]]) -> Any:
    """A sum of matrices with factors."""
    total = None
    for factor, x in terms:
        term = lax.mul(x, spread(literal(factor, aval_of(x).dtype), aval_of(x).shape))
        total = term if total is None else lax.add(total, term)
    return total


def _approximated(a: Any, degree: int, upper_triangular: bool) -> Any:
    """The Padé approximant of the exponential, by Higham 2005, equations 2.4 to 2.6."""
    b = _coefficients(degree)
    shape = aval_of(a).shape
    eye = spread(identity(shape[-1], shape[-1], aval_of(a).dtype), shape)
    a2 = product(a, a)
    a4 = product(a2, a2)
    a6 = product(a4, a2)
    odd = _sum([(b[7], a6), (b[5], a4), (b[3], a2), (b[1], eye)])
    even = _sum([(b[6], a6), (b[4], a4), (b[2], a2), (b[0], eye)])
    if degree == 13:
        odd = lax.add(odd, product(a6, _sum([(b[13], a6), (b[11], a4), (b[9], a2)])))
        even = lax.add(even, product(a6, _sum([(b[12], a6), (b[10], a4), (b[8], a2)])))
    odd = product(a, odd)
    numerator, denominator = lax.add(even, odd), lax.sub(even, odd)
    if upper_triangular:
        return substituted(denominator, numerator, lower=False)
    return solution(denominator, numerator)


def _norm(a: Any) -> Any:
    """The largest sum of magnitudes in a column, as matrices of one element."""
    rank = aval_of(a).ndim
    sums = lax.reduce_sum(lax.abs(lax.stop_gradient(a)), (rank - 2,))
    return lax.expand_dims(lax.reduce_max(sums, (rank - 2,)), (rank - 2, rank - 1))


def _exponential(a: Any, upper_triangular: bool, max_squarings: int) -> Any:
    """Exponentials of square matrices in a dtype for factorisation, by scaling and squaring.

    Everything but the numbers of squarings is differentiated as it stands.
    """
    shape, dtype = aval_of(a).shape, aval_of(a).dtype
    if not aval_of(a).size:
        return a
    if upper_triangular:
        a = kept_in_triangle(a)
    real = real_dtype(dtype)
    degree, limit = _DEGREES[real.itemsize]
    ratio = lax.div(_norm(a), spread(literal(limit, real), (*shape[:-2], 1, 1)))
    # Of nan and infinities the exponent is arbitrary; the result is nan by the arithmetic.
    one = spread(literal(1, real), aval_of(ratio).shape)
    exponent = lax.log2(lax.max(pick(lax.is_finite(ratio), ratio, one), one))
    most = spread(literal(max_squarings, real), aval_of(ratio).shape)
    count = lax.min(lax.ceil(exponent), most)
    # Up to twice the limit one squaring fewer than asked for loses a digit or two.
    excessive = lax.gt(lax.floor(exponent), most)
    scale = convert(lax.exp2(lax.neg(count)), dtype)
    x = _approximated(lax.mul(a, spread(scale, shape)), degree, upper_triangular)
    largest = lax.reduce_max(count, tuple(range(len(shape))))

    def squared(k: Any, x: Any) -> Any:
        done = lax.ge(convert(k, real), count)
        return pick(done, x, product(x, x))

    def body(k: Any, x: Any) -> Any:
        needed = lax.lt(convert(k, real), largest)
        return lax.cond(needed, lambda x: squared(k, x), lambda x: x, x)

    x = lax.fori_loop(0, max_squarings, body, x)
    return pick(excessive, spread(literal(math.nan, dtype), shape), x)


def _square(function: str, a: Any, argument: str) -> tuple[Any, Any]:
    return matrix_operand(function, a, argument, square=True)


@compiled_with("upper_triangular", "max_squarings")
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Exponentials of matrices.

    Source: Higham, "The scaling and squaring method for the matrix exponential revisited", 2005.

    Args:
        A: square matrices of shape ``(..., n, n)``.
        upper_triangular: whether they are upper triangular; the lower triangle is not read then.
        max_squarings: how often a scaled result may be squared. That takes matrices with norms up
            to ``2**max_squarings`` times 5.4, or 3.9 in single precision.

    Returns:
        An array of the shape of `A`, floating point or complex; nan for matrices with a norm above
        twice that limit. It has all derivatives.

    Raises:
        ValueError: the matrices are not square, or `max_squarings` is negative.

    Differs:
        Floats of 16 bits are computed in float32, and rounded; JAX refuses them.

        >>> from dovetail.scipy import linalg
        >>> print(linalg.expm(jnp.zeros((2, 2), "float16")))
        [[1. 0.]
         [0. 1.]]

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> print(linalg.expm(jnp.array([[0., 2.], [0., 0.]])).round(4))
        [[1. 2.]
         [0. 1.]]
    """
    function = "scipy.linalg.expm"
    most = integer(function, "max_squarings", max_squarings)
    if most < 0:
        raise ValueError(f"{function}: max_squarings must not be negative, got {most}")
    x, dtype = _square(function, A, "A")
    return rounded(_exponential(x, bool(upper_triangular), most), dtype)


@compiled_with("method", "compute_expm")
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Array | tuple[Array, Array]:
    """The Fréchet derivatives of exponentials of matrices.

    Args:
        A: square matrices of shape ``(..., n, n)``.
        E: their changes, of the same shape.
        method: "SPS" (or None) for the derivative of scaling and squaring (Al-Mohy and Higham,
            "Computing the Fréchet derivative of the matrix exponential", 2009), or "blockEnlarge"
            for the exponential of a matrix of twice the size, which is slower.
        compute_expm: whether to return the exponentials, too.

    Returns:
        The pair of the exponentials and their derivatives, or the derivatives alone, of the shape
        of `A`.

    Raises:
        ValueError: the matrices are not square or of different shapes, or `method` is not one of
            these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> from dovetail.scipy import linalg
        >>> a, e = jnp.zeros((2, 2)), jnp.array([[0., 1.], [2., 0.]])
        >>> print(linalg.expm_frechet(a, e, compute_expm=False).round(4))
        [[0. 1.]
         [2. 0.]]
    """
    function = "scipy.linalg.expm_frechet"
    choice(function, "method", method, (None, "SPS", "blockEnlarge"))
    x, change = same_dtype([array_like(A, function, "A"), array_like(E, function, "E")])
    x, dtype = factored(function, checked_matrices(function, x, "A", square=True), "A")
    change, _ = factored(function, change, "E")
    shape = aval_of(x).shape
    if aval_of(change).shape != shape:
        raise ShapeError(
            f"{function}: A and E must have one shape, got {shape} and {aval_of(change).shape}"
        )
    if method == "blockEnlarge":
        size, last = shape[-1], len(shape) - 1
        rows = [lax.concatenate(pair, last) for pair in ([x, change], [zeros_of(x), x])]
        both = _exponential(lax.concatenate(rows, last - 1), False, 16)
        top = part(both, rows=size)
        result, derivative = part(top, columns=size), part(top, columns=slice(size, 2 * size))
    else:
        result, derivative = jvp(lambda a: _exponential(a, False, 16), (x,), (change,))
    derivative = rounded(derivative, dtype)
    return (rounded(result, dtype), derivative) if compute_expm else derivative
