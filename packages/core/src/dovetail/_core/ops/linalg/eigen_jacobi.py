"""Eigenvectors of Hermitian matrices by rotations, for platforms without LAPACK.

A rotation of two rows and two columns zeroes the element where they meet. Half as many pairs as
there are rows are rotated at once, and all pairs in turn, until the matrix is diagonal. Source:
Brent and Luk, "The solution of singular-value and symmetric eigenvalue problems on multiprocessor
arrays", 1985.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.basis.elementwise import convert_element_type
from dovetail._core.basis.operands import make_literal
from dovetail._core.basis.structural import broadcast_in_dim, full
from dovetail._core.ir.avals import aval_of, shape_of
from dovetail._core.ops.elementwise.arithmetic import add, div, mul, sub
from dovetail._core.ops.elementwise.bitwise import bitwise_and
from dovetail._core.ops.elementwise.comparison import ge, gt, is_finite, lt
from dovetail._core.ops.elementwise.complex import real
from dovetail._core.ops.elementwise.operands import real_dtype
from dovetail._core.ops.elementwise.powers import sqrt
from dovetail._core.ops.elementwise.selection import select
from dovetail._core.ops.elementwise.signs import abs as absolute
from dovetail._core.ops.indexing.sorting import sort_p, take_along
from dovetail._core.ops.linalg.eigen_matrices import (
    column,
    columns,
    diagonal,
    row,
)
from dovetail._core.ops.linalg.loops import lower_while
from dovetail._core.ops.linalg.matrices import (
    INT32,
    complex_conjugate,
    hermitian,
    identity,
    is_complex,
    matrix_adjoint,
    nan_of,
    on_diagonal,
    where_mask,
)
from dovetail._core.ops.reduction.reductions import reduce_max
from dovetail._core.ops.shape.creation import iota_like
from dovetail._core.ops.shape.joining import concatenate_p
from dovetail._core.ops.shape.slicing import pad_with, slice_dimension

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder

#: In practice 5 to 10 are needed.
MOST_SWEEPS: Final = 30


def lower_jacobi(context: Builder, x: Any, lower: bool) -> list[Any]:
    """Emit the operations that compute eigenvectors and ascending eigenvalues.

    Args:
        context: the builder; the current equation has one operand, a non-empty stack of matrices,
            of which one triangle is read.
        x: its value.
        lower: whether that is the lower triangle.

    Returns:
        The eigenvectors, in columns, and the eigenvalues; NaN if a matrix contains NaN or infinity.
    """
    (aval,) = context.avals_in
    rank, size = aval.ndim, aval.shape[-1]
    even = size + size % 2
    dtype = real_dtype(aval.dtype)
    negligible = float(np.finfo(dtype).eps)
    most_steps = MOST_SWEEPS * (even - 1)

    def first(x: Any) -> list[Any]:
        matrices = hermitian(x if lower else matrix_adjoint(x))
        largest = reduce_max(absolute(matrices), (rank - 2, rank - 1))
        scale = convert_element_type(_divisor(largest), aval.dtype)
        matrices = div(matrices, broadcast_in_dim(scale, aval.shape, tuple(range(rank - 2))))
        if size % 2:
            # Add a row that is never rotated; its eigenvalue is the largest.
            before, after = [(0, 0, 0)] * (rank - 2), ((0, 1, 0), (0, 1, 0))
            matrices = pad_with(matrices, make_literal(0, aval.dtype), (*before, *after))
            corner = full((1,) * rank, 2 * size, aval.dtype)
            after = ((size, 0, 0), (size, 0, 0))
            corner = pad_with(corner, make_literal(0, aval.dtype), (*before, *after))
            matrices = add(matrices, corner)
        vectors = broadcast_in_dim(
            identity(even, even, aval.dtype), shape_of(matrices), (rank - 2, rank - 1)
        )
        return [full((), 0, INT32), largest, matrices, vectors]

    def proceed(number: Any, largest: Any, matrices: Any, vectors: Any) -> Any:
        sizes = absolute(matrices)
        outside = where_mask(on_diagonal(even, even), full(shape_of(sizes), 0, dtype), sizes)
        left = reduce_max(outside, tuple(range(rank)))
        return bitwise_and(gt(left, negligible), lt(number, most_steps))

    def step(number: Any, largest: Any, matrices: Any, vectors: Any) -> list[Any]:
        sine, ratio = _rotations(matrices, even // 2)
        vectors = _exchanged(_rotated(vectors, row(sine), row(ratio), rank - 1), rank - 1)
        matrices = _exchanged(_rotated(matrices, row(sine), row(ratio), rank - 1), rank - 1)
        sine, ratio = complex_conjugate(column(sine)), complex_conjugate(column(ratio))
        matrices = _exchanged(_rotated(matrices, sine, ratio, rank - 2), rank - 2)
        return [add(number, 1), largest, matrices, vectors]

    def last(number: Any, largest: Any, matrices: Any, vectors: Any) -> list[Any]:
        values = diagonal(matrices)
        values = real(values) if is_complex(values) else values
        positions = iota_like(INT32, shape_of(values), rank - 2)
        values, order = sort_p.bind(
            values, positions, dimension=rank - 2, is_stable=True, num_keys=1
        )
        order = broadcast_in_dim(order, shape_of(vectors), (*range(rank - 2), rank - 1))
        vectors = slice_dimension(take_along(vectors, order, rank - 1), 0, size, rank - 2)
        batch = tuple(range(rank - 2))
        scale = broadcast_in_dim(_divisor(largest), aval.shape[:-1], batch)
        return [
            _where_finite(largest, columns(vectors, 0, size)),
            _where_finite(largest, mul(columns(values, 0, size), scale)),
        ]

    return lower_while(context, [x], first=first, proceed=proceed, step=step, last=last)


def _divisor(largest: Any) -> Any:
    """The divisor of each matrix that keeps squares from overflowing."""
    return select(gt(largest, 0), largest, full(shape_of(largest), 1, aval_of(largest).dtype))


def _where_finite(largest: Any, x: Any) -> Any:
    shape = shape_of(x)
    dtype = aval_of(x).dtype
    good = broadcast_in_dim(is_finite(largest), shape, tuple(range(len(shape_of(largest)))))
    return select(good, x, full(shape, nan_of(dtype), dtype))


def _rotations(matrices: Any, half: int) -> tuple[Any, Any]:
    """The (complex) sines of the rotations that zero the elements where row ``i`` and row ``half +
    i`` meet; and ``sine / (1 + cosine)``."""
    rank = len(shape_of(matrices))
    upper = slice_dimension(matrices, 0, half, rank - 2)
    under = slice_dimension(matrices, half, 2 * half, rank - 2)
    first = diagonal(columns(upper, 0, half))
    meeting = diagonal(columns(upper, half, 2 * half))
    second = diagonal(columns(under, half, 2 * half))
    difference = sub(second, first)
    if is_complex(difference):
        difference = real(difference)
    size = absolute(meeting)
    zero = full(shape_of(size), 0, aval_of(size).dtype)
    one = add(zero, 1)
    there = gt(size, 0)
    divisor = select(there, size, one)
    cotangent = div(difference, mul(divisor, 2))
    # The smaller root of tangent**2 + 2 * cotangent * tangent = 1.
    tangent = div(one, add(absolute(cotangent), sqrt(add(mul(cotangent, cotangent), 1))))
    tangent = select(ge(cotangent, 0), tangent, sub(zero, tangent))
    tangent = select(there, tangent, zero)
    cosine = div(one, sqrt(add(mul(tangent, tangent), 1)))
    dtype = aval_of(meeting).dtype
    direction = div(meeting, convert_element_type(divisor, dtype))
    sine = mul(tangent, cosine)
    ratio = div(sine, add(cosine, 1))
    return (
        mul(direction, convert_element_type(sine, dtype)),
        mul(direction, convert_element_type(ratio, dtype)),
    )


def _rotated(x: Any, sine: Any, ratio: Any, dimension: int) -> Any:
    """The first half of the columns (or rows) of `x`, rotated with the second half.

    With ``1 - cosine = sine * ratio``, small rotations make small errors.
    """
    half = shape_of(x)[dimension] // 2
    first = slice_dimension(x, 0, half, dimension)
    second = slice_dimension(x, half, 2 * half, dimension)
    return concatenate_p.bind(
        sub(first, mul(complex_conjugate(sine), add(second, mul(ratio, first)))),
        add(second, mul(sine, sub(first, mul(complex_conjugate(ratio), second)))),
        dimension=dimension,
    )


def _exchanged(x: Any, dimension: int) -> Any:
    """Columns (or rows), reordered so that different ones meet.

    As in a round-robin tournament, all but the first move on by one place: forward along the first
    half, and back along the second.
    """
    size = shape_of(x)[dimension]
    half = size // 2
    if half < 2:
        return x

    def part(start: int, stop: int) -> Any:
        return slice_dimension(x, start, stop, dimension)

    parts = [part(0, 1), part(half, half + 1), part(1, half - 1)]
    parts += [part(half + 1, size), part(half - 1, half)]
    return concatenate_p.bind(*[p for p in parts if shape_of(p)[dimension]], dimension=dimension)
