"""The module `jax._src.effects`."""

from dovetail._core.ir.effects import HostEffect as Effect

__all__ = ["Effect"]
