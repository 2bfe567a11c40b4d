"""Run-time errors as values of a program: `checkify` and its checks."""

from dovetail._core.api.checkify import ErrorCategory as ErrorCategory
from dovetail._core.api.checkify import all_checks as all_checks
from dovetail._core.api.checkify import automatic_checks as automatic_checks
from dovetail._core.api.checkify import check as check
from dovetail._core.api.checkify import check_error as check_error
from dovetail._core.api.checkify import checkify as checkify
from dovetail._core.api.checkify import debug_check as debug_check
from dovetail._core.api.checkify import div_checks as div_checks
from dovetail._core.api.checkify import float_checks as float_checks
from dovetail._core.api.checkify import index_checks as index_checks
from dovetail._core.api.checkify import nan_checks as nan_checks
from dovetail._core.api.checkify import user_checks as user_checks
from dovetail._core.base.tracebacks import publish as _publish
from dovetail._core.ops.checks.error import Error as Error
from dovetail._core.ops.checks.error import init_error as init_error
from dovetail._core.ops.checks.failures import JaxRuntimeError as JaxRuntimeError

__all__ = [
    "Error",
    "ErrorCategory",
    "JaxRuntimeError",
    "all_checks",
    "automatic_checks",
    "check",
    "check_error",
    "checkify",
    "debug_check",
    "div_checks",
    "float_checks",
    "index_checks",
    "init_error",
    "nan_checks",
    "user_checks",
]

_publish(globals())
