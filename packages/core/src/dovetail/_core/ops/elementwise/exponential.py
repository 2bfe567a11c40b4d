"""Exponentials and logarithms."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import convert_element_type, mul, neg
from dovetail._core.basis.operands import as_operand, literal_like, make_literal
from dovetail._core.basis.structural import broadcast_to
from dovetail._core.ir.avals import aval_of, shape_of
from dovetail._core.ops.elementwise import references
from dovetail._core.ops.elementwise.arithmetic import add_p, div_p, sub_p
from dovetail._core.ops.elementwise.bitwise import (
    and_p,
    or_p,
    shift_left_p,
    shift_right_arithmetic_p,
)
from dovetail._core.ops.elementwise.comparison import eq_p, ge_p, gt_p, lt_p
from dovetail._core.ops.elementwise.complex import complex_p, imag, real
from dovetail._core.ops.elementwise.complex_formulas import (
    doubled,
    endless,
    equal,
    halved,
    infinite,
    where,
)
from dovetail._core.ops.elementwise.conversion import bitcast_convert_type_p, reduce_precision_p
from dovetail._core.ops.elementwise.extrema import clamp_p, max_p, min_p
from dovetail._core.ops.elementwise.functions import COMPLEX, FLOATS, Accuracy, ElementaryFunction
from dovetail._core.ops.elementwise.rounding import RoundingMethod, round_p
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.elementwise.signs import abs_p, sign_p


class Exp(ElementaryFunction):
    """The exponential."""

    name, hlo, numpy = "exp", "exponential", references.wide(np.exp)

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return y

    def corrected(self, x: Any, y: Any) -> Any:
        """Zeros keep their sign; at infinity the modulus is 0 or infinite, for any angle."""
        a, b = real(x), imag(x)
        edge, size = endless(a, b), max_p.bind(a, literal_like(0, a))
        # The difference is NaN where the size is infinite.
        imaginary = where(edge, sub_p.bind(size, size), where(equal(b, 0), b, imag(y)))
        return complex_p.bind(where(edge, size, real(y)), imaginary)


class Exp2(ElementaryFunction):
    """Two to the power of the argument."""

    name, hlo = "exp2", "exponential"
    numpy = references.wide(lambda x: np.exp(x * math.log(2)) if np.iscomplexobj(x) else np.exp2(x))
    formula_dtypes = FLOATS | COMPLEX

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return mul(literal_like(math.log(2), y), y)

    def formula(self, x: Any) -> Any:
        """2**n exp(f log 2), where n is the integer nearest to x and f = x - n.

        exp(x log 2) would scale the rounding error of x log 2 by the size of x. 2**n is the product
        of two factors whose bits are written directly, because n reaches the exponents of subnormal
        numbers.
        """
        if aval_of(x).dtype.kind == "c":
            size, imaginary = self.factors(real(x)), imag(x)
            parts = [functools.reduce(mul, size, part) for part in _unit_of_log2(imaginary)]
            return exp_p.corrected(x, complex_p.bind(*parts))
        return functools.reduce(mul, self.factors(x))

    def factors(self, x: Any) -> Sequence[Any]:
        """Three numbers with product 2**x, none of which overflows."""
        aval = aval_of(x)
        info = np.finfo(aval.dtype)
        integer = np.dtype(np.int32 if aval.dtype == np.float32 else np.int64)
        # A fourth factor, the sine of a small angle, may bring back a product that is too large.
        lowest, highest = 2 * info.minexp, 2 * (info.maxexp - 1)
        limited = clamp_p.bind(
            make_literal(lowest, aval.dtype), x, make_literal(highest, aval.dtype)
        )
        whole = round_p.bind(limited, rounding_method=RoundingMethod.TO_NEAREST_EVEN)
        fraction = sub_p.bind(limited, whole)
        n = convert_element_type(whole, integer)
        half = shift_right_arithmetic_p.bind(n, make_literal(1, integer))
        factors = [exp(mul(fraction, make_literal(math.log(2), aval.dtype)))]
        for exponent in (half, sub_p.bind(n, half)):
            biased = add_p.bind(exponent, make_literal(1 - info.minexp, integer))
            bits = shift_left_p.bind(biased, make_literal(info.nmant, integer))
            factors.append(bitcast_convert_type_p.bind(bits, new_dtype=aval.dtype))
        return factors


class Expm1(ElementaryFunction):
    """exp(x) - 1, exact for small x."""

    name, hlo, numpy = "expm1", "exponential_minus_one", references.wide(references.expm1)
    formula_dtypes = COMPLEX

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return add_p.bind(y, literal_like(1, y))

    def formula(self, x: Any) -> Any:
        """exp(z) - 1; its real part where |a| < 1 is e cos(b / 2)**2 - (e + 2) sin(b / 2)**2.

        Here e = exp(a) - 1. Near zeros of the real part away from the origin the error is a few
        units in the last place of these two terms.
        """
        a, z = real(x), exp(x)
        e = expm1(a)
        cosine, sine = map(_square, _unit(halved(imag(x))))
        near = sub_p.bind(mul(e, cosine), mul(add_p.bind(e, literal_like(2, e)), sine))
        far = sub_p.bind(real(z), literal_like(1, a))
        small = lt_p.bind(abs_p.bind(a), literal_like(1, a))
        return complex_p.bind(where(small, near, far), imag(z))


class Log(ElementaryFunction):
    """The natural logarithm."""

    name, hlo, numpy = "log", "log", references.wide(np.log)

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return div_p.bind(t, x)

    def corrected(self, x: Any, y: Any) -> Any:
        """Recompute the real part, the logarithm of the modulus."""
        return complex_p.bind(_infinite_with(x, _log_of_modulus(real(x), imag(x))), imag(y))


class Log2(ElementaryFunction):
    """The logarithm to base two."""

    name, hlo = "log2", "log"
    numpy = references.wide(lambda x: np.log(x) / math.log(2) if np.iscomplexobj(x) else np.log2(x))
    formula_dtypes = Exp2.formula_dtypes

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return div_p.bind(t, mul(x, literal_like(math.log(2), x)))

    def formula(self, x: Any) -> Any:
        """n + log(m) / log(2), where x = 2**n m and m is between sqrt(1 / 2) and sqrt(2).

        n is exact, so powers of two have exact logarithms. Numbers that are not positive and normal
        use the natural logarithm.
        """
        dtype = aval_of(x).dtype
        if dtype.kind == "c":
            z = log(x)
            factor = literal_like(1 / math.log(2), real(z))
            return complex_p.bind(mul(real(z), factor), mul(imag(z), factor))
        info = np.finfo(dtype)
        integer = np.dtype(np.int32 if dtype == np.float32 else np.int64)
        bits = bitcast_convert_type_p.bind(x, new_dtype=integer)
        least = make_literal(np.sqrt(dtype.type(0.5)).view(integer), integer)
        above = sub_p.bind(bits, least)
        n = shift_right_arithmetic_p.bind(above, make_literal(info.nmant, integer))
        rest = and_p.bind(above, make_literal((1 << info.nmant) - 1, integer))
        m = bitcast_convert_type_p.bind(add_p.bind(rest, least), new_dtype=dtype)
        normal = and_p.bind(
            ge_p.bind(x, make_literal(info.smallest_normal, dtype)),
            lt_p.bind(x, make_literal(np.inf, dtype)),
        )
        scaled = mul(log(select_n_p.bind(normal, x, m)), make_literal(1 / math.log(2), dtype))
        whole = add_p.bind(convert_element_type(n, dtype), scaled)
        return select_n_p.bind(normal, scaled, whole)


class Log1p(ElementaryFunction):
    """log(1 + x), exact for small x."""

    name, hlo = "log1p", "log_plus_one"
    numpy = references.wide(references.log1p)
    formula_dtypes = frozenset({np.dtype(np.float64)})

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        return div_p.bind(t, add_p.bind(x, literal_like(1, x)))

    def formula(self, x: Any) -> Any:
        """log(u) + (x - (u - 1)) / u, where u = 1 + x is rounded.

        The second term is what rounding took from u, by the slope of the logarithm.
        """
        one = literal_like(1, x)
        # XLA takes (x + 1) - 1 for x; it does not look through the maximum, which changes nothing.
        u = max_p.bind(add_p.bind(x, one), literal_like(-1, x))
        lost = sub_p.bind(x, sub_p.bind(u, one))
        whole = add_p.bind(log(u), div_p.bind(lost, u))
        exact = select_n_p.bind(eq_p.bind(u, one), whole, x)
        # At infinity and at -1 the quotient is NaN.
        limits = or_p.bind(gt_p.bind(u, literal_like(1e300, x)), eq_p.bind(x, neg(one)))
        return select_n_p.bind(limits, exact, log(u))

    def corrected(self, x: Any, y: Any) -> Any:
        """Recompute the real part, the logarithm of the modulus of 1 + x."""
        a, b = real(x), imag(x)
        shifted = add_p.bind(a, literal_like(1, a))
        small = lt_p.bind(abs_p.bind(a), literal_like(0.5, a))
        modulus = _log_of_modulus(shifted, b, lambda e: where(small, _shifted_excess(a, b), e))
        return complex_p.bind(_infinite_with(x, modulus), imag(y))


class Logistic(ElementaryFunction):
    """1 / (1 + exp(-x))."""

    name, hlo, numpy = "logistic", "logistic", references.wide(references.logistic)
    formula_dtypes = COMPLEX

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        return mul(y, sub_p.bind(literal_like(1, y), y))

    def formula(self, x: Any) -> Any:
        """Both parts as quotients by (1 - p)**2 + 4 p cos(b / 2)**2, where p = exp(-|a|).

        This is |1 + exp(-|a| - ib)|**2, without cancellation near the poles. Near zeros of the real
        part its error is a few units in the last place of 1 - p.
        """
        a, b = real(x), imag(x)
        opposite = neg(abs_p.bind(a))
        p, q = exp(opposite), neg(expm1(opposite))
        cosine, sine = _unit(halved(where(infinite(a), 0, b)))
        twice = doubled(_square(cosine))
        modulus = add_p.bind(_square(q), doubled(mul(p, twice)))
        positive = add_p.bind(q, mul(p, twice))
        numerator = where(lt_p.bind(a, literal_like(0, a)), mul(p, sub_p.bind(twice, q)), positive)
        imaginary = mul(p, doubled(mul(sine, cosine)))
        return complex_p.bind(div_p.bind(numerator, modulus), div_p.bind(imaginary, modulus))


exp_p: Final = Exp()
exp2_p: Final = Exp2()
expm1_p: Final = Expm1()
log_p: Final = Log()
log1p_p: Final = Log1p()
log2_p: Final = Log2()
logistic_p: Final = Logistic()


# Parts of complex functions


def _square(x: Any) -> Any:
    return mul(x, x)


def _unit(angle: Any) -> tuple[Any, Any]:
    """The cosine and the sine of an angle."""
    z = exp(complex_p.bind(literal_like(0, angle), angle))
    return real(z), imag(z)


def _infinite_with(x: Any, modulus: Any) -> Any:
    """A real part; infinite where a part of `x` is, even if the other is NaN."""
    return where(or_p.bind(infinite(real(x)), infinite(imag(x))), math.inf, modulus)


def _log_of_modulus(a: Any, b: Any, exact: Callable[[Any], Any] = lambda excess: excess) -> Any:
    """log |a + ib| as log(m) + log1p((n / m)**2) / 2, where m >= n are the sizes of the parts.

    Where m is about 1, it is log1p(m**2 + n**2 - 1) / 2. This sum cancels near the unit circle. Its
    terms are therefore exact products of half-width numbers, largest first: each step is exact or
    as accurate as its result. A compiler may fuse products and sums. A caller with a more accurate
    sum passes it as `exact`.
    """
    a, b = abs_p.bind(a), abs_p.bind(b)
    m, n = max_p.bind(a, b), min_p.bind(a, b)
    one = literal_like(1, m)
    first, *terms = (
        term for pair in zip(*map(_split_square, (m, n)), strict=True) for term in pair
    )
    excess = functools.reduce(add_p.bind, terms, sub_p.bind(first, one))
    least = literal_like(np.finfo(aval_of(m).dtype).smallest_normal, m)
    ratio = div_p.bind(n, max_p.bind(m, least))
    # From 1 / 2 to 2: outside, the logarithm of m dominates.
    near = lt_p.bind(abs_p.bind(sub_p.bind(m, literal_like(1.25, m))), literal_like(0.75, m))
    logarithm = halved(log1p(where(near, exact(excess), _square(ratio))))
    return add_p.bind(where(near, 0, log(m)), logarithm)


def _shifted_excess(a: Any, b: Any) -> Any:
    """2 a + a**2 + b**2 where |a| < 1 / 2, which cancels where |1 + a + ib| is about 1.

    First 2 a + b**2 cancels, down to at most a**2; from then on, rounding errors are carried along.
    """
    (square, *others), (leading, *terms) = _split_square(a), _split_square(b)
    total, rests = add_p.bind(doubled(a), leading), [*terms[1:], *others[1:]]
    for term in (square, terms[0], others[0]):
        previous, total = total, add_p.bind(total, term)
        second = sub_p.bind(total, previous)
        rests.append(sub_p.bind(previous, sub_p.bind(total, second)))
        rests.append(sub_p.bind(term, second))
    return add_p.bind(total, functools.reduce(add_p.bind, rests))


def _split_square(x: Any) -> tuple[Any, Any, Any]:
    """Three numbers whose sum is the square of x."""
    exponent, digits = _halves(x)
    high = reduce_precision_p.bind(x, exponent_bits=exponent, mantissa_bits=digits - 1)
    low = sub_p.bind(x, high)
    return _square(high), mul(doubled(high), low), _square(low)


def _halves(x: Any) -> tuple[int, int]:
    """The exponent width of x in bits, and half its number of digits."""
    return (8, 12) if aval_of(x).dtype == np.float32 else (11, 26)


def _unit_of_log2(x: Any) -> tuple[Any, Any]:
    """The cosine and the sine of x log 2, exact for |x| up to 2**26 (float32: 2**12).

    The product of x and log 2 is a sum of two numbers. The leading one is an exact product of
    half-width numbers, so a compiler may fuse products and sums.
    """
    dtype = aval_of(x).dtype
    exponent, digits = _halves(x)
    leading = math.floor(math.ldexp(math.log(2), digits)) / 2**digits
    middle = float(dtype.type(math.log(2) - leading))
    last = math.log(2) - leading - middle + _LOG2_BEYOND_DOUBLE
    high = reduce_precision_p.bind(x, exponent_bits=exponent, mantissa_bits=digits - 1)
    low = sub_p.bind(x, high)
    product = mul(high, make_literal(leading, dtype))
    terms = [(low, leading), (high, middle), (low, middle), (x, last)]
    cross = functools.reduce(add_p.bind, [mul(a, make_literal(b, dtype)) for a, b in terms])
    angle = add_p.bind(product, cross)
    rest = sub_p.bind(cross, sub_p.bind(angle, product))
    # Small numbers, whose low digits underflow, need only one number.
    size = abs_p.bind(x)
    usual = and_p.bind(
        ge_p.bind(size, make_literal(1, dtype)), lt_p.bind(size, make_literal(2.0**digits, dtype))
    )
    cosine, sine = _unit(where(usual, angle, mul(x, make_literal(math.log(2), dtype))))
    rest = select_n_p.bind(usual, broadcast_to(make_literal(0, dtype), shape_of(x)), rest)
    return sub_p.bind(cosine, mul(rest, sine)), add_p.bind(sine, mul(rest, cosine))


_LOG2_BEYOND_DOUBLE: Final = 2.3190468138462996e-17


# Parts of hyperbolic functions


def scaled_sinh(x: Any, factor: Any) -> Any:
    """sinh(x) f, where |f| <= 1 and no step overflows before the result does.

    (e + e / (e + 1)) / 2 with e = exp(|x|) - 1 is exact for small x; for large ones it is
    (r / 2 f) r with r = exp(|x| / 2).
    """
    size = abs_p.bind(x)
    e = expm1(size)
    twice = add_p.bind(e, div_p.bind(e, add_p.bind(e, literal_like(1, x))))
    small = mul(mul(literal_like(0.5, x), twice), factor)
    return mul(sign_p.bind(x), _small_or_large(size, small, factor))


def scaled_cosh(x: Any, factor: Any) -> Any:
    """cosh(x) f as (exp(|x|) + 1 / exp(|x|)) / 2 f, for large x as in `scaled_sinh`."""
    size = abs_p.bind(x)
    e = exp(size)
    twice = add_p.bind(e, div_p.bind(literal_like(1, x), e))
    return _small_or_large(size, mul(mul(literal_like(0.5, x), twice), factor), factor)


def _small_or_large(size: Any, small: Any, factor: Any) -> Any:
    half = literal_like(0.5, size)
    root = exp(mul(half, size))
    large = mul(mul(mul(half, root), factor), root)
    return select_n_p.bind(gt_p.bind(size, literal_like(20, size)), small, large)


# Public functions


def exp(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The exponential of each element.

    Args:
        x: floating point or complex numbers.
        accuracy: the required accuracy; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is boolean or integer.

    Example:
        >>> from dovetail import lax
        >>> float(lax.exp(0.0))
        1.0
    """
    return exp_p.bind(as_operand(x, "lax.exp"), accuracy=accuracy)


