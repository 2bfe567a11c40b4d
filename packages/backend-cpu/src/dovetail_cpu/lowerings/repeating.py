"""Arrays whose elements, rows or blocks are repeated, copied by a kernel.

XLA's loop asks for each element of the result of which element of the operand it is a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from math import prod
from typing import Any, Final

from dovetail.extend import LoweringTable, dtypes
from dovetail_cpu import kernels, runtime
from dovetail_cpu.lowerings.elementary import is_made_by

TABLE: Final = LoweringTable()

#: Smaller results take no longer than their call.
WORTH_A_KERNEL: Final = 2**14
#: Of fewer neighbours XLA's loop is better: of elements that are repeated, and bytes of rows.
FEW: Final = 64
SHORT: Final = 256


@TABLE.rule("broadcast_in_dim")
def broadcast_in_dim(
    context: Any, x: Any, *_: Any, broadcast_dimensions: Sequence[int], **__: Any
) -> Any:
    """An argument that is repeated as it is, where several threads share this: XLA's loop suits."""
    if runtime.num_threads() == 1:
        return NotImplemented
    return _repeated(context, x, context.avals_out[0].shape, broadcast_dimensions)


@TABLE.rule("reshape")
def reshape(context: Any, x: Any, **_: Any) -> Any:
    """What was repeated along new dimensions, which become others."""
    if not is_made_by(x, "broadcast_in_dim"):
        return NotImplemented
    operation = x.owner
    (source,) = operation.operands
    kept = list(operation.attributes["broadcast_dimensions"])
    return _repeated(context, source, list(x.type.shape), kept)


@TABLE.rule("tile")
def tile(context: Any, x: Any, *, reps: tuple[int, ...]) -> Any:
    """An argument, several times side by side."""
    (aval,) = context.avals_in
    if aval.symbolic:
        return NotImplemented
    spread = [n for pair in zip(reps, aval.shape, strict=True) for n in pair]
    return _repeated(context, x, spread, range(1, 2 * aval.ndim, 2))


def _repeated(context: Any, x: Any, shape: Sequence[int], kept: Sequence[int]) -> Any:
    """The result of the program, whose argument has some dimensions of a shape.

    Args:
        context: the builder.
        x: the argument, perhaps with other dimensions of one element.
        shape: the result's, before some of its dimensions become one.
        kept: those that `x` has.
    """
    (out,) = context.avals_out
    equation, program = context.equation, context.program
    if (
        program is None
        or out.symbolic
        or out.size < WORTH_A_KERNEL
        or context.divides
        or equation.outvars[0] not in program.outvars
        or len(context.uses()) > 1
        or not context.runs_once()
        or not kernels.usable(context)
    ):
        return NotImplemented
    own = dict(zip(kept, x.type.shape, strict=True))
    while is_made_by(x, "reshape") or is_made_by(x, "broadcast_in_dim"):
        (before,) = x.owner.operands
        if prod(before.type.shape) != prod(x.type.shape):
            return NotImplemented
        x = before
    if (
        hasattr(x.owner, "name")
        or dtypes.kind_of(out.dtype) not in ("b", "i", "u", "f", "c")
        or dtypes.itemsize_bits(out.dtype) < 8
    ):
        return NotImplemented
    sizes, each = _steps(shape, own)
    if len(sizes) < 2 or not _are_long(sizes, each, dtypes.itemsize_bits(out.dtype) // 8):
        return NotImplemented
    attributes: dict[str, Any] = {"sizes": tuple(sizes), "each": int(each)}
    return kernels.call(context, kernels.REPEAT, [x], [out], 0, **attributes)[0]


def _steps(shape: Sequence[int], own: dict[int, int]) -> tuple[list[int], bool]:
    """How many neighbours are copied or how often, by turns; whether the last are repeated."""
    sizes = [(n, own.get(d) == n) for d, n in enumerate(shape) if n != 1]
    groups = [(kept, prod(n for n, _ in some)) for kept, some in groupby(sizes, lambda s: s[1])]
    each = bool(groups) and not groups[-1][0]
    return [n for _, n in groups], each


def _are_long(sizes: Sequence[int], each: bool, width: int) -> bool:
    """Whether rows are long enough for the kernel."""
    return sizes[-2] >= FEW if each else sizes[-1] * width >= SHORT
