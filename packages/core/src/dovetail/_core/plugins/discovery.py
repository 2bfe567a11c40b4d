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
from functools import reduce
from importlib import import_module
from importlib.machinery import PathFinder
from typing import Final, TypeAlias

from dovetail._core.base.records import record
from dovetail._core.plugins.failures import PluginFailure

BACKENDS: Final = "dovetail.backends"
EXPORTERS: Final = "dovetail.exporters"
EXTENSIONS: Final = "dovetail.extensions"
HANDLES: Final = "dovetail.handles"
"""By name of an entry point of `FOREIGN`: the platform whose backend brings that hardware."""
FOREIGN: Final = ("jax_plugins", "xla_plugins")
"""The groups in which PJRT plug-ins that were not written for dovetail announce themselves."""

# Their plug-ins are tested to do no harm; those of anybody else are watched (`loading.py`).
_OUR_NAMES: Final = ("cpu", "cuda", "onnx", "tpu")


@record
class FoundPlugin:
    """A plug-in that is installed but not yet imported.

    Attributes:
        name: the entry point's name: for a backend, the platform; for an exporter, the format.
        value: the entry point's value: a module, optionally a colon and an object in it.
        distribution: name of the distribution that declares it.
        version: the distribution's version.
        folder: the folder of the distribution's metadata; empty if it is unknown, or an archive.
        hidden: whether a distribution of that name stands earlier on `sys.path`.
    """

    name: str
    value: str
    distribution: str = ""
    version: str = ""
    folder: str = ""
    hidden: bool = False

    @property
    def origin(self) -> str:
        """Distribution and version, for messages."""
        return f"{self.distribution} {self.version}".strip()

    @property
    def place(self) -> str:
        """Distribution, version and folder, for messages about two of them."""
        folder = os.path.dirname(self.folder)
        return f"{self.origin} in {folder}" if folder else self.origin

    @property
    def module(self) -> str:
        """The first part of the name of the module that `value` names."""
        return self.value.partition(":")[0].strip().partition(".")[0]

    @property
    def is_ours(self) -> bool:
        """Whether it says that it is a part of this project: by its module and distribution."""
        return self.module == "dovetail" or (
            self.name in _OUR_NAMES
            and self.module == f"dovetail_{self.name}"
            and normalized(self.distribution) == f"dovetail-{self.name}"
        )

    def load(self) -> object:
        """Import the module or object that `value` names."""
        module, _, attributes = (part.strip() for part in self.value.partition(":"))
        loaded: object = import_module(module)
        return reduce(getattr, attributes.split("."), loaded) if attributes else loaded


