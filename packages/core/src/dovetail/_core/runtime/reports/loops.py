"""How often the loops of an optimised program run."""

from __future__ import annotations

import re
from typing import Final

from dovetail._core.runtime.reports.hlo_text import Computation, Instruction, Module

__all__ = ["trip_count"]

_KNOWN: Final = re.compile(r'known_trip_count\\*":\s*\{\s*\\*"n\\*":\s*\\*"?(\d+)')
_THROUGH: Final = ("copy", "bitcast", "convert", "reshape", "copy-done", "copy-start")


def trip_count(module: Module, around: Computation, loop: Instruction) -> int | None:
    """How often the body of a loop runs; None if the program does not tell.

    Compilers for CPUs and GPUs write it down. Else it is read off a counter: where it begins, what
    is added to it, and what it is compared with.

    Args:
        module: the program.
        around: the computation that contains the loop.
        loop: the loop.
    """
    known = _KNOWN.search(loop.attributes)
    if known:
        return int(known.group(1))
    condition = module.computations.get("".join(loop.called("condition")))
    body = module.computations.get("".join(loop.called("body")))
    state = around.operand(loop)
    if condition is None or body is None or state is None or state.opcode != "tuple":
        return None
    compare = condition.instructions.get(condition.root)
    if compare is None or compare.opcode != "compare":
        return None
    direction = re.search(r"direction=(\w+)", compare.attributes)
    left, right = (_read(condition, name) for name in compare.operands)
    if direction is None or left is None or left[0] != "state":
        return None
    counter = left[1]
    end = _begin(around, body, state, right[1]) if right and right[0] == "state" else _value(right)
    begin = _value(_read(around, state.operands[counter]))
    step = _step(around, body, state, counter)
    if begin is None or end is None or not step:
        return None
    if direction.group(1) in ("LE", "GE"):
        end += 1 if step > 0 else -1
    elif direction.group(1) not in ("LT", "GT", "NE"):
        return None
    if (direction.group(1)[0] == "L") != (step > 0) and direction.group(1) != "NE":
        return None
    return max(0, -((begin - end) // step))


def _read(computation: Computation, name: str) -> tuple[str, int] | None:
    """What a value is: ``("constant", 3)``, or ``("state", 2)``, the loop's third variable."""
    found = computation.instructions.get(name)
    while found is not None and found.opcode in _THROUGH:
        found = computation.operand(found)
    if found is None:
        return None
    if found.opcode == "constant" and re.fullmatch(r"-?\d+", found.inside.strip()):
        return ("constant", int(found.inside))
    if found.opcode == "get-tuple-element":
        source = computation.operand(found)
        index = re.search(r"index=(\d+)", found.attributes)
        if source is not None and source.opcode == "parameter" and index:
            return ("state", int(index.group(1)))
    return None


def _value(read: tuple[str, int] | None) -> int | None:
    return read[1] if read is not None and read[0] == "constant" else None


def _result(body: Computation, number: int) -> str | None:
    """The name of what becomes of one of the loop's variables."""
    root = body.instructions.get(body.root)
    if root is None or root.opcode != "tuple" or number >= len(root.operands):
        return None
    return root.operands[number]


def _begin(around: Computation, body: Computation, state: Instruction, number: int) -> int | None:
    """The value of a variable that no turn changes."""
    result = _result(body, number)
    if result is None or _read(body, result) != ("state", number):
        return None
    return _value(_read(around, state.operands[number]))


def _step(around: Computation, body: Computation, state: Instruction, counter: int) -> int | None:
    """What each turn adds to the counter."""
    added = body.instructions.get(_result(body, counter) or "")
    while added is not None and added.opcode in _THROUGH:
        added = body.operand(added)
    if added is None or added.opcode not in ("add", "subtract") or len(added.operands) != 2:
        return None
    parts = [_read(body, name) for name in added.operands]
    if added.opcode == "add" and parts[0] != ("state", counter):
        parts.reverse()
    if parts[0] != ("state", counter) or parts[1] is None:
        return None
    kind, value = parts[1]
    step = value if kind == "constant" else _begin(around, body, state, value)
    return None if step is None else step if added.opcode == "add" else -step
