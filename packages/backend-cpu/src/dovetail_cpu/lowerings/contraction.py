"""Products of integers, of few or complex numbers, and of numbers of fewer than 8 bits.

XLA's CPU compiler multiplies matrices of integers in scalar loops, but for int32 and for int8 with
sums of int32: 512x512 of int8 take 180 ms, and so 0.4. Modulo a power of two the sums are the same
in any wider dtype, of either sign, so that narrower ones are computed in these. A kernel computes
others. Numbers of fewer than 8 bits XLA refuses or misplaces. Matrices of complex numbers take it
1.7 times as long as the four products of their parts, and rows of up to 8 floats times a vector,
such as the colours of pixels, seven times as long as a sum of columns. Products of vectors are
sums.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable, ShapedArray, dtypes
from dovetail.extend.dtypes import dtype_name
from dovetail.extend.lowering import real_dtype
from dovetail_cpu import kernel_library, kernels
from dovetail_cpu.lowerings.attention import attention
from dovetail_cpu.lowerings.matrix_products import is_plain, product
from dovetail_cpu.lowerings.narrow_products import narrow_product
from dovetail_cpu.lowerings.reduction import FLOATS, SHORT_ROW, sum_of_products
from dovetail_cpu.lowerings.worth import MANY_ROWS

TABLE: Final = LoweringTable()

INT8: Final = np.dtype(np.int8)
INT32: Final = np.dtype(np.int32)

#: With fewer products of numbers than this, nothing is gained.
MANY: Final = 1 << 16
#: The same for complex numbers, whose parts are copied, and for a matrix with its transpose.
MANY_FOR_COPIES: Final = 1 << 21
#: The least rows and columns of a matrix that a kernel multiplies by a vector or its transpose.
LEAST_OF_ROWS: Final = 64
#: The least elements of a matrix whose rows a kernel multiplies by a vector.
MANY_BY_COLUMNS: Final = 1 << 20
#: The least number of small matrices that a kernel multiplies, and their most rows and columns.
MANY_MATRICES: Final = 256
SMALL: Final = 16


def _is_below_a_byte(dtype: Any) -> bool:
    return dtypes.itemsize_bits(dtype) < 8


def _working(dtype: Any) -> Any:
    """The dtype to compute in: sums of integers wrap around to the same numbers in any width."""
    if dtypes.itemsize_bits(dtype) >= 32:
        return dtype
    return np.dtype(np.float32 if dtypes.kind_of(dtype) == "f" else np.int32)


@TABLE.rule("dot_general")
def dot_general(
    context: Any, x: Any, y: Any, *, dimension_numbers: Any, precision: Any, **params: Any
) -> Any:
    """Operands are converted before, and results after; NotImplemented where XLA's own is fast."""
    (a, b), (out,) = context.avals_in, context.avals_out
    if any(_is_below_a_byte(aval.dtype) for aval in (a, b, out)):
        work = _working(out.dtype)
        return _converted(context, (x, y), work, work, dimension_numbers)
    if is_plain(precision):
        for rule in _OF_MATRICES if min(a.ndim, b.ndim) > 1 else _OF_VECTORS:
            value = rule(context, (x, y), dimension_numbers)
            if value is not NotImplemented:
                return value
    for multiply in (attention, narrow_product, product):
        value = multiply(context, (x, y), dimension_numbers, precision)
        if value is not NotImplemented:
            return value
    if _are_matrices(a, b, out, dimension_numbers, "c", MANY_FOR_COPIES):
        if not a.dtype == b.dtype == out.dtype:
            return _converted(context, (x, y), out.dtype, out.dtype, dimension_numbers)
        return _by_parts(context, (x, y), dimension_numbers)
    if not _are_matrices(a, b, out, dimension_numbers, "iu", MANY):
        return NotImplemented
    widths = [aval.dtype.itemsize for aval in (a, b)]
    if widths == [1, 1] and (out.dtype.itemsize == 1 or a.dtype == b.dtype == INT8):
        if a.dtype == b.dtype == INT8 and out.dtype == INT32:
            return NotImplemented
        return _converted(context, (x, y), INT8, INT32, dimension_numbers)
    if kernels.usable(context) and not context.divides:
        return _by_kernel(context, (x, y), dimension_numbers)
    if out.dtype.itemsize == 8 or a.dtype == b.dtype == out.dtype == INT32:
        return NotImplemented
    return _converted(context, (x, y), INT32, INT32, dimension_numbers)


