"""Sums, products, quotients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import Array, ArrayLike, DTypeLike
from dovetail._core.basis.elementwise import add_tangents, convert_element_type, mul_p, neg_p
from dovetail._core.basis.elementwise import mul as multiply
from dovetail._core.basis.elementwise import neg as negate
from dovetail._core.basis.families import Binary
from dovetail._core.basis.operands import as_operand
from dovetail._core.basis.structural import broadcast_to, is_linear, not_linear, sum_to
from dovetail._core.ir.avals import ShapedArray, aval_of, shape_of
from dovetail._core.ops.elementwise import references
from dovetail._core.ops.elementwise.operands import operands
from dovetail._core.trace.zeros import Zero


class Add(Binary):
    """The sum."""

    name, hlo, numpy = "add", "add", np.add
    linear_in: ClassVar[Sequence[slice]] = (slice(None),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = self.bind(*primals)
        s, t = tangents
        if type(s) is Zero or type(t) is Zero:
            one = add_tangents(s, t)
            return out, Zero.of(out) if type(one) is Zero else broadcast_to(one, shape_of(out))
        return out, self.bind(s, t)

    def transpose(self, ct: Any, x: Any, y: Any) -> Sequence[Any]:
        return tuple(sum_to(ct, a.shape) if is_linear(a) else None for a in (x, y))


add_p: Final = Add()


class Sub(Binary):
    """The difference."""

    name, hlo, numpy = "sub", "subtract", np.subtract
    linear_in: ClassVar[Sequence[slice]] = (slice(None),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        out = self.bind(*primals)
        s, t = tangents
        if type(s) is Zero and type(t) is Zero:
            return out, Zero.of(out)
        if type(t) is Zero:
            return out, broadcast_to(s, shape_of(out))
        if type(s) is Zero:
            return out, broadcast_to(negate(t), shape_of(out))
        return out, self.bind(s, t)

    def transpose(self, ct: Any, x: Any, y: Any) -> Sequence[Any]:
        return (
            sum_to(ct, x.shape) if is_linear(x) else None,
            sum_to(negate(ct), y.shape) if is_linear(y) else None,
        )


sub_p: Final = Sub()


class Division(Binary):
    """A quotient or its remainder."""

    #: The result for an integer divided by zero; the dividend if None.
    by_zero: ClassVar[int | None] = None

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        """StableHLO in which no integer is divided by zero.

        XLA defines the result, but folds constants with the processor's division, which crashes.
        If the divisor is known, the checks fold away; otherwise they repeat XLA's own.
        """
        if dtypes.kind_of(out.dtype) not in ("i", "u"):
            return context.op(self.hlo, values, out)
        x, y = values
        is_zero = context.compare(y, context.constant(0, out), "EQ", out)
        divisor = context.select(is_zero, context.constant(1, out), y, out)
        result = context.op(self.hlo, [x, divisor], out)
        other = x if self.by_zero is None else context.constant(self.by_zero, out)
        return context.select(is_zero, other, result, out)


class Div(Division):
    """The quotient; for integers, rounded towards zero."""

    by_zero = -1

    name, hlo, numpy = "div", "divide", references.truncated_division
    linear_in: ClassVar[Sequence[slice]] = (slice(1),)

    def tangent_left(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        return self.bind(t, y)

    def tangent_right(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        # Not -t x / y**2, because the square may overflow.
        return multiply(negate(t), self.bind(out, y))

    def transpose(self, ct: Any, x: Any, y: Any) -> Sequence[Any]:
        if is_linear(y):
            raise not_linear("a quotient whose denominator depends on a tangent")
        return (sum_to(self.bind(ct, y), x.shape), None)

    def taylor(self, operands: Sequence[Any], results: Sequence[Any]) -> Callable[[int], Any]:
        from dovetail._core.transform.taylor import Series  # deferred: few take such derivatives

        (x, y), (out,) = operands, results
        # Not (x - y out) / y, because the product may overflow.
        ratios = Series(
            lambda order: y[order] if type(y[order]) is Zero else self.bind(y[order], y[0])
        )

        def term(order: int) -> Any:
            if order == 0:
                return self.bind(x[0], y[0])
            shape = shape_of(out[0])
            total: Any = Zero.of(out[0])
            if type(x[order]) is not Zero:
                total = broadcast_to(self.bind(x[order], y[0]), shape)
            for k in range(1, order + 1):
                ratio, before = ratios[k], out[order - k]
                if not (type(ratio) is Zero or type(before) is Zero):
                    part = broadcast_to(multiply(negate(ratio), before), shape)
                    total = add_tangents(total, part)
            return total

        return term

    def check(self, checks: Any, *args: Any, **params: Any) -> Any:
        checks.check_divisor(args[1])
        return self.bind(*args, **params)


div_p: Final = Div()


# Public functions


def add(x: ArrayLike, y: ArrayLike) -> Array:
    """The elementwise sum ``x + y``; integers wrap around.

    Args:
        x: numbers, not booleans.
        y: numbers of the same dtype; the same shape, a scalar, or broadcastable along dimensions of
            size 1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ, shapes are incompatible, or the dtype is bool.

    Differs:
        A scalar of Python and any other weakly typed scalar takes the dtype of the other
        operand where promotion allows it, here and in all functions of this module. Arrays of
        different dtypes are refused.

        >>> print(lax.add(jnp.ones(2), 2))
        [3. 3.]
        >>> lax.add(jnp.ones(2), jnp.ones(2, int))
        Traceback (most recent call last):
            ...
        TypeError: lax.add requires arguments of equal dtypes, got float32, int32; ...

    Example:
        >>> from dovetail import lax
        >>> float(lax.add(1.5, 2.0))
        3.5
    """
    return add_p.bind(*operands("add", x, y))


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """The elementwise difference ``x - y``; integers wrap around.

    Args:
        x: numbers, not booleans.
        y: numbers of the same dtype; the same shape, a scalar, or broadcastable along dimensions of
            size 1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ, shapes are incompatible, or the dtype is bool.

    Example:
        >>> from dovetail import lax
        >>> float(lax.sub(1.5, 2.0))
        -0.5
    """
    return sub_p.bind(*operands("sub", x, y))


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """The elementwise product ``x * y``; integers wrap around.

    Args:
        x: numbers.
        y: numbers of the same dtype; the same shape, a scalar, or broadcastable along dimensions of
            size 1.
        out_dtype: dtype of the result, to which the operands are converted first: of their kind, or
            of one that holds theirs, such as floats for integers. None for theirs.

    Returns:
        An array of the dtype of the operands, or of `out_dtype`.

    Raises:
        TypeError: dtypes differ, `out_dtype` has another kind, or shapes are incompatible.

    Differs:
        A dtype that was asked for, with `out_dtype` or `preferred_element_type`, must be of a kind
        that holds what it is made from: numbers lose no fractions, imaginary parts or signs. It is
        not weak.

        >>> lax.mul(jnp.ones(2), jnp.ones(2), out_dtype="int8")
        Traceback (most recent call last):
            ...
        TypeError: lax.mul: out_dtype int8 does not hold the values of float32
        >>> print(lax.mul(1.0, 2.0, out_dtype="float32").weak_type)
        False

    Example:
        >>> from dovetail import lax
        >>> float(lax.mul(1.5, 2.0))
        3.0
    """
    x, y = operands("mul", x, y)
    if out_dtype is not None:
        dtype, kinds = dtypes.canonicalize_dtype(out_dtype), "buifc"
        given, asked = (dtypes.kind_of(d) or "?" for d in (aval_of(x).dtype, dtype))
        if kinds.find(given) > kinds.find(asked):
            raise TypeError(
                f"lax.mul: out_dtype {dtype} does not hold the values of {aval_of(x).dtype}"
            )
        x, y = convert_element_type(x, dtype), convert_element_type(y, dtype)
    return mul_p.bind(x, y)


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """The elementwise quotient ``x / y``; unlike in NumPy, integers give an integer.

    Integer division rounds towards zero. Dividing an integer by zero gives the number with
    all bits set (-1 for signed ones) and no error.

    Args:
        x: dividends, not booleans.
        y: divisors of the same dtype; the same shape, a scalar, or broadcastable along dimensions
            of size 1.

    Returns:
        An array of the dtype of the operands.

    Raises:
        TypeError: dtypes differ, shapes are incompatible, or the dtype is bool.

    Differs:
        What a division by zero gives depends on nothing else; in JAX ``x / x`` is 1 where it is
        compiled.

        >>> print(dt.jit(lambda x: lax.div(x, x))(0))
        -1

    Example:
        >>> from dovetail import lax
        >>> int(lax.div(-7, 2))
        -3
    """
    return div_p.bind(*operands("div", x, y))


def neg(x: ArrayLike) -> Array:
    """The elementwise negative ``-x``; unsigned integers wrap around.

    Args:
        x: numbers, not booleans.

    Returns:
        An array of the shape and dtype of `x`.

    Raises:
        TypeError: `x` is bool.

    Example:
        >>> from dovetail import lax
        >>> float(lax.neg(1.5))
        -1.5
    """
    return neg_p.bind(as_operand(x, "lax.neg"))
