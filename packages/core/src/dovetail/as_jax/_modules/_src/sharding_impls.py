"""The module `jax._src.sharding_impls`: the names of `jax.sharding`, and one more."""

import dovetail.sharding as _public
from dovetail._core.alias.canonical_shardings import (
    canonicalize_sharding as canonicalize_sharding,
)


def __getattr__(name: str) -> object:
    return getattr(_public, name)
