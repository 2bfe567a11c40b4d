"""Taylor series of functions: derivatives of every order at once."""

from dovetail._core.api.jet import jet as jet
from dovetail._core.base.tracebacks import publish as _publish

__all__ = ["jet"]

_publish(globals())
