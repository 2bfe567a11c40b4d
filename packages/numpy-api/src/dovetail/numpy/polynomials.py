"""Polynomials, given by their coefficients, highest power first."""

from __future__ import annotations

import math
from typing import Any, Final, Literal, overload

import numpy as np
from dovetail import lax
from dovetail.errors import ConcretizationTypeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    convert,
    inexact,
    inexact_dtype,
    integer,
    literal,
    promoted_pair,
    same_dtype,
    value,
    weak_of,
)
from dovetail.extend.avals import Tracer, aval_of
from dovetail.extend.checks import require_host_memory
from dovetail.extend.unchecked import slice_dimension
from dovetail.numpy.compiled import compiled, compiled_with, plain
from dovetail.numpy.conditions import pick, spread
from dovetail.numpy.correlations import convolve
from dovetail.numpy.float_parts import at_least_single
from dovetail.numpy.joining import concatenate
from dovetail.numpy.matrices import vander
from dovetail.numpy.shapes import broadcast_shapes, broadcast_to, operand, reshaped
from dovetail.typing import Array, ArrayLike

#: Degrees up to which Horner's rule is unrolled.
_WRITTEN_OUT: Final = 16
#: Bytes of a number in a list of Python's.
_EACH_NUMBER: Final = 64


def _coefficients(function: str, argument: str, p: Any, several: bool = False) -> Any:
    """A vector of coefficients, or several side by side; a scalar counts as a vector of one."""
    x = operand(p, function, argument)
    shape = aval_of(x).shape
    if len(shape) > 1 and not several:
        raise ValueError(
            f"{function}: {argument} must be a vector of coefficients, got shape {shape}"
        )
    return reshaped(x, (1,)) if not shape else x


def _size(p: Any) -> int:
    return int(aval_of(p).shape[0])


def _inexact_vector(function: str, argument: str, p: Any, several: bool = False) -> Any:
    return inexact(function, _coefficients(function, argument, p, several), argument)


def _inexact_vectors(function: str, names: tuple[str, str], a: Any, b: Any) -> list[Any]:
    """Two vectors of coefficients in their common inexact dtype."""
    first = _coefficients(function, names[0], a)
    second = _coefficients(function, names[1], b)
    common = same_dtype([first, second])
    return [inexact(function, x, name) for x, name in zip(common, names, strict=True)]


def _with_size(p: Any, size: int) -> Any:
    """Coefficients padded with zeros in front."""
    missing = size - _size(p)
    if not missing:
        return p
    beside = [(0, 0, 0)] * (aval_of(p).ndim - 1)
    zero = literal(0, aval_of(p).dtype, weak_of(p))
    return lax.pad(p, zero, [(missing, 0, 0), *beside])


def _concrete(function: str, argument: str, x: Any, remedy: str) -> np.ndarray[Any, Any]:
    """The values of a checked operand on the host.

    Raises:
        ConcretizationTypeError: it is traced.
    """
    concrete = x.concrete() if isinstance(x, Tracer) else x
    if concrete is None:
        raise ConcretizationTypeError(
            x, f"which coefficients of {argument} of {function} are zero; {remedy}"
        )
    return np.asarray(concrete)


# -------------------------------------------------------------------------------------- arithmetic


