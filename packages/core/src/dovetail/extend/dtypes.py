"""Dtypes for authors of an API: `dovetail.dtypes`, and the rules for defaults and promotion.

An API imports the module and writes `dtypes.kind_of(x.dtype)`, `dtypes.result_type(x, y)`. Kinds
are the letters b (bool), i, u, f and c.
"""

from dovetail._core.base.dtypes import TypePromotionError as TypePromotionError
from dovetail._core.base.dtypes import as_dtype as as_dtype
from dovetail._core.base.dtypes import canonicalize_dtype as canonicalize_dtype
from dovetail._core.base.dtypes import check_fits as check_fits
from dovetail._core.base.dtypes import check_holds as check_holds
from dovetail._core.base.dtypes import check_python_int as check_python_int
from dovetail._core.base.dtypes import check_user_dtype as check_user_dtype
from dovetail._core.base.dtypes import common_dtype as common_dtype
from dovetail._core.base.dtypes import default_dtype as default_dtype
from dovetail._core.base.dtypes import dtype_of as dtype_of
from dovetail._core.base.dtypes import finfo as finfo
from dovetail._core.base.dtypes import fitted as fitted
from dovetail._core.base.dtypes import float0 as float0
from dovetail._core.base.dtypes import holds as holds
from dovetail._core.base.dtypes import iinfo as iinfo
from dovetail._core.base.dtypes import is_extended as is_extended
from dovetail._core.base.dtypes import is_weakly_typed as is_weakly_typed
from dovetail._core.base.dtypes import issubdtype as issubdtype
from dovetail._core.base.dtypes import itemsize_bits as itemsize_bits
from dovetail._core.base.dtypes import kind_of as kind_of
from dovetail._core.base.dtypes import promote_types as promote_types
from dovetail._core.base.dtypes import result_of_pair as result_of_pair
from dovetail._core.base.dtypes import result_type as result_type
from dovetail._core.base.dtypes import scalar_type_of as scalar_type_of
from dovetail._core.basis.elementwise import dtype_name as dtype_name

__all__ = [
    "TypePromotionError",
    "as_dtype",
    "canonicalize_dtype",
    "check_fits",
    "check_holds",
    "check_python_int",
    "check_user_dtype",
    "common_dtype",
    "default_dtype",
    "dtype_name",
    "dtype_of",
    "finfo",
    "fitted",
    "float0",
    "holds",
    "iinfo",
    "is_extended",
    "is_weakly_typed",
    "issubdtype",
    "itemsize_bits",
    "kind_of",
    "promote_types",
    "result_of_pair",
    "result_type",
    "scalar_type_of",
]
