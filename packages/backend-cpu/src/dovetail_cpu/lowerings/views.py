"""Arrays as parts of another one that repeat, without copies: slices, rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

from dovetail.extend.core import primitives


class View(NamedTuple):
    """An array whose elements are those of another one, from one on, at fixed distances.

    A distance of zero repeats them.
    """

    source: int
    first: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @classmethod
    def whole(cls, source: int, shape: tuple[int, ...]) -> Self:
        """All of an array in row-major order."""
        return cls(source, 0, shape, row_major(shape))

    @property
    def is_whole(self) -> bool:
        """Whether the elements lie one after the other."""
        usual = row_major(self.shape)
        pairs = zip(self.shape, self.strides, usual, strict=True)
        return all(n == 1 or stride == own for n, stride, own in pairs)

    def moved(self, eqn: Any, shape: tuple[int, ...]) -> View | None:
        """What an equation makes of the view; None if that is no view, or another operation."""
        primitive, params = eqn.primitive, eqn.params
        if primitive is primitives.slice_p:
            starts, steps = params["start_indices"], params["strides"] or (1,) * len(self.shape)
            first = self.first + sum(n * s for n, s in zip(starts, self.strides, strict=True))
            strides = [n * s for n, s in zip(steps, self.strides, strict=True)]
            return self._replace(first=first, shape=shape, strides=tuple(strides))
        if primitive is primitives.squeeze_p:
            kept = [d for d in range(len(self.shape)) if d not in params["dimensions"]]
            return self._replace(shape=shape, strides=tuple(self.strides[d] for d in kept))
        if primitive is primitives.transpose_p:
            strides = [self.strides[d] for d in params["permutation"]]
            return self._replace(shape=shape, strides=tuple(strides))
        if primitive is primitives.broadcast_in_dim_p:
            return self._broadcast(shape, params["broadcast_dimensions"])
        if primitive is primitives.reshape_p and params["dimensions"] is None:
            return self._reshaped(shape)
        return None

    def spread(self, shape: tuple[int, ...]) -> View | None:
        """The view as an operand of an operation with a result of this shape."""
        rank = len(self.shape)
        return self._broadcast(shape, range(rank)) if rank in (0, len(shape)) else None

    def _broadcast(self, shape: tuple[int, ...], dimensions: Sequence[int]) -> View:
        strides = [0] * len(shape)
        for d, n, stride in zip(dimensions, self.shape, self.strides, strict=True):
            strides[d] = stride if n == shape[d] and n != 1 else 0
        return self._replace(shape=shape, strides=tuple(strides))

    def _reshaped(self, shape: tuple[int, ...]) -> View | None:
        pairs = [(n, s) for n, s in zip(self.shape, self.strides, strict=True) if n != 1]
        if [n for n, _ in pairs] == [n for n in shape if n != 1]:
            left = iter(pairs)
            return self._replace(
                shape=shape, strides=tuple(0 if n == 1 else next(left)[1] for n in shape)
            )
        return self._replace(shape=shape, strides=row_major(shape)) if self.is_whole else None


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The distances of neighbours in an array of its own."""
    strides = [1]
    for n in shape[:0:-1]:
        strides.append(strides[-1] * n)
    return tuple(strides[::-1][: len(shape)])


def joined(views: Sequence[View], shape: tuple[int, ...]) -> tuple[list[int], list[list[int]]]:
    """The sizes of as few dimensions as possible, and the distances of each view along them."""
    sizes: list[int] = []
    strides: list[list[int]] = [[] for _ in views]
    for d, n in enumerate(shape):
        if n == 1:
            continue
        if sizes and all(
            own[-1] == view.strides[d] * n for own, view in zip(strides, views, strict=True)
        ):
            sizes[-1] *= n
            for own, view in zip(strides, views, strict=True):
                own[-1] = view.strides[d]
        else:
            sizes.append(n)
            for own, view in zip(strides, views, strict=True):
                own.append(view.strides[d])
    return sizes, strides
