"""Dtypes: which there are, how they combine, what they can hold."""

from dovetail._core.base.dtypes import TypePromotionError as TypePromotionError
from dovetail._core.base.dtypes import bfloat16 as bfloat16
from dovetail._core.base.dtypes import canonicalize_dtype as canonicalize_dtype
from dovetail._core.base.dtypes import extended as extended
from dovetail._core.base.dtypes import finfo as finfo
from dovetail._core.base.dtypes import float0 as float0
from dovetail._core.base.dtypes import iinfo as iinfo
from dovetail._core.base.dtypes import issubdtype as issubdtype
from dovetail._core.base.dtypes import itemsize_bits as itemsize_bits
from dovetail._core.base.dtypes import prng_key as prng_key
from dovetail._core.base.dtypes import result_type as result_type
from dovetail._core.base.dtypes import scalar_type_of as scalar_type_of
from dovetail._core.base.tracebacks import publish as _publish

__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
]

_publish(globals())
