"""Memory layouts of arrays on devices."""

from dovetail._core.runtime.devices.layout import Format as Format
from dovetail._core.runtime.devices.layout import Layout as Layout

__all__ = ["Format", "Layout"]
