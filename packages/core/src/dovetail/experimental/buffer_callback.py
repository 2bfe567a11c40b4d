"""Python functions that read and write the memory of programs."""

from dovetail._core.base.bindings import _jax
from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.ops.callbacks.buffers import buffer_callback as buffer_callback

Buffer = _jax.ffi.Buffer
ExecutionContext = _jax.ffi.ExecutionContext
ExecutionStage = _jax.ffi.ExecutionStage

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]

_publish(globals())
