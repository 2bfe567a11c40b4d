"""The module `jax._src.dtypes`."""

from dovetail._core.base.dtypes import DType as DType
from dovetail._core.base.dtypes import ExtendedDType as ExtendedDType
from dovetail.dtypes import *  # noqa: F403
from dovetail.dtypes import TypePromotionError as TypePromotionError
