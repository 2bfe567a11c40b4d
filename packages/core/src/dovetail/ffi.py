"""Native code in programs, through XLA's foreign function interface: docs/write-a-kernel.md."""

from dovetail._core.api.native_targets import include_dir as include_dir
from dovetail._core.api.native_targets import pycapsule as pycapsule
from dovetail._core.api.native_targets import register_ffi_target as register_ffi_target
from dovetail._core.api.native_targets import (
    register_ffi_target_as_batch_partitionable as register_ffi_target_as_batch_partitionable,
)
from dovetail._core.api.native_targets import register_ffi_type as register_ffi_type
from dovetail._core.api.native_targets import register_ffi_type_id as register_ffi_type_id
from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.ir.avals import abstract_token as abstract_token
from dovetail._core.ops.callbacks.native_calls import (
    build_ffi_lowering_function as build_ffi_lowering_function,
)
from dovetail._core.ops.callbacks.native_calls import ffi_call as ffi_call
from dovetail._core.ops.callbacks.native_calls import ffi_lowering as ffi_lowering

__all__ = [
    "abstract_token",
    "build_ffi_lowering_function",
    "ffi_call",
    "ffi_lowering",
    "include_dir",
    "pycapsule",
    "register_ffi_target",
    "register_ffi_target_as_batch_partitionable",
    "register_ffi_type",
    "register_ffi_type_id",
]

_publish(globals())
