"""Ordinary differential equations."""

from dovetail._core.api.odeint import odeint as odeint
from dovetail._core.base.tracebacks import publish as _publish

__all__ = ["odeint"]

_publish(globals())
