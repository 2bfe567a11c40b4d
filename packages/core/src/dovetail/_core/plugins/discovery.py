"""Finds plug-ins by their entry points, without importing them.

The folders on `sys.path` are read directly, because importing `importlib.metadata` takes longer
than creating a CPU client. `importlib.metadata` is used only when distributions may be elsewhere:
in archives on `sys.path`, or behind an importer with distributions of its own.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Final, TypeAlias

from dovetail._core.plugins.failures import PluginFailure

BACKENDS: Final = "dovetail.backends"
EXTENSIONS: Final = "dovetail.extensions"
HANDLES: Final = "dovetail.handles"
"""By name of an entry point of `FOREIGN`: the platform whose backend brings that hardware."""
FOREIGN: Final = ("jax_plugins", "xla_plugins")
"""The groups in which PJRT plug-ins that were not written for dovetail announce themselves."""


@dataclass(frozen=True, slots=True)
class FoundPlugin:
    """A plug-in that is installed but not yet imported.

    Attributes:
        name: the entry point's name: for a backend, the platform.
        value: the entry point's value: a module, optionally a colon and an object in it.
        distribution: name of the distribution that declares it.
        version: the distribution's version.
    """

    name: str
    value: str
    distribution: str = ""
    version: str = ""

    @property
    def origin(self) -> str:
        """Distribution and version, for messages."""
        return f"{self.distribution} {self.version}".strip()

    def load(self) -> object:
        """Import the module or object that `value` names."""
        module, _, attributes = (part.strip() for part in self.value.partition(":"))
        loaded: object = import_module(module)
        return reduce(getattr, attributes.split("."), loaded) if attributes else loaded


PluginSource: TypeAlias = Callable[[str], Iterable[FoundPlugin]]


def installed_plugins(group: str) -> Iterator[FoundPlugin]:
    """The entry points of one group over all installed distributions.

    If a distribution is installed twice, the first one on `sys.path` is used.

    Args:
        group: entry-point group.
    """
    yield from _installed((group,))[group]


class InstalledPlugins:
    """`installed_plugins` of every group that dovetail reads, with a single scan of the folders."""

    def __init__(self) -> None:
        self._found: dict[str, list[FoundPlugin]] | None = None

    def __call__(self, group: str) -> Iterable[FoundPlugin]:
        """The entry points of one group, as of the first call for any group."""
        if self._found is None:
            self._found = _installed((BACKENDS, EXTENSIONS, HANDLES, *FOREIGN))
        return self._found[group]


def _installed(groups: tuple[str, ...]) -> dict[str, list[FoundPlugin]]:
    """The entry points of some groups over all installed distributions, by group."""
    if not _only_folders():
        return {group: list(_plugins_by_metadata(group)) for group in groups}
    plugins: dict[str, list[FoundPlugin]] = {group: [] for group in groups}
    seen: set[str] = set()
    for path in dict.fromkeys(_search_path()):
        for folder in _metadata_folders(path or os.curdir):
            distribution = re.sub(r"[-_.]+", "-", os.path.basename(folder).split("-")[0]).lower()
            if distribution in seen:
                continue
            seen.add(distribution)
            entries = _read_groups(os.path.join(folder, "entry_points.txt"), groups)
            if entries:
                name, version = _read_name(folder)
                for group, key, value in entries:
                    plugins[group].append(FoundPlugin(key, value, name, version))
    return plugins


def _only_folders() -> bool:
    """Whether all distributions are in folders on `sys.path`."""
    importers = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions")]
    return importers == [PathFinder] and not any(
        path.endswith(".egg") or os.path.isfile(path) for path in _search_path()
    )


def _search_path() -> list[str]:
    """The entries of `sys.path` that Python uses; it ignores others, such as a `pathlib.Path`."""
    return [path for path in sys.path if isinstance(path, str)]


def _plugins_by_metadata(group: str) -> Iterator[FoundPlugin]:
    from importlib.metadata import entry_points  # deferred: takes 20 ms and is seldom needed

    for entry in entry_points(group=group):
        name, version = (entry.dist.name, entry.dist.version) if entry.dist else ("", "")
        yield FoundPlugin(entry.name, entry.value, name, version)


def _metadata_folders(path: str) -> list[str]:
    """The metadata folders of the distributions in a folder, sorted; none if unreadable."""
    try:
        names = os.listdir(path)
    except OSError:
        return []
    return [
        os.path.join(path, name)
        for name in sorted(names)
        if name.endswith((".dist-info", ".egg-info"))
    ]


def _read_groups(file: str, groups: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """Section, name and value of the entries in some sections of an entry-point file.

    Empty if there is no such file.
    """
    try:
        with open(file, encoding="utf-8", errors="replace") as stream:
            text = stream.read()
    except OSError:
        return []
    entries: list[tuple[str, str, str]] = []
    section = ""
    for line in text.splitlines() if any(group in text for group in groups) else ():
        line = line.strip()
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
        elif section in groups and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            entries.append((section, name.strip(), value.partition("[")[0].strip()))
    return entries


def _read_name(folder: str) -> tuple[str, str]:
    """Name and version of a distribution, from its metadata or else from the folder's name."""
    name, _, version = os.path.basename(folder).rpartition(".")[0].partition("-")
    fields = {"Name": name, "Version": version}
    for file in ("METADATA", "PKG-INFO"):
        try:
            with open(os.path.join(folder, file), encoding="utf-8", errors="replace") as stream:
                for line in stream:
                    key, colon, value = line.partition(":")
                    if not colon or not line.strip():
                        break
                    if key in fields:
                        fields[key] = value.strip()
        except OSError:
            continue
        break
    return fields["Name"], fields["Version"]


def find_plugins(
    group: str, source: PluginSource
) -> tuple[dict[str, FoundPlugin], list[PluginFailure]]:
    """List the plug-ins of a group, by name, in the same order in every process.

    If several distributions offer the same name, `dovetail-<name>` is used, or else the first in
    alphabetical order. Each of the others becomes a failure: otherwise it would be a matter of
    luck which one ran.

    Args:
        group: entry-point group.
        source: where the plug-ins come from.

    Returns:
        The plug-ins by name, and the failures of those left out.
    """
    offers: dict[str, list[FoundPlugin]] = {}
    for plugin in source(group):
        offers.setdefault(plugin.name, []).append(plugin)
    plugins: dict[str, FoundPlugin] = {}
    failures: list[PluginFailure] = []
    for name in sorted(offers):
        chosen, *others = sorted(
            offers[name],
            key=lambda plugin: (
                plugin.distribution != f"dovetail-{name}",
                plugin.distribution,
                plugin.value,
            ),
        )
        plugins[name] = chosen
        for other in others:
            error = LookupError(
                f"{other.origin} and {chosen.origin} both offer {name!r} in the group {group}; "
                f"{chosen.origin} is used. Uninstall one of them"
            )
            failures.append(PluginFailure(name, other.origin, "find", error))
    return plugins, failures
