"""The module `jax._src.distributed`."""

from dovetail._core.alias.process_state import global_state as global_state
