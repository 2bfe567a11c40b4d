"""Lowerings to NVIDIA's libraries and to the kernels of the plug-in's wheel, by family.

Not here, because XLA itself calls the library for the primitive's own lowering: `triangular_solve`
(cuBLAS), products and convolutions (cuBLAS, cuDNN), `fft` (cuFFT), `sort` and `top_k`. Not here,
because no library for GPUs has them: `schur` and `hessenberg`. Of `cholesky_update` a batch, and of
it and `symmetric_product` numbers of 16 bits, are left to the primitive, as no kernel takes them.
"""

from __future__ import annotations

from typing import Final

from dovetail.extend import LoweringTable
from dovetail_cuda.lowerings import eigen, linalg, memory, random, tridiagonal

__all__ = ["LOWERINGS"]

LOWERINGS: Final = LoweringTable(
    [
        eigen.TABLE,
        linalg.TABLE,
        memory.TABLE,
        random.TABLE,
        tridiagonal.TABLE,
    ]
)
