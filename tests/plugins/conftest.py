"""Plug-ins that exist for one test: real distributions on `sys.path`, made of text."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from dovetail._core.base import config
from dovetail._core.plugins.manager import PluginManager

HEAD = "from dovetail.extend import *\n"

DESCRIBED = HEAD + textwrap.dedent(
    """
    @hookimpl
    def dovetail_backend_info():
        return BackendInfo(platform="{platform}", api=(1, 0), priority={priority})
    """
)
"""A backend that does nothing but describe itself."""


def described(platform: str, priority: int = 0, more: str = "") -> str:
    """Source of a backend's module: its description, and more hooks."""
    return DESCRIBED.format(platform=platform, priority=priority) + textwrap.dedent(more)


class Installer:
    """Writes distributions into a folder that is on `sys.path`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.modules: list[str] = []

    def __call__(
        self,
        distribution: str,
        entries: Mapping[str, str],
        modules: Mapping[str, str],
        *,
        group: str = "dovetail.backends",
        version: str = "1.0",
        suffix: str = "dist-info",
    ) -> None:
        """Install one distribution.

        Args:
            distribution: its name.
            entries: values of entry points by name.
            modules: sources by module name.
            group: entry-point group.
            version: its version.
            suffix: `dist-info` or `egg-info`.
        """
        for name, source in modules.items():
            (self.folder / f"{name}.py").write_text(source)
            self.modules.append(name)
        stem = distribution.replace("-", "_")
        metadata = self.folder / f"{stem}-{version}.{suffix}"
        metadata.mkdir()
        file = "METADATA" if suffix == "dist-info" else "PKG-INFO"
        (metadata / file).write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        )
        lines = "".join(f"{name} = {value}\n" for name, value in entries.items())
        (metadata / "entry_points.txt").write_text(f"[{group}]\n{lines}")
        importlib.invalidate_caches()

    def backend(self, platform: str, source: str, **options: str) -> None:
        """Install a backend of one module, `acme_<platform>`, in a distribution of that name."""
        module = f"acme_{platform}"
        self(options.pop("distribution", f"acme-{platform}"), {platform: module}, {module: source})


@pytest.fixture(scope="session")
def installer() -> type[Installer]:
    """`Installer`, for distributions that another process finds."""
    return Installer


@pytest.fixture
def install(tmp_path, monkeypatch):
    """An `Installer` whose folder is on `sys.path` for one test."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    installer = Installer(folder)
    yield installer
    for name in installer.modules:
        sys.modules.pop(name, None)


@pytest.fixture
def manager() -> PluginManager:
    """A manager of its own: nothing that a test does reaches the process's."""
    return PluginManager()


@pytest.fixture(autouse=True)
def _nothing_requested(monkeypatch):
    """Platforms are chosen automatically unless a test says otherwise."""
    monkeypatch.delenv("DOVETAIL_PLATFORMS", raising=False)
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    with config.platforms(None):
        yield


@pytest.fixture(autouse=True)
def _notes_of_its_own(tmp_path, monkeypatch):
    """Notes of plug-ins that run lie in a folder of the test: one that ends its process leaves one.

    The cache of compiled programs lies elsewhere (`tests/conftest.py`).
    """
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def source() -> Callable[..., str]:
    """`described`, for tests that install a backend."""
    return described


# --------------------------------------------------------------------------------- PJRT libraries

NATIVE = Path(__file__).parent / "native"


@pytest.fixture(scope="session")
def xla_cpu() -> Path:
    """The library in the wheel xla-cpu-pjrt: a real PJRT plug-in that was not written for us."""
    spec = importlib.util.find_spec("xla_plugins")
    for folder in spec.submodule_search_locations or () if spec else ():
        library = Path(folder, "xla_cpu_pjrt", "xla_cpu_pjrt.so")
        if library.is_file():
            return library
    pytest.skip("the wheel xla-cpu-pjrt is not installed")


class Compiler:
    """Compiles libraries out of `native/`, each once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self, name: str, source: str | Path, *words: str, include: Path | None = None
    ) -> Path:
        """Compile one library.

        Args:
            name: of the library.
            source: a file in `native/`, or any other.
            words: further arguments of the compiler.
            include: a folder of headers.
        """
        library = self.folder / f"{name}.so"
        headers = ("-isystem", str(include)) if include else ()
        command = ["gcc", "-shared", "-fPIC", "-O0", "-Wall", "-Werror", *headers]
        command += [str(NATIVE / source), "-o", str(library), *words, "-ldl"]
        answer = subprocess.run(command, capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr
        return library


@pytest.fixture(scope="session")
def compiler(tmp_path_factory) -> Compiler:
    """A `Compiler`, where there is gcc."""
    if shutil.which("gcc") is None:
        pytest.skip("there is no gcc on this machine")
    return Compiler(tmp_path_factory.mktemp("native"))


@pytest.fixture(scope="session")
def proxy(compiler, xla_cpu) -> Callable[..., Path]:
    """Compiles `native/proxy.c` with definitions such as ``MINOR=0``; ``LIBRARY`` by request."""

    def compiled(name: str, *definitions: str, works: bool = False) -> Path:
        words = [f"-D{definition}" for definition in definitions]
        if works:
            words.append(f'-DLIBRARY="{xla_cpu}"')
        return compiler(name, "proxy.c", *words, include=xla_cpu.parent / "include")

    return compiled


@pytest.fixture(scope="session")
def answer_of() -> Callable[..., dict]:
    """Runs a program in a process of its own, and gives the JSON that it prints last.

    Plug-ins are never unloaded, and some of these programs ended with their process once.
    """

    def run(program: str, *words: str, **variables: str) -> dict:
        environment = {**os.environ, **variables}
        for name in ("DOVETAIL_PLATFORMS", "JAX_PLATFORMS", "PJRT_NAMES_AND_LIBRARY_PATHS"):
            if name not in variables:
                environment.pop(name, None)
        answer = subprocess.run(
            [sys.executable, "-W", "error", "-c", program, *words],
            capture_output=True,
            text=True,
            env=environment,
            timeout=300,
        )
        assert answer.returncode == 0, f"{answer.returncode}: {answer.stderr}"
        return json.loads(answer.stdout.splitlines()[-1])

    return run
