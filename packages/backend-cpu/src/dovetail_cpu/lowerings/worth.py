"""Whether a reduction is worth the call of a kernel."""

from __future__ import annotations

from math import prod
from typing import Any, Final

from dovetail_cpu import kernels

#: With fewer elements than this, XLA's loop takes no longer than the call of a kernel.
WORTH_A_KERNEL: Final = 256
#: Within a loop, whose operations XLA calls one by one if one of them is a kernel.
WORTH_A_KERNEL_IN_A_LOOP: Final = 32768
#: With fewer rows than this there is nothing to gain by combining columns.
MANY_ROWS: Final = 512
#: Parts with fewer elements than this XLA reduces faster, if they are many.
FEW: Final = 128
#: Likewise extremes of rows, where vectors of kernels are no longer than XLA's.
FEW_OF_EXTREMES: Final = 32
#: Likewise sums of fewer elements than this that do not lie side by side.
FEW_STEPS: Final = 32


def suits_kernel(context: Any, aval: Any, least: int = WORTH_A_KERNEL) -> bool:
    """Whether a kernel may reduce such an array, and is worth its call.

    An array that is divided over devices is reduced by each of them first, which XLA does.
    """
    if aval.symbolic or context.divides or not kernels.usable(context):
        return False
    return bool(aval.size >= (least if context.runs_once() else WORTH_A_KERNEL_IN_A_LOOP))


def are_short(aval: Any, first: int, few: int = FEW) -> bool:
    """Whether there are many parts of few elements each, from the dimension `first` on."""
    return bool(prod(aval.shape[first:]) < few and prod(aval.shape[:first]) >= MANY_ROWS)
