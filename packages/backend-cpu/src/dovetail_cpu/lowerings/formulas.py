"""Arithmetic of values, written as formulas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dovetail.extend import ShapedArray

__all__ = ["Term"]


class Term:
    """A value in a formula: its operators create operations, with constants as needed.

    Attributes:
        context: the builder.
        value: the value.
        aval: its shape and dtype.
    """

    __slots__ = ("aval", "context", "value")

    def __init__(self, context: Any, value: Any, aval: Any) -> None:
        self.context = context
        self.value = value
        self.aval = aval

    def constant(self, number: float) -> Term:
        """A number in the shape and dtype of this value."""
        return Term(self.context, self.context.constant(number, self.aval), self.aval)

    def op(self, name: str, *others: Term | float) -> Term:
        """An operation of StableHLO on this value and others of its type."""
        operands = [self.value, *(self._like(other).value for other in others)]
        return Term(self.context, self.context.op(name, operands, self.aval), self.aval)

    def _like(self, other: Term | float) -> Term:
        return other if isinstance(other, Term) else self.constant(other)

    def __add__(self, other: Term | float) -> Term:
        return self.op("add", other)

    def __sub__(self, other: Term | float) -> Term:
        return self.op("subtract", other)

    def __rsub__(self, other: float) -> Term:
        return self.constant(other) - self

    def __mul__(self, other: Term | float) -> Term:
        return self.op("multiply", other)

    def __truediv__(self, other: Term | float) -> Term:
        return self.op("divide", other)

    def __rtruediv__(self, other: float) -> Term:
        return self.constant(other) / self

    def __neg__(self) -> Term:
        return self.op("negate")

    def __abs__(self) -> Term:
        return self.op("abs")

    def __and__(self, other: Term | int) -> Term:
        return self.op("and", other)

    def __or__(self, other: Term | int) -> Term:
        return self.op("or", other)

    def __xor__(self, other: Term | int) -> Term:
        return self.op("xor", other)

    def __lshift__(self, count: int) -> Term:
        return self.op("shift_left", count)

    def __rshift__(self, count: int) -> Term:
        """Zeros come in from the left, also for signed integers."""
        return self.op("shift_right_logical", count)

    def __lt__(self, other: Term | float) -> Term:
        return self._compare(other, "LT")

    def __gt__(self, other: Term | float) -> Term:
        return self._compare(other, "GT")

    def equals(self, other: Term | float) -> Term:
        """Where both are equal."""
        return self._compare(other, "EQ")

    def _compare(self, other: Term | float, direction: str) -> Term:
        value = self.context.compare(self.value, self._like(other).value, direction, self.aval)
        return Term(self.context, value, self.context.mask(self.aval))

    def at_most(self, limit: Term | float) -> Term:
        """The smaller of both; NaN where this is. In this form it is one instruction."""
        return (self > limit).choose(self._like(limit), self)

    def at_least(self, limit: Term | float) -> Term:
        """The larger of both; NaN where this is. In this form it is one instruction."""
        return (self < limit).choose(self._like(limit), self)

    def choose(self, x: Term, y: Term) -> Term:
        """`x` where this is true, `y` elsewhere."""
        value = self.context.select(self.value, x.value, y.value, x.aval)
        return Term(self.context, value, x.aval)

    def to(self, dtype: Any) -> Term:
        """Converted."""
        aval = ShapedArray(self.aval.shape, np.dtype(dtype))
        return Term(self.context, self.context.convert(self.value, self.aval, aval), aval)

    def bits(self, dtype: Any) -> Term:
        """The same bits as another dtype."""
        aval = ShapedArray(self.aval.shape, np.dtype(dtype))
        return Term(self.context, self.context.bitcast_convert(self.value, aval), aval)

    def rounded(self) -> Term:
        """The nearest integer, the even one of two."""
        return self.op("round_nearest_even")

    def polynomial(self, coefficients: Sequence[float]) -> Term:
        """A polynomial of this value, from the constant coefficient on.

        Pairs of terms are added first, then pairs of these (Estrin's scheme): few operations wait
        for others, of which a processor does several at once.
        """
        terms: list[Any] = list(coefficients)
        power = self
        while len(terms) > 1:
            pairs = zip(terms[::2], terms[1::2], strict=False)
            terms = [power * high + low for low, high in pairs] + terms[len(terms) & ~1 :]
            if len(terms) > 1:
                power = power * power
        return self._like(terms[0])
