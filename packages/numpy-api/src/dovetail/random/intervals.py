"""Random bits, uniform numbers and integers, and random choices between two outcomes."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dovetail import enable_x64, lax
from dovetail.extend import dtypes, random_keys
from dovetail.extend.arguments import Literal, array_like, with_rank
from dovetail.extend.avals import aval_of
from dovetail.extend.unchecked import (
    broadcast_in_dim,
    convert_element_type,
    make_literal,
    mul,
    slice_dimension,
    squeeze_dimensions,
)
from dovetail.lax import add_p, bitcast_convert_type_p, max_p, min_p, rem_p, select_n_p, sub_p
from dovetail.numpy.compiled import compiled_with, divided_program
from dovetail.random.arguments import (
    Shape,
    check_broadcast,
    converted,
    dtype_argument,
    float_argument,
    shape_argument,
    single_key,
    typed,
)
from dovetail.random.parameters import real_shape
from dovetail.typing import Array, ArrayLike, DTypeLike, KeyLike, ShapeLike, Sharding

_BOOL = np.dtype(bool)
_INT32 = np.dtype(np.int32)


# ---------------------------------------------------------------------------------- parts of others


def spread(function: str, argument: str, x: Any, shape: Shape) -> Any:
    """An operand with as many dimensions as `shape`; a scalar unchanged.

    Raises:
        ValueError: it cannot be broadcast to `shape`.
    """
    x_shape: Shape = aval_of(x).shape
    check_broadcast(function, argument, x_shape, shape)
    return with_rank(x, x_shape, len(shape))


def pair_of_keys(key: Any) -> tuple[Any, Any]:
    """Two keys made from a typed key."""
    return rows(random_keys.split(key, (2,)))


def rows(x: Any) -> tuple[Any, Any]:
    """The two rows of an array of two."""
    first, second = (squeeze_dimensions(slice_dimension(x, i, i + 1, 0), (0,)) for i in (0, 1))
    return first, second


def unit_interval(key: Any, shape: Shape, dtype: Any) -> Any:
    """Floats in [0, 1), multiples of the dtype's epsilon."""
    limits = dtypes.finfo(dtype)
    width, mantissa = int(limits.bits), int(limits.nmant)
    if width not in random_keys.BIT_WIDTHS:
        raise TypeError(f"random numbers of dtype {dtype} cannot be made: its elements are packed")
    # If few bits are needed, fewer are drawn; they are in the low half of the word.
    drawn = 8 if mantissa < 8 else width
    unsigned = np.dtype(f"uint{width}")
    bits = convert_element_type(random_keys.random_bits(key, drawn, shape), unsigned)
    fraction = lax.shift_right_logical_p.bind(bits, make_literal(drawn - mantissa, unsigned))
    one = np.ones((), dtype).view(unsigned)[()]
    # The bits of a float in [1, 2).
    floats = bitcast_convert_type_p.bind(
        lax.or_p.bind(fraction, make_literal(one, unsigned)), new_dtype=dtype
    )
    return sub_p.bind(floats, make_literal(1, dtype))


def _difference(high: Any, low: Any, dtype: Any) -> Any:
    if type(high) is Literal and type(low) is Literal:
        with np.errstate(all="ignore"):
            return make_literal(np.asarray(high.val, dtype) - np.asarray(low.val, dtype), dtype)
    return sub_p.bind(high, low)


def between(key: Any, shape: Shape, dtype: Any, low: Any, high: Any) -> Any:
    """Floats in [low, high), for operands of that dtype and of fitting shapes."""
    unit = unit_interval(key, shape, dtype)
    scaled = add_p.bind(mul(unit, _difference(high, low, dtype)), low)
    # Rounding must not leave the interval at its lower end.
    return max_p.bind(low, scaled)


# ----------------------------------------------------------------------------------- for users


