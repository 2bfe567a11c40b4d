"""The public functions and methods that are called, found by their names."""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
from dataclasses import dataclass

#: Modules, by how a call writes them.
MODULES = {
    "jnp": "dovetail.numpy",
    "jnp.linalg": "dovetail.numpy.linalg",
    "jnp.fft": "dovetail.numpy.fft",
    "lax": "dovetail.lax",
    "lax.linalg": "dovetail.lax.linalg",
    "nn": "dovetail.nn",
    "random": "dovetail.random",
    "dt.ops": "dovetail.ops",
    "tree": "dovetail.tree",
    "dt": "dovetail",
    "dt.tree_util": "dovetail.tree_util",
    "dt.flatten_util": "dovetail.flatten_util",
    "dt.ad_checkpoint": "dovetail.ad_checkpoint",
    "dt.dtypes": "dovetail.dtypes",
    "dt.dlpack": "dovetail.dlpack",
}

#: What is not called, by why.
NOT_CALLED = {
    "changes the process, as it should": "clear_caches config set_printoptions extend_backend "
    "register_pytree_node register_pytree_node_class register_pytree_with_keys "
    "register_pytree_with_keys_class register_dataclass register_static register_functools_partial",
    "is a module, a type for annotations, or a decorator of classes": "typing errors extend "
    "experimental core stages sharding debug Array Shard ComplexWarning DotDimensionNumbers",
    "is a class of jaxlib, or made by a function": "DictKey FlattenedIndexKey GetAttrKey KeyEntry "
    "SequenceKey PyTreeDef Ref Tracer",
    "prints pages": "print_environment_info",
    "gives memory without values": "empty empty_like",
    "gives an address": "unsafe_buffer_pointer",
}
#: Functions that repeat what they are given, so that a huge number makes them run for years.
LOOPS = frozenset({"lax.fori_loop", "lax.while_loop", "lax.scan", "lax.map", "dt.jet"})


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a function: its name, and how it is passed."""

    name: str
    keyword: bool
    several: bool
    optional: bool


@dataclass(frozen=True, slots=True)
class Function:
    """A public function, by how a call writes it; a method begins with a dot."""

    name: str
    parameters: tuple[Parameter, ...]


UNKNOWN = tuple(Parameter(f"x{i}", False, False, i > 0) for i in range(3))


def parameters_of(function: object) -> tuple[Parameter, ...]:
    """The parameters of a function; some positional ones where they cannot be known."""
    try:
        signature = inspect.signature(function)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return UNKNOWN
    return tuple(
        Parameter(
            name,
            parameter.kind is parameter.KEYWORD_ONLY,
            parameter.kind is parameter.VAR_POSITIONAL,
            parameter.default is not parameter.empty,
        )
        for name, parameter in signature.parameters.items()
        if name != "self" and parameter.kind is not parameter.VAR_KEYWORD
    )


def left_out() -> frozenset[str]:
    """The names of what is not called."""
    return frozenset(name for names in NOT_CALLED.values() for name in names.split())


@functools.cache
def public_functions() -> tuple[Function, ...]:
    """All public functions, and the methods of arrays and of their `at`."""
    found = []
    for written, module_name in MODULES.items():
        module = importlib.import_module(module_name)
        for name in sorted(getattr(module, "__all__", None) or dir(module)):
            value = getattr(module, name)
            public = not name.startswith("_") and not name.endswith("_p")
            made_by_python = isinstance(value, enum.EnumMeta)  # and so are its errors
            public = public and not made_by_python
            if public and callable(value) and name not in left_out():
                found.append(Function(f"{written}.{name}", parameters_of(value)))
    array = importlib.import_module("dovetail.numpy").zeros((2, 2))
    for prefix, owner in (("", array), ("at[INDEX].", array.at[0])):
        for name in sorted(dir(owner)):
            if name.startswith("_") or name in left_out():
                continue
            value = getattr(owner, name)
            if callable(value):
                found.append(Function(f".{prefix}{name}", parameters_of(value)))
    return tuple(found)
