"""The module `jax`: all of `dovetail`, and the modules beside it."""

from dovetail._core.alias.activation import version as _version
from dovetail._core.alias.high_level_types import typeof as typeof
from dovetail._core.alias.unmapped_types import vmap as vmap

__version__ = _version()
__version_info__ = tuple(int(part) for part in __version__.split(".") if part.isdigit())
