"""The package `jax._src.nn`: the names of `jax.nn`."""

import dovetail.nn as _public


def __getattr__(name: str) -> object:
    return getattr(_public, name)