def exp2(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """Two to the power of each element, exact for integers.

    Args:
        x: floating point or complex numbers.
        accuracy: the required accuracy; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is boolean or integer.

    Example:
        >>> from dovetail import lax
        >>> float(lax.exp2(10.0))
        1024.0
    """
    return exp2_p.bind(as_operand(x, "lax.exp2"), accuracy=accuracy)


def expm1(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """``exp(x) - 1`` of each element, exact for small ones.

    Args:
        x: floating point or complex numbers.
        accuracy: the required accuracy; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is boolean or integer.

    Differs:
        Near zeros of its real part the function of a complex number has an error of a few units
        of the terms that cancel, and is otherwise exact to a few units in the last place of
        each part.

        >>> z = complex(1e-4, 3e-4)
        >>> bool(abs(complex(lax.expm1(z)) - np.expm1(z)) < 1e-10)
        True

    Example:
        >>> from dovetail import lax
        >>> round(float(lax.expm1(1e-10)) * 1e10, 6)
        1.0
    """
    return expm1_p.bind(as_operand(x, "lax.expm1"), accuracy=accuracy)


def log(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The natural logarithm of each element.

    Args:
        x: floating point or complex numbers.
        accuracy: the required accuracy; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`; -inf at 0, NaN for negative real numbers. For
        complex numbers the principal value, with imaginary part in [-pi, pi].

    Raises:
        TypeError: `x` is boolean or integer.

    Example:
        >>> from dovetail import lax
        >>> float(lax.log(1.0))
        0.0
    """
    return log_p.bind(as_operand(x, "lax.log"), accuracy=accuracy)


def log1p(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """``log(1 + x)`` of each element, exact for small ones.

    Args:
        x: floating point or complex numbers.
        accuracy: the required accuracy; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`; -inf at -1, NaN for real numbers below -1.

    Raises:
        TypeError: `x` is boolean or integer.

    Example:
        >>> from dovetail import lax
        >>> round(float(lax.log1p(1e-10)) * 1e10, 6)
        1.0
    """
    return log1p_p.bind(as_operand(x, "lax.log1p"), accuracy=accuracy)


def log2(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The logarithm to base two of each element, exact for powers of two.

    Args:
        x: floating point or complex numbers.
        accuracy: the required accuracy; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`; -inf at 0, NaN for negative real numbers. For
        complex numbers the principal value.

    Raises:
        TypeError: `x` is boolean or integer.

    Example:
        >>> from dovetail import lax
        >>> float(lax.log2(8.0))
        3.0
    """
    return log2_p.bind(as_operand(x, "lax.log2"), accuracy=accuracy)


def logistic(x: ArrayLike, *, accuracy: Accuracy = None) -> Array:
    """The logistic function ``1 / (1 + exp(-x))`` of each element.

    Args:
        x: floating point or complex numbers.
        accuracy: the required accuracy; None for the backend's default.

    Returns:
        An array of the shape and dtype of `x`; real ones are between 0 and 1.

    Raises:
        TypeError: `x` is boolean or integer.

    Differs:
        It is 0 or 1 where the real part is infinite, and symmetric about the real axis.

        >>> print(lax.logistic(jnp.array([complex(np.inf, 1), complex(-np.inf, 1)])))
        [1.+0.j 0.+0.j]

    Example:
        >>> from dovetail import lax
        >>> float(lax.logistic(0.0))
        0.5
    """
    return logistic_p.bind(as_operand(x, "lax.logistic"), accuracy=accuracy)
