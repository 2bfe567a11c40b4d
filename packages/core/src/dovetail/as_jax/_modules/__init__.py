"""The module `jax`: all of `dovetail`, and the modules beside it."""

from importlib import import_module as _import_module

from dovetail._core.alias.activation import version as _version
from dovetail._core.alias.high_level_types import typeof as typeof
from dovetail._core.alias.unmapped_types import vmap as vmap

__version__ = _version()
__version_info__ = tuple(int(part) for part in __version__.split(".") if part.isdigit())

# Libraries tell tracers by the module `jax.core` if it is loaded, and take it to be.
_import_module(f"{__name__}.core")
