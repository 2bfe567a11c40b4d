"""Trees of arrays as one vector, for functions that know only vectors."""

from dovetail._core.api.raveling import ravel_pytree as ravel_pytree
from dovetail._core.base.tracebacks import publish as _publish

__all__ = ["ravel_pytree"]

_publish(globals())
