"""The indices of nonzero elements, as used by `nonzero`, `where` and `compress`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from dovetail import lax
from dovetail.errors import ConcretizationTypeError
from dovetail.extend import dtypes
from dovetail.extend.arguments import array_like, convert, integer, literal, value
from dovetail.extend.avals import Tracer, aval_of
from dovetail.numpy.compiled import compiled_with
from dovetail.numpy.conditions import pick, truth
from dovetail.numpy.creation import host_array_on, place_of
from dovetail.numpy.shapes import reshaped


def indices_of_nonzero(x: Any, size: int | None = None, fill_value: Any = None) -> tuple[Any, ...]:
    """`nonzero` of a checked operand.

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
        default, place = dtypes.default_dtype("i"), place_of(x)
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


@compiled_with("size")
def _nonzero(x: Any, fills: tuple[Any, ...], size: int) -> list[Any]:
    default = dtypes.default_dtype("i")
    shape = aval_of(x).shape
    count = math.prod(shape)
    if not count or not size:
        return [
            lax.broadcast_in_dim(
                convert(array_like(f, "nonzero", "fill_value"), default), (size,), ()
            )
            for f in fills
        ]
    test = convert(reshaped(truth(x), (count,)), default)
    # The j-th nonzero comes after all elements whose running count is at most j: count those.
    ends = lax.cumsum(test)
    zeros = value(lax.full((size,), 0, default))
    steps = zeros.at[ends].add(1, mode="drop")
    flat = lax.cumsum(steps)
    total = lax.index_in_dim(ends, count - 1, keepdims=False)
    is_real = lax.lt(lax.iota(default, size), lax.broadcast_in_dim(total, (size,), ()))
    stride = count
    results = []
    for n, fill in zip(shape, fills, strict=True):
        stride //= n
        place = lax.rem(lax.div(flat, literal(stride, default)), literal(n, default))
        missing = convert(array_like(fill, "nonzero", "fill_value"), default)
        results.append(pick(is_real, place, missing))
    return results
