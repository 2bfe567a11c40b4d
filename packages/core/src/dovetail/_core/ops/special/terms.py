"""Formulas in lowering rules: values with operators, and control flow for arrays of lanes.

Special functions take different ways for different arguments. A way is gone only if an element
needs it, and loops run only as often as the element that needs most.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dovetail._core.ir.avals import ShapedArray, make_aval

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

#: How many steps a turn of a loop does: each turn reads and writes whole arrays.
_STEPS_IN_A_TURN = 8


class Term:
    """A value of the program that is being made, with operators.

    Args:
        context: the builder.
        value: the value.
        aval: its aval.
    """

    __slots__ = ("aval", "context", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, context: Builder, value: Any, aval: ShapedArray) -> None:
        self.context = context
        self.value = value
        self.aval = aval

    def constant(self, value: Any) -> Term:
        """A constant of the same type."""
        return Term(self.context, self.context.constant(value, self.aval), self.aval)

    def _lifted(self, other: Any) -> Any:
        return other.value if isinstance(other, Term) else self.constant(other).value

    def apply(self, operation: str, *others: Any) -> Term:
        """The result of an operation of StableHLO on terms of this type."""
        operands = [self.value, *map(self._lifted, others)]
        return Term(self.context, self.context.op(operation, operands, self.aval), self.aval)

    def call(self, function: Callable[[Any], Any]) -> Term:
        """The result of a function of arrays."""
        (result,) = self.context.lower_function(function, [self.aval])(self.value)
        return Term(self.context, result, self.aval)

    def convert(self, dtype: Any) -> Term:
        """The same numbers in another dtype."""
        aval = self.aval.update(dtype=np.dtype(dtype))
        return Term(self.context, self.context.convert(self.value, self.aval, aval), aval)

    def bits(self, dtype: Any) -> Term:
        """The same bits as another dtype of that size."""
        aval = self.aval.update(dtype=np.dtype(dtype))
        return Term(self.context, self.context.bitcast_convert(self.value, aval), aval)

    def __add__(self, other: Any) -> Term:
        return self.apply("add", other)

    def __sub__(self, other: Any) -> Term:
        return self.apply("subtract", other)

    def __mul__(self, other: Any) -> Term:
        return self.apply("multiply", other)

    def __truediv__(self, other: Any) -> Term:
        return self.apply("divide", other)

    def __neg__(self) -> Term:
        return self.apply("negate")

    def __radd__(self, other: float) -> Term:
        return self.constant(other) + self

    def __rsub__(self, other: float) -> Term:
        return self.constant(other) - self

    def __rmul__(self, other: float) -> Term:
        return self.constant(other) * self

    def __rtruediv__(self, other: float) -> Term:
        return self.constant(other) / self

    def __and__(self, other: Any) -> Term:
        return self.apply("and", other)

    def __or__(self, other: Any) -> Term:
        return self.apply("or", other)

    def __invert__(self) -> Term:
        return self.apply("not")

    def _compared(self, other: Any, direction: str) -> Term:
        value = self.context.compare(self.value, self._lifted(other), direction, self.aval)
        return Term(self.context, value, self.context.mask(self.aval))

    def __lt__(self, other: Any) -> Term:
        return self._compared(other, "LT")

    def __le__(self, other: Any) -> Term:
        return self._compared(other, "LE")

    def __gt__(self, other: Any) -> Term:
        return self._compared(other, "GT")

    def __ge__(self, other: Any) -> Term:
        return self._compared(other, "GE")

    def __eq__(self, other: Any) -> Any:
        return self._compared(other, "EQ")

    def where(self, condition: Term, other: Any) -> Term:
        """This where the condition holds, `other` elsewhere."""
        value = self.context.select(condition.value, self.value, self._lifted(other), self.aval)
        return Term(self.context, value, self.aval)

    def exp(self) -> Term:
        """The exponential."""
        return self.apply("exponential")

    def log(self) -> Term:
        """The natural logarithm."""
        return self.apply("log")

    def sqrt(self) -> Term:
        """The square root."""
        return self.apply("sqrt")

    def abs(self) -> Term:
        """The absolute value."""
        return self.apply("abs")

    def nearest(self) -> Term:
        """The nearest integer."""
        return self.apply("round_nearest_even")

    def polynomial(self, coefficients: Sequence[Any]) -> Term:
        """A polynomial of this term by Horner's rule, from the constant coefficient on."""
        last = coefficients[-1]
        result: Term = last if isinstance(last, Term) else self.constant(last)
        for coefficient in coefficients[-2::-1]:
            result = result * self + coefficient
        return result

    def spread(self, aval: ShapedArray) -> Term:
        """A scalar in every element of `aval`."""
        return Term(self.context, self.context.broadcast_scalar(self.value, aval), aval)

    def scalar(self, value: Any) -> Term:
        """A scalar constant of the same dtype."""
        aval = self.context.scalar(self.aval)
        return Term(self.context, self.context.constant(value, aval), aval)

    def _reduced(self, operation: str) -> Term:
        """All elements joined to a scalar, with zero as what is neutral."""
        start = self.scalar(0)
        (result,) = self.context.reduce(
            [self.value],
            [start.value],
            range(self.aval.ndim),
            [start.aval],
            lambda x, y: self.context.op(operation, [x, y], start.aval),
        )
        return Term(self.context, result, start.aval)

    def maximum(self) -> Term:
        """The largest element, or zero if all are negative: a scalar."""
        return self._reduced("maximum")

    def any_bits(self) -> Term:
        """The bits that are set in any element: a scalar."""
        return self._reduced("or")


