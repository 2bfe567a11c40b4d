"""The module `jax._src.api_util`: the names of `jax.api_util`, and others."""

import dovetail._core.alias.flat_functions as _functions


def __getattr__(name: str) -> object:
    return getattr(_functions, name)
