"""The module `jax.experimental.colocated_python.serialization`."""

from dovetail._core.base.bindings import _jax as _jax

DeviceList = _jax.DeviceList
