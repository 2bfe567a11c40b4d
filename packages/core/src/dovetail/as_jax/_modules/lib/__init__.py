"""The package `jax.lib`."""
