"""One program in both libraries: operation by operation, and transformed."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from comparison import Difference, Outcome, compare, explained_by_rounding
from source import Program, operands

NOISES = (1, 2, 3, 4)

Answers = dict[str, list[Outcome]]


class Libraries(Protocol):
    """What runs a program in two libraries: ours, and the one that is compared with."""

    def run(self, program: Program, modes: list[str]) -> tuple[Answers, Answers]:
        """The outcomes of both, by mode."""

    def other(self, program: Program, modes: list[str], noise: int | None = None) -> Answers:
        """The outcomes of the other library alone, by mode."""


def check(libraries: Libraries, program: Program) -> tuple[list[Difference], list[Outcome]]:
    """The differences of a program, and what the other library has for each operation.

    What differs operation by operation, or fails, is left out of what is transformed. A program
    with the mode `types` is traced, one with the mode `eager` runs as it stands, and nothing else.
    """
    if program["mode"] == "types":
        ours, theirs = libraries.run(program, ["types"])
        return differences(libraries, program, "types", ours["types"], theirs["types"]), []
    ours, theirs = libraries.run(program, ["eager"])
    found = differences(libraries, program, "eager", ours["eager"], theirs["eager"])
    rest = restricted(program, ours["eager"], theirs["eager"], {d.operation for d in found})
    mode = program["mode"]
    if rest["operations"] and mode != "eager":
        mine, other = libraries.run(rest, [mode])
        found += differences(libraries, rest, mode, mine[mode], other[mode])
    return found, theirs["eager"]


def differences(
    libraries: Libraries, program: Program, mode: str, ours: list[Outcome], theirs: list[Outcome]
) -> list[Difference]:
    """The differences in one mode that rounding does not explain."""
    found = compare(program, mode, ours, theirs)
    if all(difference.field != "value" for _, difference in found):
        return [difference for _, difference in found]
    noisy: list[list[Outcome]] = []
    for noise in NOISES:  # each can only excuse more, so there are no more than are needed
        outcomes = libraries.other(program, [mode], noise)[mode]
        noisy += [outcomes] if len(outcomes) == len(theirs) else []
        found = [
            (number, difference)
            for number, difference in found
            if difference.field != "value"
            or not explained_by_rounding(
                ours[number], theirs[number], [outcomes[number] for outcomes in noisy]
            )
        ]
        if all(difference.field != "value" for _, difference in found):
            break
    return [difference for _, difference in found]


def restricted(
    program: Program, ours: list[Outcome], theirs: list[Outcome], differing: set[str]
) -> Program:
    """The operations on which both agree, and which of their results gradients are taken of."""
    operations, loss = [], []
    if len(ours) != len(program["operations"]) or len(theirs) != len(ours):
        return program | {"operations": []}
    gone = set(differing)
    for operation, mine, other in zip(program["operations"], ours, theirs, strict=True):
        failed = "leaves" not in mine or "leaves" not in other
        if failed or not gone.isdisjoint([operation["result"], *operands(operation)]):
            gone.add(operation["result"])
        else:
            operations.append(operation)
            for place, leaf in enumerate(other["leaves"]):
                if _is_good_loss(leaf["value"]):
                    loss.append([operation["result"], place])
    return program | {"operations": operations, "loss": loss}


def _is_good_loss(value: Any) -> bool:
    name = str(value.dtype)
    if not name.startswith(("float", "bfloat", "complex")):
        return False
    wide = value.astype(np.complex128 if name.startswith("complex") else np.float64)
    return bool(np.isfinite(wide).all())
