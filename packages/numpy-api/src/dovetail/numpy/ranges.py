"""Evenly spaced numbers, geometric sequences, and coordinate grids."""

from __future__ import annotations

import math
from typing import Any, Final, Literal, overload

import numpy as np
from dovetail import lax
from dovetail.errors import ConcretizationTypeError, DTypeError, ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    broadcast_result,
    canonical_axis,
    canonical_shape,
    convert,
    host_array,
    inexact_dtype,
    inexact_pair,
    integer,
    literal,
    placed,
    promoted_pair,
    requested_dtype,
    value,
    with_rank,
)
from dovetail.extend.avals import Tracer, aval_of
from dovetail.extend.dimensions import is_symbolic_dim, max_dim
from dovetail.extend.eager import evaluation_trace, trace_state
from dovetail.extend.strictness import strictness
from dovetail.extend.unchecked import iota_like, position_dtype
from dovetail.numpy.compiled import compiled_with, plain
from dovetail.numpy.conditions import pick
from dovetail.numpy.creation import SMALL, check_one_place, on_device
from dovetail.numpy.joining import stack
from dovetail.numpy.shapes import broadcast_to, expand_dims, moveaxis, operand, reshaped
from dovetail.typing import Array, ArrayLike, DeviceLike, DTypeLike, ShapeLike, Sharding

