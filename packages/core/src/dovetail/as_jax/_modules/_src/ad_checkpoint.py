"""The module `jax._src.ad_checkpoint`."""

from dovetail.ad_checkpoint import *  # noqa: F403
from dovetail.extend.core.primitives import remat_p as remat_p
