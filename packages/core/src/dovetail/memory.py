"""Memories of devices: where the data of arrays is kept."""

from dovetail._core.runtime.devices.memory_spaces import Space as Space

__all__ = ["Space"]
