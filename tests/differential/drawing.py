"""What operations are drawn from: inputs, shapes, axes, dtypes, and now and then a mistake."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

DTYPES = {
    "b": ["bool"],
    "i": ["int32"] * 6 + ["int8", "int16", "int64"],
    "u": ["uint8", "uint8", "uint32", "uint16", "uint64"],
    "f": ["float32"] * 8 + ["float16", "bfloat16", "float64"],
    "c": ["complex64"] * 3 + ["complex128"],
}
RARE = ["int4", "uint4", "int2", "uint2", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz"]
WIDE = ("int64", "uint64", "float64", "complex128")
LEVELS = (-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
SPECIAL = (math.nan, math.inf, -math.inf, -0.0, 1e18, 1e-18)
WIDTHS = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4}
MOST_ELEMENTS = 48
ALL = "biufc"
Shape = tuple[int, ...]


@dataclass(slots=True)
class Value:
    """An input, or an array of a result: its reference, its shape and the kind of its dtype."""

    reference: list[Any]
    shape: Shape
    kind: str


def kind_of(dtype: str) -> str:
    """The kind of a dtype: one letter."""
    if dtype.startswith("bfloat"):
        return "f"
    return dtype[0]


class Draw:
    """A source of arguments that mostly fit."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.x64 = self.random.random() < 0.35
        self.special = self.random.random() < 0.1
        self.odd_dtypes = self.random.random() < 0.1
        self.mistakes = self.random.choice((0.0, 0.0, 0.03, 0.1))
        self.inputs: list[dict[str, Any]] = []
        self.values: list[Value] = []
        self.bodies = 0

    # Numbers and choices

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def mistake(self) -> bool:
        return self.chance(self.mistakes)

    def pick(self, options: Any) -> Any:
        return self.random.choice(list(options))

    def integer(self, low: int, high: int) -> int:
        """An integer between bounds, both included; the lower one where there is none."""
        return self.random.randint(low, max(low, high))

    def scalar(self, kind: str = "") -> Any:
        """A number of Python."""
        kind = kind or self.pick("iiffb")
        if kind == "b":
            return self.chance(0.5)
        if kind in "iu":
            return self.integer(0 if kind == "u" else -3, 5)
        if kind == "c":
            return ["complex", self.pick(LEVELS), self.pick(LEVELS)]
        return self.pick(SPECIAL[:4]) if self.special and self.chance(0.2) else self.pick(LEVELS)

    def dtype(self, kinds: str = ALL) -> str:
        if self.odd_dtypes and self.chance(0.3):
            return self.random.choice(RARE)
        kinds = ALL if self.mistake() else kinds
        weighted = "".join(kind * {"b": 1, "i": 3, "u": 1, "f": 6, "c": 1}[kind] for kind in kinds)
        dtype = self.pick(DTYPES[self.pick(weighted)])
        if dtype in WIDE and not self.x64:
            return {"int64": "int32", "uint64": "uint32", "float64": "float32"}.get(
                str(dtype), "complex64"
            )
        return str(dtype)

    # Shapes

    def shape(self, rank: int | None = None, least: int = 0) -> Shape:
        if rank is None:
            rank = self.pick((0, 1, 1, 2, 2, 2, 3))
        sizes = (1, 2, 3, 4) if least else (0, 1, 1, 2, 2, 3, 3, 4)
        return tuple(self.pick(sizes) for _ in range(rank))

    def axis(self, rank: int) -> int:
        """An axis of an array of this rank, which may be counted from the end."""
        if self.mistake() or rank == 0:
            return self.integer(-rank - 1, rank)
        return self.integer(-rank, rank - 1)

    def own_axis(self, rank: int) -> int:
        """An axis that is not counted from the end, where there is one."""
        if self.mistake() or rank == 0:
            return self.integer(0, rank)
        return self.integer(0, rank - 1)

    def axes(self, rank: int) -> list[int]:
        """Some axes in order, none counted from the end."""
        return sorted(self.random.sample(range(rank), self.integer(0, rank)))

    def permutation(self, rank: int) -> list[int]:
        order = self.random.sample(range(rank), rank)
        return order[:-1] if order and self.mistake() else order

    def broadcastable(self, shape: Shape) -> Shape:
        """A shape that broadcasts to another."""
        if self.mistake():
            return self.shape()
        if self.chance(0.5):
            return shape
        return tuple(1 if self.chance(0.3) else n for n in shape)[self.integer(0, len(shape)) :]

    def size(self, n: int) -> int:
        """A size, or now and then another."""
        return n + self.pick((-1, 1)) if self.mistake() else n

    # Values

    def data(self, dtype: str, count: int) -> list[Any]:
        return [self.element(dtype) for _ in range(count)]

    def element(self, dtype: str) -> Any:
        kind = kind_of(dtype)
        if kind == "b":
            return self.chance(0.5)
        if kind in "iu":
            bits = WIDTHS.get(dtype) or int(dtype.lstrip("uint"))
            low = 0 if kind == "u" else -(2 ** (bits - 1))
            high = 2 ** (bits if kind == "u" else bits - 1) - 1
            if self.special and self.chance(0.2):
                return self.pick((low, high))
            return min(max(self.integer(-3, 5), low), high)
        if kind == "c":
            return ["complex", self.element("float32"), self.element("float32")]
        if self.special and self.chance(0.2):
            return self.pick(SPECIAL[: 4 if "16" in dtype or "8" in dtype else 6])
        if self.chance(0.4) or "float8" in dtype:
            return self.pick(LEVELS)
        return round(self.random.gauss(0.3, 1.2), 3)

    def input(self, kinds: str = ALL, shape: Shape | None = None) -> Value:
        """A new input."""
        shape = self.shape() if shape is None else shape
        flavour = self.pick(["array"] * 7 + ["numpy", "weak", "python"])
        if flavour == "python" and shape != ():
            flavour = "array"
        dtype = self.dtype(kinds)
        if flavour in ("weak", "python"):
            kind = kind_of(dtype)
            long = "64" if self.x64 else "32"
            dtype = {"b": "bool", "i": f"int{long}", "u": f"int{long}", "f": f"float{long}"}.get(
                kind, "complex128" if self.x64 else "complex64"
            )
            if kind == "b" and flavour == "weak":
                flavour = "array"
        data = self.data(dtype, math.prod(shape))
        if flavour == "numpy" and not self.x64 and self.chance(0.3):
            dtype = {"int32": "int64", "float32": "float64"}.get(dtype, dtype)
        self.inputs.append(
            {
                "name": f"x{len(self.inputs)}",
                "flavour": flavour,
                "dtype": dtype,
                "shape": list(shape),
                "values": data,
                "batched": flavour != "python" and self.chance(0.7),
            }
        )
        value = Value(["ref", self.inputs[-1]["name"]], shape, kind_of(dtype))
        self.values.append(value)
        return value

    def value(
        self,
        kinds: str = ALL,
        rank: int | None = None,
        least: int = 0,
        shape: Shape | None = None,
        nonempty: bool = False,
    ) -> Value:
        """A value that there is, or a new input, of some kinds and rank, or of one shape."""
        if self.mistake():  # callers look at the dimensions, so the rank is as it was asked for
            kinds = ALL
            shape = self.shape(len(shape)) if shape else shape
        fitting = [
            value
            for value in self.values[-8:]
            if value.kind in kinds
            and (shape is None or value.shape == shape)
            and (rank is None or len(value.shape) == rank)
            and len(value.shape) >= least
            and (not nonempty or 0 not in value.shape)
        ]
        if fitting and self.chance(0.75):
            return self.random.choice(fitting)
        if shape is None:
            rank = max(least, self.pick((0, 1, 2, 2, 3))) if rank is None else rank
            shape = self.shape(rank, least=int(nonempty))
        return self.input(kinds, shape)

    def own(self, *references: Any) -> None:
        """Make inputs arrays of the library, where one has to be."""
        names = [r[1] for r in references if isinstance(r, list) and r[0] == "ref"]
        for entry in self.inputs:
            if entry["name"] in names and entry["flavour"] in ("numpy", "python"):
                entry["flavour"] = "array"

    def like(self, value: Value, shape: Shape | None = None) -> list[Any]:
        """An argument with the dtype of a value, of its shape or of another."""
        other = self.value(value.kind, shape=value.shape if shape is None else shape)
        if other is value or self.mistake():
            return other.reference
        self.own(other.reference, value.reference)
        return ["like", other.reference, value.reference]

    def array(self, dtype: str, shape: Shape, low: int, high: int) -> list[Any]:
        """A constant NumPy array of integers between bounds, or of predicates."""
        count = math.prod(shape)
        if dtype == "bool":
            return ["array", dtype, list(shape), [self.chance(0.5) for _ in range(count)]]
        high += 2 if self.mistake() else 0
        return ["array", dtype, list(shape), [self.integer(low, high) for _ in range(count)]]
