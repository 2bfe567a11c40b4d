"""Polynomials whose coefficients are operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import (
    Elementwise,
    add_tangents,
    broadcast_shapes,
    convert_element_type,
    mul,
)
from dovetail._core.basis.operands import as_operand, make_literal
from dovetail._core.basis.structural import broadcast_to, full, is_linear, sum_to
from dovetail._core.ir.avals import ShapedArray, aval_of, make_aval, shape_of
from dovetail._core.ir.jaxpr import Literal
from dovetail._core.ops.elementwise import references
from dovetail._core.ops.shape.joining import unstack
from dovetail._core.trace.tracer import ArrayClass
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

#: Kinds of dtypes; each includes those before it.
_KINDS: Final = "buifc"


class Polynomial(Elementwise):
    """The polynomial of the first operand; the others are its coefficients, constant first."""

    name = "polynomial"

    def abstract(self, *avals: Any, unroll: int | None = None) -> Any:
        if len(avals) < 2:
            raise TypeError("polynomial requires an argument and at least one coefficient")
        return super().abstract(*avals)

    def reference(self, *args: Any, **params: Any) -> Any:
        return super().reference(*args)

    @staticmethod
    def numpy(x: Any, *coefficients: Any) -> Any:
        """The sum of products with powers; floats in 64 bits."""
        x, *wide = map(references.widen, (x, *coefficients))
        with np.errstate(all="ignore"):
            result = wide[-1]
            for coefficient in wide[-2::-1]:
                result = result * x + coefficient
            return np.broadcast_to(result, np.broadcast_shapes(*(np.shape(a) for a in (x, *wide))))

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, unroll: int | None = None
    ) -> tuple[Any, Any]:
        x, *coefficients = primals
        t, *others = tangents
        out = self.bind(*primals, unroll=unroll)
        result: Any = Zero.of(out)
        if type(t) is not Zero and len(coefficients) > 1:
            dtype = aval_of(x).dtype
            lower = [mul(make_literal(k, dtype), c) for k, c in enumerate(coefficients[1:], 1)]
            result = mul(t, _evaluated(x, lower, unroll))
        while others and type(others[-1]) is Zero:
            others.pop()
        if others:
            dtype = aval_of(x).dtype
            filled = [make_literal(0, dtype) if type(o) is Zero else o for o in others]
            result = add_tangents(result, _evaluated(x, filled, unroll))
        if type(result) is not Zero:
            result = broadcast_to(result, shape_of(out))
        return out, result

    def transpose(
        self, ct: Any, x: Any, *coefficients: Any, unroll: int | None = None
    ) -> Sequence[Any]:
        """It is linear in the coefficients."""
        results: list[Any] = [None]
        last = max(k for k, c in enumerate(coefficients) if is_linear(c))
        for k, coefficient in enumerate(coefficients):
            linear = is_linear(coefficient)
            results.append(sum_to(ct, coefficient.shape) if linear else None)
            if k < last:
                ct = mul(ct, x)
        return results

    def lower(self, context: Builder, *values: Any, unroll: int | None = None) -> Any:
        x, *coefficients = values
        (out,) = context.avals_out
        if unroll is not None and len(coefficients) - 1 > unroll:
            return _loop(context, x, coefficients, out, unroll)
        x, *coefficients = context.broadcast_operands(values, out)
        result = coefficients.pop()
        for coefficient in reversed(coefficients):
            result = context.add(context.mul(result, x, out), coefficient, out)
        return result


def _evaluated(x: Any, coefficients: Sequence[Any], unroll: int | None) -> Any:
    """The polynomial; its coefficient if there is only one."""
    if len(coefficients) == 1:
        return coefficients[0]
    return polynomial_p.bind(x, *coefficients, unroll=unroll)


def _loop(
    context: Builder, x: Any, coefficients: Sequence[Any], out: ShapedArray, unroll: int
) -> Any:
    """Horner's rule in a loop with `unroll` steps per iteration, after the remaining steps.

    The coefficients are stacked in their own shape, the last one first.
    """
    assert context.equation is not None
    first, *others = context.avals_in
    row = out.update(shape=broadcast_shapes("polynomial", [a.shape for a in others]))
    one, table = (row.update(shape=(n, *row.shape)) for n in (1, len(others)))
    literals = [v.val for v in context.equation.invars[:0:-1] if type(v) is Literal]
    if len(literals) == len(others):
        stacked = context.constant(np.array(literals, out.dtype), table)
    else:
        spread = [
            context.broadcast_in_dim(c, one, range(1, 1 + row.ndim) if a.ndim else ())
            for c, a in zip(coefficients, others, strict=True)
        ]
        stacked = context.concatenate(spread[::-1], table, 0)
    index = make_aval((), np.dtype(np.int32))
    zero = context.constant(0, index)

    def widened(value: Any, aval: ShapedArray) -> Any:
        if aval.shape == out.shape:
            return value
        return context.broadcast_in_dim(value, out, range(out.ndim) if aval.ndim else ())

    def coefficient(number: Any) -> Any:
        sliced = context.dynamic_slice(stacked, one, [number, *[zero] * row.ndim])
        return widened(context.reshape(sliced, row), row)

    def steps(number: Any, value: Any, count: int) -> list[Any]:
        for _ in range(count):
            value = context.add(context.mul(value, x, out), coefficient(number), out)
            number = context.add(number, context.constant(1, index), index)
        return [number, value]

    x = widened(x, first)
    start = context.constant(1, index)
    state = steps(start, coefficient(zero), (len(others) - 1) % unroll)
    unfinished = lambda number, _: context.compare(  # noqa: E731
        number, context.constant(len(others), index), "LT", index
    )
    turn = lambda number, value: steps(number, value, unroll)  # noqa: E731
    return context.while_loop(state, [index, out], unfinished, turn)[1]


polynomial_p: Final = Polynomial()


# Public functions


def polynomial(x: ArrayLike, coeffs: Sequence[Any], *, unroll: int | None = None) -> Array:
    """A polynomial of each element, ``coeffs[0] + coeffs[1] * x + coeffs[2] * x**2 + ...``.

    It is evaluated by Horner's rule. Unlike in `numpy.polyval`, the constant coefficient comes
    first.

    Args:
        x: numbers, not booleans.
        coeffs: numbers or arrays, each of the shape of `x`, a scalar, or broadcastable along
            dimensions of size 1; or one array, whose first dimension counts the coefficients. They
            are converted to the dtype of `x`.
        unroll: the number of steps per iteration of a loop; None unrolls all of them.

    Returns:
        An array of the dtype of `x`; zeros if there are no coefficients.

    Raises:
        TypeError: `x` is bool, a coefficient is of a kind that the dtype of `x` cannot represent
            (complex for real, floating point for integers), or shapes are incompatible.
        ValueError: `unroll` is not positive.

    Differs:
        Coefficients that the dtype of `x` cannot represent are refused, and so are booleans,
        however few coefficients there are.

        >>> lax.polynomial(jnp.arange(3), [0.5, 1.5])
        Traceback (most recent call last):
            ...
        TypeError: ...

    Example:
        >>> from dovetail import lax
        >>> float(lax.polynomial(2.0, [1.0, 0.5, 3.0]))
        14.0
    """
    x = as_operand(x, "lax.polynomial")
    is_integer = isinstance(unroll, (int, np.integer)) and not isinstance(unroll, bool)
    if unroll is not None and not (is_integer and unroll >= 1):
        raise ValueError(f"lax.polynomial: unroll must be a positive integer or None, got {unroll}")
    aval = aval_of(x)
    listed = _listed(coeffs)
    values = [_coefficient(c, f"coeffs[{k}]", aval.dtype) for k, c in enumerate(listed)]
    if len(values) > 1:
        return polynomial_p.bind(x, *values, unroll=unroll)
    # Checks the dtype of x.
    shape = polynomial_p.abstract(aval, *([aval_of(v) for v in values] or [aval])).shape
    if values:
        return broadcast_to(values[0], shape)
    return convert_element_type(full(shape, 0, aval.dtype), aval.dtype, aval.weak_type)


def _listed(coeffs: Any) -> Sequence[Any]:
    if isinstance(coeffs, (ArrayClass, np.ndarray)) and coeffs.ndim:
        return unstack(coeffs)  # type: ignore[arg-type]
    if isinstance(coeffs, (list, tuple)):
        return coeffs
    raise TypeError(
        "lax.polynomial requires its argument coeffs to be a sequence of coefficients, or an array "
        f"of one dimension or more, got {type(coeffs).__name__}; write [coeffs] for a constant"
    )


def _coefficient(value: Any, argument: str, dtype: Any) -> Any:
    value = as_operand(value, "lax.polynomial", argument)
    aval = aval_of(value)
    if _KINDS.find(dtypes.kind_of(aval.dtype)) > _KINDS.find(dtypes.kind_of(dtype)):
        raise TypeError(
            f"lax.polynomial: {argument} is of dtype {aval.dtype}, and the dtype of x, {dtype}, "
            "does not hold such numbers; convert either with lax.convert_element_type"
        )
    if type(value) is Literal:
        return make_literal(value.val, dtype, aval.weak_type)
    return convert_element_type(value, dtype)
