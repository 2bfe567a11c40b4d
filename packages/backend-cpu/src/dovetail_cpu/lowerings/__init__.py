"""Lowerings that suit XLA's CPU compiler better than the primitives' own, by family."""

from __future__ import annotations

from typing import Final

from dovetail.extend import LoweringTable
from dovetail_cpu.lowerings import (
    boxes,
    contraction,
    convolution,
    cumulative,
    differences,
    distances,
    division,
    eigen,
    elementary,
    error_functions,
    exponentials,
    exported,
    expressions,
    fourier,
    gathering,
    joining,
    linalg,
    matrix_products,
    normalization,
    padding,
    random,
    reduction,
    remat,
    repeating,
    scattering,
    selection,
    sorting,
    sparse,
    windows,
)

__all__ = ["LOWERINGS"]

LOWERINGS: Final = expressions.first(
    normalization.first(
        LoweringTable(
            [
                boxes.TABLE,
                contraction.TABLE,
                convolution.TABLE,
                cumulative.TABLE,
                differences.TABLE,
                distances.TABLE,
                division.TABLE,
                eigen.TABLE,
                elementary.TABLE,
                error_functions.TABLE,
                exponentials.TABLE,
                exported.TABLE,
                fourier.TABLE,
                gathering.TABLE,
                joining.TABLE,
                linalg.TABLE,
                matrix_products.TABLE,
                padding.TABLE,
                random.TABLE,
                reduction.TABLE,
                remat.TABLE,
                repeating.TABLE,
                scattering.TABLE,
                selection.TABLE,
                sorting.TABLE,
                sparse.TABLE,
                windows.TABLE,
            ]
        )
    )
)
