"""Determinants of matrices."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from dovetail import custom_jvp, jvp, lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import convert, literal, weak_of
from dovetail.extend.avals import aval_of
from dovetail.extend.matrices import (
    as_columns,
    as_rows,
    columns,
    diagonal,
    geqrf_p,
    identity,
    matrix_adjoint,
    matrix_transpose,
    on_diagonal,
    part,
    product,
    rows_in_order,
    scaled_columns,
    solve_triangular,
    where_mask,
    zeros_of,
)
from dovetail.numpy.compiled import compiled, compiled_with, plain
from dovetail.numpy.conditions import pick, spread
from dovetail.numpy.linalg.decompositions import matrix_operand, rounded
from dovetail.numpy.linalg.solvers import inverse
from dovetail.numpy.sorting import argsort
from dovetail.typing import Array, ArrayLike


class SlogdetResult(NamedTuple):
    """Signs and logarithms of determinants: the determinant is ``sign * exp(logabsdet)``.

    Attributes:
        sign: a number of magnitude one, or zero if the matrix is singular.
        logabsdet: the logarithm of the magnitude, minus infinity if the matrix is singular.
    """

    sign: Array
    logabsdet: Array


@compiled
def det(a: ArrayLike) -> Array:
    """The determinants of square matrices.

    Args:
        a: matrices of shape ``(..., n, n)``.

    Returns:
        An array of shape ``(...)``. The first and second derivatives are correct even for singular
        matrices. For n of 3 or less, and for nonsingular matrices, all derivatives are.

    Raises:
        ValueError: the matrices are not square.

    Differs:
        The first and second derivatives are right for every singular matrix; JAX's are zero
        where a pivot other than the last vanishes. Floats of 16 bits are factored in float32
        here and in the other functions of this module, and results are rounded.

        >>> print(dt.grad(jnp.linalg.det)(jnp.array([[0.0, 0.0], [0.0, 1.0]])))
        [[1. 0.]
         [0. 0.]]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linalg.det(jnp.array([[1., 2.], [3., 4.]])))
        -2.0
    """
    x, dtype = matrix_operand("linalg.det", a, square=True)
    return rounded(_small(x) if aval_of(x).shape[-1] <= 3 else _determinant(x), dtype)


_METHODS = (None, "lu", "qr")


@compiled_with("method")
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The signs and the logarithms of the magnitudes of determinants.

    Args:
        a: matrices of shape ``(..., n, n)``.
        method: factorisation to use: "lu" (or None), or "qr", which is slower and more accurate.

    Returns:
        The named tuple of ``sign``, of the dtype of `a` and of shape ``(...)``: 1 or -1, for
        complex matrices a number of magnitude one; and ``logabsdet``, real, of the same shape. For
        singular matrices they are zero and minus infinity, and derivatives are infinite or nan.

    Raises:
        ValueError: the matrices are not square, or `method` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> sign, logabsdet = jnp.linalg.slogdet(jnp.array([[0., 1.], [1., 0.]]))
        >>> print(sign, logabsdet)
        -1.0 0.0
    """
    if method not in _METHODS:
        raise ValueError(f'linalg.slogdet: method must be None, "lu" or "qr", got {method!r}')
    x, dtype = matrix_operand("linalg.slogdet", a, square=True)
    by = _logarithm_by_qr if method == "qr" else _logarithm
    results = [rounded(v, dtype) for v in by(x)]
    # As in JAX, which writes out the determinants of small matrices.
    weak = weak_of(x) and aval_of(x).shape[-1] in (1, 2)
    return SlogdetResult(*[convert(v, v.dtype, weak) for v in results])


def _small(x: Any) -> Any:
    """Determinants of matrices of up to three rows, by explicit formulas."""
    *stack, size = aval_of(x).shape[:-1]
    if not size:
        return lax.full(tuple(stack), 1, aval_of(x).dtype)
    rank = aval_of(x).ndim
    rows = [lax.index_in_dim(x, i, axis=rank - 2, keepdims=False) for i in range(size)]
    m = [[lax.index_in_dim(r, j, axis=rank - 2, keepdims=False) for j in range(size)] for r in rows]

    def minor(i: int, j: int) -> Any:
        return lax.sub(lax.mul(m[-2][i], m[-1][j]), lax.mul(m[-2][j], m[-1][i]))

    if size == 1:
        return convert(m[0][0], aval_of(x).dtype)
    if size == 2:
        return minor(0, 1)
    terms = [lax.mul(m[0][i], minor((i + 1) % 3, (i + 2) % 3)) for i in range(3)]
    return lax.add(lax.add(terms[0], terms[1]), terms[2])


