"""Finds plug-ins by their entry points; imports none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from dovetail.core.plugins.failures import PluginFailure

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BACKENDS: Final = "dovetail.backends"
EXTENSIONS: Final = "dovetail.extensions"

EntryPointSource: TypeAlias = "Callable[[str], Iterable[EntryPoint]]"


@dataclass(frozen=True, slots=True)
class FoundPlugin:
    """An entry point that nobody has imported yet.

    Attributes:
        name: the entry point's name: for a backend, the platform.
        distribution: name of the distribution that declares it.
        version: the distribution's version.
        entry_point: what `load()` imports.
    """

    name: str
    distribution: str
    version: str
    entry_point: EntryPoint

    @property
    def origin(self) -> str:
        """Distribution and version, for messages."""
        return f"{self.distribution} {self.version}".strip()


def installed_entry_points(group: str) -> Iterable[EntryPoint]:
    """The entry points of one group over all installed distributions."""
    from importlib.metadata import entry_points  # deferred: 15 ms that `import dovetail` saves

    return entry_points(group=group)


def find_plugins(
    group: str, source: EntryPointSource
) -> tuple[dict[str, FoundPlugin], list[PluginFailure]]:
    """List the plug-ins of a group, by name, in an order that is the same in every process.

    Where two distributions offer one name, `dovetail-<name>` is kept, otherwise the first by
    name; each of the others becomes a failure, because which of them ran would be a matter of luck.

    Args:
        group: entry-point group.
        source: where the entry points come from.

    Returns:
        The plug-ins by name, and what was wrong with those left out.
    """
    offers: dict[str, list[FoundPlugin]] = {}
    for entry in source(group):
        distribution = entry.dist.name if entry.dist is not None else "an unnamed distribution"
        version = entry.dist.version if entry.dist is not None else ""
        offers.setdefault(entry.name, []).append(
            FoundPlugin(entry.name, distribution, version, entry)
        )
    found: dict[str, FoundPlugin] = {}
    failures: list[PluginFailure] = []
    for name in sorted(offers):
        kept, *others = sorted(
            offers[name],
            key=lambda plugin: (
                plugin.distribution != f"dovetail-{name}",
                plugin.distribution,
                plugin.entry_point.value,
            ),
        )
        found[name] = kept
        for other in others:
            error = LookupError(
                f"{other.origin} and {kept.origin} both offer {name!r} in the group {group}; "
                f"{kept.origin} is used. Uninstall one of them"
            )
            failures.append(PluginFailure(name, other.origin, "find", error))
    return found, failures
