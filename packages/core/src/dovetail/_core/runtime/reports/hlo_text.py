"""Reads the text of optimised programs in XLA's language."""

from __future__ import annotations

import functools
import math
import re
from typing import Final

from dovetail._core.base.records import record

__all__ = ["Computation", "Instruction", "Module", "Shape", "parsed"]

_BITS: Final = {"pred": 8, "bf16": 16, "c64": 64, "c128": 128, "token": 0, "opaque": 0}

_LEAF: Final = re.compile(r"([a-z]\w*)\[([^\]]*)\](?:\{([^{}]*)\})?")
_SPACE: Final = re.compile(r"S\((\d+)\)")
_LINE: Final = re.compile(r"\s*(ROOT\s+)?%?([\w.\-]+)\s*=\s*(.*)", re.DOTALL)
_OPCODE: Final = re.compile(r"\s*([a-z][\w\-]*)\(")
_NAMES: Final = re.compile(r"%([\w.\-]+)")
_HEADER: Final = re.compile(r"(ENTRY\s+)?%?([\w.\-]+)\s*\(.*->.*\{\s*$")
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_CALLED: Final = re.compile(
    r"(?:^|[\s,])(calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-]+)"
)
_BRANCHES: Final = re.compile(r"(?:^|[\s,])branch_computations=\{([^{}]*)\}")
_FRAME: Final = re.compile(r"(\d+) \{file_location_id=(\d+) ")
_LOCATION: Final = re.compile(r"(\d+) \{file_name_id=(\d+) .*?\bline=(\d+) ")
_NAMED: Final = re.compile(r'(\d+) "(.*)"')


