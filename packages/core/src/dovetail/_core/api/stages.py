"""The steps of compilation as objects: traced, lowered, compiled."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import compress
from operator import is_not
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    overload,
    runtime_checkable,
)

from dovetail._core.api.call_caches import CacheInfo
from dovetail._core.api.inspection import ShapeDtypeStruct, struct_of
from dovetail._core.base import config, events, pytree
from dovetail._core.base.bindings import JaxRuntimeError
from dovetail._core.base.errors import BackendUnavailableError, InconclusiveDimensionOperation
from dovetail._core.base.events import Cause, because
from dovetail._core.base.tracebacks import boundary, bounded
from dovetail._core.ir.avals import aval_of
from dovetail._core.ir.dimension_solving import scope_of
from dovetail._core.ir.jaxpr import ClosedJaxpr
from dovetail._core.runtime.arrays.donation import raise_explained, retire_donated
from dovetail._core.runtime.calls.direct_calls import tell_way
from dovetail._core.runtime.calls.fastpath import fastpath, pjit_function
from dovetail._core.runtime.calls.followed_keys import follow_program
from dovetail._core.runtime.calls.jit import CallArguments, Missed, direct_way
from dovetail._core.runtime.calls.shortages import watch
from dovetail._core.runtime.calls.special_values import kept
from dovetail._core.runtime.calls.staged_program import StagedProgram
from dovetail._core.runtime.devices import clients, process_ends
from dovetail._core.runtime.devices.sharding import (
    SingleDeviceSharding,
    as_sharding,
    default_sharding,
)
from dovetail._core.runtime.programs.arguments import committed_place, misplaced
from dovetail._core.runtime.programs.compilation import serialized, with_own_names
from dovetail._core.runtime.programs.inspection import cost_of, hlo_of
from dovetail._core.runtime.programs.program import LoadedProgram
from dovetail._core.trace.mutable_references import Ref
from dovetail._core.trace.tracer import Tracer
from dovetail._core.transform.flattening import check_array_leaves

if TYPE_CHECKING:
    from dovetail._core.runtime.reports.hardware import Hardware
    from dovetail._core.runtime.reports.memory_plan import MemoryPlan
    from dovetail._core.runtime.reports.report import Report

P = ParamSpec("P")
Q = ParamSpec("Q")
S = TypeVar("S")
R_co = TypeVar("R_co", covariant=True)


class ArgInfo:
    """The facts about one argument of a program.

    Args:
        aval: its abstract value.
        donated: whether its memory may be reused.
    """

    __slots__ = ("_aval", "donated")

    def __init__(self, aval: Any, donated: bool) -> None:
        self._aval = aval
        self.donated = donated

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        shape: tuple[int, ...] = self._aval.shape
        return shape

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self._aval.dtype

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, ArgInfo)
            and self._aval is other._aval
            and self.donated == other.donated
        )

    def __hash__(self) -> int:
        return hash((self._aval, self.donated))

    def __repr__(self) -> str:
        return f"ArgInfo(_aval={self._aval!r}, donated={self.donated})"


@bounded
class Stage:
    """Common base of the steps.

    Args:
        staged: the function traced for one signature.
    """

    def __init__(self, staged: StagedProgram) -> None:
        self._staged = staged

    def __repr__(self) -> str:
        staged = self._staged
        pairs = zip(staged.names, staged.in_avals, strict=False)
        types = ", ".join(f"{name}: {aval.short_name()}" for name, aval in pairs)
        return f"<{type(self).__name__} {staged.options.name}({types})>"

    @property
    def in_tree(self) -> Any:
        """The structure of ``(positional arguments, keyword arguments)``, static ones left out."""
        return self._staged.in_tree

    @property
    def out_tree(self) -> Any:
        """The structure of the result."""
        return self._staged.out_tree

    @property
    def in_avals(self) -> Any:
        """Avals of the arguments, in their structure."""
        return self._staged.in_tree.unflatten(self._staged.in_avals)

    @property
    def args_info(self) -> Any:
        """An `ArgInfo` for each argument, in their structure."""
        staged = self._staged
        infos = [ArgInfo(a, d) for a, d in zip(staged.in_avals, staged.donated, strict=False)]
        return staged.in_tree.unflatten(infos)

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Numbers of the flat arguments that are donated."""
        return tuple(i for i, d in enumerate(self._staged.donated) if d)

    @property
    def out_info(self) -> Any:
        """Shapes and dtypes of the result, and the shardings asked for, in its structure."""
        staged = self._staged
        asked = staged.asked
        places = [None] * len(staged.out_avals) if asked is None else asked.results
        return staged.out_tree.unflatten(list(map(struct_of, staged.out_avals, places)))


