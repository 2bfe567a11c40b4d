"""The functions by which the default platform computes small arrays in the memory of the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dovetail._core.base import native
from dovetail._core.plugins.hookspecs import HostFunction
from dovetail._core.plugins.manager import manager
from dovetail._core.runtime.devices import clients, process_ends
from dovetail._core.trace.primitive import Primitive

__all__ = ["host_function", "host_functions"]

_functions: dict[str, dict[Any, HostFunction]] | None = None


def host_functions() -> Mapping[str, Mapping[Any, HostFunction]]:
    """The functions by primitive, then dtype; none without the compiled path, which calls them.

    No client is created for it.
    """
    global _functions
    if _functions is None:
        _functions = {}
        if native.calls is not None:
            process_ends.end_calls_at_exit()
            found = manager().host_functions(clients.default_platform())
            for (primitive, dtype), function in found.items():
                _functions.setdefault(primitive, {})[np.dtype(dtype)] = function
    return _functions


def host_function(primitive: Primitive, dtype: Any) -> HostFunction | None:
    """The function for a primitive whose last operand has a dtype; None if there is none."""
    if primitive.is_ported or not primitive.is_registered:
        return None  # the name is another's
    return host_functions().get(primitive.name, {}).get(dtype)


def _forget() -> None:
    global _functions
    _functions = None


clients.on_clear(_forget)
