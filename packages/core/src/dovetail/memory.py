"""Memories of devices: where the data of arrays is kept."""

from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.runtime.devices.memory_spaces import Space as Space

__all__ = ["Space"]

_publish(globals())
