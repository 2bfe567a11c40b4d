"""From a jaxpr to one StableHLO module."""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from jaxlib.mlir import ir

from dovetail.core.hlo.builder import Builder
from dovetail.core.hlo.context import (
    Locations,
    make_context,
    module_bytecode,
    module_text,
    stripped_bytecode,
)
from dovetail.core.ir.avals import abstract_token, aval_of, make_aval
from dovetail.core.ir.jaxpr import ClosedJaxpr, DebugInfo, Effects, Jaxpr, Literal
from dovetail.core.ir.walk import call_depth, dce, inline_single_calls
from dovetail.core.lower.constants import LargeConstants, host_value
from dovetail.core.lower.donation import Donation, match_donations
from dovetail.core.lower.rules import Rule, RuleTable, explain_failure, ordered_effects
from dovetail.core.transform.stage import stage

__all__ = ["LoweredModule", "lower_jaxpr"]

_UNFIT_FOR_NAMES: Final = re.compile(r"[^\w.-]")
#: The compiler is recursive over calls, and crashes from about two hundred nested ones on.
_CALL_DEPTH_LIMIT: Final = 100
_index_aval: Final = make_aval((), np.dtype(np.int32))


@dataclass(frozen=True, slots=True)
class LoweredModule:
    """A program in StableHLO, and what has to be known to call it.

    The entry function takes, in this order: the index of the platform (with several platforms only),
    the hoisted constants, the arguments that were kept.

    Attributes:
        name: name of the program, such as ``jit_f``.
        module: the MLIR module; its context lives as long as it does.
        platforms: the platforms that it is for.
        kept: for each argument of the jaxpr whether it is an argument of the module.
        hoisted: values of the constants that are leading arguments.
        in_avals: avals of the kept arguments.
        out_avals: avals of the results.
        effects: side effects.
        donation: what becomes of the donated arguments.
        host_callbacks: Python functions that the program calls, for `compile_and_load`.
    """

    name: str
    module: ir.Module
    platforms: tuple[str, ...]
    kept: tuple[bool, ...]
    hoisted: tuple[Any, ...]
    in_avals: tuple[Any, ...]
    out_avals: tuple[Any, ...]
    effects: Effects
    donation: Donation
    host_callbacks: tuple[Callable[..., Any], ...]
    _keys: list[bytes] = field(default_factory=list, repr=False)

    def text(self, debug_info: bool = False) -> str:
        """The module as text.

        Args:
            debug_info: whether to write source locations as well.
        """
        return module_text(self.module, debug_info=debug_info)

    def bytecode(self) -> bytes:
        """The module as MLIR bytecode, source locations included."""
        return module_bytecode(self.module)

    def key(self) -> bytes:
        """SHA-256 of the module without source locations: equal programs have equal keys.

        Host callbacks are objects of this process, which no key can describe: a program with
        callbacks must not be taken from a cache for one with others.
        """
        if not self._keys:
            self._keys.append(hashlib.sha256(stripped_bytecode(self.module)).digest())
        return self._keys[0]