def bits(
    key: KeyLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Unsigned integers of uniformly random bits.

    Args:
        key: a key, typed or raw.
        shape: shape of the result.
        dtype: an unsigned integer dtype; by default uint32, or uint64 if 64-bit types are on.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, or `shape` is not a shape.
        ValueError: `key` is an array of several keys, or `dtype` is not an unsigned integer dtype.

    Example:
        >>> from dovetail import random
        >>> random.bits(random.key(0), (3,)).tolist()
        [4070199207, 4202968722, 1427181096]
    """
    key = single_key("bits", key)
    dtype = dtype_argument("bits", dtype, "u", "u", "a dtype of unsigned integers")
    return divided_program("random.bits", out_sharding, _bits)(
        key, shape_argument("bits", shape), dtype
    )


@compiled_with("shape", "dtype")
def _bits(key: Any, shape: Any, dtype: Any) -> Any:
    width = dtypes.itemsize_bits(dtype)
    drawn = random_keys.random_bits(typed(key), max(width, 8), shape)
    return convert_element_type(drawn, dtype)


def uniform(
    key: KeyLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Floats uniformly distributed in ``[minval, maxval)``.

    Args:
        key: a key, typed or raw.
        shape: shape of the result.
        dtype: a float dtype; the default one if None.
        minval: lower end; a scalar or an array that can be broadcast to `shape`.
        maxval: upper end, likewise. Where it is not above `minval`, the result is `minval`.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype. If the interval is short or far from zero, rounding can
        make results equal to `maxval`.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or a bound is complex.
        ValueError: `key` is an array of several keys, `dtype` is not a float dtype, or a bound does
            not fit the shape.

    Differs:
        Bounds are real numbers, also where they are traced; so in the other distributions.

        >>> dt.jit(lambda low: dt.random.uniform(dt.random.key(0), minval=low))(1j)
        Traceback (most recent call last):
            ...
        TypeError: random.uniform: minval must be a real number, got complex64

    Example:
        >>> from dovetail import random
        >>> x = random.uniform(random.key(0), (1000,), minval=2.0, maxval=3.0)
        >>> bool((x >= 2).all() and (x < 3).all())
        True
    """
    key = single_key("uniform", key)
    dtype = float_argument("uniform", dtype)
    shape = shape_argument("uniform", shape)
    if type(minval) is float and type(maxval) is float and minval == 0 and maxval == 1:
        return divided_program("random.uniform", out_sharding, _unit)(key, shape, dtype)
    for name, bound in (("minval", minval), ("maxval", maxval)):
        real_shape("uniform", name, bound)
    return divided_program("random.uniform", out_sharding, _uniform)(
        key, minval, maxval, shape, dtype
    )


@compiled_with("shape", "dtype")
def _unit(key: Any, shape: Any, dtype: Any) -> Any:
    return unit_interval(typed(key), shape, dtype)


@compiled_with("shape", "dtype")
def _uniform(key: Any, minval: Any, maxval: Any, shape: Any, dtype: Any) -> Any:
    low, high = (
        spread("uniform", name, converted(array_like(x, "random.uniform", name), dtype), shape)
        for name, x in (("minval", minval), ("maxval", maxval))
    )
    return between(typed(key), shape, dtype, low, high)


def randint(
    key: KeyLike,
    shape: ShapeLike,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Integers uniformly distributed in ``[minval, maxval)``.

    Their probabilities differ by less than one in 2**32 (2**64 for 64-bit dtypes), divided by the
    number of integers.

    Args:
        key: a key, typed or raw.
        shape: shape of the result.
        minval: lower end; a scalar or an array that can be broadcast to `shape`. A value that the
            dtype cannot hold, but the default integer dtype can, becomes the nearest one.
        maxval: upper end, likewise; it may be one more than the dtype's largest number. Where it is
            not above `minval`, the result is `minval`.
        dtype: an integer dtype; the default one if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or `dtype` is not an integer dtype.
        ValueError: `key` is an array of several keys, or a bound does not fit the shape.
        OverflowError: neither the dtype nor the default integer dtype can hold a bound.

    Differs:
        The upper end may be one more than the dtype's largest number, and an unsigned dtype takes
        its large numbers, as Python's or NumPy's.

        >>> numbers = dt.random.randint(dt.random.key(0), (1000,), 2**31, 2**32, "uint32")
        >>> int(numbers.min()) >= 2**31
        True

    Example:
        >>> from dovetail import random
        >>> random.randint(random.key(0), (5,), 0, 10).tolist()
        [9, 0, 2, 3, 1]
    """
    key = single_key("randint", key)
    dtype = (
        dtypes.default_dtype("i") if dtype is None else dtypes.check_user_dtype(dtype, "randint")
    )
    if dtypes.kind_of(dtype) not in ("i", "u"):
        raise TypeError(f"random.randint makes integers, and the dtype asked for is {dtype}")
    shape = shape_argument("randint", shape)
    minval, _ = _bound_argument("minval", minval, dtype)
    maxval, past = _bound_argument("maxval", maxval, dtype)
    return divided_program("random.randint", out_sharding, _randint)(
        key, minval, maxval, shape, dtype, past
    )


def _bound_argument(argument: str, x: Any, dtype: Any) -> tuple[Any, bool]:
    """A bound as an argument of a program, and whether it is known to exceed the dtype."""
    if type(x) is int and -(2**31) <= x < 2**31:
        return x, False
    if not isinstance(x, (bool, int, np.integer, np.bool_)):
        value: Any = array_like(x, "random.randint", argument)
        if dtypes.kind_of(value.dtype) not in ("b", "i", "u", "f"):
            raise TypeError(f"random.randint: {argument} must be an integer, got {value.dtype}")
        if type(value) is not Literal or not math.isfinite(value.val):
            return x, False
        x = value.val
    low, high, work = _range(dtype, argument)
    number = int(x)
    if not low <= number <= high + (argument == "maxval"):
        limits = dtypes.iinfo(dtypes.default_dtype("i"))
        if not limits.min <= number <= limits.max and not isinstance(x, float):
            wider = "" if enable_x64.value else ", with 64-bit types switched on (enable_x64)"
            raise OverflowError(
                f"random.randint: {argument} is {number}, and {dtype} holds numbers from "
                f"{dtypes.iinfo(dtype).min} to {dtypes.iinfo(dtype).max}; give a smaller one, or "
                f"a wider dtype{wider}"
            )
    return np.asarray(min(max(number, low), high), work)[()], number > high and work == dtype


@functools.cache
def _range(dtype: Any, argument: str) -> tuple[int, int, Any]:
    """The limits of a bound for an integer dtype, and the dtype to compute in.

    For dtypes of less than 32 bits that is int32, which can hold one more than their largest
    number.
    """
    limits = dtypes.iinfo(dtype)
    if dtypes.itemsize_bits(dtype) >= 32:
        return int(limits.min), int(limits.max), dtype
    return int(limits.min), int(limits.max) + (argument == "maxval"), _INT32


def _held(x: Any, low: int, high: int, work: Any) -> tuple[Any, Any]:
    """Integers clipped to an interval, in another dtype; and whether they were above it."""
    if type(x) is Literal:
        number = int(x.val)
        return make_literal(min(max(number, low), high), work), make_literal(number > high, _BOOL)
    dtype = aval_of(x).dtype
    limits = dtypes.iinfo(dtype)
    above: Any = make_literal(False, _BOOL)
    if limits.min < low:
        x = max_p.bind(x, make_literal(low, dtype))
    if limits.max > high:
        top = make_literal(high, dtype)
        above = lax.gt_p.bind(x, top)
        x = min_p.bind(x, top)
    return convert_element_type(x, work), above


@compiled_with("shape", "dtype", "past")
def _randint(key: Any, minval: Any, maxval: Any, shape: Any, dtype: Any, past: Any) -> Any:
    bounds, integers = [], dtypes.default_dtype("i")
    for name, x in (("minval", minval), ("maxval", maxval)):
        value = spread("randint", name, array_like(x, "random.randint", name), shape)
        kind = dtypes.kind_of(aval_of(value).dtype)
        bounds.append(value if kind in ("i", "u") else converted(value, integers))
    (low, _), (high, above) = (
        _held(x, *_range(dtype, name)) for x, name in zip(bounds, ("minval", "maxval"), strict=True)
    )
    work = aval_of(low).dtype
    width = dtypes.itemsize_bits(work)
    unsigned = np.dtype(f"uint{width}")
    if past:
        above = make_literal(True, _BOOL)
    first, second = (random_keys.random_bits(k, width, shape) for k in pair_of_keys(typed(key)))
    one = make_literal(1, unsigned)
    count = convert_element_type(sub_p.bind(high, low), unsigned)
    nonempty = lax.gt_p.bind(high, low)
    nonempty, count = _of_one_shape(nonempty, count)
    count = select_n_p.bind(nonempty, _filled(one, count), count)
    if work == dtype and not (type(above) is Literal and not above.val):
        # The upper end exceeds the largest number by one: take all numbers from the lower end on.
        more = add_p.bind(count, one)
        extend = lax.and_p.bind(nonempty, above)
        extend, count = _of_one_shape(extend, count)
        more = _filled(more, count)
        count = select_n_p.bind(extend, count, more)
    # Reduce a word of twice the width modulo `count` from its halves: 2**width is `half` squared.
    half = rem_p.bind(make_literal(2 ** (width // 2), unsigned), count)
    factor = rem_p.bind(mul(half, half), count)
    upper = mul(rem_p.bind(first, count), factor)
    offset = rem_p.bind(add_p.bind(upper, rem_p.bind(second, count)), count)
    return convert_element_type(add_p.bind(low, convert_element_type(offset, work)), dtype)


def _filled(x: Any, like: Any) -> Any:
    """An operand of rank 0, or of the rank of another, broadcast to the other's shape."""
    have, shape = aval_of(x).shape, aval_of(like).shape
    if have == shape:
        return x
    return broadcast_in_dim(x, shape, tuple(range(len(shape))) if have else ())


def _of_one_shape(x: Any, y: Any) -> tuple[Any, Any]:
    """Two operands of the same rank, or of rank 0, in their common shape."""
    first, second = aval_of(x).shape, aval_of(y).shape
    if first == second:
        return x, y
    shape = np.broadcast_shapes(first, second)
    first_wide, second_wide = (
        broadcast_in_dim(v, shape, tuple(range(len(shape))) if s else ())
        for v, s in ((x, first), (y, second))
    )
    return first_wide, second_wide


def bernoulli(
    key: KeyLike,
    p: ArrayLike = 0.5,
    shape: ShapeLike | None = None,
    mode: str = "low",
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Booleans that are True with probability `p`.

    Args:
        key: a key, typed or raw.
        p: probabilities; a scalar or an array of floats that can be broadcast to `shape`.
        shape: shape of the result; that of `p` if None.
        mode: "low", or "high" for a resolution of probabilities beyond that of one float.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        A boolean array of that shape.

    Raises:
        TypeError: `key` is not a key, `shape` is not a shape, or `p` is not of a float dtype.
        ValueError: `key` is an array of several keys, `p` does not fit the shape, or `mode` is
            unknown.

    Example:
        >>> from dovetail import random
        >>> x = random.bernoulli(random.key(0), 0.25, (1000,))
        >>> 200 < int(x.sum()) < 300
        True
    """
    key = single_key("bernoulli", key)
    value = array_like(p, "random.bernoulli", "p")
    if dtypes.kind_of(value.dtype) != "f":
        raise TypeError(
            f"random.bernoulli: p must be of a float dtype, got {value.dtype}; write p={p}.0"
            if type(p) is int
            else f"random.bernoulli: p must be of a float dtype, got {value.dtype}"
        )
    if mode not in ("low", "high"):
        raise ValueError(f"random.bernoulli: mode must be 'low' or 'high', got {mode!r}")
    shape = aval_of(value).shape if shape is None else shape_argument("bernoulli", shape)
    return divided_program("random.bernoulli", out_sharding, _bernoulli)(key, p, shape, mode)


@compiled_with("shape", "mode")
def _bernoulli(key: Any, p: Any, shape: Any, mode: Any) -> Any:
    p = array_like(p, "random.bernoulli", "p")
    dtype = aval_of(p).dtype
    p = spread("bernoulli", "p", converted(p, dtype), shape)
    key = typed(key)
    if mode == "low":
        return lax.lt_p.bind(unit_interval(key, shape, dtype), p)
    coarse, fine = rows(unit_interval(key, (2, *shape), dtype))
    fine = mul(fine, make_literal(dtypes.finfo(dtype).eps, dtype))
    return lax.lt_p.bind(fine, sub_p.bind(p, coarse))


def rademacher(
    key: KeyLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: Sharding | None = None,
) -> Array:
    """Random signs: 1 or -1 with equal probability.

    Args:
        key: a key, typed or raw.
        shape: shape of the result.
        dtype: a signed dtype; the default integer dtype if None.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: `key` is not a key, or `shape` is not a shape.
        ValueError: `key` is an array of several keys, or `dtype` cannot hold -1.

    Differs:
        A dtype that cannot hold -1 is refused.

        >>> dt.random.rademacher(dt.random.key(0), (2,), "uint8")
        Traceback (most recent call last):
            ...
        ValueError: random.rademacher: dtype must be one of signed numbers, got uint8

    Example:
        >>> from dovetail import random
        >>> sorted(set(random.rademacher(random.key(0), (100,)).tolist()))
        [-1, 1]
    """
    key = single_key("rademacher", key)
    dtype = dtype_argument("rademacher", dtype, "i", "ifc", "one of signed numbers")
    return divided_program("random.rademacher", out_sharding, _rademacher)(
        key, shape_argument("rademacher", shape), dtype
    )


@compiled_with("shape", "dtype")
def _rademacher(key: Any, shape: Any, dtype: Any) -> Any:
    float_dtype = dtypes.default_dtype("f")
    unit = unit_interval(typed(key), shape, float_dtype)
    heads = convert_element_type(lax.lt_p.bind(unit, make_literal(0.5, float_dtype)), dtype)
    return sub_p.bind(mul(make_literal(2, dtype), heads), make_literal(1, dtype))
