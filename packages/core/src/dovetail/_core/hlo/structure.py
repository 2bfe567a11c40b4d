"""Common operations: shapes, conversions, comparisons, arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.hlo.dynamic_shapes import DynamicShapeBuilder, has_symbols
from dovetail._core.hlo.mlir import Value
from dovetail._core.ir.avals import make_aval, physical_aval
from dovetail._core.ir.dimensions import Size

__all__ = ["StructuralBuilder"]


class StructuralBuilder(DynamicShapeBuilder):
    """Shape operations.

    Dimensions are those of avals; the extra ones of an extended dtype's data are added here.
    """

    def broadcast_in_dim(self, x: Value, out: Any, dimensions: Sequence[int]) -> Value:
        """Dimension ``i`` of `x` becomes dimension ``dimensions[i]`` of the result."""
        extra = self.physical_dimensions(out)
        if extra:
            dimensions = (*dimensions, *range(out.ndim, out.ndim + len(extra)))
        if out.symbolic:
            return self.spread(x, out, dimensions)
        attributes = {"broadcast_dimensions": self.i64_array(dimensions)}
        return self.emit("stablehlo.broadcast_in_dim", [x], out, attributes)

    def broadcast_scalar(self, x: Value, out: Any) -> Value:
        """A scalar in every element of `out`; `x` itself if `out` is a scalar."""
        return self.broadcast_in_dim(x, out, ()) if out.ndim else x

    def broadcast_operands(self, values: Sequence[Value], out: Any) -> Sequence[Value]:
        """Broadcast the operands of the current equation to its elementwise result `out`.

        Scalars, and dimensions of size one, are repeated.
        """
        assert self.equation is not None
        shape = out.shape
        for operand in self.equation.invars:
            if operand.aval.shape != shape:
                break
        else:
            return values
        return [
            value if operand.aval.shape == shape else self._spread(value, operand.aval, out)
            for value, operand in zip(values, self.equation.invars, strict=True)
        ]

    def _spread(self, value: Value, aval: Any, out: Any) -> Value:
        wide = make_aval(out.shape, aval.dtype)
        if aval.shape:
            return self.broadcast_in_dim(value, wide, range(out.ndim))
        broadcasts = self.literals.get(id(value))
        if broadcasts is None:
            return self.broadcast_in_dim(value, wide, ())
        # Programs use few literals, and use them often.
        broadcast = broadcasts.get(wide)
        if broadcast is None:
            broadcast = broadcasts[wide] = self.broadcast_in_dim(value, wide, ())
        return broadcast

    def reshape(self, x: Value, out: Any) -> Value:
        """The same elements in another shape."""
        if out.symbolic:
            return self.op("stablehlo.dynamic_reshape", [x, self.shape(out)], out)
        return self.op("stablehlo.reshape", [x], out)

    def transpose(self, x: Value, out: Any, permutation: Sequence[int]) -> Value:
        """Dimension ``i`` of the result is dimension ``permutation[i]`` of `x`."""
        extra = self.physical_dimensions(out)
        if extra:
            permutation = (*permutation, *range(out.ndim, out.ndim + len(extra)))
        attributes = {"permutation": self.i64_array(permutation)}
        return self.emit("stablehlo.transpose", [x], out, attributes)

    def convert(self, x: Value, from_aval: Any, out: Any) -> Value:
        """The conversion that NumPy's ``astype`` does.

        To bool: whether the value is not zero. From complex to real: the real part.
        """
        old, new = from_aval.dtype, out.dtype
        if old == new:
            return x
        if new == np.bool_ and old != dtypes.float0:
            zero = self.constant(0, from_aval)
            return self.compare(x, zero, "NE", from_aval)
        if dtypes.issubdtype(old, np.complexfloating) and not dtypes.issubdtype(
            new, np.complexfloating
        ):
            part = np.dtype(np.float32 if old == np.complex64 else np.float64)
            x = self.op("stablehlo.real", [x], make_aval(out.shape, part))
            if part == new:
                return x
        return self.op("stablehlo.convert", [x], out)

    def integer(self, size: Size, aval: Any) -> Value:
        """A size, which may be symbolic, as a scalar of the dtype of `aval`."""
        if type(size) is int:
            return self.constant(size, aval)
        return self.convert(self.size(size), self.size_aval, aval)

    def compare(
        self,
        x: Value,
        y: Value,
        direction: str,
        operand_aval: Any,
        total_order: bool = False,
    ) -> Value:
        """Elementwise comparison.

        Args:
            x: left operand.
            y: right operand, of the same type.
            direction: ``EQ NE LT LE GT GE``.
            operand_aval: aval of both operands.
            total_order: order floats as -NaN < -inf < ... < -0.0 < 0.0 < ... < inf < NaN.
        """
        attributes = self.comparison(direction, operand_aval, total_order)
        return self.emit("stablehlo.compare", [x, y], self.mask(operand_aval), attributes)

    def select(self, predicate: Value, x: Value, y: Value, out: Any) -> Value:
        """`x` where `predicate` (of the shape of `out`, or a scalar) is true, `y` elsewhere."""
        extra = self.physical_dimensions(out)
        if extra and predicate.type.rank:
            wide = make_aval(out.shape + extra, np.dtype(bool))
            predicate = self.broadcast_in_dim(predicate, wide, range(out.ndim))
        return self.op("stablehlo.select", [predicate, x, y], out)

    def iota(self, out: Any, dimension: int) -> Value:
        """The position along a dimension."""
        if out.symbolic:
            attributes = {"iota_dimension": dimension}
            return self.op("stablehlo.dynamic_iota", [self.shape(out)], out, attributes)
        return self.op("stablehlo.iota", (), out, {"iota_dimension": dimension})

    def slice(
        self,
        x: Value,
        out: Any,
        start: Sequence[int],
        limit: Sequence[int],
        strides: Sequence[int] | None = None,
    ) -> Value:
        """Elements from `start` to before `limit` of each dimension."""
        steps = (1,) * len(start) if strides is None else tuple(strides)
        extra = self.physical_dimensions(out)
        if extra:
            start, limit = (*start, *(0 for _ in extra)), (*limit, *extra)
            steps += (1,) * len(extra)
        if out.symbolic or has_symbols(start, limit):
            return self.part(x, out, start, limit, steps)
        attributes = {
            "start_indices": self.i64_array(start),
            "limit_indices": self.i64_array(limit),
            "strides": self.i64_array(steps),
        }
        return self.emit("stablehlo.slice", [x], out, attributes)

    def concatenate(self, operands: Sequence[Value], out: Any, dimension: int) -> Value:
        """The operands, one after another, along a dimension."""
        values, whole = self._in_whole_bytes(operands, out)
        joined = self.op("stablehlo.concatenate", values, whole, {"dimension": dimension})
        return self.convert(joined, whole, out)

    def pad(
        self,
        x: Value,
        padding_value: Value,
        out: Any,
        low: Sequence[int],
        high: Sequence[int],
        interior: Sequence[int] | None = None,
    ) -> Value:
        """`x` padded before, after and between the elements of each dimension."""
        if self.physical_dimensions(out):
            raise TypeError("values of an extended dtype cannot be padded: no value fills the gap")
        values, whole = self._in_whole_bytes([x, padding_value], out)
        if has_symbols(low, high):
            between = (0,) * len(low) if interior is None else interior
            padded = self.padded(values, whole, (low, high, between))
            return self.convert(padded, whole, out)
        padded = self.op(
            "stablehlo.pad",
            values,
            whole,
            {
                "edge_padding_low": self.i64_array(low),
                "edge_padding_high": self.i64_array(high),
                "interior_padding": self.i64_array(
                    (0,) * len(low) if interior is None else interior
                ),
            },
        )
        return self.convert(padded, whole, out)

    def _in_whole_bytes(self, values: Sequence[Value], out: Any) -> tuple[Sequence[Value], Any]:
        """Values of the dtype of `out`, and `out`, in a dtype of whole bytes.

        XLA:CPU has kernels that cannot write parts of bytes, and end the process.
        """
        dtype = dtypes.whole_bytes(out.dtype)
        if dtype == out.dtype:
            return values, out
        if out.symbolic:
            return values, out  # it is not known for which platform this is
        avals = [make_aval(tuple(v.type.shape), out.dtype) for v in values]
        wide = [
            self.convert(v, a, a.update(dtype=dtype)) for v, a in zip(values, avals, strict=True)
        ]
        return wide, out.update(dtype=dtype)

    def dynamic_slice(self, x: Value, out: Any, starts: Sequence[Value]) -> Value:
        """A part of `x` of the shape of `out`; `starts` are scalars known at run time."""
        extra = self.physical_dimensions(out)
        if out.symbolic:
            return self.part_at(x, physical_aval(out), self._with_zeros(starts, len(extra)))
        return self.op(
            "stablehlo.dynamic_slice",
            [x, *self._with_zeros(starts, len(extra))],
            out,
            {"slice_sizes": self.i64_array((*out.shape, *extra))},
        )

    def dynamic_update_slice(
        self, x: Value, update: Value, out: Any, starts: Sequence[Value]
    ) -> Value:
        """`x` with a part of it replaced by `update`, at positions known at run time."""
        extra = self.physical_dimensions(out)
        return self.op(
            "stablehlo.dynamic_update_slice",
            [x, update, *self._with_zeros(starts, len(extra))],
            out,
        )

    def _with_zeros(self, starts: Sequence[Value], count: int) -> list[Value]:
        # All start indices of one operation must be of the same type.
        if not count:
            return list(starts)
        if not starts:
            zero = self.constant(0, make_aval((), np.dtype(np.int32)))
        else:
            zero = self.op("stablehlo.xor", [starts[0], starts[0]], starts[0].type)
        return [*starts, *[zero] * count]

    def reverse(self, x: Value, out: Any, dimensions: Sequence[int]) -> Value:
        """The elements in the opposite order along some dimensions."""
        return self.op("stablehlo.reverse", [x], out, {"dimensions": self.i64_array(dimensions)})

    def bitcast_convert(self, x: Value, out: Any) -> Value:
        """The same bits as another dtype."""
        return self.op("stablehlo.bitcast_convert", [x], out)

    def complex(self, real: Value, imaginary: Value, out: Any) -> Value:
        """Complex numbers from their parts."""
        return self.op("stablehlo.complex", [real, imaginary], out)

    def real(self, x: Value, out: Any) -> Value:
        """The real part of complex numbers."""
        return self.op("stablehlo.real", [x], out)

    def imag(self, x: Value, out: Any) -> Value:
        """The imaginary part of complex numbers."""
        return self.op("stablehlo.imag", [x], out)

    def clamp(self, low: Value, x: Value, high: Value, out: Any) -> Value:
        """`x`, but not below `low` nor above `high`."""
        return self.op("stablehlo.clamp", [low, x, high], out)

    def optimization_barrier(self, values: Sequence[Value], outs: Sequence[Any]) -> list[Value]:
        """The values, behind a barrier that the compiler moves nothing across."""
        return self.ops("stablehlo.optimization_barrier", values, outs)

    # Arithmetic: operands and result have the same type.

    def add(self, x: Value, y: Value, out: Any) -> Value:
        """``x + y``."""
        return self.op("stablehlo.add", [x, y], out)

    def sub(self, x: Value, y: Value, out: Any) -> Value:
        """``x - y``."""
        return self.op("stablehlo.subtract", [x, y], out)

    def mul(self, x: Value, y: Value, out: Any) -> Value:
        """``x * y``."""
        return self.op("stablehlo.multiply", [x, y], out)

    def div(self, x: Value, y: Value, out: Any) -> Value:
        """``x / y``; for integers rounded towards zero."""
        return self.op("stablehlo.divide", [x, y], out)

    def rem(self, x: Value, y: Value, out: Any) -> Value:
        """The remainder of the division rounded towards zero."""
        return self.op("stablehlo.remainder", [x, y], out)

    def max(self, x: Value, y: Value, out: Any) -> Value:
        """The larger; NaN where either is."""
        return self.op("stablehlo.maximum", [x, y], out)

    def min(self, x: Value, y: Value, out: Any) -> Value:
        """The smaller; NaN where either is."""
        return self.op("stablehlo.minimum", [x, y], out)

    def and_(self, x: Value, y: Value, out: Any) -> Value:
        """``x & y``."""
        return self.op("stablehlo.and", [x, y], out)

    def or_(self, x: Value, y: Value, out: Any) -> Value:
        """``x | y``."""
        return self.op("stablehlo.or", [x, y], out)

    def xor(self, x: Value, y: Value, out: Any) -> Value:
        """``x ^ y``."""
        return self.op("stablehlo.xor", [x, y], out)

    def not_(self, x: Value, out: Any) -> Value:
        """``~x``."""
        return self.op("stablehlo.not", [x], out)

    def neg(self, x: Value, out: Any) -> Value:
        """``-x``."""
        return self.op("stablehlo.negate", [x], out)
