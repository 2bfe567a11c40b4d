"""The public functions and methods that are called, found by their names."""

from __future__ import annotations

import enum
import functools
import importlib
import inspect
import types
from collections.abc import Iterator
from dataclasses import dataclass

#: Modules, by how a call writes them.
MODULES = {
    "jnp": "dovetail.numpy",
    "jnp.linalg": "dovetail.numpy.linalg",
    "jnp.fft": "dovetail.numpy.fft",
    "lax": "dovetail.lax",
    "lax.linalg": "dovetail.lax.linalg",
    "nn": "dovetail.nn",
    "nn.initializers": "dovetail.nn.initializers",
    "image": "dovetail.image",
    "ode": "dovetail.experimental.ode",
    "random": "dovetail.random",
    "dt.ops": "dovetail.ops",
    "tree": "dovetail.tree",
    "dt": "dovetail",
    "dt.tree_util": "dovetail.tree_util",
    "dt.flatten_util": "dovetail.flatten_util",
    "dt.ad_checkpoint": "dovetail.ad_checkpoint",
    "dt.dtypes": "dovetail.dtypes",
    "dt.dlpack": "dovetail.dlpack",
    "jsp.cluster.vq": "dovetail.scipy.cluster.vq",
    "jsp.fft": "dovetail.scipy.fft",
    "jsp.integrate": "dovetail.scipy.integrate",
    "jsp.interpolate": "dovetail.scipy.interpolate",
    "jsp.linalg": "dovetail.scipy.linalg",
    "jsp.ndimage": "dovetail.scipy.ndimage",
    "jsp.optimize": "dovetail.scipy.optimize",
    "jsp.signal": "dovetail.scipy.signal",
    "jsp.sparse.linalg": "dovetail.scipy.sparse.linalg",
    "jsp.spatial.transform": "dovetail.scipy.spatial.transform",
    "jsp.special": "dovetail.scipy.special",
    "jsp.stats": "dovetail.scipy.stats",
}
#: A package whose modules are distributions.
DISTRIBUTIONS = "dovetail.scipy.stats"

#: Methods that trees call, with what other methods gave.
OF_TREES = frozenset({"tree_flatten", "tree_unflatten"})

#: What public classes and functions make, whose methods are called as well.
MADE = (
    "jsp.interpolate.RegularGridInterpolator((jnp.arange(3.0), jnp.arange(2.0)), jnp.ones((3, 2)))",
    "jsp.spatial.transform.Rotation.from_rotvec(jnp.ones(3))",
    "jsp.spatial.transform.Rotation.from_rotvec(jnp.ones((2, 3)))",
    "jsp.stats.gaussian_kde(jnp.array([[0.0, 1.0, 3.0], [1.0, 0.0, 1.0]]))",
    "nn.initializers.delta_orthogonal()",
    "nn.initializers.he_normal()",
    "nn.initializers.lecun_uniform()",
    "nn.initializers.orthogonal()",
    "nn.initializers.truncated_normal()",
)

#: What is not called, by why.
NOT_CALLED = {
    "changes the process, as it should": "clear_caches config set_printoptions extend_backend "
    "make_user_context "
    "register_pytree_node register_pytree_node_class register_pytree_with_keys "
    "register_pytree_with_keys_class register_dataclass register_static register_functools_partial",
    "is a module, a type for annotations, or a decorator of classes": "typing errors extend "
    "experimental core stages sharding debug Array Shard ComplexWarning DotDimensionNumbers "
    "Initializer",
    "is a class of jaxlib, or made by a function": "DictKey FlattenedIndexKey GetAttrKey KeyEntry "
    "SequenceKey PyTreeDef Ref Tracer",
    "prints pages": "print_environment_info",
    "gives memory without values": "empty empty_like",
    "gives an address": "unsafe_buffer_pointer",
}
#: Functions that repeat what they are given, so that a huge number makes them run for years.
LOOPS = frozenset(
    {
        *("lax.fori_loop", "lax.while_loop", "lax.scan", "lax.map", "dt.jet", "ode.odeint"),
        *("jsp.optimize.minimize", "jsp.special.bessel_jn"),
        *("jsp.sparse.linalg.bicgstab", "jsp.sparse.linalg.cg", "jsp.sparse.linalg.gmres"),
    }
)


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


def _modules() -> Iterator[tuple[str, str]]:
    yield from MODULES.items()
    package = importlib.import_module(DISTRIBUTIONS)
    for name in package.__all__:
        if isinstance(getattr(package, name), types.ModuleType):
            yield f"jsp.stats.{name}", f"{DISTRIBUTIONS}.{name}"


def _made() -> Iterator[Function]:
    """The objects of `MADE` that are called, and their methods."""
    names = {
        "jnp": importlib.import_module("dovetail.numpy"),
        "jsp": importlib.import_module("dovetail.scipy"),
        "nn": importlib.import_module("dovetail.nn"),
    }
    for written in MADE:
        made = eval(written, names)
        if callable(made):
            yield Function(written, parameters_of(made))
        if isinstance(made, types.FunctionType):
            continue
        for name in sorted(dir(made)):
            value = getattr(made, name)
            if callable(value) and not name.startswith("_") and name not in OF_TREES:
                yield Function(f"{written}.{name}", parameters_of(value))


@functools.cache
def public_functions() -> tuple[Function, ...]:
    """All public functions, and the methods of arrays, of their `at` and of what is `MADE`."""
    found = []
    for written, module_name in _modules():
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
    return (*found, *_made())
