"""Padding arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from dovetail import lax
from dovetail.errors import DTypeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import (
    array_like,
    canonical_axis,
    convert,
    counted,
    literal,
    value,
    weak_of,
)
from dovetail.extend.avals import ArrayClass, aval_of
from dovetail.extend.checks import require_host_memory
from dovetail.extend.dimensions import is_symbolic_dim
from dovetail.extend.unchecked import slice_dimension
from dovetail.lax import pad_p
from dovetail.numpy.compiled import compiled_with, plain
from dovetail.numpy.gathering import take
from dovetail.numpy.indexing.parsing import holds_arrays, stacked
from dovetail.numpy.shapes import broadcast_to, flip, moveaxis, operand
from dovetail.typing import Array, ArrayLike

Pairs = tuple[tuple[int, int], ...]

# The modes and the arguments of each.
_ARGUMENTS: Final[dict[str, frozenset[str]]] = {
    "constant": frozenset({"constant_values"}),
    "empty": frozenset(),
    "edge": frozenset(),
    "wrap": frozenset(),
    "reflect": frozenset({"reflect_type"}),
    "symmetric": frozenset({"reflect_type"}),
    "linear_ramp": frozenset({"end_values"}),
    "maximum": frozenset({"stat_length"}),
    "mean": frozenset({"stat_length"}),
    "median": frozenset({"stat_length"}),
    "minimum": frozenset({"stat_length"}),
}


def pad(
    array: ArrayLike,
    pad_width: ArrayLike | Sequence[Any] | Mapping[int, Any],
    mode: str | Callable[..., Any] = "constant",
    **kwargs: Any,
) -> Array:
    """Pad an array with elements before and after those of each dimension.

    Differs from NumPy's if `mode` is a function: it returns the row instead of changing it.

    Args:
        array: array or scalar.
        pad_width: number of elements to add: one number, ``(before, after)``, a pair for each
            dimension, or a dict of pairs or numbers by axis; axes not in it are not padded.
        mode: "constant" (`constant_values`), "empty" (zeros), "edge" (the outermost element),
            "wrap" (the other end), "reflect" (mirrored without the outermost element), "symmetric"
            (mirrored with it), "linear_ramp" (from the outermost element to `end_values`),
            "maximum", "mean", "median" or "minimum" (of the dimension), or a function ``mode(row,
            (before, after), axis, kwargs)`` of rows padded with zeros, which returns rows with
            other values there.
        **kwargs: for "constant": `constant_values`; for "linear_ramp": `end_values`; both a number,
            or pairs like those of `pad_width`, 0 by default. For "maximum", "mean", "median" and
            "minimum": `stat_length`, the number of outermost elements to use, in the same form; all
            by default. For "reflect" and "symmetric": `reflect_type`, "even" or "odd", which
            subtracts the mirrored element from twice the outermost one. For a function: its own
            arguments.

    Returns:
        An array of the same dtype.

    Raises:
        ValueError: a width is negative, the mode is not one of these, or an empty dimension would
            have to be extended by its own elements.

    Differs:
        Of no elements there is no mean, as in NumPy.

        >>> jnp.pad(jnp.ones(0), 1, mode="mean")
        Traceback (most recent call last):
            ...
        ValueError: pad: mode 'mean' cannot extend axis 0, which has no elements

    Example:
        >>> import dovetail.numpy as jnp
        >>> print(jnp.pad(jnp.arange(3), (1, 2), constant_values=7))
        [7 0 1 2 7 7]
        >>> print(jnp.pad(jnp.arange(3), 2, mode="reflect"))
        [2 1 0 1 2 1 0]
        >>> print(jnp.pad(jnp.array([4., 6.]), (0, 2), mode="linear_ramp", end_values=10))
        [ 4.  6.  8. 10.]
    """
    x = operand(array, "pad", "array")
    rank = aval_of(x).ndim
    widths = _widths(pad_width, rank)
    if callable(mode):
        return _padded_by(mode, x, widths, kwargs)
    if not isinstance(mode, str) or mode not in _ARGUMENTS:
        raise ValueError(
            f"pad: mode must be a function or one of {', '.join(_ARGUMENTS)}, got {mode!r}"
        )
    if unknown := sorted(set(kwargs) - _ARGUMENTS[mode]):
        raise ValueError(f"pad: mode {mode!r} does not take {', '.join(unknown)}")
    if mode in ("constant", "empty", "linear_ramp") and not dtypes.kind_of(aval_of(x).dtype):
        raise DTypeError(
            f"pad: no number is a random key, so that mode {mode!r} has nothing to fill the gap "
            "with; write mode='edge', or another that repeats keys"
        )
    values: tuple[Any, ...] = ()
    for argument in _ARGUMENTS[mode] & {"constant_values", "end_values"}:
        values = _values(argument, kwargs.get(argument, 0), rank)
    lengths = kwargs.get("stat_length")
    if lengths is not None:
        lengths = _pairs("stat_length", lengths, rank)
        if any(n < 1 for pair in lengths for n in pair):
            raise ValueError(f"pad: stat_length must be positive, got {kwargs['stat_length']}")
    kind = kwargs.get("reflect_type", "even")
    if kind not in ("even", "odd"):
        raise ValueError(f"pad: reflect_type must be 'even' or 'odd', got {kind!r}")
    if mode not in ("constant", "empty"):
        for dimension, size in enumerate(aval_of(x).shape):
            if not size and any(widths[dimension]):
                raise ValueError(
                    f"pad: mode {mode!r} cannot extend axis {dimension}, which has no elements"
                )
    return _pad(x, values, widths, mode, lengths, kind == "odd")


# ------------------------------------------------------------------------------------ arguments


def _widths(given: Any, rank: int) -> Pairs:
    if isinstance(given, dict):
        widths = [(0, 0)] * rank
        for axis, width in given.items():
            place = canonical_axis("pad", axis, rank, "an axis of pad_width")
            (widths[place],) = _pairs("pad_width", width, 1)
        pairs = tuple(widths)
    else:
        pairs = _pairs("pad_width", given, rank)
    if any(n < 0 for pair in pairs for n in pair):
        raise ValueError(f"pad: pad_width must not be negative, got {given}")
    return pairs


def _pairs(argument: str, given: Any, rank: int) -> Pairs:
    if type(given) is int:
        return ((given, given),) * rank
    table = np.asarray(given)
    if table.dtype == object and all(type(n) is int or is_symbolic_dim(n) for n in table.flat):
        return tuple([(a, b) for a, b in _spread(argument, table, rank)])
    if table.dtype.kind not in "iu":
        raise DTypeError(f"pad: {argument} must hold integers, got {given!r}")
    return tuple([(int(a), int(b)) for a, b in _spread(argument, table, rank)])


def _spread(argument: str, table: Any, rank: int) -> Any:
    try:
        return np.broadcast_to(table, (rank, 2))
    except ValueError:
        raise ValueError(
            f"pad: {argument} must be a number, a pair, or one pair for each of the {rank} "
            f"dimensions, got {table.tolist()}"
        ) from None


def _values(argument: str, given: Any, rank: int) -> tuple[Any, ...]:
    """One number for all sides, or two for each dimension."""
    if isinstance(given, (list, tuple)):
        given = stacked(given) if holds_arrays(given) else np.asarray(given)
    if not np.ndim(given):
        return (given,)
    if isinstance(given, ArrayClass):
        numbers = _spread(argument, np.arange(given.size).reshape(given.shape), rank)
        flat = given.reshape(-1)
        return tuple([flat[number] for number in numbers.ravel()])
    return tuple(_spread(argument, given, rank).ravel().tolist())


# ------------------------------------------------------------------------------------ computing


@compiled_with("widths", "mode", "lengths", "odd")
def _pad(
    x: Any, values: tuple[Any, ...], widths: Pairs, mode: str, lengths: Pairs | None, odd: bool
) -> Any:
    dtype = aval_of(x).dtype
    if mode == "empty" or (mode == "constant" and len(values) == 1):
        fill = values[0] if values else literal(0, dtype)
        weak = weak_of(x)
        fill = convert(array_like(fill, "pad", "constant_values"), dtype, weak, function="pad")
        return pad_p.bind(value(x), fill, padding_config=tuple((a, b, 0) for a, b in widths))
    x = value(x)
    for dimension, (before, after) in enumerate(widths):
        if not before and not after:
            continue
        if mode in ("edge", "wrap", "reflect", "symmetric"):
            x = _repeated(x, dimension, before, after, mode, odd)
            continue
        size = aval_of(x).shape[dimension]
        parts = [x]
        for side, width in ((0, before), (1, after)):
            if not width:
                continue
            if mode in ("constant", "linear_ramp"):
                end_value = values[0] if len(values) == 1 else values[2 * dimension + side]
                end = array_like(end_value, "pad", "values")
                end = convert(end, dtype, weak_of(x), function="pad")
                edge = slice_dimension(x, side * (size - 1), side * (size - 1) + 1, dimension)
                part = (
                    _filled(x, end, dimension, width)
                    if mode == "constant"
                    else _ramp(edge, end, dimension, width, side)
                )
            else:
                length = min(size, size if lengths is None else lengths[dimension][side])
                start = 0 if side == 0 else size - length
                counted = slice_dimension(x, start, start + length, dimension)
                part = _statistic(counted, dimension, width, mode)
            parts.insert(len(parts) if side else 0, part)
        x = lax.concatenate(parts, dimension)
    return x


def _filled(x: Any, fill: Any, dimension: int, width: int) -> Any:
    shape = aval_of(x).shape
    return value(broadcast_to(value(fill), (*shape[:dimension], width, *shape[dimension + 1 :])))


def _ramp(edge: Any, end: Any, dimension: int, width: int, side: int) -> Any:
    """Numbers from an end (included) to an edge (excluded)."""
    from dovetail.numpy.ranges import linspace  # deferred: needed only in this mode

    aval = aval_of(edge)
    edge = lax.squeeze(edge, (dimension,))
    dtype = aval.dtype
    if dtypes.kind_of(dtype) in ("i", "u") and dtypes.itemsize_bits(dtype) < 8:
        dtype = np.dtype(np.int8)  # integers of 4 bits are not promoted
        edge, end = convert(edge, dtype), convert(end, dtype)
    ramp = linspace(value(end), edge, width, endpoint=False, dtype=dtype)
    ramp = moveaxis(convert(ramp, aval.dtype, aval.weak_type), 0, dimension)
    return flip(ramp, dimension) if side else ramp


def _statistic(counted: Any, dimension: int, width: int, mode: str) -> Any:
    from dovetail.numpy import averages, quantiles, reductions  # deferred: for these modes

    functions: dict[str, Any] = {
        "maximum": reductions.max,
        "minimum": reductions.min,
        "mean": averages.mean,
        "median": quantiles.median,
    }
    aval = aval_of(counted)
    statistic = plain(functions[mode])(counted, axis=dimension, keepdims=True)
    if dtypes.kind_of(aval.dtype) in ("i", "u") and mode in ("mean", "median"):
        statistic = lax.round(statistic, lax.RoundingMethod.TO_NEAREST_EVEN)
    statistic = convert(statistic, aval.dtype, aval.weak_type)
    return _filled(counted, statistic, dimension, width)


def _repeated(x: Any, dimension: int, before: int, after: int, mode: str, odd: bool) -> Any:
    """A dimension padded with its own elements."""
    size = aval_of(x).shape[dimension]
    # Three arrays of them, of int64.
    require_host_memory(24 * (before + size + after), "a table of the positions that pad copies")
    places = np.arange(-before, size + after)
    if mode == "edge" or (mode == "reflect" and size == 1):
        return _taken(x, places.clip(0, size - 1), dimension)
    if mode == "wrap":
        return _taken(x, places % size, dimension)
    # Mirroring has a period of twice the size, or two less if the ends are not repeated.
    period = 2 * size if mode == "symmetric" else 2 * size - 2
    turns, places = np.divmod(places, period)
    mirrored = places >= size
    last = period - 1 if mode == "symmetric" else period
    even = _taken(x, np.where(mirrored, last - places, places), dimension)
    if not odd:
        return even
    # Point reflection: each period adds twice the difference of the ends.
    dtype, shape = aval_of(x).dtype, aval_of(even).shape

    first, final = (
        broadcast_to(slice_dimension(x, p, p + 1, dimension), shape) for p in (0, size - 1)
    )
    mask = lax.broadcast_in_dim(mirrored, shape, (dimension,))
    turned = lax.select(mask, lax.sub(lax.add(final, final), even), even)
    count = lax.broadcast_in_dim((2 * turns).astype(dtype), shape, (dimension,))
    step = lax.mul(lax.sub(final, first), count)
    return lax.add(turned, step)


def _taken(x: Any, places: Any, dimension: int) -> Any:
    return take(x, places.astype(np.int32), axis=dimension, mode="clip")


def _padded_by(
    function: Callable[..., Any], x: Any, widths: Pairs, arguments: dict[str, Any]
) -> Any:
    from dovetail.numpy.vectorization import apply_along_axis  # deferred: needed only here

    x = _pad(x, (), widths, "empty", None, False)
    for dimension, pair in enumerate(widths):
        size = aval_of(x).shape[dimension]

        def row(elements: Any, *, pair: tuple[int, int] = pair, dimension: int = dimension) -> Any:
            padded = function(elements, pair, dimension, arguments)
            if padded is None:
                raise TypeError(
                    "pad: the function given as mode returned None; arrays are immutable, so it "
                    "must return the row with the elements that it adds"
                )
            return padded

        x = apply_along_axis(row, dimension, x)
        if aval_of(x).shape[dimension] != size:
            raise ValueError(
                "pad: the function given as mode must return a row of "
                f"{counted(size, 'element')}, got {aval_of(x).shape[dimension]}"
            )
    return x
