"""The module `jax._src.literals`: classes of constants that have no instances here."""

import numpy as _np


class LiteralArray(_np.ndarray):
    """A constant that arrays of NumPy became in some versions of JAX."""


TypedNdArray = LiteralArray
