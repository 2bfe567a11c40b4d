"""Builds ONNX graphs: values with a type and a shape, operators, constants, bodies of loops.

An operator whose result is known because its operands are is left to whoever runs the model: only
constants that converters look at are known values (`Value.known`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper, numpy_helper

from dovetail_onnx.types import BOOL, I64, U64, DType, is_narrow, onnx_type, stand_in

__all__ = ["Graph", "Operand", "Value", "info", "needed", "read_by"]

Shape = tuple[int, ...]

_OF_TRUTH: Final = frozenset(
    {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "IsNaN", "IsInf"}
)
"""Operators whose results are truth values, whatever their operands are."""

_FIRST_TYPED: Final = {"Where": 1}
"""Which operand an operator's type is that of; the first by default."""

_ORDERING: Final = frozenset({"ReduceMax", "ReduceMin", "ArgMax", "ArgMin", "TopK", "Max", "Min"})
_SIGN_BIT: Final = np.int64(-(2**63))


@dataclass(frozen=True, slots=True)
class Value:
    """A value in a graph.

    Attributes:
        name: its name, unique in the model.
        dtype: its element type.
        shape: its sizes, as they were traced.
        known: its elements, for a constant.
    """

    name: str
    dtype: DType
    shape: Shape
    known: np.ndarray[Any, Any] | None = None

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.shape)


Operand = Value | int | float | bool | np.ndarray[Any, Any]


