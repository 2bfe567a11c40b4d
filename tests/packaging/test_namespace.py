"""`dovetail.numpy` and `dovetail.testing` ship in other distributions, and are always found."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "packages" / "core" / "src"
NUMPY = ROOT / "packages" / "numpy-api" / "src"
TESTING = ROOT / "packages" / "testing" / "src"

USE = """
import dovetail
import dovetail.numpy as first
assert first is dovetail.numpy is sys.modules["dovetail.numpy"]
assert first.__name__ == "dovetail.numpy"
import dovetail.experimental.sparse as sparse
assert sparse is dovetail.experimental.sparse and callable(dovetail.experimental.io_callback)
import numpy
assert numpy is not first and numpy.__name__ == "numpy"
print(len(dovetail.__path__))
"""


USE_TESTING = f"""{USE}
import dovetail.testing as kit
from dovetail.testing import Sample
assert kit is dovetail.testing is sys.modules["dovetail.testing"]
"""


def _run(code, *folders):
    """Run code with exactly these folders of ours on the path, before site-packages."""
    program = (
        "import sys\n"
        f"ours = lambda p: p.startswith({str(ROOT / 'packages')!r})\n"
        "sys.path[:] = sys.argv[1:] + [p for p in sys.path if not ours(p)]\n" + code
    )
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, folders)],
        capture_output=True,
        text=True,
        cwd=sys.prefix,
    )


def _wheels(site, *sources):
    """What wheels of some packages leave in one folder."""
    ignore = shutil.ignore_patterns("__pycache__")
    for source in sorted(sources, key=lambda source: source == CORE):
        _without_markers(site)  # no wheel but core's has them
        shutil.copytree(source, site, dirs_exist_ok=True, ignore=ignore)
    if CORE not in sources:
        _without_markers(site)
    return site


def _without_markers(site):
    """Remove what tells type checkers where a package is that other distributions join."""
    for folder in (site / "dovetail", site / "dovetail" / "experimental"):
        (folder / "__init__.pyi").unlink(missing_ok=True)


def test_two_folders_as_in_editable_installs():
    for order in ((CORE, NUMPY), (NUMPY, CORE)):
        answer = _run(USE, *order)
        assert answer.stdout.strip() == "2", answer.stderr


def test_one_folder_as_in_wheels(tmp_path):
    answer = _run(USE, _wheels(tmp_path / "site", NUMPY, CORE))
    assert answer.stdout.strip() == "1", answer.stderr


def test_core_in_a_wheel_and_the_numpy_api_editable(tmp_path):
    answer = _run(USE, _wheels(tmp_path / "site", CORE), NUMPY)
    assert answer.stdout.strip() == "2", answer.stderr


@pytest.mark.parametrize("order", list(itertools.permutations((CORE, NUMPY, TESTING))))
def test_three_folders_as_in_editable_installs(order):
    answer = _run(USE_TESTING, *order)
    assert answer.stdout.strip() == "3", answer.stderr


@pytest.mark.parametrize(
    ("in_wheels", "editable", "folders"),
    [
        ((CORE, NUMPY, TESTING), (), 1),
        ((CORE, NUMPY), (TESTING,), 2),
        ((CORE, TESTING), (NUMPY,), 2),
        ((CORE,), (TESTING, NUMPY), 3),
        ((TESTING,), (CORE, NUMPY), 3),
    ],
)
def test_the_conformance_kit_in_a_wheel_and_editable(tmp_path, in_wheels, editable, folders):
    answer = _run(USE_TESTING, _wheels(tmp_path / "site", *in_wheels), *editable)
    assert answer.stdout.strip() == str(folders), answer.stderr


@pytest.mark.parametrize("file", ["__init__.py", "other.py"])
def test_a_stray_folder_of_the_same_name_does_not_join(tmp_path, file):
    stray = tmp_path / "stray" / "dovetail"
    stray.mkdir(parents=True)
    (stray / file).write_text("raise AssertionError('imported')")
    answer = _run(USE, CORE, NUMPY, stray.parent)
    assert answer.stdout.strip() == "2", answer.stderr


def test_entries_of_the_path_that_are_no_text():
    code = f"sys.path.insert(0, b'bytes')\nsys.path.insert(0, None)\n{USE}"
    answer = _run(code, CORE, NUMPY)
    assert answer.stdout.strip() == "2", answer.stderr


@pytest.mark.parametrize(
    "use",
    [
        "dovetail.numpy",
        "dovetail.make_jaxpr(lambda x: x + 1)(1.0)",
        "dovetail.make_jaxpr(lambda x: x.sum())(1.0)",
        "dovetail.make_jaxpr(lambda x: x.T)(1.0)",
    ],
)
def test_core_alone(use):
    code = f"import dovetail\ntry: {use}\nexcept Exception as error: print(error)\n"
    answer = _run(code, CORE)
    assert "pip install dovetail-numpy" in answer.stdout, answer.stderr


def test_without_the_conformance_kit():
    code = "import dovetail\ntry: dovetail.testing\nexcept Exception as error: print(error)\n"
    answer = _run(code, CORE, NUMPY)
    assert "pip install dovetail-testing" in answer.stdout, answer.stderr
