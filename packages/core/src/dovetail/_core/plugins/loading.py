"""Loads plug-ins one at a time and records failures.

Whatever a plug-in raises, `SystemExit` included, becomes a `PluginFailure`; only
`KeyboardInterrupt` passes. While code of a plug-in runs that is not this project's, a note on disk
says so, the process is kept as it was, and what takes long is announced.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pluggy

from dovetail._core.base.config import disabled_plugins, slow_plugin_seconds
from dovetail._core.base.errors import BackendUnavailableError, close_matches
from dovetail._core.base.interrupts import is_interrupt
from dovetail._core.base.locks import shared_lock
from dovetail._core.base.records import record
from dovetail._core.base.restoring import Restoring
from dovetail._core.base.source import warn
from dovetail._core.plugins import hookspecs
from dovetail._core.plugins.discovery import (
    BACKENDS,
    EXPORTERS,
    EXTENSIONS,
    FoundPlugin,
    InstalledPlugins,
    PluginSource,
    copies,
    find_plugins,
    normalized,
)
from dovetail._core.plugins.failures import Phase, PluginFailure
from dovetail._core.plugins.foreign import ForeignPlugins, find_foreign
from dovetail._core.plugins.hookspecs import PLUGIN_API, BackendInfo, CompileRequest, hookimpl
from dovetail._core.plugins.protocols import Executable, is_pjrt
from dovetail._core.plugins.waiting import announce_later, interruptibly

if TYPE_CHECKING:
    from dovetail._core.plugins.exports import ExporterInfo
    from dovetail._core.plugins.surroundings import Meddling

IN_PROCESS = "this process"
"""The origin of a plug-in that was registered and not installed."""

_WATCHED: Final[frozenset[Phase]] = frozenset(
    {"import", "info", "probe", "environment", "client", "lowerings", "primitives", "array methods"}
)

# One lock for every manager and for the clients (`runtime/devices/clients.py`). Hooks run under it
# and may ask for devices; asking for devices may create a client, which calls hooks. With two
# locks, two threads could take them in opposite orders and deadlock. This lock does not help a
# hook that waits for another thread which asks for devices.
plugin_lock: Final = shared_lock()


@record
class LoadedPlugin:
    """A plug-in whose hooks are registered.

    Attributes:
        name: for a backend the platform, for an exporter the format, otherwise the entry point's
            name.
        plugin: the module or object that implements its hooks.
        hook_name: its name in the hook machinery.
        origin: distribution and version, or `"this process"`.
        watched: the phases in which code runs that is not this project's; none for a plug-in that
            was registered.
    """

    name: str
    plugin: object
    hook_name: str
    origin: str
    watched: frozenset[Phase] = field(default=frozenset(), kw_only=True)


@record
class LoadedBackend(LoadedPlugin):
    """A backend whose description has been read and accepted.

    Attributes:
        info: its description of itself.
    """

    info: BackendInfo

    @property
    def platform(self) -> str:
        """Name of the platform."""
        return self.info.platform


@record
class LoadedExporter(LoadedPlugin):
    """An exporter whose description has been read and accepted.

    Attributes:
        info: its description of itself.
    """

    info: ExporterInfo


class _DefaultCompiler:
    """The default implementation of `dovetail_compile`, used when no plug-in answers."""

    @hookimpl(trylast=True)
    def dovetail_compile(self, request: CompileRequest) -> Executable:
        client = request.client
        if not is_pjrt(client):
            compiled: Executable = client.compile(request)
            return compiled
        if not request.load:  # callbacks will never run, and the client accepts none
            unloaded: Executable = client.compile(request.module, request.devices, request.options)
            return unloaded
        return interruptibly(_compiled, client, request)


def _compiled(client: Any, request: CompileRequest) -> Executable:
    # jaxlib takes callbacks only as a list, and with a module of its own.
    callbacks = [list(request.host_callbacks)] if request.host_callbacks else []
    arguments = (request.devices, request.options, *callbacks)
    if isinstance(request.module, bytes):
        from dovetail._core.hlo.context import parsed_alone  # deferred: loads MLIR

        with parsed_alone(request.module) as module:
            loaded: Executable = client.compile_and_load(module, *arguments)
            return loaded
    return client.compile_and_load(request.module, *arguments)  # type: ignore[no-any-return]


class PluginLoader:
    """The plug-ins of a process: installed, loaded, failed.

    Args:
        source: returns the plug-ins of a group; by default those of installed distributions.
    """

    keeps_notes = True
    """Whether notes on disk say which plug-in is running; not where another process looks on."""

    def __init__(self, source: PluginSource | None = None) -> None:
        self._source = InstalledPlugins() if source is None else source
        self._lock = plugin_lock
        self._hooks = pluggy.PluginManager("dovetail")
        self._hooks.add_hookspecs(hookspecs)
        self._hooks.register(_DefaultCompiler(), name="default compiler")
        self._found: dict[str, FoundPlugin] | None = None
        self._foreign = ForeignPlugins({}, {}, {}, ())
        self._backends: dict[str, LoadedBackend] = {}
        self._exporters: dict[str, LoadedExporter] = {}
        self._extensions: dict[str, LoadedPlugin] = {}
        self._extensions_loaded = False
        self._extensions_loading = False
        self._refused: dict[str, PluginFailure] = {}
        self._failures: dict[tuple[str, str, Phase], PluginFailure] = {}
        self._meddling: dict[tuple[str, str, str], Meddling] = {}
        self._ended: dict[tuple[str, str], int] = {}

    # ---------------------------------------------------------------------------- what there is

    def backend_names(self) -> tuple[str, ...]:
        """Names of the installed and registered backends, sorted; imports none of them.

        Those that the option `disabled_plugins` leaves out are not among them.
        """
        with self._lock:
            names = {*self._entries(), *self._backends}
            return tuple(sorted(names.difference(self.disabled_backends())))

    def disabled_backends(self) -> dict[str, str]:
        """Origins of the installed backends that the option `disabled_plugins` leaves out."""
        with self._lock:
            if not disabled_plugins.value:
                return {}
            found = self._entries()
            return {
                name: p.origin for name, p in found.items() if is_disabled(name, p.distribution)
            }

    @property
    def failures(self) -> tuple[PluginFailure, ...]:
        """Everything that failed so far, in the order it happened."""
        with self._lock:
            return tuple(self._failures.values())

    def extensions(self) -> tuple[LoadedPlugin, ...]:
        """The extensions loaded so far, by name."""
        with self._lock:
            return tuple(self._extensions[name] for name in sorted(self._extensions))

    def origin(self, platform: str) -> str:
        """The distribution and version that provide a backend, loaded or not; empty for none."""
        with self._lock:
            plugin = self._backends.get(platform) or self._entries().get(platform)
            return plugin.origin if plugin else ""

    @property
    def meddling(self) -> tuple[Meddling, ...]:
        """What plug-ins changed about the process, and what was put back."""
        with self._lock:
            return tuple(self._meddling.values())

    def output(self) -> dict[str, str]:
        """What plug-ins wrote, by plug-in and stream, where that was kept apart."""
        return {}

    def disabled_in_vain(self) -> list[str]:
        """What to say of names in the option `disabled_plugins` that no plug-in has."""
        found = [*self._entries().values()]
        for group in (EXPORTERS, EXTENSIONS):
            found += find_plugins(group, self._source)[0].values()
        names = {normalized(n) for plugin in found for n in (plugin.name, plugin.distribution)}
        listed = (disabled_plugins.value or "").split(",")
        return [
            f"the option disabled_plugins names {name!r}, and no plug-in has that name"
            for name in listed
            if name and normalized(name) not in names
        ]

    def copies(self) -> list[str]:
        """What to say of plug-ins whose distribution is installed more than once."""
        return [
            text
            for group in (BACKENDS, EXPORTERS, EXTENSIONS)
            for text in copies(group, self._source)
        ]

    def _entries(self) -> dict[str, FoundPlugin]:
        if self._found is None:
            own, duplicates = find_plugins(BACKENDS, self._source)
            self._foreign = find_foreign(self._source, own)
            self._found = {**own, **self._foreign.plugins}
            for failure in (*duplicates, *self._foreign.failures):
                self._keep(failure)
        return self._found

    def foreign(self) -> ForeignPlugins:
        """PJRT plug-ins not written for dovetail: those used, and why the others are not."""
        with self._lock:
            self._entries()
            return self._foreign

    # ---------------------------------------------------------------------------------- loading

    def load(self, platform: str) -> LoadedBackend | None:
        """Import one backend and read its description.

        Args:
            platform: the platform's own name, not an alias.

        Returns:
            The backend; None when it is not installed or failed. `failures` has the reason.
        """
        with self._lock:
            if platform in self.disabled_backends():
                return None
            if platform not in self._backends and platform not in self._refused:
                entry = self._entries().get(platform)
                if entry is not None:
                    self._load_backend(entry)
            return self._backends.get(platform)

    def _load_backend(self, found: FoundPlugin) -> None:
        loaded = self._import(found, f"backend {found.name}")
        if loaded is not None:
            info: BackendInfo | None = None
            with self._isolated(found, "info"):
                info = _checked_info(self._call(loaded, "dovetail_backend_info"), found.name)
            if info is not None:
                with self._isolated(found, "version"):
                    _check_version(info.api, "the backend")
                    self._backends[found.name] = LoadedBackend(
                        loaded.name,
                        loaded.plugin,
                        loaded.hook_name,
                        loaded.origin,
                        info,
                        watched=loaded.watched,
                    )
                    return
            self._forget(loaded.hook_name)
        failure = self._failure(found)
        assert failure is not None, "a backend that did not load has said why"
        self._refused[found.name] = failure

    def load_all(self) -> tuple[LoadedBackend, ...]:
        """Load every backend; return those that work by descending priority, then name."""
        with self._lock:
            loaded = [backend for name in self.backend_names() if (backend := self.load(name))]
            return tuple(sorted(loaded, key=lambda b: (-b.info.priority, b.platform)))

    def exporter_names(self) -> tuple[str, ...]:
        """Formats of the installed and registered exporters, sorted; imports none of them."""
        with self._lock:
            own = {name for name, e in self._exporters.items() if e.origin == IN_PROCESS}
            return tuple(sorted({*self._exporter_entries(), *own}))

    def _exporter_entries(self) -> dict[str, FoundPlugin]:
        """The installed exporters, but those that the option `disabled_plugins` leaves out."""
        return self._installed_in(EXPORTERS)

    def exporter_origin(self, name: str) -> str:
        """The distribution and version that provide an exporter, loaded or not; empty for none."""
        with self._lock:
            plugin = self._exporters.get(name) or self._exporter_entries().get(name)
            return plugin.origin if plugin else ""

    def load_exporter(self, name: str) -> LoadedExporter | None:
        """Import one exporter and read its description.

        Args:
            name: the format.

        Returns:
            The exporter; None when it is not installed or failed. `failures` has the reason.
        """
        with self._lock:
            found = self._exporter_entries().get(name)
            if name not in self._exporters and found and not self._failure(found):
                self._load_exporter(found)
            return self._exporters.get(name) if name in self.exporter_names() else None

    def _load_exporter(self, found: FoundPlugin) -> None:
        loaded = self._import(found, f"exporter {found.name}")
        if loaded is None:
            return
        info: ExporterInfo | None = None
        with self._isolated(found, "info"):
            info = self._described_exporter(loaded, found.name)
        if info is not None:
            with self._isolated(found, "version"):
                _check_version(info.api, "the exporter")
                self._exporters[found.name] = LoadedExporter(
                    found.name,
                    loaded.plugin,
                    loaded.hook_name,
                    loaded.origin,
                    info,
                    watched=loaded.watched,
                )
                return
        self._forget(loaded.hook_name)

    def _described_exporter(self, loaded: LoadedPlugin, name: str | None) -> ExporterInfo:
        """An exporter's description, if it is complete and has the right name."""
        from dovetail._core.plugins.exports import ExporterInfo  # deferred: few processes export

        info = self._call(loaded, "dovetail_exporter_info")
        if info is None:
            raise TypeError("it implements no dovetail_exporter_info, which every exporter needs")
        if not isinstance(info, ExporterInfo):
            raise TypeError(f"dovetail_exporter_info returned {info!r}: return an ExporterInfo")
        if name is not None and info.format != name:
            raise ValueError(
                f"the entry point is named {name!r} but the exporter says its format is "
                f"{info.format!r}: make them equal"
            )
        if not self._implements(loaded.plugin, "dovetail_export"):
            raise TypeError("it implements no dovetail_export, which every exporter needs")
        _check_api(info.api, "ExporterInfo")
        return info

    def load_extensions(self) -> tuple[LoadedPlugin, ...]:
        """Import every extension once, in the order of their names.

        Returns:
            Those that work; `failures` lists the others.
        """
        with self._lock:
            if not self._extensions_loaded and not self._extensions_loading:
                loading = partial(setattr, self, "_extensions_loading")
                # An extension may ask for them while it is imported.
                with Restoring(lambda: False, partial(loading, True), loading):
                    self._import_extensions()
                self._extensions_loaded = True
            return self.extensions()

    def _extension_entries(self) -> dict[str, FoundPlugin]:
        """The installed extensions, but those that the option `disabled_plugins` leaves out."""
        return self._installed_in(EXTENSIONS)

    def _installed_in(self, group: str) -> dict[str, FoundPlugin]:
        """The installed plug-ins of a group, but those that the options leave out."""
        installed, duplicates = find_plugins(group, self._source)
        for failure in duplicates:
            self._keep(failure)
        return {n: p for n, p in installed.items() if not is_disabled(n, p.distribution)}

    def _import_extensions(self) -> None:
        for name, extension in self._extension_entries().items():
            if name not in self._extensions:
                loaded = self._import(extension, f"extension {name}")
                if loaded is not None:
                    self._extensions[name] = loaded
        self._forget_extended()

    def _import(self, found: FoundPlugin, hook_name: str) -> LoadedPlugin | None:
        """Import a plug-in and register its hooks; None after a failure."""
        with self._isolated(found, "import"):
            plugin = found.load()
            with self._isolated(found, "register"):
                self._forget(hook_name)  # an interrupt may have ended an earlier attempt
                self._register_hooks(plugin, hook_name)
                phases = _watched_phases(found)
                return LoadedPlugin(found.name, plugin, hook_name, found.origin, watched=phases)
        return None

    def _register_hooks(self, plugin: object, hook_name: str) -> None:
        """Register with pluggy; refuse hooks that would never be called."""
        hooks = {name for name in vars(hookspecs) if name.startswith("dovetail_")}
        names = vars(plugin) if isinstance(plugin, ModuleType) else dir(plugin)
        try:
            self._hooks.register(plugin, name=hook_name)
            implemented = {caller.name for caller in self._hooks.get_hookcallers(plugin) or ()}
            for name in sorted(names):
                if not name.startswith("dovetail_") or not callable(getattr(plugin, name)):
                    continue
                if name not in hooks:
                    near = close_matches(name, hooks)
                    hint = f"did you mean {near[0]}?" if near else f"there are {sorted(hooks)}"
                    raise TypeError(f"there is no hook {name}; {hint}")
                if name not in implemented:
                    raise TypeError(f"{name} is not marked as a hook: write @hookimpl above it")
            if not implemented:
                raise TypeError(
                    "it implements no hook: mark functions named dovetail_... with "
                    "dovetail.extend.hookimpl"
                )
        except BaseException:
            self._forget(hook_name)  # pluggy may have stopped half-way
            raise

    def register(self, plugin: object, name: str) -> None:
        """Register a plug-in defined in this process, such as in a test or a notebook.

        Args:
            plugin: an object or module with functions marked by `hookimpl`. If it implements
                `dovetail_backend_info`, it is a backend; if `dovetail_exporter_info`, an exporter;
                otherwise an extension.
            name: name of the plug-in, for messages and `unregister`.

        Raises:
            ValueError: the name, or the backend's platform or exporter's format, is taken.
            TypeError: it implements no hook, an unknown one, or one with wrong arguments.
            BackendUnavailableError: it needs another version of the plug-in API.
        """
        with self._lock:
            if self._hooks.has_plugin(name):
                raise ValueError(f"a plug-in named {name!r} is registered already")
            try:
                self._register_hooks(plugin, name)
            except pluggy.PluginValidationError as error:
                raise TypeError(f"plug-in {name!r}: {error}") from error
            loaded = LoadedPlugin(name, plugin, name, IN_PROCESS)
            try:
                if self._implements(plugin, "dovetail_backend_info"):
                    info = _checked_info(self._call(loaded, "dovetail_backend_info"), None)
                    _check_version(info.api, "the backend")
                    if info.platform in self.backend_names():
                        raise ValueError(
                            f"plug-in {name!r}: the platform {info.platform!r} is there already, "
                            f"from {self.origin(info.platform)}; give the backend another name"
                        )
                    self._backends[info.platform] = LoadedBackend(
                        info.platform, plugin, name, IN_PROCESS, info
                    )
                elif self._implements(plugin, "dovetail_exporter_info"):
                    described = self._described_exporter(loaded, None)
                    _check_version(described.api, "the exporter")
                    if described.format in self.exporter_names():
                        raise ValueError(
                            f"plug-in {name!r}: there is an exporter of {described.format!r} "
                            f"already, from {self.exporter_origin(described.format)}; give the "
                            "format another name"
                        )
                    self._exporters[described.format] = LoadedExporter(
                        described.format, plugin, name, IN_PROCESS, described
                    )
                else:
                    self._extensions[name] = loaded
            except BaseException:
                self._forget(name)
                raise
            self._forget_choices()

    def unregister(self, name: str) -> None:
        """Undo `register`; clients created by the plug-in stay alive.

        Args:
            name: the name given to `register`.

        Raises:
            KeyError: no plug-in of this name was registered in this process.
        """
        with self._lock:
            for table in (self._backends, self._exporters, self._extensions):
                for key, loaded in list(table.items()):
                    if loaded.origin == IN_PROCESS and loaded.hook_name == name:
                        del table[key]
                        for failed in [
                            f for f in self._failures if f[:2] == (loaded.name, IN_PROCESS)
                        ]:
                            del self._failures[failed]
                        self._forget(name)
                        self._forget_choices()
                        return
            raise KeyError(f"no plug-in named {name!r} was registered in this process")

    # --------------------------------------------------------------------------------- plumbing

    def _implements(self, plugin: object, hook: str) -> bool:
        """Whether a registered plug-in implements a hook."""
        found = getattr(self._hooks.hook, hook).get_hookimpls()
        return any(implementation.plugin is plugin for implementation in found)

    def _call(self, plugin: LoadedPlugin, hook: str, **arguments: object) -> Any:
        """Call a hook on one plug-in only: pluggy stops at the first exception."""
        others = [
            other
            for name, other in self._hooks.list_name_plugin()
            if name != plugin.hook_name and other is not None
        ]
        return self._hooks.subset_hook_caller(hook, remove_plugins=others)(**arguments)

    @contextmanager
    def _isolated(self, plugin: FoundPlugin | LoadedPlugin, phase: Phase) -> Iterator[None]:
        """Run a plug-in's code; record any exception but those of signal handlers.

        One broken plug-in must not break the process or the other plug-ins: a default platform
        is still chosen, and the doctor reports every failure. `BaseException` is caught because
        a plug-in may call `sys.exit` on import or in a hook; what a signal handler raises comes
        from the user, not from the plug-in. The exception is swallowed, so the code after the
        `with` block runs only after a failure if the block ends in `return`. Entering a phase drops
        its earlier failure: a client that starts on the second attempt is no longer reported as
        broken.
        """
        self._failures.pop((plugin.name, plugin.origin, phase), None)
        known = plugin.watched if isinstance(plugin, LoadedPlugin) else _watched_phases(plugin)
        if phase in known:
            self._warn_of_ended(plugin)
        try:
            if phase in known:
                with self._watched(plugin, phase):
                    yield
            else:
                yield
        except BaseException as error:
            if is_interrupt(error):
                raise
            self._keep(PluginFailure(plugin.name, plugin.origin, phase, error))

    def _warn_of_ended(self, plugin: FoundPlugin | LoadedPlugin) -> None:
        """Warn of processes that ended while they ran a plug-in: once in this process.

        It is tried again. To leave it out without being asked could move a computation to another
        platform because somebody ended a process.
        """
        key = (plugin.name, plugin.origin)
        if key in self._ended or not self.keeps_notes:
            return
        from dovetail._core.plugins.attempts import earlier  # deferred: only for others' plug-ins

        ended = earlier(*key)
        self._ended[key] = ended.times
        if ended.times:
            several = f", as {ended.times} did since it worked" if ended.times > 1 else ""
            warn(
                f"the last process that used the dovetail plug-in {plugin.name} (from "
                f"{plugin.origin}) ended at {ended.phase!r} of this plug-in{several}: the plug-in "
                "may have crashed it, or may not have returned before the process was ended. It "
                f"is tried again. DOVETAIL_DISABLED_PLUGINS={plugin.name} leaves it out; so does "
                "DOVETAIL_PLATFORMS, with the platforms to use instead, such as cpu. `python -m "
                "dovetail doctor` examines it in a process of its own",
                RuntimeWarning,
            )

    @contextmanager
    def _watched(self, plugin: FoundPlugin | LoadedPlugin, phase: Phase) -> Iterator[None]:
        """Run code that is not this project's: note it on disk, announce it, undo its meddling."""
        from dovetail._core.plugins import attempts  # deferred: only for others' plug-ins
        from dovetail._core.plugins.surroundings import (  # deferred: only for others' plug-ins
            Meddling,
            Surroundings,
        )

        name, origin = plugin.name, plugin.origin
        times = self._ended.get((name, origin), 0) + 1
        begin = partial(attempts.begin, name, origin, phase, times)
        seconds = slow_plugin_seconds.value
        timer = announce_later(
            f"dovetail has been waiting for {seconds:g} s for the plug-in {name} (from {origin}), "
            f"at {phase!r}. To leave it out: DOVETAIL_DISABLED_PLUGINS={name}",
            seconds,
        )
        surroundings = Surroundings()
        try:
            # An interrupted phase is over, too.
            with Restoring(begin if self.keeps_notes else _nothing, _nothing, attempts.end):
                yield
        finally:
            if timer is not None:
                timer.cancel()
            for what, severe in surroundings.restore():
                meddling = Meddling(name, origin, phase, what, severe)
                self._meddling.setdefault((name, origin, what), meddling)
            surroundings.close()

    def _keep(self, failure: PluginFailure) -> None:
        self._failures[failure.name, failure.distribution, failure.phase] = failure

    def _failure(
        self, plugin: FoundPlugin | LoadedPlugin, phase: Phase | None = None
    ) -> PluginFailure | None:
        """The last failure of a plug-in, in one phase or in any."""
        failures = [
            failure
            for failure in self._failures.values()
            if (failure.name, failure.distribution) == (plugin.name, plugin.origin)
            and phase in (None, failure.phase)
        ]
        return failures[-1] if failures else None

    def _forget(self, hook_name: str) -> None:
        if self._hooks.has_plugin(hook_name):
            self._hooks.unregister(name=hook_name)

    def _forget_choices(self) -> None:
        """Called after a plug-in was added or removed; subclasses drop cached answers."""

    def _forget_extended(self) -> None:
        """The same after extensions were loaded: they bring no platforms."""


