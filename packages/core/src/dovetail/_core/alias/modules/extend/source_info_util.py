"""The module `jax.extend.source_info_util`."""
