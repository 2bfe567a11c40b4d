"""What all functions of distributions share: operands, supports, location and scale.

A distribution is written in its standard form, as formulas that hold inside its support. Outside of
it, and where a parameter is out of range, a formula sees a harmless value, so that its derivatives
are numbers there, too, and its result is replaced.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from dovetail import lax
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    broadcast_ranks,
    convert,
    inexact_dtype,
    refuse_complex,
    value,
)
from dovetail.extend.avals import aval_of
from dovetail.numpy.conditions import literal_beside, pick
from dovetail.typing import Array

Formula = Callable[..., Any]
End = float | Formula

#: What a function of the distribution is below and above its support.
_ENDS: Final[dict[str, tuple[float, float]]] = {
    "logpdf": (-math.inf, -math.inf),
    "pdf": (-math.inf, -math.inf),
    "logpmf": (-math.inf, -math.inf),
    "pmf": (-math.inf, -math.inf),
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
    values = [array_like(x, function, name) for name, x in zip(names, given, strict=True)]
    avals = [aval_of(v) for v in values]
    for aval in avals:
        refuse_complex(function, aval)
    dtype, weak = dtypes.result_type(
        *(v if a.weak_type else a.dtype for v, a in zip(values, avals, strict=True)),
        return_weak_type_flag=True,
    )
    weak = weak and dtypes.kind_of(dtype) != "b"
    dtype = inexact_dtype(dtype)
    wide = np.dtype("float32") if dtype.itemsize < 4 else dtype
    return [value(convert(v, wide)) for v in values], dtype, weak


def choose(condition: Any, number: float, x: Any) -> Any:
    """A number where the condition holds, `x` elsewhere."""
    return pick(condition, literal_beside(number, x), x)


def exp_of_log(x: Any) -> Any:
    """``exp(x)``, with the derivative 0 at -inf, where the chain rule alone would give nan."""
    empty = x == -math.inf
    return choose(empty, 0, lax.exp(choose(empty, 0, x)))


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
        outside = below | above | unknown
        typical = _end(self.typical, rest) + lax.full_like(y, 0)
        result = formula(pick(outside, typical, y), *rest)
        if is_density and not self.discrete:
            result = result - lax.log(scale)
        ends = _ENDS[quantity]
        result = choose(above, ends[1], choose(below, ends[0], result))
        if quantity in ("pdf", "pmf"):
            result = exp_of_log(result)
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
        result = loc + scale * formula(choose(~known, 0.5, q), *rest)
        return finished(choose(~(known & valid), math.nan, result), dtype, weak)

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
            x = x - loc if self.discrete else (x - loc) / scale
        return x, dtype, weak, rest, valid, scale, loc
