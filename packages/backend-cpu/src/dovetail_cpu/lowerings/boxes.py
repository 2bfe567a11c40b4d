"""Arrays made of boxes of another one, which a kernel copies: what is rolled, or padded alone.

XLA makes a loop for each part, all of which have to be compiled.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final, NamedTuple

from dovetail.extend import LoweringTable, ShapedArray, dtypes
from dovetail_cpu import kernels
from dovetail_cpu.lowerings.elementary import constant_of, is_made_by, is_used_once

TABLE: Final = LoweringTable()

#: Smaller results take no longer than their call, and of shorter rows a loop is better.
WORTH_A_KERNEL: Final = 2**14
LONG: Final = 32
#: The most boxes that each row is looked up in.
MOST: Final = 8


class _Box(NamedTuple):
    """How many elements there are along each dimension, and where they begin in both arrays."""

    sizes: tuple[int, ...]
    source: tuple[int, ...]
    target: tuple[int, ...]


def suits(context: Any, aval: Any) -> bool:
    """Whether the kernel copies boxes of an array into the result of the current equation."""
    (out,) = context.avals_out
    return (
        not aval.symbolic
        and out.ndim > 1
        and out.size >= WORTH_A_KERNEL
        and out.shape[-1] >= LONG
        and dtypes.kind_of(aval.dtype) in ("b", "i", "u", "f")
        and dtypes.itemsize_bits(aval.dtype) >= 8
        and not context.divides
        and context.runs_once()
        and kernels.usable(context)
    )


def copied(context: Any, x: Any, element: Any, boxes: list[_Box]) -> Any:
    """The result of the current equation: boxes of an array, and an element around them."""
    numbers = tuple(n for box in boxes for part in box for n in part)
    outs = context.avals_out
    return kernels.call(context, kernels.COPY_BOXES, [x, element], outs, 0, boxes=numbers)[0]


def padded(context: Any, x: Any, element: Any, low: tuple[int, ...]) -> Any:
    """An array with others around it, which no loop is fused with."""
    equation, program = context.equation, context.program
    if program is None or hasattr(x.owner, "name") or equation.outvars[0] not in program.outvars:
        return NotImplemented
    (aval, _) = context.avals_in
    if not suits(context, aval) or not aval.size or len(context.uses()) > 1:
        return NotImplemented
    return copied(context, x, element, [_Box(aval.shape, (0,) * aval.ndim, low)])


@TABLE.rule("dynamic_update_slice")
def dynamic_update_slice(context: Any, x: Any, update: Any, *starts: Any) -> Any:
    """Boxes of one array that fill another, where nothing else uses what the last is put into."""
    aval, (out,) = context.avals_in[0], context.avals_out
    if not suits(context, aval) or not is_made_by(x, "dynamic_update_slice"):
        return NotImplemented
    boxes: list[_Box] = []
    source = None
    while True:
        target = [constant_of(start) for start in starts]
        array, box = _sliced(update)
        if box is None or (source is not None and array != source):
            return NotImplemented
        source = array
        box = box._replace(target=tuple(int(n) for n in target if n is not None))
        if len(box.target) < out.ndim:
            return NotImplemented
        if not _is_within(box, out.shape) or any(_overlap(box, other) for other in boxes):
            return NotImplemented
        boxes.append(box)
        if len(boxes) > MOST:
            return NotImplemented
        if not is_made_by(x, "dynamic_update_slice"):
            break
        x, update, *starts = x.owner.operands
    if sum(prod(box.sizes) for box in boxes) < out.size:
        return NotImplemented
    if not is_used_once(context, context.equation.invars[0]):
        return NotImplemented
    zero = context.constant(0, ShapedArray((), aval.dtype))
    return copied(context, source, zero, boxes)


def _sliced(x: Any) -> tuple[Any, _Box | None]:
    """The array of which a value is a slice of neighbours, and where that lies."""
    sizes = tuple(x.type.shape)
    starts = [0] * len(sizes)
    found = False
    while is_made_by(x, "slice"):
        attributes = x.owner.attributes
        if any(stride != 1 for stride in attributes["strides"]):
            return x, None
        starts = [a + b for a, b in zip(starts, attributes["start_indices"], strict=True)]
        (x,) = x.owner.operands
        found = True
    return x, _Box(sizes, tuple(starts), ()) if found else None


def _is_within(box: _Box, shape: tuple[int, ...]) -> bool:
    """Whether a box is in an array, so that it is not moved."""
    return all(
        start >= 0 and start + size <= whole
        for start, size, whole in zip(box.target, box.sizes, shape, strict=True)
    )


def _overlap(box: _Box, other: _Box) -> bool:
    """Whether two boxes have an element in common."""
    pairs = zip(box.target, box.sizes, other.target, other.sizes, strict=True)
    return all(a < b + m and b < a + n for a, n, b, m in pairs)
