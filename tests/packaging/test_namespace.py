"""`dovetail.numpy` ships in another distribution than `dovetail`, and is found in every layout."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = ROOT / "packages" / "core" / "src"
NUMPY = ROOT / "packages" / "numpy-api" / "src"

USE = """
import dovetail
import dovetail.numpy as first
assert first is dovetail.numpy is sys.modules["dovetail.numpy"]
assert first.__name__ == "dovetail.numpy"
import numpy
assert numpy is not first and numpy.__name__ == "numpy"
print(len(dovetail.__path__))
"""


def _run(code, *folders):
    """Run code with exactly these folders of ours on the path, before site-packages."""
    program = (
        "import sys\n"
        "ours = lambda p: 'dovetail' in p or 'packages/' in p.replace(chr(92), '/')\n"
        "sys.path[:] = sys.argv[1:] + [p for p in sys.path if not ours(p)]\n" + code
    )
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, folders)],
        capture_output=True,
        text=True,
        cwd=sys.prefix,
    )


def test_two_folders_as_in_editable_installs():
    for order in ((CORE, NUMPY), (NUMPY, CORE)):
        answer = _run(USE, *order)
        assert answer.stdout.strip() == "2", answer.stderr


def test_one_folder_as_in_wheels(tmp_path):
    site = tmp_path / "site"
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(NUMPY, site, ignore=ignore)
    (site / "dovetail" / "__init__.pyi").unlink()  # no wheel but core's has it
    shutil.copytree(CORE, site, dirs_exist_ok=True, ignore=ignore)
    answer = _run(USE, site)
    assert answer.stdout.strip() == "1", answer.stderr


def test_core_in_a_wheel_and_the_numpy_api_editable(tmp_path):
    site = tmp_path / "site"
    shutil.copytree(CORE, site, ignore=shutil.ignore_patterns("__pycache__"))
    answer = _run(USE, site, NUMPY)
    assert answer.stdout.strip() == "2", answer.stderr


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
