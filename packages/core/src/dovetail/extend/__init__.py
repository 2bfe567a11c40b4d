"""The names promised to authors of plug-ins and APIs: backends, extensions, new primitives.

They change only with `PLUGIN_API`; everything under `dovetail._core` may change with any release.
Each name is loaded, with the module that it is in, when it is first used, so that a backend can
describe itself without loading jaxlib. `dovetail.extend.pjrt` is for backends that bring a PJRT
library, `dovetail.extend.lowering` has building blocks for lowering rules. The other modules are
for authors of functions for users, as `dovetail.numpy` has: docs/write-an-api.md tells of each.
"""

from __future__ import annotations

from dovetail._lazy_names import lazy_names

# Module to the names that are in it. Type checkers read `__init__.pyi`; a test compares the two.
_MODULES = {
    "dovetail._core.base.errors": "BackendUnavailableError MissingRuleError",
    "dovetail._core.ir.avals": "ShapedArray",
    "dovetail._core.ir.jaxpr": "ClosedJaxpr Jaxpr JaxprEqn Literal Var",
    "dovetail._core.plugins.failures": "PluginFailure",
    "dovetail._core.plugins.hookspecs": (
        "ArrayMethods BackendInfo CompileRequest LoweringTable PLUGIN_API hookimpl"
    ),
    "dovetail._core.plugins.manager": "manager",
    "dovetail._core.plugins.protocols": "Buffer Client Device Executable",
    "dovetail._core.runtime.calls.fallback": "Fallback",
    "dovetail._core.api.explanation": "explain",
    "dovetail._core.transform.derived": "evaluate",
}
_ENTRIES = {name: (module, name) for module, names in _MODULES.items() for name in names.split()}
# A primitive that is made of functions, not of a class; and those of modules not imported so far.
_ENTRIES["Primitive"] = ("dovetail._core.trace.primitive", "RuntimePrimitive")
_ENTRIES["primitives"] = ("dovetail._core.api.explanation", "all_primitives")

_SUBMODULES = (
    "arguments",
    "arrays",
    "avals",
    "checks",
    "contractions",
    "dtypes",
    "eager",
    "indexing",
    "lowering",
    "matrices",
    "pjrt",
    "random_keys",
    "unchecked",
)

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
