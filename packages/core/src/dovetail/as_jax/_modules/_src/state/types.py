"""The module `jax._src.state.types`."""

from dovetail._core.trace.mutable_references import AbstractRef as AbstractRef