@compiled_with("unroll")
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int | None = None) -> Array:
    """Evaluate a polynomial by Horner's rule.

    Args:
        p: vector of coefficients, highest power first; or an array whose first dimension is that
            of the powers, and whose others broadcast with `x`.
        x: array or scalar: where to evaluate.
        unroll: number of steps of the loop over the coefficients to unroll; if None, all of them up
            to 16.

    Returns:
        An array of the shape of `x` and the common dtype.

    Raises:
        ValueError: `p` is a scalar, or its other dimensions do not broadcast with `x`.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.polyval(jnp.array([1, 0, -2]), jnp.array([0, 3])))
        [-2  7]
    """
    coefficients = operand(p, "polyval", "p")
    if not aval_of(coefficients).ndim:
        raise ValueError("polyval needs a vector of coefficients, got a scalar")
    coefficients, points = same_dtype([coefficients, operand(x, "polyval", "x")])
    points = value(convert(points, aval_of(points).dtype))
    if aval_of(coefficients).ndim > 1:
        each = aval_of(coefficients).shape[1:]
        shape = broadcast_shapes(each, aval_of(points).shape)
        points = broadcast_to(points, shape)
        beside = (1,) * (len(shape) - len(each))
        coefficients = reshaped(coefficients, (_size(coefficients), *beside, *each))
        coefficients = broadcast_to(coefficients, (_size(coefficients), *shape))
    zero = lax.full_like(points, 0)
    truth = dtypes.kind_of(aval_of(points).dtype) == "b"
    add, multiply = (lax.bitwise_or, lax.bitwise_and) if truth else (lax.add, lax.mul)
    if unroll is None and _size(coefficients) <= _WRITTEN_OUT:
        result = zero
        for i in range(_size(coefficients)):
            coefficient = lax.index_in_dim(coefficients, i, keepdims=False)
            result = add(multiply(result, points), coefficient)
        return result

    def step(result: Any, coefficient: Any) -> tuple[Any, None]:
        return add(multiply(result, points), coefficient), None

    steps = _WRITTEN_OUT if unroll is None else integer("polyval", "unroll", unroll)
    return lax.scan(step, zero, coefficients, unroll=steps)[0]


@compiled
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    Args:
        a1: vector of coefficients, highest power first; or an array whose first dimension is that
            of the powers, and whose others broadcast with those of `a2`.
        a2: coefficients, likewise; an array of the same rank.

    Returns:
        An array of the larger size along the first dimension and of the common dtype.

    Raises:
        ValueError: the ranks differ, or the other dimensions do not broadcast.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.polyadd(jnp.array([1, 2, 3]), jnp.array([10, 20])))
        [ 1 12 23]
    """
    return _sum("polyadd", lax.add, a1, a2)


@compiled
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    Args:
        a1: vector of coefficients, highest power first; or an array whose first dimension is that
            of the powers, and whose others broadcast with those of `a2`.
        a2: coefficients, likewise; an array of the same rank.

    Returns:
        An array of the larger size along the first dimension and of the common dtype.

    Raises:
        ValueError: the ranks differ, or the other dimensions do not broadcast.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.polysub(jnp.array([1, 2, 3]), jnp.array([10, 20])))
        [  1  -8 -17]
    """
    return _sum("polysub", lax.sub, a1, a2)


def _sum(function: str, compute: Any, a1: Any, a2: Any) -> Any:
    x, y = same_dtype(
        [_coefficients(function, name, p, several=True) for name, p in (("a1", a1), ("a2", a2))]
    )
    if dtypes.kind_of(aval_of(x).dtype) == "b":
        raise TypeError(f"{function} does not accept booleans; write a1.astype(int)")
    if aval_of(x).ndim != aval_of(y).ndim:
        raise ValueError(
            f"{function}: a1 and a2 must have the same rank, got shapes {aval_of(x).shape} and "
            f"{aval_of(y).shape}"
        )
    size = max(_size(x), _size(y))
    return compute(*promoted_pair(function, _with_size(x, size), _with_size(y, size)))


