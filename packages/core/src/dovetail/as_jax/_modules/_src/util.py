"""The module `jax._src.util`."""

from dovetail._core.alias.sequences import safe_map as safe_map
from dovetail._core.alias.sequences import safe_zip as safe_zip
