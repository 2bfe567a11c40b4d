"""Divides calls over devices where the compiler asks how, while it compiles.

The compiler knows a call by its number. It asks on the thread that compiles, for the shardings that
it has found; the answer is a program for the part of one device.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.base.bindings import JaxRuntimeError, _jax, xla_client
from dovetail._core.base.errors import ShapeError
from dovetail._core.base.locks import shared_lock
from dovetail._core.hlo.collectives import ManualAxes
from dovetail._core.ir.avals import physical_aval
from dovetail._core.ir.jaxpr import DebugInfo
from dovetail._core.ir.partition_spec import PartitionSpec, axes_of
from dovetail._core.ops.parallel.custom_partitioning import TARGET, Division, PartitionedCall
from dovetail._core.ops.parallel.shard_map import inside
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.mesh import Mesh
from dovetail._core.runtime.devices.named_sharding import NamedSharding
from dovetail._core.runtime.devices.pjrt import loaded_plugins
from dovetail._core.trace.state import evaluation_trace, use_trace
from dovetail._core.transform.stage import stage

if TYPE_CHECKING:
    from dovetail._core.lower.equations import EquationProgram
    from dovetail._core.lower.lowering import LoweredModule

__all__ = ["dividing"]


@contextmanager
def dividing(lowered: LoweredModule | EquationProgram, place: Any) -> Iterator[None]:
    """A scope for compiling a program: the compiler's questions about its calls are answered.

    The calls that it divides itself, along their batch dimensions, are made known to it.

    Args:
        lowered: the program.
        place: where it runs.

    Raises:
        Exception: what was raised while a call was divided.
        NotImplementedError: the compiler does not ask.
    """
    _register(lowered)
    asked = {call.number: _Question(call, place) for call in lowered.partitioned}
    _asked.update(asked)
    try:
        yield
    except (JaxRuntimeError, ValueError) as error:
        for question in asked.values():
            if question.error is not None:
                raise question.error from None
        if TARGET in str(error) and not any(question.answered for question in asked.values()):
            names = ", ".join(call.partition.name for call in lowered.partitioned)
            raise NotImplementedError(
                f"custom_partitioning of {names}: the compiler for "
                f"{clients.platform_of(place._device)} does not ask how functions are divided over "
                "devices; call the function itself, or divide it with shard_map"
            ) from error
        raise
    finally:
        for number, question in asked.items():
            if _asked.get(number) is question:
                del _asked[number]


class _Question:
    """How a call is divided; kept until its program is compiled."""

    def __init__(self, call: PartitionedCall, place: Any) -> None:
        self.call = call
        self.place = place
        self.error: BaseException | None = None
        self.answered = False

    def answer(self, operands: Sequence[Any], results: Sequence[Any]) -> Any:
        """The program of one device as bytes, and the shardings of operands and results.

        Args:
            operands: the shardings that the compiler has found for the operands.
            results: those for the results.
        """
        call, self.answered = self.call, True
        avals = (call.in_avals, call.out_avals)
        shardings = (
            [self._named(s, aval) for s, aval in zip(operands, call.in_avals, strict=True)],
            [self._named(s, aval) for s, aval in zip(results, call.out_avals, strict=True)],
        )
        mesh = self.place._replicated.mesh
        with use_trace(evaluation_trace):
            division = call.partition.divided(mesh, avals, shardings)
            _check_devices(division, mesh, call.partition.name)
            program = self._program(division)
        return (
            program,
            [_tiling(s, a) for s, a in zip(division.operands, call.in_avals, strict=True)],
            [_tiling(s, a) for s, a in zip(division.results, call.out_avals, strict=True)],
        )

    def _named(self, tiling: Any, aval: Any) -> NamedSharding:
        """A sharding in terms of the mesh. What has none counts as whole, and the compiler sees
        to it; so do dimensions that are not divided evenly."""
        shape = aval.shape
        mesh = self.place._replicated.mesh
        spec = PartitionSpec()
        if tiling.is_tiled():
            try:
                spec = self.place._named(tiling, len(shape)).spec
            except NotImplementedError:
                spec = PartitionSpec()
        entries = [*spec, *[None] * (len(shape) - len(spec))]
        for number, entry in enumerate(entries):
            if shape[number] % math.prod(mesh.shape[axis] for axis in axes_of(entry)):
                entries[number] = None
        return NamedSharding(mesh, PartitionSpec(*entries))

    def _program(self, division: Division) -> bytes:
        from dovetail._core.lower.lowering import lower_jaxpr  # deferred: loads MLIR

        name, mesh = self.call.partition.name, division.mesh
        axes = frozenset(mesh.axis_names)
        local = [
            aval.update(shape=s.shard_shape(aval.shape), vma=frozenset())
            for aval, s in zip(self.call.in_avals, division.operands, strict=True)
        ]
        wanted = [
            aval.update(shape=s.shard_shape(aval.shape))
            for aval, s in zip(self.call.out_avals, division.results, strict=True)
        ]
        with inside(mesh, axes, False):
            closed = stage(division.function, local, DebugInfo("custom_partitioning", name))
            for number, (got, want) in enumerate(zip(closed.out_avals, wanted, strict=True)):
                if got.shape != want.shape or got.dtype != want.dtype:
                    raise ShapeError(
                        f"custom_partitioning of {name}: result {number} of the function that "
                        f"partition returned is {got.short_name()} on each device. With the "
                        f"sharding that it returned for it, {division.results[number].spec} over "
                        f"{mesh}, it has to be {want.short_name()}"
                    )
            if closed.effects:
                raise NotImplementedError(
                    f"custom_partitioning of {name}: the function that partition returned has side "
                    "effects or callbacks; it can only compute"
                )
            lowered = lower_jaxpr(
                closed,
                name="part",
                platforms=(clients.platform_of(self.place._device),),
                keep_unused=True,
                constants_threshold=sys.maxsize,
                num_partitions=len(mesh._flat),
                manual=ManualAxes(mesh.shape_tuple, axes),
            )
        if lowered.host_callbacks:
            raise NotImplementedError(
                f"custom_partitioning of {name}: the function that partition returned calls "
                "Python; it can only compute"
            )
        assert not lowered.hoisted
        assert lowered.equations is None
        return lowered.bytecode()


def _tiling(sharding: NamedSharding, aval: Any) -> Any:
    return sharding._to_xla_hlo_sharding(physical_aval(aval).ndim)


def _check_devices(division: Division, mesh: Mesh, name: str) -> None:
    for sharding in (*division.operands, *division.results):
        if sharding._device_list != list(mesh._flat):
            raise ValueError(
                f"custom_partitioning of {name}: partition returned {sharding}, whose devices or "
                f"their order are not those of the program, {mesh}; write NamedSharding(mesh, "
                "...) with the mesh that it was given"
            )
    if list(division.mesh._flat) != list(mesh._flat):
        raise ValueError(
            f"custom_partitioning of {name}: partition returned {division.mesh}, whose devices or "
            f"their order are not those of the program, {mesh}; return the mesh that it was given"
        )


# -------------------------------------------------------------------------------------------
# what the compiler calls

_asked: Final[dict[int, _Question]] = {}
_registered: Final[set[tuple[str, str]]] = set()
_lock: Final = shared_lock()


def _register(lowered: LoweredModule | EquationProgram) -> None:
    """Tell all compilers of this process which calls to divide, and whom to ask of others."""
    targets = {*lowered.divisible, *([TARGET] if lowered.partitioned else ())}
    with _lock:
        libraries: dict[str, dict[str, Any]] = {"": {}}
        libraries |= {plugin.name: {"c_api": plugin.capsule} for plugin in loaded_plugins()}
        for (name, options), target in itertools.product(libraries.items(), targets):
            if (name, target) in _registered:
                continue
            if target == TARGET:
                xla_client.register_custom_call_partitioner(
                    TARGET, _propagated, _partitioned, _inferred, True, **options
                )
            else:
                # A compiler that cannot be told gathers the operands, which is slow but right.
                with suppress(JaxRuntimeError):
                    _jax.register_custom_call_as_batch_partitionable(target, **options)
            _registered.add((name, target))


def _partitioned(
    shapes: Any, operands: Sequence[Any], shape: Any, result: Any, number: bytes
) -> tuple[bytes, list[Any], Any]:
    question = _asked[int(number)]
    try:
        is_tuple = shape.is_tuple()
        results = result.tuple_elements() if is_tuple else [result]
        program, taken, given = question.answer(operands, results)
    except BaseException as error:
        question.error = error
        raise
    if not is_tuple:
        return program, taken, given[0]
    return program, taken, xla_client.HloSharding.tuple_sharding(shape, given)


def _propagated(sharding: Any, shape: Any, number: bytes) -> Any:
    # Rules are known to Shardy, which does not ask.
    return sharding


def _inferred(shapes: Any, operands: Any, shape: Any, number: bytes) -> Any:
    return xla_client.HloSharding.replicate()
