"""The module `jax.experimental.colocated_python.func`."""
