"""Plug-ins that exist for one test: real distributions on `sys.path`, made of text."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from dovetail.core.base import config
from dovetail.core.plugins.manager import PluginManager

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


@pytest.fixture
def source() -> Callable[..., str]:
    """`described`, for tests that install a backend."""
    return described
