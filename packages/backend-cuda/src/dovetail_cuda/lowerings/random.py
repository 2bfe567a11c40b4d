"""Random bits from a kernel of the plug-in's wheel."""

from __future__ import annotations

from typing import Any, Final

from dovetail.extend import LoweringTable
from dovetail_cuda.lowerings.kernels import kernel_call

TABLE: Final = LoweringTable()


@TABLE.rule("threefry2x32")
def threefry2x32(context: Any, *words: Any) -> Any:
    """One kernel instead of some 200 operations, if the option requests it.

    XLA fuses the operations into the code that uses the bits, and stores none of them.
    """
    out = context.avals_out[0]
    if not out.size or not context.option("threefry_gpu_kernel_lowering"):
        return NotImplemented
    spread = [
        word
        if aval.shape == out.shape
        else context.broadcast_in_dim(word, out, tuple(range(out.ndim)) if aval.shape else ())
        for word, aval in zip(words, context.avals_in, strict=True)
    ]
    return kernel_call(
        context,
        "cu_threefry2x32_ffi",
        spread,
        [out, out],
        matrices=out.ndim,
        row_major=True,
        batch_dims=out.ndim,
    )
