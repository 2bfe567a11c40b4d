"""Who may import what from outside: jax nobody, jaxlib a few modules, backends one of ours."""

from __future__ import annotations

import re
import sys
import tomllib

import pytest

CORE = "packages/core/src/dovetail/_core"
JAXLIB_ALLOWED = re.compile(
    rf"{CORE}/base/bindings\.py|{CORE}/(hlo|runtime)/|packages/backend-\w+/"
)


def _imports(source_tree, top):
    """Label, line and name of each import of a module at or under `top`."""
    for module in source_tree.modules.values():
        for found in source_tree.imports(module):
            if found.module == top or found.module.startswith(f"{top}."):
                yield module.label, found.line, found.module


def test_nothing_imports_jax(source_tree):
    assert list(_imports(source_tree, "jax")) == []


def test_no_source_names_jax_to_the_import_machinery(source_tree):
    pattern = re.compile(r"""import_module\(\s*["']jax["'.]|__import__\(\s*["']jax["'.]""")
    found = [m.label for m in source_tree.modules.values() if pattern.search("\n".join(m.lines))]
    assert found == []


def test_jaxlib_is_imported_only_behind_its_wrappers(source_tree):
    found = [
        f"{label}:{line}: {name}"
        for label, line, name in _imports(source_tree, "jaxlib")
        if not JAXLIB_ALLOWED.match(label)
    ]
    assert not found, "\n".join(found)


def test_mlir_is_imported_only_by_hlo(source_tree):
    found = [
        f"{label}:{line}: {name}"
        for label, line, name in _imports(source_tree, "jaxlib.mlir")
        if not label.startswith(f"{CORE}/hlo/")
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("plugin", ["cpu", "cuda", "onnx", "tpu"])
def test_a_plugin_uses_only_what_third_parties_are_promised(plugin, source_tree):
    own = f"dovetail_{plugin}"
    needed = {own, "jaxlib", "numpy", *sys.stdlib_module_names}
    if plugin == "onnx":
        needed = {own, "ml_dtypes", "numpy", "onnx", *sys.stdlib_module_names}
    foreign = {
        f"{module.label}:{found.line}: {found.module}"
        for module in source_tree.modules.values()
        if module.name.partition(".")[0] == own
        for found in source_tree.imports(module)
        if found.module.partition(".")[0] not in needed
        and not re.fullmatch(r"dovetail\.extend(\.core)?(\.\w+)?", found.module)
    }
    assert not foreign, "\n".join(sorted(foreign))


def test_the_numpy_api_uses_only_what_third_parties_are_promised(root, source_tree):
    source = root / "packages" / "numpy-api" / "src"
    own = {m.name for m in source_tree.modules.values() if m.path.is_relative_to(source)}
    private = {
        f"{module.label}:{found.line}: {found.module}"
        for module in source_tree.modules.values()
        if module.name in own
        for found in source_tree.imports(module)
        if found.module not in own and re.search(r"^dovetail\b.*\._", found.module)
    }
    assert not private, "\n".join(sorted(private))


def test_no_text_of_the_numpy_api_names_a_private_module(root):
    found = [
        f"{path.relative_to(root)}: {line.strip()}"
        for path in sorted((root / "packages" / "numpy-api" / "src").rglob("*.py*"))
        if path.suffix in (".py", ".pyi")
        for line in path.read_text(encoding="utf-8").splitlines()
        if "dovetail._" in line
    ]
    assert not found, "\n".join(found)


def test_every_import_is_a_declared_dependency(root, source_tree):
    allowed = set(sys.stdlib_module_names) | {"dovetail"}
    missing = set()
    for folder in sorted((root / "packages").iterdir()):
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        declared = {re.split(r"[<>=\[]", text)[0] for text in project["dependencies"]}
        # Exported programs are written by what the extra for them brings, stored arrays likewise.
        optional = project.get("optional-dependencies", {})
        extras = [*optional.get("export", []), *optional.get("storage", [])]
        declared |= {re.split(r"[<>=\[]", text)[0] for text in extras}
        own = {path.name for path in (folder / "src").iterdir()}
        if folder.name == "numpy-api" or folder.name.startswith("backend-"):
            declared |= {"numpy", "ml_dtypes", "jaxlib"}  # core brings them
        for module in source_tree.modules.values():
            if not module.path.is_relative_to(folder):
                continue
            # The testing kit's own needs are stated by whoever runs tests.
            if module.name.startswith("dovetail.testing"):
                continue
            # SciPy comes with the extra `testing`: references, which only tests call, may use it.
            of_references = module.name.startswith("dovetail._core.ops.")
            tops = {
                top
                for i in source_tree.imports(module)
                if (top := i.module.partition(".")[0]) != "scipy"
                or not (of_references and i.in_function)
            }
            missing |= {f"{module.label}: {top}" for top in tops - allowed - declared - own}
    assert not missing, "\n".join(sorted(missing))


def test_mypy_checks_every_package(root):
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    typed = root.glob("packages/*/src/dovetail/*/**/py.typed")
    below = {".".join(path.parent.parts[path.parts.index("src") + 1 :]) for path in typed}
    plugins = {path.name for path in root.glob("packages/*/src/dovetail_*")}
    others = {"dovetail", "workloads"}  # the latter in benchmarks
    assert set(settings["tool"]["mypy"]["packages"]) == others | below | plugins
