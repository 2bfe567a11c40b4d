"""The module `jax._src.numpy.util`."""

from dovetail._core.alias.promotion import promote_dtypes as promote_dtypes
from dovetail._core.alias.promotion import promote_dtypes_complex as promote_dtypes_complex
from dovetail._core.alias.promotion import promote_dtypes_inexact as promote_dtypes_inexact
