"""Trials of plug-ins in processes of their own, and a manager that knows what came of them.

A plug-in may end its process or never return. Here that is a failure like any other.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, Final, TypeAlias, cast

from dovetail._core.base.errors import BackendUnavailableError
from dovetail._core.base.records import record
from dovetail._core.plugins.discovery import (
    BACKENDS,
    EXPORTERS,
    EXTENSIONS,
    FoundPlugin,
    PluginSource,
)
from dovetail._core.plugins.exports import ExporterInfo
from dovetail._core.plugins.failures import Phase, PluginFailure
from dovetail._core.plugins.hookspecs import (
    ArrayMethods,
    BackendInfo,
    LoweringRule,
    OptionValue,
)
from dovetail._core.plugins.loading import LoadedBackend, LoadedExporter, LoadedPlugin
from dovetail._core.plugins.manager import PluginManager, add_new, merged_methods
from dovetail._core.plugins.platforms import configured_request
from dovetail._core.plugins.process_group import ProcessGroup
from dovetail._core.plugins.protocols import Client
from dovetail._core.plugins.surroundings import Meddling

__all__ = ["PATIENCE", "ProcessEndedError", "Trial", "TriedPlugins", "run_trials"]

PATIENCE: Final = 120.0
"""Seconds that a plug-in has. Drivers of large machines take half of it to start."""

_ANNOUNCED_SECONDS: Final = 10.0
_AT_ONCE: Final = max(1, min(4, os.cpu_count() or 1))
_KEPT_BYTES: Final = 4096
_SHOWN_LINES: Final = 6
_SHOWN_CHARACTERS: Final = 600
_LAST_READ_SECONDS: Final = 0.2
_CODE: Final = """
import sys
_, file, patience, count, *words = sys.argv
plugins, sys.path[:] = words[: int(count)], words[int(count) :]
from dovetail._core.api.plugin_trial import run_trial
run_trial(int(file), float(patience), *plugins)
"""

PluginKey: TypeAlias = tuple[str, str]
"""Entry-point group and name of a plug-in."""


class ProcessEndedError(Exception):
    """The process of a plug-in ended, or had to be ended, before it had answered."""


@record
class Trial:
    """What came of one plug-in.

    Attributes:
        known: what its process reported.
        failures: phase and error of what failed, in order.
    """

    known: Mapping[str, Any]
    failures: tuple[tuple[Phase, BaseException], ...]

    @property
    def info(self) -> BackendInfo | None:
        """The backend's description."""
        fields = self.known.get("info")
        if fields is None:
            return None
        fields = {name: tuple(v) if isinstance(v, list) else v for name, v in fields.items()}
        return BackendInfo(**{**fields, "capabilities": frozenset(fields["capabilities"])})


# --------------------------------------------------------------------------------- processes


class _Text:
    """The beginning and the end of what is read from a pipe."""

    def __init__(self) -> None:
        self.begin = b""
        self.end: bytes = b""
        self.size = 0

    def add(self, data: bytes) -> None:
        self.size += len(data)
        room = _KEPT_BYTES - len(self.begin)
        self.begin += data[:room]
        self.end = (self.end + data[room:])[-_KEPT_BYTES:] if len(data) > room else self.end

    def shown(self) -> str:
        """The text, shortened to its last lines."""
        text = (self.begin + self.end).decode(errors="replace").strip()
        lines = text.splitlines()
        shown = "\n".join(lines[-_SHOWN_LINES:])[-_SHOWN_CHARACTERS:]
        return f"... (of {self.size} bytes)\n{shown}" if len(shown) < len(text) else shown


