"""What each operation of an optimised program costs, and how often it runs."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from dovetail._core.base.records import record
from dovetail._core.runtime.reports.groups import Groups, groups_of, pairs_of
from dovetail._core.runtime.reports.hlo_text import Computation, Instruction, Module
from dovetail._core.runtime.reports.loops import trip_count
from dovetail._core.runtime.reports.products import FREE_CALLS, elementwise, product
from dovetail._core.runtime.reports.traffic import moved_bytes

__all__ = ["Costs", "Exchange", "Step", "costs_of"]

_COLLECTIVES: Final = (
    "all-reduce",
    "all-gather",
    "reduce-scatter",
    "all-to-all",
    "ragged-all-to-all",
    "collective-permute",
    "collective-broadcast",
)
_BETWEEN_SLICES: Final = re.compile(r'_xla_megascale_transfer_type="([^"]*)"')
_UNKNOWN_PLACE: Final = "?"
_FAR: Final = 8


@record
class Exchange:
    """A collective operation.

    Attributes:
        name: its name in the program.
        kind: which one.
        shapes: the types of its operands on a device, as text.
        operand_bytes: the bytes of its operands on a device.
        groups: the groups of devices, or for a permutation its pairs; None if they are unknown.
        between_slices: whether it is between slices, of which the program counts one; then
            `groups` is None.
    """

    name: str
    kind: str
    shapes: str
    operand_bytes: int
    groups: Groups | None
    between_slices: bool = False


@dataclass(slots=True)
class Step:
    """An operation of a program, with all that it contains.

    Attributes:
        source: the user's file and line.
        scope: its name in the user's program.
        times: how often it runs.
        exact: whether that is known.
        products: operations in products, by the kind of factors.
        elementwise: other floating-point operations.
        moved: bytes between a device and its memory.
        exchanges: the collective operations that it is, or contains.
    """

    source: str
    scope: str
    times: int
    exact: bool
    products: Counter[str] = field(default_factory=Counter)
    elementwise: int = 0
    moved: int = 0
    exchanges: list[Exchange] = field(default_factory=list)


@dataclass(slots=True)
class Costs:
    """The steps of a program.

    Attributes:
        steps: all that run one after another.
        notes: what could not be counted, as sentences.
    """

    steps: list[Step] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self, sentence: str) -> None:
        """Keep a sentence, once."""
        if sentence not in self.notes:
            self.notes.append(sentence)


def costs_of(module: Module) -> Costs:
    """The costs of a program on one of its devices."""
    costs = Costs()
    _Walk(module, costs).run(module.entry, 1, True)
    return costs


def _goes_on(computation: Computation, instruction: Instruction) -> bool:
    """Whether another operation has begun this one, which is computed on meanwhile.

    TPUs write an asynchronous operation again into each fusion that runs at the same time.
    """
    return "async_collective_fusion_config" in instruction.attributes and not any(
        'custom_call_target="AsyncCollectiveStart"' in each.attributes
        for each in computation.instructions.values()
    )


class _Walk:
    def __init__(self, module: Module, costs: Costs) -> None:
        self.module = module
        self.costs = costs
        self.known_users: dict[str, dict[str, list[Instruction]]] = {}

    def run(self, name: str, times: int, exact: bool) -> None:
        """Add the steps of a computation that runs so often."""
        computation = self.module.computations.get(name)
        if computation is None:
            return
        for instruction in computation.instructions.values():
            self.step(computation, instruction, times, exact)

    def step(
        self, computation: Computation, instruction: Instruction, times: int, exact: bool
    ) -> None:
        opcode = instruction.opcode
        if opcode == "while":
            turns = trip_count(self.module, computation, instruction)
            if turns is None:
                self.costs.note(
                    f"the loop at {self.source(computation, instruction)} runs an unknown number "
                    "of times: its body is counted once"
                )
            for name in instruction.called("body"):
                self.run(name, times * (1 if turns is None else turns), exact and turns is not None)
            return
        if opcode == "conditional":
            self.costs.note(
                f"of the branches at {self.source(computation, instruction)} each is counted, and "
                "one runs"
            )
            roles = ("branch_computations", "true_computation", "false_computation")
            for name in instruction.called(*roles):
                self.run(name, times, False)
            return
        if opcode in ("call", "async-start"):
            for name in instruction.called("to_apply", "calls"):
                self.run(name, times, exact)
            return
        place = self.source(computation, instruction)
        step = Step(place, self.module.scope(instruction), times, exact)
        self.add(step, computation, instruction)
        if not step.exchanges:
            step.moved = moved_bytes(self.module, computation, instruction)
        if step.exchanges or step.products or step.elementwise or step.moved:
            self.costs.steps.append(step)

    def add(self, step: Step, computation: Computation, instruction: Instruction) -> None:
        """Add to a step what an instruction does, with all that is fused into it."""
        opcode = instruction.opcode
        if opcode == "fusion":
            for name in instruction.called("calls"):
                inner = self.module.computations.get(name)
                for each in inner.instructions.values() if inner else ():
                    self.add(step, inner, each)  # type: ignore[arg-type]
            return
        kind = opcode.removesuffix("-start")
        if kind in _COLLECTIVES:
            if not _goes_on(computation, instruction):
                step.exchanges.append(self.exchange(kind, computation, instruction))
            return
        if opcode == "send":
            self.send(step, computation, instruction)
            return
        found = product(computation, instruction)
        if found is not None:
            step.products[found[0]] += found[1]
        elif opcode == "custom-call":
            target = re.search(r'custom_call_target="([^"]*)"', instruction.attributes)
            if target and not FREE_CALLS.fullmatch(target.group(1)):
                self.costs.note(f"the operations of the library call {target.group(1)} are unknown")
        step.elementwise += elementwise(computation, instruction)

    def exchange(self, kind: str, computation: Computation, instruction: Instruction) -> Exchange:
        shapes = [s for name in instruction.operands for s in computation.shapes_of(name)]
        if kind == "collective-permute":
            groups: Groups | None = pairs_of(instruction)
        else:
            groups = groups_of(instruction, self.module.partitions)
        if groups is None:
            self.costs.note(f"the groups of devices of {instruction.name} are not understood")
        if kind == "all-reduce" and self.is_scattered(computation, instruction):
            kind = "reduce-scatter"
        text = ", ".join(map(str, shapes))
        size = sum(shape.bytes for shape in shapes)
        return Exchange(instruction.name, kind, text, size, groups)

    def send(self, step: Step, computation: Computation, instruction: Instruction) -> None:
        """Add a collective operation between slices of TPUs, which goes by way of the hosts."""
        kind = _BETWEEN_SLICES.search(instruction.attributes)
        if kind is None:
            self.costs.note("what is sent to hosts is unknown")
            return
        shapes = computation.shapes_of(instruction.operands[0])
        name = kind.group(1).lower().replace("_", "-")
        if name not in _COLLECTIVES:
            name = "collective-permute"
        text = ", ".join(map(str, shapes))
        size = sum(shape.bytes for shape in shapes)
        step.exchanges.append(Exchange(instruction.name, name, text, size, None, True))

    def is_scattered(self, computation: Computation, instruction: Instruction) -> bool:
        """Whether a fusion keeps but a device's own part of an all-reduce: so TPUs scatter."""
        if computation.name == self.module.entry:
            return False
        at = computation.instructions.get(computation.root)
        while at is not None and at.opcode in ("bitcast", "copy", "convert", "reshape"):
            at = computation.operand(at)
        if at is None or at.opcode != "dynamic-slice":
            return False
        source = computation.operand(at)
        while source is not None and source.opcode in ("bitcast", "copy", "convert", "reshape"):
            source = computation.operand(source)
        return source is instruction

    def source(self, computation: Computation, instruction: Instruction) -> str:
        """The user's line: the instruction's own, or that of what it waits for, or that waits."""
        at: Instruction | None = instruction
        for _ in range(_FAR):
            found = self.module.source(at) if at is not None else None
            if at is None or found is not None:
                break
            at = computation.operand(at)
        names = {instruction.name}
        for _ in range(_FAR):
            if found is not None or not names:
                break
            users = [user for name in names for user in self.users(computation).get(name, ())]
            names = {user.name for user in users if user.name != computation.root}
            found = next(filter(None, map(self.module.source, users)), None)
        return _UNKNOWN_PLACE if found is None else found

    def users(self, computation: Computation) -> dict[str, list[Instruction]]:
        """For each value of a computation, the instructions that take it."""
        known = self.known_users.get(computation.name)
        if known is None:
            known = self.known_users[computation.name] = {}
            for each in computation.instructions.values():
                for name in each.operands:
                    known.setdefault(name, []).append(each)
        return known
