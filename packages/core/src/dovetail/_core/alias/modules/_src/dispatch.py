"""The module `jax._src.dispatch`."""
