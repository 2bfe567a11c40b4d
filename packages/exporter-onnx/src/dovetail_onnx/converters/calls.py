"""Calls of functions, whose bodies are written in place of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dovetail.extend import LoweringTable
from dovetail_onnx.conversion import Context
from dovetail_onnx.graph import Value

table = LoweringTable()


def _call(parameter: str) -> Callable[..., list[Value]]:
    """The converter of a call of the jaxpr in a parameter."""

    def convert(c: Context, *operands: Value, **params: Any) -> list[Value]:
        return c.inline(params[parameter], operands)

    return convert


for _primitive, _parameter in {
    "jit": "jaxpr",
    "linear_call": "callee",
    "remat2": "jaxpr",
    "composite": "jaxpr",
    "custom_jvp_call": "call_jaxpr",
    "custom_vjp_call": "call_jaxpr",
    "custom_vmap_call": "call",
}.items():
    table.rule(_primitive)(_call(_parameter))


@table.rule("custom_linear_solve")
def custom_linear_solve(
    c: Context, *operands: Value, const_lengths: Any, jaxprs: Any
) -> list[Value]:
    """The solution of linear equations, by the function that solves them."""
    before = const_lengths.matvec + const_lengths.vecmat
    constants = operands[before : before + const_lengths.solve]
    given = operands[sum(const_lengths) :]
    return c.inline(jaxprs.solve, [*constants, *given])


@table.rule("custom_root")
def custom_root(c: Context, *operands: Value, const_lengths: Any, jaxprs: Any) -> list[Value]:
    """The solution of equations, by the function that finds it."""
    before = const_lengths.f
    constants = operands[before : before + const_lengths.solve]
    given = operands[sum(const_lengths) :]
    return c.inline(jaxprs.solve, [*constants, *given])[: len(c.eqn.outvars)]


@table.rule("dce_sink")
def dce_sink(c: Context, *operands: Value, **params: Any) -> list[Value]:
    """Nothing: it keeps values alive that a model has no use for."""
    return []
