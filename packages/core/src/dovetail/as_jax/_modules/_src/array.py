"""The module `jax._src.array`."""

from dovetail._core.runtime.arrays.array import Array as ArrayImpl

__all__ = ["ArrayImpl"]
