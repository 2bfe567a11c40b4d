"""The package `jax.extend`."""
