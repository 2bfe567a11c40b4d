"""What Python does at an instruction: whether it is in a loop, and what becomes of its result."""

from __future__ import annotations

import dis
import linecache
from functools import lru_cache
from types import CodeType
from typing import Final, NamedTuple

__all__ = ["Loop", "expression_at", "is_dropped", "loop_at", "loops_at"]

_BACKWARD: Final = ("JUMP_BACKWARD", "POP_JUMP_BACKWARD")


class Loop(NamedTuple):
    """A `for` or `while` statement or a comprehension.

    Attributes:
        code: the code object that it is in.
        first: the offset of its first instruction.
        last: that of its last one.
        line: the line where it begins.
    """

    code: CodeType
    first: int
    last: int
    line: int


@lru_cache(maxsize=4096)
def _loops(code: CodeType) -> tuple[Loop, ...]:
    """The loops of a function, inner ones first."""
    ends: dict[int, int] = {}
    lines: dict[int, int] = {}
    place: dict[int, int] = {}
    for instruction in dis.get_instructions(code):
        positions = instruction.positions
        line = code.co_firstlineno
        if positions is not None and positions.lineno is not None:
            line = positions.lineno
        place[instruction.offset] = line
        name = instruction.opname
        # Those of generators that wait for others are no loops.
        if name.startswith(_BACKWARD) and not name.endswith("NO_INTERRUPT"):
            first = instruction.argval
            ends[first] = instruction.offset
            # That of `while` stands at the end, before the jump.
            lines[first] = min(lines.get(first, line), line, place.get(first, line))
    loops = [Loop(code, first, last, lines[first]) for first, last in ends.items()]
    return tuple(sorted(loops, key=lambda loop: loop.last - loop.first))


@lru_cache(maxsize=65536)
def loops_at(code: CodeType, offset: int) -> tuple[Loop, ...]:
    """The loops around an instruction, innermost first."""
    return tuple(loop for loop in _loops(code) if loop.first <= offset <= loop.last)


@lru_cache(maxsize=4096)
def _instruction_at(code: CodeType, offset: int) -> tuple[dis.Instruction, str] | None:
    """The instruction at an offset, or whose cache that is in, and the name of the next one."""
    found = None
    for instruction in dis.get_instructions(code):
        if instruction.offset > offset:
            return None if found is None else (found, instruction.opname)
        found = instruction
    return None if found is None else (found, "")


def is_dropped(code: CodeType, offset: int) -> bool:
    """Whether the result of an instruction is thrown away: that of an expression statement."""
    found = _instruction_at(code, offset)
    return found is not None and found[1] == "POP_TOP"


def expression_at(code: CodeType, offset: int) -> str:
    """The source text of what an instruction computes; an empty string if it is not known."""
    found = _instruction_at(code, offset)
    at = None if found is None else found[0].positions
    if at is None or None in at:
        return ""
    line, last, start, end = map(int, at)  # type: ignore[arg-type]
    lines = [text.encode() for text in linecache.getlines(code.co_filename)[line - 1 : last]]
    if not lines:
        return ""
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    return b"".join(lines).decode(errors="replace")
