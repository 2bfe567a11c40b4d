"""How much of the kit runs: the essentials for a new backend, or everything."""

from __future__ import annotations

from typing import Final

#: What nearly every program uses: a backend that passes these runs a network's training step.
ESSENTIAL: Final = (
    "neg",
    "sqrt",
    "exp",
    "log",
    "sin",
    "tanh",
    "add",
    "sub",
    "mul",
    "div",
    "pow",
    "max",
    "eq",
    "lt",
    "select_n",
    "convert_element_type",
    "broadcast_in_dim",
    "reshape",
    "transpose",
    "slice",
    "concatenate",
    "iota",
    "reduce_sum",
    "reduce_max",
    "dot_general",
)

LEVELS: Final = ("essential", "full")
"""Each level contains the one before it."""


def in_order(sampled: list[str]) -> list[str]:
    """Names of primitives, the essential ones first.

    Args:
        sampled: the names of all primitives that have samples, sorted.
    """
    return [*ESSENTIAL, *(name for name in sampled if name not in ESSENTIAL)]
