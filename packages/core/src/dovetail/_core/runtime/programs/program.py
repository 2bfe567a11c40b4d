"""Compiled programs: an executable, and what is needed to call it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import config, dtypes
from dovetail._core.base.bindings import JaxRuntimeError
from dovetail._core.hlo.inspections import Inspection
from dovetail._core.ir.avals import AbstractToken, outer_aval, physical_aval, runtime_token
from dovetail._core.ir.effects import host_effects
from dovetail._core.ir.jaxpr import ordered_effects
from dovetail._core.ops.callbacks.calls import HostCall
from dovetail._core.ops.callbacks.failing import check_devices_are_free, watching
from dovetail._core.runtime.arrays import buffers, guards
from dovetail._core.runtime.arrays.array import Array, KeyArray, array_from_buffer, wrap_value
from dovetail._core.runtime.arrays.failures import original
from dovetail._core.runtime.arrays.global_arrays import check_free, lost, processes_of
from dovetail._core.runtime.arrays.memory import byte_count, in_words
from dovetail._core.runtime.arrays.parts import is_local
from dovetail._core.runtime.arrays.tokens import Token
from dovetail._core.runtime.devices import clients, process_ends
from dovetail._core.runtime.devices.capacity import FEWEST, device_memory
from dovetail._core.runtime.devices.layout import Format, Layout, layout_of
from dovetail._core.runtime.devices.placement import on_mesh_of_one
from dovetail._core.runtime.processes import group, waits
from dovetail._core.runtime.programs import compilation, effects
from dovetail._core.runtime.programs.agreement import (
    agree,
    call_apart,
    exchanges,
    may_block,
    meeting_of,
)
from dovetail._core.runtime.programs.arguments import argument_buffer
from dovetail._core.runtime.programs.inspection import counted

if TYPE_CHECKING:
    from dovetail._core.lower.equations import EquationProgram
    from dovetail._core.lower.lowering import LoweredModule

__all__ = ["LoadedProgram", "UnloadedProgram", "compile_module", "compile_unloaded"]


#: Bytes from which on calls go through Python, which explains errors.
_LARGE: Final = 2**28
#: Bytes of a result up to which it may be kept for longer than its owner needs it.
_SMALL: Final = 2**12


class LoadedProgram:
    """A program on its device.

    Attributes:
        name: the program's name, as profiles show it.
        executable: jaxlib's loaded executable.
        sharding: where it runs: a sharding of one device, or a `Placement`.
        in_shardings: the sharding of each argument of the function.
        out_shardings: the sharding of each result.
        in_avals: avals of its arguments.
        kept: for each argument of the function, whether it is an argument of the program.
        out_avals: avals of its results.
        constants: buffers of the constants that are passed before the arguments.
        donated: indices of the donated arguments of the function.
        effects: side effects.
        calls_host: whether it calls Python.
        exchanges: whether it exchanges data with other processes, and so waits for them.
    """

    __slots__ = (
        "__weakref__",
        "_blocks",
        "_empty",
        "_failures",
        "_handlers",
        "_key_dtypes",
        "_made",
        "_meeting",
        "_members",
        "_ordered",
        "_seen",
        "_small",
        "_spread",
        "_text",
        "_tokens",
        "_turn",
        "calls_host",
        "constants",
        "donated",
        "effects",
        "exchanges",
        "executable",
        "in_avals",
        "in_shardings",
        "kept",
        "name",
        "out_avals",
        "out_shardings",
        "physical_out_avals",
        "sharding",
    )

    def __init__(
        self, lowered: LoweredModule | EquationProgram, executable: Any, sharding: Any
    ) -> None:
        self.name = lowered.name
        self.executable = executable
        self.sharding = sharding
        self._spread = len(sharding._device_list) > 1
        spread = self._spread and not is_local(sharding)
        self.exchanges = spread and exchanges(executable)
        self._meeting = meeting_of(lowered) if spread else None
        self._members = processes_of(sharding) if spread else frozenset()
        if spread:
            ids = [device.id for device in sharding._device_list]
            self._made = waits.exchange(self._members, ids)
            self._text = self.name if self._meeting is None else self._meeting.text
        # Of a program that waits for other processes, not known until it has run.
        self._blocks: bool | None = None
        self.in_avals = lowered.in_avals
        self.kept = lowered.kept
        self.out_avals = lowered.out_avals
        self.effects = lowered.effects
        self.calls_host = bool(lowered.host_callbacks)
        places = [getattr(call, "failures", None) for call in lowered.host_callbacks]
        self._failures = [place for place in places if place is not None]
        self._turn = threading.Lock()
        seen = host_effects(lowered.effects)
        self._seen = bool(seen)
        self._ordered = bool(ordered_effects(frozenset(seen)))
        donation = lowered.donation
        self.donated = tuple(sorted((*donation.aliases, *donation.donors)))
        self.constants = []
        if lowered.hoisted:
            with guards.suspended():
                self.constants = [
                    argument_buffer(constant, sharding._replicated, "a constant of the program")
                    for constant in lowered.hoisted
                ]
        self._tokens = [i for i, aval in enumerate(self.out_avals) if type(aval) is AbstractToken]
        outer = list(map(outer_aval, self.out_avals))
        self.physical_out_avals = list(map(physical_aval, outer))
        self._small = sum(map(byte_count, self.physical_out_avals[:1])) <= _SMALL
        # Results of float0 hold no data, and stay on the host.
        self._empty = [i for i, aval in enumerate(outer) if aval.dtype == dtypes.float0]
        self._key_dtypes = [
            aval.dtype if isinstance(aval.dtype, dtypes.ExtendedDType) else None for aval in outer
        ]
        self._handlers: dict[bool, list[Any]] = {}
        self.in_shardings = [sharding._of_argument(i) for i in range(len(self.kept))]
        ranks = [aval.ndim for aval in self.physical_out_avals]
        self.out_shardings = sharding._of_results(executable, ranks)
        self.out_shardings = _in_memories(lowered, self.out_shardings)
        if not self._spread:
            self.out_shardings = list(map(on_mesh_of_one, self.out_shardings, outer))
        self.physical_out_avals = list(
            map(buffers.typed, self.physical_out_avals, self.out_shardings)
        )

    @property
    def returns_arrays(self) -> bool:
        """Whether all its results are arrays on a device: no tokens, and nothing of float0."""
        return not self._tokens and not self._empty

    @property
    def watched(self) -> bool:
        """Whether a call waits for it, and raises what its callbacks have raised."""
        return bool(self._failures)

    @property
    def large(self) -> bool:
        """Whether it fills so much memory that a call through Python costs nothing beside it."""
        avals = (*self.in_avals, *self.physical_out_avals)
        if sum(map(byte_count, avals)) < _LARGE:
            return False
        stats = self.memory_needed()
        if stats is None:
            return True
        results = stats.output_size_in_bytes - stats.alias_size_in_bytes
        return bool(results + stats.temp_size_in_bytes >= _LARGE)

    def memory_needed(self) -> Any:
        """The compiler's statistics of memory; None if there are none."""
        try:
            return self.memory_analysis()
        except (JaxRuntimeError, AttributeError, NotImplementedError):
            return None

    @property
    def device(self) -> Any:
        """The device that it runs on."""
        return self.sharding._device

    def formats(self) -> tuple[list[Format], list[Format]]:
        """The formats of the function's arguments and of the results.

        An argument that the program does not take has neither layout nor sharding.
        """
        executable = self.executable
        if hasattr(executable, "get_parameter_layouts"):
            given = executable.get_parameter_layouts()[len(self.constants) :]
            arguments = list(map(layout_of, given))
            results = list(map(layout_of, executable.get_output_layouts()))
        else:  # arrays of a backend in Python are in row-major order
            avals = [a for a, taken in zip(self.in_avals, self.kept, strict=True) if taken]
            arguments = [Layout(tuple(range(physical_aval(a).ndim))) for a in avals]
            results = [Layout(tuple(range(a.ndim))) for a in self.physical_out_avals]
        kept = iter(arguments)
        places = zip(self.kept, self.in_shardings, strict=True)
        return (
            [Format(next(kept), place) if taken else Format() for taken, place in places],
            [Format(*pair) for pair in zip(results, self.out_shardings, strict=True)],
        )

    def execute(self, arguments: Sequence[Any], committed: bool = False) -> list[Any]:
        """Run the program on buffers.

        Args:
            arguments: one buffer on the program's device for each kept argument.
            committed: whether the results are committed to the device.

        Returns:
            The results, arrays and tokens; their computation may still be running.
        """
        handlers = self._handlers.get(committed)
        if handlers is None:
            handlers = self._handlers[committed] = [
                buffers.handler(aval, place, committed)
                for aval, place in zip(self.physical_out_avals, self.out_shardings, strict=True)
            ]
        process_ends.check()
        if self._spread:
            check_devices_are_free(self.name)
        if self.exchanges or self._meeting is not None:
            self._meet()
        elif self._spread:
            group.settle()  # what its devices connect now must not be shut down
        if config.no_execution.value:
            raise RuntimeError(
                f"the program {self.name} would be run, which the option no_execution forbids; "
                "lower(...).compile() only compiles it"
            )
        if self.constants:
            arguments = [*self.constants, *arguments]
        if self.calls_host or self._seen:
            with (
                watching(self._failures, self._turn) if self._failures else contextlib.nullcontext()
            ):
                results = self._execute_with_effects(arguments, handlers)
        else:
            results = self._execute(arguments, handlers)
        outs: list[Any] = [
            array_from_buffer(buffer) if key_dtype is None else wrap_value(key_dtype, buffer)
            for buffer, key_dtype in zip(results, self._key_dtypes, strict=True)
        ]
        if config.debug_nans.value or config.debug_infs.value:
            check_special_values(outs, self.name)
        for number in self._tokens:
            outs[number] = Token(outs[number])
        for number in self._empty:
            outs[number] = np.zeros(outs[number].shape, dtypes.float0)
        return outs

    def _execute(self, arguments: Sequence[Any], handlers: list[Any]) -> Any:
        execute = self.executable.execute_sharded
        try:
            if not self.exchanges:
                return execute(arguments).consume_with_handlers(handlers)
            with waits.Call(self._made, self._text, self._small) as call:
                if self._blocks is False:
                    run = execute(arguments)
                else:
                    if self._blocks is None:
                        self._blocks = may_block(self.executable, self.sharding)
                    run = call_apart(execute, arguments, self._members)
                call.results = run.consume_with_handlers(handlers)
            return call.results
        except (JaxRuntimeError, ValueError) as error:
            cause = lost(error)
            if cause is error:
                raise
            raise cause from cause.__cause__

    def _meet(self) -> None:
        """Before the first run, see that the other processes run the same program.

        Raises:
            DistributedError: one of them has died, or does something else.
        """
        group.check(self._members)
        group.settle()
        check_free()
        if self._meeting is not None:
            agree(self._meeting, self.sharding)
            self._meeting = None

    def _execute_with_effects(self, arguments: Sequence[Any], handlers: list[Any]) -> list[Any]:
        """Run a program that calls Python or has effects visible to the host."""
        if self._seen:
            handlers = [*handlers, buffers.handler(runtime_token, self.sharding._replicated, False)]
        try:
            with effects.ordering() if self._ordered else contextlib.nullcontext():
                if self._ordered:
                    arguments = [*arguments, effects.take_token(self.sharding._replicated)]
                noted = self.exchanges and waits.Call(self._made, self._text, self._small)
                with noted or contextlib.nullcontext():
                    run = self.executable.execute_sharded(arguments)
                    results: list[Any] = run.consume_with_handlers(handlers)
                    if noted:
                        noted.results = results[:1]
                token = results.pop() if self._seen else None
                if token is not None:
                    effects.give_token(token, self._ordered)
            if self._failures:  # what they raise is raised here
                for buffer in (*results, *([] if token is None else [token])):
                    buffers.wait(buffer)
        except (JaxRuntimeError, ValueError) as error:
            cause = original(error)
            if cause is error:
                raise
            raise cause from None
        return results

    def __call__(
        self,
        leaves: Sequence[Any],
        committed: bool = False,
        describe: Callable[[int], str] | None = None,
    ) -> list[Any]:
        """Run the program on values of any kind.

        Args:
            leaves: one array, NumPy value or Python scalar for each argument of the function,
                including those that the program dropped.
            committed: whether the results are committed to the device.
            describe: returns a phrase for an argument by its index, for messages.
        """
        arguments = []
        for number, (leaf, keep) in enumerate(zip(leaves, self.kept, strict=True)):
            if keep:
                what = describe if describe is not None else _number
                arguments.append(argument_buffer(leaf, self.in_shardings[number], what, number))
        return self.execute(arguments, committed)

    # --------------------------------------------------------------------------------- inspection

    @staticmethod
    def hlo_text(executable: Any) -> str:
        """The optimised program of such an executable in XLA's language."""
        return str(executable.get_hlo_text())

    def cost_analysis(self) -> Mapping[str, float]:
        """Counts of operations and bytes, by the compiler's names."""
        costs: Mapping[str, float] = self.executable.cost_analysis()
        return costs

    def memory_analysis(self) -> Any:
        """Bytes for arguments, results, temporaries and code, as attributes."""
        return self.executable.get_compiled_memory_stats()

    def __repr__(self) -> str:
        return f"<LoadedProgram {self.name} on {self.device!r}>"


