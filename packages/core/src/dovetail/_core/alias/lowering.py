"""Lowering rules in JAX's form: `jax.interpreters.mlir`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from dovetail._core.base import dtypes, pytree
from dovetail._core.base.errors import MissingRuleError
from dovetail._core.hlo.builder import Builder
from dovetail._core.ir.effects import io_effect
from dovetail._core.ops.callbacks.calls import FlatCallback, call_in_program
from dovetail._core.trace.primitive import Primitive, RuntimePrimitive
from dovetail._core.transform.flattening import name_of

Rule = Callable[..., Any]


class ModuleContext:
    """What rules in JAX's form are told of the module that they write into."""

    __slots__ = ("builder", "platforms")

    def __init__(self, builder: Builder) -> None:
        self.builder = builder
        self.platforms = builder.platforms

    def add_keepalive(self, keepalive: None) -> None:
        """Do nothing: programs keep the callbacks alive that they make.

        Args:
            keepalive: what `emit_python_callback` has returned.
        """


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


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable[..., Sequence[Any]],
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[Any],
    result_avals: Sequence[Any],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> tuple[list[Any], Any, Any]:
    """The operation that calls a Python function when the program runs.

    Args:
        ctx: the context of the lowering rule.
        callback: takes arrays and returns a sequence of arrays.
        token: must be None; calls have no order.
        operands: values.
        operand_avals: their types.
        result_avals: types of the results.
        has_side_effect: whether the call must not be removed, duplicated or merged.
        returns_token: accepted for JAX's sake; has no effect.
        partitioned: whether each device makes the call, with its parts.
        sharding: must be None: one device makes the call, or each.

    Returns:
        The results, None for the token, and None for what has to be kept alive, which the program
        does itself.

    Raises:
        NotImplementedError: a token or a sharding is given, or the platform cannot call Python.
    """
    if token is not None or sharding is not None:
        raise NotImplementedError(
            "mlir.emit_python_callback: calls that have an order or a sharding are those of "
            "jax.experimental.io_callback; bind one of these in the function of mlir.lower_fun"
        )
    # Values of float0 are booleans in programs.
    avals_in, avals_out = (
        [
            aval.update(dtype=np.dtype(np.bool_)) if aval.dtype == dtypes.float0 else aval
            for aval in avals
        ]
        for avals in (operand_avals, result_avals)
    )
    flat = FlatCallback(
        lambda *args: tuple(callback(*args)),
        pytree.structure((tuple(operands), {})),
        pytree.structure((0,) * len(avals_out)),
        text=name_of(callback),
    )
    results = call_in_program(
        ctx.builder,
        operands,
        "mlir.emit_python_callback",
        flat,
        io_effect if has_side_effect else None,
        partitioned=partitioned,
        avals=(avals_in, avals_out),
    )
    return results, None, None
