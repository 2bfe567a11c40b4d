"""Taylor series of functions: derivatives of every order at once."""

from dovetail._core.api.jet import jet as jet

__all__ = ["jet"]
