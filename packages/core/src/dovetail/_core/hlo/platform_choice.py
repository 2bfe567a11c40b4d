"""Code of multi-platform programs that differs between platforms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from dovetail._core.hlo.builder import Builder
from dovetail._core.hlo.mlir import Value
from dovetail._core.hlo.operations import Values, values_of

__all__ = ["by_platform"]


def by_platform(
    context: Builder,
    branch: Callable[[str], Values],
    outs: Sequence[Any],
    effects: Iterable[Any] = (),
) -> list[Value]:
    """Emit platform-specific code; with several platforms the program chooses at run time.

    Args:
        context: the builder.
        branch: emits the code for the platform of that name.
        outs: avals of the results.
        effects: ordered effects of the branches.
    """
    platforms = context.platforms
    if len(platforms) == 1:
        return list(values_of(branch(platforms[0])))
    index = context.platform_index
    assert index is not None

    def alone(platform: str) -> Callable[[], Values]:
        def emit() -> Values:
            context.platforms = (platform,)
            try:
                return branch(platform)
            finally:
                context.platforms = platforms

        return emit

    return context.case(index, [alone(platform) for platform in platforms], outs, effects)
