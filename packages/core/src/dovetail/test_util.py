"""Derivatives compared with finite differences, for tests of one's own."""

from dovetail._core.api.derivative_checks import check_grads as check_grads
from dovetail._core.api.derivative_checks import check_jvp as check_jvp
from dovetail._core.api.derivative_checks import check_vjp as check_vjp
from dovetail._core.base.tracebacks import publish as _publish

__all__ = ["check_grads", "check_jvp", "check_vjp"]

_publish(globals())
