"""The package `jax._src.lax`: the names of `jax.lax`."""

import dovetail.lax as _public


def __getattr__(name: str) -> object:
    return getattr(_public, name)
