"""The plug-in object for a PJRT library that was not written for dovetail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dovetail._core.plugins.foreign import ForeignPlugin
from dovetail._core.plugins.hookspecs import PLUGIN_API, BackendInfo, hookimpl

if TYPE_CHECKING:
    from dovetail._core.runtime.devices.pjrt import PjrtPlugin

__all__ = ["ForeignBackend"]


class ForeignBackend:
    """Backend hooks for a PJRT library that does not implement them itself.

    Args:
        found: the library.
    """

    def __init__(self, found: ForeignPlugin) -> None:
        self._found = found

    @hookimpl
    def dovetail_backend_info(self) -> BackendInfo:
        """Describe the platform without opening the library."""
        return BackendInfo(
            platform=self._found.name,
            api=PLUGIN_API,
            priority=self._found.priority,
            aliases=self._found.aliases,
            description=self._found.description,
            capabilities=self._found.capabilities,
        )

    @hookimpl
    def dovetail_make_client(self, options: Mapping[str, object]) -> Any:
        """Load the library and create its client; `options` override the configured ones."""
        return self._plugin().make_client({**self._found.create_options, **options})

    @hookimpl
    def dovetail_topology(self, name: str, options: Mapping[str, object]) -> Sequence[Any]:
        """Devices for which the library compiles ahead of time."""
        return self._plugin().topology_devices(name, **options)

    def _plugin(self) -> PjrtPlugin:
        from dovetail._core.runtime.devices.pjrt import (  # deferred: only if it is used
            PjrtError,
            load_plugin,
        )

        library, *others = self._found.libraries
        if others:
            raise PjrtError(
                f"{self._found.origin} has several PJRT libraries, {', '.join((library, *others))}"
                "; name one of them in the environment variable PJRT_NAMES_AND_LIBRARY_PATHS"
            )
        return load_plugin(self._found.name, library)
