"""How the elements of an array lie in the memory of its device."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

from dovetail._core.runtime.devices.plugin_buffers import PluginBuffer
from dovetail._core.runtime.devices.sharding import Sharding

__all__ = ["Format", "Layout", "format_of"]


@dataclass(frozen=True, slots=True)
class Layout:
    """The order in which the elements of an array lie in memory.

    Attributes:
        major_to_minor: the dimensions, from that whose elements lie farthest apart to that whose
            elements lie side by side; ``(0, 1)`` for a matrix in row-major order.
        tiling: sizes of the tiles that the last dimensions are cut into, one tuple for each level,
            on devices that do so; None for what the compiler chooses.
        sub_byte_element_size_in_bits: the size of an element where several share a byte, else 0.

    Raises:
        TypeError: ``major_to_minor`` is no sequence of integers.
        ValueError: it does not name each dimension once.

    Example:
        >>> from dovetail.experimental.layout import Layout
        >>> Layout((1, 0)).major_to_minor
        (1, 0)
    """

    major_to_minor: tuple[int, ...]
    tiling: tuple[tuple[int, ...], ...] | None = None
    sub_byte_element_size_in_bits: int = 0

    def __post_init__(self) -> None:
        try:
            order = tuple(operator.index(d) for d in self.major_to_minor)
        except TypeError:
            raise TypeError(
                f"Layout takes a tuple of dimensions as major_to_minor, got {self.major_to_minor!r}"
            ) from None
        if sorted(order) != list(range(len(order))):
            raise ValueError(
                f"Layout: major_to_minor must name each dimension from 0 to {len(order) - 1} once, "
                f"got {order}"
            )
        object.__setattr__(self, "major_to_minor", order)
        if self.tiling is not None:
            object.__setattr__(self, "tiling", tuple(map(tuple, self.tiling)))

    @property
    def is_default(self) -> bool:
        """Whether it is row-major order without tiles, which arrays have on most devices."""
        ordered = self.major_to_minor == tuple(range(len(self.major_to_minor)))
        return ordered and not self.tiling and not self.sub_byte_element_size_in_bits


@dataclass(frozen=True, slots=True)
class Format:
    """Where an array is, and how it lies in memory there; an array has it as ``x.format``.

    Attributes:
        layout: the order of elements; None for that of the device.
        sharding: the devices; None for where the value is.

    Raises:
        TypeError: one of them is something else.
        ValueError: there is a layout and no sharding: devices differ in what they can do.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.ones((2, 3)).format.layout.major_to_minor
        (0, 1)
    """

    layout: Layout | None = None
    sharding: Any = None

    def __post_init__(self) -> None:
        if self.layout is not None and not isinstance(self.layout, Layout):
            raise TypeError(f"Format takes a Layout or None as layout, got {self.layout!r}")
        if self.sharding is not None and not isinstance(self.sharding, Sharding):
            raise TypeError(f"Format takes a sharding or None as sharding, got {self.sharding!r}")
        if self.layout is not None and self.sharding is None:
            raise ValueError(
                "Format: a layout needs a sharding beside it, such as "
                "SingleDeviceSharding(dovetail.devices()[0])"
            )


def format_of(buffer: Any, sharding: Any) -> Format:
    """The format of an array's buffer."""
    if type(buffer) is PluginBuffer:
        return Format(Layout(tuple(range(len(buffer.aval.shape)))), sharding)
    layout = buffer._pjrt_layout._xla_layout()
    bits = int(layout.element_size_in_bits())
    tiles = tuple(tuple(sizes) for sizes in layout.tiling())
    return Format(Layout(tuple(reversed(layout.minor_to_major())), tiles, bits), sharding)
