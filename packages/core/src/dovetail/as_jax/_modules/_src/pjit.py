"""The module `jax._src.pjit`."""

from dovetail.extend.core.primitives import jit_p as jit_p
from dovetail.lax import with_sharding_constraint as with_sharding_constraint
from dovetail.sharding import auto_axes as auto_axes
from dovetail.sharding import explicit_axes as explicit_axes
from dovetail.sharding import reshard as reshard
