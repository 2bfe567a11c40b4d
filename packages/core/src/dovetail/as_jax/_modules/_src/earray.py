"""The module `jax._src.earray`: arrays of extended dtypes."""

from dovetail._core.runtime.arrays.array import KeyArray as EArray

__all__ = ["EArray"]
