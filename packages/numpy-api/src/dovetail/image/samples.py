"""Where the samples of another grid are, and the pixels around them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import dovetail.numpy as jnp
from dovetail import lax
from dovetail.image.methods import ResizeMethod, reach_of

#: As many pixels are added up at once: more would not stay in registers.
_BLOCK = 12


class Samples:
    """The centres of `m` equal parts of a row of `n` pixels.

    They are integers and fractions: a difference of two large floats has few digits.
    """

    def __init__(self, n: int, m: int) -> None:
        self.n, self.m = n, m
        # In units of 1 / (2 * m) pixels.
        self._centres = (2 * np.arange(m, dtype=np.int64) + 1) * n - m
        self._whole, part = np.divmod(self._centres, 2 * m)
        self._part = part / (2 * m)

    def distances(self, dtype: Any) -> Any:
        """From every pixel (rows) to every sample (columns)."""
        whole = jnp.asarray(self._whole.astype(np.int32))
        apart = whole[None, :] - lax.iota(np.int32, self.n)[:, None]
        return apart.astype(dtype) + jnp.asarray(self._part, dtype)

    def distances_from(self, first: Any, count: int) -> Any:
        """The same for `count` pixels (rows) from `first` of each sample on."""
        return (self._whole - first - np.arange(count)[:, None]) + self._part

    def window(self, method: ResizeMethod, antialias: bool) -> tuple[Any, int]:
        """The first of the pixels that may have a weight, for each sample, and how many may."""
        n, m = self.n, self.m
        if method is ResizeMethod.AREA:
            reach = n + m
        else:
            reach = 2 * reach_of(method) * (max(n, m) if antialias else m)
        first = (self._centres - reach) // (2 * m) + 1
        end = -(-(self._centres + reach) // (2 * m))
        count = min(n, int((end - first).max()))
        # Pixels of a window are within the image, so that those at an edge see more of it.
        return np.clip(first, 0, n - count), count


class Taps(NamedTuple):
    """Sums of few neighbouring pixels.

    Args:
        first: the first pixel of each sum, in order.
        weights: of the pixels from there on (rows) for each sum (columns).
    """

    first: Any
    weights: Any

    def of(self, x: Any, dimension: int) -> Any:
        """The sums along a dimension."""
        # A loop over pixels that are sums themselves would make these anew for each use.
        x = lax.optimization_barrier(x)
        shape = [1] * x.ndim
        shape[dimension] = len(self.first)
        total = None
        for k, weights in enumerate(self.weights):
            pixels = jnp.take(x, self.first + k, dimension, mode="clip")
            product = pixels * jnp.asarray(weights, x.dtype).reshape(shape)
            if k > 0 and k % _BLOCK == 0:
                total = lax.optimization_barrier(total)
            total = product if total is None else total + product
        return total

    def transposed(self, size: int) -> Taps:
        """The sums that are the transpose of these sums of `size` pixels."""
        pixels = np.arange(size)
        many = len(self.weights)
        begin = np.searchsorted(self.first, pixels - many + 1, "left")
        end = np.searchsorted(self.first, pixels, "right")
        count = max(1, int((end - begin).max()))
        begin = np.minimum(begin, len(self.first) - count)
        sums = begin + np.arange(count)[:, None]
        tap = pixels - self.first[sums]
        inside = (tap >= 0) & (tap < many)
        return Taps(begin, np.where(inside, self.weights[np.where(inside, tap, 0), sums], 0))
