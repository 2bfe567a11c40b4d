"""The functions of a module: lowers jaxprs equation by equation."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dovetail._core.base.flags import partition
from dovetail._core.base.limits import deeper
from dovetail._core.base.source import SourceLocation
from dovetail._core.hlo.builder import Builder
from dovetail._core.hlo.collectives import ManualAxes
from dovetail._core.hlo.mlir import Value
from dovetail._core.hlo.module import ModuleBuilder
from dovetail._core.hlo.operations import Values, values_of
from dovetail._core.hlo.portable import import_artifact, refined_artifact
from dovetail._core.hlo.types import TypeTable
from dovetail._core.ir.avals import (
    AbstractToken,
    ShapedArray,
    abstract_token,
    aval_of,
    make_aval,
    outer_aval,
    physical_aval,
    runtime_token,
)
from dovetail._core.ir.effects import host_effects
from dovetail._core.ir.jaxpr import (
    ClosedJaxpr,
    DebugInfo,
    Jaxpr,
    JaxprEqn,
    Literal,
    ordered_effects,
)
from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.lower.constants import LargeConstants
from dovetail._core.lower.rules import Rule, RuleTable, explain_failure
from dovetail._core.lower.sizes import emit_sizes, entry_variables
from dovetail._core.transform.stage import stage

__all__ = ["Program"]

_index_aval: Final = make_aval((), np.dtype(np.int32))


@dataclass(slots=True)
class _Function:
    """A private function of the module that has been called but may not have a body yet."""

    symbol: str
    closed: ClosedJaxpr
    platforms: tuple[str, ...]
    manual: ManualAxes | None


def _state(builder: Builder) -> dict[str, Any]:
    """The builder's state, to restore after a rule has lowered a nested jaxpr."""
    names = ("equation", "jaxpr", "location", "name_stack", "scope", "told", "literals")
    return {name: getattr(builder, name) for name in names}


def _names(builder: Builder) -> str:
    """The name prefix of the current equation's operations."""
    place = None if builder.equation is None else builder.equation.traceback
    stack: str = builder.name_stack
    return stack + place.prefix if type(place) is SourceLocation else stack


def _told(builder: Builder, place: Any) -> tuple[tuple[str, str], ...]:
    """What the compiler is told of the operations of an equation."""
    return builder.told + place.metadata if type(place) is SourceLocation else builder.told


