"""The report of `python -m dovetail doctor`: every plug-in, its state, and why.

An examination starts every usable backend. By `TriedPlugins` each is started in a process of its
own, so that one that crashes or hangs does so alone.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, field
from typing import Literal, TypeAlias

from dovetail._core.base.config import disabled_plugins
from dovetail._core.base.errors import BackendUnavailableError
from dovetail._core.base.records import record
from dovetail._core.plugins.failures import PluginFailure
from dovetail._core.plugins.manager import PluginManager
from dovetail._core.plugins.protocols import Client

State: TypeAlias = Literal["ready", "cannot run here", "left out", "broken"]

_DISTRIBUTIONS = ("dovetail-core", "jaxlib", "numpy", "ml_dtypes", "pluggy")
_WHERE_INSTALLED = ("dovetail-native", "dovetail-testing")  # users need not have them


@record
class BackendReport:
    """One backend as the doctor found it.

    Attributes:
        platform: the platform's name.
        state: `ready` has devices; `cannot run here` lacks its hardware, which is no fault;
            `left out` was not loaded because the option `platforms` excludes it.
        origin: distribution and version.
        description: the backend's one-line description of itself.
        priority: its rank among the candidates for the default; None if it did not load.
        platform_version: the version reported by its client.
        devices: one line for each.
        phase: the step that failed, when broken.
        reason: why it is not ready.
    """

    platform: str
    state: State
    origin: str
    description: str = ""
    priority: int | None = None
    platform_version: str = ""
    devices: tuple[str, ...] = ()
    phase: str = ""
    reason: str = ""


@record
class ExporterReport:
    """One exporter as the doctor found it.

    Attributes:
        format: the format's name.
        state: `ready` or `broken`.
        origin: distribution and version.
        description: the exporter's one-line description of itself.
        phase: the step that failed, when broken.
        reason: why it is not ready.
    """

    format: str
    state: Literal["ready", "broken"]
    origin: str
    description: str = ""
    phase: str = ""
    reason: str = ""


@record
class Report:
    """Everything that the doctor found.

    Attributes:
        versions: versions of Python, the operating system and the distributions.
        backends: every installed backend, by name.
        extensions: origin of every loaded extension, by name.
        default_platform: the platform that computations run on; empty if there is none.
        default_reason: why it is the default, or why there is none.
        unused: why entry points of PJRT plug-ins for other frameworks offer no platform, by name.
        settings: lines about this process from other layers, by title.
        problems: what is installed but broken; empty if all is well.
        notes: what is odd and harms nobody: what plug-ins changed about the process, and was put
            back; distributions that are installed twice; names that the options leave out in vain.
        output: what plug-ins wrote, shortened, by plug-in and stream.
        exporters: every installed exporter, by format.
    """

    versions: Mapping[str, str]
    backends: tuple[BackendReport, ...]
    extensions: Mapping[str, str]
    default_platform: str
    default_reason: str
    unused: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    output: Mapping[str, str] = field(default_factory=dict)
    exporters: tuple[ExporterReport, ...] = ()

    @property
    def exit_code(self) -> int:
        """1 if something installed is broken or nothing can compute, otherwise 0."""
        return 1 if self.problems else 0


def versions() -> dict[str, str]:
    """Versions of Python, the operating system, and the distributions that core depends on.

    They include the compiled path of calls and the conformance kit if they are installed.
    """
    from importlib.metadata import PackageNotFoundError, version  # deferred: 20 ms

    by_name = {"python": platform.python_version(), "system": platform.platform()}
    for name in _DISTRIBUTIONS:
        try:
            by_name[name] = version(name)
        except PackageNotFoundError:
            by_name[name] = "not installed"
    for name in _WHERE_INSTALLED:
        with suppress(PackageNotFoundError):
            by_name[name] = version(name)
    return by_name


def examine(
    manager: PluginManager,
    settings: Mapping[str, str] | None = None,
    connect: Callable[[str], Client] | None = None,
) -> Report:
    """Load and start everything that is installed, and report the outcome.

    Args:
        manager: the plug-in manager to examine.
        settings: further lines to show, by title.
        connect: returns the client of a platform; by default a new one, with the backend's own
            options.
    """
    default, reason, chosen = "", "", None
    problems: list[str] = []
    try:
        choice = manager.choose()
        default, reason, chosen = choice.platforms[0], choice.reason, choice
    except BackendUnavailableError as error:
        reason = str(error)
        problems.append(f"no default platform: {' '.join(reason.split())}")
    left_out = {
        name: why
        for name, why in (chosen.refused if chosen else {}).items()
        if not manager.is_requested(name)
    }
    backends = tuple(
        BackendReport(name, "left out", manager.origin(name), reason=left_out[name])
        if name in left_out
        else _examine_backend(manager, name, connect or manager.make_client, bool(default))
        for name in manager.backend_names()
    )
    disabled = manager.disabled_backends()
    backends += tuple(
        BackendReport(name, "left out", origin, reason=_disabled_text())
        for name, origin in disabled.items()
    )
    exporters = tuple(_examine_exporter(manager, name) for name in manager.exporter_names())
    manager.array_methods()
    manager.primitives()
    installed = versions()
    reported = {failure.name for failure in manager.failures}
    problems += [
        str(failure)
        for failure in manager.failures
        if not (failure.phase == "client" and _is_merely_found(manager, failure.name))
    ]
    problems += [
        f"{b.platform} (from {b.origin}) failed at {b.phase}: {b.reason}"
        for b in backends
        if b.state == "broken" and b.platform not in reported
    ]
    problems += _version_problems(installed, manager)
    problems += [str(meddling) for meddling in manager.meddling if meddling.severe]
    notes = [str(meddling) for meddling in manager.meddling if not meddling.severe]
    return Report(
        versions=installed,
        backends=tuple(sorted(backends, key=lambda backend: backend.platform)),
        extensions={plugin.name: plugin.origin for plugin in manager.extensions()},
        default_platform=default,
        default_reason=reason,
        unused=dict(manager.foreign().unused),
        settings=dict(settings or {}),
        problems=tuple(problems),
        notes=(*notes, *manager.copies(), *manager.disabled_in_vain()),
        output=manager.output(),
        exporters=exporters,
    )


def _disabled_text() -> str:
    return f"the option disabled_plugins={disabled_plugins.value!r} leaves it out"


def _examine_backend(
    manager: PluginManager, name: str, connect: Callable[[str], Client], has_default: bool
) -> BackendReport:
    """Load, probe and start one backend; without a default platform none is started."""
    origin = manager.origin(name)
    backend = manager.load(name)
    if backend is None:
        return _broken(manager, BackendReport(name, "broken", origin))
    info = backend.info
    report = BackendReport(
        name, "ready", origin, description=info.described(), priority=info.priority
    )
    missing = manager.probe(name)
    if missing:
        if _failure(manager, name, origin) is not None:
            return _broken(manager, report)
        return _changed(report, state="cannot run here", reason=missing)
    try:
        manager.lowerings(name)
        manager.compile_options(name)
        client = connect(name)
        devices = tuple(
            f"{name}:{device.id} {device.device_kind} (process {device.process_index})"
            for device in client.devices()
        )
        return _changed(report, devices=devices, platform_version=str(client.platform_version))
    except BackendUnavailableError as error:
        if _failure(manager, name, origin) is None:  # not broken, just not requested
            reason = str(error) if has_default else "not started: there is no default platform"
            return _changed(report, state="left out", reason=reason.splitlines()[0])
        if _is_merely_found(manager, name):
            # Installed for another framework; it cannot say in advance what hardware it needs.
            return _changed(_broken(manager, report), state="cannot run here", phase="")
        return _broken(manager, report)
    except Exception as error:  # such as a client that cannot list its devices
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return _changed(report, state="broken", phase="client", reason=reason)


def _examine_exporter(manager: PluginManager, name: str) -> ExporterReport:
    """Load one exporter."""
    origin = manager.exporter_origin(name)
    exporter = manager.load_exporter(name)
    if exporter is not None:
        return ExporterReport(name, "ready", origin, exporter.info.description)
    failure = _failure(manager, name, origin)
    assert failure is not None, "an exporter that did not load has said why"
    error = " ".join(f"{type(failure.error).__name__}: {failure.error}".split())
    return ExporterReport(name, "broken", origin, phase=failure.phase, reason=error)


def _is_merely_found(manager: PluginManager, name: str) -> bool:
    """Whether a platform is a PJRT plug-in for other frameworks that nobody has requested."""
    plugin = manager.foreign().plugins.get(name)
    return plugin is not None and plugin.priority < 0


def _failure(manager: PluginManager, name: str, origin: str) -> PluginFailure | None:
    """The last failure of one backend."""
    failures = [f for f in manager.failures if (f.name, f.distribution) == (name, origin)]
    return failures[-1] if failures else None


def _broken(manager: PluginManager, report: BackendReport) -> BackendReport:
    failure = _failure(manager, report.platform, report.origin)
    if failure is None:
        return _changed(report, state="broken", reason="it was refused without a reason")
    error = " ".join(f"{type(failure.error).__name__}: {failure.error}".split())
    return _changed(report, state="broken", phase=failure.phase, reason=error)


def _changed(report: BackendReport, **changes: object) -> BackendReport:
    return BackendReport(**{**asdict(report), **changes})


def _version_problems(versions: Mapping[str, str], manager: PluginManager) -> list[str]:
    """First-party distributions whose version differs from core's: all are released together."""
    core = versions["dovetail-core"]
    origins = {manager.origin(name) for name in manager.backend_names()}
    origins |= {manager.exporter_origin(name) for name in manager.exporter_names()}
    origins |= {plugin.origin for plugin in manager.extensions()}
    origins |= {f"{name} {versions[name]}" for name in _WHERE_INSTALLED if name in versions}
    return [
        f"{origin} does not match dovetail-core {core}: install the same version of both"
        for origin in sorted(origins)
        if origin.startswith("dovetail-") and origin.rpartition(" ")[2] != core
    ]


