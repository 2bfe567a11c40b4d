"""The package `jax.interpreters`: the rules of primitives."""
