"""Lowering rules that only some of XLA's compilers support: calls that are annotations."""

from __future__ import annotations

from typing import Any, Final

from dovetail._core.hlo.builder import Builder
from dovetail._core.hlo.mlir import Value

__all__ = ["copy_to_memory", "keep_alive"]

_MEMORY_KINDS: Final = ("device", "pinned_host")


def keep_alive(context: Builder, x: Value, *, prevent_mlir_dce: bool) -> list[Value]:
    """A rule for `dce_sink`: a custom call that does nothing and is not removed.

    The compiler must know the call, or a kernel must be registered for it.
    """
    if not prevent_mlir_dce:
        return []
    return context.custom_call("dce_sink", [x], [], has_side_effect=True)


def copy_to_memory(context: Builder, x: Value, *, src: str, dst: str) -> Any:
    """A rule for `offload`: an annotation that the compiler turns into an asynchronous copy.

    The compiler must support a memory of the device and one of the host.
    """
    if src not in _MEMORY_KINDS or dst not in _MEMORY_KINDS:
        return NotImplemented
    placement = context.dictionary({"_xla_buffer_placement": dst})
    return context.custom_call(
        "annotate_device_placement",
        [x],
        context.avals_out,
        backend_config="",
        has_side_effect=True,
        api_version=1,
        attributes={"mhlo.frontend_attributes": placement},
    )