def lower_jaxpr(
    closed_jaxpr: ClosedJaxpr,
    *,
    name: str,
    platforms: Sequence[str] = ("cpu",),
    donated: Sequence[bool] | None = None,
    keep_unused: bool = False,
    arg_names: Sequence[str | None] | None = None,
    result_names: Sequence[str | None] | None = None,
    constants_threshold: int = 4096,
    overrides: Mapping[str, Rule] | None = None,
    arg_attributes: Sequence[Mapping[str, Any]] | None = None,
    result_attributes: Sequence[Mapping[str, Any]] | None = None,
    num_replicas: int = 1,
    num_partitions: int = 1,
) -> LoweredModule:
    """Lower a jaxpr to a module whose entry function it is.

    Args:
        closed_jaxpr: the program.
        name: name of the user's function; the module is called ``jit_<name>``.
        platforms: names of the platforms to lower for. With several, the module takes as its first
            argument, an int32, which of them it runs on.
        donated: for each argument whether its memory may be written over.
        keep_unused: whether arguments that nothing uses stay arguments of the module.
        arg_names: names of the arguments, such as ``params['w']``, shown in profiles.
        result_names: names of the results, such as ``result[0]``.
        constants_threshold: size in bytes above which a constant is not written into the module but
            becomes an argument.
        overrides: lowering rules by name of primitive that come before all others.
        arg_attributes: for each argument of the jaxpr attributes of the module's argument, such as
            ``{"mhlo.sharding": "{replicated}"}``.
        result_attributes: the same for each result.
        num_replicas: how many copies of the program run together.
        num_partitions: how many devices share the program.

    Returns:
        The module.

    Raises:
        MissingRuleError: a primitive cannot be lowered for one of the platforms.
        TypeError: a value of the program has a dtype that StableHLO does not have.
    """
    jaxpr, used = dce(closed_jaxpr.jaxpr, instantiate=keep_unused)
    closed = ClosedJaxpr(jaxpr, closed_jaxpr.consts)
    if call_depth(jaxpr) > _CALL_DEPTH_LIMIT:
        closed = inline_single_calls(closed)
        jaxpr = closed.jaxpr
    platforms = tuple(platforms)
    count = len(jaxpr.outvars)
    donation = match_donations(
        [v.aval for v in jaxpr.invars],
        [v.aval for v in jaxpr.outvars],
        _select(donated, used, False),
    )
    context = make_context()
    with context, ir.Location.unknown():
        module = ir.Module.create()
        program = _Program(
            module, closed, Locations(context), platforms, overrides or {}, constants_threshold
        )
        i32 = program.builder.i32
        arguments = [dict(given) for given in _select(arg_attributes, used, {})]
        for number, result in donation.aliases.items():
            arguments[number]["tf.aliasing_output"] = i32(result)
        for number in donation.donors:
            arguments[number]["jax.buffer_donor"] = True
        results = [dict(given) for given in result_attributes or [{}] * count]
        for given, result_name in zip(results, result_names or [None] * count, strict=True):
            if result_name is not None:
                given["jax.result_info"] = result_name
        program.builder.name_stack = f"jit({name})/"
        program.main(closed, arguments, results, _select(arg_names, used, None))
        program.emit_pending()
        attributes = module.operation.attributes
        attributes["sym_name"] = ir.StringAttr.get(_fit("jit_" + name))
        attributes["mhlo.num_replicas"] = i32(num_replicas)
        attributes["mhlo.num_partitions"] = i32(num_partitions)
    return LoweredModule(
        name=_fit("jit_" + name),
        module=module,
        platforms=platforms,
        kept=tuple(used),
        hoisted=tuple(program.large.values(closed)),
        in_avals=tuple([v.aval for v in jaxpr.invars]),
        out_avals=tuple([v.aval for v in jaxpr.outvars]),
        effects=jaxpr.effects,
        donation=donation.renumbered(used, donated),
        host_callbacks=tuple(program.builder.host_callbacks),
    )


def _select(given: Sequence[Any] | None, kept: Sequence[bool], default: Any) -> list[Any]:
    if given is None:
        return [default] * sum(kept)
    return [value for value, keep in zip(given, kept, strict=True) if keep]


def _fit(name: str) -> str:
    """`name` without what names of modules and functions may not contain."""
    return _UNFIT_FOR_NAMES.sub("_", name)


@dataclass(slots=True)
class _Function:
    """A private function of the module, called already and perhaps without a body yet."""

    symbol: str
    closed: ClosedJaxpr
    platforms: tuple[str, ...]


def _state(builder: Builder) -> dict[str, Any]:
    """What lowering a jaxpr inside a rule would otherwise change for the rest of the rule."""
    names = ("equation", "avals_in", "avals_out", "location", "name_stack", "scope", "literals")
    return {name: getattr(builder, name) for name in names}


