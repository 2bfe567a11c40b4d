"""What a compiled program needs of each device: memory, communication, operations, time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from os import PathLike
from typing import Any

import numpy as np

from dovetail._core.base.records import record
from dovetail._core.base.tracebacks import bounded
from dovetail._core.ir.abstract_mesh import AbstractMesh
from dovetail._core.runtime.reports import tables
from dovetail._core.runtime.reports.groups import Groups
from dovetail._core.runtime.reports.hardware import Hardware
from dovetail._core.runtime.reports.plotting import Figure, drawn

__all__ = ["ArrayMemory", "Collective", "LineCost", "Memory", "Report", "Time"]


@record
class ArrayMemory:
    """An argument or a result of a program.

    Attributes:
        path: what it is called: ``params['w']``.
        shape: its whole shape.
        dtype: its dtype.
        shard_shape: the shape of the part on each device.
        sharding: how it is divided, as text.
        bytes: the bytes of the part on each device, without the padding of layouts.
    """

    path: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    shard_shape: tuple[int, ...]
    sharding: str
    bytes: int


@record
class Memory:
    """The memory that a program needs on each device, in bytes.

    Attributes:
        arguments: the arguments that it uses, large constants of it first.
        results: the results.
        argument_bytes: all arguments, with padding.
        result_bytes: all results, with padding.
        aliased_bytes: what results take over from arguments that are donated.
        temporary_bytes: what is needed while it runs.
        code_bytes: the program itself.
        capacity: the memory of a device; None if that is not known.
    """

    arguments: tuple[ArrayMemory, ...]
    results: tuple[ArrayMemory, ...]
    argument_bytes: int
    result_bytes: int
    aliased_bytes: int
    temporary_bytes: int
    code_bytes: int
    capacity: int | None

    @property
    def total_bytes(self) -> int:
        """All that is needed at once."""
        kept = self.argument_bytes + self.result_bytes - self.aliased_bytes
        return kept + self.temporary_bytes + self.code_bytes


@record
class Collective:
    """A collective operation of a program.

    Attributes:
        name: its name in the optimised program.
        kind: which one: ``"all-reduce"``, ``"all-gather"``, ``"reduce-scatter"``,
            ``"all-to-all"``, ``"collective-permute"`` and others.
        shapes: the types of its operands on a device, in XLA's words.
        bytes: the bytes of the whole array on each device: of the operands, or of the result of
            an all-gather.
        sent_bytes: the bytes that each device sends in one run, by the model of a ring.
        groups: the groups of devices as places in the mesh, or the pairs of a permutation; None
            if they are written in a form that is not known.
        axes: the axes of the mesh that the groups run over; None if there is no mesh.
        whole_axes: whether they run over all of these axes, or parts of them.
        times: how often it runs in one call of the program.
        exact: whether that is known: not in a loop without a known end, or a branch.
        source: the user's file and line, ``file:line``.
        scope: the name of the operation in the user's program.
        seconds: the time of all runs by the model; None if it is not known.
    """

    name: str
    kind: str
    shapes: str
    bytes: int
    sent_bytes: int
    groups: Groups | None
    axes: tuple[Hashable, ...] | None
    whole_axes: bool
    times: int
    exact: bool
    source: str
    scope: str
    seconds: float | None


@record
class LineCost:
    """What a line of the user's program costs each device in one call.

    Attributes:
        source: the file and line, ``file:line``; ``"?"`` for what the compiler added.
        flops: floating-point operations.
        moved_bytes: bytes between the device and its memory.
        sent_bytes: bytes to other devices.
        seconds: time by the model; None if there is none.
    """

    source: str
    flops: int
    moved_bytes: int
    sent_bytes: int
    seconds: float | None


@record
class Time:
    """The time of one call by the model, in seconds.

    Attributes:
        compute: operations that take longer to compute than to move.
        memory: operations that take longer to move than to compute.
        collectives: communication, none of which is hidden behind the others.
    """

    compute: float
    memory: float
    collectives: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.compute + self.memory + self.collectives

    @property
    def shares(self) -> dict[str, float]:
        """The part of each in the whole, from 0 to 1."""
        total = self.total or 1.0
        return {
            "compute": self.compute / total,
            "memory": self.memory / total,
            "collectives": self.collectives / total,
        }


@bounded
@record
class Report:
    """What a compiled program needs of each device, made by `Compiled.report`; prints as a table.

    Attributes:
        name: the program's name.
        device_kind: the kind of the devices that it is compiled for.
        device_count: how many they are.
        mesh: the mesh of its arguments, without its devices; None if it has none.
        memory: the memory.
        collectives: the collective operations, in the order of the program.
        product_flops: floating-point operations of products of matrices and convolutions, two for
            each multiplication and addition.
        elementwise_flops: other floating-point operations.
        moved_bytes: bytes between the device and its memory.
        lines: the costs of lines of the user's program, the most expensive first.
        time: the time by the model; None if the rates of the hardware are not known.
        hardware: the rates.
        notes: what could not be counted, as sentences.
    """

    name: str
    device_kind: str
    device_count: int
    mesh: AbstractMesh | None
    memory: Memory
    collectives: tuple[Collective, ...]
    product_flops: int
    elementwise_flops: int
    moved_bytes: int
    lines: tuple[LineCost, ...]
    time: Time | None
    hardware: Hardware | None
    notes: tuple[str, ...]

    @property
    def flops(self) -> int:
        """All floating-point operations."""
        return self.product_flops + self.elementwise_flops

    @property
    def sent_bytes(self) -> int:
        """The bytes that each device sends in one call."""
        return sum(each.sent_bytes * each.times for each in self.collectives)

    def __str__(self) -> str:
        return tables.written(self)

    def plot(self, path: str | PathLike[str] | None = None) -> Figure:
        """Draw memory, communication and time.

        Args:
            path: a file to write the picture to, such as ``"report.png"``; None for none.

        Returns:
            The figure of matplotlib, which has to be installed.

        Raises:
            ImportError: matplotlib is not installed.
        """
        return drawn(self, path)


def lines_of(costs: Sequence[tuple[str, int, int, int, float | None]]) -> tuple[LineCost, ...]:
    """Add up what each line costs: source, operations, bytes moved and sent, seconds."""
    flops: Counter[str] = Counter()
    moved: Counter[str] = Counter()
    sent: Counter[str] = Counter()
    seconds: dict[str, float | None] = {}
    for source, done, carried, given, taken in costs:
        flops[source] += done
        moved[source] += carried
        sent[source] += given
        known = seconds.get(source, 0.0)
        seconds[source] = None if known is None or taken is None else known + taken
    lines = [
        LineCost(source, flops[source], moved[source], sent[source], seconds[source])
        for source in seconds
    ]
    return tuple(
        sorted(lines, key=lambda line: (-(line.seconds or 0.0), -line.flops, -line.moved_bytes))
    )
