"""Smaller programs that show the same difference."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from comparison import Outcome
from source import Operation, Program, operands

MOST_TRIALS = 60


def shrink(
    program: Program,
    result: str,
    outcomes: list[Outcome],
    shows: Callable[[Program], bool],
    most: int = MOST_TRIALS,
) -> Program:
    """The smallest program that was found to show a difference.

    Args:
        program: a program with the difference.
        result: the name of the operation that differs, or that of no operation.
        outcomes: what each operation gives, from which results become inputs.
        shows: whether a program has the difference.
        most: how many programs are tried.
    """
    left = most

    def accept(candidate: Program) -> bool:
        nonlocal left
        if left <= 0 or candidate == program:
            return False
        left -= 1
        return shows(candidate)

    inputs = _as_inputs(program, outcomes)
    changed = True
    while changed and left > 0:
        changed = False
        for candidate in _candidates(program, result, inputs):
            if accept(candidate):
                program, changed = candidate, True
                break
    return program


def _as_inputs(program: Program, outcomes: list[Outcome]) -> dict[str, dict[str, Any]]:
    """For each operation with one array as its result an input that has its value."""
    found = {}
    for operation, outcome in zip(program["operations"], outcomes, strict=False):
        leaves = outcome.get("leaves", ())
        if len(leaves) == 1 and outcome["structure"] == "*":
            value = leaves[0]["value"]
            dtype = str(value.dtype)
            found[operation["result"]] = {
                "name": operation["result"],
                "flavour": "weak" if leaves[0]["weak_type"] else "array",
                "dtype": dtype,
                "shape": list(value.shape),
                "values": [_plain(x, dtype) for x in value.ravel()],
                "batched": True,
            }
    return found


def _plain(x: Any, dtype: str) -> Any:
    """A number as it stands in a program."""
    if dtype.startswith("complex"):
        return ["complex", float(x.real), float(x.imag)]
    if dtype.startswith(("float", "bfloat")):
        return float(x)
    return bool(x) if dtype == "bool" else int(x)


def _candidates(
    program: Program, result: str, inputs: dict[str, dict[str, Any]]
) -> Iterator[Program]:
    """Smaller programs, those that leave out most first."""
    operations = program["operations"]
    here = [i for i, operation in enumerate(operations) if operation["result"] == result]
    if here and len(operations) > 1:
        yield _with_operations(program, [operations[here[0]]], inputs)
        yield _with_operations(program, _ancestors(operations, result), inputs)
    half = len(operations) // 2
    if half > 1 and not here:
        yield _with_operations(program, operations[:half], inputs)
        yield _with_operations(program, operations[half:], inputs)
    if len(operations) > 1:
        for i in reversed(range(len(operations))):
            if operations[i]["result"] != result:
                rest = operations[:i] + operations[i + 1 :]
                yield _with_operations(program, rest, inputs)
    for i, operation in enumerate(operations):
        for smaller in _smaller_operations(operation):
            changed = [*operations[:i], smaller, *operations[i + 1 :]]
            yield _with_operations(program, changed, inputs)
    for i, entry in enumerate(program["inputs"]):
        for simpler in _simpler_inputs(entry):
            changed = [*program["inputs"][:i], simpler, *program["inputs"][i + 1 :]]
            yield program | {"inputs": changed}
    for size in {n for entry in program["inputs"] for n in entry["shape"] if n > 1}:
        yield program | {"inputs": [_cut(entry, size) for entry in program["inputs"]]}
    if program["x64"]:
        yield program | {"x64": False}


def _ancestors(operations: list[Operation], result: str) -> list[Operation]:
    """An operation and those that it depends on."""
    needed = {result}
    kept: list[Operation] = []
    for operation in reversed(operations):
        if operation["result"] in needed:
            kept.insert(0, operation)
            needed.update(operands(operation))
    return kept


def _with_operations(
    program: Program, operations: list[Operation], inputs: dict[str, dict[str, Any]]
) -> Program:
    """A program of some of the operations; results of others become inputs."""
    known = {entry["name"]: entry for entry in program["inputs"]} | inputs
    made: set[str] = set()
    used: list[str] = []
    kept = []
    for operation in operations:
        names = operands(operation)
        if all(name in made or name in known for name in names):
            kept.append(operation)
            made.add(operation["result"])
            used += [name for name in names if name not in made]
    if not kept:
        return program
    entries = [known[name] for name in dict.fromkeys(used)]
    loss = [place for place in program.get("loss", ()) if place[0] in made]
    return program | {"operations": kept, "inputs": entries, "loss": loss}


def _smaller_operations(operation: Operation) -> Iterator[Operation]:
    for key in operation.get("keywords", ()):
        rest = {k: v for k, v in operation["keywords"].items() if k != key}
        yield operation | {"keywords": rest}
    for place, body in enumerate(operation.get("bodies", ())):
        for i in range(len(body["operations"])):
            rest = body["operations"][:i] + body["operations"][i + 1 :]
            smaller = body | {"operations": rest}
            bodies = [*operation["bodies"][:place], smaller, *operation["bodies"][place + 1 :]]
            yield operation | {"bodies": bodies}


def _simpler_inputs(entry: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """An input with simpler values or of a simpler flavour."""
    if entry["flavour"] != "array":
        yield entry | {"flavour": "array"}
    simple: Any = ["complex", 1.0, 0.0] if entry["dtype"].startswith("complex") else 1
    simple = True if entry["dtype"] == "bool" else simple
    if entry["dtype"].startswith(("float", "bfloat")):
        simple = 1.0
    ones = [simple] * len(entry["values"])
    if entry["values"] != ones:
        yield entry | {"values": ones}


def _cut(entry: dict[str, Any], size: int) -> dict[str, Any]:
    """An input whose dimensions of one size have the size one."""
    shape = [1 if n == size else n for n in entry["shape"]]
    return entry | {"shape": shape, "values": entry["values"][: math.prod(shape)]}