def _in_memories(lowered: LoweredModule | EquationProgram, shardings: list[Any]) -> list[Any]:
    """The shardings of results, in the memories that they are in."""
    kinds = lowered.result_memories
    if not any(kinds):
        return shardings
    return [
        place if kind is None else place.with_memory_kind(kind)
        for place, kind in zip(shardings, kinds, strict=True)
    ]


def _number(number: int) -> str:
    return f"argument {number}"


class UnloadedProgram:
    """A program compiled for a compile-only device: it can be inspected but not run.

    Attributes:
        name: the program's name.
        executable: jaxlib's executable, or the backend's.
        sharding: where it would run.
        in_shardings: the sharding of each argument of the function.
        out_shardings: the sharding of each result.
        calls_host: whether it calls Python.
    """

    __slots__ = (
        "calls_host",
        "executable",
        "in_shardings",
        "name",
        "out_shardings",
        "sharding",
    )

    def __init__(
        self, lowered: LoweredModule | EquationProgram, executable: Any, sharding: Any
    ) -> None:
        self.name = lowered.name
        self.executable = executable
        self.sharding = sharding
        self.in_shardings = [sharding._of_argument(i) for i in range(len(lowered.kept))]
        ranks = [physical_aval(outer_aval(aval)).ndim for aval in lowered.out_avals]
        self.out_shardings = sharding._of_results(executable, ranks)
        self.out_shardings = _in_memories(lowered, self.out_shardings)
        self.calls_host = bool(lowered.host_callbacks)

    @property
    def device(self) -> Any:
        """The device that it was compiled for."""
        return self.sharding._device

    @staticmethod
    def hlo_text(executable: Any) -> str:
        """The optimised program of such an executable in XLA's language."""
        return "\n\n".join(module.to_string() for module in executable.hlo_modules())

    def cost_analysis(self) -> Mapping[str, float]:
        """Counts of operations and bytes, by the compiler's names.

        If the platform's compiler has no cost analysis (CUDA's), the CPU's is applied to the
        optimised program; it does not see inside library calls.
        """
        costs: Mapping[str, float]
        try:
            costs = self.executable.cost_analysis()
        except JaxRuntimeError as error:
            if "UNIMPLEMENTED" not in str(error):
                raise
            costs = counted(self.executable.hlo_modules()[0])
        return costs

    def memory_analysis(self) -> Any:
        """Bytes for arguments, results, temporaries and code, as attributes."""
        return self.executable.get_compiled_memory_stats()

    def __repr__(self) -> str:
        return f"<UnloadedProgram {self.name} for {self.device!r}>"