@bounded
class Traced(Stage):
    """A function traced to a jaxpr, made by ``jit(f).trace(...)``.

    Args:
        staged: the function traced for one signature.
        place: returns the sharding that the arguments determine, or None.
    """

    def __init__(self, staged: StagedProgram, place: Callable[[], Any]) -> None:
        super().__init__(staged)
        self._place = place

    @property
    def jaxpr(self) -> ClosedJaxpr:
        """The jaxpr."""
        return self._staged.closed

    @property
    def out_avals(self) -> Any:
        """Avals of the result, in its structure."""
        staged = self._staged
        return staged.out_tree.unflatten(staged.out_avals)

    @property
    def fun_name(self) -> str:
        """The name of the function."""
        return self._staged.options.name

    def lower(self, *, lowering_platforms: Sequence[str] | None = None) -> Lowered:
        """Lower to StableHLO.

        Args:
            lowering_platforms: the platforms to lower for; by default, that of the device that the
                program would run on: the device passed to `jit`, the one that arguments are
                committed to (the sharding of a `ShapeDtypeStruct` counts), or the default one. With
                several platforms, the first argument of the module is the index of the one it runs
                on. None of them needs to be present.

        Raises:
            TypeError: `lowering_platforms` is not a sequence of names.
            ValueError: it is empty, or names a platform twice.
            BackendUnavailableError: no backend of that name is installed.
            DeviceMismatchError: the arguments are for different devices.
        """
        place = self._place()
        if lowering_platforms is None:
            place = default_sharding() if place is None else place
            platforms: tuple[str, ...] = (clients.platform_of(place._device),)
        else:
            platforms = _checked_platforms(lowering_platforms)
        return Lowered(self._staged, self._staged.lower(platforms, place), place)


def _checked_platforms(platforms: Any) -> tuple[str, ...]:
    names = tuple(platforms) if isinstance(platforms, (tuple, list)) else ()
    if not isinstance(platforms, (tuple, list)) or not all(isinstance(p, str) for p in names):
        raise TypeError(
            "lowering_platforms is a sequence of names of platforms, such as ('cpu', 'cuda'); got "
            f"{platforms!r:.80}"
        )
    if not names or len(set(names)) != len(names):
        raise ValueError(
            f"lowering_platforms names at least one platform, and each once; got {platforms!r:.80}"
        )
    return names


