"""Sizes that may vary from call to call.

A program is traced for one size. Here it is traced for several more, and its models are laid beside
each other: they have the same operators, and differ in constants, such as the shape to which an
array is broadcast. Each of these must be a polynomial in the sizes, which then is computed from the
shapes of the inputs; one more tracing confirms it. A program that does something else for another
size is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Final

import numpy as np
import onnx
from onnx import helper

from dovetail.extend import ExportRequest
from dovetail_onnx.errors import ExportError

__all__ = ["Drawing", "DynamicSize", "dynamic_sizes", "probes", "with_dynamic_sizes"]

_PROBES: Final = ((67, 71, 73, 79), (83, 89, 97, 101), (103, 107, 109, 113))
"""Sizes to trace for: three determine a polynomial of degree two, the fourth confirms it. They are
primes, which are unlikely to be sizes of anything else in the program."""

_LONGEST: Final = 64
"""Elements of a constant that may depend on sizes."""

Sizes = tuple[int, ...]
Drawing = tuple[onnx.GraphProto, Mapping[str, np.ndarray[Any, Any]]]
"""A graph, and its constants."""


@dataclass(frozen=True, slots=True)
class DynamicSize:
    """A size that may vary.

    Attributes:
        name: its name.
        places: the inputs that have it, by number, and the dimensions.
    """

    name: str
    places: tuple[tuple[int, int], ...]


def dynamic_sizes(request: ExportRequest, inputs: Sequence[str]) -> list[DynamicSize]:
    """The sizes that the option `dynamic_axes` names.

    Args:
        request: the program.
        inputs: names of the inputs.

    Raises:
        TypeError: the option is no mapping from inputs to names by dimension.
        ValueError: there is no such input or dimension, or one name stands for different sizes.
    """
    given = request.options.get("dynamic_axes") or {}
    if not isinstance(given, Mapping):
        raise TypeError(
            'dynamic_axes must be such as {0: {0: "batch"}}, names by argument and dimension, got '
            f"{given!r:.80}"
        )
    places: dict[str, list[tuple[int, int]]] = {}
    for key, names in given.items():
        if not isinstance(names, Mapping):
            raise TypeError(
                f"dynamic_axes[{key!r}] must be such as {{0: 'batch'}}, names by dimension, got "
                f"{names!r:.80}"
            )
        for number in _inputs_of(request, inputs, key):
            shape = request.jaxpr.in_avals[number].shape
            for dim, name in names.items():
                if not isinstance(name, str) or not name or not isinstance(dim, int):
                    raise TypeError(
                        f"dynamic_axes[{key!r}] has {dim!r}: {name!r:.80}, and must have names by "
                        "the number of a dimension"
                    )
                if not -len(shape) <= dim < len(shape):
                    raise ValueError(
                        f"dynamic_axes[{key!r}] names dimension {dim}, and the input "
                        f"{inputs[number]} has the shape {shape}"
                    )
                places.setdefault(name, []).append((number, dim % len(shape)))
    if len(places) > len(_PROBES):
        raise ValueError(f"dynamic_axes has {len(places)} names, and {len(_PROBES)} are the most")
    for name, where in places.items():
        sizes = {request.jaxpr.in_avals[number].shape[dim] for number, dim in where}
        if len(sizes) > 1:
            raise ValueError(
                f"dynamic_axes gives the name {name!r} to sizes that differ here: "
                f"{', '.join(map(str, sorted(sizes)))}"
            )
    return [DynamicSize(name, tuple(dict.fromkeys(where))) for name, where in places.items()]


def _inputs_of(request: ExportRequest, inputs: Sequence[str], key: Any) -> list[int]:
    """The numbers of the inputs that a key of the option stands for."""
    if isinstance(key, str):
        if key not in inputs:
            raise ValueError(f"dynamic_axes names the input {key!r}; there are {', '.join(inputs)}")
        return [inputs.index(key)]
    children = request.in_tree.children()
    if not isinstance(key, int) or not 0 <= key < len(children):
        raise ValueError(
            f"dynamic_axes has the key {key!r:.80}: the number of an argument, below "
            f"{len(children)}, or the name of an input"
        )
    first = sum(child.num_leaves for child in children[:key])
    return list(range(first, first + children[key].num_leaves))


def probes(
    request: ExportRequest, dynamic: Sequence[DynamicSize]
) -> Iterator[tuple[Sizes, ExportRequest]]:
    """The program for the sizes that are laid beside each other; the last one confirms the others.

    Args:
        request: the program.
        dynamic: the sizes that vary.

    Raises:
        ExportError: the function cannot be traced for another size.
    """
    grid = [*product(*(_PROBES[i][:3] for i in range(len(dynamic))))]
    for sizes in (*grid, tuple(row[3] for row in _PROBES[: len(dynamic)])):
        shapes: list[list[int]] = [list(aval.shape) for aval in request.jaxpr.in_avals]
        for size, which in zip(sizes, dynamic, strict=True):
            for number, dim in which.places:
                shapes[number][dim] = size
        try:
            yield sizes, request.trace_again([tuple(shape) for shape in shapes])
        except Exception as error:
            named = ", ".join(f"{d.name}={n}" for d, n in zip(dynamic, sizes, strict=True))
            raise ExportError(
                f"{request.name} cannot have dynamic_axes: for {named} it raises "
                f"{type(error).__name__}: {error}"
            ) from error


def with_dynamic_sizes(
    program: str, dynamic: Sequence[DynamicSize], probed: Mapping[Sizes, Drawing]
) -> Drawing:
    """A graph whose sizes are computed from the shapes of its inputs, and its constants.

    Args:
        program: the name of the program, for messages.
        dynamic: the sizes that vary.
        probed: graphs and their constants for several sizes, the last to confirm the others.

    Raises:
        ExportError: the graphs are not alike, or differ in what is no polynomial of the sizes.
    """
    return _Alignment(program, dynamic, probed).result()


class _Alignment:
    """Graphs for several sizes, side by side."""

    def __init__(
        self, program: str, dynamic: Sequence[DynamicSize], probed: Mapping[Sizes, Drawing]
    ) -> None:
        self.program = program
        self.dynamic = dynamic
        self.sizes = list(probed)
        self.graphs = [graph for graph, _ in probed.values()]
        self.arrays = [constants for _, constants in probed.values()]
        self.names: list[dict[str, str]] = [{} for _ in self.graphs]
        self.graph = onnx.GraphProto()
        self.graph.CopyFrom(self.graphs[0])
        self.added: dict[str, np.ndarray[Any, Any]] = {}
        self.computed: list[onnx.NodeProto] = []
        self.constants: dict[Any, str] = {}
        self.applied: dict[Any, str] = {}

    def result(self) -> Drawing:
        """The graph with computed sizes, and constants."""
        self._size_nodes()
        self._align(self.graph, self.graphs)
        nodes = [*self.computed, *self.graph.node]
        del self.graph.node[:]
        self.graph.node.extend(nodes)
        return self.graph, {**self.arrays[0], **self.added}

    def _refuse(self, what: str, place: str) -> ExportError:
        names = ", ".join(d.name for d in self.dynamic)
        where = f" at {place}" if place else ""
        return ExportError(
            f"{self.program} cannot have dynamic_axes: {what}{where} depends on {names}. Write it "
            "without sizes in Python, or export one model for each size"
        )

    def _size_nodes(self) -> None:
        """Operators that read the sizes of the inputs."""
        for which in self.dynamic:
            number, dim = which.places[0]
            source = self.graph.input[number].name
            shape, size = f"{which.name}#shape", f"{which.name}#size"
            self.computed += [
                helper.make_node("Shape", [source], [shape], start=dim, end=dim + 1),
                helper.make_node("Reshape", [shape, self._constant(np.zeros(0, np.int64))], [size]),
            ]

    def _constant(self, array: np.ndarray[Any, Any]) -> str:
        key = (array.dtype, array.shape, array.tobytes())
        if key not in self.constants:
            name = self.constants[key] = f"#constant_{len(self.constants)}"
            self.added[name] = array
        return self.constants[key]

    def _align(self, own: onnx.GraphProto, others: Sequence[onnx.GraphProto]) -> None:
        """Go through graphs that should differ in constants alone; change the first one."""
        if len({len(graph.node) for graph in others}) > 1:
            raise self._refuse("what the program does", _first_difference(others))
        for kind in ("input", "output"):
            for declared in zip(
                getattr(own, kind), *(getattr(g, kind) for g in others), strict=True
            ):
                self._declare(declared[0], declared[1:])
                if kind == "input":
                    self._same([value.name for value in declared[1:]])
        for node, *rows in zip(own.node, *(g.node for g in others), strict=True):
            self._align_node(node, rows)

    def _declare(self, own: onnx.ValueInfoProto, others: Sequence[onnx.ValueInfoProto]) -> None:
        """Name the sizes that vary, and leave out those that are made of them."""
        dims = own.type.tensor_type.shape.dim
        for d, dim in enumerate(dims):
            values = [o.type.tensor_type.shape.dim[d].dim_value for o in others]
            if len(set(values)) > 1:
                names = [
                    which.name
                    for i, which in enumerate(self.dynamic)
                    if all(v == sizes[i] for v, sizes in zip(values, self.sizes, strict=True))
                ]
                dim.Clear()
                if names:
                    dim.dim_param = names[0]

    def _same(self, names: Sequence[str]) -> None:
        for table, name in zip(self.names, names, strict=True):
            table[name] = names[0]

    def _align_node(self, own: onnx.NodeProto, rows: Sequence[onnx.NodeProto]) -> None:
        place = own.doc_string
        kinds = {(row.op_type, len(row.input), len(row.output), len(row.attribute)) for row in rows}
        if len(kinds) > 1:
            raise self._refuse("what the program does", place)
        for at in range(len(own.input)):
            own.input[at] = self._operand([row.input[at] for row in rows], place)
        for attributes in zip(own.attribute, *(row.attribute for row in rows), strict=True):
            mine, *theirs = attributes
            if mine.type == onnx.AttributeProto.GRAPH:
                self._align(mine.g, [attribute.g for attribute in theirs])
            elif any(attribute != theirs[0] for attribute in theirs):
                raise self._refuse(f"{mine.name} of {own.op_type}", place)
        for names in zip(*(row.output for row in rows), strict=True):
            self._same(names)

    def _operand(self, names: Sequence[str], place: str) -> str:
        """The name of an operand that has these names in the models."""
        found = [table.get(name) for table, name in zip(self.arrays, names, strict=True)]
        arrays = [array for array in found if array is not None]
        if len(arrays) < len(found):
            known = {table.get(name, name) for table, name in zip(self.names, names, strict=True)}
            if len(known) > 1 or arrays:
                raise self._refuse("what the program does", place)
            return names[0]
        if all(_is_same(array, arrays[0]) for array in arrays[1:]):
            return names[0]
        is_number = arrays[0].dtype.kind in "iuf"
        if len({a.shape for a in arrays}) > 1 or arrays[0].size > _LONGEST or not is_number:
            raise self._refuse("an array that is known while tracing", place)
        return self._computed(arrays, place)

    def _computed(self, arrays: Sequence[np.ndarray[Any, Any]], place: str) -> str:
        """The name of a constant that is computed from sizes."""
        elements = [
            self._element([array.reshape(-1)[i] for array in arrays], place)
            for i in range(arrays[0].size)
        ]
        dtype = helper.np_dtype_to_tensor_dtype(arrays[0].dtype)
        if arrays[0].ndim == 0:
            (value,) = elements
        else:
            one = self._constant(np.array([1]))
            rows = [self._apply("Reshape", element, one) for element in elements]
            value = rows[0] if len(rows) == 1 else self._apply("Concat", *rows, axis=0)
            if arrays[0].ndim > 1:
                shape = self._constant(np.array(arrays[0].shape, np.int64))
                value = self._apply("Reshape", value, shape)
        is_made_so = arrays[0].dtype.kind == "f" or arrays[0].dtype == np.int64
        return value if is_made_so else self._apply("Cast", value, to=dtype)

    def _element(self, values: Sequence[Any], place: str) -> str:
        """The name of a number that is computed from sizes, of the kind of these."""
        dtype = values[0].dtype
        exact = [Fraction(float(v)) if dtype.kind == "f" else Fraction(int(v)) for v in values]
        terms = self._fitted(exact)
        if terms is not None:
            return self._float(self._polynomial(terms), dtype)
        if dtype.kind == "f" and all(exact):
            # Such as the factor of a mean, which is rounded.
            near = [Fraction(round(1 / v)) for v in exact]
            terms = self._fitted(near)
            if terms is not None and all(
                dtype.type(1) / dtype.type(int(n)) == v
                for n, v in zip(near, values, strict=True)
                if n
            ):
                divisor = self._float(self._polynomial(terms), dtype)
                return self._apply("Div", self._constant(np.ones((), dtype)), divisor)
        raise self._refuse(f"the number {values[0]}, which is no polynomial of sizes and", place)

    def _float(self, name: str, dtype: np.dtype[Any]) -> str:
        if dtype.kind != "f":
            return name
        return self._apply("Cast", name, to=helper.np_dtype_to_tensor_dtype(dtype))

    def _fitted(self, values: Sequence[Fraction]) -> dict[Sizes, int] | None:
        """The polynomial with these values, by powers of the sizes; None if there is none."""
        powers = [*product(*(range(3) for _ in self.dynamic))]
        points = self.sizes[:-1]
        matrix = [[_monomial(sizes, p) for p in powers] for sizes in points]
        coefficients = _solved(matrix, values[:-1])
        if any(x.denominator != 1 for x in coefficients):
            return None
        found = {p: int(x) for p, x in zip(powers, coefficients, strict=True) if x}
        confirmed = sum(x * _monomial(self.sizes[-1], p) for p, x in found.items())
        return found if confirmed == values[-1] else None

    def _polynomial(self, terms: Mapping[Sizes, int]) -> str:
        """The name of a 64-bit number that is a polynomial of the sizes."""
        total = None
        for powers, coefficient in terms.items():
            term = None if coefficient == 1 and any(powers) else self._number(coefficient)
            for which, power in zip(self.dynamic, powers, strict=True):
                for _ in range(power):
                    size = f"{which.name}#size"
                    term = size if term is None else self._apply("Mul", term, size)
            assert term is not None
            total = term if total is None else self._apply("Add", total, term)
        return self._number(0) if total is None else total

    def _number(self, number: int) -> str:
        return self._constant(np.array(number, np.int64))

    def _apply(self, operator: str, *operands: str, **attributes: Any) -> str:
        key = (operator, *operands, *attributes.items())
        if key not in self.applied:
            name = self.applied[key] = f"#{operator.lower()}_{len(self.computed)}"
            self.computed.append(helper.make_node(operator, operands, [name], **attributes))
        return self.applied[key]


def _is_same(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    """Whether two constants are equal, bit for bit."""
    if x is y:
        return True
    return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()


def _first_difference(graphs: Sequence[onnx.GraphProto]) -> str:
    """The user's line of the first operators that differ."""
    for rows in zip(*(graph.node for graph in graphs), strict=False):
        if len({row.op_type for row in rows}) > 1:
            return str(rows[0].doc_string)
    return ""


def _monomial(sizes: Sizes, powers: Sizes) -> int:
    result: int = 1
    for size, power in zip(sizes, powers, strict=True):
        result *= size**power
    return result


def _solved(matrix: Sequence[Sequence[int]], values: Sequence[Fraction]) -> list[Fraction]:
    """The solution of linear equations, exactly."""
    rows = [[*map(Fraction, row), value] for row, value in zip(matrix, values, strict=True)]
    for at in range(len(rows)):
        pivot = next(i for i in range(at, len(rows)) if rows[i][at])
        rows[at], rows[pivot] = rows[pivot], rows[at]
        scale = rows[at][at]
        rows[at] = [x / scale for x in rows[at]]
        for i, row in enumerate(rows):
            if i != at and row[at]:
                factor = row[at]
                rows[i] = [x - factor * y for x, y in zip(row, rows[at], strict=True)]
    return [row[-1] for row in rows]
