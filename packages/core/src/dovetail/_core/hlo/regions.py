"""Operations with bodies: reductions, sorting, scattering, control flow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from dovetail._core.hlo.mlir import Attribute, Location, Value
from dovetail._core.hlo.operations import Values, values_of
from dovetail._core.hlo.structure import StructuralBuilder
from dovetail._core.ir.avals import abstract_token

__all__ = ["RegionBuilder"]

Body = Callable[..., Values]


class RegionBuilder(StructuralBuilder):
    """Bodies are Python functions from the values of a block's arguments to the values it returns.

    Attributes:
        tokens: for each ordered effect, the token that its next operation must wait for.
    """

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        self.tokens: dict[Any, Value] = {}

    # Tokens: the values that keep side effects in order.

    def token(self, effect: Any) -> Value:
        """The token that an operation with an ordered effect must wait for."""
        token = self.tokens.get(effect)
        if token is None:
            token = self.tokens[effect] = self.create_token()
        return token

    def set_token(self, effect: Any, token: Value) -> None:
        """Make later operations with an ordered effect wait for `token`."""
        self.tokens[effect] = token

    def create_token(self) -> Value:
        """A token that waits for nothing."""
        return self.op("stablehlo.create_token", (), abstract_token)

    # Reductions

    def reduce(
        self,
        operands: Sequence[Value],
        inits: Sequence[Value],
        dimensions: Sequence[int],
        outs: Sequence[Any],
        body: Body,
    ) -> list[Value]:
        """Reduce several arrays together.

        Args:
            operands: arrays of one shape.
            inits: for each array, a scalar that is neutral for `body`.
            dimensions: the dimensions to reduce.
            outs: avals of the results.
            body: maps an accumulator and an element of each array to new accumulators, all scalars.
        """
        return self.ops(
            "stablehlo.reduce",
            [*operands, *inits],
            outs,
            {"dimensions": self.i64_array(dimensions)},
            [(self._scalars_of(outs) * 2, body)],
        )

    def reduce_window(
        self,
        operands: Sequence[Value],
        inits: Sequence[Value],
        outs: Sequence[Any],
        body: Body,
        *,
        window_dimensions: Sequence[int],
        window_strides: Sequence[int],
        padding: Sequence[Sequence[int]],
        base_dilations: Sequence[int] | None = None,
        window_dilations: Sequence[int] | None = None,
    ) -> list[Value]:
        """Reduce every position of a window that slides over several arrays together."""
        ones = (1,) * len(window_dimensions)
        return self.ops(
            "stablehlo.reduce_window",
            [*operands, *inits],
            outs,
            {
                "window_dimensions": self.i64_array(window_dimensions),
                "window_strides": self.i64_array(window_strides),
                "base_dilations": self.i64_array(base_dilations or ones),
                "window_dilations": self.i64_array(window_dilations or ones),
                "padding": self.i64_elements(np.reshape(padding, (-1, 2))),
            },
            [(self._scalars_of(outs) * 2, body)],
        )

    def scatter(
        self,
        operands: Sequence[Value],
        indices: Value,
        updates: Sequence[Value],
        outs: Sequence[Any],
        body: Body,
        *,
        dimension_numbers: Attribute,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
    ) -> list[Value]:
        """Combine updates into arrays at positions known at run time.

        `body` maps current elements and updates, as scalars, to new elements.
        """
        return self.ops(
            "stablehlo.scatter",
            [*operands, indices, *updates],
            outs,
            {
                "scatter_dimension_numbers": dimension_numbers,
                "indices_are_sorted": indices_are_sorted,
                "unique_indices": unique_indices,
            },
            [(self._scalars_of(outs) * 2, body)],
        )

    def sort(
        self,
        operands: Sequence[Value],
        outs: Sequence[Any],
        dimension: int,
        is_stable: bool,
        comparator: Body,
    ) -> list[Value]:
        """Sort several arrays together along a dimension.

        `comparator` takes two scalars for each operand (of the first: left, right; of the second:
        ...) and returns whether left comes before right.
        """
        scalars = [s for scalar in self._scalars_of(outs) for s in (scalar, scalar)]
        return self.ops(
            "stablehlo.sort",
            operands,
            outs,
            {"dimension": dimension, "is_stable": is_stable},
            [(scalars, comparator)],
        )

    def _scalars_of(self, avals: Sequence[Any]) -> list[Any]:
        return [self.scalar(aval) for aval in avals]

    # Control flow

    def while_loop(
        self,
        inits: Sequence[Value],
        avals: Sequence[Any],
        cond: Body,
        body: Body,
        effects: Iterable[Any] = (),
    ) -> list[Value]:
        """Apply `body` while `cond` holds.

        Args:
            inits: initial values of the loop's variables.
            avals: their avals.
            cond: maps the variables to a scalar bool.
            body: maps the variables to their next values.
            effects: ordered effects of `body` and `cond`; their tokens are loop variables too.

        Returns:
            The last values.
        """
        ordered = list(effects)
        count = len(inits)
        before = dict(self.tokens)

        def with_tokens(function: Body, returns_tokens: bool) -> Body:
            def run(*values: Value) -> list[Value]:
                self.tokens = before | dict(zip(ordered, values[count:], strict=True))
                results = values_of(function(*values[:count]))
                return [*results, *self._current(ordered)] if returns_tokens else results

            return run

        results = self.ops(
            "stablehlo.while",
            [*inits, *(self.token(effect) for effect in ordered)],
            [*avals, *(abstract_token for _ in ordered)],
            None,
            [
                ([*avals, *(abstract_token for _ in ordered)], with_tokens(cond, False)),
                ([*avals, *(abstract_token for _ in ordered)], with_tokens(body, True)),
            ],
        )
        self.tokens = before | dict(zip(ordered, results[count:], strict=True))
        return results[:count]

    def case(
        self,
        index: Value,
        branches: Sequence[Callable[[], Values]],
        outs: Sequence[Any],
        effects: Iterable[Any] = (),
    ) -> list[Value]:
        """Run one of several branches.

        Args:
            index: scalar int32; if it is out of range, the last branch runs.
            branches: functions without arguments; they use values from outside directly.
            outs: avals of each branch's results.
            effects: ordered effects of the branches.
        """
        ordered = list(effects)
        before = self.tokens | {effect: self.token(effect) for effect in ordered}

        def with_tokens(branch: Callable[[], Values]) -> Callable[[], Values]:
            def run() -> list[Value]:
                self.tokens = dict(before)
                return [*values_of(branch()), *self._current(ordered)]

            return run

        results = self.ops(
            "stablehlo.case",
            [index],
            [*outs, *(abstract_token for _ in ordered)],
            None,
            [((), with_tokens(branch)) for branch in branches],
        )
        self.tokens = before | dict(zip(ordered, results[len(outs) :], strict=True))
        return results[: len(outs)]

    def _current(self, ordered: Sequence[Any]) -> list[Value]:
        return [self.token(effect) for effect in ordered]
