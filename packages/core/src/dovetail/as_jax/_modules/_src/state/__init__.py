"""The package `jax._src.state`."""
