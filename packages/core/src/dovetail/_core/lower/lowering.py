"""From a jaxpr to one StableHLO module."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final

from dovetail._core.base import config
from dovetail._core.base.limits import deeper
from dovetail._core.base.records import record
from dovetail._core.hlo.collectives import ManualAxes
from dovetail._core.hlo.context import (
    array_shapes,
    module_bytecode,
    module_text,
    operation_names,
    stripped_bytecode,
)
from dovetail._core.hlo.inspections import Inspection
from dovetail._core.hlo.mlir import Module
from dovetail._core.hlo.module import ModuleBuilder, fit_for_symbols
from dovetail._core.hlo.partitioning import Partitioning
from dovetail._core.hlo.portable import portable_artifact
from dovetail._core.ir.avals import outer_aval, physical_aval
from dovetail._core.ir.dimension_solving import scope_of
from dovetail._core.ir.jaxpr import ClosedJaxpr, Effects, Jaxpr, JaxprEqn
from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.ir.walk import call_depth, dce, inline_single_calls, jaxprs_in_params
from dovetail._core.lower.donation import Donation, match_donations
from dovetail._core.lower.memories import moves_between_memories, with_memories
from dovetail._core.lower.program import Program
from dovetail._core.lower.rules import Rule
from dovetail._core.plugins.manager import manager

if TYPE_CHECKING:
    from dovetail._core.lower.equations import EquationProgram

__all__ = ["LoweredModule", "lower_jaxpr"]

#: The compiler recurses into calls, and crashes at about two hundred nested ones.
_CALL_DEPTH_LIMIT: Final = 100
#: The same for branches and loops, which cannot be inlined.
_CONTROL_DEPTH_LIMIT: Final = 128


@record
class LoweredModule:
    """A program in StableHLO, and what is needed to call it.

    The entry function takes, in this order: the index of the platform (only with several
    platforms), the hoisted constants, the kept arguments, a token (only with ordered effects). It
    returns the results, and a token if it has effects visible to the host.

    Attributes:
        name: name of the program, such as ``jit_f``.
        module: the MLIR module; its context lives as long as it does.
        platforms: the platforms that it is for.
        kept: for each argument of the jaxpr, whether it is an argument of the module.
        hoisted: values of the constants that are leading arguments.
        in_avals: avals of the kept arguments.
        out_avals: avals of the results.
        effects: side effects.
        donation: how donated arguments are used.
        host_callbacks: the program's callbacks to Python: functions of NumPy arrays, or calls that
            the runtime knows how to make.
        inspections: functions to call with the sharding of the program's values at compilation.
        preparations: functions that were called in this process, and that every process must call
            before it loads the program.
        result_memories: the kinds of memory that results are in, None for that in which the device
            computes; empty if all are.
        partitioned: calls whose division over devices the compiler asks for.
        divisible: targets of calls that the compiler divides along their batch dimensions.
        custom_calls: targets of custom calls, with the equations that they stand for.
    """

    name: str
    module: Module
    platforms: tuple[str, ...]
    kept: tuple[bool, ...]
    hoisted: tuple[Any, ...]
    in_avals: tuple[Any, ...]
    out_avals: tuple[Any, ...]
    effects: Effects
    donation: Donation
    host_callbacks: tuple[Any, ...]
    inspections: tuple[Callable[[Any], object], ...] = ()
    preparations: tuple[Callable[[], object], ...] = ()
    result_memories: tuple[str | None, ...] = ()
    partitioned: tuple[Any, ...] = ()
    divisible: frozenset[str] = frozenset()
    custom_calls: tuple[tuple[str, JaxprEqn | None], ...] = ()
    _keys: list[bytes] = field(default_factory=list, repr=False)

    @property
    def equations(self) -> None:
        """The program as a jaxpr, for backends that read jaxprs: None here."""
        return None

    @property
    def calls_host(self) -> bool:
        """Whether it calls Python functions, which exist only in this process."""
        return bool(self.host_callbacks)

    @property
    def donated(self) -> tuple[int, ...]:
        """Indices of the module's donated arguments."""
        return self.donation.positions(self.kept, len(self.hoisted))

    @property
    def storable(self) -> bool:
        """Whether `key` identifies what is compiled: not if addresses of this process are in it."""
        found = any(type(inspect) is Inspection for inspect in self.inspections)
        return not (found or self.partitioned)

    @property
    def cacheable(self) -> bool:
        """Whether `key` identifies the program: not with callbacks, which it only numbers."""
        return self.storable and not self.calls_host

    def text(self, debug_info: bool = False) -> str:
        """The module as text.

        Args:
            debug_info: whether to write source locations as well.
        """
        return module_text(self.module, debug_info=debug_info)

    def operations(self) -> frozenset[str]:
        """The names of the operations in the module, such as ``"stablehlo.add"``."""
        return operation_names(self.module)

    def shapes(self) -> frozenset[tuple[int, ...]]:
        """The shapes of the module's arrays."""
        return array_shapes(self.module)

    def bytecode(self) -> bytes:
        """The module as MLIR bytecode with source locations."""
        return module_bytecode(self.module)

    def portable(self) -> bytes:
        """The module as a portable artifact, for other versions and frameworks."""
        return portable_artifact(self.module)

    def key(self) -> bytes:
        """SHA-256 of the module without source locations: equal programs have equal keys.

        The key covers the numbers of host callbacks, not the functions, which are objects of this
        process: a cache must not return a program for one with other callbacks, unless it is loaded
        with them.
        """
        if not self._keys:
            text = stripped_bytecode(self.module)
            self._keys.append(hashlib.sha256(text + b"%d" % len(self.host_callbacks)).digest())
        return self._keys[0]

    def names_key(self) -> bytes:
        """SHA-256 of the module with names and source locations."""
        return hashlib.sha256(self.bytecode()).digest()


