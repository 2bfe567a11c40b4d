"""The memory that a compiled program takes, and the lines and arguments that it goes to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.base import notebooks
from dovetail._core.base.bindings import JaxRuntimeError
from dovetail._core.ir.avals import outer_aval, physical_aval
from dovetail._core.runtime.arrays.memory import byte_count, in_words
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.capacity import device_memory
from dovetail._core.runtime.reports import tables
from dovetail._core.runtime.reports.allocations import Block, Placed, blocks_of
from dovetail._core.runtime.reports.hlo_text import Computation, Instruction, Module, parsed

if TYPE_CHECKING:
    from dovetail._core.runtime.programs.program import LoadedProgram, UnloadedProgram

__all__ = ["MemoryPlan", "PlannedBuffer", "memory_plan"]

_SHOWN: Final = 12
_HEAD: Final = ("size", "type", "what", "operation", "line")
_SIDES: Final = ("right", "left", "left", "left", "left")
#: How far to look for a line around an instruction that the compiler has added.
_REACH: Final = 4


@dataclass(frozen=True, slots=True)
class PlannedBuffer:
    """A value that a program keeps in memory.

    Attributes:
        kind: ``"argument"``, ``"result"``, ``"temporary"`` or ``"constant"``.
        path: of an argument its name, ``params['w']``, of a result ``result[0]``, else nothing.
        type: its dtype and shape on one device, ``f32[512,512]``.
        bytes: the memory that it takes.
        operation: the operation that makes it, by the compiler's name for it.
        source: the user's file and line, ``file:line``; nothing if that is not known.
        donated_to: the name of the result that takes over the memory of this argument.
        others: how many other values take their turn in the same place.
    """

    kind: str
    path: str
    type: str
    bytes: int
    operation: str
    source: str
    donated_to: str
    others: int


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """The memory that a program takes on each device, made by `Lowered.memory`; prints as a table.

    Attributes:
        name: the program's name.
        device_kind: the kind of the devices that it is compiled for.
        device_count: how many they are.
        argument_bytes: its arguments.
        result_bytes: its results.
        aliased_bytes: what results take over from donated arguments.
        temporary_bytes: the block for what is needed while it runs.
        constant_bytes: its constants.
        code_bytes: the program itself, as far as the compiler says.
        capacity: the memory of a device; None if that is not known.
        buffers: the values that take this memory, the largest first. Of values that take turns in
            one place, the largest stands for all.
        notes: what the compiler does not say.
    """

    name: str
    device_kind: str
    device_count: int
    argument_bytes: int
    result_bytes: int
    aliased_bytes: int
    temporary_bytes: int
    constant_bytes: int
    code_bytes: int
    capacity: int | None
    buffers: tuple[PlannedBuffer, ...]
    notes: tuple[str, ...]

    @property
    def peak_bytes(self) -> int:
        """All that is taken at once."""
        kept = self.argument_bytes + self.result_bytes - self.aliased_bytes
        return kept + self.temporary_bytes + self.constant_bytes + self.code_bytes

    def by_line(self) -> dict[str, int]:
        """The bytes of results and temporaries by the user's line, the most first."""
        sums: dict[str, int] = {}
        for buffer in self.buffers:
            if buffer.kind in ("result", "temporary"):
                sums[buffer.source] = sums.get(buffer.source, 0) + buffer.bytes
        return dict(sorted(sums.items(), key=lambda entry: -entry[1]))

    def __str__(self) -> str:
        devices = f"{self.device_count} x {self.device_kind}"
        parts = [f"{self.name} on {devices}; all numbers are for one device"]
        parts += [self._sums(), tables.aligned(self._rows(), _SIDES)]
        return "\n\n".join([*parts, *self.notes])

    def _repr_html_(self) -> str:
        title = f"{self.name}: {in_words(self.peak_bytes)} at the peak"
        return notebooks.boxed(title, self._sums()) + notebooks.table(self._rows(), _SIDES)

    def _sums(self) -> str:
        of = ""
        if self.capacity:
            share = 100 * self.peak_bytes / self.capacity
            too_much = ": too much" if share > 100 else ""
            of = f"of {in_words(self.capacity)}, {share:.2g} %{too_much}"
        rows = [("peak", in_words(self.peak_bytes), of)]
        amounts = (
            ("arguments", self.argument_bytes),
            ("results", self.result_bytes),
            ("in place of donated arguments", -self.aliased_bytes),
            ("temporaries", self.temporary_bytes),
            ("constants", self.constant_bytes),
            ("code", self.code_bytes),
        )
        for what, count in amounts:
            if count:
                sign = "-" if count < 0 else ""
                rows.append((f"  {what}", f"{sign}{in_words(abs(count))}", ""))
        return tables.aligned(rows, ("left", "right", "left"))

    def _rows(self) -> list[tuple[str, ...]]:
        rows: list[tuple[str, ...]] = [_HEAD]
        for buffer in self.buffers[:_SHOWN]:
            what = buffer.path or buffer.kind
            if buffer.donated_to:
                what += f", donated to {buffer.donated_to}"
            if buffer.others:
                what += f", and {buffer.others} more in its place"
            line = tables.place(buffer.source)
            size = in_words(buffer.bytes)
            rows.append((size, buffer.type, what, buffer.operation, line))
        left = self.buffers[_SHOWN:]
        if left:
            size = in_words(sum(buffer.bytes for buffer in left))
            rows.append((size, "", f"{len(left)} more", "", ""))
        return rows


