"""The package `jax.experimental.pallas`, of which there is nothing: the compiler writes kernels."""
