"""Goes through a jaxpr and has each equation converted by the rule for its primitive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dovetail.extend import ClosedJaxpr, JaxprEqn, Literal
from dovetail.extend.programs import bodies, place_of
from dovetail_onnx.errors import ExportError, Refusal
from dovetail_onnx.graph import Graph, Operand, Value
from dovetail_onnx.types import F32, DType, onnx_type

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
    def out(self) -> Any:
        """The aval of the first result."""
        return self.eqn.outvars[0].aval

    @property
    def dtype(self) -> DType:
        """The element type of the first result."""
        dtype: DType = self.out.dtype
        return dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the first result."""
        shape: tuple[int, ...] = self.out.shape
        return shape

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
            onnx_type(aval.dtype)
        except Refusal as refusal:
            self._keep("a constant", str(refusal), "a captured value")
            return self._guess(aval)
        return self.graph.constant(np.asarray(constant), aval.dtype)

    def _results(self, eqn: JaxprEqn, operands: Sequence[Value]) -> list[Value]:
        name = eqn.primitive.name
        rule = self._rules.get(name)
        if rule is None:
            self._keep(name, "there is no converter for this primitive", place_of(eqn))
            self._look_inside(eqn)
            return [self._guess(v.aval) for v in eqn.outvars]
        around, self.graph.place = self.graph.place, place_of(eqn)
        try:
            self._check_results(eqn)
            found = rule(Context(self.graph, eqn, self), *operands, **eqn.params)
        except Refusal as refusal:
            if bodies(eqn):
                self._look_inside(eqn)
            else:
                self._keep(name, str(refusal), place_of(eqn))
            return [self._guess(v.aval) for v in eqn.outvars]
        finally:
            self.graph.place = around
        results = list(found) if eqn.primitive.multiple_results else [found]
        for value, var in zip(results, eqn.outvars, strict=True):
            made, traced = (value.dtype, value.shape), (var.aval.dtype, var.aval.shape)
            right = made == traced or (self._elementwise and made[0] == traced[0])
            assert right, f"the converter of {name} made {made} of {traced}"
        return results

    def _check_results(self, eqn: JaxprEqn) -> None:
        """Raise unless ONNX has the types of an equation's results."""
        for v in eqn.outvars:
            onnx_type(v.aval.dtype)

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
            onnx_type(aval.dtype)
            dtype = aval.dtype
        except Refusal:
            dtype = F32
        return Value(self.graph.name("missing"), dtype, tuple(aval.shape))
