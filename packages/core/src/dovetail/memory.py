"""Memories of devices: where the data of arrays is kept, and what holds it now.

``dovetail.memory()`` is a table of the live arrays by the lines that made them; the method
``memory`` of what ``jit(f).lower(...)`` returns tells what a program takes before it runs.
"""

import typing as _typing

from dovetail._core.api import callable_memory as _callable_memory
from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.runtime.devices.live_buffers import LiveLine as LiveLine
from dovetail._core.runtime.devices.memory_spaces import Space as Space
from dovetail._core.runtime.reports.live_memory import DeviceUse as DeviceUse
from dovetail._core.runtime.reports.live_memory import LiveMemory as LiveMemory
from dovetail._core.runtime.reports.memory_plan import MemoryPlan as MemoryPlan
from dovetail._core.runtime.reports.memory_plan import PlannedBuffer as PlannedBuffer

if _typing.TYPE_CHECKING:
    callable_module = _callable_memory.MemoryModule
else:
    callable_module = _callable_memory.make_callable(__name__)

__all__ = ["DeviceUse", "LiveLine", "LiveMemory", "MemoryPlan", "PlannedBuffer", "Space"]

_publish(globals())
