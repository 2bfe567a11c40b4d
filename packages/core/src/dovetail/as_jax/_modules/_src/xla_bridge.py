"""The module `jax._src.xla_bridge`."""

from dovetail._core.runtime.devices.clients import _clients as _backends
from dovetail._core.runtime.devices.clients import backend as get_backend
from dovetail._core.runtime.devices.clients import clear_backends as _clear_backends
