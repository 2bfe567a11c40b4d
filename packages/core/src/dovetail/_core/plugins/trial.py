"""Plug-ins, imported and started one after the other in a process that serves nothing else.

The process that asks for this reads JSON objects line by line: which plug-in and which phase
begins, and what is known by now. So it knows most of it if this process ends or is ended.
"""

from __future__ import annotations

import faulthandler
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from typing import Any

from dovetail._core.base.errors import BackendUnavailableError
from dovetail._core.plugins.discovery import BACKENDS, EXPORTERS, EXTENSIONS, FoundPlugin
from dovetail._core.plugins.failures import Phase
from dovetail._core.plugins.loading import LoadedPlugin
from dovetail._core.plugins.manager import PluginManager
from dovetail._core.plugins.protocols import Client

__all__ = ["Reporter", "TrialManager", "try_plugin"]


class Reporter:
    """Writes what is known to a file descriptor.

    Args:
        file: the descriptor.
        patience: seconds after which the stack is written there, for a plug-in that hangs.
    """

    def __init__(self, file: int, patience: float) -> None:
        self.file = file
        self.patience = patience
        faulthandler.enable(file, all_threads=False)

    def begin(self, group: str, name: str) -> None:
        """Write which plug-in begins, and give it its time."""
        self(plugin=[group, name])
        faulthandler.dump_traceback_later(self.patience, file=self.file)

    def __call__(self, **known: object) -> None:
        """Write one line."""
        line = json.dumps(known).encode() + b"\n"
        with suppress(OSError):  # the plug-in has closed it
            while line:
                line = line[os.write(self.file, line) :]


class TrialManager(PluginManager):
    """A manager that knows one plug-in alone, and reports each phase.

    Args:
        group: entry-point group of the plug-in.
        name: name of its entry point.
        report: is called with what is known.
    """

    keeps_notes = False

    def __init__(self, group: str, name: str, report: Callable[..., object]) -> None:
        super().__init__()
        self._group = group
        self._name = name
        self._report = report

    def _entries(self) -> dict[str, FoundPlugin]:
        return self._only(BACKENDS, super()._entries())

    def _exporter_entries(self) -> dict[str, FoundPlugin]:
        return self._only(EXPORTERS, super()._exporter_entries())

    def _extension_entries(self) -> dict[str, FoundPlugin]:
        return self._only(EXTENSIONS, super()._extension_entries())

    def _only(self, group: str, entries: dict[str, FoundPlugin]) -> dict[str, FoundPlugin]:
        wanted = group == self._group
        return {name: p for name, p in entries.items() if wanted and name == self._name}

    @contextmanager
    def _isolated(self, plugin: FoundPlugin | LoadedPlugin, phase: Phase) -> Iterator[None]:
        self._report(phase=phase)
        with super()._isolated(plugin, phase):
            yield

    def all_platforms(self) -> list[str]:
        """Every installed platform, of which this manager knows one at most."""
        return sorted(super()._entries())

    def rules_of(self, extension: LoadedPlugin) -> dict[str, list[str]]:
        """Names of the primitives that an extension lowers, by platform."""
        return {
            platform: sorted(self._tables(extension, platform) or ())
            for platform in self.all_platforms()
        }


def try_plugin(
    manager: TrialManager, report: Callable[..., object], connect: Callable[[str], Client]
) -> None:
    """Import and start the plug-in, and report everything that the doctor shows.

    Args:
        manager: the manager that knows it.
        report: is called with what is known.
        connect: returns the client of a platform.
    """
    if manager._group == BACKENDS:
        _try_backend(manager, manager._name, report, connect)
    elif manager._group == EXPORTERS:
        exporter = manager.load_exporter(manager._name)
        if exporter is not None:
            report(exporter=asdict(exporter.info))
    else:
        _try_extension(manager, report)
    report(
        failures=[
            [failure.phase, type(failure.error).__name__, str(failure.error)]
            for failure in manager.failures
            if failure.phase != "find"
        ],
        meddling=[asdict(meddling) for meddling in manager.meddling],
        phase="exit",
        done=True,
    )


def _try_backend(
    manager: TrialManager,
    name: str,
    report: Callable[..., object],
    connect: Callable[[str], Client],
) -> None:
    backend = manager.load(name)
    if backend is None:
        return
    info = asdict(replace(backend.info, description=backend.info.described()))
    report(info={**info, "capabilities": sorted(info["capabilities"])})
    missing = manager.probe(name)
    report(missing=missing)
    if missing:
        return
    try:
        manager.lowerings(name)
        manager.compile_options(name)
        report(phase="client")
        client = connect(name)
        devices = [(d.id, str(d.device_kind), d.process_index) for d in client.devices()]
        report(devices=devices, platform_version=str(client.platform_version))
    except BackendUnavailableError as error:
        report(unavailable=str(error))
    except Exception as error:  # such as a client that cannot list its devices
        report(error=[type(error).__name__, str(error)])


def _try_extension(manager: TrialManager, report: Callable[..., object]) -> None:
    for extension in manager.load_extensions():
        methods = manager.array_methods()
        tables: dict[str, Any] = {
            kind: sorted(getattr(methods, kind)) for kind in ("operators", "methods", "properties")
        }
        manager.primitives()
        report(methods=tables, lowerings=manager.rules_of(extension))
