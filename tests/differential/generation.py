"""Random programs, by seed, without either library."""

from __future__ import annotations

import math
from typing import Any

from control_flow import CONTROL_FLOW
from drawing import MOST_ELEMENTS, Draw, Shape, Value
from lax_operations import LAX
from numpy_operations import NUMPY
from random_operations import RANDOM
from source import Operation, Program

FEWEST, MOST = 5, 20

MODES = ("eager", "jit", "vmap", "grad")
"""How a program runs: each in one of them."""

#: Families of operations and how often one is drawn: first a group, then a family, then a function.
GROUPS = ((NUMPY, 12), (LAX, 8), (CONTROL_FLOW, 3), (RANDOM, 1))


def generate(seed: int) -> Program:
    """The program of a seed: always the same."""
    draw = Draw(seed)
    operations: list[Operation] = []
    for number in range(draw.integer(FEWEST, MOST)):
        (group,) = draw.random.choices([g for g, _ in GROUPS], [weight for _, weight in GROUPS])
        families = list(group)
        (maker,) = draw.random.choices(families, [len(group[family]) ** 0.7 for family in families])
        function = draw.pick(group[maker])
        operation, results = maker(draw, function)
        operation["result"] = f"v{number}"
        if function == "getitem" or " " in function:  # an operator, a method or an update
            draw.own(*operation["arguments"][:1])
        operations.append(operation)
        draw.values += _values(operation["result"], results)
    return {
        "seed": seed,
        "x64": draw.x64,
        "mode": draw.pick(MODES),
        "compiled": draw.chance(0.8),
        "inputs": draw.inputs,
        "operations": operations,
    }


def _values(name: str, results: Any) -> list[Value]:
    """What can be used of a result: one pair of shape and kind, a list of them, or nothing."""
    if results is None:
        return []
    if isinstance(results, list):
        places = [Value(["ref", name, i], *result) for i, result in enumerate(results) if result]
    else:
        places = [Value(["ref", name], *results)]
    return [value for value in places if _is_small(value.shape)]


def _is_small(shape: Shape) -> bool:
    return math.prod(shape) <= MOST_ELEMENTS and len(shape) <= 4
