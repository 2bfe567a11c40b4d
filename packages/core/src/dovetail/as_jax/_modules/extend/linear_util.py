"""The module `jax.extend.linear_util`."""

from dovetail._core.alias.wrapped_functions import StoreException as StoreException
from dovetail._core.alias.wrapped_functions import WrappedFun as WrappedFun
from dovetail._core.alias.wrapped_functions import cache as cache
from dovetail._core.alias.wrapped_functions import merge_linear_aux as merge_linear_aux
from dovetail._core.alias.wrapped_functions import transformation as transformation
from dovetail._core.alias.wrapped_functions import transformation2 as transformation2
from dovetail._core.alias.wrapped_functions import (
    transformation_with_aux as transformation_with_aux,
)
from dovetail._core.alias.wrapped_functions import (
    transformation_with_aux2 as transformation_with_aux2,
)
from dovetail._core.alias.wrapped_functions import wrap_init as wrap_init
