"""One program in both libraries: operation by operation, or transformed."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from comparison import Difference, Outcome, compare, explained_by_rounding, failed_as_a_whole
from source import Program, operands

NOISES = (1, 2, 3, 4)

Answers = dict[str, list[Outcome]]


class Libraries(Protocol):
    """What runs a program in two libraries: ours, and the one that is compared with."""

    def run(self, program: Program, modes: list[str]) -> tuple[Answers, Answers]:
        """The outcomes of both, by mode."""

    def other(self, program: Program, modes: list[str], noise: int | None = None) -> Answers:
        """The outcomes of the other library alone, by mode."""


FIRST = {"jit": "types", "vmap": "types", "grad": "jit"}
"""What a program goes through before it is transformed: gradients need values that are finite."""


def check(libraries: Libraries, program: Program) -> list[Difference]:
    """The differences of a program in its mode.

    A program with the mode `eager` runs operation by operation, one with the mode `types` is
    traced, and nothing else. What is transformed is traced or compiled before, and operations that
    differ or fail there are left out.
    """
    mode = program["mode"]
    found: list[Difference] = []
    if mode in FIRST:
        first = FIRST[mode]
        ours, theirs = libraries.run(program, [first])
        found = differences(libraries, program, first, ours[first], theirs[first])
        program = restricted(program, ours[first], theirs[first], {d.operation for d in found})
        if not program["operations"]:
            return found
    ours, theirs = libraries.run(program, [mode])
    refused = {
        one["operation"]
        for side, other in ((ours, theirs), (theirs, ours))
        if failed_as_a_whole(side[mode])
        for one in other[mode]
        if "operation" in one
    }
    if refused:
        # One library goes on without what it refuses, so the other is asked without that, too.
        program = without(program, refused)
        ours, theirs = libraries.run(program, [mode])
    return found + differences(libraries, program, mode, ours[mode], theirs[mode])


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


def without(program: Program, names: set[str]) -> Program:
    """The operations that use nothing of these, and what is left of the loss."""
    gone, operations = set(names), []
    for operation in program["operations"]:
        if gone.isdisjoint([operation["result"], *operands(operation)]):
            operations.append(operation)
        else:
            gone.add(operation["result"])
    loss = [place for place in program["loss"] if place[0] not in gone]
    return program | {"operations": operations, "loss": loss}


def _is_good_loss(value: Any) -> bool:
    name = str(value.dtype)
    if not name.startswith(("float", "bfloat", "complex")):
        return False
    wide = value.astype(np.complex128 if name.startswith("complex") else np.float64)
    return bool(np.isfinite(wide).all())
