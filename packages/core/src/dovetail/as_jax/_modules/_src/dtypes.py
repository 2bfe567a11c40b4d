"""The module `jax._src.dtypes`."""

from dovetail._core.alias.extended_dtypes import ExtendedDType as ExtendedDType
from dovetail._core.alias.extended_dtypes import supports_inf as supports_inf
from dovetail._core.alias.promotion import to_complex_dtype as to_complex_dtype
from dovetail._core.base.dtypes import DType as DType
from dovetail.dtypes import *  # noqa: F403
from dovetail.dtypes import TypePromotionError as TypePromotionError
