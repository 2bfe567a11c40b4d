"""Looking up elements: membership, bins, interpolation, index conversions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from dovetail import lax
from dovetail.errors import ConcretizationTypeError, ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    array_sequence,
    canonical_shape,
    convert,
    counted,
    dtype_by_value,
    inexact_dtype,
    integer,
    literal,
    promoted_pair,
    refuse_complex,
    require_kind,
    shape_of_argument,
    value,
)
from dovetail.extend.avals import Tracer, aval_of
from dovetail.extend.unchecked import position_dtype
from dovetail.numpy.compiled import compiled_with, divided_program, plain
from dovetail.numpy.conditions import pick
from dovetail.numpy.gathering import take
from dovetail.numpy.reductions import sum_dtype
from dovetail.numpy.searching import searchsorted
from dovetail.numpy.shapes import operand, reshaped
from dovetail.typing import Array, ArrayLike, DTypeLike, ShapeLike, Sharding

#: The methods of `isin`, and the methods of `searchsorted` that they map to.
_ISIN_METHODS: Final = {
    "auto": "scan",
    "binary_search": "scan",
    "sort": "sort",
    "compare_all": "compare_all",
}


@compiled_with("assume_unique", "invert", "method")
def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Test whether each element of one array is in another.

    Args:
        element: array or scalar.
        test_elements: array or scalar: the elements to look for.
        assume_unique: ignored; accepted for compatibility with NumPy.
        invert: whether to test instead whether each element is not in it.
        method: search method: "binary_search", "sort", "compare_all" (compares with every element;
            fast if there are few), or "auto", which means "binary_search".

    Returns:
        A boolean array of the shape of `element`; nan is not in any array.

    Raises:
        ValueError: `method` is not one of these.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.isin(jnp.arange(5), jnp.array([1, 4])))
        [False  True False False  True]
    """
    if not (isinstance(method, str) and method in _ISIN_METHODS):
        methods = ", ".join(map(repr, _ISIN_METHODS))
        raise ValueError(f"isin: method must be one of {methods}, got {method!r}")
    x, y = operand(element, "isin", "element"), operand(test_elements, "isin", "test_elements")
    shape = aval_of(x).shape
    x, y = (reshaped(v, (math.prod(aval_of(v).shape),)) for v in (x, y))
    count = aval_of(y).size
    if not count:
        return lax.full(shape, bool(invert), bool)
    dtype = dtype_by_value(x, y)
    x, y = convert(x, dtype), lax.sort(convert(y, dtype))
    # If an element is present at all, it is where it would be inserted among the sorted ones.
    place = searchsorted(y, x, method=_ISIN_METHODS[method])
    place = lax.min(place, literal(count - 1, aval_of(place).dtype))
    is_member = lax.eq(take(y, place, mode="promise_in_bounds"), x)
    return reshaped(lax.bitwise_not(is_member) if invert else is_member, shape)


@compiled_with("right", "method")
def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
) -> Array:
    """Find the bin that each element belongs to.

    Args:
        x: array or scalar.
        bins: vector of increasing or decreasing edges.
        right: whether bins contain their right edges rather than their left ones.
        method: as for `searchsorted`.

    Returns:
        An array of the shape of `x`, of the dtype of `searchsorted`: 0 before the first edge, the
        number of edges after the last.

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.digitize(jnp.array([0.5, 1., 9.]), jnp.array([0., 1., 2.])))
        [1 2 3]
    """
    edges, x = operand(bins, "digitize", "bins"), operand(x, "digitize", "x")
    for numbers in (edges, x):
        refuse_complex("digitize", numbers)
    if aval_of(edges).ndim != 1:
        raise ValueError(f"digitize needs a vector of edges, got shape {aval_of(edges).shape}")
    (count,) = aval_of(edges).shape
    if not count:
        return lax.full(aval_of(x).shape, 0, np.dtype("int32"))
    side = "right" if not right else "left"
    chosen = method or "scan"
    growing = searchsorted(edges, x, side, method=chosen)
    turned = searchsorted(lax.rev(edges, (0,)), x, side, method=chosen)
    falling = lax.sub(literal(count, aval_of(turned).dtype), turned)
    first = lax.index_in_dim(edges, 0, keepdims=False)
    last = lax.index_in_dim(edges, count - 1, keepdims=False)
    return pick(lax.le(first, last), growing, falling)


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """Count the occurrences of each of the integers 0, 1, 2 ...

    Args:
        x: vector of integers; negative ones count as 0.
        weights: vector of the weights of the occurrences; 1 if None.
        minlength: minimum size of the result if `length` is not given.
        length: size of the result, required if `x` is traced; larger integers are not counted.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        A vector of integers, or of the dtype of the sum of `weights`.

    Raises:
        ConcretizationTypeError: `x` is traced and `length` is not given.

    Differs:
        Weights are added in the dtype of their `sum`.

        >>> print(jnp.bincount(np.array([0, 0]), weights=jnp.ones(2, "int8")).dtype)
        int32

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.bincount(jnp.array([1, 3, 1])))
        [0 2 0 1]
    """
    numbers = operand(x, "bincount", "x")
    require_kind("bincount", numbers, "biu", "integers")
    if aval_of(numbers).ndim != 1:
        raise ValueError(f"bincount needs a vector, got shape {aval_of(numbers).shape}")
    least = integer("bincount", "minlength", minlength)
    if least < 0:
        raise ValueError(f"bincount: minlength must not be negative, got {least}")
    if length is None:
        concrete = numbers.concrete() if isinstance(numbers, Tracer) else numbers
        if concrete is None:
            raise ConcretizationTypeError(
                numbers,
                "the greatest integer, which decides the size of what bincount returns; "
                "give length=",
            )
        host = np.asarray(concrete)
        size = max(least, int(host.max()) + 1 if host.size else 0)
    else:
        size = integer("bincount", "length", length)
        if size < 0:
            raise ShapeError(f"bincount: length must not be negative, got {size}")
    return divided_program("bincount", out_sharding, _bincount)(numbers, weights, size)


