"""Families of primitives: base classes that carry the rules their members share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from dovetail._core.basis.elementwise import Elementwise, add_tangents, mul
from dovetail._core.basis.structural import broadcast_to
from dovetail._core.ir.avals import ShapedArray, shape_of
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero


class Unary(Elementwise):
    """Elementwise with one operand; differentiable members override `derivative` or `tangent`."""

    def derivative(self, x: Any, y: Any, **params: Any) -> Any:
        """The derivative at `x`, with result `y`."""
        self._missing("jvp")

    def tangent(self, t: Any, x: Any, y: Any, **params: Any) -> Any:
        """The tangent of the result for a tangent `t`; by default `t` times `derivative`."""
        return mul(t, self.derivative(x, y, **params))

    def has_rule(self, rule: str) -> bool:
        cls = type(self)
        if rule == "jvp":
            return (
                cls.jvp is not Unary.jvp
                or cls.derivative is not Unary.derivative
                or cls.tangent is not Unary.tangent
            )
        return super().has_rule(rule)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        (x,), (t,) = primals, tangents
        y = self.bind(x, **params)
        if type(t) is Zero:
            return y, Zero.of(y)
        return y, self.tangent(t, x, y, **params)


class Binary(Elementwise):
    """Elementwise with two operands.

    Differentiable members override `tangent_left` and `tangent_right`.
    """

    def tangent_left(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        """Tangent of the result `out` for a tangent `t` of the left operand."""
        self._missing("jvp")

    def tangent_right(self, t: Any, x: Any, y: Any, out: Any) -> Any:
        """Tangent of the result `out` for a tangent `t` of the right operand."""
        self._missing("jvp")

    def has_rule(self, rule: str) -> bool:
        cls = type(self)
        if rule == "jvp":
            return cls.jvp is not Binary.jvp or cls.tangent_left is not Binary.tangent_left
        return super().has_rule(rule)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        (x, y), (s, t) = primals, tangents
        out = self.bind(x, y, **params)
        shape = shape_of(out)
        tangent: Any = Zero.of(out)
        if type(s) is not Zero:
            tangent = broadcast_to(self.tangent_left(s, x, y, out), shape)
        if type(t) is not Zero:
            tangent = add_tangents(tangent, broadcast_to(self.tangent_right(t, x, y, out), shape))
        return out, tangent


class NoGradient(Primitive):
    """A primitive whose result is locally constant (integers, comparisons): its tangent is zero."""

    accepts_zeros = True

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any
    ) -> tuple[Any, Any]:
        out = self.bind(*primals, **params)
        if self.multiple_results:
            return out, [Zero.of(o) for o in out]
        return out, Zero.of(out)


class Discrete(NoGradient, Elementwise):
    """Elementwise, with a locally constant result: bit operations, rounding, predicates."""


class Compare(Discrete):
    """A comparison of two operands; members set `direction`: EQ, NE, LT, LE, GT or GE."""

    direction: ClassVar[str]
    kinds = "biufc"

    def result_dtype(self, *avals: ShapedArray, **params: Any) -> Any:
        return np.dtype(bool)

    def abstract(self, *avals: Any, **params: Any) -> Any:
        return super().abstract(*avals, **params).strengthen()

    def emit(self, context: Any, *values: Any, out: ShapedArray, **params: Any) -> Any:
        operand = out.update(dtype=context.avals_in[0].dtype)
        return context.compare(*values, self.direction, operand)
