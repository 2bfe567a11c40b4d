"""Functions with their own rules, and how traces process calls of them.

As long as nothing is staged, such a function is called as it is: evaluated eagerly, it simply runs;
differentiated, its rule runs. So both may branch on values, like any Python code. Only a trace that
records turns the call into an equation of a primitive whose parameters are a jaxpr and the rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Dims = Sequence[int | None]
#: Runs a function of flat arguments for every element of a batch. Takes the function, values and
#: their batch dimensions; returns results and their batch dimensions.
Run = Callable[
    [Callable[..., Sequence[Any]], Sequence[Any], Dims], tuple[list[Any], list[int | None]]
]


class CustomRuleCall:
    """A call, with flat arguments, of a function with its own rules.

    Attributes:
        out_dims: the batch dimension of each result, 0 or None. Only for calls made by `batched`,
            and known once they have been processed.
    """

    out_dims: Dims | None = None

    def evaluate(self, args: Sequence[Any]) -> list[Any]:
        """The results, on values."""
        raise NotImplementedError

    def differentiate(
        self, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Results and their tangents, in the current trace; vanishing ones are `Zero`s."""
        raise NotImplementedError

    def batched(self, run: Run, size: int, dims: Dims) -> CustomRuleCall:
        """The call for all elements of a batch of `size`; `dims` are the arguments' dimensions."""
        raise NotImplementedError

    def record(self, args: Sequence[Any]) -> list[Any]:
        """Stage the function and bind the primitive that stands for it, in the current trace."""
        raise NotImplementedError