class Graph:
    """A model in the making.

    Args:
        opset: the version of the operators.
        taken: names that values must not have.

    Attributes:
        place: the user's line that operators come from; it is written beside each.
        block: the operators, or those of the body that is being made.
        initializers: the constants, by name.
    """

    def __init__(self, opset: int, taken: Iterable[str] = ()) -> None:
        self.opset = opset
        self.place = ""
        self._taken = frozenset(taken)
        self.block: list[onnx.NodeProto] = []
        self.initializers: dict[str, np.ndarray[Any, Any]] = {}
        self._constants: dict[Any, Value] = {}
        self._numbers = itertools.count()
        self._sources: dict[str, tuple[str, Sequence[Value | None]]] = {}

    def name(self, stem: str) -> str:
        """A name that is not used yet."""
        while True:
            name = f"{stem}_{next(self._numbers)}"
            if name not in self._taken:
                return name

    # ------------------------------------------------------------------------------- operands

    def constant(self, array: Any, dtype: Any = None) -> Value:
        """A constant; equal ones are the same value.

        Args:
            array: the elements.
            dtype: the element type, the array's own by default.
        """
        array = np.asarray(array, order="C")
        array = array if dtype is None else array.astype(dtype, copy=False)
        onnx_type(array.dtype)
        data = array.tobytes()
        key = (array.dtype, array.shape, data if len(data) < 64 else sha256(data).digest())
        if key not in self._constants:
            name = self.name("constant")
            self.initializers[name] = array
            self._constants[key] = Value(name, array.dtype, array.shape, array)
        return self._constants[key]

    def sizes(self, sizes: Sequence[int]) -> Value:
        """A list of sizes, positions or dimensions, as operators take it."""
        return self.constant(np.array(sizes, np.int64).reshape(len(sizes)))

    def value(self, operand: Operand, like: Value) -> Value:
        """An operand as a value; a Python number gets the element type of another value."""
        if isinstance(operand, Value):
            return operand
        if isinstance(operand, np.ndarray):
            return self.constant(operand)
        return self.constant(operand, like.dtype)

    # ------------------------------------------------------------------------------ operators

    def op(
        self,
        operator: str,
        *operands: Operand,
        dtype: DType | None = None,
        shape: Sequence[int] | None = None,
        **attributes: Any,
    ) -> Value:
        """Apply an operator that has one result.

        Args:
            operator: the operator's name.
            *operands: values; Python numbers get the element type of the first value.
            dtype: the result's element type; that of the operands by default.
            shape: the result's shape; by default that of the operands, broadcast.
            **attributes: the operator's attributes; those that are None are left out.
        """
        shapes = None if shape is None else [shape]
        dtypes = None if dtype is None else [dtype]
        return self.ops(operator, operands, dtypes, shapes, **attributes)[0]

    def ops(
        self,
        operator: str,
        operands: Sequence[Operand],
        dtypes: Sequence[DType] | None = None,
        shapes: Sequence[Sequence[int]] | None = None,
        **attributes: Any,
    ) -> list[Value]:
        """Apply an operator with several results; arguments as of `op`, for each of them."""
        example = next(x for x in operands if isinstance(x, Value))
        values = [self.value(x, example) for x in operands]
        own = values[_FIRST_TYPED.get(operator, 0)].dtype
        if dtypes is None:
            dtypes = [BOOL if operator in _OF_TRUTH else own]
        if shapes is None:
            shapes = [np.broadcast_shapes(*(v.shape for v in values))]
        reduced = attributes.get("reduction") not in (None, "none", b"none")
        used = stand_in(f"{operator} reduced" if reduced else operator, own)
        if operator in _ORDERING and own == U64 and used == I64:
            return self._of_unsigned(operator, values, dtypes, shapes, attributes)
        if used != own:
            first = _FIRST_TYPED.get(operator, 0)
            values[first:] = [self.cast(v, used) if v.dtype == own else v for v in values[first:]]
        raw = [used if d == own and operator not in _OF_TRUTH else d for d in dtypes]
        results = self.emit(operator, values, raw, shapes, **attributes)
        return [self.cast(r, d) for r, d in zip(results, dtypes, strict=True)]

    def emit(
        self,
        operator: str,
        operands: Sequence[Value | None],
        dtypes: Sequence[DType],
        shapes: Sequence[Sequence[int]],
        **attributes: Any,
    ) -> list[Value]:
        """Apply an operator just so, in the types of its operands; None for an absent operand."""
        results = [
            Value(self.name(operator.lower()), d, tuple(s))
            for d, s in zip(dtypes, shapes, strict=True)
        ]
        given = {key: value for key, value in attributes.items() if value is not None}
        names = ["" if x is None else x.name for x in operands]
        outputs = [r.name for r in results]
        words = {"name": f"{outputs[0]}.op", "doc_string": self.place or None}
        node = helper.make_node(operator, names, outputs, **words, **given)
        self.block.append(node)
        self._sources.update(dict.fromkeys(outputs, (operator, operands)))
        return results

    def _of_unsigned(
        self,
        operator: str,
        values: Sequence[Value],
        dtypes: Sequence[DType],
        shapes: Sequence[Sequence[int]],
        attributes: dict[str, Any],
    ) -> list[Value]:
        """An operator that compares 64-bit numbers without a sign, by way of ones with a sign."""
        flip = self.constant(_SIGN_BIT)
        signed = [
            self.op("BitwiseXor", self.cast(v, I64), flip) if v.dtype == U64 else v for v in values
        ]
        raw = [I64 if d == U64 else d for d in dtypes]
        results = self.emit(operator, signed, raw, shapes, **attributes)
        return [
            self.cast(self.op("BitwiseXor", r, flip), U64) if d == U64 else r
            for r, d in zip(results, dtypes, strict=True)
        ]

    def source(self, x: Value, operator: str) -> Sequence[Value | None] | None:
        """The operands of the operator that a value is the result of; None if it is another."""
        found, operands = self._sources.get(x.name, ("", ()))
        return operands if found == operator else None

    def cast(self, x: Value, dtype: DType) -> Value:
        """A value converted to another element type, as ONNX's `Cast` does."""
        if x.dtype == dtype:
            return x
        if x.known is not None and x.known.size == 1 and not is_narrow(dtype):
            with np.errstate(all="ignore"):
                return self.constant(x.known, dtype)
        saturate = 0 if is_narrow(dtype) and dtype.itemsize == 1 else None
        (result,) = self.emit(
            "Cast", [x], [dtype], [x.shape], to=onnx_type(dtype), saturate=saturate
        )
        return result

    # --------------------------------------------------------------------------------- shapes

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        """The elements of a value in another shape."""
        if tuple(shape) == x.shape:
            return x
        return self.op("Reshape", x, self.sizes(shape), shape=shape, allowzero=1)

    def transpose(self, x: Value, permutation: Sequence[int]) -> Value:
        """The dimensions of a value in another order."""
        if list(permutation) == list(range(x.rank)):
            return x
        shape = [x.shape[d] for d in permutation]
        return self.op("Transpose", x, shape=shape, perm=list(permutation))

    def expand(self, x: Operand, shape: Sequence[int], dtype: DType | None = None) -> Value:
        """A value broadcast to a shape.

        Args:
            x: the value, or a number.
            shape: the shape.
            dtype: the element type of a number.
        """
        value = x if isinstance(x, Value) else self.constant(x, dtype)
        if value.shape == tuple(shape):
            return value
        if 0 in shape:  # `Expand` is taken to make 1 of 1 and 0
            nothing = numpy_helper.from_array(np.zeros(1, value.dtype))
            (empty,) = self.emit(
                "ConstantOfShape", [self.sizes(shape)], [value.dtype], [shape], value=nothing
            )
            return empty
        return self.op("Expand", value, self.sizes(shape), shape=shape)

    def squeeze(self, x: Value, dims: Sequence[int]) -> Value:
        """A value without some dimensions of size 1."""
        if not dims:
            return x
        shape = [n for d, n in enumerate(x.shape) if d not in dims]
        return self.op("Squeeze", x, self.sizes(dims), shape=shape)

    def unsqueeze(self, x: Value, dims: Sequence[int]) -> Value:
        """A value with new dimensions of size 1, at these positions of the result."""
        if not dims:
            return x
        sizes = iter(x.shape)
        rank = x.rank + len(dims)
        shape = [1 if d in dims else next(sizes) for d in range(rank)]
        return self.op("Unsqueeze", x, self.sizes(dims), shape=shape)

    def slice(
        self,
        x: Value,
        starts: Sequence[int],
        limits: Sequence[int],
        strides: Sequence[int] | None = None,
    ) -> Value:
        """Elements from `starts` to before `limits`, in steps, along each dimension."""
        strides = [1] * x.rank if strides is None else strides
        shape = [max(0, -(-(b - a) // s)) for a, b, s in zip(starts, limits, strides, strict=True)]
        dims = [
            d for d in range(x.rank) if (starts[d], limits[d], strides[d]) != (0, x.shape[d], 1)
        ]
        if not dims:
            return x
        given = [[which[d] for d in dims] for which in (starts, limits)]
        words = [self.sizes(numbers) for numbers in (*given, dims, [strides[d] for d in dims])]
        return self.op("Slice", x, *words, shape=shape)

    def part(self, x: Value, dim: int, start: int, limit: int, stride: int = 1) -> Value:
        """Elements from one to before another along one dimension."""
        starts, limits, strides = [0] * x.rank, list(x.shape), [1] * x.rank
        starts[dim], limits[dim], strides[dim] = start, limit, stride
        return self.slice(x, starts, limits, strides)

    def reverse(self, x: Value, dims: Sequence[int]) -> Value:
        """The elements in the opposite order along some dimensions."""
        if not dims:
            return x
        count = len(dims)
        words = [self.sizes(n) for n in ([-1] * count, [-(2**63)] * count, dims, [-1] * count)]
        return self.op("Slice", x, *words, shape=x.shape)

    def pad(self, x: Value, low: Sequence[int], high: Sequence[int], fill: Operand) -> Value:
        """A value with a border of one number around it; no size of the border is negative."""
        if not any(low) and not any(high):
            return x
        filled = fill if isinstance(fill, Value) else self.constant(fill, x.dtype)
        shape = [a + n + b for a, n, b in zip(low, x.shape, high, strict=True)]
        return self.op("Pad", x, self.sizes([*low, *high]), filled, shape=shape)

    def concat(self, parts: Sequence[Value], axis: int) -> Value:
        """Values one after the other along a dimension."""
        if len(parts) == 1:
            return parts[0]
        shape = list(parts[0].shape)
        shape[axis] = sum(part.shape[axis] for part in parts)
        return self.op("Concat", *parts, shape=shape, axis=axis)

    def arange(self, size: int, dtype: DType = I64) -> Value:
        """The integers from 0 to before a size."""
        words = (self.constant(np.int64(n)) for n in (0, size, 1))
        numbers = self.op("Range", *words, dtype=I64, shape=[size])
        return self.cast(numbers, dtype)

    def iota(self, shape: Sequence[int], dim: int, dtype: DType = I64) -> Value:
        """Positions along one dimension, broadcast to a shape."""
        numbers = self.arange(shape[dim], dtype)
        along = [n if d == dim else 1 for d, n in enumerate(shape)]
        return self.expand(self.reshape(numbers, along), shape)

    def reduce(self, operator: str, x: Value, axes: Sequence[int]) -> Value:
        """A reduction along some dimensions, which the result lacks."""
        if not axes:
            return x
        shape = [n for d, n in enumerate(x.shape) if d not in axes]
        return self.op(operator, x, self.sizes(axes), shape=shape, keepdims=0)

    # --------------------------------------------------------------------------------- bodies

    @contextmanager
    def body(self) -> Iterator[list[onnx.NodeProto]]:
        """Operators that are applied meanwhile belong to the body of a loop or a branch."""
        outer, self.block = self.block, []
        try:
            yield self.block
        finally:
            self.block = outer

    def subgraph(
        self,
        block: list[onnx.NodeProto],
        name: str,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
    ) -> onnx.GraphProto:
        """The body of a loop or a branch.

        Args:
            block: its operators.
            name: its name.
            inputs: its parameters. Other values it takes from outside.
            outputs: its results, which become values of its own where they are not.
        """
        own = {n for node in block for n in node.output}
        results, seen = [], set[str]()
        for value in outputs:
            result = value
            if value.name not in own or value.name in seen:
                outer, self.block = self.block, block
                (result,) = self.emit("Identity", [value], [value.dtype], [value.shape])
                self.block = outer
            seen.add(result.name)
            results.append(result)
        kept = needed(block, [result.name for result in results])
        return helper.make_graph(kept, name, list(map(info, inputs)), list(map(info, results)))


def info(value: Value) -> onnx.ValueInfoProto:
    """The declaration of a value, with its type and its sizes as they were traced."""
    return helper.make_tensor_value_info(value.name, onnx_type(value.dtype), value.shape)


def needed(nodes: Sequence[onnx.NodeProto], results: Iterable[str]) -> list[onnx.NodeProto]:
    """The operators on which results depend."""
    wanted, kept = set(results), []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.output):
            kept.append(node)
            wanted.update(read_by(node))
    return kept[::-1]


def read_by(node: onnx.NodeProto) -> Iterable[str]:
    """The names of the values that an operator reads, those in its bodies too."""
    yield from node.input
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield from read_by(inner)
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield from (output.name for output in attribute.g.output)
