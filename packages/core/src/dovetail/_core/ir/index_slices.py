"""`ds`: slices of a fixed size whose start may be known only when a program runs."""

from __future__ import annotations

import operator
from typing import Any, overload

from dovetail._core.base.records import record
from dovetail._core.base.unspecified import UNSPECIFIED

__all__ = ["Slice", "ds"]


@record
class Slice:
    """Evenly spaced positions of a dimension; `dovetail.ds` makes one.

    Attributes:
        start: the first position: an int, or an array of integers of rank 0.
        size: how many there are.
        stride: the distance between them.
    """

    start: Any
    size: int
    stride: int = 1

    @property
    def extent(self) -> int:
        """The number of positions from the first to the last."""
        return (self.size - 1) * self.stride + 1 if self.size else 0


@overload
def ds(start: None) -> slice: ...


@overload
def ds(start: Any, size: int = ..., stride: int | None = None) -> Slice: ...


def ds(start: Any, size: Any = UNSPECIFIED, stride: int | None = None) -> Slice | slice:
    """A slice by its start and its size, for indices of arrays and of references.

    Its size is known when a program is traced, and its start need not be. A slice that would reach
    beyond an end of the dimension is moved, so that it lies inside, as `lax.dynamic_slice` does.

    Args:
        start: the first position; or the size, of a slice from the beginning, if it is the only
            argument; None for the whole dimension.
        size: how many positions.
        stride: the distance between them; 1 by default.

    Returns:
        What stands in the brackets of ``x[...]`` or ``x.at[...]``.

    Raises:
        TypeError: `size` or `stride` is not an int.
        ValueError: `size` is negative, or `stride` not positive.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> x = jnp.arange(10)
        >>> @dt.jit
        ... def window(x, start):
        ...     return x[dt.ds(start, 3)]
        >>> window(x, 4), x[dt.ds(1, 3, 2)]
        (Array([4, 5, 6], dtype=int32), Array([1, 3, 5], dtype=int32))
    """
    if size is UNSPECIFIED:
        if start is None:
            return slice(None)
        start, size = 0, start
    try:
        size, stride = operator.index(size), 1 if stride is None else operator.index(stride)
    except TypeError:
        raise TypeError(
            f"ds: size and stride are ints, known when the program is traced, got {size!r:.80} and "
            f"{stride!r:.80}"
        ) from None
    if size < 0 or stride < 1:
        raise ValueError(
            f"ds: size is 0 or more and stride is 1 or more, got size={size} and stride={stride}"
        )
    return Slice(start, size, stride)
