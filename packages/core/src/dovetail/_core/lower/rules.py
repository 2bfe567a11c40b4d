"""The choice of an equation's lowering rule, and error messages for failing rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NoReturn

from dovetail._core.base import source
from dovetail._core.base.errors import MissingRuleError
from dovetail._core.hlo.builder import Builder
from dovetail._core.hlo.mlir import Value
from dovetail._core.hlo.platform_choice import by_platform
from dovetail._core.ir.jaxpr import JaxprEqn, ordered_effects
from dovetail._core.plugins.manager import manager
from dovetail._core.trace.primitive import Primitive

__all__ = ["Rule", "RuleTable", "explain_failure"]

#: From the builder, the operands and the parameters to a value or a list of values.
Rule = Callable[..., Any]

_NOTE: Final = "While lowering"


class RuleTable(dict[Primitive, Rule]):
    """Lowering rules by primitive, looked up on first use.

    An override precedes the platform's table, which precedes the primitive's own rule. A rule that
    returns `NotImplemented` defers to the next one. If platforms have different rules, the program
    chooses between them at run time.

    Args:
        platforms: names of platforms.
        overrides: rules by name of primitive.
        portable: whether a primitive's own rule, which every platform runs, comes before those of
            platforms.
    """

    __slots__ = ("_overrides", "_platforms", "_portable", "_tables")

    def __init__(
        self, platforms: Sequence[str], overrides: Mapping[str, Rule], portable: bool = False
    ) -> None:
        super().__init__()
        self._portable = portable
        self._platforms = tuple(platforms)
        self._overrides = overrides
        self._tables: dict[str, RuleTable] = {}

    def for_platform(self, platform: str) -> RuleTable:
        """The table of one of the platforms."""
        if self._platforms == (platform,):
            return self
        table = self._tables.get(platform)
        if table is None:
            table = self._tables[platform] = RuleTable((platform,), self._overrides, self._portable)
        return table

    def __missing__(self, primitive: Primitive) -> Rule:
        candidates = [self._candidates(primitive, platform) for platform in self._platforms]
        if all(c == candidates[0] for c in candidates):
            rule = _first_of(primitive, candidates[0], self._platforms)
        else:
            rule = self._by_platform(primitive)
        self[primitive] = rule
        return rule

    def _candidates(self, primitive: Primitive, platform: str) -> list[Rule]:
        rules = []
        if primitive.is_registered and primitive.name in self._overrides:
            rules.append(self._overrides[primitive.name])
        if self._portable and primitive.has_rule("lower"):
            return [*rules, primitive.lower]
        if primitive.is_registered:
            platform_rule = manager().lowerings(platform).get(primitive.name)
            if platform_rule is not None:
                rules.append(platform_rule)
        if primitive.has_rule("lower"):
            rules.append(primitive.lower)
        return rules

    def _by_platform(self, primitive: Primitive) -> Rule:
        rules = {platform: self.for_platform(platform)[primitive] for platform in self._platforms}

        def choose(context: Builder, *values: Value, **params: Any) -> list[Value]:
            assert context.equation is not None
            return by_platform(
                context,
                lambda platform: rules[platform](context, *values, **params),
                context.avals_out,
                ordered_effects(context.equation.effects),
            )

        return choose


def _first_of(primitive: Primitive, candidates: list[Rule], platforms: Sequence[str]) -> Rule:
    def missing(context: Builder, *values: Value, **params: Any) -> NoReturn:
        raise missing_rule(primitive, platforms, context.equation)

    # A primitive's own rule handles every case.
    rule = primitive.lower if candidates[-1:] == [primitive.lower] else missing
    for candidate in reversed(candidates):
        rule = rule if candidate == rule else _or_else(candidate, rule)
    return rule


def _or_else(special: Rule, general: Rule) -> Rule:
    def special_or_general(context: Builder, *values: Value, **params: Any) -> Any:
        result = special(context, *values, **params)
        return general(context, *values, **params) if result is NotImplemented else result

    return special_or_general


def missing_rule(
    primitive: Primitive, platforms: Sequence[str], equation: JaxprEqn | None
) -> MissingRuleError:
    """The error for an equation without a lowering rule."""
    where = "" if equation is None else f" (used at {source.describe(equation.traceback)})"
    names = " and ".join(repr(p) for p in platforms)
    return MissingRuleError(
        f"primitive {primitive.name!r} has no lowering for platform {names}{where}; a backend's "
        "LoweringTable, an extension or the method `lower` of the primitive can give it one"
    )


def explain_failure(error: Exception, eqn: JaxprEqn) -> None:
    """Add a note with the equation and the user's line to a rule's error."""
    if any(note.startswith(_NOTE) for note in getattr(error, "__notes__", ())):
        return
    operands = ", ".join(v.aval.short_name() for v in eqn.invars)
    results = ", ".join(v.aval.short_name() for v in eqn.outvars)
    error.add_note(
        f"{_NOTE} the primitive {eqn.primitive.name!r}: ({operands}) -> ({results}), "
        f"used at {source.describe(eqn.traceback)}"
    )
