"""Checks of shapes and dimensions passed by users."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from dovetail._core.base.errors import IndexShapeError, ShapeError, TracerIntegerConversionError
from dovetail._core.ir.dimensions import as_size
from dovetail._core.trace.tracer import Tracer

Shape = tuple[int, ...]
T = TypeVar("T")


def integers(values: Any, function: str, argument: str) -> tuple[int, ...]:
    """A sequence of integers as a tuple of Python ints.

    Args:
        values: a sequence of integers (Python's, NumPy's, or concrete arrays of rank 0).
        function: the name of the user's function, for the message.
        argument: the name of its argument, for the message.

    Raises:
        TypeError: `values` is not a sequence of integers.
        ConcretizationTypeError: it holds a tracer (raised as TracerIntegerConversionError).
    """
    try:
        return tuple(map(as_size, values))
    except TypeError:
        if isinstance(values, Tracer):
            raise TracerIntegerConversionError(values) from None
        if np.iterable(values):
            for value in values:
                if isinstance(value, Tracer):
                    operator.index(value)
        raise TypeError(
            f"lax.{function}: {argument} must be a sequence of integers, got {values!r}"
        ) from None


def integer(value: Any, function: str, argument: str) -> int:
    """An integer as a Python int.

    Raises:
        TypeError: it is not an integer (TracerIntegerConversionError if it is a tracer).
    """
    try:
        return as_size(value)
    except TypeError:
        if isinstance(value, Tracer):
            raise
        raise TypeError(f"lax.{function}: {argument} must be an integer, got {value!r}") from None


def canonical_shape(shape: Any, function: str, argument: str = "shape") -> Shape:
    """A shape as a tuple of non-negative ints; a single integer means a shape of rank 1.

    Raises:
        TypeError: it is not a sequence of integers.
        ShapeError: one is negative.
    """
    if getattr(shape, "ndim", None) == 0 or (
        hasattr(shape, "__index__") and not hasattr(shape, "__len__")
    ):
        shape = (shape,)
    sizes = integers(shape, function, argument)
    if any(n < 0 for n in sizes):
        raise ShapeError(
            f"lax.{function}: the sizes in {argument} must not be negative, got {sizes}"
        )
    return sizes


def canonical_dimension(dimension: Any, rank: int, function: str, argument: str = "axis") -> int:
    """A dimension as an int in ``range(rank)``; a negative one counts from the end.

    Raises:
        TypeError: it is not an integer.
        IndexShapeError: the dimension is out of bounds; a ValueError and an IndexError, as NumPy's
            `AxisError` is.
    """
    d = integer(dimension, function, argument)
    if -rank <= d < rank:
        return d + rank if d < 0 else d
    raise IndexShapeError(
        f"lax.{function}: {argument} {d} is out of bounds for an array of rank {rank}"
    )


def canonical_dimensions(
    dimensions: Any, rank: int, function: str, argument: str = "dimensions"
) -> tuple[int, ...]:
    """Distinct dimensions as a tuple of ints in ``range(rank)``.

    Raises:
        TypeError: they are not a sequence of integers.
        ValueError: a dimension is out of bounds or repeated.
    """
    if type(dimensions) is tuple:
        for d in dimensions:
            if type(d) is not int or not 0 <= d < rank:
                break
        else:
            if len(dimensions) < 2 or len(set(dimensions)) == len(dimensions):
                return dimensions
    canonical = tuple(
        [
            canonical_dimension(d, rank, function, argument)
            for d in integers(dimensions, function, argument)
        ]
    )
    if len(set(canonical)) != len(canonical):
        raise ShapeError(f"lax.{function}: a dimension is named twice in {argument} {dimensions}")
    return canonical


def without(shape: Sequence[T], axes: Sequence[int]) -> tuple[T, ...]:
    """A shape, or labels, without some dimensions."""
    return tuple([n for i, n in enumerate(shape) if i not in axes])


def replaced(shape: tuple[T, ...], dimension: int, size: T) -> tuple[T, ...]:
    """A shape with the size of one dimension replaced, or labels with one of them."""
    return (*shape[:dimension], size, *shape[dimension + 1 :])


def inserted(shape: tuple[T, ...], dimension: int, size: T) -> tuple[T, ...]:
    """A shape with one more dimension, or labels with one more, at `dimension`."""
    return (*shape[:dimension], size, *shape[dimension:])
