"""Checks of values that are known only when a program runs.

A check becomes part of the program, whatever the option `debug_checks` says; if it fails, the
caller gets the error. `dovetail.experimental.checkify` can turn the error into a result instead.
"""

from dovetail._core.ops.callbacks.checks import require as require

__all__ = [
    "require",
]
