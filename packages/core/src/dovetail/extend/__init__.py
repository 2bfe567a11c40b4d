"""The names promised to authors of plug-ins: backends, extensions, new primitives.

They change only with `PLUGIN_API`; everything under `dovetail.core` may change with any release.
Each name is loaded, with the module that it is in, when it is first used, so that a backend can
describe itself without loading jaxlib. `dovetail.extend.pjrt` is for backends that bring a PJRT
library, `dovetail.extend.lowering` has building blocks for lowering rules.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Module to the names that are in it. Type checkers read `__init__.pyi`; a test compares the two.
_MODULES = {
    "dovetail.core.base.errors": "BackendUnavailableError MissingRuleError",
    "dovetail.core.ir.avals": "ShapedArray",
    "dovetail.core.ir.jaxpr": "ClosedJaxpr Jaxpr JaxprEqn Literal Var",
    "dovetail.core.plugins.failures": "PluginFailure",
    "dovetail.core.plugins.hookspecs": (
        "ArrayMethods BackendInfo CompileRequest LoweringTable PLUGIN_API hookimpl"
    ),
    "dovetail.core.plugins.manager": "manager",
    "dovetail.core.plugins.protocols": "Buffer Client Device Executable",
    "dovetail.core.runtime.fallback": "Fallback",
    "dovetail.core.trace.explanation": "explain",
    "dovetail.core.transform.derived": "evaluate",
}
_ENTRIES = {name: (module, name) for module, names in _MODULES.items() for name in names.split()}
# A primitive that is made of functions, not of a class; and those of modules not imported so far.
_ENTRIES["Primitive"] = ("dovetail.core.trace.primitive", "RuntimePrimitive")
_ENTRIES["primitives"] = ("dovetail.core.trace.explanation", "all_primitives")

_SUBMODULES = ("lowering", "pjrt")

__all__ = sorted((*_ENTRIES, *_SUBMODULES))


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return import_module(f"dovetail.extend.{name}")
    entry = _ENTRIES.get(name)
    if entry is None:
        raise AttributeError(f"module 'dovetail.extend' has no attribute {name!r}")
    module, attribute = entry
    value = globals()[name] = getattr(import_module(module), attribute)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
