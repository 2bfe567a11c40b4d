"""The largest elements, elements of the sorted order, and places in it, by kernels.

Nothing is sorted as a whole: elements are compared with one that is near those wanted, and most are
left out at once. XLA finds the largest of float32 alone so, and otherwise sorts.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable
from dovetail.extend.dtypes import dtype_name
from dovetail_cpu import kernels
from dovetail_cpu.lowerings.elementary import is_made_by

TABLE: Final = LoweringTable()

#: The dtypes of numbers that are searched, by the kind and size of those that they stand for.
_SEARCHED: Final = {
    **{kind: np.dtype(np.int32) for kind in ("bool", "int8", "int16", "uint8", "uint16")},
    **{kind: np.dtype(np.float32) for kind in ("float16", "bfloat16")},
}
#: Fewer comparisons than these are made as quickly by XLA, which may fuse them with others.
FEW: Final = 1024

#: Dtypes that kernels order.
_ORDERED: Final = frozenset(
    {
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float16", "bfloat16", "float32", "float64"),
    }
)


def _suits(context: Any, *avals: Any) -> bool:
    return (
        kernels.usable(context)
        and not any(a.symbolic for a in avals)
        and all(a.size > 0 for a in avals)
        and all(dtype_name(a.dtype) in _ORDERED for a in avals)
    )


@TABLE.rule("order_statistics")
def order_statistics(context: Any, x: Any, positions: Any) -> Any:
    """Elements of the sorted order; NotImplemented without kernel."""
    aval, places = context.avals_in
    (out,) = context.avals_out
    if not _suits(context, aval, places, out) or aval.shape[-1] >= 2**31:
        return NotImplemented
    batch_dims = places.ndim - 1
    return kernels.call(context, kernels.ORDER_STATISTICS, [x, positions], [out], batch_dims)[0]


@TABLE.rule("top_k")
def top_k(context: Any, x: Any, *, k: int, axis: int) -> Any:
    """The largest elements along the last dimension; NotImplemented without kernel."""
    (aval,), outs = context.avals_in, context.avals_out
    if not _suits(context, aval, *outs):
        return NotImplemented
    last = aval.ndim - 1
    order = [*(i for i in range(last + 1) if i != axis), axis]
    back = [*range(axis), last, *range(axis, last)]
    moved = [a.update(shape=tuple(a.shape[i] for i in order)) for a in (aval, *outs)]
    if axis != last:
        x = context.transpose(x, moved[0], order)
    found = kernels.call(context, kernels.TOP_K, [x], moved[1:], last)
    if axis != last:
        found = [context.transpose(v, a, back) for v, a in zip(found, outs, strict=True)]
    return found


@TABLE.rule("searchsorted")
def searchsorted(context: Any, rows: Any, values: Any, *, side: str) -> Any:
    """Places in sorted rows; NotImplemented for few of them, or without kernel."""
    avals, (out,) = context.avals_in, context.avals_out
    if not _suits(context, *avals) or out.size < FEW:
        return NotImplemented
    wide = [a.update(dtype=_SEARCHED.get(dtype_name(a.dtype), a.dtype)) for a in avals]
    given = [rows, values]
    if wide != list(avals):  # or the compiler would leave out that they were rounded
        given = context.optimization_barrier(given, avals)
        given = [context.convert(*entry) for entry in zip(given, avals, wide, strict=True)]
    batch_dims = out.ndim - 1
    right = int(side == "right")
    return kernels.call(context, kernels.SEARCHSORTED, given, [out], batch_dims, right=right)[0]


def _parted(flags: Any) -> list[Any] | None:
    """Rows and their pivots, if flags say what is less than these, equals them, and is greater.

    As partitions are written: XLA would take longer to compile a loop for the flags.
    """
    if not is_made_by(flags, "concatenate") or len(flags.owner.operands) != 3:
        return None
    less, equal, greater = flags.owner.operands
    if not is_made_by(less, "select") or not is_made_by(greater, "not"):
        return None
    (not_greater,) = greater.owner.operands
    unordered, numbers, below = less.owner.operands
    if not is_made_by(below, "compare") or not is_made_by(not_greater, "or"):
        return None
    rows, pivots = below.owner.operands
    first, at_most = not_greater.owner.operands
    if (
        first != unordered
        or not is_made_by(equal, "xor")
        or list(equal.owner.operands) != [less, not_greater]
        or not _is_comparison(unordered, "NE", pivots, pivots)
        or not _is_comparison(numbers, "EQ", rows, rows)
        or not _is_comparison(below, "LT", rows, pivots)
        or not _is_comparison(at_most, "LE", rows, pivots)
        or not is_made_by(pivots, "broadcast_in_dim")
        or str(rows.type.element_type) not in ("f32", "f64", "i32", "i64")
    ):
        return None
    (pivot,) = pivots.owner.operands
    shape = list(rows.type.shape)
    whole = list(pivots.owner.attributes["broadcast_dimensions"]) == list(range(len(shape)))
    if not whole or list(pivot.type.shape) != [*shape[:-1], 1]:
        return None
    return [rows, pivot]


def _is_comparison(x: Any, direction: str, first: Any, second: Any) -> bool:
    return (
        is_made_by(x, "compare")
        and direction in str(x.owner.attributes["comparison_direction"])
        and list(x.owner.operands) == [first, second]
    )


@TABLE.rule("true_positions")
def true_positions(context: Any, flags: Any, *, size: int) -> Any:
    """Positions of true elements; NotImplemented without kernel."""
    (aval,), (out,) = context.avals_in, context.avals_out
    if not _suits(context, aval, out):
        return NotImplemented
    parted = _parted(flags)
    if parted is not None and parted[0].type.shape[-1] == size:
        return kernels.call(context, kernels.PARTING_POSITIONS, parted, [out], aval.ndim - 1)[0]
    return kernels.call(context, kernels.TRUE_POSITIONS, [flags], [out], aval.ndim - 1)[0]
