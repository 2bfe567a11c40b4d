"""`dovetail.memory`, which is a module and can be called."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

from dovetail._core.base.tracebacks import boundary
from dovetail._core.runtime.devices import memory_spaces
from dovetail._core.runtime.reports.live_memory import LiveMemory, live_memory

__all__ = ["CallableModule", "make_callable"]


class CallableModule(ModuleType):
    """A module whose call tells what holds the memory of the devices."""

    @boundary
    def __call__(self, platform: str | None = None) -> LiveMemory:
        return live_memory(platform)

    def __dir__(self) -> list[str]:
        names: list[str] = [*self.__all__, *filter(_is_special, vars(self))]
        return sorted(names)


def _is_special(name: str) -> bool:
    return name.startswith("__")


CallableModule.__call__.__doc__ = live_memory.__doc__


def make_callable(name: str) -> ModuleType:
    """Make a module that is being imported callable, and return it."""
    module = sys.modules[name]
    module.__class__ = CallableModule
    return module


if TYPE_CHECKING:

    class MemoryModule(LiveMemory):
        """What type checkers take the module for: a class is called, and has types inside."""

        Space: TypeAlias = memory_spaces.Space

        def __init__(self, platform: str | None = None) -> None: ...