def normalized(name: str) -> str:
    """A distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


PluginSource: TypeAlias = Callable[[str], Iterable[FoundPlugin]]


def installed_plugins(group: str) -> Iterator[FoundPlugin]:
    """The entry points of one group over all installed distributions.

    If a distribution is installed twice, the first one on `sys.path` is used.

    Args:
        group: entry-point group.
    """
    yield from (plugin for plugin in _installed((group,))[group] if not plugin.hidden)


class InstalledPlugins:
    """The entry points of every group that dovetail reads, with a single scan of the folders.

    Those of distributions that are installed twice are among them, marked as hidden.
    """

    def __init__(self) -> None:
        self._found: dict[str, list[FoundPlugin]] | None = None

    def __call__(self, group: str) -> Iterable[FoundPlugin]:
        """The entry points of one group, as of the first call for any group."""
        if self._found is None:
            self._found = _installed((BACKENDS, EXPORTERS, EXTENSIONS, HANDLES, *FOREIGN))
        return self._found[group]


def _installed(groups: tuple[str, ...]) -> dict[str, list[FoundPlugin]]:
    """The entry points of some groups over all installed distributions, by group."""
    if not _only_folders():
        return _plugins_by_metadata(groups)
    plugins: dict[str, list[FoundPlugin]] = {group: [] for group in groups}
    seen: set[str] = set()
    for path in dict.fromkeys(_search_path()):
        for folder in _metadata_folders(path or os.curdir):
            distribution = normalized(os.path.basename(folder).split("-")[0])
            hidden = distribution in seen
            seen.add(distribution)
            entries = _read_groups(os.path.join(folder, "entry_points.txt"), groups)
            if entries:
                name, version = _read_name(folder)
                for group, key, value in entries:
                    found = FoundPlugin(key, value, name, version, folder, hidden)
                    plugins[group].append(found)
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


def _plugins_by_metadata(groups: tuple[str, ...]) -> dict[str, list[FoundPlugin]]:
    from importlib.metadata import distributions  # deferred: takes 20 ms and is seldom needed

    plugins: dict[str, list[FoundPlugin]] = {group: [] for group in groups}
    seen: set[str] = set()
    for distribution in distributions():
        name, version = distribution.metadata["Name"] or "", distribution.version
        hidden = normalized(name) in seen
        seen.add(normalized(name))
        path = getattr(distribution, "_path", None)
        folder = os.fspath(path) if isinstance(path, os.PathLike) else ""
        for entry in distribution.entry_points:
            if entry.group in plugins:
                found = FoundPlugin(entry.name, entry.value, name, version, folder, hidden)
                plugins[entry.group].append(found)
    return plugins


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
    luck which one ran. `dovetail-<name>` is known by its files, not by its name alone.

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
        doubtful = len(offers[name]) > 1 or offers[name][0].hidden
        ranks = {plugin: _rank(plugin, doubtful) for plugin in offers[name]}
        visible = [plugin for plugin in offers[name] if not plugin.hidden or not ranks[plugin]]
        if not visible:
            continue  # the distributions that hide them offer nothing of that name
        chosen = min(
            visible,  # the order of `sys.path` decides between copies
            key=lambda p: (ranks[p], p.hidden, normalized(p.distribution), p.value),
        )
        plugins[name] = chosen
        for other in offers[name]:
            same = normalized(other.distribution) == normalized(chosen.distribution)
            false = same and ranks[other] > ranks[chosen]
            if other is not chosen and (false or not other.hidden):
                error = _conflict(other, chosen, group, false=false)
                place = other.place if false else other.origin
                failures.append(PluginFailure(name, place, "find", error))
    return plugins, failures


def copies(group: str, source: PluginSource) -> list[str]:
    """What to say of plug-ins whose distribution is installed more than once.

    Args:
        group: entry-point group.
        source: where the plug-ins come from.
    """
    found = list(source(group))
    used, _ = find_plugins(group, source)
    first = {normalized(p.distribution): p for p in reversed(found) if not p.hidden}
    texts = []
    for plugin in found:
        chosen = used.get(plugin.name) or first.get(normalized(plugin.distribution))
        if (
            plugin.hidden
            and chosen not in (None, plugin)
            and normalized(chosen.distribution) == normalized(plugin.distribution)
            and _rank(chosen, True) == _rank(plugin, True)  # otherwise it is a failure
        ):
            texts.append(f"{plugin.place} is not used: {chosen.place} stands earlier on sys.path")
    return texts


def _conflict(other: FoundPlugin, chosen: FoundPlugin, group: str, *, false: bool) -> LookupError:
    """The error for a plug-in whose name another one has.

    Args:
        other: the plug-in that is not used.
        chosen: the one that is.
        group: their group.
        false: whether the distribution of `other` calls itself by the name of the other's.
    """
    if false:
        return LookupError(
            f"{other.place} calls itself {normalized(chosen.distribution)} and has not its files; "
            f"{chosen.place} is used for {chosen.name!r} in the group {group}. Uninstall the former"
        )
    return LookupError(
        f"{other.origin} and {chosen.origin} both offer {chosen.name!r} in the group {group}; "
        f"{chosen.origin} is used. Uninstall one of them"
    )


def _rank(plugin: FoundPlugin, doubtful: bool) -> int:
    """Which of several plug-ins of a name comes first: 0 for the project's own, by its files.

    Args:
        plugin: the plug-in.
        doubtful: whether there is any other; otherwise no file is read.
    """
    if normalized(plugin.distribution) != f"dovetail-{normalized(plugin.name)}":
        return 2
    return 0 if doubtful and plugin.is_ours and _owns_its_module(plugin) else 1


def _owns_its_module(plugin: FoundPlugin) -> bool:
    """Whether a plug-in's distribution contains the module that its entry point names."""
    if not plugin.folder:
        return True
    try:
        with open(os.path.join(plugin.folder, "RECORD"), encoding="utf-8") as stream:
            files = [line.partition(",")[0] for line in stream]
    except (OSError, ValueError):  # some systems remove it, and others never write it
        return os.path.isdir(os.path.join(os.path.dirname(plugin.folder), plugin.module))
    # An editable installation has a file that puts a folder on `sys.path`.
    return any(file.startswith(f"{plugin.module}/") or file.endswith(".pth") for file in files)
