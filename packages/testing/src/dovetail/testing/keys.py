"""Arrays of random keys in samples: NumPy arrays with one field, for the raw keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail._core.ir.avals import make_aval
from dovetail._core.ops.random.keys import is_key, key_dtype, keys_of_numpy, unwrap, wrap

__all__ = ["as_argument", "as_numpy", "aval_of_sample", "key_array"]

NDArray = np.ndarray[Any, Any]


def key_array(raw: Any, implementation: str = "threefry2x32") -> NDArray:
    """The NumPy array that represents random keys in samples.

    Args:
        raw: raw keys, of shape ``(..., *key_shape)``.
        implementation: the name of the keys' implementation.

    Example:
        >>> key_array(np.zeros((3, 2), np.uint32)).shape
        (3,)
    """
    dtype = key_dtype(implementation)
    raw = np.ascontiguousarray(raw, np.uint32)
    keys = np.empty(raw.shape[: raw.ndim - len(dtype.implementation.key_shape)], dtype.numpy)
    keys[implementation] = raw
    return keys


def as_argument(x: Any) -> Any:
    """An argument of a sample, as passed to primitives."""
    dtype = keys_of_numpy(x)
    return x if dtype is None else wrap(x[dtype.implementation.name], dtype.implementation)


def as_numpy(x: Any) -> NDArray:
    """A result of a primitive, as returned by references."""
    if is_key(x):
        name = x.dtype.implementation.name
        return key_array(np.asarray(unwrap(x)), name)
    return np.asarray(x)


def aval_of_sample(x: NDArray) -> Any:
    """The aval of an argument of a sample, or of a result of a reference."""
    dtype = keys_of_numpy(x)
    return make_aval(x.shape, x.dtype if dtype is None else dtype)
