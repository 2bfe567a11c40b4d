"""The hot part of calls of dovetail, compiled: arguments are unwrapped and results wrapped in C.

Core uses it where it is installed, and does the same in Python where it is not. Nothing here is for
users. `calls` is the extension module, or None, and then `reason` says why.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["calls", "reason"]

calls: Any = None
reason = ""

try:
    calls = import_module("dovetail_native_calls")
except ImportError as error:
    reason = f"the extension of dovetail-native cannot be loaded: {error}"
