"""Reading and adding at the positions of stored elements.

Positions stand in an array of shape (*batch, nse, n), whose last dimension goes over the dimensions
that they are positions in. One that is negative, or not below the size, stands for no element: an
unused place, as they are kept so that shapes do not depend on values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from dovetail import lax
from dovetail import numpy as jnp
from dovetail.extend import dtypes
from dovetail.extend.avals import aval_of

Shape = tuple[int, ...]

_FILL = lax.GatherScatterMode.FILL_OR_DROP


def wide_dtype(dtype: Any) -> Any:
    """The dtype to add many elements in: narrow floats are sums of wide ones."""
    narrow = dtypes.kind_of(dtype) == "f" and dtypes.itemsize_bits(dtype) < 32
    return np.dtype(np.float32) if narrow else dtype


def inside(indices: Any, sizes: Sequence[int]) -> Any:
    """Which places are used: of shape (*batch, nse)."""
    highest = dtypes.iinfo(indices.dtype).max
    used = jnp.ones(aval_of(indices).shape[:-1], bool)
    # Column by column: XLA would do a reduction anew for each element of what is made with it.
    for i, size in enumerate(sizes):
        column = indices[..., i]
        used &= column >= 0
        if size <= highest:  # a size that the dtype does not hold is never reached
            used &= column < np.array(size, indices.dtype)
    return used


def marked(indices: Any, used: Any, sizes: Sequence[int]) -> Any:
    """The positions, but those of unused places are the sizes.

    Args:
        indices: positions.
        used: of shape (*batch, nse).
        sizes: of the dimensions; the dtype holds them.
    """
    return jnp.where(used[..., None], indices, np.array(sizes, indices.dtype))


def masked(data: Any, used: Any) -> Any:
    """The elements, 0 in unused places."""
    rank = aval_of(data).ndim
    used = used.reshape(*used.shape, *[1] * (rank - used.ndim))
    return jnp.where(used, data, np.zeros((), data.dtype))


def full_batch(x: Any, n_batch: int, batch: Sequence[int]) -> Any:
    """An array whose batch dimensions have their full sizes."""
    shape = aval_of(x).shape
    return jnp.broadcast_to(x, (*batch, *shape[n_batch:]))


def gathered(operand: Any, indices: Any, n_batch: int, dims: Sequence[int]) -> Any:
    """Slices of an array at positions, 0 in unused places.

    Args:
        operand: its leading dimensions are those of the batch.
        indices: of shape (*batch, nse, len(dims)).
        n_batch: number of batch dimensions.
        dims: the dimensions that the positions are in.

    Returns:
        Of shape (*batch, nse, *others), with the other dimensions in their order.
    """
    shape, nse = aval_of(operand).shape, aval_of(indices).shape[-2]
    taken = {*range(n_batch), *dims}
    others = [d for d in range(len(shape)) if d not in taken]
    result = (*shape[:n_batch], nse, *(shape[d] for d in others))
    if not dims:
        return jnp.broadcast_to(jnp.expand_dims(operand, n_batch), result)
    if any(shape[d] == 0 for d in dims):
        return jnp.zeros(result, operand.dtype)  # there is no position
    batch = tuple(range(n_batch))
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(range(n_batch + 1, n_batch + 1 + len(others))),
        collapsed_slice_dims=tuple(sorted(dims)),
        start_index_map=tuple(dims),
        operand_batching_dims=batch,
        start_indices_batching_dims=batch,
    )
    sizes = tuple(1 if d in taken else n for d, n in enumerate(shape))
    return lax.gather(operand, indices, numbers, sizes, mode=_FILL, fill_value=0)


def scattered(
    updates: Any,
    indices: Any,
    shape: Sequence[int],
    n_batch: int,
    *,
    indices_sorted: bool = False,
    unique_indices: bool = False,
) -> Any:
    """The sums of slices at positions, which are those of the dimensions behind the batch.

    Args:
        updates: of shape (*batch, nse, *others).
        indices: of shape (*batch, nse, n).
        shape: of the result, (*batch, *n sizes, *others).
        n_batch: number of batch dimensions.
        indices_sorted: whether positions are known to be sorted.
        unique_indices: whether positions are known to differ.
    """
    n = aval_of(indices).shape[-1]
    if not n:
        return jnp.sum(updates, n_batch, dtype=updates.dtype)
    batch, dims = tuple(range(n_batch)), tuple(range(n_batch, n_batch + n))
    numbers = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(range(n_batch + 1, aval_of(updates).ndim)),
        inserted_window_dims=dims,
        scatter_dims_to_operand_dims=dims,
        operand_batching_dims=batch,
        scatter_indices_batching_dims=batch,
    )
    dtype = updates.dtype
    wide = wide_dtype(dtype)
    sums = lax.scatter_add(
        jnp.zeros(tuple(shape), wide),
        indices,
        updates.astype(wide),
        numbers,
        mode=_FILL,
        indices_are_sorted=indices_sorted and not n_batch,
        unique_indices=unique_indices,
    )
    return sums.astype(dtype)


def keys_of(indices: Any, sizes: Sequence[int]) -> tuple[list[Any], list[int]]:
    """Numbers that order positions as their columns do, with unused places at the end.

    Neighbouring columns become one as long as an integer of 32 bits holds it.

    Args:
        indices: positions.
        sizes: of the dimensions; the dtype holds them.

    Returns:
        The numbers, each of shape (*batch, nse), and the numbers of unused places.
    """
    used = inside(indices, sizes)
    keys: list[Any] = []
    bounds: list[int] = []
    for i, size in enumerate(sizes):
        column = indices[..., i]
        if size >= 2**31 - 1:
            keys.append(jnp.where(used, column, size))
            bounds.append(size)
            continue
        column = column.astype(np.int32)
        if bounds and bounds[-1] * max(size, 1) < 2**31 - 1:
            keys[-1], bounds[-1] = keys[-1] * size + column, bounds[-1] * size
        else:
            keys.append(column)
            bounds.append(size)
    return [jnp.where(used, k, n) for k, n in zip(keys, bounds, strict=True)], bounds


def order_of(indices: Any, sizes: Sequence[int]) -> tuple[Any, list[Any], list[int]]:
    """The order of positions, as places; the sorted numbers, and those of unused places.

    The sort is stable: equal positions stay in their order.
    """
    keys, bounds = keys_of(indices, sizes)
    shape = aval_of(indices).shape[:-1]
    places = lax.broadcasted_iota(np.dtype(np.int32), shape, len(shape) - 1)
    if not keys:
        return places, [], []
    *keys, places = lax.sort([*keys, places], num_keys=len(keys))
    return places, keys, bounds


def take_places(x: Any, places: Any, n_batch: int) -> Any:
    """Elements of (*batch, nse, *others) in the order of places."""
    return gathered(x, places[..., None], n_batch, (n_batch,))


def begins_of(keys: Sequence[Any], shape: Shape) -> Any:
    """Where in sorted numbers another position begins, of shape (*batch, nse)."""
    begins = jnp.zeros(shape, bool)
    if shape[-1]:
        begins = begins.at[..., 0].set(True)
    for key in keys:
        begins = begins.at[..., 1:].set(begins[..., 1:] | (key[..., 1:] != key[..., :-1]))
    return begins


def volume(sizes: Sequence[int]) -> int:
    """The number of positions that there are."""
    return math.prod(sizes)
