"""The eight wheels: what is in them, and that no two share a file."""

from __future__ import annotations

import configparser
import email
import os
import shlex
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.packaging

ROOT = Path(__file__).parents[2]
FOLDERS = (
    *("backend-cpu", "backend-cuda", "backend-tpu"),
    *("core", "exporter-onnx", "native-core", "numpy-api", "testing"),
)
ENTRY_POINTS = {
    "backend-cpu": {"dovetail.backends": {"cpu": "dovetail_cpu.plugin"}},
    "backend-cuda": {
        "dovetail.backends": {"cuda": "dovetail_cuda.plugin"},
        "dovetail.handles": {"xla_cuda12": "cuda", "xla_cuda13": "cuda"},
    },
    "backend-tpu": {"dovetail.backends": {"tpu": "dovetail_tpu.plugin"}},
    "core": {},
    "exporter-onnx": {"dovetail.exporters": {"onnx": "dovetail_onnx.plugin"}},
    "native-core": {},
    "numpy-api": {"dovetail.extensions": {"numpy": "dovetail.numpy.arrays.plugin"}},
    "testing": {"pytest11": {"dovetail": "dovetail.testing.plugin"}},
}


@pytest.fixture(scope="session")
def wheels(tmp_path_factory):
    """The eight wheels, open, by the folder of their package; built once."""
    folder = tmp_path_factory.mktemp("wheels")
    # Kernels take minutes to compile: `nox -s wheels` does, and `test_kernel_builds.py` others.
    environment = {"DOVETAIL_WITHOUT_KERNELS": "1"}
    built = {}
    for name in FOLDERS:
        target = folder / name
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(target)],
            cwd=ROOT / "packages" / name,
            env={**os.environ, **environment},
            check=True,
            capture_output=True,
        )
        (path,) = target.glob("*.whl")
        built[name] = zipfile.ZipFile(path)
    return built


@pytest.fixture(params=FOLDERS)
def wheel(request, wheels):
    """One wheel, with the folder of its package."""
    return request.param, wheels[request.param]


def _project(name):
    text = (ROOT / "packages" / name / "pyproject.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)["project"]


def _in_dist_info(wheel, file):
    (name,) = (n for n in wheel.namelist() if n.endswith(f".dist-info/{file}"))
    return wheel.read(name).decode()


def test_no_two_wheels_share_a_file(wheels):
    files = Counter(name for wheel in wheels.values() for name in wheel.namelist())
    assert [name for name, count in files.items() if count > 1] == []


def test_every_source_file_is_in_exactly_its_wheel(wheel):
    name, file = wheel
    source = ROOT / "packages" / name / "src"
    expected = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    if name == "core":
        expected.add("dovetail_as_jax.pth")
    else:
        # Markers for type checkers in editable installs; they would replace the files of core's.
        expected -= {"dovetail/__init__.pyi", "dovetail/experimental/__init__.pyi"}
    packed = {n for n in file.namelist() if ".dist-info/" not in n}
    assert packed - _compiled(file) == expected


def _compiled(wheel):
    """The compiled extension in a wheel, where it has one."""
    return {n for n in wheel.namelist() if n.startswith("dovetail_native_calls.")}


def test_metadata(wheel):
    name, file = wheel
    project = _project(name)
    metadata = email.message_from_string(_in_dist_info(file, "METADATA"))
    assert metadata["Name"] == project["name"]
    assert metadata["Version"] == project["version"]
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().startswith(f"# {project['name']}\n")
    assert _in_dist_info(file, "licenses/LICENSE") == (ROOT / "LICENSE").read_text()
    pure = "false" if _compiled(file) else "true"
    assert f"Root-Is-Purelib: {pure}" in _in_dist_info(file, "WHEEL")
    tag = "py3-none-any"
    if _compiled(file):
        python = f"cp{sys.version_info.major}{sys.version_info.minor}"
        tag = f"{python}-{python}-linux_"
    assert f"Tag: {tag}" in _in_dist_info(file, "WHEEL")


def test_entry_points(wheel):
    name, file = wheel
    parser = configparser.ConfigParser()
    if any(n.endswith("/entry_points.txt") for n in file.namelist()):
        parser.read_string(_in_dist_info(file, "entry_points.txt"))
    found = {section: dict(parser[section]) for section in parser.sections()}
    assert found == ENTRY_POINTS[name]


def test_types_are_there_for_checkers(wheel):
    name, file = wheel
    packages = {n.rpartition("/")[0] for n in file.namelist() if n.endswith("/__init__.py")}
    depth = 1 if name in ("numpy-api", "testing") else 0  # they own packages below `dovetail`
    roots = {package for package in packages if package.count("/") == depth}
    assert roots
    assert {f"{package}/py.typed" for package in roots} <= set(file.namelist())


@pytest.fixture
def python_without_ours(tmp_path):
    """The Python of a fresh environment that sees what we stand on, and nothing of ours."""
    beside = tmp_path / "beside"
    beside.mkdir()
    for site in map(Path, sys.path):
        for path in site.glob("*") if site.name == "site-packages" else ():
            ours = path.name.startswith(("dovetail", "_editable", "__pycache__"))
            if not ours and path.suffix != ".pth" and not (beside / path.name).exists():
                (beside / path.name).symlink_to(path)
    folder = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "beside.pth").write_text(f"{beside}\n")
    return str(folder / "bin" / "python")


@pytest.mark.parametrize("extras", ["cpu", "cpu,testing"])
def test_the_command_that_installs_the_wheels(tmp_path, wheels, python_without_ours, extras):
    """As README and the guide say it, but for the public index, which is not asked here."""
    documents = {"cpu": "README.md", "cpu,testing": "docs/write-a-backend.md"}
    command = f'pip install --find-links dist "dovetail-core[{extras}]"'
    assert f"`{command}`" in (ROOT / documents[extras]).read_text(encoding="utf-8")
    (tmp_path / "dist").mkdir()
    for wheel in wheels.values():
        shutil.copy(str(wheel.filename), tmp_path / "dist")
    pip, *words = shlex.split(command)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "PYTHON"))}
    environment["DOVETAIL_PLATFORMS"] = "cpu"

    def run(*arguments):
        whole = [python_without_ours, "-I", *arguments]
        done = subprocess.run(whole, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("-m", pip, words[0], "--no-index", *words[1:])
    run(str(Path(__file__).with_name("smoke.py")))
    told = run("-m", "dovetail", "doctor")
    assert ("dovetail-testing" in told) == ("testing" in extras)
    assert "No problems found." in told


def test_versions_are_one_and_pinned():
    projects = {name: _project(name) for name in FOLDERS}
    (version,) = {project["version"] for project in projects.values()}
    for project in projects.values():
        extras = project.get("optional-dependencies", {}).values()
        for text in [*project["dependencies"], *(t for extra in extras for t in extra)]:
            if text.startswith("dovetail"):
                assert text.endswith(f"=={version}"), text


def test_core_depends_on_little():
    names = {text.split(">=")[0] for text in _project("core")["dependencies"]}
    assert names == {"jaxlib", "ml_dtypes", "numpy", "pluggy"}


@pytest.mark.parametrize("name", FOLDERS)
def test_jax_is_no_dependency(name):
    project = _project(name)
    extras = project.get("optional-dependencies", {}).values()
    everything = [*project["dependencies"], *(t for extra in extras for t in extra)]
    assert not any(text.split(">")[0].split("=")[0].split("[")[0] == "jax" for text in everything)
