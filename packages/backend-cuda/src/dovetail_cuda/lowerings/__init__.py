"""Lowerings to NVIDIA's libraries and to the kernels of the plug-in's wheel, by family.

Not here, because XLA calls the library for the primitive's own lowering: `triangular_solve`
(cuBLAS), products and convolutions of floats (cuBLAS, cuDNN), `fft` (cuFFT), `sort` and `top_k`.
Not here, because no GPU library has them: `schur` and `hessenberg`. Batches of `cholesky_update`,
and 16-bit numbers in it and `symmetric_product`, use the primitive's lowering, as no kernel
supports them.
"""

from __future__ import annotations

from typing import Final

from dovetail.extend import LoweringTable
from dovetail_cuda.lowerings import eigen, linalg, memory, products, random, tridiagonal

__all__ = ["LOWERINGS"]

LOWERINGS: Final = LoweringTable(
    [
        eigen.TABLE,
        linalg.TABLE,
        memory.TABLE,
        products.TABLE,
        random.TABLE,
        tridiagonal.TABLE,
    ]
)
