"""What the decompositions of matrices into values and vectors share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dovetail.core.basis.elementwise import convert_element_type
from dovetail.core.basis.structural import full, reduce_sum
from dovetail.core.ir.avals import ShapedArray, aval_of, shape_of
from dovetail.core.ops.arithmetic import mul
from dovetail.core.ops.linalg.matrices import nan_of, on_diagonal, where
from dovetail.core.ops.shape import add_dimensions
from dovetail.core.ops.slicing import slice_dimension

NDArray = np.ndarray[Any, Any]


def real_part_dtype(dtype: Any) -> Any:
    """The dtype of the parts of complex numbers; of real ones, their own."""
    return np.dtype(np.finfo(dtype).dtype)


def complex_of(dtype: Any) -> Any:
    """The dtype of complex numbers with parts of a dtype; of complex ones, their own."""
    return np.dtype(np.result_type(dtype, np.complex64))


def columns(x: Any, start: int, stop: int) -> Any:
    """Some columns of matrices, or elements of vectors."""
    return slice_dimension(x, start, stop, len(shape_of(x)) - 1)


def zeros_of(x: Any) -> Any:
    """Zeros of the shape and dtype of an array."""
    return full(shape_of(x), 0, aval_of(x).dtype)


def diagonal(x: Any) -> Any:
    """The main diagonals of matrices with at least as many rows as columns."""
    shape = shape_of(x)
    return reduce_sum(where(on_diagonal(*shape[-2:]), x, zeros_of(x)), (len(shape) - 2,))


def row(x: Any) -> Any:
    """Vectors as matrices of one row."""
    return add_dimensions(x, (len(shape_of(x)) - 1,))


def column(x: Any) -> Any:
    """Vectors as matrices of one column."""
    return add_dimensions(x, (len(shape_of(x)),))


def scaled_columns(x: Any, factors: Any) -> Any:
    """Matrices with their columns multiplied by real or complex factors."""
    return mul(x, convert_element_type(row(factors), aval_of(x).dtype))


def each_matrix(
    function: Callable[[NDArray], Sequence[Any]], x: Any, outs: Sequence[ShapedArray]
) -> list[NDArray]:
    """Results of a function of one NumPy matrix, for a stack of them, in 64 bits for each part.

    Args:
        function: from a matrix to arrays. Where it raises `LinAlgError`, results are NaN.
        x: the stack.
        outs: avals of the results.
    """
    x = np.asarray(x)
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    results = [np.full(out.shape, nan_of(out.dtype), out.dtype) for out in outs]
    for index in np.ndindex(x.shape[:-2]):
        try:
            found = function(wide[index])
        except np.linalg.LinAlgError:
            continue
        for result, part in zip(results, found, strict=True):
            result[index] = part
    return results
