"""Public names: one list for each package, the same for people, type checkers and `dir`."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path
from types import FunctionType

import pytest

import dovetail
from dovetail._core.base.tracebacks import _BOUNDARIES

SOURCES = sorted(Path(__file__).parents[2].glob("packages/*/src"))
STUBS = {
    ".".join(stub.parent.relative_to(source).parts): stub
    for source in SOURCES
    for stub in sorted(source.rglob("__init__.pyi"))
    if "import" in stub.read_text(encoding="utf-8")  # others tell where a package is
}


def _declared(package):
    """What a stub tells type checkers: public name -> module and name there; None if own."""
    names = {}
    for node in ast.parse(STUBS[package].read_text(encoding="utf-8")).body[1:]:
        if isinstance(node, ast.AnnAssign):
            names[node.target.id] = None
            continue
        if isinstance(node, ast.Assign):
            (target,) = node.targets
            assert target.id not in names, f"{target.id} is there twice"
            names[target.id] = names[node.value.id]
            continue
        assert isinstance(node, ast.ImportFrom), ast.unparse(node)
        for alias in node.names:
            private = alias.asname == f"_{alias.name}"
            assert private or alias.asname == alias.name, f"checkers take {alias.name} for private"
            assert alias.asname not in names, f"{alias.asname} is there twice"
            names[alias.asname] = (node.module, alias.name)
    return {name: place for name, place in names.items() if name[0] != "_" or place is None}


def _submodules(package):
    return {
        name
        for name, place in _declared(package).items()
        if place in ((package, name), (f"{package}.{name}", "callable_module"))
    }


def _in_folder(folder):
    """The public modules in a folder."""
    files = (*folder.glob("*.py"), *(file.parent for file in folder.glob("*/__init__.py")))
    return {path.stem for path in files if path.stem[0] != "_"}


def _public_modules(package="dovetail"):
    """The names of all public modules but those of the conformance kit."""
    yield package
    inner = _submodules(package) if package in STUBS else set()
    if package == "dovetail.experimental":
        inner = _experimental()
    for name in sorted(inner):
        yield from _public_modules(f"{package}.{name}")


def _experimental():
    folders = map(Path, importlib.import_module("dovetail.experimental").__path__)
    return set().union(*map(_in_folder, folders))


@pytest.mark.parametrize("name", list(_public_modules()))
def test_dir_shows_public_names_alone(name):
    module = importlib.import_module(name)
    # What pytest puts into the modules that it rewrites is no name in Python.
    listed = {public for public in dir(module) if public.isidentifier()}
    shown = {public for public in listed if not public.startswith("__")}
    if name == "dovetail.experimental":
        shown -= _experimental()  # there as soon as they are imported
    assert shown == {public for public in module.__all__ if public[0] != "_"}


@pytest.mark.parametrize("name", list(_public_modules()))
def test_public_functions_are_behind_boundaries(name):
    """What they raise ends at the user's line."""
    if name.startswith("dovetail.extend"):
        return  # for authors of plug-ins, who want to see where it was
    module = importlib.import_module(name)
    found = {public: getattr(module, public) for public in module.__all__}
    functions = {public: f for public, f in found.items() if type(f) is FunctionType}
    assert not [public for public, f in functions.items() if f.__code__ not in _BOUNDARIES]


def test_packages_with_stubs_are_known():
    modules = {"extend", "lax", "nn", "nn.initializers", "numpy", "ops", "random", "sharding"}
    modules |= {"experimental.sparse", "experimental.sparse.linalg", "testing"}
    modules |= {"example_libraries", "image", "scipy", "scipy.cluster", "scipy.fft"}
    modules |= {"scipy.integrate", "scipy.interpolate", "scipy.linalg", "scipy.ndimage"}
    modules |= {"scipy.optimize", "scipy.signal", "scipy.sparse", "scipy.sparse.linalg"}
    modules |= {"scipy.spatial", "scipy.spatial.transform", "scipy.special", "scipy.stats"}
    assert set(STUBS) == {"dovetail", *(f"dovetail.{name}" for name in modules)}


