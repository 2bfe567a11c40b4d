"""The names of `dovetail`: one table, the same for people, type checkers and `dir`."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

import dovetail


def _for_type_checkers(source_tree):
    """Name -> module[:name there] of the imports under TYPE_CHECKING in dovetail/__init__.py."""
    module = source_tree.modules["dovetail"]
    block = next(node for node in module.tree.body if isinstance(node, ast.If))
    names = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            public = alias.asname or alias.name
            there = "" if alias.name == public else f":{alias.name}"
            names[public] = f"{node.module}{there}"
    return names


def test_type_checkers_see_the_table(source_tree):
    declared = _for_type_checkers(source_tree)
    modules = dict.fromkeys((*dovetail._MODULES, *dovetail._NUMPY_API), "dovetail")
    assert declared == {**dovetail._NAMES, **modules}


def test_all_lists_the_table_and_nothing_else():
    names = [*dovetail._NAMES, *dovetail._MODULES, *dovetail._NUMPY_API, "__version__"]
    assert sorted(dovetail.__all__) == sorted(names)
    assert set(names) <= set(dir(dovetail))


def test_every_public_module_is_listed(root):
    folder = root / "packages" / "core" / "src" / "dovetail"
    inner = ("_core", "testing")
    found = {path.stem for path in folder.glob("*.py") if path.stem[0] != "_"}
    found |= {path.parent.name for path in folder.glob("*/__init__.py")} - set(inner)
    assert found == set(dovetail._MODULES)


@pytest.mark.parametrize("name", ["extend", "lax", "numpy"])
def test_stubs_are_the_tables(name):
    package = importlib.import_module(f"dovetail.{name}")
    declared = {}
    for node in ast.parse(Path(package.__file__).with_suffix(".pyi").read_text()).body[1:]:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            declared[alias.asname] = (node.module, alias.name)
    modules = {module: (package.__name__, module) for module in package._SUBMODULES}
    assert declared == package._ENTRIES | modules
    assert list(package.__all__) == sorted(declared)


def test_every_submodule_of_lax_is_listed():
    from dovetail import lax

    folder = Path(lax.__file__).parent
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == set(lax._SUBMODULES)
    for name in lax._SUBMODULES:
        assert getattr(lax, name).__name__ == f"dovetail.lax.{name}"


@pytest.mark.parametrize("name", dovetail.__all__)
def test_every_name_resolves(name):
    assert getattr(dovetail, name) is not None
    assert name in vars(dovetail), "kept, so that the second look-up is an ordinary one"


def test_unknown_name():
    with pytest.raises(AttributeError, match="module 'dovetail' has no attribute 'gard'"):
        dovetail.gard  # noqa: B018 (the look-up is the test)


def test_version_is_the_distribution_s():
    assert dovetail.__version__ == importlib.metadata.version("dovetail-core")


@pytest.mark.parametrize("name", ["numpy", "nn", "random"])
def test_hint_when_the_numpy_api_is_not_installed(name):
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
    assert "pip install dovetail-numpy" in answer.stdout, answer.stderr


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