def _of_vectors(context: Any, operands: Any, dimension_numbers: Any) -> Any:
    """Arrays of one shape multiplied element by element, and added up."""
    (x, y), (a, b), (out,) = operands, context.avals_in, context.avals_out
    (over, over_b), (batch, batch_b) = dimension_numbers
    if (
        (a.shape, a.dtype) != (b.shape, b.dtype)
        or a.dtype != out.dtype
        or not tuple(over) == tuple(over_b) == tuple(range(out.ndim, a.ndim))
        or not tuple(batch) == tuple(batch_b) == tuple(range(out.ndim))
    ):
        return NotImplemented
    return sum_of_products(context, x, y, a, out)


def _short_rows(context: Any, operands: Any, dimension_numbers: Any) -> Any:
    """Many short rows times a vector, as a sum of columns, which XLA makes vectors of, and one loop
    with what follows; by a kernel if nothing does."""
    (out,) = context.avals_out
    contracting, (batch, _) = dimension_numbers
    found = zip(operands, context.avals_in, contracting, strict=True)
    (vector, short, _), (rows, aval, over) = sorted(found, key=lambda one: one[1].ndim)
    if (
        batch
        or short.ndim != 1
        or tuple(over) != (aval.ndim - 1,)
        or not 2 <= aval.shape[-1] <= SHORT_ROW
        or out.size < MANY_ROWS
        or out.dtype not in FLOATS
        or any(each.dtype != out.dtype or each.symbolic for each in (aval, short))
        or context.divides
    ):
        return NotImplemented
    program = context.program
    is_last = program is not None and program.eqns[-1] is context.equation
    name = dtype_name(out.dtype)
    if is_last and out.size >= MANY and name in kernels.MATRIX_VECTOR and kernels.usable(context):
        return kernels.call(context, kernels.MATRIX_VECTOR[name], [rows, vector], [out], 0)[0]
    column = aval.update(shape=(*out.shape, 1))
    one, number = short.update(shape=(1,)), short.update(shape=())
    total = None
    for i in range(aval.shape[-1]):
        begin, end = (0,) * out.ndim + (i,), (*out.shape, i + 1)
        part = context.reshape(context.slice(rows, column, begin, end), out)
        factor = context.reshape(context.slice(vector, one, (i,), (i + 1,)), number)
        part = context.mul(part, context.broadcast_in_dim(factor, out, ()), out)
        total = part if total is None else context.add(total, part, out)
    return total


