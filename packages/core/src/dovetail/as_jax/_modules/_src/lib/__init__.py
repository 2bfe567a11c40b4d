"""The package `jax._src.lib`: parts of jaxlib."""

from dovetail._core.base.bindings import _jax as _jax
from dovetail._core.base.bindings import xla_client as xla_client

#: The number by which jaxlib counts changes of its interface.
jaxlib_extension_version: int = xla_client._version
