"""One converter for each primitive, by its name, in files by family.

A converter takes the context, then the operands, then the primitive's parameters as keywords, and
returns the result, or a list of results if the primitive has several. It raises `Refusal` where
ONNX has no way to say it.
"""

from __future__ import annotations

from typing import Final

from dovetail.extend import LoweringTable
from dovetail_onnx.converters import (
    arithmetic,
    bits,
    calls,
    comparison,
    contraction,
    control,
    convolution,
    cumulative,
    element_types,
    exponential,
    gathering,
    joining,
    random,
    reduction,
    refusals,
    scattering,
    shape,
    slicing,
    sorting,
    special,
    trigonometric,
    windows,
)

__all__ = ["CONVERTERS"]

CONVERTERS: Final = LoweringTable(
    module.table
    for module in (
        arithmetic,
        bits,
        calls,
        comparison,
        contraction,
        control,
        element_types,
        convolution,
        cumulative,
        exponential,
        gathering,
        joining,
        random,
        reduction,
        refusals,
        scattering,
        shape,
        slicing,
        sorting,
        special,
        trigonometric,
        windows,
    )
)
"""All converters, by the name of the primitive."""
