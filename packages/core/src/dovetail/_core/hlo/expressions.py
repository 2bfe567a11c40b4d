"""Expressions in lowering rules: values with operators, and elementwise control flow.

Special functions use different methods for different arguments. A method is computed only if an
element needs it, and loops run only as often as the slowest element requires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dovetail._core.ir.avals import ShapedArray, make_aval

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

__all__ = ["Expression", "by_kind", "repeat_downwards", "stacked", "unstacked"]


class Expression:
    """A value of the program under construction; its operators create StableHLO operations.

    The other operand of an operator is an expression of the same type, or a number, which becomes a
    constant of that type. Comparisons, including ``==`` and ``!=``, return expressions of bools.

    Args:
        context: the builder that lowering rules receive as `context`.
        value: the value.
        aval: its shape and dtype.

    Example:
        >>> from dovetail.extend.lowering import Expression
        >>> def lower(context, x):  # a rule: x / (1 + abs(x)), and x itself where it is zero
        ...     (out,) = context.avals_out
        ...     x = Expression(context, x, out)
        ...     return x.where(x == 0.0, x / (1.0 + abs(x))).value
    """

    __slots__ = ("aval", "context", "value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, context: Builder, value: Any, aval: ShapedArray) -> None:
        self.context = context
        self.value = value
        self.aval = aval

    def __bool__(self) -> bool:
        raise TypeError(
            "the value of an Expression is known when the program runs, not while it is made: "
            "choose with Expression.where, or with the builder's case"
        )

    @classmethod
    def iota(cls, context: Builder, aval: ShapedArray, dimension: int) -> Expression:
        """The index of each element along a dimension."""
        return cls(context, context.iota(aval, dimension), aval)

    def constant(self, value: Any) -> Expression:
        """A constant of the same type."""
        return Expression(self.context, self.context.constant(value, self.aval), self.aval)

    def scalar(self, value: Any) -> Expression:
        """A scalar constant of the same dtype."""
        aval = self.context.scalar(self.aval)
        return Expression(self.context, self.context.constant(value, aval), aval)

    def _lifted(self, other: Any) -> Any:
        return other.value if isinstance(other, Expression) else self.constant(other).value

    # Operations on elements

    def apply(self, operation: str, *others: Any) -> Expression:
        """Apply a StableHLO operation to expressions of this type."""
        operands = [self.value, *map(self._lifted, others)]
        return Expression(self.context, self.context.op(operation, operands, self.aval), self.aval)

    def call(self, function: Callable[[Any], Any]) -> Expression:
        """Apply a function of arrays."""
        (result,) = self.context.lower_function(function, [self.aval])(self.value)
        return Expression(self.context, result, self.aval)

    def convert(self, dtype: Any) -> Expression:
        """The same numbers in another dtype."""
        aval = self.aval.update(dtype=np.dtype(dtype))
        return Expression(self.context, self.context.convert(self.value, self.aval, aval), aval)

    def bits(self, dtype: Any) -> Expression:
        """The same bits, reinterpreted as another dtype of the same size."""
        aval = self.aval.update(dtype=np.dtype(dtype))
        return Expression(self.context, self.context.bitcast_convert(self.value, aval), aval)

    def __add__(self, other: Any) -> Expression:
        return self.apply("add", other)

    def __sub__(self, other: Any) -> Expression:
        return self.apply("subtract", other)

    def __mul__(self, other: Any) -> Expression:
        return self.apply("multiply", other)

    def __truediv__(self, other: Any) -> Expression:
        return self.apply("divide", other)

    def __neg__(self) -> Expression:
        return self.apply("negate")

    def __abs__(self) -> Expression:
        return self.apply("abs")

    def __radd__(self, other: float) -> Expression:
        return self.constant(other) + self

    def __rsub__(self, other: float) -> Expression:
        return self.constant(other) - self

    def __rmul__(self, other: float) -> Expression:
        return self.constant(other) * self

    def __rtruediv__(self, other: float) -> Expression:
        return self.constant(other) / self

    def __and__(self, other: Any) -> Expression:
        return self.apply("and", other)

    def __or__(self, other: Any) -> Expression:
        return self.apply("or", other)

    def __xor__(self, other: Any) -> Expression:
        return self.apply("xor", other)

    def __invert__(self) -> Expression:
        return self.apply("not")

    def __lshift__(self, count: Any) -> Expression:
        return self.apply("shift_left", count)

    def __rshift__(self, count: Any) -> Expression:
        """Shift right, filling with zeros even for signed integers."""
        return self.apply("shift_right_logical", count)

    def compare(self, other: Any, direction: str) -> Expression:
        """Compare with another expression: ``EQ NE LT LE GT GE``."""
        value = self.context.compare(self.value, self._lifted(other), direction, self.aval)
        return Expression(self.context, value, self.context.mask(self.aval))

    def __lt__(self, other: Any) -> Expression:
        return self.compare(other, "LT")

    def __le__(self, other: Any) -> Expression:
        return self.compare(other, "LE")

    def __gt__(self, other: Any) -> Expression:
        return self.compare(other, "GT")

    def __ge__(self, other: Any) -> Expression:
        return self.compare(other, "GE")

    def __eq__(self, other: Any) -> Any:
        return self.compare(other, "EQ")

    def __ne__(self, other: Any) -> Any:
        return self.compare(other, "NE")

    def where(self, condition: Expression, other: Any) -> Expression:
        """This expression where the condition holds, `other` elsewhere."""
        value = self.context.select(condition.value, self.value, self._lifted(other), self.aval)
        return Expression(self.context, value, self.aval)

    def clamp(self, low: Any, high: Any) -> Expression:
        """This expression limited to the range from `low` to `high`."""
        bounds = self._lifted(low), self._lifted(high)
        value = self.context.clamp(bounds[0], self.value, bounds[1], self.aval)
        return Expression(self.context, value, self.aval)

    def exp(self) -> Expression:
        """The exponential."""
        return self.apply("exponential")

    def log(self) -> Expression:
        """The natural logarithm."""
        return self.apply("log")

    def sqrt(self) -> Expression:
        """The square root."""
        return self.apply("sqrt")

    def nearest(self) -> Expression:
        """The nearest integer; ties go to the even one."""
        return self.apply("round_nearest_even")

    def polynomial(self, coefficients: Sequence[Any]) -> Expression:
        """A polynomial by Horner's rule; the constant coefficient comes first."""
        last = coefficients[-1]
        result: Expression = last if isinstance(last, Expression) else self.constant(last)
        for coefficient in coefficients[-2::-1]:
            result = result * self + coefficient
        return result

    # Shapes

    def _reshaped(self, shape: Sequence[int]) -> ShapedArray:
        return self.aval.update(shape=tuple(shape))

    def reshape(self, shape: Sequence[int]) -> Expression:
        """The same elements in another shape."""
        out = self._reshaped(shape)
        return Expression(self.context, self.context.reshape(self.value, out), out)

    def broadcast(self, shape: Sequence[int], dimensions: Sequence[int] = ()) -> Expression:
        """Repeat along new dimensions.

        Args:
            shape: the shape of the result.
            dimensions: the positions of this expression's dimensions in it; none for a scalar.
        """
        out = self._reshaped(shape)
        if not out.ndim:
            return self
        value = self.context.broadcast_in_dim(self.value, out, tuple(dimensions))
        return Expression(self.context, value, out)

    def pad(self, edges: Sequence[tuple[int, int]], fill: Any) -> Expression:
        """Pad each dimension at both ends.

        Args:
            edges: two numbers for each dimension; negative ones remove elements.
            fill: the value of the new elements.
        """
        if not any(n for edge in edges for n in edge):
            return self
        out = self._reshaped(
            [n + low + high for n, (low, high) in zip(self.aval.shape, edges, strict=True)]
        )
        lows, highs = zip(*edges, strict=True)
        value = self.context.pad(self.value, self.scalar(fill).value, out, lows, highs)
        return Expression(self.context, value, out)

    def slice(
        self, starts: Sequence[int], counts: Sequence[int], steps: Sequence[int] | None = None
    ) -> Expression:
        """A slice with the given starts, counts and steps of the dimensions."""
        steps = (1,) * self.aval.ndim if steps is None else steps
        limits = [a + (n - 1) * s + 1 for a, n, s in zip(starts, counts, steps, strict=True)]
        if tuple(limits) == self.aval.shape and not any(starts) and set(steps) <= {1}:
            return self
        out = self._reshaped(counts)
        value = self.context.slice(self.value, out, starts, limits, steps)
        return Expression(self.context, value, out)

    # Of all elements

    def _reduced(self, operation: str) -> Expression:
        """Reduce all elements to a scalar, starting from zero; the operation is idempotent."""
        start = self.scalar(0)
        (result,) = self.context.reduce(
            [self.value],
            [start.value],
            range(self.aval.ndim),
            [start.aval],
            lambda x, y: self.context.op(operation, [x, y], start.aval),
        )
        # XLA leaves the start out where there is one element.
        result = self.context.op(operation, [result, start.value], start.aval)
        return Expression(self.context, result, start.aval)

    def largest(self) -> Expression:
        """The largest element, or zero if all are negative: a scalar."""
        return self._reduced("maximum")

    def any_bits(self) -> Expression:
        """The bits that are set in any element: a scalar."""
        return self._reduced("or")


