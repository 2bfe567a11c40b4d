"""Reductions of the rows of an array that have the same number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dovetail import lax, vmap
from dovetail import numpy as jnp
from dovetail.errors import ConcretizationTypeError, DTypeError, ShapeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import integer
from dovetail.extend.avals import Tracer, aval_of
from dovetail.numpy.compiled import compiled_with, divided_program
from dovetail.numpy.conditions import spread
from dovetail.numpy.shapes import operand
from dovetail.typing import Array, ArrayLike, Sharding


def segment_sum(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | lax.GatherScatterMode | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """The sums of the rows that have the same number.

    Args:
        data: array of rank 1 or more, whose rows are added; one row, or a number, stands for all.
        segment_ids: vector of integers: the segment of each row, in any order.
        num_segments: how many segments there are; one more than the greatest number if None, which
            a compiled function cannot know.
        indices_are_sorted: a promise that `segment_ids` do not decrease.
        unique_indices: a promise that no two of them are equal.
        bucket_size: how many rows are added at a time, before the results are; all if None.
        mode: what becomes of rows whose numbers are negative or too large: they are left out by
            default and for ``"drop"``; ``"clip"`` counts them to the nearest segment.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of shape ``(num_segments, *data.shape[1:])`` and the dtype of `data`; 0 where
        a segment has no row.

    Raises:
        TypeError: `segment_ids` are no integers, or `data` booleans.
        ValueError: `segment_ids` do not fit the rows of `data`, or a size is out of range.
        ConcretizationTypeError: `num_segments` is None in a compiled function.

    Example:
        >>> from dovetail import ops
        >>> print(ops.segment_sum(jnp.array([5, 1, 7, 2]), jnp.array([0, 2, 0, 2])))
        [12  0  3]
    """
    return _segmented(
        "segment_sum",
        data,
        segment_ids,
        num_segments,
        indices_are_sorted,
        unique_indices,
        bucket_size,
        mode,
        out_sharding,
    )


def segment_prod(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | lax.GatherScatterMode | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """The products of the rows that have the same number.

    Args:
        data: array of rank 1 or more, whose rows are multiplied; one row, or a number, stands for
            all.
        segment_ids: vector of integers: the segment of each row, in any order.
        num_segments: how many segments there are; one more than the greatest number if None, which
            a compiled function cannot know.
        indices_are_sorted: a promise that `segment_ids` do not decrease.
        unique_indices: a promise that no two of them are equal.
        bucket_size: how many rows are multiplied at a time, before the results are; all if None.
        mode: what becomes of rows whose numbers are negative or too large: they are left out by
            default and for ``"drop"``; ``"clip"`` counts them to the nearest segment.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of shape ``(num_segments, *data.shape[1:])`` and the dtype of `data`; 1 where
        a segment has no row.

    Raises:
        TypeError: `segment_ids` are no integers, or `data` booleans.
        ValueError: `segment_ids` do not fit the rows of `data`, or a size is out of range.
        ConcretizationTypeError: `num_segments` is None in a compiled function.

    Example:
        >>> from dovetail import ops
        >>> print(ops.segment_prod(jnp.array([5, 1, 7, 2]), jnp.array([0, 2, 0, 2])))
        [35  1  2]
    """
    return _segmented(
        "segment_prod",
        data,
        segment_ids,
        num_segments,
        indices_are_sorted,
        unique_indices,
        bucket_size,
        mode,
        out_sharding,
    )


def segment_max(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | lax.GatherScatterMode | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """The maxima of the rows that have the same number.

    Args:
        data: array of rank 1 or more, whose rows are compared.
        segment_ids: vector of integers: the segment of each row, in any order.
        num_segments: how many segments there are; one more than the greatest number if None, which
            a compiled function cannot know.
        indices_are_sorted: a promise that `segment_ids` do not decrease.
        unique_indices: a promise that no two of them are equal.
        bucket_size: how many rows are compared at a time, before the results are; all if None.
        mode: what becomes of rows whose numbers are negative or too large: they are left out by
            default and for ``"drop"``; ``"clip"`` counts them to the nearest segment.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of shape ``(num_segments, *data.shape[1:])`` and the dtype of `data`; its least
        number, -inf of floats, where a segment has no row.

    Raises:
        TypeError: `segment_ids` are no integers.
        ValueError: `segment_ids` do not fit the rows of `data`, or a size is out of range.
        ConcretizationTypeError: `num_segments` is None in a compiled function.

    Example:
        >>> from dovetail import ops
        >>> print(ops.segment_max(jnp.array([5, 1, 7, 2]), jnp.array([0, 2, 0, 2])))
        [          7 -2147483648           2]
    """
    return _segmented(
        "segment_max",
        data,
        segment_ids,
        num_segments,
        indices_are_sorted,
        unique_indices,
        bucket_size,
        mode,
        out_sharding,
    )


def segment_min(
    data: ArrayLike,
    segment_ids: ArrayLike,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    bucket_size: int | None = None,
    mode: str | lax.GatherScatterMode | None = None,
    out_sharding: Sharding | None = None,
) -> Array:
    """The minima of the rows that have the same number.

    Args:
        data: array of rank 1 or more, whose rows are compared.
        segment_ids: vector of integers: the segment of each row, in any order.
        num_segments: how many segments there are; one more than the greatest number if None, which
            a compiled function cannot know.
        indices_are_sorted: a promise that `segment_ids` do not decrease.
        unique_indices: a promise that no two of them are equal.
        bucket_size: how many rows are compared at a time, before the results are; all if None.
        mode: what becomes of rows whose numbers are negative or too large: they are left out by
            default and for ``"drop"``; ``"clip"`` counts them to the nearest segment.
        out_sharding: how the result is divided over devices: a `PartitionSpec` over the current
            mesh, or a `NamedSharding`.

    Returns:
        An array of shape ``(num_segments, *data.shape[1:])`` and the dtype of `data`; its greatest
        number, inf of floats, where a segment has no row.

    Raises:
        TypeError: `segment_ids` are no integers.
        ValueError: `segment_ids` do not fit the rows of `data`, or a size is out of range.
        ConcretizationTypeError: `num_segments` is None in a compiled function.

    Example:
        >>> from dovetail import ops
        >>> print(ops.segment_min(jnp.array([5, 1, 7, 2]), jnp.array([0, 2, 0, 2])))
        [         5 2147483647          1]
    """
    return _segmented(
        "segment_min",
        data,
        segment_ids,
        num_segments,
        indices_are_sorted,
        unique_indices,
        bucket_size,
        mode,
        out_sharding,
    )


def _end(dtype: Any, sign: int) -> Any:
    """The least number of a dtype, or with a sign of 1 the greatest."""
    kind = dtypes.kind_of(dtype)
    if kind == "b":
        return sign > 0
    if kind in ("i", "u"):
        limits = dtypes.iinfo(dtype)
        return limits.max if sign > 0 else limits.min
    infinite = np.asarray(sign * np.inf).astype(dtype)
    # Some floats of 8 bits and fewer have no infinity.
    return infinite if kind == "c" or np.isinf(infinite) else sign * float(dtypes.finfo(dtype).max)


#: How rows are combined, with what changes nothing: the method of updates, and the reduction.
_WAYS: dict[str, tuple[str, Callable[[Any], Any], Callable[..., Any]]] = {
    "segment_sum": ("add", lambda dtype: 0, lax.reduce_sum),
    "segment_prod": ("multiply", lambda dtype: 1, lax.reduce_prod),
    "segment_max": ("max", lambda dtype: _end(dtype, -1), lax.reduce_max),
    "segment_min": ("min", lambda dtype: _end(dtype, 1), lax.reduce_min),
}


def _segmented(
    function: str,
    data: Any,
    segment_ids: Any,
    num_segments: Any,
    indices_are_sorted: bool,
    unique_indices: bool,
    bucket_size: Any,
    mode: Any,
    out_sharding: Any,
) -> Any:
    """Checked arguments, handed to the compiled function."""
    x, ids = operand(data, function, "data"), operand(segment_ids, function, "segment_ids")
    shape, numbers = aval_of(x).shape, aval_of(ids)
    if dtypes.kind_of(numbers.dtype) not in ("i", "u"):
        raise DTypeError(f"{function}: segment_ids must be integers, got {numbers.dtype}")
    if len(numbers.shape) == 1 and shape[:1] in ((), (1,)):
        x = spread(x, (*numbers.shape, *shape[1:]))  # one row, for all numbers
    elif len(numbers.shape) != 1 or shape[:1] != numbers.shape:
        raise ShapeError(
            f"{function}: segment_ids must have one number for each row of data, got shape "
            f"{numbers.shape} for data of shape {shape}"
        )
    if function in ("segment_sum", "segment_prod") and dtypes.kind_of(aval_of(x).dtype) == "b":
        raise DTypeError(
            f"{function}: booleans are neither added nor multiplied; convert data to integers"
        )
    bucket = None if bucket_size is None else integer(function, "bucket_size", bucket_size)
    if bucket is not None and bucket < 1:
        raise ValueError(f"{function}: bucket_size must be positive, got {bucket}")
    flags = bool(indices_are_sorted), bool(unique_indices)
    chosen = lax.GatherScatterMode.from_any(mode)
    count = _count(function, ids, num_segments)
    program = divided_program(f"ops.{function}", out_sharding, _combined)
    return program(x, ids, function, count, flags, bucket, chosen)


def _count(function: str, ids: Any, num_segments: Any) -> int:
    """The number of segments: the least that has all numbers if None is given."""
    if num_segments is None:
        if isinstance(ids, Tracer) and ids.concrete() is None:
            raise ConcretizationTypeError(
                ids,
                f"the argument num_segments of {function}, which is found from segment_ids if it "
                "is left out: in a compiled function, give it",
            )
        return int(np.max(np.asarray(ids), initial=-1)) + 1
    count = integer(function, "num_segments", num_segments)
    if count < 0:
        raise ValueError(f"{function}: num_segments must not be negative, got {count}")
    return count


@compiled_with("function", "count", "flags", "bucket", "mode")
def _combined(
    x: Any, ids: Any, function: Any, count: Any, flags: Any, bucket: Any, mode: Any
) -> Any:
    method, identity, reduce = _WAYS[function]
    dtype = aval_of(x).dtype
    nothing = jnp.asarray(identity(dtype), dtype)

    def scattered(rows: Any, ids: Any) -> Any:
        start = jnp.full((count, *aval_of(x).shape[1:]), nothing)
        update = getattr(start.at[ids], method)
        return update(
            rows,
            indices_are_sorted=flags[0],
            unique_indices=flags[1],
            mode=mode,
            wrap_negative_indices=False,
        )

    if bucket is None:
        return scattered(x, ids)
    length = aval_of(x).shape[0]
    missing = -length % bucket
    pads = [(0, missing, 0), *[(0, 0, 0)] * (aval_of(x).ndim - 1)]
    rows = lax.pad(x, nothing, pads).reshape((-1, bucket, *aval_of(x).shape[1:]))
    ids = jnp.pad(ids, (0, missing)).reshape(-1, bucket)
    return reduce(vmap(scattered)(rows, ids), (0,))
