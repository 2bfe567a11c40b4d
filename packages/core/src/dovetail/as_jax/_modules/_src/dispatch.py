"""The module `jax._src.dispatch`."""

from dovetail import effects_barrier as wait_for_tokens
