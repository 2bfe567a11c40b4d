"""Exchange of arrays with other libraries through DLPack."""

from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.runtime.arrays.dlpack import from_dlpack as from_dlpack
from dovetail._core.runtime.arrays.dlpack import is_supported_dtype as is_supported_dtype

__all__ = ["from_dlpack", "is_supported_dtype"]

_publish(globals())
