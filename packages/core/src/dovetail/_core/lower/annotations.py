"""Rules that several of XLA's compilers take, of which not every one can: calls that are marks."""

from __future__ import annotations

from typing import Any, Final

from dovetail._core.hlo.builder import Builder
from dovetail._core.hlo.mlir import Value

__all__ = ["copy_to_memory", "keep_alive"]

_MEMORY_KINDS: Final = ("device", "pinned_host")


def keep_alive(context: Builder, x: Value, *, prevent_mlir_dce: bool) -> list[Value]:
    """A rule for `dce_sink`, where the compiler knows a call of that name, or a kernel is
    registered for it: one that does nothing, and is not removed."""
    if not prevent_mlir_dce:
        return []
    return context.custom_call("dce_sink", [x], [], has_side_effect=True)


def copy_to_memory(context: Builder, x: Value, *, src: str, dst: str) -> Any:
    """A rule for `offload`, where the compiler has a memory of the device and one of the host: a
    mark, of which it makes a copy that runs beside the computation."""
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