def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    Args:
        a1: vector of coefficients, highest power first.
        a2: vector of coefficients, likewise.
        trim_leading_zeros: whether to remove leading zeros from the arguments first, as in NumPy;
            they must then not be traced.

    Returns:
        A vector of floats or complex numbers, with one coefficient less than both arguments
        together.

    Raises:
        ValueError: an argument is not a vector.
        ConcretizationTypeError: an argument is traced, and zeros are to be removed.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.polymul(jnp.array([1, 2]), jnp.array([1, -2])))
        [ 1.  0. -4.]
    """
    if trim_leading_zeros:
        a1 = _without_leading_zeros("polymul", "a1", _coefficients("polymul", "a1", a1), 0.0)
        a2 = _without_leading_zeros("polymul", "a2", _coefficients("polymul", "a2", a2), 0.0)
    return _polymul(a1, a2)


@compiled
def _polymul(a1: Any, a2: Any) -> Any:
    x, y = _inexact_vectors("polymul", ("a1", "a2"), a1, a2)
    if not _size(x) or not _size(y):
        # As in NumPy, a polynomial without coefficients is zero.
        return value(lax.full((max(_size(x), _size(y), 1),), 0, aval_of(x).dtype))
    return plain(convolve)(x, y, precision="highest")


def _without_leading_zeros(function: str, argument: str, p: Any, tolerance: float) -> Any:
    """Coefficients without leading zeros; the last one always stays."""
    remedy = "give trim_leading_zeros=False"
    (places,) = np.nonzero(np.abs(_concrete(function, argument, p, remedy)) > tolerance)
    first = int(places[0]) if places.size else max(_size(p) - 1, 0)
    return slice_dimension(p, first, _size(p), 0)


def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Divide polynomials, with quotient and remainder.

    Differs from NumPy's in the size of the remainder, which does not depend on values.

    Args:
        u: vector of coefficients of the dividend, highest power first.
        v: vector of coefficients of the divisor; the first must not be zero.
        trim_leading_zeros: whether to remove leading zeros of the remainder, including numbers as
            small as rounding errors; the arguments must then not be traced.

    Returns:
        The quotient and the remainder: vectors of floats or complex numbers. The remainder has the
        size of `u` unless zeros are removed.

    Raises:
        ValueError: an argument is not a vector, or `v` is empty.
        ConcretizationTypeError: an argument is traced, and zeros are to be removed.

    Differs:
        Of a remainder that vanishes one zero is left, as in NumPy.

        >>> x, y = jnp.array([1.0, 3.0, 2.0]), jnp.array([1.0, 1.0])
        >>> print(jnp.polydiv(x, y, trim_leading_zeros=True)[1])
        [0.]

    Example:
        >>> import dovetail.numpy as jnp
        >>> quotient, remainder = jnp.polydiv(jnp.array([1, 2, 3]), jnp.array([1, 1]))
        >>> print(quotient, remainder)
        [1. 1.] [0. 0. 2.]
    """
    quotient, remainder = _polydiv(u, v)
    if trim_leading_zeros:
        tolerance = math.sqrt(float(dtypes.finfo(aval_of(remainder).dtype).eps))
        remainder = _without_leading_zeros("polydiv", "u", remainder, tolerance)
    return quotient, remainder


@compiled
def _polydiv(u: Any, v: Any) -> tuple[Any, Any]:
    dividend, divisor = _inexact_vectors("polydiv", ("u", "v"), u, v)
    if not _size(divisor):
        raise ValueError("polydiv: v must hold at least one coefficient")
    dtype = aval_of(dividend).dtype
    degree = _size(divisor) - 1
    count = _size(dividend) - degree
    if count < 1:
        return value(lax.full((1,), 0, dtype)), dividend
    first = lax.index_in_dim(divisor, 0, keepdims=False)
    others = slice_dimension(divisor, 1, degree + 1, 0)

    def step(rest: Any, coefficient: Any) -> tuple[Any, Any]:
        rest = concatenate([rest, reshaped(coefficient, (1,))])
        factor = lax.div(lax.index_in_dim(rest, 0, keepdims=False), first)
        return lax.sub(slice_dimension(rest, 1, degree + 1, 0), lax.mul(others, factor)), factor

    rest, quotient = lax.scan(
        step,
        slice_dimension(dividend, 0, degree, 0),
        slice_dimension(dividend, degree, _size(dividend), 0),
    )
    weak = weak_of(dividend) and weak_of(divisor)
    # What vanishes of the dividend does so for numbers: of infinities and nan it is nan.
    remainder = concatenate([lax.sub(quotient, quotient), rest])
    return convert(quotient, dtype), convert(remainder, dtype, weak)


# ---------------------------------------------------------------------------------------- calculus