@bounded
class Lowered(Stage):
    """A program in StableHLO, made by ``jit(f).lower(...)``.

    Args:
        staged: the function traced for one signature.
        module: the program.
        place: the sharding to run under; None for that of the default device.
    """

    def __init__(self, staged: StagedProgram, module: Any, place: Any) -> None:
        super().__init__(staged)
        self._module = module
        self._place = place

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The program as text.

        Args:
            dialect: ``"stablehlo"`` (the default) or ``"hlo"``.
            debug_info: whether to write names of scopes and source locations as well.

        Raises:
            ValueError: there is no such dialect.
        """
        if dialect in (None, "stablehlo"):
            text: str = self._module.text(debug_info=debug_info)
            return text
        if dialect == "hlo":
            program = hlo_of(self._module)
            hlo: str = program.get_hlo_module().to_string() if debug_info else program.as_hlo_text()
            return hlo
        raise ValueError(f"dialect must be 'stablehlo' or 'hlo', got {dialect!r}")

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The program as a compiler object: an MLIR module, or HLO for ``dialect="hlo"``."""
        if dialect in (None, "stablehlo"):
            return self._module.module
        if dialect == "hlo":
            return hlo_of(self._module)
        raise ValueError(f"dialect must be 'stablehlo' or 'hlo', got {dialect!r}")

    def cost_analysis(self) -> Mapping[str, float]:
        """Counts of operations and bytes before optimisation, by the compiler's names."""
        if self._place is not None and clients.is_compile_only(self._place._device):
            return cost_of(self._module)
        platform = self._module.platforms[0]
        return cost_of(self._module, clients.backend(platform))

    def memory(self) -> MemoryPlan:
        """What memory the program takes on each device, and what takes it; it is compiled for that.

        The numbers are those of the compiler: its arguments, its results, and the block that it
        lays out for temporaries, with the user's line of each large value. They are bounds of what
        one call takes, to which other arrays come: `dovetail.memory` says what these are.

        Returns:
            The plan; ``print`` shows it as a table.

        Raises:
            ValueError: the program is one of a backend that reads equations.
            InconclusiveDimensionOperation: sizes of its arguments are symbolic.

        Example:
            >>> import dovetail as dt
            >>> import dovetail.numpy as jnp
            >>> x = dt.ShapeDtypeStruct((256, 256), "float32")
            >>> plan = dt.jit(lambda x: jnp.sin(x @ x) @ x).lower(x).memory()
            >>> plan.argument_bytes, plan.result_bytes
            (262144, 262144)
            >>> sorted(buffer.path for buffer in plan.buffers if buffer.path)
            ['result', 'x']
        """
        return self.compile().memory()

    def compile(self, compiler_options: Mapping[str, Any] | None = None) -> Compiled:
        """Compile for the device that the program would run on.

        The device need not be present: see `dovetail.experimental.topologies`. If the program was
        lowered for several platforms, the version for that of the device is compiled.

        Args:
            compiler_options: compiler options by name.

        Raises:
            ValueError: there is no such option.
            BackendUnavailableError: the program was lowered for a platform that is not present.
            InconclusiveDimensionOperation: sizes of its arguments are symbolic.
        """
        staged, module = self._staged, self._module
        if scope_of(staged.in_avals) is not None:
            raise InconclusiveDimensionOperation(
                f"{staged.options.name} takes arrays of symbolic sizes, and programs are compiled "
                "for known ones: lower it for arrays of such sizes, or export it, with "
                "dovetail.export.export, and call what that returns"
            )
        place = default_sharding() if self._place is None else self._place
        platform = clients.platform_of(place._device)
        if platform not in module.platforms:
            platform = module.platforms[0]
            place = as_sharding(_device_of(platform))
        if len(module.platforms) > 1:
            module = staged.lower((platform,), place)
        options = dict(staged.options.compiler_options) | dict(compiler_options or {})
        name = staged.options.name
        with because(Cause(f"{name}.lower(...).compile() asked for it"), name):
            program = staged.compile(module, place, options)
        if not compiler_options and isinstance(program, LoadedProgram):
            staged.programs.setdefault(place, program)  # calls of the function run it, too
        about = (program.executable, module, place, options)
        return Compiled(
            staged,
            program,
            module,
            partial(serialized, *about),
            partial(with_own_names, *about),
            needed=bool(compiler_options) or place is not default_sharding(),
        )


def _device_of(platform: str) -> Any:
    """The first device of a platform that a program was lowered for."""
    try:
        return clients.backend(platform).local_devices()[0]
    except BackendUnavailableError as error:
        raise BackendUnavailableError(
            f"{error}\nTo compile for hardware that is not here, give jit a device out of "
            "dovetail.experimental.topologies.get_topology_desc"
        ) from error.__cause__


