"""The indices of nonzero elements, as used by `nonzero`, `where` and `compress`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from dovetail import lax
from dovetail.errors import ConcretizationTypeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, convert, integer, literal
from dovetail.extend.avals import Tracer, aval_of
from dovetail.extend.indexing import true_positions
from dovetail.numpy.compiled import compiled_with
from dovetail.numpy.conditions import pick, truth
from dovetail.numpy.creation import host_array_on, place_of
from dovetail.numpy.shapes import reshaped


def indices_of_nonzero(x: Any, size: int | None = None, fill_value: Any = None) -> tuple[Any, ...]:
    """`nonzero` of a checked operand; positions too large for the default dtype are of int64.

    Args:
        x: the operand.
        size: number of indices to return; None for all.
        fill_value: index for missing entries: an integer, or one for each dimension; 0 if None.

    Raises:
        ConcretizationTypeError: `x` is traced and `size` is not given.
        ValueError: `x` has no dimensions, the size is negative, or the numbers of fill values and
            of dimensions differ.
    """
    if not aval_of(x).ndim:
        raise ValueError("nonzero needs an array of rank 1 or more; write jnp.atleast_1d(x) first")
    if size is None:
        concrete = x.concrete() if isinstance(x, Tracer) else x
        if concrete is None:
            raise ConcretizationTypeError(
                x,
                "the number of non-zero elements, which is the size of what nonzero (or where with "
                "one argument) returns; give size=",
            )
        default, place = default_or_wide(max(aval_of(x).shape)), place_of(x)
        return tuple(
            host_array_on(place, np.ascontiguousarray(positions, default))
            for positions in np.nonzero(np.asarray(concrete))
        )
    count = integer("nonzero", "size", size)
    if count < 0:
        raise ValueError(f"nonzero: size must not be negative, got {count}")
    rank = aval_of(x).ndim
    fills: tuple[Any, ...]
    if fill_value is None:
        fills = (0,) * rank
    elif isinstance(fill_value, (tuple, list)):
        fills = tuple(fill_value)
    else:
        fills = (fill_value,) * rank
    if len(fills) != rank:
        raise ValueError(
            f"nonzero: fill_value must have one entry for each of the {rank} dimensions, got "
            f"{len(fills)}"
        )
    return tuple(_nonzero(x, fills, count))


def shown_indices(
    function: str, x: Any, size: int | None = None, fill_value: Any = None
) -> tuple[Any, ...]:
    """`indices_of_nonzero` where these are results, which have the default integer dtype.

    Raises:
        OverflowError: a dimension is too large for that dtype.
    """
    largest = max(aval_of(x).shape, default=0) - 1
    dtypes.check_holds(largest, dtypes.default_dtype("i"), function)
    return indices_of_nonzero(x, size, fill_value)


def default_or_wide(size: int) -> Any:
    """The dtype for positions among so many: the default one if that holds them."""
    return dtypes.default_dtype("i") if size < 2**31 else np.dtype(np.int64)


@compiled_with("size")
def _nonzero(x: Any, fills: tuple[Any, ...], size: int) -> list[Any]:
    shape = aval_of(x).shape
    count = math.prod(shape)
    default = default_or_wide(max(shape))
    if not count or not size:
        return [
            lax.broadcast_in_dim(
                convert(array_like(f, "nonzero", "fill_value"), default), (size,), ()
            )
            for f in fills
        ]
    flat = true_positions(reshaped(truth(x), (count,)), size)
    dtype = aval_of(flat).dtype
    is_real = lax.lt(flat, literal(count, dtype))
    results, stride = [], count
    for n, fill in zip(shape, fills, strict=True):
        stride //= n
        place = flat if stride == 1 else lax.div(flat, literal(stride, dtype))
        if stride * n != count:
            place = lax.rem(place, literal(n, dtype))
        if len(shape) == 1 and type(fill) is int and fill == count:
            results.append(convert(flat, default))  # so it is already
            continue
        missing = convert(array_like(fill, "nonzero", "fill_value"), default)
        results.append(pick(is_real, convert(place, default), missing))
    return results
