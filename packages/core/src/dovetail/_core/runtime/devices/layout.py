"""The memory layout of arrays on their devices."""

from __future__ import annotations

import operator
from typing import Any, ClassVar, Final

from dovetail._core.base.records import record
from dovetail._core.base.tracebacks import bounded
from dovetail._core.runtime.devices.plugin_buffers import PluginBuffer
from dovetail._core.runtime.devices.sharding import Sharding

__all__ = ["AutoLayout", "Format", "Layout", "format_of", "in_own_order", "layout_of"]


class AutoLayout:
    """The type of `Layout.AUTO`, which leaves the order of elements to the compiler."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Layout.AUTO"


_AUTO: Final = AutoLayout()


@bounded
@record
class Layout:
    """The order of an array's elements in memory.

    ``Layout.AUTO``, in a `Format` for the arguments or results of `jit`, leaves the choice to the
    compiler.

    Attributes:
        major_to_minor: the dimensions, from the one with the largest stride to the one with the
            smallest; ``(0, 1)`` for a matrix in row-major order.
        tiling: tile sizes of the last dimensions, one tuple per level, on devices with tiled
            layouts; None lets the compiler choose.
        sub_byte_element_size_in_bits: the size of an element if several share a byte, else 0.

    Raises:
        TypeError: ``major_to_minor`` is not a sequence of integers.
        ValueError: it does not name each dimension exactly once.

    Example:
        >>> from dovetail.experimental.layout import Layout
        >>> Layout((1, 0)).major_to_minor
        (1, 0)
    """

    AUTO: ClassVar[AutoLayout] = _AUTO

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
        """Whether it is row-major without tiles, the layout of arrays on most devices."""
        ordered = self.major_to_minor == tuple(range(len(self.major_to_minor)))
        return ordered and not self.tiling and not self.sub_byte_element_size_in_bits


@bounded
@record
class Format:
    """An array's sharding and memory layout; ``x.format`` for an array ``x``.

    Attributes:
        layout: the order of elements; None for the device's default, ``Layout.AUTO`` for the
            compiler's choice.
        sharding: the devices; None for where the value is.

    Raises:
        TypeError: one of them has the wrong type.
        ValueError: there is a layout but no sharding: devices support different layouts.

    Example:
        >>> import dovetail.numpy as jnp
        >>> jnp.ones((2, 3)).format.layout.major_to_minor
        (0, 1)
    """

    layout: Layout | AutoLayout | None = None
    sharding: Any = None

    def __post_init__(self) -> None:
        if self.layout is not None and not isinstance(self.layout, (Layout, AutoLayout)):
            raise TypeError(f"Format takes a Layout or None as layout, got {self.layout!r}")
        if self.sharding is not None and not isinstance(self.sharding, Sharding):
            raise TypeError(f"Format takes a sharding or None as sharding, got {self.sharding!r}")
        if isinstance(self.layout, Layout) and self.sharding is None:
            raise ValueError(
                "Format: a layout needs a sharding beside it, such as "
                "SingleDeviceSharding(dovetail.devices()[0])"
            )


def in_own_order(given: Format, what: str) -> Any:
    """The sharding of a format that asks for no other order than that of arrays on devices.

    Args:
        given: the format.
        what: where it was given, for the message.

    Raises:
        NotImplementedError: it asks for another one.
    """
    if given.layout is not None and not (type(given.layout) is Layout and given.layout.is_default):
        raise NotImplementedError(
            f"{what}: arrays on devices are in row-major order, which programs take and give; got "
            f"{given.layout}. Leave the layout out: Format(sharding=...)"
        )
    return given.sharding


def format_of(buffer: Any, sharding: Any) -> Format:
    """The format of an array's buffer."""
    if type(buffer) is PluginBuffer:
        return Format(Layout(tuple(range(len(buffer.aval.shape)))), sharding)
    return Format(layout_of(buffer._pjrt_layout), sharding)


def layout_of(pjrt_layout: Any) -> Layout:
    """A layout of jaxlib's."""
    layout = pjrt_layout._xla_layout()
    bits = int(layout.element_size_in_bits())
    tiles = tuple(tuple(sizes) for sizes in layout.tiling())
    return Layout(tuple(reversed(layout.minor_to_major())), tiles, bits)