@bounded
class Compiled(Stage):
    """A compiled program, made by ``jit(f).lower(...).compile()``.

    It is called like the function, unless its hardware is not present.
    """

    def __init__(
        self,
        staged: StagedProgram,
        program: Any,
        lowered: Any,
        write: Callable[[], bytes],
        named: Callable[[], Any] | None = None,
        *,
        needed: bool = True,
    ) -> None:
        super().__init__(staged)
        self._program = program
        # For `serialize_executable`: the description of the program, and its executable as bytes.
        self._lowered = lowered
        self._write = write
        # The executable with this program's own names; another may be shared, and show others.
        self._named = named
        self._text: str | None = None
        self._donates = any(staged.donated)
        self._fast = self._fast_path()
        # Whether each call runs the program; small ones give the same without it.
        self._needed = (
            needed
            or self._donates
            or not staged.options.is_plain
            or not hasattr(self._fast, "_add_direct")
        )

    def _fast_path(self) -> Any:
        """What calls the program: a function of C++, which asks `_miss` once for each signature."""
        program = self._program
        # A strong reference would be a cycle, and the program with the memory of its constants
        # would stay until the garbage collector comes by.
        held = weakref.ref(self)

        def run(*args: Any, **kwargs: Any) -> Any:
            return _alive(held)._run(args, kwargs)[0]

        if not isinstance(program, LoadedProgram) or program.calls_host or program.effects:
            return run

        def miss(*args: Any, **kwargs: Any) -> Missed:
            return _alive(held)._miss(args, kwargs)

        return pjit_function(self._staged.options.name, run, miss, key="dovetail compiled program")

    def as_text(self) -> str:
        """The optimised program in XLA's language, with names of scopes and source locations.

        Equal programs share what is compiled. If that was for another program, with other names
        or lines, the first call compiles this one again.
        """
        if self._text is None:
            self._text = str(self._program.hlo_text(self._own_executable()))
        return self._text

    def _own_executable(self) -> Any:
        return self._program.executable if self._named is None else self._named()

    def cost_analysis(self) -> Mapping[str, float]:
        """Counts of operations and bytes, by the compiler's names."""
        costs: Mapping[str, float] = self._program.cost_analysis()
        return costs

    def memory_analysis(self) -> Any:
        """Sizes in bytes of arguments, results, temporaries and code, as attributes."""
        return self._program.memory_analysis()

    def report(self, hardware: str | Hardware | None = None) -> Report:
        """What the program needs of each device: memory, communication, operations, and time.

        The numbers are read from the optimised program, so its hardware need not be there: see
        `dovetail.experimental.topologies`. Loops count as often as they run. Time is that of a
        model, for comparisons: operations at the peak rates of data sheets, or of their memory
        traffic if that takes longer; collectives as rings at the rate of the links between their
        devices; nothing overlapped.

        Args:
            hardware: whose rates the model takes: a name of `topologies.HARDWARE`, such as
                ``"v5e"`` or ``"h200"``, or other rates. By default those of the devices that the
                program is compiled for; there are none of CPUs, and then no times.

        Returns:
            The report; ``print`` shows it as a table, and ``plot()`` draws it.

        Raises:
            TypeError: `hardware` is neither a name nor a `Hardware`.
            ValueError: there is no hardware of that name; or the program is one of a backend that
                reads equations, whose optimised form is not known.

        Example:
            >>> import dovetail as dt
            >>> import dovetail.numpy as jnp
            >>> x = dt.ShapeDtypeStruct((64, 64), "float32")
            >>> report = dt.jit(jnp.matmul).lower(x, x).compile().report(hardware="v5e")
            >>> report.product_flops == 2 * 64**3, report.memory.arguments[0].bytes
            (True, 16384)
            >>> report.time.total > 0
            True
        """
        from dovetail._core.runtime.reports.making import report_of  # deferred: seldom needed

        arguments, results, constants = self._interface()
        return report_of(
            self._staged.options.name,
            self._program,
            self.as_text(),
            arguments,
            results,
            constants,
            hardware,
        )

    def memory(self) -> MemoryPlan:
        """What memory the program takes on each device: see `Lowered.memory`."""
        from dovetail._core.runtime.reports.planning import memory_plan  # deferred: seldom needed

        arguments, results, constants = self._interface()
        return memory_plan(
            self._staged.options.name,
            self._program,
            self._own_executable(),
            [(name, aval) for name, aval in arguments if aval is not None],
            results,
            constants,
        )

    def _interface(self) -> tuple[list[tuple[str, Any]], list[tuple[str, Any]], list[Any]]:
        """Arguments and results by name, None for what is not used, and hoisted constants."""
        staged, lowered = self._staged, self._lowered
        if getattr(lowered, "equations", None) is not None:
            raise ValueError(
                f"the program of {staged.options.name} is one of equations, which the backend "
                "reads as they are: there is nothing optimised to report on"
            )
        avals = [
            aval if kept else None for aval, kept in zip(staged.in_avals, lowered.kept, strict=True)
        ]
        names = [
            f"result{pytree.keystr(path)}"
            for path, _ in pytree.leaves_with_path(staged.out_tree.unflatten(staged.out_avals))
        ]
        return (
            list(zip(staged.names, avals, strict=True)),
            list(zip(names, staged.out_avals, strict=True)),
            [aval_of(constant) for constant in lowered.hoisted],
        )

    def runtime_executable(self) -> Any:
        """jaxlib's loaded executable."""
        return self._program.executable

    @property
    def input_shardings(self) -> Any:
        """The sharding of each argument, in their structure."""
        return self.in_tree.unflatten(self._program.in_shardings[: self.in_tree.num_leaves])

    @property
    def output_shardings(self) -> Any:
        """The sharding of each part of the result, in its structure."""
        return self.out_tree.unflatten(self._program.out_shardings[: self.out_tree.num_leaves])

    @property
    def out_info(self) -> Any:
        """Shapes, dtypes and shardings of the result, in its structure."""
        places = self._program.out_shardings
        return self.out_tree.unflatten(list(map(struct_of, self._staged.out_avals, places)))

    @property
    def input_formats(self) -> Any:
        """The sharding and memory layout of each argument, in their structure.

        An argument that the program does not use has neither.
        """
        return self.in_tree.unflatten(self._program.formats()[0][: self.in_tree.num_leaves])

    @property
    def output_formats(self) -> Any:
        """The sharding and memory layout of each part of the result, in its structure."""
        return self.out_tree.unflatten(self._program.formats()[1][: self.out_tree.num_leaves])

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program.

        Raises:
            TypeError: the arguments do not have the structure, shapes and dtypes that it was
                compiled for.
            BackendUnavailableError: it was compiled for hardware that is not present.
        """
        return self(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self._donates:
            return self._fast(*args, **kwargs)
        try:
            result = self._fast(*args, **kwargs)
        except (JaxRuntimeError, ValueError) as error:
            staged = self._staged
            leaves = pytree.leaves((args, kwargs))
            raise_explained(error, staged.options.name, leaves, lambda: staged.names)
            raise
        self._retire(pytree.leaves((args, kwargs)))
        return result

    def _retire(self, leaves: Sequence[Any]) -> None:
        staged = self._staged
        action = f"donated to {staged.options.name}"
        retire_donated(compress(leaves, staged.donated), action)

    def _miss(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Missed:
        """Serve a call that the C++ callable has no entry for."""
        if process_ends.ended:
            process_ends.hold(self._fast._clear_cache)
        try:
            return self._run(args, kwargs)
        except BaseException:
            # Otherwise a signature whose first call raised would stay on the Python path forever.
            self._fast._clear_cache()
            raise

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Missed:
        staged = self._staged
        name = staged.options.name
        clients.check_runs(
            self._program.device,
            f"the compiled program of {name} cannot be called",
            "look at its as_text(), cost_analysis() and memory_analysis(), or compile it for a "
            "device out of dovetail.devices()",
        )
        leaves, tree = pytree.flatten((args, kwargs))
        if tree != staged.in_tree:
            difference = pytree.structure_difference(
                staged.in_tree, tree, "the program", "the call"
            )
            raise TypeError(
                f"the compiled program of {name} takes arguments of another structure, (args, "
                f"kwargs):\n{difference}\nStatic arguments are left out: they are part of the "
                "program"
            )
        check_array_leaves(leaves, lambda: staged.names, name, references=True)
        for leaf, expected, argument in zip(leaves, staged.in_avals, staged.names, strict=False):
            if isinstance(leaf, Tracer):
                raise TypeError(
                    f"the compiled program of {name} cannot be transformed, but its argument "
                    f"{argument} is a tracer, {leaf.origin()}; call the jitted function instead"
                )
            aval = leaf.aval if type(leaf) is Ref else aval_of(leaf)
            if aval is not expected and (
                type(aval) is not type(expected)
                or (aval.shape, aval.dtype) != (expected.shape, expected.dtype)
            ):
                raise TypeError(
                    f"the compiled program of {name} takes {expected.short_name()} for its "
                    f"argument {argument}, got {aval.short_name()}"
                )
        references = staged.uses.references(leaves, name, staged.names)
        operands = staged.uses.operands(leaves, references)
        program = self._program
        place = committed_place(operands, name, lambda i: staged.names[i], mixed=True)
        number = None if place is None else misplaced(operands, program.in_shardings)
        if number is not None:
            kind = program.sharding.memory_kind
            if len(place._device_list) == 1 and kind is not None and place.memory_kind is not None:
                own, other = (
                    f"{clients.describe_device(sharding._device)} with data in its memory "
                    f"{sharding.memory_kind!r}"
                    for sharding in (program.sharding, place)
                )
                raise ValueError(
                    f"the compiled program of {name} runs on {own}, but it got arguments that are "
                    f"committed to {other}"
                )
            raise ValueError(
                f"the compiled program of {name} takes its argument {staged.names[number]} with "
                f"the sharding {program.in_shardings[number]}, but it got one with "
                f"{operands[number].sharding}; move it with dovetail.device_put(x, sharding)"
            )
        if not self._needed and not events.listeners:
            result = self._directly(args, kwargs, leaves)
            if result is not None:
                return result, None, True
        committed = place is not None or type(program.sharding) is not SingleDeviceSharding
        followed = follow_program(staged.closed, operands)
        watch(name, staged.closed.jaxpr, staged.names, self._program)
        copies = kept(operands, staged.donated)
        try:
            outs = self._program(
                staged.own(operands, references), committed, lambda i: staged.names[i]
            )
        except FloatingPointError as error:
            from dovetail._core.runtime.calls import value_explanations  # deferred: seldom needed

            raise value_explanations.explained(
                error, name, staged.closed, copies, staged.names, has_lines=True
            ) from None
        except (JaxRuntimeError, ValueError) as error:
            raise_explained(error, name, leaves, lambda: staged.names)
            raise staged.explained_shortage(error, self._program) from None
        if followed is not None:
            followed.finish(outs)
        result = staged.result(outs, references)
        # C++ neither updates references nor follows keys, and all its results are arrays.
        if staged.empty or staged.uses or followed is not None:
            return result, None, True
        data = fastpath(program, leaves, result, committed, staged.describe)
        return result, data, data is None

    def _directly(self, args: tuple[Any, ...], kwargs: dict[str, Any], leaves: list[Any]) -> Any:
        """The result of a call that needs no program, now and later; None if it needs one."""
        staged = self._staged
        if staged.uses or any(map(is_not, map(aval_of, leaves), staged.in_avals)):
            return None
        positions = tuple(range(len(args)))
        arguments = CallArguments(
            args, kwargs, positions, args, kwargs, leaves, staged.in_tree, statics=()
        )
        way = direct_way(arguments, staged) if config.direct_calls.value == "all" else None
        return None if way is None else tell_way(self._fast, way, args, kwargs)


def _alive(held: weakref.ref[Compiled]) -> Compiled:
    program = held()
    assert program is not None, "whoever calls its function holds it"
    return program


@runtime_checkable
class Wrapped(Protocol[P, R_co]):
    """A jitted function: called like the function, with the steps of compilation as methods.

    Example:
        >>> import dovetail as dt
        >>> isinstance(dt.jit(abs), dt.stages.Wrapped), isinstance(abs, dt.stages.Wrapped)
        (True, False)
    """

    @boundary
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Run the function, compiled."""
        raise NotImplementedError

    @overload
    def __get__(self, instance: None, owner: type, /) -> Self: ...
    @overload
    def __get__(
        self: Wrapped[Concatenate[Any, Q], S], instance: object, owner: type | None = None, /
    ) -> Wrapped[Q, S]: ...

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace the function for these arguments."""
        raise NotImplementedError

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Lower the function for these arguments."""
        raise NotImplementedError

    def eval_shape(self, *args: Any, **kwargs: Any) -> ShapeDtypeStruct:
        """The shapes and dtypes of the result for these arguments."""
        raise NotImplementedError

    def clear_cache(self) -> None:
        """Drop all compiled programs."""

    if TYPE_CHECKING:  # not asked of objects of others that are to be taken for jitted functions

        def cache_info(self) -> CacheInfo:
            """How many signatures and programs are in the cache, and how long they took."""