@record
class Shape:
    """The type of an array.

    Attributes:
        dtype: XLA's name of the type of its elements.
        dims: the sizes of its dimensions.
        space: the number of the memory that holds it; 0 is the device's own.
    """

    dtype: str
    dims: tuple[int, ...]
    space: int = 0

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return math.prod(self.dims)

    @property
    def bytes(self) -> int:
        """How many bytes its elements take, without padding."""
        return -(-self.elements * _bits(self.dtype) // 8)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.dims))}]"


@functools.cache
def _bits(dtype: str) -> int:
    known = _BITS.get(dtype)
    if known is not None:
        return known
    size = re.match(r"[a-z]+(\d+)", dtype)
    return int(size.group(1)) if size else 0


@record
class Instruction:
    """One operation of a program.

    Attributes:
        name: its name.
        opcode: which operation it is.
        shapes: the types of its results, those of a tuple one after another.
        operands: the names of its operands.
        inside: the text between the parentheses: a constant's value, a parameter's number.
        attributes: the text behind them.
    """

    name: str
    opcode: str
    shapes: tuple[Shape, ...]
    operands: tuple[str, ...]
    inside: str
    attributes: str

    @property
    def bytes(self) -> int:
        """The bytes of its results."""
        return sum(shape.bytes for shape in self.shapes)

    @property
    def bare(self) -> str:
        """The attributes without the contents of strings."""
        return _STRING.sub('""', self.attributes)

    def attribute(self, name: str) -> str | None:
        """The text of an attribute that is in braces, such as ``dimensions={1}``."""
        found = re.search(rf"(?:^|[\s,]){name}=\{{([^{{}}]*)\}}", self.bare)
        return found.group(1) if found else None

    def numbers(self, name: str) -> tuple[int, ...]:
        """The numbers in such an attribute; none if it is not there."""
        return tuple(map(int, re.findall(r"-?\d+", self.attribute(name) or "")))

    def called(self, *roles: str) -> tuple[str, ...]:
        """The names of the computations that it calls in such roles."""
        bare = self.bare
        found = [name for role, name in _CALLED.findall(bare) if role in roles]
        if "branch_computations" in roles:
            for names in _BRANCHES.findall(bare):
                found += [name.strip().lstrip("%") for name in names.split(",")]
        return tuple(found)


@record
class Computation:
    """A function of a program.

    Attributes:
        name: its name.
        instructions: its operations by name, in order.
        root: the name of the one that is its result.
    """

    name: str
    instructions: dict[str, Instruction]
    root: str

    def shapes_of(self, name: str) -> tuple[Shape, ...]:
        """The types of an operation's results; none if it is unknown."""
        found = self.instructions.get(name)
        return found.shapes if found else ()

    def operand(self, instruction: Instruction, number: int = 0) -> Instruction | None:
        """An operand of one of its operations."""
        if number >= len(instruction.operands):
            return None
        return self.instructions.get(instruction.operands[number])


@record
class Module:
    """A program.

    Attributes:
        computations: its functions by name.
        entry: the name of the one that is called.
        frames: for numbers of stack frames, the file and line.
        partitions: the number of devices that numbers of devices in it go up to.
    """

    computations: dict[str, Computation]
    entry: str
    frames: dict[str, str]
    partitions: int

    def source(self, instruction: Instruction) -> str | None:
        """The user's file and line of an operation, ``file:line``, if it says it."""
        text = instruction.attributes
        frame = re.search(r"stack_frame_id=(\d+)", text)
        if frame and frame.group(1) in self.frames:
            return self.frames[frame.group(1)]
        file = re.search(r'source_file="((?:[^"\\]|\\.)*)"', text)
        line = re.search(r"source_line=(\d+)", text)
        return f"{file.group(1)}:{line.group(1)}" if file and line else None

    @staticmethod
    def scope(instruction: Instruction) -> str:
        """The name of an operation in the user's program, or nothing."""
        found = re.search(r'op_name="((?:[^"\\]|\\.)*)"', instruction.attributes)
        return found.group(1) if found else ""


def parsed(text: str) -> Module:
    """Read a program.

    Raises:
        ValueError: it has no entry.
    """
    tables: dict[str, dict[str, str]] = {}
    computations: dict[str, Computation] = {}
    entry = ""
    table: dict[str, str] | None = None
    name, root = "", ""
    instructions: dict[str, Instruction] | None = None
    for line in text.splitlines():
        if instructions is not None:
            if line.startswith("}"):
                computations[name] = Computation(name, instructions, root)
                instructions = None
                continue
            found = _instruction(line)
            if found is not None:
                instruction, is_root = found
                instructions[instruction.name] = instruction
                if is_root:
                    root = instruction.name
            continue
        if line in ("FileNames", "FunctionNames", "FileLocations", "StackFrames"):
            table = tables.setdefault(line, {})
        elif table is not None and line[:1].isdigit():
            number, _, rest = line.partition(" ")
            table[number] = rest
        else:
            table = None
            header = _HEADER.match(line)
            if header and not line.startswith("HloModule"):
                name, instructions, root = header.group(2), {}, ""
                if header.group(1):
                    entry = name
    if entry not in computations:
        raise ValueError("the text of the program has no entry computation")
    count = re.match(r"HloModule.*?[\s,]num_partitions=(\d+)", text)
    return Module(computations, entry, _frames(tables), int(count.group(1)) if count else 1)


def _frames(tables: dict[str, dict[str, str]]) -> dict[str, str]:
    files = {n: text.strip('"') for n, text in tables.get("FileNames", {}).items()}
    locations = {}
    for number, text in tables.get("FileLocations", {}).items():
        found = _LOCATION.match(f"{number} {text}")
        if found:
            locations[number] = f"{files.get(found.group(2), '?')}:{found.group(3)}"
    frames = {}
    for number, text in tables.get("StackFrames", {}).items():
        found = _FRAME.match(f"{number} {text}")
        if found and found.group(2) in locations:
            frames[number] = locations[found.group(2)]
    return frames


def _instruction(line: str) -> tuple[Instruction, bool] | None:
    match = _LINE.match(line)
    if match is None:
        return None
    is_root, name, rest = match.groups()
    if rest.startswith("("):
        end = _closing(rest, 0)
    else:
        end = rest.find(" ")
    opcode = _OPCODE.match(rest, end) if end > 0 else None
    if opcode is None:
        return None
    start = opcode.end() - 1
    stop = _closing(rest, start) if opcode.group(1) != "constant" else rest.find(")", start) + 1
    stop = stop if stop > 0 else len(rest)
    inside = rest[start + 1 : stop - 1]
    operands: tuple[str, ...] = ()
    if opcode.group(1) not in ("constant", "parameter"):
        operands = tuple(_NAMES.findall(inside)) or tuple(_last_words(inside))
    shapes = tuple(_shapes(rest[:end]))
    return Instruction(name, opcode.group(1), shapes, operands, inside, rest[stop:]), bool(is_root)


def _shapes(text: str) -> list[Shape]:
    found = []
    for dtype, dims, layout in _LEAF.findall(text):
        sizes = tuple(int(size) for size in re.findall(r"\d+", dims))
        space = _SPACE.search(layout)
        found.append(Shape(dtype, sizes, int(space.group(1)) if space else 0))
    return found


def _last_words(text: str) -> list[str]:
    """The names of operands that are written without a sign before them."""
    plain = re.sub(r"\{[^{}]*\}|\[[^\]]*\]", "", text)
    return [part.split()[-1] for part in plain.split(",") if part.split()]


def _closing(text: str, start: int) -> int:
    """The end of a parenthesis that begins there; 0 if it does not end."""
    depth = 0
    quoted = False
    for match in re.compile(r'\\.|["()]').finditer(text, start):
        sign = match.group()
        if sign == '"':
            quoted = not quoted
        elif quoted or sign[0] == "\\":
            continue
        elif sign == "(":
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                return match.end()
    return 0