@custom_jvp
def _determinant(x: Any) -> Any:
    packed, pivots, _ = lax.linalg.lu(x)
    pivot = diagonal(packed)
    return lax.mul(_product(pivot), _parity(pivots, aval_of(x).dtype))


@_determinant.defjvp
def _changed_determinant(primals: Any, tangents: Any) -> Any:
    (x,), (change,) = primals, tangents
    return _determinant(x), _trace_of_product(_adjugate(x), change)


def _product(x: Any) -> Any:
    """The products of the elements of vectors."""
    return lax.reduce_prod(x, (aval_of(x).ndim - 1,))


def _trace_of_product(x: Any, y: Any) -> Any:
    rank = aval_of(x).ndim
    return lax.reduce_sum(lax.mul(matrix_transpose(x), y), (rank - 2, rank - 1))


def _parity(pivots: Any, dtype: Any) -> Any:
    """Determinants of permutations given as successive exchanges of rows."""
    shape = aval_of(pivots).shape
    rows = lax.broadcasted_iota(aval_of(pivots).dtype, shape, len(shape) - 1)
    odd = convert(lax.ne(pivots, rows), dtype)
    return _product(lax.sub(literal(1, dtype), lax.mul(literal(2, dtype), odd)))


@custom_jvp
def _adjugate(x: Any) -> Any:
    """The adjugates (transposed cofactor matrices) of matrices of any rank.

    From the QR factorisation with pivoting, ``x = q @ [[r, c], [0, e]] @ p^T``: the adjugate of the
    triangular factor is ``det(r) [[e r^-1, -r^-1 c], [0, 1]]``. As the diagonal decreases, r is
    singular only if all cofactors vanish.
    """
    *stack, size, _ = aval_of(x).shape
    dtype = aval_of(x).dtype
    before, after = size - 1, slice(size - 1, size)
    q, r, order = lax.linalg.qr(x, pivoting=True)
    square, corner = (
        part(r, rows=before, columns=before),
        part(r, rows=after, columns=after),
    )
    eye = spread(identity(before, before, dtype), aval_of(square).shape)
    pivots = diagonal(square)
    vanishing = convert(lax.eq(pivots, zeros_of(pivots)), dtype)
    right = (
        lax.mul(spread(corner, aval_of(eye).shape), eye),
        lax.neg(part(r, rows=before, columns=after)),
    )
    above = solve_triangular(
        lax.add(square, scaled_columns(eye, vanishing)),
        lax.concatenate(right, len(stack) + 1),
        lower=False,
    )
    last = spread(part(identity(size, size, dtype), rows=after), (*stack, 1, size))
    adjugate = product(lax.concatenate((above, last), len(stack)), matrix_adjoint(q))
    places = plain(argsort)(order)
    sign = _determinant(rows_in_order(matrix_transpose(q), places))
    return _scaled(rows_in_order(adjugate, places), lax.mul(sign, _product(pivots)))


@_adjugate.defjvp
def _adjugate_jvp(primals: Any, tangents: Any) -> Any:
    return _adjugate(*primals), _changed_adjugate(*primals, *tangents)


@custom_jvp
def _changed_adjugate(x: Any, change: Any) -> Any:
    """The derivative of `_adjugate`, for matrices of any rank.

    With ``x = u @ s @ vh`` it is the derivative of the adjugate of a diagonal matrix; its elements
    are products of all singular values but two.
    """
    u, s, vh = lax.linalg.svd(x)
    size = aval_of(s).shape[-1]
    inner = product(product(matrix_adjoint(u), change), matrix_adjoint(vh))
    products = convert(_products_without_two(s), aval_of(inner).dtype)
    own = lax.reduce_sum(
        lax.mul(products, spread(as_rows(diagonal(inner)), aval_of(x).shape)),
        (aval_of(x).ndim - 1,),
    )
    eye = spread(identity(size, size, aval_of(x).dtype), aval_of(x).shape)
    tangent = lax.sub(scaled_columns(eye, own), lax.mul(products, inner))
    sign = lax.mul(_determinant(u), _determinant(vh))
    return _scaled(product(product(matrix_adjoint(vh), tangent), matrix_adjoint(u)), sign)


