"""The package `jax._src.image`: the names of `jax.image`."""

import dovetail.image as _public


def __getattr__(name: str) -> object:
    return getattr(_public, name)
