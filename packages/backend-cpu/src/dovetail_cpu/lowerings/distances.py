"""Sums of squared or absolute differences of all pairs of rows, as distances are written.

``sum((x[:, None] - y[None]) ** 2, -1)`` is one scalar loop of XLA's, whose result is an array of
pairs, while its operands are small.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

from dovetail.extend import ShapedArray
from dovetail_cpu import kernels

#: Of shorter rows, XLA's loop over combined columns takes less time, as it needs no second one for
#: what is computed of the distances.
LEAST: Final = 5
#: With fewer differences than this, nothing is gained.
MANY: Final = 1 << 16


def by_kernel(context: Any, x: Any, aval: Any, axes: tuple[int, ...]) -> Any:
    """The sums along the last axis of a value, if it is differences of pairs of rows."""
    if (
        aval.dtype.name not in ("float32", "float64")
        or aval.symbolic
        or context.divides
        or not kernels.usable(context)
        or aval.ndim < 3
        or axes != (aval.ndim - 1,)
        or aval.shape[-1] < LEAST
        or aval.size < MANY
    ):
        return NotImplemented
    pair = _differences(x)
    if pair is None:
        return NotImplemented
    squared, left, right = pair
    *batch, rows, columns, size = aval.shape
    if list(right.type.shape) == [*batch, rows, 1, size]:
        left, right = right, left  # neither squares nor absolute values know the sign
    if list(left.type.shape) != [*batch, rows, 1, size] or rows == 1 or columns == 1:
        return NotImplemented
    if list(right.type.shape) != [*batch, 1, columns, size]:
        return NotImplemented
    each = prod(batch)
    operands = [
        context.reshape(value, ShapedArray((each, count, size), aval.dtype))
        for value, count in ((left, rows), (right, columns))
    ]
    out = ShapedArray((each, rows, columns), aval.dtype)
    (sums,) = kernels.call(context, kernels.DISTANCES, operands, [out], 1, squared=int(squared))
    return context.reshape(sums, context.avals_out[0])


def _differences(x: Any) -> tuple[bool, Any, Any] | None:
    """Whether differences are squared, and what was broadcast to be subtracted."""
    owner = x.owner
    name, operands = getattr(owner, "name", ""), list(getattr(owner, "operands", ()))
    squared = name == "stablehlo.multiply" and operands[0] == operands[1]
    if not squared and name != "stablehlo.abs":
        return None
    difference = operands[0].owner
    if getattr(difference, "name", "") != "stablehlo.subtract":
        return None
    sources = []
    for value in difference.operands:
        if getattr(value.owner, "name", "") != "stablehlo.broadcast_in_dim":
            return None
        dimensions = list(value.owner.attributes["broadcast_dimensions"])
        if dimensions != list(range(value.type.rank)):
            return None
        sources.append(value.owner.operands[0])
    return squared, sources[0], sources[1]
