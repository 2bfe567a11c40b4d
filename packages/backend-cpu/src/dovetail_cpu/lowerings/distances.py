"""Sums of squared or absolute differences of all pairs of rows, as distances are written.

``sum((x[:, None] - y[None]) ** 2, -1)`` is one scalar loop of XLA's, whose result is an array of
pairs, while its operands are small. The kernel also takes roots of the sums, and exponentials of
their products with a number: what is left of the first call, whose result nothing uses, XLA drops.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable, ShapedArray
from dovetail.extend.core import primitives
from dovetail.extend.dtypes import dtype_name
from dovetail_cpu import kernels

TABLE: Final = LoweringTable()

#: What the kernel computes of a sum.
SUM, ROOT, EXPONENTIAL = range(3)
#: Of shorter rows, XLA's loop over combined columns takes less time, as it needs no second one for
#: what is computed of the distances; unless that is a root.
LEAST: Final = 5
#: With fewer differences than this, nothing is gained.
MANY: Final = 1 << 16


def by_kernel(context: Any, x: Any, aval: Any, axes: tuple[int, ...]) -> Any:
    """The sums along the last axis of a value, if it is differences of pairs of rows."""
    if (
        dtype_name(aval.dtype) not in ("float32", "float64")
        or aval.symbolic
        or context.divides
        or not kernels.usable(context)
        or aval.ndim < 3
        or axes != (aval.ndim - 1,)
        or aval.size < MANY
    ):
        return NotImplemented
    if aval.shape[-1] < LEAST and [u.primitive for u in context.uses()] != [primitives.sqrt_p]:
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
    return _called(context, operands, out, squared, SUM, 1.0)


def _called(
    context: Any, operands: Any, out: Any, squared: bool, function: int, factor: float
) -> Any:
    (result,) = kernels.call(
        context,
        kernels.DISTANCES,
        operands,
        [out],
        1,
        squared=int(squared),
        function=function,
        factor=np.float64(factor),
    )
    return context.reshape(result, context.avals_out[0])


@TABLE.rule("sqrt")
def sqrt(context: Any, x: Any, *, accuracy: Any = None) -> Any:
    """Distances as such."""
    if accuracy is not None or not context.uses_once():
        return NotImplemented
    return _of_sums(context, x, ROOT, 1.0)


def exponentials(context: Any, x: Any) -> Any:
    """Exponentials of sums that are multiplied by a number."""
    (aval,) = context.avals_in
    if getattr(x.owner, "name", "") != "stablehlo.multiply" or aval.dtype != np.float32:
        return NotImplemented
    for sums, factor in (tuple(x.owner.operands), tuple(x.owner.operands)[::-1]):
        owner = factor.owner
        if getattr(owner, "name", "") == "stablehlo.broadcast_in_dim":
            owner = owner.operands[0].owner
        if getattr(owner, "name", "") == "stablehlo.constant" and context.uses_once(2):
            value = owner.attributes["value"]
            if value.is_splat:
                return _of_sums(context, sums, EXPONENTIAL, value.get_splat_value().value)
    return NotImplemented


def _of_sums(context: Any, x: Any, function: int, factor: float) -> Any:
    """A function of a value, if that is sums of the kernel."""
    while getattr(x.owner, "name", "") == "stablehlo.reshape":
        (x,) = x.owner.operands
    if getattr(x.owner, "name", "") != "stablehlo.custom_call":
        return NotImplemented
    attributes = x.owner.attributes
    if attributes["call_target_name"].value != kernels.DISTANCES:
        return NotImplemented
    given = attributes["backend_config"]
    if given["function"].value != SUM:
        return NotImplemented
    (aval,) = context.avals_in
    out = ShapedArray(tuple(x.type.shape), aval.dtype)
    squared = bool(given["squared"].value)
    return _called(context, list(x.owner.operands), out, squared, function, factor)


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
