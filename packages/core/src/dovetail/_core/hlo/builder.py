"""The builder that lowering rules receive as `context`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np

from dovetail._core.base.bindings import JAXLIB_VERSION
from dovetail._core.base.config import config
from dovetail._core.hlo.collectives import CollectiveBuilder
from dovetail._core.hlo.context import Locations
from dovetail._core.hlo.mlir import Value, ir
from dovetail._core.hlo.operations import Values
from dovetail._core.hlo.portable import call, converted
from dovetail._core.ir.avals import make_aval
from dovetail._core.ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn
from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.ir.uses import Uses

__all__ = ["Builder", "JaxprLowering"]


class JaxprLowering(Protocol):
    """The interface of the layer that lowers equations, used by the builder."""

    def inline(self, builder: Builder, jaxpr: ClosedJaxpr, values: Sequence[Value]) -> list[Value]:
        """Lower the equations of a jaxpr at the insertion point."""

    def call(
        self,
        builder: Builder,
        jaxpr: ClosedJaxpr,
        values: Sequence[Value],
        name: str,
        cache_key: Hashable,
    ) -> list[Value]:
        """Call the jaxpr's function in the module, which is created on first use."""

    def outline(
        self,
        builder: Builder,
        body: Callable[..., Values],
        values: Sequence[Value],
        outs: Sequence[Any],
        name: str,
        cache_key: Hashable,
    ) -> list[Value]:
        """Call a function of the module that is never inlined, created on first use."""

    def imported(
        self, artifact: bytes, name: str, avals: Sequence[Any] | None
    ) -> tuple[str, Sequence[Any], Sequence[Any]]:
        """The symbol of an artifact's entry function in the module, and the types of the function.

        It is made for arguments of static shapes unless `avals` is None.
        """

    def trace(self, function: Callable[..., Any], avals: Sequence[Any]) -> ClosedJaxpr:
        """The jaxpr of a Python function."""


