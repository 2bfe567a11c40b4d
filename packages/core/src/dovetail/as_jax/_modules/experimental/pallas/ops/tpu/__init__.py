"""The package `jax.experimental.pallas.ops.tpu`."""