@pytest.mark.parametrize("name", STUBS)
def test_the_stub_is_what_runs(name):
    package = importlib.import_module(name)
    declared = _declared(name)
    assert package.__all__ == sorted(declared)
    assert set(declared) <= set(dir(package))
    for public, place in declared.items():
        found = getattr(package, public)
        assert public in vars(package), "kept, so that the second look-up is an ordinary one"
        if place == (name, public):
            assert found is importlib.import_module(f"{name}.{public}")
        elif place is not None:
            actual = getattr(importlib.import_module(place[0]), place[1])
            behind = getattr(found, "__wrapped__", None)  # of a boundary
            assert actual is found or actual is behind


@pytest.mark.parametrize("name", STUBS)
def test_unknown_name(name):
    package = importlib.import_module(name)
    with pytest.raises(AttributeError, match=f"^module '{name}' has no attribute 'qqqq'$"):
        package.qqqq  # noqa: B018 (the look-up is the test)


def test_every_public_module_is_listed():
    apart = {"testing", "as_jax"}  # not for users' programs; changes the process when imported
    found = set().union(*(_in_folder(source / "dovetail") for source in SOURCES))
    assert _submodules("dovetail") == found - apart


@pytest.mark.parametrize("name", ["dovetail.extend", "dovetail.lax"])
def test_every_submodule_is_listed(name):
    assert _submodules(name) == _in_folder(STUBS[name].parent)


@pytest.mark.parametrize("name", sorted(_submodules("dovetail.extend")))
def test_a_module_of_extend_only_passes_names_on(name, source_tree):
    module = source_tree.modules[f"dovetail.extend.{name}"]
    documentation, *imports, names = module.tree.body
    if isinstance(names, ast.Expr):  # puts the functions behind boundaries
        assert ast.unparse(names) == "_publish(globals())"
        *imports, names = imports
    assert isinstance(documentation, ast.Expr)
    passed_on = [alias.asname for node in imports for alias in node.names]
    passed_on = [name for name in passed_on if name != "_publish"]
    assert sorted(passed_on) == ast.literal_eval(names.value)


def test_import_of_all_names():
    code = "from dovetail.random import *; print(split.__module__, key.__module__)"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout.split() == ["dovetail.random"] * 2, answer.stderr


def test_version_is_the_distribution_s():
    assert dovetail.__version__ == importlib.metadata.version("dovetail-core")


def test_version_info_is_the_version_s_numbers():
    assert dovetail.__version_info__ == (0, 1, 0)


@pytest.mark.parametrize(
    ("version", "info"),
    [
        ("1.20.3", (1, 20, 3)),
        ("1.2.0rc1", (1, 2, 0, "rc1")),
        ("0.1.0.dev4", (0, 1, 0, "dev4")),
        ("0.1.0+local.2", (0, 1, 0, "+local.2")),
    ],
)
def test_what_follows_the_numbers_of_a_version(version, info):
    assert dovetail._version_info(version) == info


@pytest.mark.parametrize(
    ("name", "distribution"),
    [
        ("numpy", "dovetail-numpy"),
        ("nn", "dovetail-numpy"),
        ("random", "dovetail-numpy"),
        ("testing", "dovetail-testing"),
    ],
)
def test_hint_when_the_distribution_is_not_installed(name, distribution):
    code = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == 'dovetail.{name}':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import dovetail\n"
        f"try: dovetail.{name}\n"
        "except AttributeError as error: print(error)\n"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert f"pip install {distribution}\n" in answer.stdout, answer.stderr


def test_an_error_inside_the_numpy_api_is_not_mistaken_for_its_absence():
    code = (
        "import sys\n"
        "sys.modules['ml_dtypes'] = None\n"
        "import dovetail\n"
        "try: dovetail.numpy.ones\n"
        "except ModuleNotFoundError as error: print('passed on:', error.name)\n"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout.strip() == "passed on: ml_dtypes", answer.stderr
