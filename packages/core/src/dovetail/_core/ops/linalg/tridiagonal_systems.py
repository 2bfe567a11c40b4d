"""Solving linear equations with tridiagonal matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from dovetail._core.base import dtypes
from dovetail._core.base.typing import Array, ArrayLike
from dovetail._core.basis.elementwise import add_tangents, convert_element_type, neg
from dovetail._core.basis.operands import as_operand, make_literal
from dovetail._core.basis.structural import broadcast_in_dim, full, is_linear
from dovetail._core.ir.avals import aval_of, make_aval, shape_of
from dovetail._core.ops.elementwise.arithmetic import add, div, mul, sub
from dovetail._core.ops.elementwise.comparison import eq, gt, ne
from dovetail._core.ops.elementwise.extrema import max as larger
from dovetail._core.ops.elementwise.selection import select
from dovetail._core.ops.elementwise.signs import abs as absolute
from dovetail._core.ops.linalg.loops import element_at, lower_loop, with_element
from dovetail._core.ops.linalg.matrices import (
    batch_all,
    batch_columns,
    check_factored,
    check_matrices,
    magnitude,
    nan_of,
)
from dovetail._core.ops.reduction.reductions import reduce_and, reduce_max
from dovetail._core.ops.shape.reshaping import add_dimensions
from dovetail._core.ops.shape.slicing import pad_with, slice_dimension
from dovetail._core.trace.divisions import Labels, leading_labels
from dovetail._core.trace.primitive import Primitive
from dovetail._core.trace.zeros import Zero

if TYPE_CHECKING:
    from dovetail._core.hlo.builder import Builder


class TridiagonalSolve(Primitive):
    """Solves ``a @ x = b`` for tridiagonal `a`, by elimination with row exchanges.

    The first element of the lower diagonal and the last of the upper one are not read. The result
    is NaN for singular matrices, unless zero pivots are replaced by small numbers.
    """

    name = "tridiagonal_solve"
    linear_in: ClassVar[Sequence[slice]] = (slice(3, 4),)
    accepts_zeros = True

    def abstract(self, dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Any:
        check_factored(self.name, dl, d, du, b)
        check_matrices(self.name, b, "b")
        if not dl.shape == d.shape == du.shape:
            raise TypeError(
                "tridiagonal_solve requires diagonals of one shape, got the shapes "
                f"{dl.shape} of dl, {d.shape} of d and {du.shape} of du; the first element of dl "
                "and the last one of du are not read"
            )
        if d.shape != b.shape[:-1]:
            raise TypeError(
                "tridiagonal_solve requires diagonals of the shape of b without its last "
                f"dimension, got the shapes {d.shape} of d and {b.shape} of b"
            )
        return make_aval(b.shape, b.dtype, all(v.weak_type for v in (dl, d, du, b)))

    def labels(self, avals: Sequence[Any], results: Sequence[Any], **params: Any) -> Labels:
        return leading_labels(avals, results)

    def reference(self, dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False) -> Any:
        b = np.asarray(b)
        wide = np.complex128 if dtypes.kind_of(b.dtype) == "c" else np.float64
        out = np.full(b.shape, nan_of(b.dtype), wide)
        for index in np.ndindex(b.shape[:-2]):
            lower, middle, upper = (np.asarray(v)[index].astype(wide) for v in (dl, d, du))
            matrix = np.diag(middle) + np.diag(lower[1:], -1) + np.diag(upper[:-1], 1)
            if not middle.size or np.linalg.matrix_rank(matrix) == middle.size:
                out[index] = np.linalg.solve(matrix, b[index].astype(wide))
        return out.astype(b.dtype)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, perturb_singular: bool = False
    ) -> tuple[Any, Any]:
        *diagonals, b = primals
        *changes, t = tangents
        x = self.bind(*diagonals, b, perturb_singular=perturb_singular)
        change: Any = Zero.of(x) if type(t) is Zero else t
        # Row i of the matrix multiplies elements i - 1, i and i + 1 of a solution.
        for offset, s in zip((-1, 0, 1), changes, strict=True):
            if type(s) is not Zero:
                moved = mul(
                    add_dimensions(s, (len(shape_of(s)),)), _moved(x, offset, len(shape_of(s)) - 1)
                )
                change = add_tangents(change, neg(moved))
        if type(change) is Zero:
            return x, change
        return x, self.bind(*diagonals, change, perturb_singular=perturb_singular)

    def transpose(
        self, ct: Any, dl: Any, d: Any, du: Any, b: Any, *, perturb_singular: bool = False
    ) -> Sequence[Any]:
        if not is_linear(b):
            return None, None, None, None
        last = len(shape_of(d)) - 1
        lower, upper = _moved(du, -1, last), _moved(dl, 1, last)
        return None, None, None, self.bind(lower, d, upper, ct, perturb_singular=perturb_singular)

    def batch(
        self, args: Sequence[Any], dims: Sequence[int | None], *, perturb_singular: bool = False
    ) -> tuple[Any, Any]:
        *diagonals, b = args
        *moving, dim = dims
        if dim is None or any(e is not None for e in moving):
            return batch_all(self, args, dims, perturb_singular=perturb_singular)
        merged, restore = batch_columns(b, dim)
        return restore(self.bind(*diagonals, merged, perturb_singular=perturb_singular))

    def lower(
        self,
        context: Builder,
        dl: Any,
        d: Any,
        du: Any,
        b: Any,
        *,
        perturb_singular: bool = False,
    ) -> Any:
        *_, vector, out = context.avals_in
        size, rank = vector.shape[-1], vector.ndim

        def start(dl: Any, d: Any, du: Any, b: Any) -> tuple[Any, ...]:
            return dl, d, _without_last(du), full(vector.shape, 0, vector.dtype), b

        pivots, *others = lower_loop(
            context,
            [dl, d, du, b],
            first=start,
            step=_eliminate,
            last=lambda dl, *eliminated: eliminated,
            count=size - 1,
        )
        if perturb_singular:
            (pivots,) = context.lower_function(_without_zeros, [vector] * 4)(pivots, dl, d, du)

        def first(d: Any, du: Any, further: Any, b: Any) -> tuple[Any, ...]:
            config = [(0, 0, 0)] * (rank + 1)
            config[rank - 1] = (0, 2, 0)
            return d, du, further, pad_with(b, make_literal(0, out.dtype), tuple(config))

        def last(d: Any, du: Any, further: Any, x: Any) -> Any:
            x = slice_dimension(x, 0, size, rank - 1)
            if perturb_singular:
                return x
            good = reduce_and(ne(d, 0), (rank - 1,))
            good = broadcast_in_dim(good, out.shape, tuple(range(rank - 1)))
            return select(good, x, full(out.shape, nan_of(out.dtype), out.dtype))

        return lower_loop(
            context,
            [pivots, *others],
            first=first,
            step=lambda k, *carried: _substitute(sub(size - 1, k), *carried),
            last=last,
            count=size,
            avals=[vector, vector, vector, out],
        )


tridiagonal_solve_p: Final = TridiagonalSolve()


def _moved(x: Any, offset: int, dimension: int) -> Any:
    """Element ``i + offset`` of a dimension at position i; zero if there is none."""
    shape = shape_of(x)
    if not shape[dimension]:
        return x
    config = [(0, 0, 0)] * len(shape)
    config[dimension] = (-offset, offset, 0)
    return pad_with(x, make_literal(0, aval_of(x).dtype), tuple(config))


def _without_last(du: Any) -> Any:
    rank = len(shape_of(du))
    return _moved(_moved(du, -1, rank - 1), 1, rank - 1)


def _eliminate(
    k: Any, dl: Any, d: Any, du: Any, further: Any, b: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """Zero element k + 1 of the lower diagonal, after swapping rows k and k + 1 if it is the larger
    in its column; that fills the diagonal `further` above `du`."""
    last = len(shape_of(d)) - 1
    after = add(k, 1)
    pivot, upper = element_at(d, k, last), element_at(du, k, last)
    low, middle, high = (element_at(v, after, last) for v in (dl, d, du))
    row, next_row = element_at(b, k, last), element_at(b, after, last)
    swap = gt(magnitude(low), magnitude(pivot))
    zero, one = (full(shape_of(pivot), value, aval_of(pivot).dtype) for value in (0, 1))

    def ordered(here: Any, there: Any) -> tuple[Any, Any]:
        return select(swap, there, here), select(swap, here, there)

    pivot, low = ordered(pivot, low)
    upper, middle = ordered(upper, middle)
    beyond, high = ordered(zero, high)
    factor = div(low, select(eq(pivot, zero), one, pivot))
    wide = broadcast_in_dim(swap, shape_of(row), tuple(range(last + 1)))
    row, next_row = select(wide, next_row, row), select(wide, row, next_row)
    next_row = sub(next_row, mul(add_dimensions(factor, (last + 1,)), row))
    d = with_element(with_element(d, pivot, k, last), sub(middle, mul(factor, upper)), after, last)
    du = with_element(with_element(du, upper, k, last), sub(high, mul(factor, beyond)), after, last)
    b = with_element(with_element(b, row, k, last), next_row, after, last)
    return dl, d, du, with_element(further, beyond, k, last), b


def _without_zeros(pivots: Any, dl: Any, d: Any, du: Any) -> Any:
    """Pivots with zeros replaced by a value relative to the largest element of the matrix."""
    shape = shape_of(d)
    last = len(shape) - 1
    elements = (_moved(_moved(dl, 1, last), -1, last), d, _without_last(du))
    sizes = [reduce_max(absolute(v), (last,)) for v in elements]
    largest = larger(larger(*sizes[:2]), sizes[2])
    limits = dtypes.finfo(aval_of(d).dtype)
    least = select(
        eq(largest, 0),
        full(shape[:-1], limits.smallest_normal, aval_of(largest).dtype),
        mul(largest, float(limits.eps)),
    )
    least = broadcast_in_dim(
        convert_element_type(least, aval_of(d).dtype), shape, tuple(range(last))
    )
    return select(eq(pivots, 0), least, pivots)


def _substitute(i: Any, d: Any, du: Any, further: Any, x: Any) -> tuple[Any, Any, Any, Any]:
    """Row i of the solution, from the two after it."""
    last = len(shape_of(d)) - 1
    pivot, upper, beyond = (
        add_dimensions(element_at(v, i, last), (last + 1,)) for v in (d, du, further)
    )
    row = element_at(x, i, last)
    row = sub(row, mul(upper, element_at(x, add(i, 1), last)))
    row = sub(row, mul(beyond, element_at(x, add(i, 2), last)))
    return d, du, further, with_element(x, div(row, pivot), i, last)


# Public functions


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """Solve linear equations with tridiagonal matrices: ``a @ x = b``.

    It uses Gaussian elimination with exchanges of adjacent rows.

    Args:
        dl: lower diagonals, of shape ``(..., n)`` and dtype float32, float64, complex64 or
            complex128: ``dl[..., i]`` is element (i, i - 1) of the matrix, and ``dl[..., 0]`` is
            not read.
        d: middle diagonals, of the same shape and dtype.
        du: upper diagonals, of the same shape and dtype: ``du[..., i]`` is element (i, i + 1), and
            ``du[..., n - 1]`` is not read.
        b: right-hand sides of shape ``(..., n, k)``, of the same dtype.
        perturb_singular: whether to replace zero pivots by the largest element times the precision
            of the dtype, to keep the result finite.

    Returns:
        The solutions, of the shape of `b`. Without `perturb_singular`, they are NaN for singular
        matrices.

    Raises:
        TypeError: the shapes or dtypes are incompatible, or the dtype is not supported.

    Example:
        >>> import numpy as np
        >>> from dovetail import lax
        >>> dl, d, du = np.array([[0.0, 1.0, 1.0], [1.0, 1.0, 2.0], [0.0, 1.0, 0.0]])
        >>> b = np.array([[1.0], [6.0], [9.0]])
        >>> lax.linalg.tridiagonal_solve(dl, d, du, b).ravel().tolist()
        [1.0, 1.0, 4.0]
    """
    function = "lax.linalg.tridiagonal_solve"
    return tridiagonal_solve_p.bind(
        as_operand(dl, function, "dl"),
        as_operand(d, function, "d"),
        as_operand(du, function, "du"),
        as_operand(b, function, "b"),
        perturb_singular=bool(perturb_singular),
    )
