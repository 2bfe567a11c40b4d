"""Makes reports of compiled programs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dovetail._core.base.bindings import JaxRuntimeError
from dovetail._core.ir.abstract_mesh import AbstractMesh
from dovetail._core.ir.avals import outer_aval, physical_aval
from dovetail._core.runtime.arrays.memory import byte_count
from dovetail._core.runtime.devices.mesh import Mesh
from dovetail._core.runtime.devices.named_sharding import NamedSharding
from dovetail._core.runtime.reports.costs import Costs, Step, costs_of
from dovetail._core.runtime.reports.groups import across_slices, axes_of_groups, in_all_slices
from dovetail._core.runtime.reports.hardware import Hardware, hardware_of
from dovetail._core.runtime.reports.hlo_text import parsed
from dovetail._core.runtime.reports.model import (
    exchanged_bytes,
    group_size,
    ring_bandwidth,
    sent_bytes,
)
from dovetail._core.runtime.reports.report import (
    ArrayMemory,
    Collective,
    Memory,
    Report,
    Time,
    lines_of,
)

if TYPE_CHECKING:
    from dovetail._core.runtime.programs.program import LoadedProgram, UnloadedProgram

__all__ = ["report_of"]


def report_of(
    name: str,
    program: LoadedProgram | UnloadedProgram,
    text: str,
    arguments: Sequence[tuple[str, Any]],
    results: Sequence[tuple[str, Any]],
    constants: Sequence[Any],
    asked: str | Hardware | None,
) -> Report:
    """The report of a compiled program.

    Args:
        name: the name of its function.
        program: the program.
        text: the optimised program in XLA's language.
        arguments: name and aval of each argument, None for the aval of one that is not used.
        results: name and aval of each result.
        constants: the avals of the constants that it takes as arguments.
        asked: the hardware to take rates of, if not that of the program's devices.

    Raises:
        TypeError: `asked` is neither a name nor a `Hardware`.
        ValueError: there is no hardware of that name.
    """
    devices = program.sharding._device_list
    hardware = hardware_of(devices, asked)
    module = parsed(text)
    costs = costs_of(module)
    for step in costs.steps:
        for number, each in enumerate(step.exchanges):
            if each.between_slices:
                groups = across_slices(devices) if each.kind != "collective-permute" else None
            elif each.groups is not None:
                groups = in_all_slices(each.groups, module.partitions, devices)
            else:
                continue
            step.exchanges[number] = replace(each, groups=groups)
    shared = getattr(program.sharding, "_replicated", None)
    mesh = shared.mesh if isinstance(shared, NamedSharding) else None
    axes = mesh.abstract_mesh if isinstance(mesh, Mesh) else None
    timing = _Timing(costs, devices, axes, hardware)
    return Report(
        name=name,
        device_kind=devices[0].device_kind,
        device_count=len(devices),
        mesh=axes,
        memory=_memory(program, arguments, results, constants, hardware, costs),
        collectives=tuple(timing.collectives),
        product_flops=sum(step.times * sum(step.products.values()) for step in costs.steps),
        elementwise_flops=sum(step.times * step.elementwise for step in costs.steps),
        moved_bytes=sum(step.times * step.moved for step in costs.steps),
        lines=lines_of(timing.by_line),
        time=timing.time,
        hardware=hardware,
        notes=tuple(costs.notes),
    )


def _memory(
    program: Any,
    arguments: Sequence[tuple[str, Any]],
    results: Sequence[tuple[str, Any]],
    constants: Sequence[Any],
    hardware: Hardware | None,
    costs: Costs,
) -> Memory:
    everywhere = program.sharding._replicated
    taken = [_array(f"constant {n}", aval, everywhere) for n, aval in enumerate(constants)]
    taken += [
        _array(path, aval, place)
        for (path, aval), place in zip(arguments, program.in_shardings, strict=False)
        if aval is not None
    ]
    given = [
        _array(path, aval, place)
        for (path, aval), place in zip(results, program.out_shardings, strict=False)
    ]
    try:
        stats = program.memory_analysis()
    except (JaxRuntimeError, AttributeError, NotImplementedError):
        stats = None
        costs.note("the compiler does not tell the memory of temporaries and code")
    return Memory(
        arguments=tuple(taken),
        results=tuple(given),
        argument_bytes=(
            stats.argument_size_in_bytes if stats else sum(array.bytes for array in taken)
        ),
        result_bytes=stats.output_size_in_bytes if stats else sum(array.bytes for array in given),
        aliased_bytes=stats.alias_size_in_bytes if stats else 0,
        temporary_bytes=stats.temp_size_in_bytes if stats else 0,
        code_bytes=stats.generated_code_size_in_bytes if stats else 0,
        capacity=hardware.memory if hardware else None,
    )


def _array(path: str, aval: Any, place: Any) -> ArrayMemory:
    outer = outer_aval(aval)
    shape = tuple(outer.shape)
    part = tuple(place.shard_shape(shape)) if place is not None else shape
    # The numbers of a key lie together, so its part is that of the array of keys.
    share = byte_count(physical_aval(outer)) * math.prod(part) // max(math.prod(shape), 1)
    divided = str(place.spec) if isinstance(place, NamedSharding) else "whole"
    return ArrayMemory(path, shape, outer.dtype, part, divided, share)


class _Timing:
    """The times of a program's steps by the model.

    Attributes:
        collectives: the collective operations.
        by_line: for each step its source, operations, bytes moved and sent, and seconds.
        time: the time of all; None without rates.
    """

    def __init__(
        self,
        costs: Costs,
        devices: Sequence[Any],
        mesh: AbstractMesh | None,
        hardware: Hardware | None,
    ) -> None:
        self.costs = costs
        self.devices = devices
        self.mesh = mesh
        self.hardware = hardware
        self.collectives: list[Collective] = []
        self.by_line: list[tuple[str, int, int, int, float | None]] = []
        compute = memory = communication = 0.0
        for step in costs.steps:
            computing, moving = self.computing(step), self.moving(step)
            first = len(self.collectives)
            self.exchange(step)
            made = self.collectives[first:]
            talking = sum(each.seconds or 0.0 for each in made)
            compute += computing if computing >= moving else 0.0
            memory += moving if moving > computing else 0.0
            communication += talking
            self.by_line.append(
                (
                    step.source,
                    step.times * (sum(step.products.values()) + step.elementwise),
                    step.times * step.moved,
                    sum(each.times * each.sent_bytes for each in made),
                    max(computing, moving) + talking if hardware else None,
                )
            )
        self.time = Time(compute, memory, communication) if hardware else None

    def computing(self, step: Step) -> float:
        """The time of a step's products; others take the time of their memory traffic."""
        if self.hardware is None:
            return 0.0
        seconds = 0.0
        for kind, count in step.products.items():
            rate = self.hardware.peak_flops.get(kind)
            if rate is None:
                self.costs.note(
                    f"there is no published rate of {self.hardware.name} for products of {kind}: "
                    "they take no time in the model"
                )
            else:
                seconds += step.times * count / rate
        return seconds

    def moving(self, step: Step) -> float:
        if self.hardware is None:
            return 0.0
        return step.times * step.moved / self.hardware.memory_bandwidth

    def exchange(self, step: Step) -> None:
        """Add the collective operations of a step."""
        for exchange in step.exchanges:
            size = group_size(exchange, len(self.devices))
            sent = sent_bytes(exchange, size)
            axes, whole = None, False
            if self.mesh is not None and exchange.groups is not None:
                axes, whole = axes_of_groups(exchange.groups, self.mesh.shape_tuple)
            seconds = None
            if self.hardware is not None:
                rate = ring_bandwidth(exchange.groups, self.devices, self.hardware)
                if rate is not None:
                    seconds = step.times * sent / rate
                else:
                    self.costs.note(
                        f"the rate of the network between slices or hosts of {self.hardware.name} "
                        f"is not published: {exchange.name} takes no time in the model"
                    )
            self.collectives.append(
                Collective(
                    name=exchange.name,
                    kind=exchange.kind,
                    shapes=exchange.shapes,
                    bytes=exchanged_bytes(exchange, size),
                    sent_bytes=sent,
                    groups=exchange.groups,
                    axes=axes,
                    whole_axes=whole,
                    times=step.times,
                    exact=step.exact,
                    source=step.source,
                    scope=step.scope,
                    seconds=seconds,
                )
            )
