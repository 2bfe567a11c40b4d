"""Makes plans of the memory of compiled programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.base.bindings import JaxRuntimeError
from dovetail._core.ir.avals import outer_aval, physical_aval
from dovetail._core.runtime.arrays.memory import byte_count
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.capacity import device_memory
from dovetail._core.runtime.reports.allocations import Block, Placed, blocks_of
from dovetail._core.runtime.reports.hlo_text import Computation, Instruction, Module, parsed
from dovetail._core.runtime.reports.memory_plan import MemoryPlan, PlannedBuffer

if TYPE_CHECKING:
    from dovetail._core.runtime.programs.program import LoadedProgram, UnloadedProgram

__all__ = ["memory_plan"]

#: How far to look for a line around an instruction that the compiler has added.
_REACH: Final = 4


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
