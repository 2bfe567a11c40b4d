"""Kronecker products of matrices, by a kernel in place of XLA's three loops."""

from __future__ import annotations

from math import prod
from typing import Any, Final

from dovetail.extend import ShapedArray
from dovetail.extend.core import primitives
from dovetail.extend.dtypes import dtype_name
from dovetail_cpu import kernels

_DTYPES: Final = frozenset({"float32", "float64", "int32", "uint32", "int64", "uint64"})


def product(context: Any, x: Any, y: Any) -> Any:
    """The product of whole rows that two matrices were repeated to, where it is a result."""
    (out,) = context.avals_out
    if out.symbolic or out.ndim != 3 or dtype_name(out.dtype) not in _DTYPES:
        return NotImplemented
    left, right = _repeated(x), _repeated(y)
    if left is None or right is None:
        return NotImplemented
    rows, each, size = out.shape
    columns, width = left.type.shape[2], right.type.shape[3]
    if (
        list(left.type.shape) != [rows, 1, columns, 1]
        or list(right.type.shape) != [1, each, 1, width]
        or columns * width != size
        or context.divides
        or not _is_result(context)
        or not kernels.usable(context)
    ):
        return NotImplemented
    operands = [
        context.reshape(value, ShapedArray(shape, out.dtype))
        for value, shape in ((left, (rows, columns)), (right, (each, width)))
    ]
    return kernels.call(context, kernels.KRONECKER, operands, [out], 0)[0]


def _repeated(x: Any) -> Any:
    """The matrix with dimensions of one element whose last two dimensions were repeated."""
    for name in ("optimization_barrier", "reshape", "broadcast_in_dim"):
        owner = x.owner
        if getattr(owner, "name", "") != f"stablehlo.{name}" or len(owner.operands) != 1:
            return None
        (x,) = owner.operands
    whole = list(owner.attributes["broadcast_dimensions"]) == list(range(4))
    return x if whole and x.type.rank == 4 and prod(x.type.shape) else None


def _is_result(context: Any) -> bool:
    """Whether the program returns the result, perhaps in another shape, and does nothing else."""
    program, uses = context.program, context.uses()
    return bool(
        context.runs_once()
        and program is not None
        and len(uses) == 1
        and (uses[0] is context.equation or uses[0].primitive is primitives.reshape_p)
        and uses[0].outvars[0] in program.outvars
    )
