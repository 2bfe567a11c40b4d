"""Checks of values that are known only when a program runs, and of what would be too large.

A `require` becomes part of the program, whatever the option `debug_checks` says; if it fails, the
caller gets the error. `dovetail.experimental.checkify` can turn the error into a result instead.
"""

from dovetail._core.ops.callbacks.checks import require as require
from dovetail._core.runtime.devices.capacity import require_host_memory as require_host_memory

__all__ = [
    "require",
    "require_host_memory",
]
