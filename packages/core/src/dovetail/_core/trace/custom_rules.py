"""Functions that bring their own rules: how traces process a call of one.

Such a function is called as it is for as long as nothing is staged: evaluated eagerly it simply
runs, and differentiated its rule runs. So both may branch on values, as all of Python may. Only a
trace that records turns the call into an equation of a primitive, whose parameters are a jaxpr and
the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Dims = Sequence[int | None]
#: Runs a function of flat arguments for every element of a batch: from the function, values and
#: their batch dimensions to results and their batch dimensions.
Run = Callable[
    [Callable[..., Sequence[Any]], Sequence[Any], Dims], tuple[list[Any], list[int | None]]
]


class CustomRuleCall:
    """A call, with flat arguments, of a function that has rules of its own.

    Attributes:
        is_batched: whether the results have a batch dimension, 0; of calls that `batched` made, and
            known when they were processed.
    """

    is_batched: bool | None = None

    def evaluate(self, args: Sequence[Any]) -> list[Any]:
        """The results, on values."""
        raise NotImplementedError

    def differentiate(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Results and their tangents, in the current trace; vanishing ones are `Zero`s."""
        raise NotImplementedError

    def batched(self, run: Run, size: int, dims: Dims) -> CustomRuleCall:
        """The call for every element of a batch of that size, whose arguments have these batch
        dimensions."""
        raise NotImplementedError

    def record(self, args: Sequence[Any]) -> list[Any]:
        """Stage the function and bind the primitive that stands for it, in the current trace."""
        raise NotImplementedError
