"""Arrays, and the conversion of host values to arrays on a device.

An array on the current mesh or the default device, created without compiling a program:

    from dovetail.extend.arrays import placed_by_default
    from dovetail.extend.avals import make_aval

    def array_of(value):
        return placed_by_default(value, make_aval(value.shape, value.dtype))
"""

from dovetail._core.runtime.arrays.array import Array as Array
from dovetail._core.runtime.arrays.array import array_from_buffer as array_from_buffer
from dovetail._core.runtime.arrays.buffers import is_buffer as is_foreign_buffer
from dovetail._core.runtime.arrays.buffers import put as put_buffer
from dovetail._core.runtime.arrays.compiled_path import placed_by_default as placed_by_default
from dovetail._core.runtime.arrays.host import checked_ndarray as checked_ndarray
from dovetail._core.runtime.devices.clients import default_device as present_default_device
from dovetail._core.runtime.devices.sharding import default_sharding as default_sharding
from dovetail._core.runtime.programs.arguments import from_foreign as array_from_foreign

__all__ = [
    "Array",
    "array_from_buffer",
    "array_from_foreign",
    "checked_ndarray",
    "default_sharding",
    "is_foreign_buffer",
    "placed_by_default",
    "present_default_device",
    "put_buffer",
]