@deeper()
def lower_jaxpr(
    closed_jaxpr: ClosedJaxpr,
    *,
    name: str,
    platforms: Sequence[str] = ("cpu",),
    donated: Sequence[bool] | None = None,
    keep_unused: bool = False,
    arg_names: Sequence[str | None] | None = None,
    result_names: Sequence[str | None] | None = None,
    constants_threshold: int | None = None,
    overrides: Mapping[str, Rule] | None = None,
    arg_shardings: Sequence[Any] | None = None,
    result_shardings: Sequence[Any] | None = None,
    arg_attributes: Sequence[Mapping[str, Any]] | None = None,
    result_attributes: Sequence[Mapping[str, Any]] | None = None,
    arg_memories: Sequence[str | None] | None = None,
    result_memories: Sequence[str | None] | None = None,
    num_replicas: int = 1,
    num_partitions: int = 1,
    mesh: Any = None,
    manual: ManualAxes | None = None,
    portable: bool = False,
    failures: list[tuple[JaxprEqn, Exception]] | None = None,
) -> LoweredModule | EquationProgram:
    """Lower a jaxpr to a module with the jaxpr as its entry function.

    A backend that reads equations gets the jaxpr instead.

    Args:
        closed_jaxpr: the program.
        name: name of the user's function; the module is called ``jit_<name>``.
        platforms: names of the platforms to lower for. If there are several, the module's first
            argument, an int32, is the index of the one it runs on.
        donated: for each argument, whether its memory may be overwritten.
        keep_unused: whether to keep unused arguments.
        arg_names: names of the arguments, such as ``params['w']``, shown in profiles.
        result_names: names of the results, such as ``result[0]``.
        constants_threshold: size in bytes above which a constant becomes an argument instead of
            being embedded in the module.
        overrides: lowering rules by primitive name that take precedence over all others.
        arg_shardings: for each argument of the jaxpr, how it is divided over the axes of a mesh, an
            object with `mesh` and `spec`; None for programs of one device.
        result_shardings: the same for each result; None for those that the compiler decides about.
        arg_attributes: for each argument of the jaxpr, attributes of the module's argument, such as
            ``{"mhlo.sharding": "{replicated}"}``.
        result_attributes: the same for each result.
        arg_memories: for each argument of the jaxpr, the kind of memory that it is in, such as
            ``"pinned_host"``; None for the memory in which the device computes, and "any" for such
            an argument that may be computed with in every memory.
        result_memories: the kinds that are asked for the results; None where values decide.
        num_replicas: the number of copies of the program that run together.
        num_partitions: the number of devices that share the program.
        mesh: these devices, with the names of their axes.
        manual: axes of a mesh, if the program handles the part of one device from the beginning.
        portable: whether a primitive's own rule, which every platform runs, comes before those of
            platforms.
        failures: where to put equations that cannot be lowered, and why; by default the first one
            is an error.

    Returns:
        The module.

    Raises:
        MissingRuleError: a primitive cannot be lowered for one of the platforms.
        ValueError: there are several platforms, and the backend of one reads equations.
        TypeError: a value of the program has a dtype that StableHLO lacks.
    """
    if scope_of(closed_jaxpr.in_avals) is not None:
        # What is not used may still be the argument that a symbolic size is taken from, and rules
        # of platforms are for sizes that are known.
        keep_unused = portable = True
    jaxpr, used = dce(closed_jaxpr.jaxpr, instantiate=keep_unused)
    closed = ClosedJaxpr(jaxpr, closed_jaxpr.consts)
    depth = _control_depth(jaxpr)
    if depth > _CONTROL_DEPTH_LIMIT:
        raise RecursionError(
            f"{name} has branches and loops nested {depth} deep; the compiler takes at most "
            f"{_CONTROL_DEPTH_LIMIT}. Make the nesting a loop of its own, for example a lax.scan "
            "over what differs from level to level"
        )
    if call_depth(jaxpr) > _CALL_DEPTH_LIMIT:
        closed = inline_single_calls(closed)
        jaxpr = closed.jaxpr
    platforms = tuple(platforms)
    equations = list(filter(manager().reads_equations, platforms))
    if len(platforms) > len(equations) > 0:
        raise ValueError(
            f"{name} cannot be lowered for {', '.join(platforms)} together: the backend of "
            f"{equations[0]} reads equations, and a program for several platforms is StableHLO"
        )
    count = len(jaxpr.outvars)
    donation = match_donations(
        [outer_aval(v.aval) for v in jaxpr.invars],
        [outer_aval(v.aval) for v in jaxpr.outvars],
        _select(donated, used, False),
    )
    if equations:
        from dovetail._core.lower.equations import equation_program  # deferred: seldom needed

        return equation_program(
            closed,
            name=fit_for_symbols("jit_" + name),
            platform=platforms[0],
            kept=tuple(used),
            donation=donation.renumbered(used, donated),
        )
    arguments = [dict(attributes) for attributes in _select(arg_attributes, used, {})]
    results = [dict(attributes) for attributes in result_attributes or [{}] * count]
    inside = _select(arg_memories, used, None)
    asked = list(result_memories or [None] * count)
    in_memories = any(inside) or any(asked) or moves_between_memories(jaxpr)
    if in_memories:
        closed, asked = with_memories(closed, inside, asked)
        jaxpr = closed.jaxpr
    built = ModuleBuilder()
    with built.current():
        if in_memories:
            for attributes, memory in zip((*arguments, *results), (*inside, *asked), strict=True):
                if memory not in (None, "any"):
                    attributes["mhlo.memory_kind"] = memory
        if constants_threshold is None:
            constants_threshold = config.embedded_constants_max_bytes.value
        program = Program(
            built, closed, platforms, overrides or {}, constants_threshold, portable, failures
        )
        program.builder.manual = manual
        i32 = program.builder.i32
        donors = set(donation.donors)
        if arg_shardings is None:
            for number, result in donation.aliases.items():
                arguments[number]["tf.aliasing_output"] = i32(result)
        else:
            # What is divided in another way than the result cannot be told to become it.
            donors.update(donation.aliases)
            partitioning = program.builder.partitioning = Partitioning(built, mesh)
            for attributes, v, own in zip(
                arguments, jaxpr.invars, _select(arg_shardings, used, None), strict=True
            ):
                attributes["sdy.sharding"] = partitioning.sharding(
                    own.mesh.shape_tuple, own.spec, physical_aval(outer_aval(v.aval)).ndim
                )
            for attributes, out, own in zip(
                results, jaxpr.outvars, result_shardings or [None] * count, strict=True
            ):
                aval = outer_aval(out.aval)
                ndim = physical_aval(aval).ndim
                if own is not None:
                    attributes["sdy.sharding"] = partitioning.sharding(
                        own.mesh.shape_tuple, own.spec, ndim
                    )
                elif mesh is not None and mesh.explicit_axes and aval.size:
                    # XLA does not divide what is empty.
                    spec = PartitionSpec() if aval.division is None else aval.division.spec
                    attributes["sdy.sharding"] = partitioning.of_type(mesh, spec, ndim)
        for number in donors:
            arguments[number]["jax.buffer_donor"] = True
        for attributes, result_name in zip(results, result_names or [None] * count, strict=True):
            if result_name is not None:
                attributes["jax.result_info"] = result_name
        program.builder.name_stack = f"jit({name})/"
        program.emit_main(closed, arguments, results, _select(arg_names, used, None))
        program.emit_pending()
        built.set_attributes(
            {
                "sym_name": fit_for_symbols("jit_" + name),
                "mhlo.num_replicas": i32(num_replicas),
                "mhlo.num_partitions": i32(num_partitions),
            }
        )
        if config.enable_checks.value:
            built.module.operation.verify()
        # Break the reference cycle between builder and program, so that the MLIR context is freed
        # without the garbage collector.
        del program.builder.lowering
    return LoweredModule(
        name=fit_for_symbols("jit_" + name),
        module=built.module,
        platforms=platforms,
        kept=tuple(used),
        hoisted=tuple(program.large.values(closed)),
        in_avals=tuple([v.aval for v in jaxpr.invars]),
        out_avals=tuple([v.aval for v in jaxpr.outvars]),
        effects=jaxpr.effects,
        donation=donation.renumbered(used, donated),
        host_callbacks=tuple(program.builder.host_callbacks),
        inspections=tuple(program.builder.inspections),
        preparations=tuple(program.builder.preparations),
        result_memories=tuple(asked) if in_memories else (),
        partitioned=tuple(program.builder.partitioned),
        divisible=frozenset(program.builder.divisible),
        custom_calls=tuple(program.builder.custom_calls),
    )


def _control_depth(jaxpr: Jaxpr) -> int:
    """The nesting depth of branches and loops, including those in called functions."""
    depths: dict[int, int] = {}
    inside: dict[int, list[tuple[Jaxpr, int]]] = {}
    todo = [jaxpr]
    while todo:
        current = todo[-1]
        key = id(current)
        if key not in inside:
            inside[key] = [
                (inner, eqn.primitive.is_control_flow)
                for eqn in current.eqns
                if eqn.params
                for inner in jaxprs_in_params(eqn.params)
            ]
            todo.extend(inner for inner, _ in inside[key] if id(inner) not in depths)
            continue
        todo.pop()
        if key not in depths:
            depths[key] = max((depths[id(j)] + step for j, step in inside[key]), default=0)
    return depths[id(jaxpr)]


def _select(given: Sequence[Any] | None, kept: Sequence[bool], default: Any) -> list[Any]:
    if given is None:
        return [default] * sum(kept)
    return [value for value, keep in zip(given, kept, strict=True) if keep]
