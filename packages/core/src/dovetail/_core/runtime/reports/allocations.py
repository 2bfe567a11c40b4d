"""Reads how a compiler has placed the values of a program in memory.

The statistics of a compiled program come with a protocol buffer, XLA's ``BufferAssignmentProto``:
blocks of memory, and which values each of them holds, at which offset. It names instructions by
numbers, which the program itself, a ``HloModuleProto``, translates. Only the fields used here are
read; their numbers are those of XLA's published ``hlo.proto``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from dovetail._core.base.records import record

__all__ = ["Block", "Placed", "blocks_of", "fields"]

_VARINT: Final = 0
_DELIMITED: Final = 2
_FIXED: Final = {1: 8, 5: 4}


@record
class Placed:
    """A value in a block.

    Attributes:
        instruction: the name of the instruction that defines it.
        element: which part of its result, if that is a tuple.
        offset: where it begins.
        size: how many bytes it takes.
    """

    instruction: str
    element: tuple[int, ...]
    offset: int
    size: int


@record
class Block:
    """A block of memory.

    Attributes:
        size: how many bytes it has.
        parameter: the number of the argument that it holds; None if it holds none.
        element: which part of the argument, if that is a tuple.
        is_result: whether a result is in it at the end.
        is_constant: whether it holds a constant.
        values: the values that are in it at some time.
    """

    size: int
    parameter: int | None
    element: tuple[int, ...]
    is_result: bool
    is_constant: bool
    values: tuple[Placed, ...]


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message: number, and an integer or bytes.

    Raises:
        ValueError: it is no message.
    """
    position, end = 0, len(data)

    def varint() -> int:
        nonlocal position
        value = shift = 0
        while True:
            if position >= end:
                raise ValueError("a protocol buffer ends in the middle of a number")
            byte = data[position]
            position += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while position < end:
        key = varint()
        kind = key & 7
        if kind == _VARINT:
            yield key >> 3, varint()
            continue
        if kind != _DELIMITED and kind not in _FIXED:
            raise ValueError(f"a protocol buffer has a field of the unknown kind {kind}")
        size = varint() if kind == _DELIMITED else _FIXED[kind]
        yield key >> 3, data[position : position + size]
        position += size


def _numbers(value: Any) -> tuple[int, ...]:
    """A repeated field of integers, packed or one of them."""
    if isinstance(value, int):
        return (value,)
    found, position = [], 0
    while position < len(value):
        number = shift = 0
        while True:
            byte = value[position]
            position += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        found.append(number)
    return tuple(found)


def _names(module: bytes) -> dict[int, str]:
    """The names of a program's instructions by their numbers."""
    names = {}
    for number, computation in fields(module):
        if number != 3:
            continue
        for inner, instruction in fields(computation):
            if inner == 2:
                own = dict(fields(instruction))
                names[own.get(35, 0)] = own[1].decode()
    return names


def blocks_of(assignment: bytes, module: bytes) -> list[Block]:
    """The blocks of memory of a program.

    Args:
        assignment: a ``BufferAssignmentProto``.
        module: the ``HloModuleProto`` of the same program.

    Raises:
        ValueError: they cannot be read.
    """
    names = _names(module)
    defined: dict[int, tuple[str, tuple[int, ...]]] = {}
    for number, content in fields(assignment):
        if number == 1:
            buffer = dict(fields(content))
            place = dict(fields(buffer.get(3, b"")))
            name = names.get(place.get(4, 0), "")
            defined[buffer.get(1, 0)] = (name, _numbers(place.get(3, b"")))
    return [_block(content, defined) for n, content in fields(assignment) if n == 3]


def _block(content: bytes, defined: dict[int, tuple[str, tuple[int, ...]]]) -> Block:
    facts: dict[int, Any] = {}
    element: tuple[int, ...] = ()
    values = []
    for number, value in fields(content):
        if number == 9:
            placed = dict(fields(value))
            name, part = defined.get(placed.get(1, 0), ("", ()))
            values.append(Placed(name, part, placed.get(2, 0), placed.get(3, 0)))
        elif number == 10:
            element += _numbers(value)
        else:
            facts[number] = value
    return Block(
        size=facts.get(2, 0),
        parameter=facts.get(6, 0) if facts.get(5) else None,
        element=element,
        is_result=bool(facts.get(7)),
        is_constant=bool(facts.get(12)),
        values=tuple(values),
    )
