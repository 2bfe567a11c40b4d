"""What all functions of distributions share: operands, supports, location and scale.

A distribution is written in its standard form, as formulas that hold inside its support. Outside of
it, and where a parameter is out of range, a formula sees a harmless value, so that its derivatives
are numbers there, too, and its result is replaced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from dovetail import custom_jvp, jvp, lax
from dovetail.extend.arguments import (
    broadcast_ranks,
    convert,
    refuse_complex,
    value,
    weak_of,
)
from dovetail.extend.avals import aval_of
from dovetail.numpy.averages import computed_in
from dovetail.numpy.conditions import literal_beside, pick
from dovetail.scipy.special.operands import of_one_dtype
from dovetail.typing import Array

Formula = Callable[..., Any]
End = float | Formula

#: What a function of the distribution is below and above its support.
_ENDS: Final[dict[str, tuple[float, float]]] = {
    "logpdf": (-math.inf, -math.inf),
    "pdf": (0, 0),
    "logpmf": (-math.inf, -math.inf),
    "pmf": (0, 0),
    "cdf": (0, 1),
    "sf": (1, 0),
    "logcdf": (-math.inf, 0),
    "logsf": (0, -math.inf),
}


def real_operands(
    function: str, names: Sequence[str], given: Sequence[Any]
) -> tuple[list[Any], Any, bool]:
    """Operands as floats of one dtype, in which to compute, and dtype and weakness of the result.

    Narrow floats are computed in float32.

    Raises:
        TypeError: an operand is no array of real numbers.
    """
    operands = of_one_dtype(function, **dict(zip(names, given, strict=True)))
    for x in operands:
        refuse_complex(function, x)
    dtype = aval_of(operands[0]).dtype
    weak = all(map(weak_of, operands))
    return [value(convert(x, computed_in(dtype))) for x in operands], dtype, weak


def choose(condition: Any, number: float, x: Any) -> Any:
    """A number where the condition holds, `x` elsewhere."""
    return pick(condition, literal_beside(number, x), x)


def exp_of_log(x: Any) -> Any:
    """``exp(x)``, with the derivative 0 at -inf, where the chain rule alone would give nan."""
    empty = x == -math.inf
    return choose(empty, 0, lax.exp(choose(empty, 0, x)))


def log_of_probability(x: Any) -> Any:
    """``log(x)``, with the derivative 0 where the probability has underflown."""
    empty = x == 0
    return choose(empty, -math.inf, lax.log(choose(empty, 1, x)))


def finished(x: Any, dtype: Any, weak: bool) -> Array:
    """A result in its own dtype."""
    return value(convert(x, dtype, weak))


def _end(end: End, parameters: Sequence[Any]) -> Any:
    return end(*parameters) if callable(end) else end


class Family(NamedTuple):
    """A family of distributions in its standard form."""

    name: str
    #: Parameters besides location and scale, and for each a value that is in its range.
    parameters: tuple[str, ...] = ()
    defaults: tuple[float, ...] = ()
    #: Whether parameters are in their ranges.
    valid: Formula | None = None
    low: End = -math.inf
    high: End = math.inf
    #: A value that the support contains whatever the parameters are, or a function of them.
    typical: End = 0.0
    #: Whether values are integers, `k`, without a scale.
    discrete: bool = False

    def at(
        self,
        quantity: str,
        formula: Formula,
        x: Any,
        *parameters: Any,
        loc: Any = 0,
        scale: Any = 1,
    ) -> Array:
        """A function of the distribution.

        Args:
            quantity: its name, by which its values outside the support are known.
            formula: the function, or of a density the logarithm, of a standard value in the support
                and of the parameters.
            x: where.
            *parameters: those besides location and scale.
            loc: location.
            scale: scale.
        """
        y, dtype, weak, rest, valid, scale, _ = self._standard(quantity, x, parameters, loc, scale)
        low, high = _end(self.low, rest), _end(self.high, rest)
        is_density = quantity in ("logpdf", "pdf", "logpmf", "pmf")
        below = y < low if is_density or self.discrete else y <= low
        above = y > high if is_density or self.discrete else y >= high
        # Infinity belongs to no support, so that no formula has to deal with it.
        below, above = below | (y == -math.inf), above | (y == math.inf)
        if self.discrete and is_density:
            below |= lax.floor(y) != y
        unknown = y != y
        outside = below | above | unknown | ~valid
        y = pick(outside, self._typical(y, rest), y)
        if self.discrete:
            # With a chance of 0 or 1 formulas have infinite derivatives.
            rest = self._harmless(outside, rest)
        if quantity in ("pdf", "pmf"):
            result = self._density(formula)(y, *rest)
            result = result if self.discrete else result / scale
        else:
            result = formula(y, *rest)
            result = result - lax.log(scale) if quantity == "logpdf" else result
        ends = _ENDS[quantity]
        result = choose(above, ends[1], choose(below, ends[0], result))
        return finished(choose(unknown | ~valid, math.nan, result), dtype, weak)

    def quantile(
        self,
        quantity: str,
        formula: Formula,
        q: Any,
        *parameters: Any,
        loc: Any = 0,
        scale: Any = 1,
    ) -> Array:
        """An inverse: `formula` is that of a probability and of the parameters."""
        standard = self._standard(quantity, q, parameters, loc, scale, "q")
        q, dtype, weak, rest, valid, scale, loc = standard
        known = (q >= 0) & (q <= 1)
        unknown = ~(known & valid)
        result = loc + scale * formula(choose(unknown, 0.5, q), *rest)
        return finished(choose(unknown, math.nan, result), dtype, weak)

    def _typical(self, y: Any, parameters: Sequence[Any]) -> Any:
        return _end(self.typical, parameters) + lax.full_like(y, 0)

    def _harmless(self, where: Any, parameters: Sequence[Any]) -> list[Any]:
        """Parameters, but where the condition holds those that are in their range."""
        return [choose(where, d, p) for d, p in zip(self.defaults, parameters, strict=True)]

    def _density(self, formula: Formula) -> Any:
        """The exponential of a formula, with the derivative 0 where nothing is left of it.

        There the derivative of the formula may be infinite.
        """

        def exponential(y: Any, *parameters: Any) -> Any:
            return lax.exp(formula(y, *parameters))

        def rule(primals: Any, tangents: Any) -> tuple[Any, Any]:
            result = density(*primals)
            empty = result == 0
            parameters = self._harmless(empty, primals[1:])
            y = pick(empty, self._typical(primals[0], parameters), primals[0])
            _, change = jvp(formula, (y, *parameters), tuple(tangents))
            return result, choose(empty, 0, result * change)

        density: Any = custom_jvp(exponential)
        density.defjvp(rule)
        return density

    def _standard(
        self, quantity: str, x: Any, parameters: Any, loc: Any, scale: Any, variable: str = "x"
    ) -> tuple[Any, ...]:
        function = f"{self.name}.{quantity}"
        variable = "k" if self.discrete and variable == "x" else variable
        names = (variable, "loc", "scale", *self.parameters)
        operands, dtype, weak = real_operands(function, names, (x, loc, scale, *parameters))
        x, loc, scale, *rest = broadcast_ranks(function, operands)
        valid = (scale > 0) & (loc == loc)
        scale = choose(~valid, 1, scale)
        if self.valid is not None:
            known = self.valid(*rest)
            rest = [choose(~known, d, p) for d, p in zip(self.defaults, rest, strict=True)]
            valid = valid & known
        if variable != "q":
            # Infinity stays what it is: the derivative by the scale would be nan.
            finite = lax.is_finite(x)
            y = choose(~finite, 0, x) - loc
            x = pick(finite, y if self.discrete else y / scale, x)
        return x, dtype, weak, rest, valid, scale, loc
