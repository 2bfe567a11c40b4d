"""Promotion of several operands to one dtype: `jax._src.numpy.util`."""

from __future__ import annotations

from typing import Any

from dovetail._core.api.arguments import array_like, convert
from dovetail._core.base import dtypes
from dovetail._core.base.dtypes import DType
from dovetail._core.base.typing import DTypeLike
from dovetail._core.basis.operands import as_result


def _promoted(args: tuple[Any, ...], function: str, *kinds: Any) -> list[Any]:
    values = [array_like(x, function, f"argument {i}") for i, x in enumerate(args)]
    dtype, weak = dtypes.result_type(*args, return_weak_type_flag=True)
    for kind in kinds:
        dtype = dtypes.result_type(dtype, kind)
    return [as_result(convert(v, dtype, weak, function)) for v in values]


def promote_dtypes(*args: Any) -> list[Any]:
    """Operands, in their common dtype."""
    return _promoted(args, "promote_dtypes")


def promote_dtypes_inexact(*args: Any) -> list[Any]:
    """Operands, in their common dtype if it is inexact, and else in that of floating point."""
    return _promoted(args, "promote_dtypes_inexact", 1.0)


def promote_dtypes_complex(*args: Any) -> list[Any]:
    """Operands, in the complex dtype that holds them all."""
    return _promoted(args, "promote_dtypes_complex", 1j)


def to_complex_dtype(dtype: DTypeLike) -> DType:
    """The complex dtype that holds numbers of a dtype."""
    found: DType = dtypes.result_type(dtype, 1j)
    return found