def by_kind(
    kinds: Expression,
    functions: Sequence[Callable[[], Expression] | None],
    otherwise: Expression,
) -> Expression:
    """The result of one of several functions for each element; those not needed are not computed.

    It is cheaper for a function to compute from a few outside expressions than to use many: each
    becomes an array in memory, and needs a kernel with everything that leads to it.

    Args:
        kinds: the index of the function for each element, from zero, as int32.
        functions: they create the operations, from outside expressions; None for `otherwise`.
        otherwise: the result for elements of other kinds.

    Returns:
        An expression of the type of `otherwise`.

    Example:
        >>> from dovetail.extend.lowering import by_kind
        >>> def root_or_square(x):  # of an Expression: the square below 1, the root elsewhere
        ...     kinds = (x < 1.0).convert("int32")
        ...     return by_kind(kinds, [lambda: x.sqrt(), lambda: x * x], x)
    """
    context, result = kinds.context, otherwise
    # Compilers combine booleans of several devices, but not the bits of integers.
    divided = context.partitioning is not None
    needed = None if divided else (kinds.constant(1) << kinds).any_bits()
    for k, function in enumerate(functions):
        if function is None:
            continue
        some = (kinds == k).any_bits() if needed is None else (needed & (1 << k)).convert(bool)
        index = some.convert(np.int32)

        def computed(k: int = k, function: Any = function, before: Expression = result) -> Any:
            return function().where(kinds == k, before).value

        def skipped(before: Expression = result) -> Any:
            return before.value

        (value,) = context.case(index.value, [skipped, computed], [result.aval])
        result = Expression(context, value, result.aval)
    return result