def _are_matrices(a: Any, b: Any, out: Any, dimension_numbers: Any, kinds: str, many: int) -> bool:
    """Whether these are many numbers of such kinds, and not a matrix with a vector."""
    if any(dtypes.kind_of(aval.dtype) not in kinds for aval in (a, b, out)):
        return False
    if not all(isinstance(size, int) for aval in (a, b, out) for size in aval.shape):
        return False
    (over, _), (batch, _) = dimension_numbers
    summed, each = (prod([a.shape[d] for d in ds]) for ds in (over, batch))
    rows, columns = (aval.size // max(1, each * summed) for aval in (a, b))
    return bool(rows > 1 and columns > 1 and out.size * summed >= many)


def _with_vector(context: Any, operands: Any, dimension_numbers: Any) -> Any:
    """The product of a vector and a matrix, by a kernel that reads its rows in order."""
    (out,) = context.avals_out
    contracting, batch = dimension_numbers
    if batch[0] or dtype_name(out.dtype) not in kernels.VECTOR_PRODUCT:
        return NotImplemented
    found = zip(operands, context.avals_in, contracting, strict=True)
    (value, aval, dims), (vector, of_vector, _) = sorted(found, key=lambda one: one[1].ndim == 1)
    if (
        (aval.ndim, of_vector.ndim, len(dims)) != (2, 1, 1)
        or any(each.dtype != out.dtype or each.symbolic for each in (aval, of_vector))
        or min(aval.shape) < LEAST_OF_ROWS
        or context.divides
        or not kernels.usable(context)
    ):
        return NotImplemented
    matrix, over = _untransposed(value, dims[0])
    if aval.size < (MANY_BY_COLUMNS if over else MANY):
        return NotImplemented
    if over == 0:
        target, both = kernels.VECTOR_PRODUCT[dtype_name(out.dtype)], [vector, matrix]
    elif kernel_library.has_long_vectors():
        target, both = kernels.MATRIX_VECTOR[dtype_name(out.dtype)], [matrix, vector]
    else:
        return NotImplemented
    return kernels.call(context, target, both, [out], 0)[0]


def _of_small_matrices(context: Any, operands: Any, dimension_numbers: Any) -> Any:
    """Many products of small matrices, as they lie."""
    (a, b), (out,) = context.avals_in, context.avals_out
    last = out.ndim - 1
    batch = tuple(range(last - 1))
    usual = (((last,), (last - 1,)), (batch, batch))
    if (
        tuple(tuple(map(tuple, pair)) for pair in dimension_numbers) != usual
        or not a.ndim == b.ndim == out.ndim > 2
        or dtype_name(out.dtype) not in kernels.SMALL_PRODUCTS
        or any(each.dtype != out.dtype or each.symbolic for each in (a, b))
        or not all(2 <= size <= SMALL for each in (a, b) for size in each.shape[-2:])
        or max(*a.shape[-2:], out.shape[-1]) < 4  # XLA writes these products out
        or prod(out.shape[:-2]) < MANY_MATRICES
        or not kernels.usable(context)
    ):
        return NotImplemented
    target = kernels.SMALL_PRODUCTS[dtype_name(out.dtype)]
    return kernels.call(context, target, operands, [out], out.ndim - 2)[0]


def _with_transpose(context: Any, operands: Any, dimension_numbers: Any) -> Any:
    """The product of a matrix with its own transpose, by a kernel that computes half of it."""
    (out,) = context.avals_out
    (lhs, rhs), (batch, _) = dimension_numbers
    if batch or out.ndim != 2 or dtype_name(out.dtype) not in kernels.GRAM or len(lhs) != 1:
        return NotImplemented
    (x, over), (y, other) = _untransposed(operands[0], lhs[0]), _untransposed(operands[1], rhs[0])
    aval = context.avals_in[0]
    if (
        x != y
        or over != other
        or aval.symbolic
        or aval.dtype != out.dtype
        or out.shape[0] < LEAST_OF_ROWS
        or out.size * aval.shape[lhs[0]] < MANY_FOR_COPIES
        or context.divides
        or not kernels.usable(context)
    ):
        return NotImplemented
    return kernels.call(
        context, kernels.GRAM[dtype_name(out.dtype)], [x], [out], 0, over_rows=int(over == 0)
    )[0]


def _untransposed(value: Any, over: int) -> tuple[Any, int]:
    """The matrix that a value is the transpose of, and its dimension that is summed over."""
    owner = value.owner
    turned = getattr(owner, "name", "") == "stablehlo.transpose"
    if turned and list(owner.attributes["permutation"]) == [1, 0]:
        return owner.operands[0], 1 - over
    return value, over


#: The rules for special products, by whether a vector is among the operands.
_OF_VECTORS: Final = (_short_rows, _with_vector, _of_vectors)
_OF_MATRICES: Final = (_with_transpose, _of_vectors, _of_small_matrices)


def _product(context: Any, operands: Any, out: Any, dimension_numbers: Any) -> Any:
    (lhs, rhs), (lhs_batch, rhs_batch) = dimension_numbers
    attributes = {
        "dot_dimension_numbers": context.dot_dimension_numbers(
            lhs_contracting=lhs,
            rhs_contracting=rhs,
            lhs_batching=lhs_batch,
            rhs_batching=rhs_batch,
        )
    }
    return context.op("dot_general", operands, out, attributes)


def _converted(context: Any, operands: Any, factors: Any, sums: Any, dimension_numbers: Any) -> Any:
    """The product of operands of the dtype `factors`, summed in another."""
    (a, b), (out,) = context.avals_in, context.avals_out
    values = [
        context.convert(operand, aval, aval.update(dtype=factors))
        for operand, aval in zip(operands, (a, b), strict=True)
    ]
    product = _product(context, values, out.update(dtype=sums), dimension_numbers)
    return context.convert(product, out.update(dtype=sums), out)


def _by_parts(context: Any, operands: Any, dimension_numbers: Any) -> Any:
    """The product of complex numbers by those of their real and imaginary parts.

    Kernels take these apart and together: XLA would compile six loops.
    """
    (out,) = context.avals_out
    dtype = real_dtype(out.dtype)
    part = out.update(dtype=dtype)
    by_kernels = kernels.usable(context) and not context.divides

    def parts(x: Any, aval: Any) -> list[Any]:
        half = aval.update(dtype=dtype)
        if by_kernels:
            return kernels.call(context, kernels.COMPLEX_PARTS, [x], [half, half], 0)
        return [context.op(name, [x], half) for name in ("real", "imag")]

    (a, b), (c, d) = map(parts, operands, context.avals_in)
    ac, bd, ad, bc = (
        _product(context, pair, part, dimension_numbers)
        for pair in ([a, c], [b, d], [a, d], [b, c])
    )
    if by_kernels:
        products = [ac, bd, ad, bc]
        return kernels.call(context, kernels.COMPLEX_FROM_PRODUCTS, products, [out], 0)[0]
    return context.complex(context.sub(ac, bd, part), context.add(ad, bc, part), out)


def _by_kernel(context: Any, operands: Any, dimension_numbers: Any) -> Any:
    """The product by a convolution with a kernel of one place, whose positions are the rows."""
    (a, b), (out,) = context.avals_in, context.avals_out
    dtype = out.dtype if out.dtype.itemsize >= 4 else INT32
    (over, over_b), (batch, batch_b) = dimension_numbers
    free = [d for d in range(a.ndim) if d not in (*over, *batch)]
    free_b = [d for d in range(b.ndim) if d not in (*over_b, *batch_b)]
    groups = prod([a.shape[d] for d in batch])
    summed = prod([a.shape[d] for d in over])
    rows, columns = prod([a.shape[d] for d in free]), prod([b.shape[d] for d in free_b])

    def arranged(value: Any, aval: Any, order: Any, shape: tuple[int, ...]) -> Any:
        value = context.convert(value, aval, aval.update(dtype=dtype))
        moved = ShapedArray(tuple([aval.shape[d] for d in order]), dtype)
        if list(order) != list(range(aval.ndim)):
            value = context.transpose(value, moved, order)
        return context.reshape(value, ShapedArray(shape, dtype))

    x = arranged(operands[0], a, [*batch, *free, *over], (groups, rows, summed))
    y = arranged(operands[1], b, [*batch_b, *over_b, *free_b], (groups, summed, columns))
    sizes = [groups, 1, summed, columns]
    sizes += [rows * summed, 0, 1, 0, summed * columns, 1, columns, rows * columns, 0, 1]
    alone = [1, 1, 1, 0, 0, 0, 1, 0, 1, 1]
    sizes += [*alone, *alone, rows, 1, rows, summed, 0, columns, 1, 0, 1, 1]
    product = ShapedArray((groups, rows, columns), dtype)
    (value,) = kernels.call(context, kernels.CONVOLVE_INTEGERS, [x, y], [product], 1, sizes=sizes)
    wide = out.update(dtype=dtype)
    return context.convert(context.reshape(value, wide), wide, out)
