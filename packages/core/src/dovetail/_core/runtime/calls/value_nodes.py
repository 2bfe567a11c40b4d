"""How values were made, and what they hold, for the search for a nan or an infinity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.records import record
from dovetail._core.base.source import SourceLocation, Transformation, describe
from dovetail._core.ir.avals import aval_of

__all__ = ["Node", "Statistics", "is_transposed", "shortened", "statistics_of", "walk_up"]

# So long is the way from a backward pass to what a standard deviation is taken of.
_MOST: Final = 10


@record
class Statistics:
    """What an array holds.

    Attributes:
        type: its dtype and shape, such as ``f32[3]``.
        size: the number of its elements.
        nans: how many of them are nan.
        infinities: how many are infinite.
        negative: how many of these are -inf.
        zeros: how many are zero.
        least: the least of the finite ones, of complex numbers the least size; None if none is.
        mean: their mean.
        largest: the largest of them.
    """

    type: str
    size: int
    nans: int
    infinities: int
    negative: int
    zeros: int
    least: float | None
    mean: float | None
    largest: float | None

    def __str__(self) -> str:
        if self.size == 1:
            infinity = "-inf" if self.negative else "inf"
            shown = "nan" if self.nans else infinity if self.infinities else f"{self.mean:.6g}"
            return f"{self.type}: {shown}"
        parts = []
        if self.least is not None:
            parts.append(f"min {self.least:.4g}, mean {self.mean:.4g}, max {self.largest:.4g}")
        counts = (
            (self.nans, "nan"),
            (self.infinities - self.negative, "inf"),
            (self.negative, "-inf"),
            (self.zeros, "zero"),
        )
        parts += [f"{count} of {self.size} {what}" for count, what in counts if count]
        return f"{self.type}: {'; '.join(parts) or 'empty'}"


def statistics_of(value: Any) -> Statistics | None:
    """What an array or a number holds; None of random keys and of what is on other processes."""
    aval = aval_of(value)
    dtype = getattr(aval, "dtype", None)
    if (
        dtype is None
        or not dtypes.kind_of(dtype)
        or not getattr(value, "is_fully_addressable", True)
    ):
        return None
    read = np.asarray(value)
    if read.dtype.kind == "c":
        finite_where, nans, zeros = np.isfinite(read), np.isnan(read), read == 0
        read = np.abs(read)
    else:
        read = read.astype(np.float64)
        finite_where, nans, zeros = np.isfinite(read), np.isnan(read), read == 0
    finite = read[finite_where]
    least = mean = largest = None
    if finite.size:
        least, mean, largest = float(finite.min()), float(finite.mean()), float(finite.max())
    bad, unknown = read.size - finite.size, int(nans.sum())
    return Statistics(
        aval.short_name(),
        read.size,
        unknown,
        bad - unknown,
        int((read == -np.inf).sum()),
        int(zeros.sum()),
        least,
        mean,
        largest,
    )


@dataclass(eq=False, slots=True)
class Node:
    """How a value was made, without the value.

    Attributes:
        name: the name of the operation that made it, or a phrase for what it is.
        operands: the nodes of its operands.
        statistics: what the value holds; None if that is not known.
        place: the user's line, as a stack or as text.
        backward: whether the operation belongs to a backward pass.
        number: its position among all nodes of a search.
        users: names of the operations that used the value.
        hold: what a search needs to look inside of the operation.
    """

    name: str
    operands: tuple[Node, ...] = ()
    statistics: Statistics | None = None
    place: Any = None
    backward: bool = False
    number: int = 0
    users: set[str] = field(default_factory=set)
    hold: Any = None

    def where(self) -> str:
        """The user's line."""
        return self.place if isinstance(self.place, str) else describe(self.place)


def is_transposed(place: Any) -> bool:
    """Whether an operation was recorded by a backward pass, from its place."""
    names = getattr(place, "scopes" if type(place) is SourceLocation else "names", ())
    return any(type(name) is Transformation and name == "transpose" for name in names)


def shortened(node: Node, depth: int = _MOST, seen: dict[int, Node] | None = None) -> Node:
    """A copy of a node that forgets what was before the last few operations."""
    seen = {} if seen is None else seen
    copy = seen.get(id(node))
    if copy is None:
        operands: Sequence[Node] = ()
        if depth:
            operands = [shortened(operand, depth - 1, seen) for operand in node.operands]
        copy = seen[id(node)] = Node(
            node.name,
            tuple(operands),
            node.statistics,
            node.place,
            node.backward,
            node.number,
            node.users,
        )
    return copy


def walk_up(node: Node, wanted: Callable[[Node], bool], through: frozenset[str]) -> Node:
    """The node that made a property of a value which other operations only passed on.

    Args:
        node: where to begin.
        wanted: whether a node has the property.
        through: the names of operations that pass it on.
    """
    while node.name in through:
        following = [operand for operand in node.operands if wanted(operand)]
        if not following:
            return node
        node = following[0]
    return node