class Program:
    """The functions of a module; implements `JaxprLowering` for its builder.

    Args:
        module: the module being built.
        closed: the jaxpr of its entry function.
        platforms: names of the platforms that it is for.
        overrides: lowering rules by primitive name that take precedence over all others.
        constants_threshold: size in bytes above which constants become arguments.
        portable: whether a primitive's own rule comes before those of platforms.
        failures: where to put equations that cannot be lowered, and why; by default the first one
            is an error.
    """

    def __init__(
        self,
        module: ModuleBuilder,
        closed: ClosedJaxpr,
        platforms: tuple[str, ...],
        overrides: Mapping[str, Rule],
        constants_threshold: int,
        portable: bool = False,
        failures: list[tuple[JaxprEqn, Exception]] | None = None,
    ) -> None:
        self.module = module
        self.all_platforms = platforms
        self.rules = RuleTable(platforms, overrides, portable)
        self.builder = Builder(self, module.locations, platforms)
        self.large = LargeConstants(closed, constants_threshold)
        #: The dimension variables that every other function gets as arguments.
        self.variables = entry_variables(closed.in_avals)
        self.pending: deque[_Function] = deque()
        self.functions: dict[Hashable, _Function] = {}
        # Symbols of outlined functions by cache key and argument types.
        self.outlined: dict[Hashable, str] = {}
        self.failures = failures
        # Exported programs that are called: their symbols and types.
        self.artifacts: dict[Hashable, tuple[str, Sequence[Any], Sequence[Any]]] = {}
        # Large constants among the arguments of the current function, by identity.
        self.constants: dict[int, Value] = {}

    # The interface for the builder, `JaxprLowering`

    def inline(self, builder: Builder, jaxpr: ClosedJaxpr, values: Sequence[Value]) -> list[Value]:
        before = _state(builder)
        if builder.equation is not None:
            builder.name_stack = (
                f"{_names(builder)}{builder.equation.primitive.name}/{builder.scope}"
            )
            builder.scope = ""
            builder.told = _told(builder, builder.equation.traceback)
        with deeper():
            results = self.body(jaxpr, values)
        for name, value in before.items():
            setattr(builder, name, value)
        return results

    def call(
        self,
        builder: Builder,
        jaxpr: ClosedJaxpr,
        values: Sequence[Value],
        name: str,
        cache_key: Hashable,
    ) -> list[Value]:
        consts = tuple([id(c) for c in jaxpr.consts])
        key = (id(jaxpr.jaxpr), consts, builder.platforms, builder.manual, cache_key)
        function = self.functions.get(key)
        if function is None:
            symbol = self.module.unique_symbol(name)
            function = _Function(symbol, jaxpr, builder.platforms, builder.manual)
            self.functions[key] = function
            # Bodies are emitted later, from a queue: calls may nest deeper than Python's stack.
            self.pending.append(function)
        ordered = ordered_effects(jaxpr.effects)
        location = builder.location
        place = None if builder.equation is None else builder.equation.traceback
        builder.location = builder.locations.of_equation(f"{_names(builder)}jit({name})", place)
        results = builder.call(
            function.symbol,
            [
                *([] if builder.platform_index is None else [builder.platform_index]),
                *(builder.dimension_values[name] for name in self.variables),
                *(self.constants[id(c)] for c in self.large.values(jaxpr)),
                *(builder.token(effect) for effect in ordered),
                *values,
            ],
            [*(abstract_token for _ in ordered), *jaxpr.out_avals],
        )
        builder.location = location
        for effect, token in zip(ordered, results, strict=False):
            builder.set_token(effect, token)
        return results[len(ordered) :]

    def imported(
        self, artifact: bytes, name: str, avals: Sequence[Any] | None
    ) -> tuple[str, Sequence[Any], Sequence[Any]]:
        key = (artifact, avals)
        found = self.artifacts.get(key)
        if found is None:
            program = artifact
            if avals is not None:
                program = refined_artifact(artifact, lambda: [TypeTable()[a] for a in avals])
            found = self.artifacts[key] = import_artifact(program, self.module, name)
        return found

    def outline(
        self,
        builder: Builder,
        body: Callable[..., Values],
        values: Sequence[Value],
        outs: Sequence[Any],
        name: str,
        cache_key: Hashable,
    ) -> list[Value]:
        types = builder.types
        sizes = builder.dimension_values
        values = [*(sizes[name] for name in self.variables), *values]
        arguments = [v.type for v in values]
        key = None if cache_key is None else (cache_key, *map(str, arguments))
        symbol = None if key is None else self.outlined.get(key)
        if symbol is None:
            symbol = self.module.unique_symbol(name)
            block, _ = self.module.function(symbol, arguments, [types[o] for o in outs])
            with self.module.inside(block):
                own = list(block.arguments)
                builder.dimension_values = dict(zip(self.variables, own, strict=False))
                builder.ops("func.return", values_of(body(*own[len(self.variables) :])), ())
            builder.dimension_values = sizes
            if key is not None:
                self.outlined[key] = symbol
        results = builder.call(symbol, values, outs)
        # XLA's attribute to prevent inlining.
        results[0].owner.attributes["mhlo.frontend_attributes"] = builder.dictionary(
            {"inlineable": "false"}
        )
        return results

    def trace(self, function: Callable[..., Any], avals: Sequence[Any]) -> ClosedJaxpr:
        def flat(*args: Any) -> list[Any]:
            results = function(*args)
            return list(results) if isinstance(results, (list, tuple)) else [results]

        name = getattr(function, "__name__", type(function).__name__)
        # Types are settled here: in a formula a weakly typed operand would give way to a number.
        # How the result is divided is said where the equation is lowered.
        strong = [
            a.strengthen().with_division(None) if type(a) is ShapedArray else a for a in avals
        ]
        return stage(flat, strong, DebugInfo("lowering", name))

    # Functions

    def emit_main(
        self,
        closed: ClosedJaxpr,
        arguments: Sequence[dict[str, Any]],
        results: Sequence[dict[str, Any]],
        names: Sequence[str | None],
    ) -> None:
        """Emit the entry function.

        With effects visible to the host it has an additional result, a token that says that the
        program has finished; with ordered effects, an additional argument, the token of the
        previous program.

        Args:
            closed: its body.
            arguments: attributes of each argument.
            results: attributes of each result.
            names: names of the arguments, shown in profiles.
        """
        builder = self.builder
        types = builder.types
        leading = self.leading_avals(closed, entry=True)
        seen = host_effects(closed.effects)
        token_out = [runtime_token] if seen else []
        token_in = [runtime_token] if ordered_effects(frozenset(seen)) else []
        block, function = self.module.function(
            self.module.unique_symbol("main"),
            [types[outer_aval(a)] for a in (*leading, *closed.in_avals, *token_in)],
            [types[outer_aval(a)] for a in (*closed.out_avals, *token_out)],
            public=True,
            names=[*(None for _ in leading), *names, *(None for _ in token_in)],
        )
        # Constants are whole on every device; the compiler would divide what it is told nothing of.
        whole = [self._whole(outer_aval(aval)) for aval in leading]
        if any(arguments) or any(whole):
            function.attributes["arg_attrs"] = builder.array(
                [*whole, *arguments, *({} for _ in token_in)]
            )
        if any(results):
            function.attributes["res_attrs"] = builder.array([*results, *({} for _ in token_out)])
        with self.module.inside(block):
            values = self.bind_leading(closed, list(block.arguments), entry=True)
            self.builder.program = closed.jaxpr
            if self.variables:
                builder.dimension_values = emit_sizes(
                    builder, closed.in_avals, values, [name or "an argument" for name in names]
                )
            values = [
                builder.create_token() if type(aval) is AbstractToken else value
                for value, aval in zip(values, closed.in_avals, strict=False)
            ]
            outs = [
                self.ended() if type(aval) is AbstractToken else value
                for value, aval in zip(self.body(closed, values), closed.out_avals, strict=True)
            ]
            builder.ops("func.return", [*outs, *(self.ended() for _ in token_out)], ())

    def _whole(self, aval: Any) -> dict[str, Any]:
        """The attributes of an argument that all devices hold."""
        partitioning = self.builder.partitioning
        sharding = (
            None if partitioning is None else partitioning.replicated(physical_aval(aval).ndim)
        )
        return {} if sharding is None else {"sdy.sharding": sharding}

    def ended(self) -> Value:
        """The result that represents a token: it is ready when the program has finished."""
        return self.builder.constant(np.zeros(0, bool), runtime_token)

    def emit_pending(self) -> None:
        """Emit the bodies of called functions; they may call further ones."""
        builder = self.builder
        types = builder.types
        while self.pending:
            function = self.pending.popleft()
            closed = function.closed
            builder.equation = None
            builder.location = builder.locations.unknown
            # The compiler prefixes the names inside the function with the name of the call.
            builder.name_stack = builder.scope = ""
            builder.told = ()
            builder.platforms, builder.manual = function.platforms, function.manual
            ordered = ordered_effects(closed.effects)
            tokens = [abstract_token for _ in ordered]
            avals = (*self.leading_avals(closed), *tokens, *closed.in_avals)
            block, _ = self.module.function(
                function.symbol,
                [types[a] for a in avals],
                [types[a] for a in (*tokens, *closed.out_avals)],
            )
            with self.module.inside(block):
                values = self.bind_leading(closed, list(block.arguments))
                count = len(ordered)
                builder.tokens = dict(zip(ordered, values[:count], strict=True))
                results = self.body(closed, values[count:])
                builder.ops("func.return", [*map(builder.token, ordered), *results], ())

    def leading_avals(self, closed: ClosedJaxpr, entry: bool = False) -> list[Any]:
        """Avals of the leading arguments of every function, before tokens and other arguments."""
        index = [_index_aval] if len(self.all_platforms) > 1 else []
        if not entry:
            index += [self.builder.size_aval] * len(self.variables)
        return [*index, *(outer_aval(aval_of(c)) for c in self.large.values(closed))]

    def bind_leading(
        self, closed: ClosedJaxpr, values: list[Value], entry: bool = False
    ) -> list[Value]:
        """Record the leading arguments of the current function and return the others."""
        if len(self.all_platforms) > 1:
            self.builder.platform_index = values.pop(0)
        if self.variables and not entry:
            count = len(self.variables)
            self.builder.dimension_values = dict(zip(self.variables, values, strict=False))
            values = values[count:]
        large = self.large.values(closed)
        self.constants = {id(c): v for c, v in zip(large, values, strict=False)}
        return values[len(large) :]

    # Equations

    def body(self, closed: ClosedJaxpr, values: Sequence[Value]) -> list[Value]:
        """Lower the equations of a jaxpr at the insertion point."""
        jaxpr, builder = closed.jaxpr, self.builder
        env: dict[Any, Value] = dict(zip(jaxpr.invars, values, strict=True))
        for var, const in zip(jaxpr.constvars, closed.consts, strict=True):
            value = self.constants.get(id(const))
            if type(var.aval) is AbstractToken:  # its program has finished when this one starts
                value = builder.create_token()
            env[var] = builder.constant(np.asarray(const), var.aval) if value is None else value
        if builder.partitioning is not None:
            for var in jaxpr.invars:
                if builder.has_sums([var.aval]):  # of a loop, for one
                    env[var] = builder.typed(env[var], var.aval)
        self.lower_equations(jaxpr, env)
        return [
            builder.constant(v.val, v.aval) if type(v) is Literal else env[v] for v in jaxpr.outvars
        ]

    def literal(self, literal: Literal, made: dict[Any, Value]) -> Value:
        """The value of a literal, created once per block of operations."""
        value, aval = literal.val, literal.aval
        # Zero and negative zero are equal but differ, alone or as part of a complex number.
        has_zero = value == 0 or aval.dtype.kind == "c"
        key = (aval, value, str(value) if has_zero else "")
        constant = made.get(key)
        if constant is None:
            constant = made[key] = self.builder.constant(value, aval)
            self.builder.literals[id(constant)] = {}
        return constant

    def lower_equations(self, jaxpr: Jaxpr, env: dict[Any, Value]) -> None:
        """Lower the equations of a jaxpr; the hot loop of lowering."""
        builder = self.builder
        builder.jaxpr = jaxpr
        prefix = builder.name_stack
        literals: dict[Any, Value] = {}
        builder.literals = {}
        rules = self.rules
        if builder.platforms != self.all_platforms:
            rules = rules.for_platform(*builder.platforms)
        named = builder.locations.name
        of_traceback = builder.locations.of_traceback
        unknown = builder.locations.unknown
        partitioned = builder.partitioning is not None
        for eqn in jaxpr.eqns:
            primitive = eqn.primitive
            invars, outvars = eqn.invars, eqn.outvars
            builder.equation = eqn
            place, name = eqn.traceback, prefix + primitive.name
            metadata = builder.told
            if type(place) is SourceLocation:
                metadata = _told(builder, place)
                place, name = place.traceback, prefix + place.prefix + primitive.name
            builder.location = named(name, unknown if place is None else of_traceback(place))
            try:
                args = [self.literal(v, literals) if type(v) is Literal else env[v] for v in invars]
                summed = partitioned and builder.has_sums([v.aval for v in (*invars, *outvars)])
                if summed and (primitive.is_control_flow or not primitive.types_axes):
                    result = self._of_parts(eqn, rules[primitive], args)
                else:
                    result = rules[primitive](builder, *args, **eqn.params)
                if len(outvars) == 1:
                    kind = type(result)
                    env[outvars[0]] = _only(result) if kind is list or kind is tuple else result
                else:
                    env.update(zip(outvars, result, strict=True))
                if metadata:
                    operands = [env[v] for v in invars if type(v) is not Literal]
                    made = [env[v] for v in outvars if env[v] not in operands]
                    builder.tell(made, metadata)
                if partitioned:
                    for out in outvars:
                        if summed or out.aval.division is not None:
                            env[out] = builder.typed(env[out], out.aval)
            except Exception as error:
                if self.failures is None:
                    explain_failure(error, eqn)
                    raise
                self.failures.append((eqn, error))
                target = {"call_target_name": "not_lowered"}
                outs = [v.aval for v in outvars]
                made = builder.ops("stablehlo.custom_call", (), outs, target)
                env.update(zip(outvars, made, strict=True))

    def _of_parts(
        self, eqn: JaxprEqn, rule: Callable[..., Any], values: Sequence[Value]
    ) -> Sequence[Value]:
        """Lower an equation of sums whose parts devices have, for each device on its own.

        XLA would compute wrong numbers: it takes some other operands as parts of sums too.
        """
        builder = self.builder
        assert builder.partitioning is not None
        given, _ = partition([type(v) is not Literal for v in eqn.invars], values)
        avals = [v.aval for v in eqn.invars if type(v) is not Literal]
        outs = [v.aval for v in eqn.outvars]
        mesh = builder.partitioning.mesh
        # Along axes that a value is divided over the compiler goes on to divide.
        dims = [d for aval in (*avals, *outs) if aval.division for d in aval.division.dims]
        axes = frozenset(mesh.axis_names).difference(*dims)
        if builder.manual is not None:
            axes -= builder.manual.names

        def body(*parts: Value) -> Sequence[Value]:
            builder.literals = {}
            made: dict[Any, Value] = {}
            others = iter(parts)
            operands = [
                self.literal(v, made) if type(v) is Literal else next(others) for v in eqn.invars
            ]
            result = rule(builder, *operands, **eqn.params)
            return result if isinstance(result, (list, tuple)) else [result]

        literals = builder.literals
        try:
            return builder.manual_computation(
                body,
                given,
                avals,
                outs,
                mesh=mesh.shape_tuple,
                axes=axes,
                in_specs=[PartitionSpec(unreduced=builder.unreduced(a)) for a in avals],
                out_specs=[PartitionSpec(unreduced=builder.unreduced(a)) for a in outs],
            )
        finally:
            builder.literals = literals


def _only(results: Sequence[Value]) -> Value:
    if len(results) != 1:
        raise TypeError(f"the lowering rule returned {len(results)} values for one result")
    return results[0]