#: The names of `start` and `stop` in messages.
_ENDS: Final = ("start", "stop")


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: DeviceLike | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Evenly spaced numbers from a start up to an end, which is excluded.

    Args:
        start: first number; if it is the only argument, the end, and the first number is 0.
        stop: the end, which is excluded.
        step: difference between neighbours, 1 if None; negative to count down.
        dtype: dtype of the result; the common one of the arguments if None.
        device: device on which the array is placed and stays.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of rank 1. Its size depends on the arguments, which therefore must not be traced.

    Raises:
        ConcretizationTypeError: an argument is traced.
        OverflowError: the dtype cannot hold a number, or `start` or `stop` is infinite.
        ValueError: an argument is nan, or `step` is infinite.
        ZeroDivisionError: the step is zero.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.arange(4), jnp.arange(1, 2, 0.25))
        [0 1 2 3] [1.   1.25 1.5  1.75]
    """
    if out_sharding is not None:
        check_one_place("arange", device, out_sharding)
        made = arange(start, stop, step, dtype, device=device)
        return placed("arange", made, out_sharding)
    several = stop is not None
    if any(map(is_symbolic_dim, (start, stop, step))):
        return _symbolic_range(start, stop, step, dtype)
    if start is None:
        raise TypeError(
            "arange: start (stop, where it is the only argument) must be a number, got None; "
            "write 0 to start from zero"
        )
    numbers = [
        _number("arange", name, n)
        for name, n in (("start" if several else "stop", start), ("stop", stop), ("step", step))
        if n is not None
    ]
    if dtype is None:
        target = dtypes.result_type(*numbers)
        target = dtypes.canonicalize_dtype(target)
    else:
        target = requested_dtype("arange", dtype)
    if stop is None:
        first, last, difference = 0, numbers[0], numbers[1] if step is not None else 1
    else:
        first, last = numbers[:2]
        difference = numbers[2] if step is not None else 1
    ends_and_step = (first, last, difference)
    first, last, difference = (int(n) if isinstance(n, np.bool_) else n for n in ends_and_step)
    if difference == 0:
        raise ZeroDivisionError("arange: step must not be zero")
    if any(n != n or n in (math.inf, -math.inf) for n in (first, last, difference)):
        countable = math.isfinite(difference) and first == first and last == last
        error = OverflowError if countable else ValueError
        raise error(f"arange: start, stop and step must be finite, got {numbers}")
    length = _length(first, last, difference)
    if length and dtypes.kind_of(target) in ("i", "u"):
        _check_ends(target, _plain(first), _plain(first) + (length - 1) * _plain(difference))
    if length <= SMALL and trace_state.trace is evaluation_trace:
        with np.errstate(over="ignore"):
            values = np.arange(length) * difference + first
        return on_device(host_array(values.astype(target)), device)
    kind = dtypes.kind_of(target)
    if kind == "b" and length > 2:
        raise TypeError(f"arange: booleans cannot count to {length}; there are two of them")
    if kind in ("i", "u", "f"):
        result = _counted(length, target, first, difference)
    else:
        wide = dtypes.default_dtype("f" if kind == "c" else "i")
        result = convert(_counted(length, wide, first, difference), target)
    return on_device(result, device)


def _symbolic_range(start: Any, stop: Any, step: Any, dtype: Any) -> Array:
    """`arange` where sizes of dimensions are among the arguments."""
    first, last = (0, start) if stop is None else (start, stop)
    numbers = (("start", first), ("stop", last), ("step", 1 if step is None else step))
    real = any(isinstance(n, float) for _, n in numbers)
    first, last, difference = (
        integer("arange", name, int(n) if isinstance(n, float) and n.is_integer() else n)
        for name, n in numbers
    )
    length = max_dim(-((first - last) // difference), 0)
    default = dtypes.default_dtype("f" if real else "i")
    target = default if dtype is None else requested_dtype("arange", dtype)
    counted = iota_like(dtypes.default_dtype("i"), (length,), 0)
    return convert(counted * difference + first, target)


def _check_ends(dtype: Any, *ends: Any) -> None:
    limits = dtypes.iinfo(dtype)
    if not strictness().integers_fit:
        return
    for end in ends:
        if not limits.min <= int(end) <= limits.max:
            raise OverflowError(
                f"arange: {end} does not fit {dtype}; give a wider dtype, or a float"
                + (
                    ', or switch 64-bit types on with dovetail.config.update("enable_x64", True)'
                    if dtype == dtypes.default_dtype("i") and limits.bits == 32
                    else ""
                )
            )


def _length(first: Any, last: Any, difference: Any) -> int:
    if all(isinstance(n, int) for n in (first, last, difference)):
        length = -((first - last) // difference)
    else:
        length = math.ceil((last - first) / difference)
    return max(0, int(length))


def _number(function: str, argument: str, value: Any) -> Any:
    """An argument that must be known while tracing, as a Python or NumPy scalar."""
    if type(value) in (int, float):
        return value
    if isinstance(value, Tracer):
        raise ConcretizationTypeError(value, f"the argument {argument} of {function}")
    checked = aval_of(array_like(value, function, argument))
    if checked.shape:
        raise ShapeError(f"{function}: {argument} must be a scalar, got shape {checked.shape}")
    if dtypes.kind_of(checked.dtype) not in ("b", "i", "u", "f"):
        raise DTypeError(f"{function}: {argument} must be a real number, got {checked.dtype}")
    scalar = np.asarray(value, checked.dtype)[()]
    return scalar.item() if checked.weak_type else scalar


@compiled_with("length", "dtype", "first", "difference")
def _counted(length: int, dtype: Any, first: Any, difference: Any) -> Any:
    numbers = iota_like(dtype, (length,), 0)
    if difference != 1:
        numbers = lax.mul(numbers, literal(_plain(difference), dtype))
    if first != 0:
        numbers = lax.add(numbers, literal(_plain(first), dtype))
    return numbers


def _plain(number: Any) -> Any:
    return number.item() if isinstance(number, np.generic) else number


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: DeviceLike | None = None,
) -> Array: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: DeviceLike | None = None,
) -> tuple[Array, Array]: ...
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: DeviceLike | None = None,
) -> Array | tuple[Array, Array]:
    """A given count of evenly spaced numbers.

    Args:
        start: first number, or an array of first numbers.
        stop: last number, or an array of last numbers that broadcasts with `start`.
        num: count of numbers.
        endpoint: whether the last number is `stop`; otherwise it is one step before that.
        retstep: whether to return the step too.
        dtype: dtype of the result; a float if None. Integers are rounded down.
        axis: position of the new dimension if `start` or `stop` is an array.
        device: device on which the array is placed and stays.

    Returns:
        An array, or a pair of it and the step.

    Raises:
        ValueError: `num` is negative.
        TypeError: a bound is complex, and `dtype` is an integer dtype.

    Differs:
        Complex bounds of integers are refused, as in NumPy; JAX drops their imaginary parts.

        >>> jnp.linspace(0, 4j, 3, dtype=int)
        Traceback (most recent call last):
            ...
        TypeError: linspace: complex numbers are not rounded to dtype int32; take the ...

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.linspace(0, 1, 5))
        [0.   0.25 0.5  0.75 1.  ]
    """
    count = _count("linspace", num)
    target = requested_dtype("linspace", dtype)
    result = _linspace(start, stop, count, bool(endpoint), target, axis, bool(retstep))
    return (on_device(result[0], device), result[1]) if retstep else on_device(result, device)


def _ends(function: str, start: Any, stop: Any, dtype: Any) -> tuple[Array, Array]:
    """Both ends in one inexact dtype; what does not promote takes that of the result, if given."""

    def wide(end: Any, name: str) -> Any:
        x = array_like(end, function, name)
        return end if _promotes(aval_of(x).dtype) else convert(x, inexact_dtype(dtype))

    if dtype is not None:
        start, stop = wide(start, _ENDS[0]), wide(stop, _ENDS[1])
    return inexact_pair(function, start, stop, _ENDS)


def _promotes(dtype: Any) -> bool:
    return dtypes.itemsize_bits(dtype) > (8 if dtypes.kind_of(dtype) == "f" else 4)


def _computed(end: Any, dtype: Any) -> Any:
    """The inexact dtype that holds an end and the result, if the dtype of that promotes."""
    own = aval_of(end).dtype
    wanted = [dtype] if dtype is not None and _promotes(dtype) else []
    return inexact_dtype(dtypes.common_dtype(own, *wanted))


def _count(function: str, num: Any) -> int:
    count = integer(function, "num", num)
    if count < 0:
        raise ValueError(f"{function}: num must not be negative, got {count}")
    return count


@compiled_with("num", "endpoint", "dtype", "axis", "retstep")
def _linspace(
    start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int, retstep: bool
) -> Any:
    first, last = _ends("linspace", start, stop, dtype)
    computed = _computed(first, dtype)
    out = dtype or inexact_dtype(aval_of(first).dtype)
    first, last = convert(first, computed), convert(last, computed)
    shape = broadcast_result("linspace", (aval_of(first).shape, aval_of(last).shape))
    first, last = broadcast_to(first, shape), broadcast_to(last, shape)
    intervals = num - 1 if endpoint else num
    real = dtypes.finfo(computed).dtype if dtypes.kind_of(computed) == "c" else computed
    # Of one number in all there is no interval; nothing is divided by none.
    intervals = max_dim(intervals, 1) if is_symbolic_dim(intervals) else intervals
    if intervals <= 0:
        step = lax.full_like(first, float("nan"))
        result = expand_dims(first, 0) if num == 1 else broadcast_to(first, (0, *shape))
    else:
        step = lax.div(lax.sub(last, first), literal(intervals, computed))
        counts = iota_like(real, (num,), 0)
        # Mixing both ends is more accurate near the last one than adding steps to the first.
        share = lax.div(counts, literal(intervals, real))
        share = convert(reshaped(share, (num,) + (1,) * len(shape)), computed)
        ends = [broadcast_to(expand_dims(e, 0), (num, *shape)) for e in (first, last)]
        share = broadcast_to(share, (num, *shape))
        one = literal(1, computed)
        result = lax.add(lax.mul(ends[0], lax.sub(one, share)), lax.mul(ends[1], share))
        if endpoint:
            dtype = position_dtype(num)
            final = lax.eq(iota_like(dtype, (num, *shape), 0), literal(num - 1, dtype))
            if is_symbolic_dim(num):
                final = lax.bitwise_and(
                    final, lax.gt(iota_like(dtype, (num, *shape), 0), literal(0, dtype))
                )
            result = pick(final, ends[1], result)
    place = canonical_axis("linspace", axis, len(shape) + 1)
    if place:
        result = moveaxis(result, 0, place)
    if dtypes.kind_of(out) in ("i", "u"):
        if dtypes.kind_of(computed) == "c":
            raise TypeError(
                f"linspace: complex numbers are not rounded to dtype {out}; take the real parts of "
                "start and stop"
            )
        # A number that is an integer up to rounding must give that integer, as in NumPy's 64 bits.
        nearest = lax.round(result, lax.RoundingMethod.TO_NEAREST_EVEN)
        error = lax.abs(lax.sub(result, nearest))
        bound = lax.mul(lax.abs(nearest), literal(4 * float(dtypes.finfo(real).eps), real))
        result = pick(lax.le(error, bound), nearest, lax.floor(result))
    return (convert(result, out), step) if retstep else convert(result, out)


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """Numbers evenly spaced on a logarithmic scale: powers with evenly spaced exponents.

    Args:
        start: first exponent, or an array of first exponents.
        stop: last exponent, or an array of last exponents.
        num: count of numbers.
        endpoint: whether the last exponent is `stop`.
        base: the base, or an array of bases that broadcasts with `start` and `stop`.
        dtype: dtype of the result; a float if None.
        axis: position of the new dimension if `start`, `stop` or `base` is an array.

    Returns:
        An array.

    Raises:
        ValueError: `num` is negative.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.logspace(0, 4, 3, base=2))
        [ 1.  4. 16.]
    """
    count = _count("logspace", num)
    target = requested_dtype("logspace", dtype)
    return _logspace(start, stop, base, count, bool(endpoint), target, axis)


@compiled_with("num", "endpoint", "dtype", "axis")
def _logspace(
    start: Any, stop: Any, base: Any, num: int, endpoint: bool, dtype: Any, axis: int
) -> Any:
    first, last = _ends("logspace", start, stop, dtype)
    of_base = operand(base, "logspace", "base")
    shapes = [aval_of(v).shape for v in (first, last, of_base)]
    rank = len(broadcast_result("logspace", shapes))
    place = canonical_axis("logspace", axis, rank + 1)
    # The new dimension is in front of all others until it is moved.
    first, last = (with_rank(value(v), aval_of(v).shape, rank) for v in (first, last))
    exponents = _linspace(first, last, num, endpoint, None, 0, False)
    ones = (1,) * (rank + 1 - exponents.ndim)
    exponents = reshaped(exponents, (num, *ones, *exponents.shape[1:]))
    bases = convert(of_base, exponents.dtype)
    result = lax.pow(*promoted_pair("logspace", bases, exponents))
    result = moveaxis(result, 0, place) if place else result
    return result if dtype is None else convert(result, dtype)


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """A geometric sequence: numbers with a constant ratio.

    Args:
        start: first number, or an array of first numbers.
        stop: last number, or an array of last numbers, with the sign of `start`.
        num: count of numbers.
        endpoint: whether the last number is `stop`.
        dtype: dtype of the result; a float if None.
        axis: position of the new dimension if `start` or `stop` is an array.

    Returns:
        An array; nan between real `start` and `stop` of different signs.

    Differs:
        The first and the last number are those that were given, as in NumPy, also where no
        sequence leads from one to the other.

        >>> print(jnp.geomspace(4.0, -9.0, 3))
        [ 4. nan -9.]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.round(jnp.geomspace(1, 1000, 4)))
        [   1.   10.  100. 1000.]
    """
    count = _count("geomspace", num)
    target = requested_dtype("geomspace", dtype)
    return _geomspace(start, stop, count, bool(endpoint), target, axis)


@compiled_with("num", "endpoint", "dtype", "axis")
def _geomspace(start: Any, stop: Any, num: int, endpoint: bool, dtype: Any, axis: int) -> Any:
    first, last = _ends("geomspace", start, stop, dtype)
    computed = _computed(first, dtype)
    first, last = convert(first, computed), convert(last, computed)
    shape = broadcast_result("geomspace", (aval_of(first).shape, aval_of(last).shape))
    first, last = broadcast_to(first, shape), broadcast_to(last, shape)
    sign = lax.sign(first)
    ends = [lax.log(lax.div(first, sign)), lax.log(lax.div(last, sign))]
    exponents = plain(_linspace)(ends[0], ends[1], num, endpoint, None, 0, False)
    numbers = lax.mul(lax.exp(exponents), broadcast_to(sign, (num, *shape)))
    # Set the ends exactly: the logarithm and the exponential would round them.
    place = lax.broadcasted_iota(np.int32, (num, *shape), 0)
    if num > 0:
        numbers = pick(lax.eq(place, lax.full_like(place, 0)), expand_dims(first, 0), numbers)
    if endpoint and num > 1:
        numbers = pick(lax.eq(place, lax.full_like(place, num - 1)), expand_dims(last, 0), numbers)
    position = canonical_axis("geomspace", axis, len(shape) + 1)
    if position:
        numbers = moveaxis(numbers, 0, position)
    return numbers if dtype is None else convert(numbers, dtype)


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> tuple[Array, ...]:
    """Coordinate arrays of a grid, from the coordinates along its axes.

    Args:
        *xi: arrays of rank 1 (or scalars), one for each axis.
        copy: must be True, since there are no views.
        sparse: whether to return arrays with size one along all axes but their own.
        indexing: "xy" for the order of axes in plots (the first two are exchanged), "ij" for the
            order in matrices.

    Returns:
        A tuple of as many arrays.

    Raises:
        ValueError: an array has more than one dimension, or an option is invalid.

    Differs:
        The result is a tuple, as in the array API standard (2025.12) and in NumPy, not a list; so
        is that of `broadcast_arrays`.

        >>> print(type(jnp.meshgrid(1, 2)).__name__, type(jnp.broadcast_arrays(1, 2)).__name__)
        tuple tuple

    Example:
        >>> import dovetail.numpy as jnp
        >>> x, y = jnp.meshgrid(jnp.arange(3), jnp.arange(2))
        >>> print(x)
        [[0 1 2]
         [0 1 2]]
    """
    if not copy:
        raise ValueError("meshgrid: copy=False asks for views, which there are none of")
    if not isinstance(indexing, str) or indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}")
    return tuple(_meshgrid(xi, bool(sparse), indexing))


@compiled_with("sparse", "indexing")
def _meshgrid(xi: tuple[Any, ...], sparse: bool, indexing: str) -> list[Any]:
    axes = [operand(x, "meshgrid", f"xi[{i}]") for i, x in enumerate(xi)]
    if any(aval_of(x).ndim > 1 for x in axes):
        raise ValueError(
            f"meshgrid takes arrays of rank 1, got shapes {[aval_of(x).shape for x in axes]}"
        )
    order = list(range(len(axes)))
    if indexing == "xy" and len(axes) > 1:
        order[:2] = [1, 0]
    sizes = [aval_of(x).size for x in axes]
    full = tuple(sizes[order.index(i)] for i in range(len(axes)))
    grids = []
    for i, x in enumerate(axes):
        alone = tuple(sizes[i] if d == order[i] else 1 for d in range(len(axes)))
        grid = reshaped(x, alone)
        grids.append(grid if sparse else broadcast_to(grid, full))
    return grids


@overload
def indices(
    dimensions: ShapeLike, dtype: DTypeLike | None = None, sparse: Literal[False] = False
) -> Array: ...
@overload
def indices(
    dimensions: ShapeLike, dtype: DTypeLike | None = None, *, sparse: Literal[True]
) -> tuple[Array, ...]: ...
def indices(
    dimensions: ShapeLike, dtype: DTypeLike | None = None, sparse: bool = False
) -> Array | tuple[Array, ...]:
    """The indices of all elements of an array of a given shape.

    Args:
        dimensions: shape of that array; an integer for rank 1.
        dtype: dtype of the result; the default integer if None.
        sparse: whether to return a tuple of arrays that broadcast to the shape instead.

    Returns:
        An array whose additional first dimension selects the dimension; or a tuple.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.indices((2, 2)))
        [[[0 0]
          [1 1]]
        <BLANKLINE>
         [[0 1]
          [0 1]]]
    """
    sizes = canonical_shape("indices", dimensions, "dimensions")
    target = requested_dtype("indices", dtype) or dtypes.default_dtype("i")
    counts = [arange(n, dtype=target) for n in sizes]
    grids = meshgrid(*counts, sparse=sparse, indexing="ij")
    if sparse:
        return tuple(grids)
    if not grids:
        return reshaped(arange(0, dtype=target), (0,))
    return stack(grids)
