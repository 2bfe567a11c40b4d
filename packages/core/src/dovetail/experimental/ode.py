"""Ordinary differential equations."""

from dovetail._core.api.odeint import odeint as odeint

__all__ = ["odeint"]
