"""Several processes that compute together, on one machine or many.

Each process calls `initialize`; then their devices are in one list, and programs over meshes of
them run in all processes at once. `python -m dovetail launch` starts processes on this machine, and
`dovetail.experimental.multihost_utils` exchanges values between them.
"""

from dovetail._core.api.distributed import initialize as initialize
from dovetail._core.api.distributed import is_initialized as is_initialized
from dovetail._core.api.distributed import shutdown as shutdown
from dovetail._core.base.tracebacks import publish as _publish

__all__ = ["initialize", "is_initialized", "shutdown"]

_publish(globals())