def by_kind(kinds: Term, functions: Sequence[Callable[[], Term] | None], otherwise: Term) -> Term:
    """The result of one of several functions for each element; those not needed are not computed.

    What a function computes from a few terms outside costs less than terms that it takes over:
    each of these becomes an array in memory, and a kernel to compile with all that leads to it.

    Args:
        kinds: numbers of the functions, from zero on, of int32.
        functions: they make the operations, from terms outside; None for `otherwise`.
        otherwise: the result for elements of other kinds.
    """
    context, result = kinds.context, otherwise
    needed = (kinds.constant(1).apply("shift_left", kinds)).any_bits()
    for k, function in enumerate(functions):
        if function is None:
            continue
        index = (needed & (1 << k)).convert(bool).convert(np.int32)

        def computed(k: int = k, function: Any = function, before: Term = result) -> Any:
            return function().where(kinds == k, before).value

        def skipped(before: Term = result) -> Any:
            return before.value

        (value,) = context.case(index.value, [skipped, computed], [result.aval])
        result = Term(context, value, result.aval)
    return result


def stacked(*terms: Term) -> Term:
    """Terms of one type along a new first dimension, so that what is done with all is done once."""
    context, aval = terms[0].context, terms[0].aval
    one, all_ = (aval.update(shape=(n, *aval.shape)) for n in (1, len(terms)))
    rows = [context.reshape(t.value, one) for t in terms]
    return Term(context, context.concatenate(rows, all_, 0), all_)


def unstacked(term: Term) -> list[Term]:
    """The parts of what `stacked` made."""
    context, (count, *shape) = term.context, term.aval.shape
    one, part = term.aval.update(shape=(1, *shape)), term.aval.update(shape=tuple(shape))
    zeros = (0,) * len(shape)
    rows = [context.slice(term.value, one, (k, *zeros), (k + 1, *shape)) for k in range(count)]
    return [Term(context, context.reshape(r, part), part) for r in rows]


def repeat_downwards(
    count: Term | int,
    step: Callable[..., Sequence[Term]],
    *states: Term,
    table: Any = None,
    steps_in_a_turn: int = 4,
) -> list[Term]:
    """Apply a step for the numbers from at least `count` down to one.

    Args:
        count: a scalar of the dtype of the states; more steps are done to fill the last turn.
        step: from the number, the table's entry at its place (if there is a table) and the states,
            all of one shape, to the next states.
        states: what to start from.
        table: an array whose first dimension counts the numbers, from zero on. An entry is a term,
            or a list of terms where the array has two dimensions.
        steps_in_a_turn: how many steps are written out. In each turn of the loop whole arrays are
            read and written.
    """
    first = states[0]
    context = first.context
    index = make_aval((), np.dtype(np.int32))
    if isinstance(count, int):
        total = Term(context, context.constant(-(-count // steps_in_a_turn), index), index)
    else:
        total = (count / float(steps_in_a_turn)).apply("ceil").convert(np.int32)
    entries = None if table is None else context.constant(np.asarray(table, first.aval.dtype))

    def entry(number: Term) -> Any:
        rest = np.shape(table)[1:]
        row = first.aval.update(shape=(1, *rest))
        zero = number.constant(0).value
        found = context.dynamic_slice(entries, row, [number.value, *(zero for _ in rest)])
        scalar = context.scalar(first.aval)
        if not rest:
            return Term(context, context.reshape(found, scalar), scalar).spread(first.aval)
        one = scalar.update(shape=(1,) * row.ndim)
        parts = [context.slice(found, one, (0, k), (1, k + 1)) for k in range(rest[0])]
        return [Term(context, context.reshape(p, scalar), scalar).spread(first.aval) for p in parts]

    def turn(number: Any, *values: Any) -> list[Any]:
        remaining = Term(context, number, index)
        current = [Term(context, v, s.aval) for v, s in zip(values, states, strict=True)]
        start = remaining.convert(first.aval.dtype).spread(first.aval)
        for k in range(steps_in_a_turn):
            place = start - k if k else start
            others = [] if table is None else [entry(remaining - k if k else remaining)]
            current = list(step(place, *others, *current))
        return [(remaining - steps_in_a_turn).value, *(s.value for s in current)]

    def unfinished(number: Any, *_: Any) -> Any:
        return (Term(context, number, index) > 0).value

    _, *results = context.while_loop(
        [(total * steps_in_a_turn).value, *(s.value for s in states)],
        [index, *(s.aval for s in states)],
        unfinished,
        turn,
    )
    return [Term(context, r, s.aval) for r, s in zip(results, states, strict=True)]
