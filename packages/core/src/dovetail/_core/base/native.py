"""The compiled path of calls: the distribution `dovetail-native`, where it is installed.

This is the one place that chooses. `calls` is its extension module, or None: then everything is
done in Python, and `reason` says why. The environment variable ``DOVETAIL_NATIVE=0`` switches it
off; it is read once.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any, Final

__all__ = ["calls", "reason"]

#: What core expects of the module; another number of its own means another interface.
INTERFACE: Final = 8


def _find() -> tuple[Any, str]:
    """The module or None, and why there is none."""
    if os.environ.get("DOVETAIL_NATIVE") == "0":
        return None, "switched off by DOVETAIL_NATIVE=0"
    try:
        package = import_module("dovetail_native")
    except ImportError:
        return None, "dovetail-native is not installed"
    found = package.calls
    if found is not None and found.INTERFACE != INTERFACE:
        return None, "dovetail-native is of another version than dovetail-core"
    return found, package.reason


calls, reason = _find()
