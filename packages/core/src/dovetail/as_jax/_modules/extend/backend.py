"""The module `jax.extend.backend`."""

from dovetail._core.plugins.manager import manager as _manager
from dovetail._core.plugins.protocols import Client as _Client
from dovetail._core.runtime.devices.clients import backend as get_backend
from dovetail._core.runtime.devices.clients import clear_backends as clear_backends
from dovetail._core.runtime.devices.clients import default_device as get_default_device


def backends() -> dict[str, _Client]:
    """The clients of all platforms of this process."""
    return {platform: get_backend(platform) for platform in _manager().resolve_platforms()}
