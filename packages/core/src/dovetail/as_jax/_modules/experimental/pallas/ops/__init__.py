"""The package `jax.experimental.pallas.ops`."""
