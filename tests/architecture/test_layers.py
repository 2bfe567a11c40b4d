"""Imports go to the same layer or one before it; docs/design.md lists the layers."""

from __future__ import annotations

import graphlib
import re

import pytest

PUBLIC = "a public module"

#: Errors are defined under the name by which users know them.
LAYERS_OF_PUBLIC_MODULES = {"dovetail.errors": "base"}

# The one knot that is tied at run time: the lowest layer that evaluates asks for the evaluator.
UPWARD_ON_PURPOSE = {("dovetail._core.trace.state", "dovetail._core.runtime.calls.dispatch")}

# Imports inside functions that close a circle, and why each one stays. There are none outside core.
CIRCLES_ON_PURPOSE = {
    ("dovetail._core.trace.state", "dovetail._core.runtime.calls.dispatch"): (
        "the lowest layer that evaluates asks for the evaluator"
    ),
    ("dovetail._core.trace.state", "dovetail._core.trace.leaks"): (
        "traces tell the search for leaked tracers, which asks for the current trace"
    ),
    ("dovetail._core.trace.tracer", "dovetail"): "arrays name `dovetail.numpy` as their namespace",
    ("dovetail._core.ir.jaxpr", "dovetail._core.ir.printer"): "programs print themselves",
    ("dovetail._core.ops.indexing.gather", "dovetail._core.ops.indexing.scatter"): (
        "each is the transpose of the other"
    ),
    ("dovetail._core.runtime.arrays.array", "dovetail._core.runtime.arrays.dlpack"): (
        "arrays are exchanged by a method of theirs"
    ),
    ("dovetail._core.runtime.arrays.buffers", "dovetail._core.runtime.arrays.array"): (
        "a buffer is converted on its device as an array"
    ),
    (
        "dovetail._core.runtime.devices.clients",
        "dovetail._core.runtime.devices.memory_statistics",
    ): ("devices of clients are told to count the arrays that the clients hold"),
    ("dovetail._core.runtime.arrays.buffers", "dovetail._core.runtime.arrays.moving"): (
        "what moves between several devices is put together out of buffers"
    ),
    ("dovetail._core.runtime.arrays.moving", "dovetail._core.runtime.arrays.array"): (
        "a part of a buffer is computed on its device as that of an array"
    ),
    ("dovetail._core.runtime.arrays.parts", "dovetail._core.runtime.arrays.array"): (
        "a buffer that jaxlib must not see is reshaped as an array"
    ),
    ("dovetail._core.runtime.arrays.global_arrays", "dovetail._core.runtime.calls.dispatch"): (
        "an array is divided anew by a program"
    ),
}


@pytest.fixture(scope="module")
def layers(root):
    """The layers of core in order, read from section 3 of the design."""
    design = (root / "docs" / "design.md").read_text(encoding="utf-8")
    section = design.partition("## 3. Layers of core")[2].partition("\n## ")[0]
    names = re.findall(r"`(\w+)` \(", section.partition("The three knots")[0])
    assert section.count(" → ") == len(names) - 1, "section 3 lists layers as `name` (...) → ..."
    return names


def _layer(module_name):
    """A module's layer; None outside core."""
    if module_name in LAYERS_OF_PUBLIC_MODULES:
        return LAYERS_OF_PUBLIC_MODULES[module_name]
    parts = module_name.split(".")
    return parts[2] if parts[:2] == ["dovetail", "_core"] and len(parts) > 2 else None


def test_the_design_lists_every_layer_folder(layers, root):
    core = root / "packages/core/src/dovetail/_core"
    folders = {path.name for path in core.iterdir() if path.is_dir() and path.name[0] != "_"}
    assert folders == set(layers)


def test_core_imports_go_down(layers, source_tree):
    upward = []
    for module in source_tree.modules.values():
        layer = _layer(module.name)
        if layer is None:
            continue
        for found in source_tree.imports(module):
            if not found.module.startswith("dovetail."):
                continue  # the package `dovetail` itself is there before anything in it
            if found.module == "dovetail._core":
                continue
            if found.for_types_only or (module.name, found.module) in UPWARD_ON_PURPOSE:
                continue  # a name in an annotation imports nothing
            target = _layer(found.module) or PUBLIC
            if target == PUBLIC or layers.index(target) > layers.index(layer):
                upward.append(f"{module.label}:{found.line}: {layer} imports {found.module}")
    assert not upward, "\n".join(upward)


def test_core_does_not_know_the_numpy_api_or_a_backend(source_tree):
    other = re.compile(r"dovetail\.(numpy|nn|random|scipy|image)\b|dovetail_\w+")
    found = [
        f"{module.label}:{line.line}: {line.module}"
        for module in source_tree.modules.values()
        if _layer(module.name)
        for line in source_tree.imports(module)
        if other.match(line.module)
    ]
    assert not found, "\n".join(found)


def test_no_import_cycle(source_tree):
    """Imports inside functions count: they only hide a circle."""
    edges = {}
    for module in source_tree.modules.values():
        edges[module.name] = {
            found.module
            for found in source_tree.imports(module)
            if found.module in source_tree.modules
            and found.module != module.name
            and not found.for_types_only
            and not (found.in_function and (module.name, found.module) in CIRCLES_ON_PURPOSE)
        }
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        pytest.fail("import cycle: " + " -> ".join(reversed(error.args[1])))


def test_circles_on_purpose_are_there(source_tree):
    deferred = {
        (module.name, found.module)
        for module in source_tree.modules.values()
        for found in source_tree.imports(module)
        if found.in_function
    }
    assert set(CIRCLES_ON_PURPOSE) <= deferred, "one has been resolved: remove it from the table"


def test_an_import_inside_a_function_says_why(source_tree):
    silent = [
        f"{module.label}:{found.line}: {module.lines[found.line - 1].strip()}"
        for module in source_tree.modules.values()
        for found in source_tree.imports(module)
        if found.in_function
        and not any(
            re.search(r"# deferred: \w+", line)
            for line in module.lines[found.line - 1 : found.end_line]
        )
    ]
    assert not silent, "write `# deferred: reason` behind:\n" + "\n".join(silent)
