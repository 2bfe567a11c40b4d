"""Parsed indices as a hashable code and positions, so that eager indexing can reuse programs.

An eager ``x[index]`` runs a program that takes positions as arguments, so that another index of the
same form compiles nothing. The code is that form: everything that determines the program. Every
eager index looks it up in tables, so its parts are interned: equal parts are one object, compared
and hashed by identity, in C.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from dovetail.extend.eager import lru_cache
from dovetail.numpy.indexing.parsing import HIGHEST, LOWEST, Along, At, Index, Item, Span

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class WholeDimension:
    """All of a dimension.

    Attributes:
        flip: whether in descending order.
    """

    flip: bool

    def decode(self, size: int, positions: Iterator[Any]) -> Item:
        """The item, for a dimension of that size."""
        return Span(0, size, 1, self.flip)


@dataclass(frozen=True, slots=True, eq=False)
class DynamicSpan:
    """A span whose first position is an argument of the program.

    Attributes:
        size: number of positions.
        step: the distance between them.
        flip: whether in descending order.
    """

    size: int
    step: int
    flip: bool

    def decode(self, size: int, positions: Iterator[Any]) -> Item:
        """The item, for a dimension of that size."""
        return Span(next(positions), self.size, self.step, self.flip)


@dataclass(frozen=True, slots=True, eq=False)
class DynamicPosition:
    """A position that is an argument of the program.

    Attributes:
        wrapped: whether negative values have been dealt with.
    """

    wrapped: bool

    def decode(self, size: int, positions: Iterator[Any]) -> Item:
        """The item, for a dimension of that size."""
        return At(next(positions), self.wrapped)


@dataclass(frozen=True, slots=True, eq=False)
class DynamicArray:
    """An array of positions, an argument of the program.

    Attributes:
        wrapped: whether negative values have been dealt with.
        fresh: whether the dimension is a new one.
    """

    wrapped: bool
    fresh: bool

    def decode(self, size: int, positions: Iterator[Any]) -> Item:
        """The item, for a dimension of that size."""
        return Along(next(positions), self.wrapped, self.fresh)


@dataclass(frozen=True, slots=True, eq=False)
class StaticItem:
    """An item that does not fit 32 bits, so it cannot be an argument: it is part of the program.

    Attributes:
        item: the position or span.
    """

    item: At | Span

    def decode(self, size: int, positions: Iterator[Any]) -> Item:
        """The item, for a dimension of that size."""
        return self.item


#: The code of one item; None for a new dimension.
ItemCode = WholeDimension | DynamicSpan | DynamicPosition | DynamicArray | StaticItem | None

_WHOLE: Final = {flip: WholeDimension(flip) for flip in (False, True)}
_POSITION: Final = {wrapped: DynamicPosition(wrapped) for wrapped in (False, True)}
_ARRAY: Final = {
    (wrapped, fresh): DynamicArray(wrapped, fresh)
    for wrapped in (False, True)
    for fresh in (False, True)
}
_span: Final = lru_cache(maxsize=4096)(DynamicSpan)


@lru_cache(maxsize=4096)
def _static_span(start: int, size: int, step: int, flip: bool) -> StaticItem:
    return StaticItem(Span(start, size, step, flip))


@lru_cache(maxsize=4096)
def _static_position(value: int) -> StaticItem:
    return StaticItem(At(value, True))


class IndexCode(NamedTuple):
    """The form of a parsed index.

    Attributes:
        items: the codes of the items.
        arrays: as in `Index`.
        separated: as in `Index`.
    """

    items: tuple[ItemCode, ...]
    arrays: bool
    separated: bool

    @property
    def takes_all(self) -> bool:
        """Whether the index takes the whole array unchanged."""
        return all(item is _WHOLE[False] for item in self.items)


def encode(index: Index, shape: Shape) -> tuple[IndexCode, list[Any]]:
    """The code of an index parsed for a shape, and its positions, the arguments of a program.

    Positions out of bounds stay so when narrowed to 32 bits.
    """
    items: list[ItemCode] = []
    positions: list[Any] = []
    axis = 0
    for item in index.items:
        if item is None:
            items.append(None)
            continue
        if isinstance(item, Span):
            start, size, step, flip = item.start, item.size, item.step, item.flip
            if step == 1 and size == shape[axis]:
                items.append(_WHOLE[flip])
            elif type(start) is int and start > HIGHEST:
                items.append(_static_span(start, size, step, flip))
            else:
                items.append(_span(size, step, flip))
                positions.append(start)
        elif isinstance(item, At):
            value = item.value
            if type(value) is not int:
                items.append(_POSITION[item.wrapped])
                positions.append(value)
            elif HIGHEST < value < shape[axis]:
                items.append(_static_position(value))
            else:
                items.append(_POSITION[True])
                positions.append(min(max(value, LOWEST), HIGHEST))
        else:
            items.append(_ARRAY[item.wrapped, item.fresh])
            positions.append(item.array)
            axis -= item.fresh
        axis += 1
    return IndexCode(tuple(items), index.arrays, index.separated), positions


def decode(code: IndexCode, positions: Sequence[Any], shape: Shape) -> Index:
    """The index from its code and positions: the inverse of `encode`."""
    remaining = iter(positions)
    items: list[Item] = []
    axis = 0
    for part in code.items:
        if part is None:
            items.append(None)
        elif type(part) is DynamicArray and part.fresh:
            items.append(part.decode(1, remaining))
        else:
            items.append(part.decode(shape[axis], remaining))
            axis += 1
    return Index(items, code.arrays, code.separated)
