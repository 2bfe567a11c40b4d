"""Which primitives a backend is tested on first."""

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

LEVELS: Final = ("essential", "complete")


def primitives_of(level: str, sampled: list[str]) -> list[str]:
    """The names of a level's primitives, the essential ones first.

    Args:
        level: one of `LEVELS`; each contains the ones before it.
        sampled: the names of all primitives that have samples.
    """
    rest = [name for name in sampled if name not in ESSENTIAL]
    return [*ESSENTIAL, *rest] if level == "complete" else list(ESSENTIAL)
