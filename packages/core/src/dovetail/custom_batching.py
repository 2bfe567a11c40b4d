"""Functions that say themselves what they are under `vmap`."""

from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.ops.custom.custom_vmap import custom_vmap as custom_vmap
from dovetail._core.ops.custom.custom_vmap import sequential_vmap as sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]

_publish(globals())