def _order(function: str, m: Any, count: str) -> int:
    order = integer(function, "m", m)
    if order < 0:
        raise ValueError(f"{function}: m, the number of {count}, must not be negative, got {order}")
    return order


def _falling(size: int, order: int) -> np.ndarray[Any, Any]:
    """The factors of `order` derivatives, for powers from ``size + order - 1`` down to `order`."""
    if not size:
        return np.ones(0)
    require_host_memory(8 * size * max(order, 1), "a table of the powers that are differentiated")
    powers = np.arange(size + order - 1, order - 1, -1, dtype=np.float64)
    steps = powers - np.arange(order, dtype=np.float64)[:, None]
    return np.asarray(np.prod(steps, axis=0))


def _factors(numbers: np.ndarray[Any, Any], dtype: Any) -> Any:
    with np.errstate(over="ignore"):
        return np.asarray(numbers, dtype)


@compiled_with("m")
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """Differentiate a polynomial.

    Args:
        p: vector of coefficients, highest power first; or an array whose first dimension is that
            of the powers.
        m: order of the derivative.

    Returns:
        An array of floats or complex numbers, with `m` elements less along the first dimension.

    Raises:
        ValueError: `m` is negative.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.polyder(jnp.array([1, 2, 3])))
        [2. 2.]
    """
    order = _order("polyder", m, "derivatives")
    x = _inexact_vector("polyder", "p", p, several=True)
    if not order:
        return x
    size = max(_size(x) - order, 0)
    kept = slice_dimension(x, 0, size, 0)
    factors = _factors(_falling(size, order), x.dtype)
    return lax.mul(kept, factors.reshape(size, *(1,) * (aval_of(x).ndim - 1)))


@compiled_with("m")
def polyint(p: ArrayLike, m: int = 1, k: ArrayLike | None = None) -> Array:
    """Integrate a polynomial.

    Args:
        p: vector of coefficients, highest power first.
        m: number of integrations.
        k: the constants of integration, in order: a vector of `m`, or one for all; 0 if None.

    Returns:
        A vector of floats or complex numbers, with `m` elements more.

    Raises:
        ValueError: `m` is negative, `p` is not a vector, or the number of constants is wrong.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.polyint(jnp.array([6, 2, 3]), k=7))
        [2. 1. 3. 7.]
    """
    order = _order("polyint", m, "integrals")
    x = _coefficients("polyint", "p", p)
    constants = _coefficients("polyint", "k", 0 if k is None else k)
    if _size(constants) not in (1, order):
        raise ValueError(
            f"polyint: k must hold one constant, or {order}, got {_size(constants)} of them"
        )
    if not order:
        return inexact("polyint", x, "p")
    common, weak = dtypes.result_type(x, constants, return_weak_type_flag=True)
    dtype, weak = inexact_dtype(common), weak and dtypes.kind_of(common) != "b"
    x, constants = convert(x, dtype, weak), convert(constants, dtype, weak)
    if _size(constants) != order:
        constants = lax.broadcast_in_dim(constants, (order,), (0,))
    require_host_memory(_EACH_NUMBER * order, f"a table of the factors of {order} integrals")
    # The factorials of larger numbers are infinite in any dtype.
    highest = range(order - 1, -1, -1)
    factorials = [float(math.factorial(n)) if n <= 170 else math.inf for n in highest]
    scales = [*_falling(_size(x), order), *factorials]
    factors = _factors(np.array(scales, np.float64), aval_of(x).dtype)
    return lax.div(concatenate([x, constants]), factors)


# ------------------------------------------------------------------------------------------- roots


