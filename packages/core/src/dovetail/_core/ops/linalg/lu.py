"""The LU factorisation with partial pivoting, and the permutations that its pivots represent."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base.errors import DTypeError
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import dtype_name
from dovetail._core.basis.families import NoGradient
from dovetail._core.basis.operands import as_operand, make_literal
from dovetail._core.basis.structural import full
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ops.elementwise.arithmetic import add, div, mul, sub
from dovetail._core.ops.elementwise.comparison import eq, ge, gt
from dovetail._core.ops.elementwise.selection import select
from dovetail._core.ops.indexing.sorting import take_along
from dovetail._core.ops.linalg.loops import element_at, exchanged, lower_loop, with_element
from dovetail._core.ops.linalg.matrices import (
    INT32,
    batch_all,
    check_factored,
    check_matrices,
    magnitude,
    part,
    product,
    rows_in_order,
    triangular_part,
)
from dovetail._core.ops.linalg.triangular import solve_triangular
from dovetail._core.ops.reduction.reductions import argmax
from dovetail._core.ops.shape.creation import iota_like
from dovetail._core.ops.shape.joining import concatenate_p
from dovetail._core.ops.shape.reshaping import add_dimensions, squeeze_dimensions
from dovetail._core.ops.shape.slicing import pad_with
from dovetail._core.trace.divisions import Labels, leading_labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.tracer import Tracer
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class Lu(Primitive):
    """Factors ``x[permutation] = l @ u``, where ``l`` has a unit diagonal.

    The results are both triangles in one matrix, the row that each row was swapped with, one after
    another, and the resulting permutation.
    """

    name = "lu"
    multiple_results = True

    def abstract(self, x: Any) -> Any:
        check_factored(self.name, x)
        check_matrices(self.name, x, "x")
        *batch, rows, columns = x.shape
        return [
            make_aval(x.shape, x.dtype, x.weak_type),
            make_aval((*batch, min(rows, columns)), INT32),
            make_aval((*batch, rows), INT32),
        ]

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return leading_labels(avals, results)

    def reference(self, x: Any) -> Any:
        x = np.array(x)
        *batch, rows, columns = x.shape
        pivots = np.zeros((*batch, min(rows, columns)), np.int32)
        permutation = np.zeros((*batch, rows), np.int32)
        for index in np.ndindex(*batch):
            a, order = x[index], np.arange(rows)
            for k in range(min(rows, columns)):
                column = a[k:, k]
                best = k + int(np.argmax(np.abs(column.real) + np.abs(column.imag)))
                pivots[(*index, k)] = best
                a[[k, best]], order[[k, best]] = a[[best, k]], order[[best, k]]
                if a[k, k] != 0:
                    a[k + 1 :, k] /= a[k, k]
                a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
            permutation[index] = order
        return [x, pivots, permutation]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        packed, pivots, permutation = self.bind(*primals)
        change = _changed_factors(packed, rows_in_order(tangents[0], permutation))
        return [packed, pivots, permutation], [change, Zero.of(pivots), Zero.of(permutation)]

    def batch(self, args: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, Any]:
        return batch_all(self, args, dims)

    def lower(self, context: Builder, x: Any) -> Any:
        *batch, rows, columns = context.avals_in[0].shape
        rank, row = len(batch) + 2, len(batch)
        vectors, size = (*batch, rows), min(rows, columns)
        dtype = context.avals_in[0].dtype

        def first(x: Any) -> tuple[Any, Any, Any]:
            return x, full((*batch, size), 0, INT32), iota_like(INT32, vectors, row)

        def eliminate(k: Any, a: Any, pivots: Any, permutation: Any) -> tuple[Any, Any, Any]:
            column = squeeze_dimensions(element_at(a, k, rank - 1), (rank - 1,))
            length = magnitude(column)
            numbers = iota_like(INT32, vectors, row)
            length = select(ge(numbers, k), length, full(vectors, -1, aval_of(length).dtype))
            best = add_dimensions(argmax(length, row, INT32), (row,))
            pivots = with_element(pivots, best, k, row)
            order = exchanged(numbers, numbers, k, best, best, k)
            a, permutation = rows_in_order(a, order), take_along(permutation, order, row)
            factors, rest = element_at(a, k, rank - 1), element_at(a, k, rank - 2)
            pivot = element_at(rest, k, rank - 1)
            ones = full(shape_of(pivot), 1, dtype)
            pivot = select(eq(pivot, full(shape_of(pivot), 0, dtype)), ones, pivot)
            below = gt(iota_like(INT32, shape_of(factors), rank - 2), k)
            after = gt(iota_like(INT32, shape_of(rest), rank - 1), k)
            nothing = full(shape_of(factors), 0, dtype)
            scaled = select(below, div(factors, pivot), nothing)
            a = with_element(a, select(below, scaled, factors), k, rank - 1)
            rest = select(after, rest, full(shape_of(rest), 0, dtype))
            return sub(a, mul(scaled, rest)), pivots, permutation

        return lower_loop(
            context, [x], first=first, step=eliminate, last=lambda *found: found, count=size
        )


lu_p: Final = Lu()


def _changed_factors(packed: Any, change: Any) -> Any:
    """The derivative of the packed factors, if the row-permuted matrix changes by `change`.

    From ``da = dl @ u + l @ du``: the strict lower triangle of ``l^-1 @ da @ u^-1`` is that of
    ``l^-1 @ dl``, the upper one that of ``du @ u^-1``.
    """
    *_, rows, columns = shape = shape_of(packed)
    size, rank = min(rows, columns), len(shape)
    if not aval_of(packed).size:
        return change
    below = triangular_part(part(packed, columns=size), offset=-1)
    upper = triangular_part(part(packed, rows=size), lower=False)
    solved = solve_triangular(part(below, rows=size), part(change, rows=size), unit_diagonal=True)
    if rows > size:
        others = slice(size, rows)
        rest = sub(part(change, rows=others), product(part(below, rows=others), solved))
        solved = concatenate_p.bind(solved, rest, dimension=rank - 2)
    inner = solve_triangular(
        part(upper, columns=size), part(solved, columns=size), left_side=False, lower=False
    )
    inner = triangular_part(inner, offset=-1)
    left = add(inner, product(below, part(inner, rows=size)))
    right = triangular_part(sub(solved, product(inner, upper)), lower=False)
    if columns > size:
        config = (*((0, 0, 0) for _ in range(rank - 1)), (0, columns - size, 0))
        left = pad_with(left, make_literal(0, aval_of(left).dtype), config)
    return add(left, right)


class LuPivotsToPermutation(NoGradient):
    """The permutation that results from swapping rows one after another."""

    name = "lu_pivots_to_permutation"
    no_derivative = "its operand and result are integers"

    def abstract(self, pivots: Any, *, permutation_size: int) -> Any:
        if pivots.dtype != INT32:
            raise DTypeError(
                "lu_pivots_to_permutation does not accept dtype "
                f"{dtype_name(pivots.dtype)}; pivots are int32"
            )
        if not pivots.ndim:
            raise TypeError(
                "lu_pivots_to_permutation: pivots must be a vector or a stack of vectors, got a "
                "scalar"
            )
        if permutation_size < pivots.shape[-1]:
            raise ValueError(
                f"lu_pivots_to_permutation: permutation_size {permutation_size} is less than the "
                f"number of pivots, {pivots.shape[-1]}"
            )
        return make_aval((*pivots.shape[:-1], permutation_size), INT32)

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return leading_labels(avals, results, 1)

    def reference(self, pivots: Any, *, permutation_size: int) -> Any:
        pivots = np.asarray(pivots)
        out = np.broadcast_to(
            np.arange(permutation_size, dtype=np.int32), (*pivots.shape[:-1], permutation_size)
        ).copy()
        for index in np.ndindex(pivots.shape[:-1]):
            for k, other in enumerate(pivots[index]):
                out[index][[k, other]] = out[index][[other, k]]
        return out

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, permutation_size: int
    ) -> tuple[Any, Any]:
        return batch_all(self, args, dims, permutation_size=permutation_size)

    def lower(self, context: Builder, pivots: Any, *, permutation_size: int) -> Any:
        shape = context.avals_out[0].shape
        last = len(shape) - 1

        def exchange(k: Any, pivots: Any, found: Any) -> tuple[Any, Any]:
            other = element_at(pivots, k, last)
            here, there = element_at(found, k, last), take_along(found, other, last)
            if not last:
                found = with_element(found, there, k, last)
                return pivots, with_element(found, here, squeeze_dimensions(other, (0,)), last)
            numbers = iota_like(INT32, shape, last)
            return pivots, exchanged(numbers, found, k, other, there, here)

        return lower_loop(
            context,
            [pivots],
            first=lambda pivots: (pivots, iota_like(INT32, shape, last)),
            step=exchange,
            last=lambda pivots, found: found,
            count=context.avals_in[0].shape[-1],
        )


lu_pivots_to_permutation_p: Final = LuPivotsToPermutation()


# Public functions


def lu(x: ArrayLike) -> list[Array]:
    """The LU factorisation of matrices with partial pivoting: ``x[permutation] = l @ u``.

    Args:
        x: matrices of shape ``(..., m, n)``, of dtype float32, float64, complex64 or complex128.

    Returns:
        A list of three arrays: ``(..., m, n)`` with ``u`` in the upper triangles and ``l``, without
        its unit diagonal, below; int32 of shape ``(..., min(m, n))``, for each row in turn, the row
        it is swapped with; int32 of shape ``(..., m)``, the permutation of the rows. For singular
        matrices, the diagonal of ``u`` contains zeros.

    Raises:
        TypeError: `x` is not a stack of matrices, or has an unsupported dtype.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> packed, pivots, permutation = lax.linalg.lu(np.array([[1.0, 2.0], [4.0, 4.0]]))
        >>> packed.tolist(), pivots.tolist(), permutation.tolist()
        ([[4.0, 4.0], [0.25, 1.0]], [1, 1], [1, 0])
    """
    return list(lu_p.bind(as_operand(x, "lax.linalg.lu", "x")))


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation that results from swapping rows one after another.

    Args:
        pivots: int32 of shape ``(..., k)``: row i is swapped with row ``pivots[..., i]``, for i
            from 0 on, as returned by `lu`. The result for rows that do not exist is unspecified.
        permutation_size: the number of rows.

    Returns:
        int32 of shape ``(..., permutation_size)``: which row ends up at each position.

    Raises:
        TypeError: `pivots` has another dtype or is a scalar, or `permutation_size` is not an
            integer.
        ValueError: there are fewer rows than pivots.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> lax.linalg.lu_pivots_to_permutation(np.array([2, 2], np.int32), 3).tolist()
        [2, 0, 1]
    """
    function = "lax.linalg.lu_pivots_to_permutation"
    try:
        size = operator.index(permutation_size)
    except TypeError:
        if isinstance(permutation_size, Tracer):
            raise
        raise TypeError(
            f"{function}: permutation_size must be an integer, got {permutation_size!r}"
        ) from None
    pivots = as_operand(pivots, function, "pivots")
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=size)
