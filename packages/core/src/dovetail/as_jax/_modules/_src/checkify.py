"""The module `jax._src.checkify`."""

from dovetail._core.ops.checks.error import Error as Error
from dovetail.experimental.checkify import *  # noqa: F403