@compiled
def poly(seq_of_zeros: ArrayLike) -> Array:
    """The polynomial with given roots, or the characteristic polynomial of a matrix.

    Args:
        seq_of_zeros: vector of the roots, or a square matrix.

    Returns:
        A vector of coefficients, highest power first; the first one is 1. For a matrix they are
        always complex (NumPy makes them real if possible).

    Raises:
        ValueError: the argument is neither a vector nor a square matrix.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.poly(jnp.array([1, 2, 3])))
        [  1.  -6.  11.  -6.]
    """
    x = inexact("poly", operand(seq_of_zeros, "poly", "seq_of_zeros"), "seq_of_zeros")
    shape = aval_of(x).shape
    if len(shape) > 2 or (len(shape) == 2 and (shape[0] != shape[1] or not shape[0])):
        raise ValueError(f"poly takes a vector, or a square matrix that is not empty, got {shape}")
    if len(shape) == 2:
        x = _eigenvalues(x)
    size = math.prod(shape[:1])
    dtype = aval_of(x).dtype
    if not size:
        return value(lax.full((), 1, dtype))
    zero = literal(0, dtype)
    start = lax.pad(lax.full((1,), 1, dtype), zero, [(0, size, 0)])

    places = lax.iota("int32", size)

    def step(product: Any, root_and_degree: tuple[Any, Any]) -> tuple[Any, None]:
        root, degree = root_and_degree
        first = slice_dimension(product, 0, 1, 0)
        terms = lax.mul(root, slice_dimension(product, 0, size, 0))
        # Beyond the degree there is nothing to multiply, not zeros: the root may be infinite.
        terms = pick(lax.le(places, degree), terms, zero)
        rest = lax.sub(slice_dimension(product, 1, size + 1, 0), terms)
        return concatenate([first, rest]), None

    return lax.scan(step, start, (reshaped(x, (size,)), places))[0]