_INEXACT: Final = "fc"


def check_special_values(arrays: Sequence[Array], name: str) -> None:
    """Raise if a result holds values that ``debug_nans`` and ``debug_infs`` look for.

    Raises:
        FloatingPointError: a result does; the message names the program.
    """
    for array in arrays:
        if type(array) is KeyArray or not dtypes.issubdtype(array.dtype, np.inexact):
            continue
        buffer = array._buffer
        local = array._is_readable()
        for value in [
            buffers.read(part) for part in ([buffer] if local else buffers.parts(buffer))
        ]:
            _check_values(value, name)


def _check_values(value: np.ndarray[Any, Any], name: str) -> None:
    if value.dtype.kind not in _INEXACT:
        value = value.astype(np.float32)  # holds all values of the dtypes of ml_dtypes
    if config.debug_nans.value and np.isnan(value).any():
        raise FloatingPointError(f"invalid value (nan) encountered in {name}")
    if config.debug_infs.value and np.isinf(value).any():
        raise FloatingPointError(f"invalid value (inf) encountered in {name}")


def compile_module(
    lowered: LoweredModule | EquationProgram,
    sharding: Any,
    compiler_options: compilation.CompilerOptions | None = None,
) -> LoadedProgram:
    """Compile a module for a device, or reuse the executable of an identical module.

    Args:
        lowered: the module, lowered for the device's platform.
        sharding: where it runs: the sharding of one device.
        compiler_options: options for the compiler, which override the backend's.

    Returns:
        The program.

    Raises:
        JaxRuntimeError: the compiler rejects the program.
        MemoryError: its results are larger than the device's memory.
        ValueError: there is no such compiler option.
    """
    _inspect(lowered, sharding)
    for call in lowered.host_callbacks:
        if isinstance(call, HostCall):
            call.check_device(sharding._device_list)
    check_results_fit(lowered, sharding)
    with _divided(lowered, sharding):
        executable = compilation.compile_executable(lowered, sharding, compiler_options)
    _tell_found(lowered, sharding)
    return LoadedProgram(lowered, executable, sharding)


