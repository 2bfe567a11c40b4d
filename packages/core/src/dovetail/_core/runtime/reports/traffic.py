"""How many bytes an instruction moves between a device and its memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from dovetail._core.runtime.reports.hlo_text import Computation, Instruction, Module, Shape

__all__ = ["moved_bytes"]

_NOTHING: Final = re.compile(
    "parameter|constant|tuple|get-tuple-element|bitcast|after-all|partition-id|replica-id|domain|"
    "opt-barrier|add-dependency|send|recv|rng-get-and-update-state|async-start|while|call|"
    "conditional|.*-done|async-update"
)
_PARTS: Final = ("dynamic-slice", "slice", "gather")
_SAME: Final = ("bitcast", "reshape", "convert", "copy")


def moved_bytes(module: Module, computation: Computation, instruction: Instruction) -> int:
    """Bytes that are read and written, each operand once and each result once.

    Of what is only taken a part of, the part counts. Arrays in other memories than the device's
    own, such as the caches of a TPU, do not count.
    """
    opcode = instruction.opcode
    if _NOTHING.fullmatch(opcode):
        return 0
    if opcode == "copy-start":
        return _here(instruction.shapes[:2])
    if opcode == "fusion":
        called = [module.computations.get(name) for name in instruction.called("calls")]
        if called and called[0] is not None:
            return _fused(computation, instruction, called[0])
    if opcode in _PARTS:
        return 2 * _here(instruction.shapes)
    if opcode in ("dynamic-update-slice", "scatter"):
        update = instruction.operands[1 if opcode[0] == "d" else len(instruction.operands) - 1]
        return 2 * _here(computation.shapes_of(update))
    read = sum(_here(computation.shapes_of(name)) for name in instruction.operands)
    return read + _here(instruction.shapes)


def _here(shapes: Iterable[Shape]) -> int:
    return sum(shape.bytes for shape in shapes if shape.space == 0)


def _fused(computation: Computation, instruction: Instruction, inner: Computation) -> int:
    users: dict[str, list[Instruction]] = {}
    for each in inner.instructions.values():
        for name in each.operands:
            users.setdefault(name, []).append(each)
    total = 0
    for each in inner.instructions.values():
        if each.opcode == "parameter" and re.fullmatch(r"\d+", each.inside.strip()):
            number = int(each.inside)
            if number < len(instruction.operands):
                shapes = computation.shapes_of(instruction.operands[number])
                total += min(_here(shapes), _read_of(each, users))
    return total + _written(inner, instruction.shapes)


def _read_of(value: Instruction, users: dict[str, list[Instruction]]) -> int:
    """The bytes that a fusion reads of one of its operands."""
    read = 0
    for user in users.get(value.name, ()):
        first = user.operands[0] == value.name
        if user.opcode in _PARTS and first and value.name not in user.operands[1:]:
            read += user.bytes
        elif user.opcode == "dynamic-update-slice" and first:
            continue  # written in place
        elif user.opcode in _SAME:
            read += _read_of(user, users)
        else:
            return value.bytes
    return read


def _written(inner: Computation, shapes: Sequence[Shape]) -> int:
    """The bytes that a fusion writes: of an update in place, those of the update."""
    root = inner.instructions.get(inner.root)
    if root is None:
        return _here(shapes)
    parts = [root]
    if root.opcode == "tuple":
        parts = [inner.instructions.get(name, root) for name in root.operands]
    if len(parts) != len(shapes):
        return _here(shapes)
    total = 0
    for part, shape in zip(parts, shapes, strict=True):
        at: Instruction | None = part
        while at is not None and at.opcode in _SAME:
            at = inner.operand(at)
        if at is not None and at.opcode == "dynamic-update-slice" and shape.space == 0:
            total += sum(s.bytes for s in inner.shapes_of(at.operands[1]))
        else:
            total += _here([shape])
    return total
