"""Exchange of arrays with other libraries through DLPack.

jaxlib's own import would make it look for jax. So host data goes through NumPy or, for dtypes that
NumPy lacks, is read with the layout from DLPack's header file
(https://github.com/dmlc/dlpack/blob/main/include/dlpack/dlpack.h).
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import ml_dtypes
import numpy as np

from dovetail._core.base.bindings import (
    JAXLIB_VERSION,
    DLDataType,
    DLTensor,
    _jax,
    capsule_pointer,
)
from dovetail._core.base.errors import BackendUnavailableError, TracerArrayConversionError
from dovetail._core.ir.avals import make_aval
from dovetail._core.runtime.arrays import buffers, guards
from dovetail._core.runtime.arrays.array import Array, array_from_buffer, wrap_as
from dovetail._core.runtime.arrays.host import checked_ndarray, numpy_aval
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.plugin_buffers import PluginBuffer
from dovetail._core.runtime.devices.sharding import (
    SingleDeviceSharding,
    as_sharding,
    default_sharding,
)
from dovetail._core.trace.tracer import Tracer

__all__ = ["address", "dlpack_device", "from_dlpack", "is_supported_dtype", "to_capsule"]

CPU: Final = 1
CUDA: Final = 2
CUDA_HOST: Final = 3
ROCM: Final = 10

_PLATFORM_CODES: Final = {"cpu": CPU, "cuda": CUDA, "gpu": CUDA, "rocm": ROCM}
_ALIGNMENT: Final = 64
_VERSIONED: Final = b"dltensor_versioned"
_IS_COPIED: Final = 2  # DLPack's flag for a tensor that was copied for its consumer


class _Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


_capsule_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_capsule_is_valid.restype = ctypes.c_int
_capsule_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]

# DLPack's type codes.
_CODES: Final = {
    0: "int",
    1: "uint",
    2: "float",
    4: "bfloat",
    5: "complex",
    6: "bool",
    8: "float8_e4m3",
    9: "float8_e4m3b11fnuz",
    10: "float8_e4m3fn",
    11: "float8_e4m3fnuz",
    12: "float8_e5m2",
    13: "float8_e5m2fnuz",
    14: "float8_e8m0fnu",
    7: "float8_e3m4",
}
_CODES_OF_ML_DTYPES: Final = {
    "bfloat16": 4,
    **{name: code for code, name in _CODES.items() if name.startswith("float8")},
}


def _numpy_dtype(data_type: DLDataType) -> np.dtype[Any]:
    """The dtype for a DLPack type code."""
    name, bits = _CODES.get(data_type.code, ""), data_type.bits
    if data_type.lanes == 1:
        if name == "bool" and bits == 8:
            return np.dtype(bool)
        if name in ("int", "uint", "float", "complex") and bits >= 8:
            number: np.dtype[Any] = np.dtype(f"{name}{bits}")
            return number
        if name == "bfloat" and bits == 16:
            bfloat16: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
            return bfloat16
        if name.startswith("float8") and bits == 8:
            float8: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
            return float8
    raise BufferError(
        f"DLPack type code {data_type.code} of {bits} bits, {data_type.lanes} lanes, is no dtype "
        "of arrays"
    )


def _tensor(capsule: Any) -> DLTensor:
    """The tensor in an unconsumed capsule."""
    if _capsule_is_valid(capsule, _VERSIONED):
        versioned = _Versioned.from_address(capsule_pointer(capsule, _VERSIONED))
        if versioned.major > 1:
            raise BufferError(f"DLPack version {versioned.major} is newer than the known version 1")
        tensor: DLTensor = versioned.tensor
        return tensor
    if _capsule_is_valid(capsule, b"dltensor"):
        return DLTensor.from_address(capsule_pointer(capsule, b"dltensor"))
    raise BufferError("the DLPack capsule was consumed already; make a new one for each use")


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can be exchanged: numbers of whole bytes, and booleans."""
    if not isinstance(dtype, np.dtype):
        return False
    name = dtype.name
    if name in _CODES.values() or name == "bfloat16":
        return True
    return dtype.kind in "biufc" and dtype.itemsize in (1, 2, 4, 8, 16)


# ---------------------------------------------------------------------------------------------
# export


def dlpack_device(array: Array) -> tuple[int, int]:
    """The kind and number of the device that holds an array, in DLPack's terms."""
    device = array.device
    if not clients.is_device(device):
        raise BufferError("an array on several devices cannot be exchanged through DLPack")
    if type(array._buffer) is PluginBuffer:
        return CPU, 0  # wherever its backend stores it, a host copy is exported
    code = _PLATFORM_CODES.get(clients.platform_of(device), CPU)
    if code == CPU:  # or a platform unknown to DLPack: a host copy is exported
        return CPU, 0
    return code, int(device.local_hardware_id)


