"""Functions with a formula in the interior of their domain, and fixed values at its edges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.basis.elementwise import Elementwise
from dovetail._core.hlo.expressions import Expression
from dovetail._core.ir.avals import ShapedArray

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

_DOUBLE: Final = np.dtype(np.float64)


class InteriorFunction(Elementwise):
    """A function of floating point numbers that is computed in float64.

    The formula receives ones in place of operands that are not in the interior.
    """

    kinds = "f"

    def inside(self, *operands: Expression) -> Expression:
        """Where the formula holds."""
        self._missing("lower")

    def formula(self, *operands: Expression, exact: bool) -> Expression:
        """The function in the interior; `exact` if the float64 result is not rounded further."""
        self._missing("lower")

    def edges(self, *operands: Expression) -> Sequence[tuple[Expression, Any]]:
        """Masks of other operands, with the results there; the last one that applies counts.

        The result is NaN if none applies.
        """
        self._missing("lower")

    def emit(self, context: Builder, *values: Any, out: ShapedArray, **params: Any) -> Any:
        wide = [Expression(context, v, out).convert(_DOUBLE) for v in values]
        inside = self.inside(*wide)
        safe = [t.where(inside, self.interior_point) for t in wide]
        result = self.formula(*safe, exact=out.dtype == _DOUBLE).where(inside, math.nan)
        for condition, value in self.edges(*wide):
            result = result.where(~condition, value)
        return result.convert(out.dtype).value

    #: A number in the interior, for every operand.
    interior_point = 1.0
