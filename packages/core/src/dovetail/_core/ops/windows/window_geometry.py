"""Where the windows are that slide over an array, and what they see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from dovetail._core.ir.avals import shape_of
from dovetail._core.ops.shape.padding import Pads, dilated_size
from dovetail._core.ops.shape.slicing import pad_with, static_slice

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Window:
    """A window and its steps; the fields are parameters of primitives.

    The array is dilated and padded first. The first window stands at its beginning.

    Args:
        window_dimensions: the number of places that the window sees, in each dimension.
        window_strides: the distance from one window to the next.
        padding: places added before and after each dimension; negative ones are removed.
        base_dilation: the distance of neighbouring elements of the array; holes are between them.
        window_dilation: the distance of neighbouring places that the window sees.
    """

    window_dimensions: Shape
    window_strides: Shape
    padding: Pads
    base_dilation: Shape
    window_dilation: Shape

    @staticmethod
    def undilated(dimensions: Shape, strides: Shape, padding: Pads) -> Window:
        """A window of adjacent places over adjacent elements."""
        ones = (1,) * len(dimensions)
        return Window(dimensions, strides, padding, ones, ones)

    @property
    def is_dilated(self) -> bool:
        """Whether there are places between those that it sees, or between elements."""
        return any(d != 1 for d in (*self.base_dilation, *self.window_dilation))

    def steps(self) -> dict[str, Any]:
        """The parameters of a window that is not dilated."""
        return {
            "padding": self.padding,
            "window_dimensions": self.window_dimensions,
            "window_strides": self.window_strides,
        }

    def params(self) -> dict[str, Any]:
        """All parameters."""
        return {
            "base_dilation": self.base_dilation,
            "padding": self.padding,
            "window_dilation": self.window_dilation,
            "window_dimensions": self.window_dimensions,
            "window_strides": self.window_strides,
        }

    def attributes(self) -> dict[str, Any]:
        """The arguments of a builder's ``reduce_window``."""
        return {
            "window_dimensions": self.window_dimensions,
            "window_strides": self.window_strides,
            "padding": self.padding,
            "base_dilations": self.base_dilation,
            "window_dilations": self.window_dilation,
        }

    def check(self, name: str, shape: Shape) -> None:
        """Raise where the window does not go with an array.

        Args:
            name: of the primitive or function, for messages.
            shape: of the array.

        Raises:
            TypeError: a parameter has not one entry for each dimension, or is not positive.
        """
        for field, values in self.params().items():
            if len(values) != len(shape):
                raise TypeError(
                    f"{name}: {field} must have an entry for each dimension of an operand of shape "
                    f"{shape}, got {values}"
                )
            if field != "padding" and any(v < 1 for v in values):
                raise TypeError(f"{name}: {field} must be positive, got {values}")

    def extent(self, dimension: int) -> int:
        """The number of places from the first to the last that the window sees."""
        return dilated_size(self.window_dimensions[dimension], self.window_dilation[dimension])

    def padded(self, shape: Shape) -> Shape:
        """The shape of an array, dilated and padded."""
        return tuple(
            [
                max(low + dilated_size(n, d) + high, 0)
                for n, d, (low, high) in zip(shape, self.base_dilation, self.padding, strict=True)
            ]
        )

    def count(self, shape: Shape) -> Shape:
        """How many windows there are along each dimension of an array."""
        return tuple(
            [
                max((n - self.extent(i)) // self.window_strides[i] + 1, 0)
                for i, n in enumerate(self.padded(shape))
            ]
        )

    def inserted(self, dimension: int) -> Window:
        """The window over an array with one more dimension, in which it sees one element."""

        def with_entry(values: tuple[Any, ...], entry: Any) -> tuple[Any, ...]:
            return (*values[:dimension], entry, *values[dimension:])

        return Window(
            with_entry(self.window_dimensions, 1),
            with_entry(self.window_strides, 1),
            with_entry(self.padding, (0, 0)),
            with_entry(self.base_dilation, 1),
            with_entry(self.window_dilation, 1),
        )

    def places(self) -> Iterator[Shape]:
        """The places that the window sees, in lexicographic order."""
        return product(*map(range, self.window_dimensions))

    def starts(self, place: Shape) -> Shape:
        """Where the first window sees a place, in the padded array."""
        return tuple([k * d for k, d in zip(place, self.window_dilation, strict=True)])

    def limits(self, place: Shape, count: Shape) -> Shape:
        """The position after that where the last window sees a place."""
        return tuple(
            [
                start + (n - 1) * step + 1 if n else start
                for start, n, step in zip(
                    self.starts(place), count, self.window_strides, strict=True
                )
            ]
        )

    def laid_out(self, x: Any, fill: Any) -> np.ndarray[Any, Any]:
        """A NumPy array, dilated and padded with `fill`."""
        x = np.asarray(x)
        for axis, size in enumerate(self.padded(x.shape)):
            positions = np.arange(x.shape[axis]) * self.base_dilation[axis] + self.padding[axis][0]
            inside = (positions >= 0) & (positions < size)
            lines = np.moveaxis(x, axis, 0)
            spread = np.empty((size, *lines.shape[1:]), x.dtype)
            spread[...] = fill
            spread[positions[inside]] = lines[inside]
            x = np.moveaxis(spread, 0, axis)
        return np.asarray(x)

    def views(self, x: Any, fill: Any) -> Iterator[np.ndarray[Any, Any]]:
        """For each place, what all windows see there of a NumPy array."""
        count = self.count(np.shape(x))
        laid_out = self.laid_out(x, fill)
        for place in self.places():
            parts = map(slice, self.starts(place), self.limits(place, count), self.window_strides)
            yield laid_out[tuple(parts)]


def spread(x: Any, fill: Any, window: Window) -> Any:
    """An array, dilated and padded with a scalar."""
    config = [
        (low, high, distance - 1)
        for (low, high), distance in zip(window.padding, window.base_dilation, strict=True)
    ]
    return pad_with(x, fill, tuple(config))


def seen(x: Any, fill: Any, window: Window) -> Iterator[Any]:
    """For each place, what all windows see there of an array; there must be a window."""
    count = window.count(shape_of(x))
    padded = spread(x, fill, window)
    for place in window.places():
        yield static_slice(
            padded, window.starts(place), window.limits(place, count), window.window_strides
        )
