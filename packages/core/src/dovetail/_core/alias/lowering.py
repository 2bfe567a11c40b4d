"""Lowering rules in JAX's form: `jax.interpreters.mlir`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from dovetail._core.base.errors import MissingRuleError
from dovetail._core.hlo.builder import Builder
from dovetail._core.trace.primitive import Primitive, RuntimePrimitive

Rule = Callable[..., Any]


class ModuleContext:
    """What rules in JAX's form are told of the module that they write into."""

    __slots__ = ("builder", "platforms")

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.platforms = builder.platforms


class LoweringRuleContext:
    """The first argument of a lowering rule in JAX's form.

    Attributes:
        builder: what our own rules get.
        module_context: what is known of the module.
        primitive: the primitive.
        avals_in: types of the operands.
        avals_out: types of the results.
    """

    def __init__(self, builder: Builder, primitive: Primitive | None, **changed: Any) -> None:
        self.builder = builder
        self.module_context = ModuleContext(builder)
        self.primitive = primitive
        self.avals_in: Sequence[Any] = builder.avals_in
        self.avals_out: Sequence[Any] = builder.avals_out
        self.tokens_in = self.tokens_out = None
        self.platforms: Sequence[str] | None = None
        vars(self).update(changed)

    def replace(self, **changes: Any) -> LoweringRuleContext:
        """A copy with other attributes."""
        return LoweringRuleContext(self.builder, self.primitive, **{**vars(self), **changes})


_rules: Final[dict[RuntimePrimitive, dict[str | None, Rule]]] = {}


def register_lowering(
    prim: Primitive,
    rule: Rule,
    platform: str | None = None,
    inline: bool = True,
    cacheable: bool = True,
) -> Rule:
    """Set the lowering rule of a primitive.

    Args:
        prim: the primitive, one's own.
        rule: maps a `LoweringRuleContext`, operands and parameters to results, in StableHLO.
        platform: the platform that it is for; None for those that have none of their own.
        inline: accepted for JAX's sake; has no effect.
        cacheable: accepted for JAX's sake; has no effect.

    Raises:
        TypeError: the primitive is not one's own.
    """
    if not isinstance(prim, RuntimePrimitive):
        raise TypeError(
            f"the primitive {prim} has its rules in its class: a backend's LoweringTable or an "
            "extension gives it another lowering (dovetail.extend.LoweringTable)"
        )
    rules = _rules.setdefault(prim, {})
    rules[platform] = rule
    prim.define("lower", partial(_lower, prim, rules))
    return rule


def _lower(
    primitive: RuntimePrimitive,
    rules: dict[str | None, Rule],
    context: Builder,
    *values: Any,
    **params: Any,
) -> Any:
    chosen = {rules.get(platform, rules.get(None)) for platform in context.platforms}
    if None in chosen or len(chosen) > 1:
        raise MissingRuleError(
            f"the primitive {primitive} has no lowering rule for all of the platforms "
            f"{', '.join(context.platforms)} in one program"
        )
    (rule,) = chosen
    assert rule is not None
    results = list(rule(LoweringRuleContext(context, primitive), *values, **params))
    return results if primitive.multiple_results else results[0]


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> Rule:
    """The lowering rule of a primitive that is computed by other primitives.

    Args:
        fun: takes the operands as arrays, and the parameters.
        multiple_results: whether it returns a sequence.
    """

    def rule(context: LoweringRuleContext, *values: Any, **params: Any) -> list[Any]:
        def function(*args: Any) -> Any:
            return fun(*args, **params)

        lowered: list[Any] = context.builder.lower_function(function, context.avals_in)(*values)
        return lowered

    return rule