@_changed_adjugate.defjvp
def _changed_adjugate_jvp(primals: Any, tangents: Any) -> Any:
    (x, change), (of_x, of_change) = primals, tangents

    def changed(x: Any) -> Any:
        inverted, adjugate = inverse(x), _adjugate(x)
        return lax.sub(
            _scaled(adjugate, _trace_of_product(inverted, change)),
            product(product(adjugate, change), inverted),
        )

    _, tangent = jvp(changed, (x,), (of_x,))
    return _changed_adjugate(x, change), lax.add(tangent, _changed_adjugate(x, of_change))


def _products_without_two(s: Any) -> Any:
    """For each pair of positions, the product of the elements elsewhere; zero for equal positions.

    No element is divided by a smaller one: the elements decrease.
    """
    *stack, size = aval_of(s).shape
    shape = (*stack, size, size)
    dtype = aval_of(s).dtype
    one = literal(1, dtype)
    divisors = pick(lax.eq(s, zeros_of(s)), one, s)
    places = lax.iota(np.dtype("int32"), size)
    large = spread(lax.lt(places, literal(size - 2, places.dtype)), aval_of(s).shape)
    by_first, by_last = (
        pick(large, lax.div(spread(columns(s, n, n + 1), aval_of(s).shape), divisors), one)
        for n in (size - 2, size - 1)
    )

    def pairs(x: Any, y: Any, combine: Any) -> Any:
        return combine(spread(as_columns(x), shape), spread(as_rows(y), shape))

    def there(place: int) -> Any:
        mask = spread(lax.eq(places, literal(place, places.dtype)), aval_of(s).shape)
        return pairs(mask, mask, lax.bitwise_or)

    # Those of the two smallest elements that are not left out, divided by the others that are.
    ratios = pairs(by_first, by_last, lax.mul)
    ratios = pick(there(size - 1), pairs(by_first, by_first, lax.mul), ratios)
    ratios = pick(there(size - 2), pairs(by_last, by_last, lax.mul), ratios)
    ratios = where_mask(on_diagonal(size, size), zeros_of(ratios), ratios)
    return _scaled(ratios, _product(columns(s, 0, size - 2)))


def _scaled(x: Any, factors: Any) -> Any:
    """Matrices, each times its own number."""
    rank = aval_of(x).ndim
    return lax.mul(x, spread(lax.expand_dims(factors, (rank - 2, rank - 1)), aval_of(x).shape))


# -------------------------------------------------------------------------------------- logarithms


@custom_jvp
def _logarithm(x: Any) -> tuple[Any, Any]:
    packed, pivots, _ = lax.linalg.lu(x)
    sign, logarithm = _of_triangular(packed)
    return lax.mul(sign, _parity(pivots, aval_of(x).dtype)), logarithm


@custom_jvp
def _logarithm_by_qr(x: Any) -> tuple[Any, Any]:
    packed, factors = geqrf_p.bind(x)
    sign, logarithm = _of_triangular(packed)
    # The determinant of a reflection with the factor f, where f is not zero, is -f / conj(f).
    zero, one = (literal(n, aval_of(x).dtype) for n in (0, 1))
    nothing = lax.eq(factors, zero)
    mirrored = lax.conj(factors) if dtypes.kind_of(aval_of(x).dtype) == "c" else factors
    reflections = lax.neg(lax.div(factors, pick(nothing, one, mirrored)))
    return lax.mul(sign, _product(pick(nothing, one, reflections))), logarithm


def _of_triangular(x: Any) -> tuple[Any, Any]:
    """Signs and logarithms of the determinants of triangular matrices."""
    pivots = diagonal(x)
    size = lax.abs(pivots)
    logarithm = lax.reduce_sum(lax.log(size), (aval_of(size).ndim - 1,))
    return _product(lax.sign(pivots)), logarithm


def _changed_logarithm(function: Any, primals: Any, tangents: Any) -> Any:
    (x,), (change,) = primals, tangents
    sign, logarithm = function(x)
    relative = _trace_of_product(inverse(x), change)
    if dtypes.kind_of(aval_of(x).dtype) != "c":
        return (sign, logarithm), (zeros_of(sign), relative)
    turned = lax.complex(zeros_of(logarithm), lax.imag(relative))
    return (sign, logarithm), (lax.mul(sign, turned), lax.real(relative))


_logarithm.defjvp(partial(_changed_logarithm, _logarithm))
_logarithm_by_qr.defjvp(partial(_changed_logarithm, _logarithm_by_qr))
