"""Real and complex functions that are computed in double precision, whatever their dtype.

The formulas of special functions lose a few digits here and there. Computed in float64 and rounded
once, a narrower result is right to its last digit or so. Their derivatives are further functions of
this kind, which makes those of every order as exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dovetail import custom_jvp, enable_x64, jvp, lax
from dovetail.custom_derivatives import SymbolicZero
from dovetail.extend import dtypes
from dovetail.extend.arguments import broadcast_result, inexact, promoted, refuse_complex, value

Formula = Callable[..., Any]


def double_precision(formula: Formula, slopes: dict[int, Formula] | None = None) -> Formula:
    """A function of checked arrays by a formula of float64 or complex128 arrays.

    The result has the dtype of the last operand. Operands are broadcast to one shape. Integers are
    taken as numbers that have no derivative.

    Args:
        formula: from arrays to an array of their shape. It needs to be differentiable forwards.
        slopes: by the position of an operand, the derivative with respect to it, a function of
            checked arrays that has derivatives; otherwise the formula is differentiated.
    """

    def compute(*operands: Any) -> Any:
        dtype = operands[-1].dtype
        with enable_x64(True):
            result = formula(*_wide(operands))
            return lax.convert_element_type(result, dtype)

    function: Any = custom_jvp(compute)
    found: dict[int, Formula] = dict(slopes or {})

    def slope(position: int) -> Formula:
        if position not in found:

            def differentiated(*xs: Any) -> Any:
                # The others are constants: a zero tangent times an infinite slope is no number.
                def partial(x: Any) -> Any:
                    return formula(*xs[:position], x, *xs[position + 1 :])

                x = xs[position]
                return jvp(partial, (x,), (lax.full_like(x, 1),))[1]

            found[position] = double_precision(differentiated)
        return found[position]

    def rule(primals: Any, tangents: Any) -> Any:
        result = function(*primals)
        total = lax.full_like(result, 0)
        for i, t in enumerate(tangents):
            if isinstance(t, SymbolicZero):
                continue
            change = lax.convert_element_type(t, result.dtype)
            total = lax.add(total, lax.mul(change, slope(i)(*primals)))
        return result, total

    function.defjvp(rule, symbolic_zeros=True)
    return function


def _wide(operands: Sequence[Any]) -> list[Any]:
    wide = []
    for x in operands:
        kind = dtypes.kind_of(x.dtype)
        dtype = np.dtype(np.complex128 if kind == "c" else np.float64)
        wide.append(lax.convert_element_type(x, dtype))
    return wide


def real_operands(function: str, names: Sequence[str], *args: Any) -> list[Any]:
    """Operands as floats of one dtype and shape.

    Raises:
        DTypeError: an operand is complex.
    """
    checked = [inexact(function, x, name) for x, name in zip(args, names, strict=True)]
    if len(checked) > 1:
        checked = promoted(function, *args, names=names)
        checked = promoted(function, *(inexact(function, x) for x in checked), names=names)
    refuse_complex(function, checked[0])
    shape = broadcast_result(function, [value(x).shape for x in checked])
    return [_spread(value(x), shape) for x in checked]


def _spread(x: Any, shape: tuple[int, ...]) -> Any:
    missing = len(shape) - x.ndim
    return (
        x if x.shape == shape else lax.broadcast_in_dim(x, shape, tuple(range(missing, len(shape))))
    )


def chebyshev(coefficients: Sequence[float], t: Any) -> Any:
    """A sum of Chebyshev polynomials at points between -1 and 1, by Clenshaw's recurrence."""
    twice = t + t
    previous: Any = 0.0
    current: Any = coefficients[-1]
    for c in coefficients[-2:0:-1]:
        previous, current = current, twice * current + (c - previous)
    return t * current + (coefficients[0] - previous)


def chebyshev_between(coefficients: Sequence[float], low: float, high: float, x: Any) -> Any:
    """`chebyshev` on an interval; what lies well outside gives some finite value."""
    centre, half = (high + low) / 2, (high - low) / 2
    t = (x - centre) / half
    # Not at 1 itself: there the limit would have a derivative of its own.
    return chebyshev(coefficients, lax.clamp(-1.001, t, 1.001))


def leading_half(x: Any) -> Any:
    """The leading 26 bits, the square of which is exact."""
    return lax.stop_gradient(lax.reduce_precision(x, 11, 25))