@compiled_with("size")
def _bincount(numbers: Any, weights: Any, size: int) -> Any:
    default = dtypes.default_dtype("i")
    # Narrow positions, as long as they are no other numbers: they take less memory.
    own = aval_of(numbers).dtype
    narrow = own.itemsize < 4 or own == np.dtype("int32")
    kind = np.dtype("int32") if narrow else default
    places = lax.max(convert(numbers, kind), literal(0, kind))
    if weights is None:
        dtypes.check_holds(aval_of(numbers).size, default, "bincount")
        return value(lax.full((size,), 0, default)).at[places].add(1, mode="drop")
    counted = operand(weights, "bincount", "weights")
    if aval_of(counted).shape != aval_of(numbers).shape:
        raise ValueError(
            f"bincount: weights of shape {aval_of(counted).shape} must have the shape of x, "
            f"{aval_of(numbers).shape}"
        )
    dtype = sum_dtype(aval_of(counted).dtype, True)
    zeros = value(lax.full((size,), 0, dtype))
    return zeros.at[places].add(convert(counted, dtype), mode="drop")


@compiled_with("left", "right")
def _interp(
    x: Any, xp: Any, fp: Any, low: Any, high: Any, left: str, right: str, period: Any
) -> Any:
    xp, fp = operand(xp, "interp", "xp"), operand(fp, "interp", "fp")
    refuse_complex("interp", x)
    refuse_complex("interp", xp)
    if aval_of(xp).ndim != 1 or aval_of(xp).shape != aval_of(fp).shape or not aval_of(xp).size:
        raise ValueError(
            "interp needs vectors of equal size, of one element at least, as xp and fp; got shapes "
            f"{aval_of(xp).shape} and {aval_of(fp).shape}"
        )
    (places, weak), (values, also_weak) = _inexact_result(x, xp), _inexact_result(fp)
    out, weak = dtypes.result_of_pair(places, weak, values, also_weak)
    for rule, end in ((left, low), (right, high)):
        if rule == "given":
            aval = aval_of(array_like(end, "interp"))
            out, weak = dtypes.result_of_pair(out, weak, aval.dtype, aval.weak_type)
    x, xp, fp = value(convert(x, places)), convert(xp, places), convert(fp, out)
    if period is not None:
        x, xp, fp = _periodic(
            x, xp, fp, lax.abs(convert(array_like(period, "interp", "period"), places))
        )
    (count,) = aval_of(xp).shape
    index = plain(searchsorted)(xp, x, "right")
    kind = aval_of(index).dtype
    index = lax.clamp(literal(1, kind), index, literal(max(count - 1, 1), kind))
    before = lax.sub(index, literal(1, kind))
    index = lax.min(index, literal(count - 1, kind))
    x0, x1 = (take(xp, i, mode="promise_in_bounds") for i in (before, index))
    f0, f1 = (take(fp, i, mode="promise_in_bounds") for i in (before, index))
    width = lax.sub(x1, x0)
    flat = lax.eq(width, literal(0, places))
    share = lax.div(lax.sub(x, x0), pick(flat, literal(1, places), width))
    result = lax.add(f0, lax.mul(convert(share, out), lax.sub(f1, f0)))
    result = pick(flat, f0, result)
    if period is None:
        # Out of bounds, the result so far continues the line through the two nearest points.
        ends = ("left", lax.lt, left, low, 0), ("right", lax.gt, right, high, count - 1)
        for name, is_beyond, rule, given, end in ends:
            if rule != "extrapolate":
                point = lax.index_in_dim(xp, end, keepdims=False)
                beyond = lax.index_in_dim(fp, end, keepdims=False)
                if rule == "given":
                    beyond = convert(array_like(given, "interp", name), out)
                result = pick(is_beyond(x, point), beyond, result)
    return convert(result, out, weak)