def memory_plan(
    name: str,
    program: LoadedProgram | UnloadedProgram,
    executable: Any,
    arguments: Sequence[tuple[str, Any]],
    results: Sequence[tuple[str, Any]],
    constants: Sequence[Any],
) -> MemoryPlan:
    """What memory a compiled program takes.

    Args:
        name: the name of its function.
        program: the program.
        executable: an executable of it that has its own names.
        arguments: name and aval of each argument that it takes.
        results: name and aval of each result.
        constants: the avals of the constants that it takes as arguments.
    """
    taken = [*((f"a constant of {name}", aval) for aval in constants), *arguments]
    devices = program.sharding._device_list
    notes = []
    try:
        stats = executable.get_compiled_memory_stats()
    except (JaxRuntimeError, AttributeError, NotImplementedError):
        stats = None
        notes.append("The compiler does not say what temporaries and code take.")
    blocks, module = _blocks(stats, executable)
    buffers: list[PlannedBuffer] = []
    if module is None:
        if stats is not None:
            notes.append("The compiler does not say which values its temporaries are.")
        buffers = [_whole("argument", *each) for each in taken]
        buffers += [_whole("result", *each) for each in results]
    else:
        buffers = list(_Reader(module, taken, results).buffers(blocks))
    arguments_size = sum(b.bytes for b in buffers if b.kind == "argument")
    results_size = sum(b.bytes for b in buffers if b.kind == "result")
    return MemoryPlan(
        name=name,
        device_kind=devices[0].device_kind,
        device_count=len(devices),
        argument_bytes=stats.argument_size_in_bytes if stats else arguments_size,
        result_bytes=stats.output_size_in_bytes if stats else results_size,
        aliased_bytes=stats.alias_size_in_bytes if stats else 0,
        temporary_bytes=stats.temp_size_in_bytes if stats else 0,
        constant_bytes=sum(block.size for block in blocks if block.is_constant),
        code_bytes=stats.generated_code_size_in_bytes if stats else 0,
        capacity=None if clients.is_compile_only(devices[0]) else device_memory(devices[0]),
        buffers=tuple(sorted(buffers, key=lambda buffer: -buffer.bytes)),
        notes=tuple(notes),
    )


def _blocks(stats: Any, executable: Any) -> tuple[list[Block], Module | None]:
    """The blocks of a program and its text; none if the compiler does not tell them."""
    assignment = getattr(stats, "serialized_buffer_assignment_proto", b"")
    if not assignment:
        return [], None
    module = executable.hlo_modules()[0]
    try:
        blocks = blocks_of(assignment, module.as_serialized_hlo_module_proto())
    except (ValueError, LookupError):  # another version of jaxlib may write it differently
        return [], None
    return blocks, parsed(module.to_string())


def _whole(kind: str, path: str, aval: Any) -> PlannedBuffer:
    outer = outer_aval(aval)
    size = byte_count(physical_aval(outer))
    return PlannedBuffer(kind, path, outer.short_name(), size, "", "", "", 0)


