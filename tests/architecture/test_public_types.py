"""Public functions say what they take and what they return."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import typing

import pytest

import dovetail.typing

MODULES = (
    "dovetail",
    "dovetail.lax",
    "dovetail.lax.linalg",
    "dovetail.experimental.sparse",
    "dovetail.experimental.sparse.linalg",
    "dovetail.image",
    "dovetail.nn",
    "dovetail.nn.initializers",
    "dovetail.numpy",
    "dovetail.numpy.fft",
    "dovetail.numpy.linalg",
    "dovetail.ops",
    "dovetail.random",
    *(
        f"dovetail.scipy.{name}"
        for name in (
            *("cluster.vq", "fft", "integrate", "linalg", "ndimage", "optimize"),
            *("signal", "sparse.linalg", "special", "stats", "stats.norm", "stats.beta"),
        )
    ),
    "dovetail.tree",
)
LIMIT = 0.05
# Functions of trees and of functions: what they take and return is a tree of whatever there is.
OF_TREES = frozenset(
    {
        *("block_until_ready", "closure_convert", "copy_to_host_async", "device_get", "device_put"),
        *("eval_shape", "fwd_and_bwd", "grad", "hessian", "jacfwd", "jacrev", "jit", "jvp"),
        *("linear_transpose", "linearize", "make_jaxpr", "pure_callback", "value_and_grad"),
        *("vjp", "vmap", "cond", "dce_sink", "fori_loop", "platform_dependent", "reduce"),
        *(
            "reduce_window",
            "scan",
            "switch",
            "while_loop",
            "all",
            "all_true",
            "broadcast",
            "flatten",
        ),
        *("make_array_from_process_local_data", "pmap", "reshard", "shard_map", "smap"),
        *("all_gather", "all_to_all", "pbroadcast", "pcast", "pmax", "pmean", "pmin", "ppermute"),
        *("pshuffle", "psum", "psum_scatter", "pswapaxes", "pvary", "with_sharding_constraint"),
        *("flatten_with_path", "leaves", "leaves_with_path", "map", "map_with_path"),
        *("reduce_associative", "structure", "transpose", "unflatten"),
    }
)


def _functions(module_name):
    """The public functions of a module, as they were written."""
    module = importlib.import_module(module_name)
    names = [name for name in module.__all__ if not isinstance(getattr(module, name), type)]
    found = {name: inspect.unwrap(getattr(module, name)) for name in names}
    return {name: function for name, function in found.items() if inspect.isfunction(function)}


def _annotations(function):
    """The annotation of each parameter and of the result, as text; None where there is none."""
    for name in (*inspect.signature(function).parameters, "return"):
        yield name, function.__annotations__.get(name)


def _is_vague(name, annotation):
    """Whether an annotation says nothing: it is Any, or a tree where none is expected."""
    if annotation is None or annotation in ("Any", "Any | None"):
        return True
    is_tree = re.search(r"\bPyTree\b", annotation) is not None
    return is_tree and name not in OF_TREES


@pytest.mark.parametrize("module_name", MODULES)
def test_parameters_and_results_have_types(module_name):
    functions = _functions(module_name)
    assert functions
    vague, count = [], 0
    for name, function in functions.items():
        for parameter, annotation in _annotations(function):
            count += 1
            if _is_vague(name, annotation):
                vague.append(f"{name}: {parameter}: {annotation}")
    assert len(vague) <= LIMIT * count, f"{len(vague)} of {count}:\n" + "\n".join(vague)


def test_the_names_resolve_while_a_program_runs():
    for name in dovetail.typing.__all__:
        assert getattr(dovetail.typing, name) is not None

    def function(x: dovetail.typing.ArrayLike, device: dovetail.typing.DeviceLike) -> None: ...

    hints = typing.get_type_hints(function)
    assert dovetail.Array in typing.get_args(hints["x"])
    assert dovetail.sharding.Sharding in typing.get_args(hints["device"])


def _declared(source_tree):
    """Methods and properties that `array_methods.pyi` declares, by name."""
    path = source_tree.modules["dovetail._core.trace.tracer"].path.with_name("array_methods.pyi")
    body = ast.parse(path.read_text(encoding="utf-8")).body
    (declared,) = [n for n in body if isinstance(n, ast.ClassDef) and n.name == "ArrayMethods"]
    return {node.name: node for node in declared.body if isinstance(node, ast.FunctionDef)}


# What arrays and tracers define themselves, and is declared for both.
OF_ALL_ARRAYS = {"shape", "dtype", "ndim", "size", "__iter__", "__len__"}
# What Python and libraries call, and nobody else.
NOT_DECLARED = {"__array_module__", "__hex__", "__oct__"}


def test_methods_of_arrays_are_declared_as_they_are(source_tree):
    from dovetail.numpy.arrays.plugin import dovetail_array_methods

    tables = dovetail_array_methods()
    installed = {*tables.operators, *tables.methods, *tables.properties}
    declared = _declared(source_tree)
    assert set(declared) - OF_ALL_ARRAYS == installed - NOT_DECLARED
    for name, place in tables.methods.items():
        if name in NOT_DECLARED or name.startswith("__"):
            continue
        module, _, attribute = place.partition(":")
        function = inspect.unwrap(getattr(importlib.import_module(module), attribute))
        parameters = list(inspect.signature(function).parameters.values())[1:]
        arguments = declared[name].args
        positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)][1:]
        keyword = [a.arg for a in arguments.kwonlyargs]
        variable = [arguments.vararg.arg] if arguments.vararg else []
        assert [*positional, *variable, *keyword] == [p.name for p in parameters], name
        assert keyword == [p.name for p in parameters if p.kind is p.KEYWORD_ONLY], name