def to_capsule(
    array: Array,
    stream: Any = None,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[int, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """The result of ``array.__dlpack__``, with the arguments of the array API standard.

    Raises:
        BufferError: DLPack does not support the array's dtype or device, or a copy would be
            needed but is forbidden.
    """
    array._check()
    if not is_supported_dtype(array.dtype):
        raise BufferError(f"arrays of dtype {array.dtype} cannot be exchanged through DLPack")
    buffer = array._buffer
    present = dlpack_device(array)
    unknown = clients.platform_of(array.device) not in _PLATFORM_CODES
    elsewhere = dl_device is not None and tuple(map(int, dl_device)) != present
    if unknown or type(buffer) is PluginBuffer or elsewhere:
        if dl_device is not None and int(dl_device[0]) != CPU:
            raise BufferError(
                f"an array on {array.device!r} is not exported to another accelerator"
            )
        if copy is False:
            raise BufferError(
                f"an array on {array.device!r} does not reach the host without a copy"
            )
        return _host_capsule(np.array(buffers.read(buffer)), max_version)
    if copy:
        buffer = buffers.copy(buffer)
    buffers.wait(buffer)
    if JAXLIB_VERSION >= (0, 12, 0):
        return _jax.buffer_to_dlpack_managed_tensor(
            buffer, stream=stream, max_version=max_version, copied=bool(copy)
        )
    return _jax.buffer_to_dlpack_managed_tensor(buffer, stream=stream)


def _host_capsule(value: np.ndarray[Any, Any], max_version: tuple[int, int] | None) -> Any:
    """The capsule of a copy in NumPy's memory, which needs no CPU client."""
    code = _CODES_OF_ML_DTYPES.get(value.dtype.name)
    exported = value if code is None else value.view(f"u{value.itemsize}")
    try:
        capsule = exported.__dlpack__(max_version=max_version)
    except TypeError:
        capsule = exported.__dlpack__()  # NumPy before 2.1, whose capsules have no version
    if code is not None:
        _tensor(capsule).dtype.code = code
    if _capsule_is_valid(capsule, _VERSIONED):
        _Versioned.from_address(capsule_pointer(capsule, _VERSIONED)).flags |= _IS_COPIED
    return capsule


def address(buffer: Any) -> int:
    """The address of a buffer's data.

    jaxlib's own call makes it look for jax if the buffer came from the host.
    """
    buffers.wait(buffer)
    if len(buffer._sharding._device_list) > 1:
        raise BufferError(
            "an array on several devices has no address; x.addressable_data(0) has one"
        )
    if type(buffer) is PluginBuffer:
        raise BufferError(f"arrays of the platform {buffer.platform()!r} have no address")
    platform = clients.platform_of(buffer._sharding._device)
    if platform == "cpu":
        if buffer.aval.dtype.name not in ("int2", "int4", "uint2", "uint4"):
            location: int = buffers.read(buffer).__array_interface__["data"][0]
            return location
    elif platform in _PLATFORM_CODES and is_supported_dtype(buffer.aval.dtype):
        tensor = _tensor(_jax.buffer_to_dlpack_managed_tensor(buffer))
        return int(tensor.data or 0) + int(tensor.byte_offset)
    return int(buffer.unsafe_buffer_pointer())


# ---------------------------------------------------------------------------------------------
# import


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """An array with the data of another library's array.

    The data is copied, because its owner could write to it later. ``copy=False`` shares the memory
    instead; the owner must not write to it then.

    Args:
        external_array: an object with ``__dlpack__`` and ``__dlpack_device__``, such as a PyTorch
            tensor.
        device: where to place the result: a device or a sharding. If None, the device that the data
            is on; for data on the host, the default device if the host is not a device of this
            process (``DOVETAIL_PLATFORMS`` leaves out ``"cpu"``).
        copy: False to share the memory, or fail.

    Returns:
        The array; 64-bit numbers become 32-bit ones unless ``enable_x64`` is on.

    Raises:
        TypeError: ``external_array`` is not such an object.
        BufferError: its dtype or device is not supported, or ``copy=False`` and sharing is
            impossible.

    Differs:
        The array is copied unless `copy` is False, since the owner of the memory may write to
        it.

        >>> host = np.zeros(3, np.float32)
        >>> x = dt.dlpack.from_dlpack(host)
        >>> host[:] = 1
        >>> print(x)
        [0. 0. 0.]

    Example:
        >>> import numpy as np
        >>> from dovetail.dlpack import from_dlpack
        >>> from_dlpack(np.arange(3, dtype="float32"))
        Array([0., 1., 2.], dtype=float32)
    """
    if isinstance(external_array, Tracer):
        raise TracerArrayConversionError(external_array)
    if not hasattr(external_array, "__dlpack__") or not hasattr(
        external_array, "__dlpack_device__"
    ):
        hint = (
            "; pass the array itself instead of a capsule"
            if type(external_array).__name__ == "PyCapsule"
            else ""
        )
        raise TypeError(
            "from_dlpack takes an object with __dlpack__ and __dlpack_device__, such as a PyTorch "
            f"tensor; got {type(external_array).__name__}{hint}"
        )
    target = None if device is None else as_sharding(device)
    with guards.explicit():
        if isinstance(external_array, Array):
            return _from_own(external_array, target, copy)
        kind, number = (int(part) for part in external_array.__dlpack_device__())
        if kind in (CPU, CUDA_HOST):
            return _from_host(external_array, target, copy)
        return _from_accelerator(external_array, kind, number, target, copy)


def _from_own(array: Array, target: Any, copy: bool | None) -> Array:
    buffer = array._buffer
    array._check()
    if target is not None and target is not buffer._sharding:
        if copy is False:
            raise BufferError(f"the array is on {array.device!r}, and moving it needs a copy")
        return wrap_as(array, buffers.move(buffer, target, True))
    return wrap_as(array, buffers.copy(buffer)) if copy else array


def _host_view(external: Any) -> np.ndarray[Any, Any]:
    """The external data as a NumPy array in the same memory."""
    if isinstance(external, np.ndarray):
        return external
    try:
        capsule = external.__dlpack__(max_version=(1, 0))
    except TypeError:
        capsule = external.__dlpack__()  # its library predates DLPack's versions
    tensor = _tensor(capsule)
    dtype = _numpy_dtype(tensor.dtype)
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides:
        strides = tuple(tensor.strides[i] * dtype.itemsize for i in range(tensor.ndim))
    else:
        strides = None
    if 0 in shape:
        return np.empty(shape, dtype)
    start = int(tensor.data) + int(tensor.byte_offset)
    steps = strides or (dtype.itemsize,) * len(shape)
    span = [step * (size - 1) for step, size in zip(steps, shape, strict=True)]
    lowest = sum(step for step in span if step < 0)
    if strides is None:
        extent = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    else:
        extent = sum(map(abs, span)) + dtype.itemsize
    memory = (ctypes.c_char * extent).from_address(start + lowest)
    # The capsule is never marked as consumed, so it frees the data when the view is gone.
    memory._owner = (capsule, external)  # type: ignore[attr-defined]
    return np.ndarray(shape, dtype, memory, -lowest, strides)  # type: ignore[arg-type]


def _from_host(external: Any, target: Any, copy: bool | None) -> Array:
    view = _host_view(external)
    value = checked_ndarray(view, "the array given to from_dlpack")
    if target is None:
        place = _host_sharding()
    else:
        place = target
    committed = target is not None or place is not default_sharding()
    if copy is not False:
        return array_from_buffer(buffers.put(value, numpy_aval(value), place, committed))
    problem = _why_not_shared(view, value, place)
    if problem:
        raise BufferError(f"from_dlpack with copy=False: {problem}")
    return array_from_buffer(buffers.put_shared(value, numpy_aval(value), place, committed))


def _host_sharding() -> SingleDeviceSharding:
    """The sharding for host data: the CPU if it is a device here, else the default device."""
    place = default_sharding()
    if clients.platform_of(place._device) == "cpu":
        return place
    try:
        return SingleDeviceSharding(clients.local_devices(backend="cpu")[0])
    except BackendUnavailableError:
        return place


def _why_not_shared(view: np.ndarray[Any, Any], value: np.ndarray[Any, Any], place: Any) -> str:
    """Why an array cannot share host memory; empty if it can."""
    if clients.platform_of(place._device) != "cpu":
        return f"data on the host does not reach {place._device!r} without a copy"
    if value is not view:
        return f"{view.dtype} becomes {value.dtype}, because 64-bit types are off"
    if not view.flags.c_contiguous:
        return "the data is not contiguous"
    if view.size and view.__array_interface__["data"][0] % _ALIGNMENT:
        return f"the data does not begin at a multiple of {_ALIGNMENT} bytes"
    return ""


def _from_accelerator(
    external: Any, kind: int, number: int, target: Any, copy: bool | None
) -> Array:
    platforms = [name for name, code in _PLATFORM_CODES.items() if code == kind]
    if not platforms:
        raise BufferError(f"data on a device of DLPack's kind {kind} cannot be taken over")
    matches = [
        d for d in clients.local_devices(backend=platforms[0]) if d.local_hardware_id == number
    ]
    if not matches:
        raise BufferError(f"this process has no device {number} of the platform {platforms[0]!r}")
    device = matches[0]
    capsule = external.__dlpack__()
    tensor = _tensor(capsule)
    aval = make_aval(tuple(tensor.shape[i] for i in range(tensor.ndim)), _numpy_dtype(tensor.dtype))
    place = SingleDeviceSharding(device)
    buffer = _jax.dlpack_managed_tensor_to_buffer(capsule, device, None)
    buffer = buffers.rewrap(buffer, aval, place, True)
    if copy is not False:
        buffer = buffers.copy(buffer)
    if target is not None and target is not place:
        if copy is False:
            raise BufferError(f"the data is on {device!r}, and moving it needs a copy")
        buffer = buffers.move(buffer, target, True)
    return array_from_buffer(buffer)
