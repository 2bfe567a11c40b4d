"""Shared by the decompositions of matrices into values and vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base.errors import MissingRuleError
from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.structural import full, reduce_sum
from dovetail._core.ir.avals import ShapedArray, aval_of, shape_of
from dovetail._core.ops.elementwise.arithmetic import mul
from dovetail._core.ops.linalg.matrices import nan_of, on_diagonal, where_mask
from dovetail._core.ops.shape.dimensions import integers
from dovetail._core.ops.shape.reshaping import add_dimensions
from dovetail._core.ops.shape.slicing import slice_dimension

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

#: What to do if only a CPU library supports something.
ON_THE_CPU: Final = (
    "run that part of the program on the CPU, with dovetail.default_device or dovetail.device_put"
)

Subset = tuple[int, int] | None
NDArray = np.ndarray[Any, Any]


def subset_range(subset: Subset, size: int) -> tuple[int, int]:
    """The requested range of the values: the first, and one past the last."""
    return (0, size) if subset is None else subset


def check_subset(name: str, subset: Subset, size: int) -> None:
    """Check that a range lies within the number of values.

    Raises:
        ValueError: it does not.
    """
    start, stop = subset_range(subset, size)
    if not 0 <= start <= stop <= size:
        raise ValueError(
            f"{name}: subset_by_index must be (start, end) with 0 <= start <= end <= {size}, the "
            f"number of values, got {subset}"
        )


def canonical_subset(subset: Any, size: int, function: str) -> Subset:
    """The range of values that a user requests; None for all of them.

    Raises:
        TypeError: it is not a sequence of integers.
        ValueError: it is not a pair.
    """
    if subset is None:
        return None
    bounds = integers(subset, function, "subset_by_index")
    if len(bounds) != 2:
        raise ValueError(
            f"lax.{function}: subset_by_index must be a pair (start, end), got {subset!r}"
        )
    return None if bounds == (0, size) else (bounds[0], bounds[1])


def complex_of(dtype: Any) -> Any:
    """The complex dtype with parts of a dtype; complex dtypes stay."""
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
    return reduce_sum(where_mask(on_diagonal(*shape[-2:]), x, zeros_of(x)), (len(shape) - 2,))


def row(x: Any) -> Any:
    """Vectors as one-row matrices."""
    return add_dimensions(x, (len(shape_of(x)) - 1,))


def column(x: Any) -> Any:
    """Vectors as one-column matrices."""
    return add_dimensions(x, (len(shape_of(x)),))


def scaled_columns(x: Any, factors: Any) -> Any:
    """Matrices with their columns multiplied by real or complex factors."""
    return mul(x, convert_element_type(row(factors), aval_of(x).dtype))


def each_matrix(
    function: Callable[[NDArray], Sequence[Any]], x: Any, outs: Sequence[ShapedArray]
) -> list[NDArray]:
    """The results of a function of one NumPy matrix, for a stack of them, with 64-bit parts.

    Args:
        function: from a matrix to arrays. If it raises `LinAlgError`, and for matrices with NaN or
            infinities, results are NaN.
        x: the stack.
        outs: avals of the results.
    """
    x = np.asarray(x)
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    results = [np.full(out.shape, nan_of(out.dtype), out.dtype) for out in outs]
    for index in np.ndindex(x.shape[:-2]):
        if not np.isfinite(wide[index]).all():
            continue
        try:
            arrays = function(wide[index])
        except np.linalg.LinAlgError:
            continue
        for result, part in zip(results, arrays, strict=True):
            result[index] = part
    return results


def cannot_compute(context: Builder, name: str, asked: Any, advice: str) -> MissingRuleError:
    """The error for an operation that the platform of a program does not support.

    Args:
        context: the builder.
        name: of the primitive.
        asked: the implementation or algorithm requested by the user, or None.
        advice: what is missing, and what to do instead.
    """
    platforms = " and ".join(map(repr, context.platforms))
    what = name if asked is None else f"{name} by {asked.name}"
    return MissingRuleError(f"{what} cannot be computed on platform {platforms}: {advice}")