class Builder(CollectiveBuilder):
    """Creates StableHLO; each module has one, the `context` of every lowering rule.

    Rules call its methods, which create operations at the current insertion point, and return a
    value, or a list of values if the primitive has several results. `avals_in` and `avals_out` are
    those of the equation being lowered; `platforms` are the names of the target platforms.

    Args:
        lowering: lowers jaxprs.
        locations: locations of the module's MLIR context.
        platforms: names of platforms.

    Example:
        >>> def lower(context, x, *, exponent):  # a rule that multiplies repeatedly
        ...     (out,) = context.avals_out
        ...     result = context.constant(1, out)
        ...     for _ in range(exponent):
        ...         result = context.mul(result, x, out)
        ...     return result
    """

    def __init__(
        self, lowering: JaxprLowering, locations: Locations, platforms: Sequence[str]
    ) -> None:
        super().__init__(locations.unknown)
        self.lowering = lowering
        self.locations = locations
        self.platforms = tuple(platforms)
        #: The prefix of operation names in profiles; rules append to it through `scope`.
        self.name_stack = ""
        self.scope = ""
        #: What the compiler is told of the operations of the jaxpr that is being lowered.
        self.told: tuple[tuple[str, str], ...] = ()
        #: The index of the platform that the program runs on, if there are several.
        self.platform_index: Value | None = None
        #: The jaxpr of the program, not of a function that it calls.
        self.program: Jaxpr | None = None
        #: The one that holds the current equation.
        self.jaxpr: Jaxpr | None = None
        self._uses: dict[int, Uses] = {}
        self.host_callbacks: list[Any] = []
        #: Functions to call with the sharding of the program's values at compilation.
        self.inspections: list[Callable[[Any], object]] = []
        #: Calls whose division over devices the compiler asks for.
        self.partitioned: list[Any] = []
        #: Functions to call before the program is loaded, in the order of registration.
        self.preparations: dict[Callable[[], object], None] = {}

    # Jaxprs

    def inline_jaxpr(self, jaxpr: ClosedJaxpr, values: Sequence[Value]) -> list[Value]:
        """Lower the equations of a jaxpr inline.

        Args:
            jaxpr: the jaxpr with its constants.
            values: its arguments.

        Returns:
            Its results.
        """
        return self.lowering.inline(self, jaxpr, values)

    def call_jaxpr(
        self,
        jaxpr: ClosedJaxpr,
        values: Sequence[Value],
        name: str,
        cache_key: Hashable = None,
    ) -> list[Value]:
        """Call a private function of the module, which is created once for each jaxpr object.

        Args:
            jaxpr: the jaxpr with its constants.
            values: its arguments.
            name: the function's name; numbers are added to make it unique.
            cache_key: distinguishes different functions made from the same jaxpr.

        Returns:
            Its results.
        """
        return self.lowering.call(self, jaxpr, values, name, cache_key)

    def outlined(
        self,
        body: Callable[..., Values],
        values: Sequence[Value],
        outs: Sequence[Any],
        name: str,
        cache_key: Hashable = None,
    ) -> list[Value]:
        """Put operations into a separate function that the compiler does not inline.

        Its results are computed once and stored in memory. Otherwise the compiler may fuse them
        into their consumers and recompute them for each use.

        Args:
            body: maps values to a value or a list of values; it uses no other values from outside.
            values: its arguments.
            outs: avals of its results.
            name: the function's name; numbers are added to make it unique.
            cache_key: bodies with equal keys do the same on values of the same types and share one
                function; None for a function of its own.

        Returns:
            The results.
        """
        return self.lowering.outline(self, body, values, outs, name, cache_key)

    def call_artifact(
        self,
        artifact: bytes,
        name: str,
        platform: int | None,
        values: Sequence[Value],
        avals: Sequence[Any],
        symbolic: bool,
    ) -> list[Value]:
        """Call a program that was exported.

        Args:
            artifact: the program.
            name: what its function is called in the module.
            platform: the index that it is told the platform by; None if it is for one alone.
            values: its arguments.
            avals: their avals.
            symbolic: whether its arguments have symbolic sizes.

        Returns:
            Its results.
        """
        if platform is not None:
            aval = make_aval((), np.dtype(np.int32))
            values, avals = [self.constant(platform, aval), *values], [aval, *avals]
        static = symbolic and not any(aval.symbolic for aval in avals)
        known = tuple(avals) if static else None
        symbol, taken, given = self.lowering.imported(artifact, name, known)
        results = call(symbol, converted(values, taken), given)
        outs = [self.types[aval] for aval in self.avals_out]
        return converted(results, outs)

    def lower_function(self, function: Callable[..., Any], avals: Sequence[Any]) -> Any:
        """Turn a Python function of arrays into a function of values.

        For rules that are easiest to express by other primitives.

        Args:
            function: takes arrays, returns an array or a tuple of arrays.
            avals: avals of its arguments.

        Returns:
            A function from values to a list of values, which creates the operations.

        Example:
            >>> def lower(context, x):  # a rule made of other primitives
            ...     from dovetail import lax
            ...     softplus = lambda x: lax.log1p(lax.exp(x))
            ...     return context.lower_function(softplus, context.avals_in)(x)
        """
        jaxpr = self.lowering.trace(function, avals)
        return lambda *values: self.inline_jaxpr(jaxpr, values)

    # Names, callbacks, what programs need of their process

    def option(self, name: str) -> Any:
        """The value of an option of the framework, for rules of backends.

        Args:
            name: an option that is part of a program's key, such as ``"enable_x64"``. With others,
                a cached program could have been lowered with another value.
        """
        option = config.option(name)
        if not option.affects_tracing:
            raise ValueError(f"programs are not told apart by the option {name}")
        return option.value

    def runs_once(self) -> bool:
        """Whether what is emitted now is known to run at most once in a run of the program.

        It is not known of operations in loops, or in functions of the module other than its main
        one, which a loop may call.
        """
        operation = ir.InsertionPoint.current.block.owner.operation
        while operation.name == "stablehlo.case":
            operation = operation.parent.operation
        if operation.name != "func.func":
            return False
        return bool(operation.attributes["sym_visibility"] == ir.StringAttr.get("public"))

    def uses_in(self, jaxpr: Jaxpr) -> Uses:
        """Which equations make and use the variables of a jaxpr, found once for each jaxpr."""
        found = self._uses.get(id(jaxpr))
        if found is None:
            found = self._uses[id(jaxpr)] = Uses(jaxpr)
        return found

    def uses(self) -> list[JaxprEqn]:
        """The equations that use what the current one makes; itself, if its jaxpr returns that."""
        assert self.equation is not None
        assert self.jaxpr is not None
        uses, made = self.uses_in(self.jaxpr), self.equation.outvars
        found = list(dict.fromkeys(eqn for var in made for eqn in uses.users.get(var, ())))
        return found + [self.equation] * any(var in uses.returned for var in made)

    def times_used(self, var: Any) -> int:
        """How often the jaxpr that holds the current equation uses a variable."""
        assert self.jaxpr is not None
        return self.uses_in(self.jaxpr).count(var)

    def uses_once(self, steps: int = 1) -> bool:
        """Whether nothing but the current equation is known to use what it is given.

        Args:
            steps: how far back this is asked: from 2 on of what made what it is given, too.
        """
        equation = self.equation
        if self.program is None or equation is None:
            return False
        uses = self.uses_in(self.program)
        if not uses.are_of(equation):
            return False
        users = [equation]
        for _ in range(steps):
            given = [var for eqn in users for var in eqn.invars]
            if any(uses.count(var) != 1 for var in given):
                return False
            users = [uses.makers[var] for var in given if var in uses.makers]
        return True

    def stands_alone(self) -> bool:
        """Whether the current equation turns arguments of the program into results of it.

        Then it loses nothing if the compiler does not fuse it with others.
        """
        equation, program = self.equation, self.program
        if equation is None or program is None or not self.runs_once():
            return False
        uses = self.uses_in(program)
        return (
            all(var in uses.parameters for var in equation.invars)
            and uses.are_of(equation)
            and not any(var in uses.users for var in equation.outvars)
        )

    @contextmanager
    def named_scope(self, name: str) -> Iterator[None]:
        """Add `name` to the profile names of jaxprs lowered inside."""
        before = self.scope
        self.scope = f"{before}{name}/"
        try:
            yield
        finally:
            self.scope = before

    def host_callback(self, function: Any) -> int:
        """Register a Python function that the program calls back.

        Args:
            function: takes NumPy arrays and returns a tuple of arrays; or a call that the runtime
                knows how to make.

        Returns:
            Its index, for the ``backend_config`` of the custom call.
        """
        self.host_callbacks.append(function)
        return len(self.host_callbacks) - 1

    def call_on_one_device(
        self,
        target: str,
        operands: Sequence[Value],
        outs: Sequence[Any],
        backend_config: Mapping[str, Any],
        position: int = 0,
        **options: Any,
    ) -> list[Value]:
        """`custom_call` by one of the program's devices, which gets whole operands.

        All devices get the results. Inside `shard_map` each of them makes the call, on its part.

        Args:
            target: as for `custom_call`.
            operands: as for `custom_call`.
            outs: as for `custom_call`.
            backend_config: as for `custom_call`.
            position: the number of the device among those of the program.
            options: further arguments of `custom_call`.
        """
        there = self.partitioning
        if there is None or self.manual is not None:
            return self.custom_call(target, operands, outs, backend_config, **options)
        operands = [self._whole(value) for value in operands]
        options["attributes"] = {"sdy.sharding": there.one_device(len(outs), position)}
        results = self.custom_call(target, operands, outs, backend_config, **options)
        return [self._whole(value) for value in results]

    def _whole(self, value: Value) -> Value:
        """A value that all devices hold."""
        assert self.partitioning is not None
        rank = getattr(value.type, "rank", None)
        how = None if rank is None else self.partitioning.replicated(rank)
        if how is None:
            return value
        (held,) = self.ops("sdy.sharding_constraint", [value], [value.type], {"sharding": how})
        return held

    def typed(self, value: Value, aval: Any) -> Value:
        """A value, divided over the axes of a mesh, and a sum along some, as its type says."""
        if self.partitioning is None:
            return value
        divided, mesh = aval.division, self.partitioning.mesh
        spec = PartitionSpec()
        if divided is not None:
            mesh, spec = divided.mesh, divided.spec
        physical = self.physical(aval)
        if mesh is None:
            return value
        unreduced = self.unreduced(aval)
        if unreduced:
            spec = spec.update(unreduced=unreduced)
        how = self.partitioning.of_type(mesh, spec, physical.ndim)
        return self.op("sdy.sharding_constraint", [value], physical, {"sharding": how})

    def unreduced(self, aval: Any) -> frozenset[Hashable]:
        """The axes along which the devices of the program hold parts of a sum."""
        axes: frozenset[Hashable] = aval.manual_axis_type.unreduced
        return axes if self.manual is None else axes - self.manual.names

    def has_sums(self, avals: Iterable[Any]) -> bool:
        """Whether values are sums of what the devices of the program hold."""
        return any(map(self.unreduced, avals))

    def divided(self, value: Value, aval: Any, axes: Any, spec: Any) -> Value:
        """A value of a program over several devices, divided as a specification says.

        Args:
            value: the value.
            aval: its aval.
            axes: names and sizes of the axes of the mesh.
            spec: the specification.
        """
        if self.partitioning is None:
            return value
        physical = self.physical(aval)
        how = self.partitioning.sharding(axes, spec, physical.ndim)
        return self.op("sdy.sharding_constraint", [value], physical, {"sharding": how})

    @property
    def divides(self) -> bool:
        """Whether the compiler divides values among devices here, and not `shard_map`."""
        return self.partitioning is not None and self.manual is None

    @property
    def mistakes_slices(self) -> bool:
        """Whether XLA takes or changes wrong slices of what is divided, as before jaxlib 0.12."""
        return self.divides and JAXLIB_VERSION < (0, 12)

    def kept_apart(self, value: Value, physical: Any) -> Value:
        """The operand of an update of slices, in a program over several devices.

        XLA changes wrong elements where it merges the slice that is the part of
        a device with the slice that is updated.
        """
        if not self.mistakes_slices:
            return value
        (value,) = self.optimization_barrier([value], [physical])
        return value

    def prepare(self, function: Callable[[], object]) -> None:
        """Call a function now, and in every other process before it loads the program.

        For things that a program needs in its process, such as registered custom calls.

        Args:
            function: takes no arguments, and is cheap to call again. Loading a serialized program
                finds it by name, so it must be defined at the top level of a module.
        """
        self.preparations[function] = None
        function()

    def require(self, check: Callable[[], object]) -> None:
        """Call a function in every process, this one too, before it compiles or loads the program.

        Args:
            check: takes no arguments, is cheap to call again, and can be compared and pickled. It
                raises what users see.
        """
        self.preparations[check] = None