def _divided(lowered: LoweredModule | EquationProgram, sharding: Any) -> Any:
    """A scope for compiling, in which the compiler knows how calls are divided, or may ask."""
    if not lowered.partitioned and not lowered.divisible:
        return contextlib.nullcontext()
    from dovetail._core.runtime.programs.partitioners import dividing  # deferred: seldom needed

    return dividing(lowered, sharding)


def _inspect(lowered: LoweredModule | EquationProgram, sharding: Any) -> None:
    """Tell what asks for shardings of values the one of the program on one device."""
    for inspect in lowered.inspections:
        if type(inspect) is not Inspection:
            inspect(sharding)


def _tell_found(lowered: LoweredModule | EquationProgram, sharding: Any) -> None:
    """Tell what asks for shardings of values what the compiler has said."""
    for inspect in lowered.inspections:
        if type(inspect) is Inspection:
            found = list(inspect.found)
            inspect.found.clear()
            for tiling in found:
                inspect.callback(sharding._named(tiling, inspect.ndim))


def check_results_fit(lowered: LoweredModule | EquationProgram, sharding: Any) -> None:
    """Raise unless a device has as much memory as the results of a program take.

    Results that take the memory of donated arguments are not counted.

    Raises:
        MemoryError: it has less; compiling would be in vain, and running might take minutes.
    """
    reused = set(lowered.donation.aliases.values())
    needed = sum(
        byte_count(physical_aval(outer_aval(aval)))
        for number, aval in enumerate(lowered.out_avals)
        if number not in reused
    )
    if needed < FEWEST or len(sharding._device_list) > 1:
        return
    there = device_memory(sharding._device)
    if there is not None and needed > there:
        raise MemoryError(
            f"the results take {in_words(needed)}, and "
            f"{clients.describe_device(sharding._device)} has {in_words(there)} of memory"
        )


def compile_unloaded(
    lowered: LoweredModule | EquationProgram,
    sharding: Any,
    compiler_options: compilation.CompilerOptions | None = None,
) -> UnloadedProgram:
    """`compile_module` for a compile-only device."""
    _inspect(lowered, sharding)
    with _divided(lowered, sharding):
        executable = compilation.compile_executable(lowered, sharding, compiler_options)
    _tell_found(lowered, sharding)
    return UnloadedProgram(lowered, executable, sharding)
