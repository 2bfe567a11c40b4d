"""The module `jax.version`."""

from dovetail._core.alias.activation import version as _version

__version__ = _version()
__version_info__ = tuple(int(part) for part in __version__.split(".") if part.isdigit())
