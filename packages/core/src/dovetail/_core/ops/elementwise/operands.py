"""Operands of functions of two arrays, and the dtypes of complex numbers and their parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dovetail._core.basis.operands import equal_dtypes
from dovetail._core.trace.tracer import ArrayClass


def operands(function: str, x: Any, y: Any) -> Sequence[Any]:
    """Two operands of one dtype, with a fast path for arrays that already share it."""
    if isinstance(x, ArrayClass) and isinstance(y, ArrayClass) and x.aval.dtype is y.aval.dtype:
        return x, y
    return equal_dtypes(function, x, y)


def real_dtype(dtype: Any) -> Any:
    """The dtype of the parts of a complex dtype; 32-bit and 64-bit real dtypes stay."""
    return np.dtype(np.finfo(dtype).dtype)


def complex_dtype(dtype: Any) -> Any:
    """The complex dtype with parts of a dtype."""
    return np.dtype(np.complex64 if dtype == np.float32 else np.complex128)
