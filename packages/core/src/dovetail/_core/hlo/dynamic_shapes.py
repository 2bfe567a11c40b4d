"""Operations on arrays with sizes that are known only when the program is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.base import config
from dovetail._core.base.errors import InconclusiveDimensionOperation
from dovetail._core.hlo.mlir import Location, Value
from dovetail._core.hlo.operations import OperationBuilder
from dovetail._core.ir.avals import make_aval, physical_aval
from dovetail._core.ir.dimensions import Size, SymbolicDimension, fold

__all__ = ["DynamicShapeBuilder", "has_symbols"]

_operations: Final = {"add": "add", "mul": "multiply", "max": "maximum", "min": "minimum"}
_BOOL: Final = np.dtype(bool)


def has_symbols(*sizes: Sequence[Size]) -> bool:
    """Whether one of the sizes in some shapes is symbolic."""
    return any(type(n) is SymbolicDimension for shape in sizes for n in shape)


class DynamicShapeBuilder(OperationBuilder):
    """Sizes as values, and the operations that take them as operands.

    Attributes:
        dimension_values: the values of the dimension variables in the function that is emitted.
    """

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        self.dimension_values: Mapping[str, Value] = {}

    @property
    def size_aval(self) -> Any:
        """The aval of a size as a value."""
        return make_aval((), np.dtype(np.int64 if config.enable_x64.value else np.int32))

    def size(self, size: Size) -> Value:
        """A size as a scalar."""
        return self.expression(size, self.dimension_values)

    def expression(self, size: Size, variables: Mapping[str, Value]) -> Value:
        """A size as a scalar, for given values of the variables."""
        aval = self.size_aval

        def variable(name: str) -> Value:
            value = variables.get(name)
            if value is None:
                raise InconclusiveDimensionOperation(
                    f"the dimension variable {name} has no value here: the size {size} is used in "
                    "a program that no argument gives it to. Sizes are symbolic in functions that "
                    "dovetail.export exports, and stand in the shapes of their arguments"
                )
            return value

        def constant(value: int) -> Value:
            return super(DynamicShapeBuilder, self).constant(value, aval)

        def apply(name: str, x: Value, y: Value) -> Value:
            if name in _operations:
                return self.op(_operations[name], [x, y], aval)
            # Of operations that the refinement of shapes computes.
            remainder = self.op("remainder", [x, y], aval)
            uneven = self._differs(remainder, constant(0), aval)
            sign, other = (self.op("sign", [v], aval) for v in (remainder, y))
            wrong = self.op("and", [uneven, self._differs(sign, other, aval)], _scalar)
            if name == "mod":
                return self.op(
                    "select", [wrong, self.op("add", [remainder, y], aval), remainder], aval
                )
            quotient = self.op("divide", [x, y], aval)
            less = self.op("subtract", [quotient, constant(1)], aval)
            return self.op("select", [wrong, less, quotient], aval)

        return fold(size, variable, constant, apply)

    def _differs(self, x: Value, y: Value, aval: Any) -> Value:
        return self.emit("stablehlo.compare", [x, y], _scalar, self.comparison("NE", aval, False))

    def sizes(self, sizes: Sequence[Size]) -> Value:
        """Sizes, or positions, as a tensor of rank 1: the form in which operations take shapes."""
        dtype = self.size_aval.dtype
        out = make_aval((len(sizes),), dtype)
        if not has_symbols(sizes):
            return super().constant(np.array(sizes, dtype), out)
        return self.tensor_of([self.size(n) for n in sizes])

    def tensor_of(self, scalars: Sequence[Value]) -> Value:
        """Scalars of the dtype of sizes as a tensor of rank 1."""
        dtype = self.size_aval.dtype
        one = make_aval((1,), dtype)
        parts = [self.op("reshape", [x], one) for x in scalars]
        out = make_aval((len(parts),), dtype)
        if not parts:
            return super().constant(np.array([], dtype), out)
        return parts[0] if len(parts) == 1 else self.op("concatenate", parts, out, {"dimension": 0})

    def shape(self, aval: Any) -> Value:
        """The sizes of an aval's data as a tensor of rank 1."""
        return self.sizes(physical_aval(aval).shape)

    def constant(self, value: Any, aval: Any = None) -> Value:
        if aval is None or not aval.symbolic:
            return super().constant(value, aval)
        if np.ndim(value):
            raise ValueError(f"a constant of shape {np.shape(value)} cannot have the type {aval}")
        scalar = super().constant(value, make_aval((), physical_aval(aval).dtype))
        return self.spread(scalar, aval, ())

    constant.__doc__ = OperationBuilder.constant.__doc__

    def spread(self, x: Value, out: Any, dimensions: Sequence[int]) -> Value:
        """`broadcast_in_dim` to a shape with symbolic sizes."""
        attributes = {"broadcast_dimensions": self.i64_array(dimensions)}
        return self.emit(
            "stablehlo.dynamic_broadcast_in_dim", [x, self.shape(out)], out, attributes
        )

    def size_along(self, x: Value, dimension: int) -> Value:
        """The size of a dimension of a value."""
        aval = self.size_aval
        if not x.type.is_dynamic_dim(dimension):
            return super().constant(x.type.shape[dimension], aval)
        return self.op("convert", [self.measured(x, dimension)], aval)

    def measured(self, x: Value, dimension: int) -> Value:
        """The size of a dimension as an int32, which the operation gives."""
        return self.op("get_dimension_size", [x], _measure, {"dimension": dimension})

    def part(
        self, x: Value, out: Any, start: Sequence[Size], limit: Sequence[Size], steps: Sequence[int]
    ) -> Value:
        """`slice` with symbolic positions."""
        bounds = [self.sizes(start), self.sizes(limit), self.sizes(steps)]
        return self.op("real_dynamic_slice", [x, *bounds], out)

    def part_at(self, x: Value, out: Any, starts: Sequence[Value]) -> Value:
        """`dynamic_slice` of symbolic sizes.

        Args:
            x: the operand.
            out: the physical aval of the result.
            starts: scalars; the slice is moved into the operand.
        """
        aval = self.size_aval
        rank = len(starts)
        vector = make_aval((rank,), aval.dtype)
        wide = [
            start if start.type == self.type(aval) else self.op("convert", [start], aval)
            for start in starts
        ]
        # In this form, of vectors, it is known for a dynamic slice once sizes are.
        have = self.tensor_of([self.size_along(x, dimension) for dimension in range(rank)])
        lengths = self.sizes(out.shape)
        most = self.op("subtract", [have, lengths], vector)
        first = self.op("clamp", [self.sizes((0,) * rank), self.tensor_of(wide), most], vector)
        last = self.op("add", [first, lengths], vector)
        return self.op("real_dynamic_slice", [x, first, last, self.sizes((1,) * rank)], out)

    def padded(self, values: Sequence[Value], out: Any, edges: Sequence[Sequence[Size]]) -> Value:
        """`pad` with symbolic widths: before, after and between the elements.

        Args:
            values: the operand, and what to fill with.
            out: the aval of the result.
            edges: the three kinds of widths.
        """
        return self.op("dynamic_pad", [*values, *map(self.sizes, edges)], out)


_scalar: Final = make_aval((), _BOOL)
_measure: Final = make_aval((), np.dtype(np.int32))
