"""Trees of arrays as one vector, for functions that know only vectors."""

from dovetail._core.api.raveling import ravel_pytree as ravel_pytree

__all__ = ["ravel_pytree"]
