"""The package `jax._src.numpy`: the names of `jax.numpy`."""

import dovetail.numpy as _public


def __getattr__(name: str) -> object:
    return getattr(_public, name)
