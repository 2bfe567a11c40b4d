"""The module `jax._src.literals`: classes of constants that have no instances here."""

import numpy as _np


class LiteralArray(_np.ndarray):
    """A constant that arrays of NumPy became in some versions of JAX."""


TypedNdArray = LiteralArray


class TypedInt(int):
    """A constant that a whole number became in some versions of JAX."""


class TypedFloat(float):
    """A constant that a real number became in some versions of JAX."""


class TypedComplex(complex):
    """A constant that a complex number became in some versions of JAX."""