class _Reader:
    """Says in the user's words what the blocks of a program hold.

    Args:
        module: the program.
        arguments: name and aval of each argument.
        results: name and aval of each result.
    """

    def __init__(
        self,
        module: Module,
        arguments: Sequence[tuple[str, Any]],
        results: Sequence[tuple[str, Any]],
    ) -> None:
        self.module = module
        self.arguments = arguments
        self.homes: dict[str, Computation] = {}
        for computation in module.computations.values():
            for name in computation.instructions:
                self.homes[name] = computation
        self.users: dict[str, list[Instruction]] = {}
        for computation in module.computations.values():
            for instruction in computation.instructions.values():
                for operand in instruction.operands:
                    self.users.setdefault(operand, []).append(instruction)
        self.results: dict[tuple[str, tuple[int, ...]], str] = {}
        entry = module.computations[module.entry]
        root = entry.instructions[entry.root]
        parts = root.operands if root.opcode == "tuple" else (root.name,)
        for number, (path, _) in enumerate(results):
            if number < len(parts):
                self.results[self._definition(entry, parts[number])] = path

    @staticmethod
    def _definition(entry: Computation, name: str) -> tuple[str, tuple[int, ...]]:
        """The instruction, and the part of its result, that a value is."""
        part: tuple[int, ...] = ()
        while True:
            found = entry.instructions[name]
            if found.opcode == "get-tuple-element":
                index = found.attributes.partition("index=")[2]
                digits = index[: len(index) - len(index.lstrip("0123456789"))]
                part = (int(digits or 0), *part)
            elif found.opcode not in ("bitcast", "copy-done"):
                return name, part
            name = found.operands[0]

    def buffers(self, blocks: Sequence[Block]) -> Iterator[PlannedBuffer]:
        """The values that take the memory."""
        for block in blocks:
            if block.parameter is not None:
                yield self._argument(block)
                continue
            kind = "constant" if block.is_constant else "temporary"
            result, path = None, ""
            if block.is_result:
                kind = "result"
                result, path = self._result(block)
            for value, others in _covering(block):
                shown = value if result is None else result
                yield self._described(kind, path, shown, others)

    def _argument(self, block: Block) -> PlannedBuffer:
        number = block.element[0] if block.element else block.parameter or 0
        path = self.arguments[number][0] if number < len(self.arguments) else f"argument {number}"
        type_ = given = ""
        for value in block.values:
            found = self._instruction(value.instruction)
            if found is not None and found.opcode == "parameter" and len(found.shapes) == 1:
                type_ = str(found.shapes[0])
        operation = source = ""
        if block.is_result:
            result, given = self._result(block)
            if result is not None:
                made = self._described("result", given, result, 0)
                operation, source = made.operation, made.source
            given = given or "a result"
        others = sum(value.size == block.size for value in block.values)
        others = max(others - (2 if operation else 1), 0)
        return PlannedBuffer("argument", path, type_, block.size, operation, source, given, others)

    def _result(self, block: Block) -> tuple[Placed | None, str]:
        """The value in a block that is a result, and the name of the result."""
        for value in block.values:
            path = self.results.get((value.instruction, value.element))
            if path is not None:
                return value, path
        return None, ""

    def _instruction(self, name: str) -> Instruction | None:
        home = self.homes.get(name)
        return None if home is None else home.instructions[name]

    def _described(self, kind: str, path: str, value: Placed, others: int) -> PlannedBuffer:
        found = self._instruction(value.instruction)
        type_ = operation = source = ""
        if found is not None:
            place = self._with_line(found)
            source = self.module.source(place) or ""
            operation = Module.scope(place).rpartition("/")[2] or found.opcode
            number = value.element[0] if len(value.element) == 1 else 0
            if number < len(found.shapes) and (value.element or len(found.shapes) == 1):
                type_ = str(found.shapes[number])
        return PlannedBuffer(kind, path, type_, value.size, operation, source, "", others)

    def _with_line(self, instruction: Instruction) -> Instruction:
        """The instruction itself, or the nearest around it that says its line."""
        seen, ring = {instruction.name}, [instruction]
        for _ in range(_REACH):
            for each in ring:
                if self.module.source(each) is not None:
                    return each
            around: list[Instruction] = []
            for each in ring:
                home = self.homes[each.name]
                inner = [self.module.computations.get(n) for n in each.called("calls", "to_apply")]
                around += [c.instructions[c.root] for c in inner if c is not None]
                around += [home.instructions[n] for n in each.operands if n in home.instructions]
                around += self.users.get(each.name, ())
            ring = [each for each in around if each.name not in seen]
            seen.update(each.name for each in ring)
        return instruction


def _covering(block: Block) -> Iterator[tuple[Placed, int]]:
    """Values that fill a block without sharing a place, the largest first.

    With each comes the number of other values of the block that it shares its place with.
    """
    chosen: list[Placed] = []
    for value in sorted(block.values, key=lambda value: -value.size):
        if value.size and not any(_overlap(value, other) for other in chosen):
            chosen.append(value)
    for value in chosen:
        names = {v.instruction for v in block.values if _overlap(v, value)}
        yield value, len(names - {value.instruction})


def _overlap(first: Placed, second: Placed) -> bool:
    return first.offset < second.offset + second.size and second.offset < first.offset + first.size
