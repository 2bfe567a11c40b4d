"""The package `jax.experimental.array_serialization`."""
