"""The package `jax._src.scipy`: the names of `jax.scipy`."""

import dovetail.scipy as _public


def __getattr__(name: str) -> object:
    return getattr(_public, name)