class _Program:
    """A module being made. To its builder it is what knows how jaxprs are lowered."""

    def __init__(
        self,
        module: ir.Module,
        closed: ClosedJaxpr,
        locations: Locations,
        platforms: tuple[str, ...],
        overrides: Mapping[str, Rule],
        constants_threshold: int,
    ) -> None:
        self.module = module
        self.all_platforms = platforms
        self.rules = RuleTable(platforms, overrides)
        self.builder = Builder(self, locations, platforms)
        self.large = LargeConstants(closed, constants_threshold)
        self.pending: deque[_Function] = deque()
        self.functions: dict[Hashable, _Function] = {}
        self.symbols: dict[str, int] = {"main": 0}
        # Large constants among the arguments of the function being made, by identity.
        self.constants: dict[int, ir.Value] = {}

    # What the builder asks for

    def inline(
        self, builder: Builder, jaxpr: ClosedJaxpr, values: Sequence[ir.Value]
    ) -> list[ir.Value]:
        before = _state(builder)
        if builder.equation is not None:
            builder.name_stack += f"{builder.equation.primitive.name}/{builder.scope}"
            builder.scope = ""
        results = self.body(jaxpr, values)
        for name, value in before.items():
            setattr(builder, name, value)
        return results

    def call(
        self,
        builder: Builder,
        jaxpr: ClosedJaxpr,
        values: Sequence[ir.Value],
        name: str,
        cache_key: Hashable,
    ) -> list[ir.Value]:
        consts = tuple([id(c) for c in jaxpr.consts])
        key = (id(jaxpr.jaxpr), consts, builder.platforms, cache_key)
        function = self.functions.get(key)
        if function is None:
            function = _Function(self.unique_symbol(name), jaxpr, builder.platforms)
            self.functions[key] = function
            # The body comes later, from a queue: calls may nest deeper than Python's stack.
            self.pending.append(function)
        ordered = ordered_effects(jaxpr.effects)
        location = builder.location
        traceback = None if builder.equation is None else builder.equation.traceback
        builder.location = builder.locations.named(
            f"{builder.name_stack}jit({name})", traceback
        )
        results = builder.call(
            function.symbol,
            [
                *([] if builder.platform_index is None else [builder.platform_index]),
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

    def trace(self, function: Callable[..., Any], avals: Sequence[Any]) -> ClosedJaxpr:
        def flat(*args: Any) -> list[Any]:
            results = function(*args)
            return list(results) if isinstance(results, (list, tuple)) else [results]

        name = getattr(function, "__name__", type(function).__name__)
        return stage(flat, avals, DebugInfo("lowering", name))

    # Functions

    def unique_symbol(self, name: str) -> str:
        """`name`, with a number where the module has a function of that name."""
        name = _fit(name)
        count = self.symbols.get(name)
        if count is None:
            self.symbols[name] = 0
            return name
        self.symbols[name] = count + 1
        return self.unique_symbol(f"{name}_{count}")

    def main(
        self,
        closed: ClosedJaxpr,
        arguments: Sequence[dict[str, Any]],
        results: Sequence[dict[str, Any]],
        names: Sequence[str | None],
    ) -> None:
        """Make the entry function."""
        builder = self.builder
        unknown = builder.locations.unknown
        leading = self.leading_avals(closed)
        block, function = self.function(
            "main",
            [*leading, *closed.in_avals],
            closed.out_avals,
            [
                *(unknown for _ in leading),
                *(unknown if n is None else ir.Location.name(n, unknown) for n in names),
            ],
        )
        if any(arguments):
            function.attributes["arg_attrs"] = builder.array([*({} for _ in leading), *arguments])
        if any(results):
            function.attributes["res_attrs"] = builder.array(results)
        with ir.InsertionPoint(block):
            values = self.bind_leading(closed, list(block.arguments))
            builder.ops("func.return", self.body(closed, values), ())

    def emit_pending(self) -> None:
        """Make the bodies of the functions that are called; they may call further ones."""
        builder = self.builder
        while self.pending:
            function = self.pending.popleft()
            closed = function.closed
            builder.equation = None
            builder.location = builder.locations.unknown
            # The compiler puts the name of the call before the names inside the function.
            builder.name_stack = builder.scope = ""
            builder.platforms = function.platforms
            ordered = ordered_effects(closed.effects)
            tokens = [abstract_token for _ in ordered]
            avals = [*self.leading_avals(closed), *tokens, *closed.in_avals]
            block, operation = self.function(
                function.symbol,
                avals,
                [*tokens, *closed.out_avals],
                [builder.locations.unknown] * len(avals),
            )
            operation.attributes["sym_visibility"] = ir.StringAttr.get("private")
            with ir.InsertionPoint(block):
                values = self.bind_leading(closed, list(block.arguments))
                count = len(ordered)
                builder.tokens = dict(zip(ordered, values[:count], strict=True))
                results = self.body(closed, values[count:])
                builder.ops(
                    "func.return", [*(builder.token(e) for e in ordered), *results], ()
                )

    def function(
        self, symbol: str, avals: Sequence[Any], outs: Sequence[Any], locations: Sequence[Any]
    ) -> tuple[ir.Block, ir.Operation]:
        """An empty function at the end of the module, public until said otherwise."""
        types = self.builder.types
        arguments = [types[a] for a in avals]
        kind = ir.FunctionType.get(arguments, [types[a] for a in outs])
        operation = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(symbol),
                "function_type": ir.TypeAttr.get(kind),
                "sym_visibility": ir.StringAttr.get("public"),
            },
            regions=1,
            loc=self.builder.locations.unknown,
            ip=ir.InsertionPoint(self.module.body),
        )
        return operation.regions[0].blocks.append(*arguments, arg_locs=locations), operation

    def leading_avals(self, closed: ClosedJaxpr) -> list[Any]:
        """Avals of what every function takes before tokens and arguments."""
        index = [_index_aval] if len(self.all_platforms) > 1 else []
        return [*index, *(aval_of(c) for c in self.large.values(closed))]

    def bind_leading(self, closed: ClosedJaxpr, values: list[ir.Value]) -> list[ir.Value]:
        """Note the leading arguments of the function being made; the other arguments are left."""
        if len(self.all_platforms) > 1:
            self.builder.platform_index = values.pop(0)
        large = self.large.values(closed)
        self.constants = {id(c): v for c, v in zip(large, values, strict=False)}
        return values[len(large) :]

    # Equations

    def body(self, closed: ClosedJaxpr, values: Sequence[ir.Value]) -> list[ir.Value]:
        """Lower the equations of a jaxpr at the insertion point."""
        jaxpr, builder = closed.jaxpr, self.builder
        env: dict[Any, ir.Value] = dict(zip(jaxpr.invars, values, strict=True))
        for var, const in zip(jaxpr.constvars, closed.consts, strict=True):
            value = self.constants.get(id(const))
            env[var] = builder.constant(host_value(const), var.aval) if value is None else value
        self.equations(jaxpr, env)
        return [
            builder.constant(v.val, v.aval) if type(v) is Literal else env[v]
            for v in jaxpr.outvars
        ]

    def literal(self, literal: Literal, made: dict[Any, ir.Value]) -> ir.Value:
        """The value of a literal, made once for each block of operations."""
        value = literal.val
        kind = type(value)
        if kind is not float and kind is not int and kind is not bool:
            return self.builder.constant(value, literal.aval)
        # Zero equals negative zero: the sign has to be part of the key.
        key = (literal.aval, kind, value, value == 0 and str(value))
        found = made.get(key)
        if found is None:
            found = made[key] = self.builder.constant(value, literal.aval)
            self.builder.literals[id(found)] = {}
        return found

    def equations(self, jaxpr: Jaxpr, env: dict[Any, ir.Value]) -> None:
        """The loop in which lowering spends its time."""
        builder = self.builder
        prefix = builder.name_stack
        made: dict[Any, ir.Value] = {}
        builder.literals = {}
        rules = self.rules
        if builder.platforms != self.all_platforms:
            rules = rules.for_platform(*builder.platforms)
        named = ir.Location.name
        of_traceback = builder.locations.of_traceback
        unknown = builder.locations.unknown
        for eqn in jaxpr.eqns:
            primitive = eqn.primitive
            invars, outvars = eqn.invars, eqn.outvars
            builder.equation = eqn
            builder.avals_in = tuple([v.aval for v in invars])
            builder.avals_out = tuple([v.aval for v in outvars])
            traceback = eqn.traceback
            builder.location = named(
                prefix + primitive.name, unknown if traceback is None else of_traceback(traceback)
            )
            try:
                result = rules[primitive](
                    builder,
                    *[
                        self.literal(v, made) if type(v) is Literal else env[v]
                        for v in invars
                    ],
                    **eqn.params,
                )
                if len(outvars) == 1:
                    kind = type(result)
                    env[outvars[0]] = (
                        _only(result) if kind is list or kind is tuple else result
                    )
                else:
                    env.update(zip(outvars, result, strict=True))
            except Exception as error:
                explain_failure(error, eqn)
                raise


def _only(results: Sequence[ir.Value]) -> ir.Value:
    if len(results) != 1:
        raise TypeError(f"the lowering rule returned {len(results)} values for one result")
    return results[0]
