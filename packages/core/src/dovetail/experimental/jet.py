"""Taylor series of functions: derivatives of every order at once."""

from __future__ import annotations

from dovetail._core.api.jet import jet as jet

__all__ = ["jet"]