def _nothing() -> None:
    """There is nothing to do, or to undo."""


def is_disabled(name: str, distribution: str) -> bool:
    """Whether the option `disabled_plugins` leaves out a plug-in."""
    listed = [normalized(entry) for entry in (disabled_plugins.value or "").split(",") if entry]
    return normalized(name) in listed or (bool(distribution) and normalized(distribution) in listed)


def _watched_phases(found: FoundPlugin) -> frozenset[Phase]:
    """The phases of a plug-in in which code runs that is not this project's.

    The client of the CPU alone is jaxlib's; others load drivers.
    """
    if not found.is_ours:
        return _WATCHED
    return frozenset() if found.name == "cpu" else frozenset({"client"})


def _checked_info(info: object, platform: str | None) -> BackendInfo:
    """Return a backend's description if it is complete and names the right platform."""
    if info is None:
        raise TypeError("it implements no dovetail_backend_info, which every backend needs")
    if not isinstance(info, BackendInfo):
        raise TypeError(f"dovetail_backend_info returned {info!r}: return a BackendInfo")
    if platform is not None and info.platform != platform:
        raise ValueError(
            f"the entry point is named {platform!r} but the backend says its platform is "
            f"{info.platform!r}: make them equal"
        )
    _check_api(info.api, "BackendInfo")
    return info


def _check_api(api: object, kind: str) -> None:
    """Raise unless the version in a description is one."""
    if not (isinstance(api, tuple) and len(api) == 2 and all(type(n) is int for n in api)):
        raise TypeError(f"{kind}.api is {api!r}: write two numbers, such as {PLUGIN_API}")


def _check_version(api: tuple[int, int], kind: str) -> None:
    """Raise unless this dovetail has the hooks that a plug-in was written for."""
    if api[0] == PLUGIN_API[0] and api[1] <= PLUGIN_API[1]:
        return
    theirs, ours = (".".join(map(str, version)) for version in (api, PLUGIN_API))
    older = "dovetail" if api > PLUGIN_API else kind
    raise BackendUnavailableError(
        f"it was written for plug-in API {theirs} and this dovetail has {ours}: update {older}"
    )
