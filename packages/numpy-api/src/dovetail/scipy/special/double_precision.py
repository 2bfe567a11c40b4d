"""Functions that are computed in double precision, whatever the dtype of their operands.

The formulas of special functions lose a few digits here and there. Computed in float64 and rounded
once, a narrower result is right to its last digit or so. Their derivatives are further functions of
this kind, which makes those of every order as exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from dovetail import custom_jvp, enable_x64, jit, jvp, lax
from dovetail import numpy as jnp
from dovetail.custom_derivatives import SymbolicZero
from dovetail.extend import dtypes

Formula = Callable[..., Any]

_DOUBLE, _COMPLEX_DOUBLE = np.dtype("float64"), np.dtype("complex128")


def in_double(formula: Formula, slopes: Mapping[int, Formula] | None = None) -> Any:
    """A function of checked arrays by a formula of float64 or complex128 arrays.

    The result has the dtype of the last operand, and is not weakly typed. Integers are taken as
    numbers that have no derivative.

    Args:
        formula: from arrays to an array. It needs to be differentiable forwards, in the operands
            that have no slope.
        slopes: by the position of an operand, the derivative with respect to it, a function of
            checked arrays that has derivatives, and computes in the precision of its choice;
            otherwise the formula is differentiated, in float64, too.
    """
    function: Any = custom_jvp(_program(formula))
    found: dict[int, Formula] = dict(slopes or {})

    def slope(position: int) -> Formula:
        if position not in found:
            found[position] = in_double(_derivative(formula, position))
        return found[position]

    def rule(primals: Any, tangents: Any) -> Any:
        result = function(*primals)
        total = jnp.zeros_like(result)
        for i, t in enumerate(tangents):
            # A product of 0 and an infinite slope is no number.
            if not isinstance(t, SymbolicZero):
                total = total + t * slope(i)(*primals)
        return result, total

    function.defjvp(rule, symbolic_zeros=True)
    return function


def _program(formula: Formula) -> Formula:
    """A formula as a program that takes and gives operands of their own dtype.

    The formula is traced with types of 64 bits, so that it can be written with all of
    `dovetail.numpy`: the dtypes of tracers alone would not do, as a number that becomes an array is
    made narrower. It is a program, even if it is traced or batched eagerly, so that nobody outside
    sees float64 where the option is off.
    """

    def run(*operands: Any) -> Any:
        with enable_x64(True):
            result = formula(*(lax.convert_element_type(x, _wide(x.dtype)) for x in operands))
            return lax.convert_element_type(result, operands[-1].dtype)

    run.__name__ = formula.__name__
    return jit(run)


def _wide(dtype: Any) -> np.dtype[Any]:
    return _COMPLEX_DOUBLE if dtypes.kind_of(dtype) == "c" else _DOUBLE


def _derivative(formula: Formula, position: int) -> Formula:
    def derivative(*operands: Any) -> Any:
        # The others are constants: a zero tangent times an infinite slope is no number.
        def partial(x: Any) -> Any:
            return formula(*operands[:position], x, *operands[position + 1 :])

        x = operands[position]
        return jvp(partial, (x,), (jnp.ones_like(x),))[1]

    return derivative


def leading_half(x: Any) -> Any:
    """The leading 26 bits of float64, the square of which is exact."""
    return lax.stop_gradient(lax.reduce_precision(x, 11, 25))


def exact_product(x: Any, y: Any) -> tuple[Any, Any]:
    """A product of float64 numbers and what it lacks.

    By T. J. Dekker, A floating-point technique for extending the available precision, Numerische
    Mathematik 18 (1971). The product has some bits less than it could have, so that no compiler
    takes the cut for none and fuses it with a sum.
    """
    (a, b), (c, d) = ((high, z - high) for z, high in ((x, leading_half(x)), (y, leading_half(y))))
    product = lax.reduce_precision(x * y, 11, 49)
    return product, ((a * c - product) + (a * d + b * c)) + b * d


def sum_of_pairs(x: tuple[Any, Any], y: tuple[Any, Any]) -> tuple[Any, Any]:
    """The sum of two numbers that have a second part each, which is small beside the first."""
    total = x[0] + y[0]
    part = total - x[0]
    rest = ((x[0] - (total - part)) + (y[0] - part)) + (x[1] + y[1])
    high = total + rest
    return high, rest - (high - total)
