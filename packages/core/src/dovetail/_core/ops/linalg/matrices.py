"""Stacks of matrices: checks of avals, and functions for rules. The last two dimensions are those
of a matrix, the others are batch dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.errors import DTypeError, ShapeError
from dovetail._core.basis.elementwise import convert_element_type, dtype_name
from dovetail._core.basis.structural import (
    batch_size,
    broadcast_in_dim,
    full,
    move_dimension,
    reshape,
    to_front,
    transpose,
)
from dovetail._core.ir.avals import ShapedArray, aval_of, shape_of
from dovetail._core.ops.contraction.dot_general import Precision, dot_general_p
from dovetail._core.ops.elementwise.arithmetic import add
from dovetail._core.ops.elementwise.comparison import eq_p, ge_p
from dovetail._core.ops.elementwise.complex import conj, imag, real
from dovetail._core.ops.elementwise.selection import select_n_p
from dovetail._core.ops.elementwise.signs import abs as absolute
from dovetail._core.ops.indexing.gather import (
    GatherDimensionNumbers,
    GatherScatterMode,
    gather_slices,
)
from dovetail._core.ops.shape.creation import iota_like
from dovetail._core.ops.shape.slicing import slice_dimension
from dovetail._core.trace.primitive import Primitive

Shape = tuple[int, ...]

INT32: Final = np.dtype(np.int32)
#: The dtypes that LAPACK supports.
FACTORED: Final = tuple(np.dtype(t) for t in (np.float32, np.float64, np.complex64, np.complex128))
HIGHEST: Final = (Precision.HIGHEST, Precision.HIGHEST)


# Checks


def check_factored(name: str, *avals: ShapedArray) -> None:
    """Check that operands have one common dtype that factorisations support.

    Raises:
        TypeError: they do not.
    """
    first = avals[0].dtype
    if first not in FACTORED:
        raise DTypeError(
            f"{name} does not accept dtype {dtype_name(first)}; it takes float32, float64, "
            "complex64 and complex128: convert with lax.convert_element_type"
        )
    check_equal_dtypes(name, *avals)


def check_floats(name: str, *avals: ShapedArray, kinds: str = "fc") -> None:
    """Check that operands have one common floating point (or complex) dtype.

    Raises:
        TypeError: they do not.
    """
    first = avals[0].dtype
    if not dtypes.kind_of(first) or dtypes.kind_of(first) not in kinds:
        raise DTypeError(
            f"{name} does not accept dtype {dtype_name(first)}; it takes floating point"
            + (" and complex numbers" if "c" in kinds else "")
        )
    check_equal_dtypes(name, *avals)


def check_equal_dtypes(name: str, *avals: ShapedArray) -> None:
    """Check that operands have the same dtype.

    Raises:
        TypeError: they differ.
    """
    if any(a.dtype != avals[0].dtype for a in avals):
        raise DTypeError(
            f"{name} requires operands of equal dtypes, got "
            f"{', '.join(dtype_name(a.dtype) for a in avals)}; convert with "
            "lax.convert_element_type"
        )


def check_matrices(name: str, aval: ShapedArray, argument: str, square: bool = False) -> None:
    """Check that an operand is a stack of matrices, or of square ones.

    Raises:
        TypeError: it has fewer than two dimensions.
        ValueError: the matrices are not square.
    """
    if aval.ndim < 2:
        raise ShapeError(
            f"{name}: {argument} must be a matrix or a stack of them, got the shape {aval.shape}"
        )
    if square and aval.shape[-1] != aval.shape[-2]:
        raise ValueError(f"{name}: the matrices in {argument} must be square, got {aval.shape}")


def check_batch(name: str, batch: Shape, aval: ShapedArray, argument: str, rank: int) -> None:
    """Check that an operand has the same batch dimensions as the first one.

    Args:
        name: of the primitive.
        batch: the batch dimensions of the first operand.
        aval: of the operand.
        argument: the operand's name.
        rank: the number of its dimensions without batch dimensions.

    Raises:
        TypeError: they differ.
    """
    if aval.ndim < rank or aval.shape[: aval.ndim - rank] != batch:
        raise TypeError(
            f"{name}: {argument} must have the batch dimensions {batch} of the first operand and "
            f"{rank} more, got the shape {aval.shape}"
        )


# Functions for rules


def nan_of(dtype: Any) -> complex:
    """NaN, in both parts for complex dtypes."""
    return complex(np.nan, np.nan) if dtypes.kind_of(dtype) == "c" else np.nan


def batch_all(
    primitive: Primitive, args: Sequence[Any], dims: Sequence[int | None], **params: Any
) -> tuple[Any, Any]:
    """A batching rule: all arguments get the batch dimension in front."""
    size = batch_size(args, dims)
    out = primitive.bind(*[to_front(x, d, size) for x, d in zip(args, dims, strict=True)], **params)
    return out, [0] * len(out) if primitive.multiple_results else 0


def batch_columns(
    x: Any, dim: int, columns: bool = True
) -> tuple[Any, Callable[[Any], tuple[Any, int]]]:
    """A batch of matrices as one with more columns (or rows), for rules that act on each alike.

    Args:
        x: matrices.
        dim: the batch dimension.
        columns: whether the rule acts on columns, otherwise on rows.

    Returns:
        The wider matrices, and a function that splits them again: into matrices and their batch
        dimension.
    """
    place = len(shape_of(x)) - (2 if columns else 3)
    x = move_dimension(x, dim, place)
    shape = shape_of(x)
    merged = (*shape[:place], shape[place] * shape[place + 1], *shape[place + 2 :])
    return reshape(x, merged), lambda y: (reshape(y, shape), place)


def is_complex(x: Any) -> bool:
    """Whether an array is complex."""
    return dtypes.kind_of(aval_of(x).dtype) == "c"


def complex_conjugate(x: Any) -> Any:
    """The complex conjugate; real numbers stay."""
    return conj(x) if is_complex(x) else x


def magnitude(x: Any) -> Any:
    """The size for choosing pivots: for complex numbers, as in LAPACK, a sum of absolute values."""
    return add(absolute(real(x)), absolute(imag(x))) if is_complex(x) else absolute(x)


def floating(x: Any) -> Any:
    """Integers and booleans as floats."""
    aval = aval_of(x)
    if (kind := dtypes.kind_of(aval.dtype)) == "b":
        return convert_element_type(x, dtypes.default_dtype("f"), True)
    if kind in ("i", "u"):
        dtype = np.dtype(np.float64 if aval.dtype.itemsize == 8 else np.float32)
        return convert_element_type(x, dtype, aval.weak_type)
    return x


def matrix_transpose(x: Any) -> Any:
    """Transposed matrices."""
    rank = len(shape_of(x))
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def matrix_adjoint(x: Any) -> Any:
    """Transposed and conjugated matrices."""
    return complex_conjugate(matrix_transpose(x))


def product(x: Any, y: Any) -> Any:
    """Products of matrices, in the full precision of the dtype."""
    rank = len(shape_of(x))
    batch = tuple(range(rank - 2))
    return dot_general_p.bind(
        x,
        y,
        dimension_numbers=(((rank - 1,), (rank - 2,)), (batch, batch)),
        precision=HIGHEST,
        preferred_element_type=None,
        out_sharding=None,
    )


def where_mask(mask: Any, x: Any, y: Any) -> Any:
    """`x` where `mask`, of its shape or without batch dimensions, is true; `y` elsewhere."""
    shape = shape_of(x)
    rank = len(shape_of(mask))
    mask = broadcast_in_dim(mask, shape, tuple(range(len(shape) - rank, len(shape))))
    return select_n_p.bind(mask, y, x)


def hermitian(x: Any) -> Any:
    """The Hermitian matrices with the lower triangles of `x`, dropping imaginary parts on the
    diagonal."""
    strict = triangular_part(x, offset=-1)
    size = shape_of(x)[-1]
    dtype = aval_of(x).dtype
    diagonal = convert_element_type(real(x), dtype) if is_complex(x) else x
    return where_mask(on_diagonal(size, size), diagonal, add(strict, matrix_adjoint(strict)))


def triangular_part(x: Any, lower: bool = True, offset: int = 0) -> Any:
    """`x` with zeros above a diagonal (below it, for the upper triangle); offset 1 is the diagonal
    above the main one."""
    shape = shape_of(x)
    row = iota_like(INT32, shape[-2:], 0)
    column = iota_like(INT32, shape[-2:], 1)
    if offset:
        row = add(row, offset)
    mask = ge_p.bind(row, column) if lower else ge_p.bind(column, row)
    return where_mask(mask, x, full(shape, 0, aval_of(x).dtype))


def part(x: Any, rows: int | slice | None = None, columns: int | slice | None = None) -> Any:
    """Some rows and columns of matrices: the first ones, or from `start` to before `stop`."""
    rank = len(shape_of(x))
    for dimension, kept in ((rank - 2, rows), (rank - 1, columns)):
        if kept is not None:
            start, stop = (0, kept) if isinstance(kept, int) else (kept.start, kept.stop)
            x = slice_dimension(x, start, stop, dimension)
    return x


def rows_in_order(x: Any, order: Any) -> Any:
    """``out[..., i, :] = x[..., order[..., i], :]``."""
    if not aval_of(x).size:
        return x
    rank = len(shape_of(x))
    batch = tuple(range(rank - 2))
    numbers = GatherDimensionNumbers(
        offset_dims=(rank - 1,),
        collapsed_slice_dims=(rank - 2,),
        start_index_map=(rank - 2,),
        operand_batching_dims=batch,
        start_indices_batching_dims=batch,
    )
    return gather_slices(
        x,
        reshape(order, (*shape_of(order), 1)),
        numbers,
        (*(1 for _ in range(rank - 1)), shape_of(x)[-1]),
        mode=GatherScatterMode.PROMISE_IN_BOUNDS,
        unique_indices=True,
    )


def on_diagonal(rows: int, columns: int) -> Any:
    """Where a matrix has its main diagonal, as a boolean mask."""
    shape = (rows, columns)
    return eq_p.bind(iota_like(INT32, shape, 0), iota_like(INT32, shape, 1))


def identity(rows: int, columns: int, dtype: Any) -> Any:
    """An identity matrix, of ones on the main diagonal."""
    return convert_element_type(on_diagonal(rows, columns), dtype)
