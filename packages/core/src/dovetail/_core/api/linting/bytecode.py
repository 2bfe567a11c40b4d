"""What Python does at an instruction: whether it is in a loop, and what becomes of its result."""

from __future__ import annotations

import dis
import linecache
from bisect import bisect_right
from functools import lru_cache
from types import CodeType
from typing import Final, NamedTuple

__all__ = ["Loop", "expression_at", "is_dropped", "loops_at"]

_BACKWARD: Final = ("JUMP_BACKWARD", "POP_JUMP_BACKWARD")


class Loop(NamedTuple):
    """A `for` or `while` statement or a comprehension.

    Attributes:
        file: the file that it is in.
        function: the function.
        line: the line where it begins.
        first: the offset of its first instruction.
        last: that of its last one.
    """

    file: str
    function: str
    line: int
    first: int
    last: int


@lru_cache(maxsize=1024)
def _instructions(code: CodeType) -> tuple[dis.Instruction, ...]:
    return tuple(dis.get_instructions(code))


@lru_cache(maxsize=4096)
def _loops(code: CodeType) -> tuple[tuple[int, int, int], ...]:
    """The lines and the first and last offsets of the loops of a function, inner ones first."""
    ends: dict[int, int] = {}
    lines: dict[int, int] = {}
    place: dict[int, int] = {}
    names: dict[int, str] = {}
    line = code.co_firstlineno
    # The handler of a `with` statement stands at the end of the function, and jumps back.
    is_handler = False
    for instruction in _instructions(code):
        positions = instruction.positions
        if positions is not None and positions.lineno is not None:
            line = positions.lineno
        place[instruction.offset] = line
        name = names[instruction.offset] = instruction.opname
        ends_handler, is_handler = (
            is_handler,
            name == "POP_EXCEPT" or (is_handler and name == "POP_TOP"),
        )
        # Those of generators that wait for others are no loops.
        if name.startswith(_BACKWARD) and not name.endswith("NO_INTERRUPT"):
            first = instruction.argval
            if ends_handler and names.get(first) != "FOR_ITER":
                continue
            ends[first] = instruction.offset
            # That of `while` stands at the end, before the jump.
            lines[first] = min(lines.get(first, line), line, place.get(first, line))
    loops = [(lines[first], first, last) for first, last in ends.items()]
    return tuple(sorted(loops, key=lambda loop: loop[2] - loop[1]))


def loops_at(code: CodeType, offset: int) -> list[Loop]:
    """The loops around an instruction, innermost first."""
    # Code objects of two files may be equal, so that the cache does not know the file.
    return [
        Loop(code.co_filename, code.co_qualname, *loop)
        for loop in _loops(code)
        if loop[1] <= offset <= loop[2]
    ]


def _instruction_at(code: CodeType, offset: int) -> int:
    """The number of the instruction at an offset, or of that whose cache is there."""
    return bisect_right(_instructions(code), offset, key=lambda i: i.offset) - 1


def is_dropped(code: CodeType, offset: int) -> bool:
    """Whether the result of an instruction is thrown away: that of an expression statement."""
    following = _instructions(code)[_instruction_at(code, offset) + 1 :][:1]
    return any(instruction.opname == "POP_TOP" for instruction in following)


def expression_at(code: CodeType, offset: int) -> str:
    """The source text of what an instruction computes; an empty string if it is not known."""
    at = _instructions(code)[_instruction_at(code, offset)].positions
    if at is None or None in at:
        return ""
    line, last, start, end = map(int, at)  # type: ignore[arg-type]
    lines = [text.encode() for text in linecache.getlines(code.co_filename)[line - 1 : last]]
    if not lines:
        return ""
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    return b"".join(lines).decode(errors="replace")
