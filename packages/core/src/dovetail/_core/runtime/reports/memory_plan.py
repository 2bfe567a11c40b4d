"""The memory that a compiled program takes, and the lines and arguments that it goes to."""

from __future__ import annotations

from typing import Final

from dovetail._core.base import notebooks
from dovetail._core.base.records import record
from dovetail._core.base.tracebacks import bounded
from dovetail._core.runtime.arrays.memory import in_words
from dovetail._core.runtime.reports import tables

__all__ = ["MemoryPlan", "PlannedBuffer"]

#: The share of the memory, in percent, that is worth a number.
_LEAST_SHARE: Final = 0.01
_SHOWN: Final = 12
_HEAD: Final = ("size", "type", "what", "operation", "line")
_SIDES: Final = ("right", "left", "left", "left", "left")


@record
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


@bounded
@record
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
            percent = f", {share:.2g} %{too_much}" if share >= _LEAST_SHARE else ""
            of = f"of {in_words(self.capacity)}{percent}"
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
