"""Quotients that are a softmax, which is one operator in ONNX."""

from __future__ import annotations

from dovetail_onnx.graph import Graph, Value

__all__ = ["as_softmax"]


def as_softmax(g: Graph, numerator: Value, denominator: Value) -> Value | None:
    """The softmax that a quotient is; None if it is none.

    It is ``exp(x - max(x)) / sum(exp(x - max(x)))`` along one dimension. Runtimes compute it in one
    pass, and are slow at exponentials of numbers far below zero, which masks make.

    Args:
        g: the graph.
        numerator: what is divided.
        denominator: what it is divided by.
    """
    exponent = g.source(numerator, "Exp")
    difference = exponent and exponent[0] and g.source(exponent[0], "Sub")
    if not difference:
        return None
    x, shift = difference
    if x is None or shift is None or x.shape != numerator.shape:
        return None
    axis = _reduced_along(g, denominator, "ReduceSum", numerator)
    if axis is None or axis != _reduced_along(g, shift, "ReduceMax", x):
        return None
    return g.op("Softmax", x, axis=axis)


def _reduced_along(g: Graph, value: Value, operator: str, of: Value) -> int | None:
    """The one dimension along which a value is a reduction of another one, and is repeated."""
    while value.shape == of.shape and (expanded := g.source(value, "Expand")):
        assert expanded[0] is not None
        value = expanded[0]
    for inner in (g.source(value, "Unsqueeze"), g.source(value, "Reshape")):
        if not inner or inner[0] is None:
            continue
        reduced = inner[0]
        # What is NaN where there is one: see the converter of extrema.
        chosen = g.source(reduced, "Where")
        if chosen and chosen[2] is not None:
            reduced = chosen[2]
        found = g.source(reduced, operator)
        if not found or found[0] is None or found[0].name != of.name:
            return None
        if found[1] is None or found[1].known is None:
            return None
        axes = [int(axis) for axis in found[1].known]
        kept = tuple([1 if d in axes else n for d, n in enumerate(of.shape)])
        return axes[0] if len(axes) == 1 and value.shape == kept else None
    return None
