"""Flat values in groups, as the operands and results of a loop are: `jax._src.flattree`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from dovetail._core.base.counting import counted


class FlatTree:
    """Groups of values, of which each is a value or groups again.

    Args:
        elts: the groups.
    """

    __slots__ = ("elts",)

    def __init__(self, elts: Sequence[Any]) -> None:
        self.elts = tuple(elts)

    @property
    def vals(self) -> tuple[Any, ...]:
        """All values, in order."""
        return tuple(self)

    def unpack(self) -> tuple[Any, ...]:
        """The groups."""
        return self.elts

    def update(self, vals: Sequence[Any]) -> FlatTree:
        """The same groups of other values.

        Args:
            vals: as many values as there are.
        """
        count = len(self.vals)
        if len(vals) != count:
            raise ValueError(f"a FlatTree of {counted(count, 'value')} was given {len(vals)}")
        return self._filled(iter(vals))

    def _filled(self, vals: Iterator[Any]) -> FlatTree:
        return FlatTree([e._filled(vals) if type(e) is FlatTree else next(vals) for e in self.elts])

    def __iter__(self) -> Iterator[Any]:
        for element in self.elts:
            if type(element) is FlatTree:
                yield from element
            else:
                yield element

    def __len__(self) -> int:
        return len(self.elts)

    def __repr__(self) -> str:
        return repr(self.elts)


def nones(n: int) -> FlatTree:
    """A group of values that are not known yet.

    Args:
        n: how many there are.
    """
    return FlatTree([None] * n)


def pack(tree: Sequence[Any]) -> FlatTree:
    """Groups, together.

    Args:
        tree: the groups.
    """
    return FlatTree(tree)