def stacked(*expressions: Expression) -> Expression:
    """Stack expressions of one type along a new first dimension.

    An operation on all of them is then emitted only once.
    """
    context, aval = expressions[0].context, expressions[0].aval
    one, all_ = (aval.update(shape=(n, *aval.shape)) for n in (1, len(expressions)))
    rows = [context.reshape(x.value, one) for x in expressions]
    return Expression(context, context.concatenate(rows, all_, 0), all_)


def unstacked(stack: Expression) -> list[Expression]:
    """Undo `stacked`."""
    count, *shape = stack.aval.shape
    zeros = (0,) * len(shape)
    rows = [stack.slice((k, *zeros), (1, *shape)) for k in range(count)]
    return [row.reshape(shape) for row in rows]


def repeat_downwards(
    count: Expression | int,
    step: Callable[..., Sequence[Expression]],
    *states: Expression,
    table: Any = None,
    steps_in_a_turn: int = 4,
) -> list[Expression]:
    """Apply a step for the numbers from at least `count` down to one.

    Args:
        count: a scalar of the dtype of the states; extra steps are done to fill the last turn.
        step: maps the number, the table's entry for it (if there is a table) and the states, all
            of one shape, to the next states.
        states: the initial states.
        table: an array indexed by the number along its first dimension, from zero. An entry is an
            expression, or a list of expressions if the array has two dimensions.
        steps_in_a_turn: the number of unrolled steps per turn of the loop. Each turn reads and
            writes whole arrays.

    Returns:
        The last states.

    Example:
        >>> from dovetail.extend.lowering import repeat_downwards
        >>> def exponential(x):  # of an Expression, by twelve terms of its series
        ...     step = lambda k, total: [total * x / k + 1.0]
        ...     (total,) = repeat_downwards(12, step, x.constant(1.0))
        ...     return total
    """
    first = states[0]
    context = first.context
    index = make_aval((), np.dtype(np.int32))
    if isinstance(count, int):
        total = Expression(context, context.constant(-(-count // steps_in_a_turn), index), index)
    else:
        total = (count / float(steps_in_a_turn)).apply("ceil").convert(np.int32)
    entries = None if table is None else context.constant(np.asarray(table, first.aval.dtype))

    def entry(number: Expression) -> Any:
        rest = np.shape(table)[1:]
        row = first.aval.update(shape=(1, *rest))
        zero = number.constant(0).value
        value = context.dynamic_slice(entries, row, [number.value, *(zero for _ in rest)])
        selected = Expression(context, value, row)
        if not rest:
            return selected.reshape(()).broadcast(first.aval.shape)
        parts = [selected.slice((0, k), (1, 1)) for k in range(rest[0])]
        return [part.reshape(()).broadcast(first.aval.shape) for part in parts]

    def turn(number: Any, *values: Any) -> list[Any]:
        remaining = Expression(context, number, index)
        current = [Expression(context, v, s.aval) for v, s in zip(values, states, strict=True)]
        start = remaining.convert(first.aval.dtype).broadcast(first.aval.shape)
        for k in range(steps_in_a_turn):
            place = start - k if k else start
            others = [] if table is None else [entry(remaining - k if k else remaining)]
            current = list(step(place, *others, *current))
        return [(remaining - steps_in_a_turn).value, *(s.value for s in current)]

    def unfinished(number: Any, *_: Any) -> Any:
        return (Expression(context, number, index) > 0).value

    _, *results = context.while_loop(
        [(total * steps_in_a_turn).value, *(s.value for s in states)],
        [index, *(s.aval for s in states)],
        unfinished,
        turn,
    )
    return [Expression(context, r, s.aval) for r, s in zip(results, states, strict=True)]
