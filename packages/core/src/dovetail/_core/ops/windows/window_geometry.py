"""The positions of sliding windows, and the elements in them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from dovetail._core.base.errors import ShapeError
from dovetail._core.base.records import record
from dovetail._core.ir.avals import shape_of
from dovetail._core.ops.shape.padding import Pads, dilated_size
from dovetail._core.ops.shape.slicing import pad_with, static_slice

Shape = tuple[int, ...]


@record
class Window:
    """A window and its steps; the fields are parameters of primitives.

    The array is dilated and padded first. The first window is at its beginning.

    Args:
        window_dimensions: the number of elements in the window, in each dimension.
        window_strides: the distance between windows.
        padding: padding before and after each dimension; negative values crop.
        base_dilation: the distance between adjacent elements of the array; holes lie between them.
        window_dilation: the distance between adjacent elements in the window.
    """

    window_dimensions: Shape
    window_strides: Shape
    padding: Pads
    base_dilation: Shape
    window_dilation: Shape

    @staticmethod
    def undilated(dimensions: Shape, strides: Shape, padding: Pads) -> Window:
        """A window without dilation."""
        ones = (1,) * len(dimensions)
        return Window(dimensions, strides, padding, ones, ones)

    @property
    def is_dilated(self) -> bool:
        """Whether there are gaps in the window, or holes between elements."""
        return any(d != 1 for d in (*self.base_dilation, *self.window_dilation))

    def steps(self) -> dict[str, Any]:
        """The parameters of an undilated window."""
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
        """Raise if the window does not fit an array.

        Args:
            name: of the primitive or function, for messages.
            shape: of the array.

        Raises:
            TypeError: a parameter does not have one entry for each dimension, or is not positive.
        """
        for field, values in self.params().items():
            if len(values) != len(shape):
                raise ShapeError(
                    f"{name}: {field} must have an entry for each dimension of an operand of shape "
                    f"{shape}, got {values}"
                )
            if field != "padding" and any(v < 1 for v in values):
                raise TypeError(f"{name}: {field} must be positive, got {values}")

    def extent(self, dimension: int) -> int:
        """The number of elements from the first to the last in the window, gaps included."""
        return dilated_size(self.window_dimensions[dimension], self.window_dilation[dimension])

    @property
    def has_gaps(self) -> bool:
        """Whether windows may see padding, or holes between elements."""
        pads = (pad for pair in self.padding for pad in pair)
        return any(pad > 0 for pad in pads) or any(d > 1 for d in self.base_dilation)

    def padded(self, shape: Shape) -> Shape:
        """The shape of an array, dilated and padded."""
        return tuple(
            [
                max(low + dilated_size(n, d) + high, 0)
                for n, d, (low, high) in zip(shape, self.base_dilation, self.padding, strict=True)
            ]
        )

    def count(self, shape: Shape) -> Shape:
        """The number of windows along each dimension of an array."""
        return tuple(
            [
                max((n - self.extent(i)) // self.window_strides[i] + 1, 0)
                for i, n in enumerate(self.padded(shape))
            ]
        )

    def inserted(self, dimension: int) -> Window:
        """The window for an array with one more dimension, in which it has size 1."""

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
        """The positions in the window, in lexicographic order."""
        return product(*map(range, self.window_dimensions))

    def starts(self, place: Shape) -> Shape:
        """The index, in the padded array, of a position in the first window."""
        return tuple([k * d for k, d in zip(place, self.window_dilation, strict=True)])

    def limits(self, place: Shape, count: Shape) -> Shape:
        """One past the index of a position in the last window."""
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
        """For each position in the window, the elements of all windows there, of a NumPy array."""
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
    """For each position in the window, the elements of all windows there; at least one window."""
    count = window.count(shape_of(x))
    padded = spread(x, fill, window)
    for place in window.places():
        yield static_slice(
            padded, window.starts(place), window.limits(place, count), window.window_strides
        )
