"""The module `jax.api_util`."""

from dovetail._core.alias.flat_functions import argnums_partial as argnums_partial
from dovetail._core.alias.flat_functions import debug_info as debug_info
from dovetail._core.alias.flat_functions import flatten_axes as flatten_axes
from dovetail._core.alias.flat_functions import flatten_fun as flatten_fun
from dovetail._core.alias.flat_functions import flatten_fun_nokwargs as flatten_fun_nokwargs
from dovetail._core.alias.flat_functions import shaped_abstractify as shaped_abstractify
from dovetail._core.alias.sequences import safe_map as safe_map
