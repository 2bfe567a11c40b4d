"""Values in the memory of the host."""

from __future__ import annotations

from typing import Any, Final

from dovetail.extend import LoweringTable

TABLE: Final = LoweringTable()

_KINDS: Final = ("device", "pinned_host")


@TABLE.rule("offload")
def offload(context: Any, x: Any, *, src: str, dst: str) -> Any:
    """A mark that XLA makes a copy of, which runs beside the computation."""
    if src not in _KINDS or dst not in _KINDS:
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