class _Process:
    """A process that tries plug-ins, one after the other.

    Args:
        plugins: the plug-ins.
        patience: seconds that each of them has.
    """

    def __init__(self, plugins: list[PluginKey], patience: float) -> None:
        self.plugins = plugins
        self.patience = patience
        self.deadline = time.monotonic() + max(patience, PATIENCE)  # until the first one begins
        self.late = False
        self.report = b""
        self.output = {"stdout": _Text(), "stderr": _Text()}
        ours, theirs = os.pipe()
        words = [str(theirs), str(0.9 * patience), str(len(plugins))]  # the stack comes first
        words += [f"{group}/{name}" for group, name in plugins]
        words += [entry for entry in sys.path if isinstance(entry, str)]
        try:
            self.process = subprocess.Popen(
                [sys.executable, *_flags(), "-c", _CODE, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(theirs,),
                start_new_session=True,
            )
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.files: dict[int, Callable[[bytes], None]] = {
            ours: self._add_report,
            self.process.stdout.fileno(): self.output["stdout"].add,
            self.process.stderr.fileno(): self.output["stderr"].add,
        }
        self._ours = ours
        for file in self.files:
            os.set_blocking(file, False)

    @property
    def names(self) -> str:
        """The plug-ins, for messages."""
        return ", ".join(name for _, name in self.plugins)

    def _add_report(self, data: bytes) -> None:
        self.report += data
        if b'{"plugin"' in data:
            self.deadline = time.monotonic() + self.patience

    def read(self, file: int) -> bool:
        """Read what there is; False at the end."""
        try:
            data = os.read(file, 1 << 16)
        except BlockingIOError:
            return True
        self.files[file](data)
        return bool(data)

    def is_over(self) -> bool:
        """Whether the process has ended; it is ended when it is late."""
        if self.process.poll() is None and time.monotonic() > self.deadline:
            self.late = True
            self.kill()
        return self.process.poll() is not None

    def kill(self) -> None:
        """End the process and what it has started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        """Let go of the pipes."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        os.close(self._ours)
        self.process.stdout.close()
        self.process.stderr.close()

    def results(self) -> dict[PluginKey, Trial]:
        """What came of each plug-in; those that are not there have to be tried again, alone."""
        reports, stack = self._reports()
        whole = self.process.returncode == 0 and not self.late
        if not whole and all(known.get("done") for known in reports.values()):
            if len(self.plugins) > 1 and reports:
                return {}  # it ended badly at its very end: which of them is to blame?
            reports.setdefault(self.plugins[0], {})
        results = {}
        for position, (plugin, known) in enumerate(reports.items()):
            failures = [
                (cast("Phase", phase), _error(kind, text))
                for phase, kind, text in known.get("failures", ())
            ]
            if not known.get("done") or (not whole and position == len(reports) - 1):
                error = ProcessEndedError(self._end(_innermost(stack)))
                failures.append((known.get("phase", "import"), error))
            results[plugin] = Trial(known, tuple(failures))
        return results

    def _reports(self) -> tuple[dict[PluginKey, dict[str, Any]], list[str]]:
        """What is known of each plug-in that began, and the lines of a stack."""
        reports: dict[PluginKey, dict[str, Any]] = {}
        stack: list[str] = []
        current: dict[str, Any] = {}
        for line in self.report.decode(errors="replace").splitlines():
            try:
                known = json.loads(line)
            except ValueError:
                if line.startswith(("Thread ", "Current thread ")):
                    stack = []  # the main thread is the last one
                stack.append(line.strip())
                continue
            if "plugin" in known:
                group, name = known["plugin"]
                current = reports.setdefault((group, name), {})
            else:
                current.update(known)
        return reports, stack

    def _end(self, where: str) -> str:
        code = self.process.returncode
        if self.late:
            text = f"it did not return within {self.patience:g} seconds"
        elif code < 0:
            text = f"it ended its process by {_signal(-code)}"
        else:
            text = f"it ended its process with the exit code {code}"
        return text + (f", in {where}" if where else "")


def _innermost(stack: list[str]) -> str:
    """The innermost line of a stack that is not of the standard library, or else the innermost."""
    lines = [line for line in stack if line.startswith("File ")]
    library = os.path.join(os.path.dirname(os.__file__), "")
    theirs = (
        line
        for line in lines
        if not line.startswith('File "<frozen') and (library not in line or "site-packages" in line)
    )
    return next(theirs, lines[0] if lines else "")


def _error(kind: str, text: str) -> BaseException:
    """An exception that reads like one of another process."""
    if kind == BackendUnavailableError.__name__:
        return BackendUnavailableError(text)
    error: BaseException = type(kind, (Exception,), {})(text)
    return error


def _signal(number: int) -> str:
    try:
        return f"{signal.Signals(number).name} ({signal.strsignal(number)})"
    except ValueError:
        return f"the signal {number}"


def _flags() -> list[str]:
    """This interpreter's flags that decide what another one sees."""
    names = {"isolated": "-I", "ignore_environment": "-E", "no_user_site": "-s", "no_site": "-S"}
    flags = [flag for name, flag in names.items() if getattr(sys.flags, name)]
    flags += ["-B"] if sys.flags.dont_write_bytecode else []
    for name, value in sys._xoptions.items():
        flags += ["-X", name if value is True else f"{name}={value}"]
    for option in sys.warnoptions:
        flags += ["-W", option]
    return flags


def run_trials(
    batches: Iterable[list[PluginKey]], patience: float = PATIENCE
) -> tuple[dict[PluginKey, Trial], dict[str, str]]:
    """Try plug-ins in processes of their own, several at once.

    Args:
        batches: the plug-ins. Those of one batch share a process as long as it goes well; where it
            ends, the others are tried alone.
        patience: seconds that each of them has.

    Returns:
        What came of each, and what was written, shortened, by plug-in and stream.
    """
    waiting = deque(batches)
    running: list[_Process] = []
    results: dict[PluginKey, Trial] = {}
    output: dict[str, str] = {}
    announcement = time.monotonic() + _ANNOUNCED_SECONDS
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or running:
                while waiting and len(running) < _AT_ONCE:
                    process = _Process(waiting.popleft(), patience)
                    running.append(process)
                    for file in process.files:
                        selector.register(file, selectors.EVENT_READ, process)
                _read(selector, 0.02)
                for process in [process for process in running if process.is_over()]:
                    process.kill()  # what it has started
                    _read_rest(selector, process)
                    process.close()
                    running.remove(process)
                    found = process.results()
                    results.update(found)
                    waiting.extend([plugin] for plugin in process.plugins if plugin not in found)
                    if found:
                        for stream, text in process.output.items():
                            if text.size:
                                output[f"{process.names}, {stream}"] = text.shown()
                if time.monotonic() > announcement:
                    announcement += 1e9
                    names = ", ".join(process.names for process in running)
                    sys.stderr.write(f"waiting for {names}: each has {patience:g} seconds\n")
        finally:
            for process in running:
                process.kill()
                process.close()
    return results, output


def _read(selector: selectors.BaseSelector, seconds: float) -> None:
    """Read what processes have written."""
    for key, _ in selector.select(seconds):
        if not key.data.read(key.fd):
            selector.unregister(key.fd)


def _read_rest(selector: selectors.BaseSelector, process: _Process) -> None:
    """Read what a process has left in its pipes, which another one may keep open."""
    until = time.monotonic() + _LAST_READ_SECONDS
    while (left := set(process.files) & set(selector.get_map())) and time.monotonic() < until:
        _read(selector, 0.01)
    for file in left:
        selector.unregister(file)


# ----------------------------------------------------------------------------------- a manager


class TriedPlugins(PluginManager):
    """A manager whose plug-ins run in other processes: it only knows what came of each.

    Args:
        source: returns the plug-ins of a group; by default those of installed distributions.
        patience: seconds that each plug-in has.
    """

    def __init__(self, source: PluginSource | None = None, patience: float = PATIENCE) -> None:
        super().__init__(source)
        self._patience = patience
        self._trials: dict[PluginKey, Trial] = {}
        self._output: dict[str, str] = {}

    def output(self) -> dict[str, str]:
        """What plug-ins wrote, shortened, by plug-in and stream."""
        return dict(sorted(self._output.items()))

    def _trial(self, group: str, found: FoundPlugin) -> Trial:
        """What came of a plug-in; the first call tries all that are wanted."""
        key = (group, found.name)
        for names in (configured_request().names, ()):
            if key not in self._trials:  # all of them where those requested cannot be had
                trials, output = run_trials(self._untried(names), self._patience)
                self._trials.update(trials)
                self._output.update(output)
        trial = self._trials[key]
        for phase, error in trial.failures:
            self._keep(PluginFailure(found.name, found.origin, phase, error))
        for fields in trial.known.get("meddling", ()):
            meddling = Meddling(**fields)
            self._meddling[meddling.name, meddling.distribution, meddling.what] = meddling
        return trial

    def _untried(self, names: tuple[str, ...]) -> list[list[PluginKey]]:
        """The plug-ins to try, in batches: this project's own in one.

        Args:
            names: the backends to try, unless one of them is an alias; empty for all.
        """
        backends = self._entries()
        chosen = names if names and set(names) <= set(backends) else self.backend_names()
        wanted = {(BACKENDS, name): backends[name] for name in chosen if name in backends}
        wanted |= {(EXPORTERS, n): plugin for n, plugin in self._exporter_entries().items()}
        wanted |= {(EXTENSIONS, n): plugin for n, plugin in self._extension_entries().items()}
        left = {key: plugin for key, plugin in wanted.items() if key not in self._trials}
        own = [
            key for key, plugin in left.items() if type(plugin) is FoundPlugin and plugin.is_ours
        ]
        return [[key] for key in left if key not in own] + ([own] if own else [])

    def _load_backend(self, found: FoundPlugin) -> None:
        info = self._trial(BACKENDS, found).info
        if info is None:
            failure = self._failure(found)
            assert failure is not None, "a backend that did not load has said why"
            self._refused[found.name] = failure
            return
        name = f"backend {found.name}"
        self._backends[found.name] = LoadedBackend(found.name, object(), name, found.origin, info)

    def _load_exporter(self, found: FoundPlugin) -> None:
        fields = self._trial(EXPORTERS, found).known.get("exporter")
        if fields is not None:
            info = ExporterInfo(**{**fields, "api": tuple(fields["api"])})
            name = f"exporter {found.name}"
            self._exporters[found.name] = LoadedExporter(
                found.name, object(), name, found.origin, info
            )

    def _import_extensions(self) -> None:
        for name, found in self._extension_entries().items():
            trial = self._trial(EXTENSIONS, found)
            if "methods" in trial.known or not trial.failures:
                hook_name = f"extension {name}"
                self._extensions[name] = LoadedPlugin(name, object(), hook_name, found.origin)

    def probe(self, platform: str) -> str:
        """Whether a backend can run here, as its own probe said."""
        backend = self.load(platform)
        if backend is None:
            return super().probe(platform)
        missing = self._trials[BACKENDS, platform].known.get("missing")
        return str(self._failure(backend)) if missing is None else str(missing)

    def make_client(
        self,
        platform: str,
        options: Mapping[str, object] | None = None,
        processes: ProcessGroup | None = None,
    ) -> Client:
        """Something that lists the devices that the platform's client has."""
        backend = self.require(platform)
        self._raise_failure(backend, "environment")
        self._raise_failure(backend, "client")
        known = self._trials[BACKENDS, backend.name].known
        if "unavailable" in known:
            raise BackendUnavailableError(known["unavailable"])

        def devices() -> list[Any]:
            if "error" in known:
                raise _error(*known["error"])
            fields = ("id", "device_kind", "process_index")
            return [
                SimpleNamespace(**dict(zip(fields, device, strict=True)))
                for device in known["devices"]
            ]

        version = known.get("platform_version", "")
        return cast("Client", SimpleNamespace(devices=devices, platform_version=version))

    def lowerings(self, platform: str) -> Mapping[str, LoweringRule]:
        """No rules; an error if the backend's, or those of two extensions, are broken."""
        self._raise_failure(self._loaded_or_raise(platform), "lowerings")
        added: dict[str, Callable[..., Any]] = {}
        for extension in self.load_extensions():
            rules = self._trials[EXTENSIONS, extension.name].known.get("lowerings", {})
            if self._failure(extension, "lowerings") is None:
                with self._isolated(extension, "lowerings"):
                    add_new(added, dict.fromkeys(rules.get(platform, ()), add_new), "lowers")
        return {}

    def compile_options(
        self,
        platform: str,
        options: Mapping[str, OptionValue] | None = None,
        operations: frozenset[str] = frozenset(),
        shapes: frozenset[tuple[int, ...]] = frozenset(),
    ) -> dict[str, OptionValue]:
        """No options; an error if the backend's answer is broken."""
        self._raise_failure(self._loaded_or_raise(platform), "compile options")
        return {}

    def array_methods(self) -> ArrayMethods:
        """Names of operators, methods and properties, to find those that are defined twice."""
        merged = ArrayMethods()
        for extension in self.load_extensions():
            tables = self._trials[EXTENSIONS, extension.name].known.get("methods")
            if tables and self._failure(extension, "array methods") is None:
                with self._isolated(extension, "array methods"):
                    named: dict[str, Any] = {
                        kind: dict.fromkeys(names, add_new) for kind, names in tables.items()
                    }
                    merged = merged_methods(merged, ArrayMethods(**named))
        return merged

    def primitives(self) -> tuple[object, ...]:
        """None: those of extensions live in other processes."""
        self.load_extensions()
        return ()

    def _raise_failure(self, backend: LoadedBackend, phase: Phase) -> None:
        if self._failure(backend, phase) is not None:
            raise self._failed(backend, phase)
