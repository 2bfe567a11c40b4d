"""Barriers that XLA's CPU compiler must not undo or remove, and host memory."""

from __future__ import annotations

from typing import Any, Final

from dovetail.extend import LoweringTable
from dovetail.extend.lowering import keep_alive

TABLE: Final = LoweringTable()


@TABLE.rule("remat2")
def remat(
    context: Any,
    *values: Any,
    jaxpr: Any,
    prevent_cse: bool | tuple[bool, ...],
    differentiated: bool,
    policy: Any,
) -> Any:
    """A function that is not inlined.

    Barriers keep the compiler from merging the second computation with the first. But it removes
    them before it orders operations, and then runs all second computations at once. A function has
    its own memory while it runs, which is free afterwards.
    """
    held = prevent_cse if isinstance(prevent_cse, bool) else any(prevent_cse)
    if not differentiated or not held or jaxpr.jaxpr.effects or not context.avals_out:
        return NotImplemented
    if context.platform_index is not None:
        # Functions called inside would need the platform number.
        return NotImplemented

    def body(*arguments: Any) -> Any:
        return context.inline_jaxpr(jaxpr, arguments)

    return context.outlined(body, values, context.avals_out, "checkpoint")


@TABLE.rule("offload")
def offload(context: Any, x: Any, *, src: str, dst: str) -> Any:
    """All memory of this platform is the host's."""
    return x


# The kernel comes with jaxlib.
TABLE.rule("dce_sink")(keep_alive)
