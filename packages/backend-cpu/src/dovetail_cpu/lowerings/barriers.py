"""What keeps the compiler from removing a computation."""

from __future__ import annotations

from typing import Any, Final

from dovetail.extend import LoweringTable

TABLE: Final = LoweringTable()


@TABLE.rule("dce_sink")
def dce_sink(context: Any, x: Any, *, prevent_mlir_dce: bool) -> Any:
    """A call of a kernel that does nothing, which jaxlib brings for this platform."""
    if not prevent_mlir_dce:
        return []
    return context.custom_call("dce_sink", [x], [], has_side_effect=True)
