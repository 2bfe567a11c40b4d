"""Segments of signals that overlap, and their sums.

Where segments of `n` points begin `step` points apart, a segment is made of ``ceil(n / step)``
blocks of `step` points. Blocks in a row are slices, which are much faster than gathers.
"""

from __future__ import annotations

import numpy as np

import dovetail.numpy as jnp
from dovetail import lax
from dovetail.typing import Array

#: Segments of more blocks are gathered point by point.
_MOST_BLOCKS = 32


def segmented(x: Array, size: int, step: int) -> Array:
    """Segments of the last dimension, in a new dimension before it.

    Args:
        x: array whose last dimension has `size` points at least.
        size: number of points in each segment.
        step: how many points apart they begin.
    """
    count = (x.shape[-1] - size) // step + 1
    blocks = -(-size // step)
    if blocks > _MOST_BLOCKS:
        return x[..., np.arange(count)[:, None] * step + np.arange(size)]
    length = (count + blocks - 1) * step
    rows = _of_length(x, length).reshape(*x.shape[:-1], count + blocks - 1, step)
    pieces = [lax.slice_in_dim(rows, k, k + count, axis=x.ndim - 1) for k in range(blocks)]
    return jnp.concatenate(pieces, -1)[..., :size]


def overlapped(segments: Array, step: int) -> Array:
    """The sum of segments, each of them where `segmented` found it."""
    count, size = segments.shape[-2:]
    leading = segments.shape[:-2]
    total = (count - 1) * step + size
    blocks = -(-size // step)
    if blocks > _MOST_BLOCKS:
        places = np.arange(count)[:, None] * step + np.arange(size)
        return jnp.zeros((*leading, total), segments.dtype).at[..., places].add(segments)
    rows = _of_length(segments, blocks * step).reshape(*leading, count, blocks, step)
    zero = jnp.zeros((), segments.dtype)
    none = [(0, 0, 0)] * len(leading)
    result = sum(
        lax.pad(rows[..., k, :], zero, [*none, (k, blocks - 1 - k, 0), (0, 0, 0)])
        for k in range(blocks)
    )
    return jnp.asarray(result).reshape(*leading, -1)[..., :total]


def _of_length(x: Array, length: int) -> Array:
    """The last dimension cut off, or continued with zeros."""
    config = [*[(0, 0, 0)] * (x.ndim - 1), (0, length - x.shape[-1], 0)]
    return lax.pad(x, jnp.zeros((), x.dtype), config)