def _inexact_result(*operands: Any) -> tuple[Any, bool]:
    """The dtype in which functions of floats take operands, and whether it is weak."""
    dtype, weak = dtypes.result_type(*operands, return_weak_type_flag=True)
    return inexact_dtype(dtype), weak and dtypes.kind_of(dtype) != "b"


def _periodic(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    from dovetail.numpy.arithmetic import remainder  # deferred: needed only with period

    x, xp = plain(remainder)(x, period), plain(remainder)(xp, period)
    xp, fp = lax.sort((xp, fp), num_keys=1)
    (count,) = aval_of(xp).shape
    step = lax.broadcast_in_dim(period, (1,), ())
    before = lax.sub(lax.slice_in_dim(xp, count - 1, count), step)
    after = lax.add(lax.slice_in_dim(xp, 0, 1), step)
    xp = lax.concatenate([before, xp, after], 0)
    fp = lax.concatenate(
        [lax.slice_in_dim(fp, count - 1, count), fp, lax.slice_in_dim(fp, 0, 1)], 0
    )
    return x, xp, fp


def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | None = None,
    right: ArrayLike | None = None,
    period: float | None = None,
) -> Array:
    """Interpolate linearly between points.

    Args:
        x: array or scalar: where to evaluate.
        xp: vector of increasing x-coordinates of the points (in any order with `period`).
        fp: vector of the values at these points.
        left: value before the first point; that of the first point if None. "extrapolate" continues
            the line through the first two points.
        right: value after the last point; that of the last point if None. "extrapolate" continues
            the line through the last two points.
        period: the period of the function, if any; `left` and `right` are then ignored.

    Returns:
        A float or complex array of the shape of `x`.

    Raises:
        ValueError: `left` or `right` is another string, `period` is zero, or the points do not fit.

    Example:
        >>> import dovetail.numpy as jnp
        >>> x, xp, fp = jnp.array([0.5, 9.]), jnp.array([0., 1.]), jnp.array([10., 20.])
        >>> print(jnp.interp(x, xp, fp), jnp.interp(x, xp, fp, right="extrapolate"))
        [15. 20.] [ 15. 100.]
    """
    if period is not None:
        aval = aval_of(array_like(period, "interp", "period"))
        if aval.shape or dtypes.kind_of(aval.dtype) not in ("i", "u", "f"):
            raise TypeError(
                "interp requires period to be a real number, got an array of shape "
                f"{aval.shape} and dtype {aval.dtype}"
            )
    is_concrete = not isinstance(period, Tracer) or period.concrete() is not None
    if period is not None and is_concrete and not period:
        raise ValueError("interp: period must not be zero")
    rules, values = [], []
    for name, side in (("left", left), ("right", right)):
        if isinstance(side, str) and side != "extrapolate":
            raise ValueError(
                f'interp: the argument {name} must be a number, "extrapolate" or None, got {side!r}'
            )
        rule = "end" if side is None else side if isinstance(side, str) else "given"
        if rule == "given" and (shape := shape_of_argument(side, "interp", name)):
            raise ValueError(f"interp: the argument {name} must be a scalar, got shape {shape}")
        rules.append(rule)
        values.append(0.0 if rule != "given" else side)
    (low, high), (first, last) = values, rules
    return _interp(operand(x, "interp", "x"), xp, fp, low, high, first, last, period)


@compiled_with("shape")
def _unravelled(indices: Any, shape: tuple[int, ...]) -> list[Any]:
    own = aval_of(indices)
    wide = position_dtype(math.prod(shape))
    if own.dtype.itemsize < wide.itemsize:
        indices = convert(indices, wide)
    dtype = aval_of(indices).dtype
    total = literal(math.prod(shape), dtype)
    zero = literal(0, dtype)
    rest = pick(lax.lt(indices, zero), lax.add(indices, total), indices)
    rest = lax.clamp(zero, rest, lax.sub(total, literal(1, dtype)))
    coordinates = []
    for size in reversed(shape):
        divisor = literal(max(size, 1), dtype)
        coordinates.append(lax.rem(rest, divisor))
        rest = lax.div(rest, divisor)
    if max(shape, default=0) - 1 > dtypes.iinfo(own.dtype).max:
        narrow = position_dtype(max(shape))
        return [convert(places, narrow) for places in reversed(coordinates)]
    return [convert(places, own.dtype, own.weak_type) for places in reversed(coordinates)]


