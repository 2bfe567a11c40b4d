"""Joins of many arrays, in groups that XLA's CPU compiler fuses.

XLA fuses nothing into a concatenation of more than eight arrays: each of them, be it a number that
one addition gives, is a kernel of its own to compile and to call. What a nested list of numbers
makes of them, a matrix from a quaternion, is small and has nine.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

from dovetail.extend import LoweringTable

TABLE: Final = LoweringTable()

#: XLA fuses concatenations of up to this many arrays.
FUSED: Final = 8
#: Larger results are copied part by part: a fused loop asks for each element whose part it is.
SMALL: Final = 4096


def _grouped(context: Any, parts: Sequence[Any], avals: Sequence[Any], dimension: int) -> Any:
    """The parts joined along a dimension, in groups of about equal size."""
    if len(parts) <= FUSED:
        return context.concatenate(parts, _whole(avals, dimension), dimension)
    count = -(-len(parts) // FUSED)
    bounds = [len(parts) * i // count for i in range(count + 1)]
    groups, shapes = [], []
    for start, end in pairwise(bounds):
        whole = _whole(avals[start:end], dimension)
        # With one dimension more: what is joined in the same dimension becomes one concatenation.
        shape = whole.update(shape=(1, *whole.shape))
        joined = context.concatenate(parts[start:end], whole, dimension)
        groups.append(context.reshape(joined, shape))
        shapes.append(shape)
    joined = _grouped(context, groups, shapes, dimension + 1)
    return context.reshape(joined, _whole(avals, dimension))


def _whole(avals: Sequence[Any], dimension: int) -> Any:
    """The aval of arrays that are joined along a dimension."""
    shape = avals[0].shape
    size = sum(aval.shape[dimension] for aval in avals)
    return avals[0].update(shape=(*shape[:dimension], size, *shape[dimension + 1 :]))


def _many_and_small(context: Any, count: int) -> bool:
    (out,) = context.avals_out
    return count > FUSED and not out.symbolic and out.size <= SMALL


@TABLE.rule("concatenate")
def concatenate(context: Any, *values: Any, dimension: int) -> Any:
    """Many arrays with few elements in all, in groups."""
    if not _many_and_small(context, len(values)):
        return NotImplemented
    return _grouped(context, values, context.avals_in, dimension)


@TABLE.rule("stack")
def stack(context: Any, *values: Any, axis: int) -> Any:
    """Many arrays with few elements in all, in groups."""
    if not _many_and_small(context, len(values)):
        return NotImplemented
    (out,) = context.avals_out
    part = out.update(shape=(*out.shape[:axis], 1, *out.shape[axis + 1 :]))
    parts = [context.reshape(value, part) for value in values]
    return _grouped(context, parts, [part] * len(parts), axis)