def as_text(report: Report) -> str:
    """The report as text for people."""
    lines = ["  ".join(f"{name} {version}" for name, version in report.versions.items()), ""]
    rows = [("platform", "state", "priority", "distribution", "description")]
    for backend in report.backends:
        priority = "-" if backend.priority is None else str(backend.priority)
        rows.append(
            (backend.platform, backend.state, priority, backend.origin, backend.description)
        )
    if report.backends:
        lines += ["Backends", *_table(rows)]
        for backend in report.backends:
            lines += [f"    {device}" for device in backend.devices]
            if backend.reason:
                at = f"failed at {backend.phase}: " if backend.phase else ""
                lines.append(f"    {backend.platform}: {at}{backend.reason}")
    else:
        lines.append('Backends: none is installed. pip install "dovetail-core[cpu]"')
    lines += ["", "Extensions"]
    lines += _table(list(report.extensions.items())) or ["  none"]
    lines += ["", "Exporters"]
    shown = [(e.format, e.state, e.origin, e.description) for e in report.exporters]
    lines += (
        _table([("format", "state", "distribution", "description"), *shown])
        if shown
        else ["  none"]
    )
    for exporter in report.exporters:
        if exporter.reason:
            lines.append(f"    {exporter.format}: failed at {exporter.phase}: {exporter.reason}")
    if report.unused:
        lines += ["", "PJRT plug-ins that are not used", *_table(list(report.unused.items()))]
    lines += ["", f"Default platform: {report.default_platform or 'none'}"]
    lines += [f"    {line}" for line in report.default_reason.splitlines()]
    lines += [f"{title}: {text}" for title, text in report.settings.items()]
    if report.output:
        lines += ["", "What plug-ins wrote"]
        for title, text in report.output.items():
            lines += [f"  {title}:", *(f"    {line}" for line in text.splitlines())]
    if report.notes:
        lines += ["", "Notes", *(f"  {note}" for note in report.notes)]
    if report.problems:
        lines += ["", "Problems", *(f"  {problem}" for problem in report.problems)]
    else:
        lines += ["", "No problems found."]
    return "\n".join(lines)


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows with aligned columns, indented by two."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  " + "  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]


def as_json(report: Report) -> str:
    """The report as JSON for programs: the fields of `Report`, and `exit_code`."""
    return json.dumps({**asdict(report), "exit_code": report.exit_code}, indent=2)
