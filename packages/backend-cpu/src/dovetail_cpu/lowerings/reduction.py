"""Reductions by a kernel, and in forms that XLA's CPU compiler vectorizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import numpy as np

from dovetail.extend import LoweringTable, ShapedArray, dtypes
from dovetail.extend.dtypes import dtype_name
from dovetail_cpu import kernel_library, kernels
from dovetail_cpu.lowerings import differences, distances
from dovetail_cpu.lowerings.worth import (
    FEW,
    FEW_OF_EXTREMES,
    FEW_STEPS,
    MANY_ROWS,
    are_short,
    suits_kernel,
)

TABLE: Final = LoweringTable()

#: Rows of up to this many elements are reduced by combining their columns: 18 times as fast for 4
#: elements, as fast for 16.
SHORT_ROW: Final = 8

#: XLA has reductions of this many elements done by a library, whose extremes leave NaN out.
BY_LIBRARY: Final = 4096

#: Operations of the kernel.
MAXIMUM, MINIMUM, SUM, PRODUCT, SUM_OF_NUMBERS, COUNT_OF_NUMBERS, COUNT_OF_NONZERO = range(7)
MAXIMUM_OF_NUMBERS, MINIMUM_OF_NUMBERS, ANY_NUMBER = range(7, 10)
WIDE_SUMS: Final = frozenset({"int32", "int64", "uint32", "uint64"})
_BYTES: Final = frozenset({"bool", "int8", "uint8"})
_NUMBERS: Final = WIDE_SUMS | {"float32", "float64"}
#: What the kernel finds extremes of.
ORDERED: Final = _BYTES | {"int32", "int64", "float32", "float64"}
#: What each operation of the kernel takes; it adds bytes in wider integers, bfloat16 in float32.
BY_KERNEL: Final = {
    MAXIMUM: ORDERED,
    MINIMUM: ORDERED,
    SUM: _BYTES | _NUMBERS | {"bfloat16"},
    PRODUCT: _NUMBERS,
    SUM_OF_NUMBERS: frozenset({"float32", "float64"}),
    COUNT_OF_NUMBERS: frozenset({"float32", "float64"}),
    COUNT_OF_NONZERO: _NUMBERS,
    MAXIMUM_OF_NUMBERS: frozenset({"float32", "float64"}),
    MINIMUM_OF_NUMBERS: frozenset({"float32", "float64"}),
    ANY_NUMBER: frozenset({"float32", "float64"}),
}
#: Larger results of other operations are not written to memory, to be read by a kernel.
WORTH_WRITING: Final = 2**22

BFLOAT16: Final = dtypes.as_dtype("bfloat16")
BOOL: Final = np.dtype(bool)
FLOATS: Final = (np.dtype(np.float32), np.dtype(np.float64))
INT32: Final = np.dtype(np.int32)
_OF_BYTES: Final = {"i1": BOOL, "i8": np.dtype(np.int8), "ui8": np.dtype(np.uint8)}
_OF_NUMBERS: Final[dict[str, np.dtype[Any]]] = {
    "i32": INT32,
    "ui32": np.dtype(np.uint32),
    "f32": FLOATS[0],
    "i64": np.dtype(np.int64),
    "ui64": np.dtype(np.uint64),
    "f64": FLOATS[1],
}


def is_stored(x: Any, aval: Any) -> bool:
    """Whether an operand is in memory, or written there in a fraction of the reduction's time.

    Others are computed in the loop that reduces them.
    """
    size = aval.size * aval.dtype.itemsize
    return size <= WORTH_WRITING or aval.dtype == BOOL or not hasattr(x.owner, "name")


def _reduce_by_kernel(
    context: Any, x: Any, aval: Any, axes: tuple[int, ...], kind: int, out: Any = None
) -> Any:
    """The extremes or sums along neighbouring axes; NotImplemented where nothing is gained.

    Args:
        out: the aval of the result, if it is not that of the primitive.
    """
    rows = axes and axes[-1] == aval.ndim - 1 and dtype_name(aval.dtype) not in _BYTES
    compared = rows and kind in (MAXIMUM, MINIMUM) and not kernel_library.has_long_vectors()
    if (
        dtype_name(aval.dtype) not in BY_KERNEL[kind]
        or not axes
        or tuple(axes) != tuple(range(axes[0], axes[-1] + 1))
        or not suits_kernel(context, aval)
        or not is_stored(x, aval)
        or are_short(aval, axes[0], FEW_OF_EXTREMES if compared else FEW)
    ):
        return NotImplemented
    return _called(context, x, aval, axes, kind, context.avals_out if out is None else [out])


def _called(
    context: Any, x: Any, aval: Any, axes: tuple[int, ...], kind: int, outs: Sequence[Any]
) -> Any:
    (result,) = kernels.call(
        context,
        kernels.REDUCE,
        [x],
        outs,
        batch_dims=axes[0],
        operation=kind,
        count=len(axes),
        after=aval.ndim - 1 - axes[-1],
    )
    return result


def _position_by_kernel(context: Any, x: Any, aval: Any, axis: int, largest: bool) -> Any:
    (out,) = context.avals_out
    work = _comparable(aval) if aval.dtype != BOOL else aval
    # What XLA has instead are two reductions, which take long to compile, however few elements.
    if (
        dtype_name(work.dtype) not in ORDERED
        or not suits_kernel(context, aval, least=1)
        or (are_short(aval, axis) and prod(aval.shape[axis + 1 :]) > 1)
    ):
        return NotImplemented
    work, result = work.update(weak_type=False), ShapedArray(out.shape, INT32)
    if work.dtype != aval.dtype:
        # The compiler would leave out that it was rounded to the narrow dtype.
        (x,) = context.optimization_barrier([x], [aval])
    (positions,) = kernels.call(
        context,
        kernels.EXTREME_POSITIONS,
        [context.convert(x, aval, work)],
        [result],
        batch_dims=axis,
        largest=int(largest),
        after=aval.ndim - 1 - axis,
    )
    return context.convert(positions, result, out)


def _extreme_position(context: Any, x: Any, axis: int, index_dtype: Any, largest: bool) -> Any:
    """The first position of the extreme, in two passes: 10 to 40 times as fast as in one."""
    (aval,), (out,) = context.avals_in, context.avals_out
    size = aval.shape[axis]
    if aval.dtype.kind == "c" or size >= 2**31 - 1:
        return NotImplemented
    by_kernel = _position_by_kernel(context, x, aval, axis, largest)
    if by_kernel is not NotImplemented:
        return by_kernel
    work = _comparable(aval)
    # Both passes must see the same values. Without the barrier, the compiler may recompute the
    # operand in each with different rounding, and find the extreme nowhere.
    (x,) = context.optimization_barrier([x], [aval])
    x = context.convert(x, aval, work)
    is_float = work.dtype in FLOATS
    position = ShapedArray((), INT32)
    best = _extreme(context, x, work, ShapedArray(out.shape, work.dtype), (axis,), largest)
    others = tuple(i for i in range(aval.ndim) if i != axis)
    spread = context.broadcast_in_dim(best, work, others)
    truth = ShapedArray(aval.shape, BOOL)
    if is_float:
        # If the best is NaN, no number compares equal; NaN itself is not less than anything.
        not_worse = context.not_(context.compare(x, spread, "LT" if largest else "GT", work), truth)
        counts = context.or_(
            context.compare(spread, spread, "EQ", work),
            context.compare(x, x, "NE", work),
            truth,
        )
        is_best = context.and_(not_worse, counts, truth)
    else:
        is_best = context.compare(x, spread, "EQ", work)
    positions = ShapedArray(aval.shape, INT32)
    candidates = context.select(
        is_best, context.iota(positions, axis), context.constant(size, positions), positions
    )
    result = ShapedArray(out.shape, INT32)
    (first,) = context.reduce(
        [candidates],
        [context.constant(size, position)],
        (axis,),
        [result],
        lambda a, b: [context.min(a, b, position)],
    )
    return context.convert(first, result, out)


def _extreme(
    context: Any, x: Any, aval: Any, out: Any, axes: tuple[int, ...], largest: bool
) -> Any:
    """The extremes along axes; those of NaN are NaN, also where a library does the reduction."""
    kind = dtypes.kind_of(aval.dtype)
    if kind == "f":
        start = -np.inf if largest else np.inf
    else:
        limits = dtypes.iinfo(aval.dtype)
        start = limits.min if largest else limits.max
    value = ShapedArray((), aval.dtype)
    (best,) = context.reduce(
        [x],
        [context.constant(start, value)],
        axes,
        [out],
        lambda a, b: [(context.max if largest else context.min)(a, b, value)],
    )
    if not leaves_nan_out(aval):
        return best
    truth, some = ShapedArray((), BOOL), out.update(dtype=BOOL, weak_type=False)
    (unordered,) = context.reduce(
        [context.compare(x, x, "NE", aval)],
        [context.constant(False, truth)],
        axes,
        [some],
        lambda a, b: [context.or_(a, b, truth)],
    )
    return context.select(unordered, context.constant(np.nan, out), best, out)


def leaves_nan_out(aval: Any) -> bool:
    """Whether the library may reduce such an array, whose extremes leave NaN out."""
    return dtypes.kind_of(aval.dtype) == "f" and (aval.symbolic or aval.size >= BY_LIBRARY)


def _comparable(aval: Any) -> Any:
    """The aval in a dtype with the same order that the CPU compares directly."""
    if aval.dtype == BOOL:
        return ShapedArray(aval.shape, np.dtype(np.uint8))
    if aval.dtype.kind in "iu" or aval.dtype in FLOATS:
        return ShapedArray(aval.shape, aval.dtype)
    return ShapedArray(aval.shape, FLOATS[0])


@TABLE.rule("argmax")
def argmax(context: Any, x: Any, *, axes: tuple[int, ...], index_dtype: Any) -> Any:
    """The position of the largest element."""
    return _extreme_position(context, x, axes[0], index_dtype, largest=True)


@TABLE.rule("argmin")
def argmin(context: Any, x: Any, *, axes: tuple[int, ...], index_dtype: Any) -> Any:
    """The position of the smallest element."""
    return _extreme_position(context, x, axes[0], index_dtype, largest=False)


def _columns(
    context: Any, x: Any, axes: tuple[int, ...], kind: int, combine: Callable[..., Any]
) -> Any:
    """Short rows reduced by combining their columns, in pairs; NotImplemented for others.

    Where they stand alone the kernel does the same, and no loop is compiled.
    """
    (aval,), (out,) = context.avals_in, context.avals_out
    last = aval.ndim - 1
    if (
        axes != (last,)
        or not 2 <= aval.shape[last] <= SHORT_ROW
        or out.size < MANY_ROWS
        or not (aval.dtype in FLOATS or aval.dtype.kind in "iu")
    ):
        return NotImplemented
    wide = aval.dtype.itemsize >= 4 and dtype_name(aval.dtype) in BY_KERNEL[kind]
    if wide and suits_kernel(context, aval) and context.stands_alone():
        return _called(context, x, aval, axes, kind, context.avals_out)
    column = ShapedArray((*aval.shape[:last], 1), aval.dtype)
    parts = []
    for i in range(aval.shape[last]):
        limits = (*aval.shape[:last], i + 1)
        part = context.slice(x, column, (0,) * last + (i,), limits)
        parts.append(context.reshape(part, out))
    while len(parts) > 1:
        pairs = [combine(a, b, out) for a, b in zip(parts[::2], parts[1::2], strict=False)]
        parts = [*pairs, parts[-1]] if len(parts) % 2 else pairs
    return parts[0]


@TABLE.rule("reduce_sum")
def reduce_sum(context: Any, x: Any, *, axes: tuple[int, ...], out_sharding: Any = None) -> Any:
    """The sum of short rows, of distances, of numbers in memory, or of bytes in wider integers."""
    (aval,) = context.avals_in
    source = _narrow_source(x)
    if source is not None and out_sharding is None and dtype_name(aval.dtype) in WIDE_SUMS:
        narrow, dtype = source
        counted = _count_of_nonzero(context, narrow, aval, axes)
        if counted is not NotImplemented:
            return counted
        of_bytes = aval.update(dtype=dtype)
        by_kernel = _reduce_by_kernel(context, narrow, of_bytes, axes, SUM)
        if by_kernel is not NotImplemented:
            return by_kernel
    of_halves = _of_bfloat16(context, x, aval, axes) if out_sharding is None else NotImplemented
    if of_halves is not NotImplemented:
        return of_halves
    of_pairs = distances.by_kernel(context, x, aval, axes)
    if of_pairs is not NotImplemented:
        return of_pairs
    of_differences = _of_differences(context, x, aval, axes)
    if of_differences is not NotImplemented:
        return of_differences
    by_columns = _columns(context, x, axes, SUM, context.add)
    if by_columns is not NotImplemented or out_sharding is not None:
        return by_columns
    return _folded(context, x, aval, axes, SUM)


def _of_bfloat16(context: Any, x: Any, aval: Any, axes: tuple[int, ...]) -> Any:
    """The sum of bfloat16 in memory along the last dimensions, in float32."""
    (out,) = context.avals_out
    if aval.dtype == FLOATS[0] and getattr(x.owner, "name", "") == "stablehlo.convert":
        (x,) = x.owner.operands
    if str(x.type.element_type) != "bf16" or hasattr(x.owner, "name"):
        return NotImplemented
    if axes != tuple(range(aval.ndim - len(axes), aval.ndim)):
        return NotImplemented
    halves, single = aval.update(dtype=BFLOAT16), out.update(dtype=FLOATS[0], weak_type=False)
    result = _reduce_by_kernel(context, x, halves, axes, SUM, single)
    return result if result is NotImplemented else context.convert(result, single, out)


def _of_differences(context: Any, x: Any, aval: Any, axes: tuple[int, ...]) -> Any:
    """The sum of squares of differences of numbers in memory, or of exponentials of any."""
    if not differences.suits(context, aval, axes):
        return NotImplemented
    found = differences.found_in(x, aval, axes)
    if found is None:
        return differences.sums_beside(x, aval, axes)
    values = (found.minuend, found.subtrahend) if found.is_whole else (found.minuend,)
    if found.function == differences.SQUARE and not all(is_stored(v, aval) for v in values):
        return NotImplemented
    if found.function == differences.EXPONENTIAL and differences.is_of_products(found.minuend):
        return NotImplemented
    return differences.sums(context, found, aval, axes)


def _folded(context: Any, x: Any, aval: Any, axes: tuple[int, ...], kind: int) -> Any:
    """The sum or product of numbers in memory; others XLA computes on the way."""
    if dtype_name(aval.dtype) not in _NUMBERS or not axes:
        return NotImplemented
    if kind == SUM and axes == tuple(range(axes[0], aval.ndim)):
        factors = _factors(x)
        if factors is not None:
            return sum_of_products(context, *factors, aval, context.avals_out[0])
    if kind == SUM:
        x, kind = _without_nan(x)
    if hasattr(x.owner, "name"):
        return NotImplemented
    if axes[-1] < aval.ndim - 1:
        steps = prod([aval.shape[axis] for axis in axes])
        if kind == PRODUCT or steps < FEW_STEPS:
            return NotImplemented
    return _reduce_by_kernel(context, x, aval, axes, kind)


def _numbers_in(x: Any, other: float) -> Any:
    """The array of which a value has the numbers, with another number in place of NaN."""
    if getattr(x.owner, "name", "") != "stablehlo.select":
        return None
    condition, source, rest = x.owner.operands
    return source if _is_number(condition, source) and _is_all(rest, other) else None


def _without_nan(x: Any) -> tuple[Any, int]:
    """The array of which a value holds the numbers, or how many each is, and how it is summed."""
    name = getattr(x.owner, "name", "")
    if name == "stablehlo.select":
        condition, source, other = x.owner.operands
        if _is_number(condition, source) and _is_zero(other):
            return source, SUM_OF_NUMBERS
    elif name == "stablehlo.convert":
        (condition,) = x.owner.operands
        source = condition.owner.operands[0] if hasattr(condition.owner, "operands") else None
        if source is not None and _is_number(condition, source) and source.type == x.type:
            return source, COUNT_OF_NUMBERS
    return x, SUM


def _is_number(condition: Any, x: Any) -> bool:
    """Whether a value says of each element that it is not NaN."""
    owner = condition.owner
    return (
        getattr(owner, "name", "") == "stablehlo.compare"
        and "EQ" in str(owner.attributes["comparison_direction"])
        and all(operand == x for operand in owner.operands)
    )


def _is_zero(x: Any) -> bool:
    return _is_all(x, 0)


def _is_all(x: Any, number: float) -> bool:
    """Whether a value has one number alone."""
    while getattr(x.owner, "name", "") == "stablehlo.broadcast_in_dim":
        (x,) = x.owner.operands
    is_complex = str(x.type.element_type).startswith("complex")  # which jaxlib does not tell
    if getattr(x.owner, "name", "") != "stablehlo.constant" or is_complex:
        return False
    value = x.owner.attributes["value"]
    return bool(value.is_splat and np.all(np.asarray(value.get_splat_value().value) == number))


def _factors(x: Any) -> tuple[Any, Any] | None:
    """The two arrays in memory that a value is the product of."""
    if getattr(x.owner, "name", "") != "stablehlo.multiply":
        return None
    first, second = x.owner.operands
    return None if any(hasattr(v.owner, "name") for v in (first, second)) else (first, second)


def sum_of_products(context: Any, x: Any, y: Any, aval: Any, out: Any) -> Any:
    """The sum along the dimensions that follow those of `out`; NotImplemented if XLA is as fast."""
    if (
        dtype_name(aval.dtype) not in _NUMBERS
        or not suits_kernel(context, aval)
        or are_short(aval, out.ndim)
    ):
        return NotImplemented
    (result,) = kernels.call(context, kernels.SUM_OF_PRODUCTS, [x, y], [out], batch_dims=out.ndim)
    return result


def _count_of_nonzero(context: Any, truths: Any, aval: Any, axes: tuple[int, ...]) -> Any:
    """How many numbers in memory are not 0, along the last dimensions; NotImplemented for others.

    Args:
        aval: of what the truths are converted to, which is as wide as the numbers.
    """
    owner = truths.owner
    if getattr(owner, "name", "") != "stablehlo.compare":
        return NotImplemented
    x, zero = owner.operands
    dtype = _OF_NUMBERS.get(str(x.type.element_type))
    if (
        "NE" not in str(owner.attributes["comparison_direction"])
        or dtype is None
        or dtype.itemsize != aval.dtype.itemsize
        or hasattr(x.owner, "name")
        or not _is_zero(zero)
        or axes != tuple(range(aval.ndim - len(axes), aval.ndim))
    ):
        return NotImplemented
    return _reduce_by_kernel(context, x, aval.update(dtype=dtype), axes, COUNT_OF_NONZERO)


def _narrow_source(x: Any) -> tuple[Any, Any] | None:
    """The integers or booleans of one byte that a value was converted from, and their dtype."""
    if getattr(x.owner, "name", "") != "stablehlo.convert":
        return None
    (source,) = x.owner.operands
    dtype = _OF_BYTES.get(str(source.type.element_type))
    return None if dtype is None else (source, dtype)


@TABLE.rule("reduce_prod")
def reduce_prod(context: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    """The product of short rows, or of numbers in memory."""
    (aval,) = context.avals_in
    by_columns = _columns(context, x, axes, PRODUCT, context.mul)
    if by_columns is not NotImplemented:
        return by_columns
    return _folded(context, x, aval, axes, PRODUCT)


@TABLE.rule("reduce_max")
def reduce_max(context: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    """The largest element: of short rows, or with a look for NaN."""
    return _extreme_of_rows(context, x, axes, largest=True)


@TABLE.rule("reduce_max_of_numbers")
def reduce_max_of_numbers(context: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    """The largest element, where NaN may be left out."""
    (aval,) = context.avals_in
    if differences.is_of_products(x):
        return NotImplemented
    return _reduce_by_kernel(context, x, aval, axes, MAXIMUM)


@TABLE.rule("reduce_min")
def reduce_min(context: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    """The smallest element: of short rows, or with a look for NaN."""
    return _extreme_of_rows(context, x, axes, largest=False)


def _extreme_of_rows(context: Any, x: Any, axes: tuple[int, ...], largest: bool) -> Any:
    (aval,), (out,) = context.avals_in, context.avals_out
    kind, combine = (MAXIMUM, context.max) if largest else (MINIMUM, context.min)
    numbers = _numbers_in(x, -np.inf if largest else np.inf)
    if numbers is not None and not hasattr(numbers.owner, "name"):
        of_numbers = MAXIMUM_OF_NUMBERS if largest else MINIMUM_OF_NUMBERS
        by_kernel = _reduce_by_kernel(context, numbers, aval, axes, of_numbers)
        if by_kernel is not NotImplemented:
            return by_kernel
    by_columns = _columns(context, x, axes, kind, combine)
    if by_columns is not NotImplemented:
        return by_columns
    by_kernel = _reduce_by_kernel(context, x, aval, axes, kind)
    if by_kernel is not NotImplemented:
        return by_kernel
    if not axes or not leaves_nan_out(aval):
        return NotImplemented
    return _extreme(context, x, aval, out, axes, largest)


@TABLE.rule("reduce_or")
def reduce_or(context: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    """Whether any is true, of all numbers or NaN, or of truths."""
    (aval,), owner = context.avals_in, x.owner
    source = owner.operands[0] if getattr(owner, "name", "") == "stablehlo.compare" else None
    if source is not None and _is_number(x, source) and not hasattr(source.owner, "name"):
        dtype = _OF_NUMBERS.get(str(source.type.element_type))
        if dtype in FLOATS and axes == tuple(range(aval.ndim - len(axes), aval.ndim)):
            numbers = aval.update(dtype=dtype)
            by_kernel = _reduce_by_kernel(context, source, numbers, axes, ANY_NUMBER)
            if by_kernel is not NotImplemented:
                return by_kernel
    return _of_booleans(context, x, axes, MAXIMUM)


@TABLE.rule("reduce_and")
def reduce_and(context: Any, x: Any, *, axes: tuple[int, ...]) -> Any:
    """Whether all are true."""
    return _of_booleans(context, x, axes, MINIMUM)


def _of_booleans(context: Any, x: Any, axes: tuple[int, ...], kind: int) -> Any:
    (aval,) = context.avals_in
    if aval.dtype != BOOL:
        return NotImplemented
    return _reduce_by_kernel(context, x, aval, axes, kind)


@TABLE.rule("reduce")
def reduce(context: Any, *values: Any, jaxpr: Any, dimensions: tuple[int, ...]) -> Any:
    """What combines extremes with more, together with a flag: the library takes one array."""
    aval, names = context.avals_in[0], [eqn.primitive.name for eqn in jaxpr.jaxpr.eqns]
    extreme = len(names) > 1 and ("max" in names or "min" in names)
    if len(values) > 2 or not extreme or not leaves_nan_out(aval):
        return NotImplemented
    (out,) = context.avals_out
    truth, some = ShapedArray((), BOOL), out.update(dtype=BOOL, weak_type=False)
    result, flag = context.reduce(
        [values[0], context.compare(values[0], values[0], "NE", aval)],
        [values[1], context.constant(False, truth)],
        dimensions,
        [out, some],
        lambda a, p, b, q: [*context.inline_jaxpr(jaxpr, (a, b)), context.or_(p, q, truth)],
    )
    # The barrier keeps the flag, which nothing uses, until the reductions have been chosen.
    result, _ = context.optimization_barrier([result, flag], [out, some])
    return result
