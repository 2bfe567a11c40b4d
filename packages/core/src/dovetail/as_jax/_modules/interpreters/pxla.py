"""The module `jax.interpreters.pxla`."""
