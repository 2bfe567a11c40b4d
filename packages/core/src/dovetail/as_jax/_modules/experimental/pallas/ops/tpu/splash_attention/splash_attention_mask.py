"""The module `jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask`."""
