"""The package `jax.experimental.pallas.ops.tpu.splash_attention`, which libraries import."""
