"""Exchanges between devices that only some of XLA's compilers have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dovetail._core.hlo.mlir import Value

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

__all__ = ["exchange_rows"]

_NUMBERS = np.dtype(np.int32)


def exchange_rows(
    context: Builder, *values: Value, axis_name: Any, axis_index_groups: Any, **params: Any
) -> Any:
    """A lowering of ``ragged_all_to_all`` to XLA's operation, which sends just the rows.

    Args:
        context: the builder.
        values: operand, output, and what says which rows go where.
        axis_name: the axes.
        axis_index_groups: groups of positions along them.
        params: other parameters, which types show.
    """
    groups = context.groups(axis_name, axis_index_groups)
    if groups.shape[1] == 1 or context.avals_in[2].shape != (groups.shape[1],):
        # Several updates for each device are not used here, as nobody has seen them run.
        return NotImplemented
    narrow = [
        context.convert(x, aval, aval.update(dtype=_NUMBERS))
        for x, aval in zip(values[2:], context.avals_in[2:], strict=True)
    ]
    config = {"channel_id": 1, "replica_groups": groups.astype(np.int64)}
    return context.custom_call(
        "ragged_all_to_all", [*values[:2], *narrow], context.avals_out, config
    )