def unravel_index(indices: ArrayLike, shape: ShapeLike) -> tuple[Array, ...]:
    """Convert positions in a flattened array to indices.

    Args:
        indices: integer array or scalar; positions out of bounds are clipped to the nearest one in
            bounds.
        shape: shape of the array before flattening.

    Returns:
        A tuple of integer arrays, one for each dimension, of the dtype of `indices`.

    Differs:
        Where that dtype could not hold the size of a dimension, they are int32 (or int64, which
        sizes from 2**31 on need). Booleans and floats
        are no positions.

        >>> print(*jnp.unravel_index(jnp.int8(-1), (2, 500)))
        1 499

    Example:
        >>> import dovetail.numpy as jnp
        >>> rows, columns = jnp.unravel_index(jnp.array([1, 5]), (2, 3))
        >>> print(rows, columns)
        [0 1] [1 2]
    """
    positions = operand(indices, "unravel_index", "indices")
    require_kind("unravel_index", positions, "iu", "integer indices")
    sizes: Sequence[Any] = shape if isinstance(shape, (tuple, list)) else (shape,)
    return tuple(_unravelled(positions, tuple(integer("unravel_index", "shape", n) for n in sizes)))


def ravel_multi_index(
    multi_index: ArrayLike | Sequence[ArrayLike],
    dims: Sequence[int],
    mode: str = "raise",
    order: str = "C",
    *,
    dtype: DTypeLike | None = None,
) -> Array:
    """Convert indices to positions in the flattened array.

    Args:
        multi_index: sequence of integer arrays, one for each dimension.
        dims: shape of the array before flattening.
        mode: what to do with indices out of bounds: "clip", "wrap", or "raise", for which the
            indices must not be traced.
        order: "C" for row-major, "F" for column-major order.
        dtype: dtype of the result; the default integer if None.

    Returns:
        An integer array.

    Raises:
        ValueError: an index is out of bounds in the mode "raise", or the arguments do not fit
            together.

    Differs:
        Positions are integers of the default dtype, whatever the dtype of the indices, which could
        be too small for them.

        >>> print(jnp.ravel_multi_index(jnp.array([[20], [30]], "int8"), (40, 40), mode="clip"))
        [830]

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([1, 2])), (2, 3)))
        [1 5]
    """
    sizes = canonical_shape("ravel_multi_index", dims, "dims")
    parts = array_sequence(multi_index, "ravel_multi_index", "multi_index")
    if len(parts) != len(sizes):
        raise ValueError(
            f"ravel_multi_index: {counted(len(parts), 'index', 'indices')} for "
            f"{counted(len(sizes), 'dimension')} were given"
        )
    if mode not in ("raise", "wrap", "clip") or order not in ("C", "F"):
        raise ValueError(
            "ravel_multi_index: mode must be 'raise', 'wrap' or 'clip' and order 'C' or 'F', got "
            f"{mode!r} and {order!r}"
        )
    for part in parts:
        require_kind("ravel_multi_index", part, "iu", "integer indices")
    if mode == "raise":
        for number, (part, size) in enumerate(zip(parts, sizes, strict=True)):
            concrete = part.concrete() if isinstance(part, Tracer) else value(part)
            if concrete is None:
                raise ConcretizationTypeError(
                    part, "whether an index is in bounds; give mode='clip' or mode='wrap'"
                )
            host = np.asarray(concrete)
            if host.size and (host.min() < 0 or host.max() >= size):
                raise ValueError(
                    f"ravel_multi_index: multi_index[{number}] is out of bounds for size {size}"
                )
    target = (
        dtypes.default_dtype("i")
        if dtype is None
        else dtypes.check_user_dtype(dtype, "ravel_multi_index")
    )
    dtypes.check_holds(max(math.prod(sizes) - 1, *sizes, 0), target, "ravel_multi_index")
    return _ravelled(tuple(parts), sizes, mode, order, target)


@compiled_with("sizes", "mode", "order", "dtype")
def _ravelled(
    parts: tuple[Any, ...], sizes: tuple[int, ...], mode: str, order: str, dtype: Any
) -> Any:
    from dovetail.numpy.arithmetic import remainder  # deferred: needed only in one mode

    result: Any = literal(0, dtype)
    pairs = list(zip(parts, sizes, strict=True))
    for part, size in pairs if order == "C" else pairs[::-1]:
        place = convert(part, dtype)
        if mode == "wrap":
            place = plain(remainder)(place, size)
        elif mode == "clip":
            place = lax.clamp(literal(0, dtype), place, literal(size - 1, dtype))
        scaled = lax.mul(result, literal(size, dtype))
        first, second = promoted_pair("ravel_multi_index", scaled, place)
        result = lax.add(first, second)
    return value(result)