def _eigenvalues(matrix: Any) -> Any:
    return lax.linalg.eig(
        at_least_single(matrix), compute_left_eigenvectors=False, compute_right_eigenvectors=False
    )[0]


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The roots of a polynomial: the eigenvalues of its companion matrix.

    Args:
        p: vector of coefficients, highest power first.
        strip_zeros: whether to remove zeros at both ends first; `p` must then not be traced.
            Otherwise there is one root less than there are coefficients, and roots missing because
            of leading zeros are nan, at the end.

    Returns:
        A vector of complex numbers. (In NumPy they are real if possible.)

    Raises:
        ValueError: `p` is not a vector.
        ConcretizationTypeError: `p` is traced and has two elements or more, of which zeros are to
            be removed.

    Differs:
        Zeros come last, as in NumPy.

        >>> print(jnp.roots(jnp.array([1.0, -3.0, 0.0])))
        [3.+0.j 0.+0.j]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.roots(jnp.array([0., 2., -8., 0.])))
        [4.+0.j 0.+0.j]
    """
    x = _inexact_vector("roots", "p", p)
    if not strip_zeros or _size(x) < 2:  # there are no roots
        return _all_roots(x)
    remedy = "give strip_zeros=False, which has nan for roots that lack"
    (places,) = np.nonzero(_concrete("roots", "p", x, remedy))
    if not places.size:
        return _all_roots(slice_dimension(x, 0, 0, 0))
    return _all_roots(slice_dimension(x, int(places[0]), _size(x), 0))


@compiled
def _all_roots(x: Any) -> Any:
    x = at_least_single(x)
    dtype = aval_of(x).dtype
    count = _size(x) - 1
    if count < 1:
        return value(lax.full((0,), 0, dtypes.common_dtype(dtype, np.dtype("complex64"))))
    zero, one = literal(0, dtype), literal(1, dtype)
    default = dtypes.default_dtype("i")
    in_front = lax.cumprod(convert(lax.eq(x, zero), default))
    leading = lax.reduce_sum(in_front, (0,))
    # Leading zeros are moved to the back, where they give zero roots.
    x = lax.dynamic_slice(concatenate([x, x]), (leading,), (count + 1,))
    first = lax.index_in_dim(x, 0, keepdims=False)
    first = pick(lax.eq(first, zero), one, first)
    row = lax.neg(lax.div(slice_dimension(x, 1, count + 1, 0), first))
    companion = concatenate(
        [reshaped(row, (1, count)), lax.convert_element_type(np.eye(count - 1, count), dtype)]
    )
    eigenvalues = _eigenvalues(companion)
    # Sort zero roots last: those to be replaced are then at the end.
    is_root_zero = lax.eq(eigenvalues, literal(0, eigenvalues.dtype))
    _, eigenvalues = _sorted_by(is_root_zero, eigenvalues)
    lacks = lax.ge(lax.iota(default, count), lax.sub(literal(count, default), leading))
    return pick(lacks, literal(complex(math.nan, math.nan), eigenvalues.dtype), eigenvalues)


def _sorted_by(keys: Any, values: Any) -> Any:
    return lax.sort((keys, values), num_keys=1, is_stable=True)


# ------------------------------------------------------------------------------------------ fitting


@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: Literal[False] = False,
    w: ArrayLike | None = None,
    cov: Literal[False] = False,
) -> Array: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Array | tuple[Array, ...]: ...
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Array | tuple[Array, ...]:
    """Fit a polynomial to points by least squares.

    Differs from NumPy's: residuals are returned whatever the rank; there is no warning about a low
    rank (check it with ``full=True``); and covariances of complex coefficients are Hermitian.

    Args:
        x: vector of the x-coordinates of the points.
        y: vector of their y-coordinates; or a matrix, whose columns are fitted separately.
        deg: degree of the polynomial.
        rcond: singular values smaller than this times the largest one count as zero; if None, the
            number of points times the precision of the dtype.
        full: whether to return diagnostics of the fit, too.
        w: vector of weights, which multiply the errors before they are squared.
        cov: whether to return the covariance of the coefficients, too; "unscaled" if the weights
            are the reciprocals of true standard deviations. Ignored if `full` is True.

    Returns:
        Coefficients, highest power first: a vector, or a matrix with a column for each of `y`. With
        `full` a tuple of the coefficients, the sums of squared errors, the rank, the singular
        values and `rcond`. With `cov` a tuple of the coefficients and their covariance matrix (with
        a third dimension for the columns of `y`).

    Raises:
        ValueError: `deg` is negative, or there are too few points to estimate a covariance.
        TypeError: the shapes do not fit.

    Differs:
        A weakly typed `x` takes the dtype of `y`, as in other functions; JAX makes it strong.

        >>> x = jnp.full(3, 2.0)
        >>> print(x.weak_type, jnp.polyfit(x, jnp.ones(3, "bfloat16"), 1).dtype)
        True bfloat16

    Example:
        >>> import dovetail.numpy as jnp
        >>> x = jnp.array([0., 1., 2., 3.])
        >>> print(jnp.polyfit(x, 2 * x + 1, 1).round(3))
        [2. 1.]
    """
    degree = integer("polyfit", "deg", deg)
    if degree < 0:
        raise ValueError(f"polyfit: deg must not be negative, got {degree}")
    places, values = operand(x, "polyfit", "x"), operand(y, "polyfit", "y")
    weights = None if w is None else operand(w, "polyfit", "w")
    shape = aval_of(places).shape
    if len(shape) != 1 or not shape[0]:
        raise TypeError(f"polyfit: x must be a vector that is not empty, got shape {shape}")
    if aval_of(values).ndim not in (1, 2) or aval_of(values).shape[0] != shape[0]:
        raise TypeError(
            f"polyfit: y must be a vector or a matrix with {shape[0]} rows, as many as x has "
            f"points, got shape {aval_of(values).shape}"
        )
    if weights is not None and aval_of(weights).shape != shape:
        raise TypeError(
            f"polyfit: w must have the shape of x, {shape}, got {aval_of(weights).shape}"
        )
    if not full and cov and cov != "unscaled" and shape[0] <= degree + 1:
        raise ValueError(
            f"polyfit: more than {degree + 1} points are needed to estimate the covariance, got "
            f"{shape[0]}; cov='unscaled' needs no estimate"
        )
    if rcond is None:
        common = inexact_dtype(dtypes.result_type(places, values))
        rcond = shape[0] * float(dtypes.finfo(common).eps)
    results = _fitted(places, values, weights, degree, rcond, cov if not full else False)
    if full:
        return results
    return (results[0], results[-1]) if cov else results[0]


@compiled_with("degree", "cov")
def _fitted(
    x: Any, y: Any, weights: Any, degree: int, rcond: Any, cov: bool | str
) -> tuple[Any, ...]:
    x, y = same_dtype([x, y])
    x, y = inexact("polyfit", x), inexact("polyfit", y, "y")
    x_dtype = aval_of(x).dtype
    x, y = at_least_single(x), at_least_single(y)
    dtype = aval_of(x).dtype
    points, size = _size(x), degree + 1
    is_vector = aval_of(y).ndim == 1
    right = reshaped(y, (points, 1)) if is_vector else y
    needed = points * size * dtype.itemsize
    require_host_memory(needed, f"polyfit's matrix of {points} points and {size} powers")
    left = plain(vander)(x, size)
    if weights is not None:
        factors = lax.broadcast_in_dim(convert(weights, dtype), (points, 1), (0,))
        left, right = _scaled(left, factors), _scaled(right, factors)
    # Scale the columns to equal length: powers of large numbers differ too much in size.
    scale = lax.sqrt(lax.reduce_sum(_squared(left), (0,)))
    real = aval_of(scale).dtype
    scale = pick(lax.eq(scale, literal(0, real)), literal(1, real), scale)
    columns = convert(scale, dtype)
    left = lax.div(left, lax.broadcast_in_dim(columns, (points, size), (1,)))
    u, s, vh = lax.linalg.svd(left, full_matrices=False)
    limit = convert(operand(rcond, "polyfit", "rcond"), real)
    counts = lax.gt(s, lax.mul(spread(reshaped(limit, ()), s.shape), lax.reduce_max(s, (0,))))
    inverse = lax.div(literal(1, real), pick(counts, s, literal(1, real)))
    inverse = convert(pick(counts, inverse, literal(0, real)), dtype)
    v = lax.conj(vh) if dtypes.kind_of(dtype) == "c" else vh
    scaled_v = _scaled(v, reshaped(inverse, (_size(inverse), 1)))
    projected = _matmul(_transposed(lax.conj(u) if dtypes.kind_of(dtype) == "c" else u), right)
    solution = _matmul(_transposed(scaled_v), projected)
    errors = lax.reduce_sum(_squared(lax.sub(_matmul(left, solution), right)), (0,))
    solution = lax.div(solution, lax.broadcast_in_dim(columns, solution.shape, (0,)))
    coefficients = convert(reshaped(solution, (size,)) if is_vector else solution, x_dtype)
    if not cov:
        rank = lax.reduce_sum(convert(counts, dtypes.default_dtype("i")), (0,))
        return coefficients, errors, rank, s, limit
    other = lax.conj(scaled_v) if dtypes.kind_of(dtype) == "c" else scaled_v
    covariance = _matmul(_transposed(scaled_v), other)
    covariance = lax.div(covariance, lax.broadcast_in_dim(columns, (size, size), (0,)))
    covariance = lax.div(covariance, lax.broadcast_in_dim(columns, (size, size), (1,)))
    if cov == "unscaled":
        return coefficients, covariance if is_vector else reshaped(covariance, (size, size, 1))
    variance = convert(lax.div(errors, literal(points - size, real)), dtype)
    if is_vector:
        return coefficients, lax.mul(covariance, reshaped(variance, ()))
    shape = (size, size, *variance.shape)
    spread_out = lax.broadcast_in_dim(covariance, shape, (0, 1))
    return coefficients, lax.mul(spread_out, lax.broadcast_in_dim(variance, shape, (2,)))


def _scaled(x: Any, factors: Any) -> Any:
    return lax.mul(x, spread(factors, x.shape))


def _squared(x: Any) -> Any:
    if dtypes.kind_of(aval_of(x).dtype) == "c":
        return lax.add(lax.square(lax.real(x)), lax.square(lax.imag(x)))
    return lax.square(x)


def _transposed(x: Any) -> Any:
    return lax.transpose(x, (1, 0))


def _matmul(x: Any, y: Any) -> Any:
    return lax.dot_general(x, y, (((1,), (0,)), ((), ())), precision="highest")
