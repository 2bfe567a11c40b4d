"""Goes through a jaxpr and has each equation converted by the rule for its primitive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dovetail.extend import ClosedJaxpr, JaxprEqn, Literal, ShapedArray
from dovetail.extend.programs import bodies, numbers_of, place_of
from dovetail.extend.random_keys import is_key, unwrap
from dovetail_onnx.errors import ExportError, Refusal
from dovetail_onnx.graph import Graph, Operand, Value
from dovetail_onnx.types import F32, DType, numeric, onnx_type

__all__ = ["Context", "Conversion"]


@dataclass(frozen=True, slots=True)
class Context:
    """What a converter gets, before its operands.

    Attributes:
        graph: the graph.
        eqn: the equation.
        conversion: converts the jaxprs in the equation's parameters.
    """

    graph: Graph
    eqn: JaxprEqn
    conversion: Conversion

    @property
    def outs(self) -> list[ShapedArray]:
        """The types of the results."""
        return [numeric(v.aval) for v in self.eqn.outvars]

    @property
    def dtype(self) -> DType:
        """The element type of the first result."""
        dtype: DType = self.outs[0].dtype
        return dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        return self.outs[0].shape

    def op(self, operator: str, *operands: Operand, **words: Any) -> Value:
        """Apply an operator: see `Graph.op`."""
        return self.graph.op(operator, *operands, **words)

    def inline(self, closed: ClosedJaxpr, operands: Sequence[Value]) -> list[Value]:
        """Convert a jaxpr in place of a call of it."""
        return self.conversion.convert(closed, operands)

    def each(self, closed: ClosedJaxpr, operands: Sequence[Value]) -> list[Value]:
        """Apply a function of numbers to the elements of arrays."""
        return self.conversion.convert_each(closed, operands)


class Conversion:
    """The conversion of one program.

    Args:
        graph: the graph to build.
        rules: converters, by the name of the primitive.
    """

    def __init__(self, graph: Graph, rules: Mapping[str, Any]) -> None:
        self.graph = graph
        self._rules = rules
        self._problems: dict[tuple[str, str], list[str]] = {}
        self._elementwise = False
        self._place = ""

    def convert(self, closed: ClosedJaxpr, operands: Sequence[Value]) -> list[Value]:
        """Convert the equations of a jaxpr.

        What is in the way is kept for `check`, and values stand for the results meanwhile.

        Args:
            closed: the jaxpr.
            operands: values for its parameters.

        Returns:
            Values of its results.
        """
        values: dict[Any, Value] = dict(zip(closed.jaxpr.invars, operands, strict=True))
        for var, constant in zip(closed.jaxpr.constvars, closed.consts, strict=True):
            values[var] = self._constant(constant, var.aval)

        def read(atom: Any) -> Value:
            return self._literal(atom) if isinstance(atom, Literal) else values[atom]

        for eqn in closed.jaxpr.eqns:
            results = self._results(eqn, [read(atom) for atom in eqn.invars])
            values.update(zip(eqn.outvars, results, strict=True))
        return [read(atom) for atom in closed.jaxpr.outvars]

    def convert_each(self, closed: ClosedJaxpr, operands: Sequence[Value]) -> list[Value]:
        """Convert a jaxpr of numbers for arrays of one shape, to whose elements it is applied.

        Args:
            closed: the jaxpr.
            operands: values for its parameters.
        """
        around, self._elementwise = self._elementwise, True
        try:
            results = self.convert(closed, operands)
        finally:
            self._elementwise = around
        shape = np.broadcast_shapes(*(x.shape for x in operands))
        return [self.graph.expand(x, shape) for x in results]

    def check(self, name: str) -> None:
        """Raise if anything was in the way.

        Args:
            name: the name of the program.

        Raises:
            ExportError: the text lists all of it, with the user's lines.
        """
        if self._problems:
            lines = [
                f"  {primitive}: {reason}\n    at {', '.join(dict.fromkeys(places))}"
                for (primitive, reason), places in self._problems.items()
            ]
            raise ExportError(
                f"{name} cannot be written as an ONNX model of opset {self.graph.opset}:\n"
                + "\n".join(lines)
            )

    def _literal(self, literal: Literal) -> Value:
        return self.graph.constant(np.asarray(literal.val), literal.aval.dtype)

    def _constant(self, constant: Any, aval: Any) -> Value:
        try:
            dtype = numeric(aval).dtype
            onnx_type(dtype)
        except Refusal as refusal:
            self._keep("a constant", str(refusal), "a captured value")
            return self._guess(aval)
        numbers = unwrap(constant) if is_key(constant) else constant
        return self.graph.constant(np.asarray(numbers), dtype)

    def _results(self, eqn: JaxprEqn, operands: Sequence[Value]) -> list[Value]:
        name = eqn.primitive.name
        of_keys = numbers_of(eqn)
        if of_keys is not None:
            return self._within(eqn, of_keys, operands)
        rule = self._rules.get(name)
        if rule is None:
            return self._refused(eqn, "there is no converter for this primitive")
        try:
            self._check_results(eqn)
        except Refusal as refusal:
            return self._refused(eqn, str(refusal), unless_inside=True)
        around, self.graph.place = self.graph.place, self._place or place_of(eqn)
        try:
            found = rule(Context(self.graph, eqn, self), *operands, **eqn.params)
        except Refusal as refusal:
            return self._refused(eqn, str(refusal))
        finally:
            self.graph.place = around
        results = list(found) if eqn.primitive.multiple_results else [found]
        for value, var in zip(results, eqn.outvars, strict=True):
            aval = numeric(var.aval)
            made, traced = (value.dtype, value.shape), (aval.dtype, aval.shape)
            right = made == traced or (self._elementwise and made[0] == traced[0])
            assert right, f"the converter of {name} made {made} of {traced}"
        return results

    def _within(self, eqn: JaxprEqn, closed: ClosedJaxpr, operands: Sequence[Value]) -> list[Value]:
        """Convert a jaxpr in place of an equation, whose line its operators have."""
        around, self._place = self._place, place_of(eqn)
        try:
            return self.convert(closed, operands)
        finally:
            self._place = around

    def _check_results(self, eqn: JaxprEqn) -> None:
        """Raise unless ONNX has the types of an equation's results."""
        for v in eqn.outvars:
            onnx_type(numeric(v.aval).dtype)

    def _refused(self, eqn: JaxprEqn, reason: str, *, unless_inside: bool = False) -> list[Value]:
        """Keep that an equation is in the way, and what is inside of it; results in its place.

        Args:
            eqn: the equation.
            reason: why it is in the way.
            unless_inside: whether it is only in the way if nothing inside is.
        """
        before = self._count()
        self._look_inside(eqn)
        if not unless_inside or self._count() == before:
            self._keep(eqn.primitive.name, reason, self._place or place_of(eqn))
        return [self._guess(v.aval) for v in eqn.outvars]

    def _count(self) -> int:
        return sum(map(len, self._problems.values()))

    def _look_inside(self, eqn: JaxprEqn) -> None:
        """Keep what is in the way inside an equation that is itself in the way."""
        for inner in bodies(eqn).values():
            for closed in inner:
                with self.graph.body():
                    self.convert(closed, [self._guess(v.aval) for v in closed.jaxpr.invars])

    def _keep(self, primitive: str, reason: str, place: str) -> None:
        self._problems.setdefault((primitive, reason), []).append(place)

    def _guess(self, aval: Any) -> Value:
        """A value in place of one that could not be converted."""
        try:
            made = numeric(aval)
            onnx_type(made.dtype)
        except Refusal:
            made = ShapedArray(getattr(aval, "shape", ()), F32)
        return Value(self.graph.name("missing"), made.dtype, made.shape)
