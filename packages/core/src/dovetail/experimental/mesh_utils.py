"""Arrays of devices for meshes, in an order that follows the links between them."""

from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.runtime.devices.device_meshes import create_device_mesh as create_device_mesh
from dovetail._core.runtime.devices.device_meshes import (
    create_hybrid_device_mesh as create_hybrid_device_mesh,
)
from dovetail._core.runtime.devices.device_meshes import (
    device_kind_handler_dict as device_kind_handler_dict,
)

__all__ = ["create_device_mesh", "create_hybrid_device_mesh", "device_kind_handler_dict"]

_publish(globals())
