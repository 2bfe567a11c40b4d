"""The plug-in manager: platforms, clients, lowerings, compile options, array methods.

Nothing here runs at `import dovetail`. A backend is imported when it is requested by name, or when
the default platform is chosen. Its drivers are loaded when its client is created.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from dovetail._core.base.config import disabled_plugins, platform_name, platforms
from dovetail._core.base.errors import (
    BackendUnavailableError,
    ExporterUnavailableError,
    close_matches,
)
from dovetail._core.base.interrupts import is_interrupt
from dovetail._core.base.locks import shared_lock
from dovetail._core.base.source import warn
from dovetail._core.plugins.discovery import EXPORTERS, PluginSource, find_plugins
from dovetail._core.plugins.failures import Phase, PluginFailure
from dovetail._core.plugins.foreign import VARIABLE
from dovetail._core.plugins.hookspecs import (
    ArrayMethods,
    CompileRequest,
    HostFunction,
    LoweringRule,
    OptionValue,
)
from dovetail._core.plugins.loading import (
    IN_PROCESS,
    LoadedBackend,
    LoadedExporter,
    LoadedPlugin,
    PluginLoader,
)
from dovetail._core.plugins.platforms import (
    PlatformChoice,
    PlatformRequest,
    configured_request,
    install_hint,
    parse_request,
    with_default,
)
from dovetail._core.plugins.process_group import ProcessGroup
from dovetail._core.plugins.protocols import (
    Client,
    Device,
    Executable,
    is_pjrt,
    missing_members,
)

if TYPE_CHECKING:
    from dovetail._core.plugins.exports import ExportedProgram, ExportRequest


class PluginManager(PluginLoader):
    """All plug-ins of a process. Use `manager()`; tests create their own.

    Args:
        source: returns the plug-ins of a group; by default those of installed distributions.
    """

    def __init__(self, source: PluginSource | None = None) -> None:
        super().__init__(source)
        self._probed: dict[str, str] = {}
        self._choices: dict[tuple[PlatformRequest, str | None], PlatformChoice] = {}
        self._lowerings: dict[str, Mapping[str, LoweringRule]] = {}
        self._array_methods: ArrayMethods | None = None
        self._warned: set[PluginFailure] = set()

    # -------------------------------------------------------------------------------- platforms

    def canonical(self, platform: str) -> str:
        """The platform that a name or an alias stands for.

        Args:
            platform: a platform's name, or an alias such as `"gpu"`.

        Returns:
            The platform's own name. If several backends share the alias, the one with the highest
            priority that can run here; if none can run, the one with the highest priority.

        Raises:
            BackendUnavailableError: no platform of that name is installed.
        """
        with self._lock:
            if platform in self.backend_names():
                return platform
            if platform in self.disabled_backends():
                raise BackendUnavailableError(
                    f"the plug-in of the platform {platform!r} is left out by the option "
                    f"disabled_plugins={disabled_plugins.value!r}, which DOVETAIL_DISABLED_PLUGINS "
                    "sets: remove it there"
                )
            if platform in self.foreign().handled:
                return self.foreign().handled[platform]
            aliased = [b.platform for b in self.load_all() if platform in b.info.aliases]
            for name in aliased:
                if not self.probe(name):
                    return name
            if aliased:
                return aliased[0]
            raise BackendUnavailableError(self._unknown_text(platform))

    def require(self, platform: str) -> LoadedBackend:
        """The backend of a platform requested by name, ready to create a client.

        Args:
            platform: a platform's name or alias.

        Returns:
            The loaded backend; its probe succeeded.

        Raises:
            BackendUnavailableError: it is not installed, failed, cannot run on this machine, or
                is excluded by `DOVETAIL_PLATFORMS`. The message says which, and what to do.
        """
        with self._lock:
            name = self.canonical(platform)
            request = configured_request()
            if not self.is_requested(name):
                raise BackendUnavailableError(
                    f"platform {platform!r} is not among the platforms of this process: "
                    f"{request.source} leaves it out. Add {name!r} to the list, or remove the "
                    "setting"
                )
            return self._runnable(name)

    def _runnable(self, name: str) -> LoadedBackend:
        """A backend that can run here, whether or not the platform request lists it."""
        backend = self._loaded_or_raise(name)
        reason = self.probe(name)
        if reason:
            failure = self._failure(backend, "probe")
            if failure is not None:
                raise self._unavailable(name, failure)
            raise BackendUnavailableError(
                f"platform {name!r} cannot run on this machine: {reason}\n{self._installed_text()}"
            )
        return backend

    def probe(self, platform: str) -> str:
        """Whether a backend can run here, according to its own probe; called once per process.

        Args:
            platform: the platform's own name.

        Returns:
            `""` if it can, otherwise the reason why not.
        """
        with self._lock:
            if platform in self._probed:
                return self._probed[platform]
            backend = self.load(platform)
            if backend is None:
                refused = self._refused.get(platform)
                return str(refused) if refused else "it is not installed"
            with self._isolated(backend, "probe"):
                answer = self._call(backend, "dovetail_probe", platform=platform)
                if not isinstance(answer, str | None):
                    raise TypeError(
                        f"dovetail_probe returned {answer!r}: return '' or one sentence"
                    )
                self._probed[platform] = answer or ""
            if platform not in self._probed:
                self._probed[platform] = str(self._failure(backend, "probe"))
            return self._probed[platform]

    def reads_equations(self, platform: str) -> bool:
        """Whether a platform's backend compiles jaxprs rather than StableHLO.

        Args:
            platform: the platform's own name; one that is not installed takes StableHLO, as every
                platform does by default.
        """
        with self._lock:
            backend = self.load(platform)
            return backend is not None and backend.info.programs == "jaxpr"

    def resolve_platforms(self, requested: str | None = None) -> list[str]:
        """The platforms of this process, the default first.

        Args:
            requested: a comma-separated list of platforms; None takes the option `platforms`,
                which the environment variable `DOVETAIL_PLATFORMS` sets.

        Returns:
            Names of platforms, aliases resolved. If platforms were requested, exactly those, in
            that order; otherwise every platform that can run here, by descending priority, then
            name.

        Raises:
            BackendUnavailableError: a requested platform cannot be used, or none was requested and
                none can run.
        """
        with self._lock:
            return list(self.choose(requested).platforms)

    def choose(self, requested: str | None = None) -> PlatformChoice:
        """`resolve_platforms` with the reasons, for the doctor."""
        with self._lock:
            request = configured_request()
            if requested is not None and requested != platforms.value:
                request = parse_request(requested, f"platforms={requested!r}")
            key = (request, disabled_plugins.value)
            if key not in self._choices:
                choose = self._choose_requested if request.names else self._choose_by_priority
                self._choices[key] = choose(request)
            choice = self._choices[key]
            default = platform_name.value
            return with_default(choice, self.canonical(default)) if default else choice

    def is_requested(self, platform: str) -> bool:
        """Whether a platform may be used: yes, unless the option `platforms` excludes it."""
        request = configured_request()
        return not request.names or platform in self._canonical_names(request)

    def _canonical_names(self, request: PlatformRequest) -> tuple[str, ...]:
        names = []
        for name in request.names:
            try:
                names.append(self.canonical(name))
            except BackendUnavailableError as error:
                raise BackendUnavailableError(f"{request.source}: {error}") from None
        return tuple(dict.fromkeys(names))

    def _choose_requested(self, request: PlatformRequest) -> PlatformChoice:
        requested = self._canonical_names(request)
        for platform in requested:
            try:
                self._runnable(platform)
            except BackendUnavailableError as error:
                raise BackendUnavailableError(f"{request.source}: {error}") from error.__cause__
        left_out = [name for name in self.backend_names() if name not in requested]
        refused = dict.fromkeys(left_out, f"{request.source} leaves it out")
        return PlatformChoice(requested, f"{request.source} names it first", refused)

    def _choose_by_priority(self, request: PlatformRequest) -> PlatformChoice:
        loaded = self.load_all()
        usable = [b for b in loaded if not self.probe(b.platform)]
        refused = {n: self.probe(n) for n in self.backend_names() if self.probe(n)}
        if not usable:
            if not refused:
                raise BackendUnavailableError(
                    "no backend is installed, so there is no device to compute on. "
                    + install_hint("cpu")
                )
            lines = "".join(f"\n  {name}: {why}" for name, why in refused.items())
            raise BackendUnavailableError(
                f"none of the installed backends can run on this machine:{lines}"
                + ("" if "cpu" in refused else f"\n{install_hint('cpu')}")
            )
        default = usable[0]
        self._warn_of_failures(f"platform {default.platform!r} is the default without it")
        higher = [b.platform for b in loaded if b.info.priority > default.info.priority]
        reason = f"highest priority ({default.info.priority}) of the backends that can run here"
        if higher:
            reason += f"; {', '.join(higher)} would come first but cannot run"
        return PlatformChoice(tuple(b.platform for b in usable), reason, refused)

    def _warn_of_failures(self, consequence: str) -> None:
        """Warn once about each failure: a silent fallback would leave the user guessing."""
        for failure in self._failures.values():
            if failure not in self._warned:
                self._warned.add(failure)
                warn(
                    f"dovetail plug-in {failure}; {consequence}. `python -m dovetail doctor` "
                    "shows more",
                    RuntimeWarning,
                )

    # ------------------------------------------------------------------------- backends at work

    def make_client(
        self,
        platform: str,
        options: Mapping[str, object] | None = None,
        processes: ProcessGroup | None = None,
    ) -> Client:
        """Create a platform's client. The runtime calls this once per platform.

        Args:
            platform: a platform's name or alias.
            options: options for the backend, such as `num_devices`.
            processes: the processes that compute together; None if there is one alone.

        Returns:
            The client.

        Raises:
            BackendUnavailableError: as for `require`, or the backend failed to create the client;
                its exception is the cause.
        """
        with self._lock:
            backend = self.require(platform)
            if processes is not None and "processes" not in backend.info.capabilities:
                raise BackendUnavailableError(
                    f"the backend of the platform {backend.platform!r} ({backend.origin}) does not "
                    f"compute in several processes, and this is process {processes.process_index} "
                    f"of {processes.process_count}: leave out distributed.initialize(), or choose "
                    "another platform with DOVETAIL_PLATFORMS"
                )
            self._set_environment(backend)
            with self._isolated(backend, "client"):
                client: Client = self._call(
                    backend,
                    "dovetail_make_client",
                    platform=backend.platform,
                    options=dict(options or {}),
                    processes=processes,
                )
                missing = [] if is_pjrt(client) else missing_members(client, Client)
                if missing:
                    raise TypeError(
                        f"dovetail_make_client returned {client!r}, which is no Client: it lacks "
                        f"{', '.join(missing)}"
                    )
                _check_hashable(client.devices())
                _check_hashable(client.local_devices())
                return client
            raise self._failed(backend, "client")

    def topology(
        self, platform: str, name: str = "", options: Mapping[str, object] | None = None
    ) -> list[Device]:
        """Devices of a platform for ahead-of-time compilation only.

        The platform need not be able to run here, nor be one of this process's platforms.

        Args:
            platform: a platform's name or alias.
            name: the backend's name for the hardware; `""` leaves the choice to the backend.
            options: the user's further options.

        Returns:
            The devices; at least one.

        Raises:
            BackendUnavailableError: the platform is unknown, its backend does not compile ahead of
                time, or something needed for that is not installed.
            ValueError: the backend does not know the name, or the value of an option.
            TypeError: the backend does not know an option.
        """
        with self._lock:
            backend = self._loaded_or_raise(platform)
            self._set_environment(backend)
            try:
                described = self._call(
                    backend,
                    "dovetail_topology",
                    platform=backend.platform,
                    name=name,
                    options=dict(options or {}),
                )
                _check_hashable(described or ())
            except (ValueError, TypeError):
                raise
            except Exception as error:
                if is_interrupt(error):
                    raise
                # Not recorded as a failure: programs that run here do not need what is missing.
                raise BackendUnavailableError(
                    f"programs for the platform {backend.platform!r} cannot be compiled ahead of "
                    f"time: {error}"
                ) from error
        devices: list[Device] = list(described or ())
        if not devices:
            raise BackendUnavailableError(
                f"the backend of the platform {backend.platform!r} ({backend.origin}) describes no "
                "devices that are not here: it compiles nothing ahead of time"
            )
        return devices

    def _set_environment(self, backend: LoadedBackend) -> None:
        """Set the variables that a backend's driver needs, unless the user has set them."""
        for variable, value in self.environment(backend.platform).items():
            os.environ.setdefault(variable, value)

    def environment(self, platform: str) -> Mapping[str, str]:
        """Environment variables that a backend needs when its driver is loaded."""
        with self._lock:
            backend = self._loaded_or_raise(platform)
            with self._isolated(backend, "environment"):
                merged: dict[str, str] = {}
                for answer in self._call(
                    backend, "dovetail_environment", platform=backend.platform
                ):
                    merged.update(answer or {})
                return merged
            raise self._failed(backend, "environment")

    def lowerings(self, platform: str) -> Mapping[str, LoweringRule]:
        """Lowering rules of a platform by primitive name: its backend's, then the extensions'.

        An extension's rule overrides the backend's. If two extensions have a rule for the same
        primitive, the second one fails.

        Args:
            platform: the platform's own name. It need not be able to run here: modules can be
                lowered for a platform anywhere.

        Raises:
            BackendUnavailableError: the platform is unknown, or its backend's table is broken.
        """
        with self._lock:
            if platform not in self._lowerings:
                backend = self._loaded_or_raise(platform)
                rules = self._tables(backend, platform)
                if rules is None:
                    raise self._failed(backend, "lowerings")
                added: dict[str, LoweringRule] = {}
                for extension in self.load_extensions():
                    with self._isolated(extension, "lowerings"):
                        add_new(added, self._tables(extension, platform) or {}, "lowers")
                self._lowerings[platform] = {**rules, **added}
            return self._lowerings[platform]

    def _tables(self, plugin: LoadedPlugin, platform: str) -> dict[str, LoweringRule] | None:
        """One plug-in's lowering rules; None after a failure."""
        with self._isolated(plugin, "lowerings"):
            rules: dict[str, LoweringRule] = {}
            for table in self._call(plugin, "dovetail_lowerings", platform=platform):
                for primitive, rule in (table or {}).items():
                    if not isinstance(primitive, str) or not callable(rule):
                        raise TypeError(
                            f"dovetail_lowerings returned {primitive!r}: {rule!r}; it maps names "
                            "of primitives to functions"
                        )
                    rules[primitive] = rule
            return rules
        return None

    def compile_options(
        self,
        platform: str,
        options: Mapping[str, OptionValue] | None = None,
        operations: frozenset[str] = frozenset(),
        shapes: frozenset[tuple[int, ...]] = frozenset(),
    ) -> dict[str, OptionValue]:
        """Compiler options for a platform: its backend's, the extensions', then the user's.

        Args:
            platform: the platform's own name.
            options: the user's options, which take precedence.
            operations: the names of the program's operations.
            shapes: the shapes of its arrays.

        Raises:
            BackendUnavailableError: the platform is unknown, or its backend's answer is invalid.
        """
        with self._lock:
            backend = self._loaded_or_raise(platform)
            requested = dict(options or {})
            merged: dict[str, OptionValue] = {}
            for plugin in (backend, *self.load_extensions()):
                with self._isolated(plugin, "compile options"):
                    for answer in self._call(
                        plugin,
                        "dovetail_compile_options",
                        platform=backend.platform,
                        options=requested,
                        operations=operations,
                        shapes=shapes,
                    ):
                        merged.update(answer or {})
            if self._failure(backend, "compile options"):
                raise self._failed(backend, "compile options")
            return {**merged, **requested}

    def host_functions(self, platform: str) -> Mapping[tuple[str, str], HostFunction]:
        """The functions by which a platform computes small arrays without a program.

        Args:
            platform: the platform's own name.

        Returns:
            Functions by primitive and dtype; none if the backend has none, or fails.
        """
        with self._lock:
            backend = self._loaded_or_raise(platform)
            with self._isolated(backend, "host functions"):
                answer = self._call(backend, "dovetail_host_functions", platform=backend.platform)
                return dict(answer or {})
            return {}

    def compile(self, request: CompileRequest) -> Executable:
        """Compile through the hooks of the platform's backend and of every extension.

        Unlike elsewhere, exceptions reach the caller: they are the compiler's verdict on the
        user's program.

        Args:
            request: the module and its target.

        Returns:
            The loaded executable.
        """
        # Without the lock: another thread may hold it, in a hook that computes, while it waits for
        # this program.
        backends = list(self._backends.values())
        own = self._backends.get(request.platform)
        others = [backend.plugin for backend in backends if backend is not own]
        caller = self._hooks.subset_hook_caller("dovetail_compile", remove_plugins=others)
        executable: Executable = caller(request=request)
        return executable

    # -------------------------------------------------------------------------------- exporters

    def require_exporter(self, name: str) -> LoadedExporter:
        """The exporter of a format requested by name.

        Args:
            name: the format.

        Raises:
            ExporterUnavailableError: it is not installed, or failed; the message says what to do.
            TypeError: the name is no string.
        """
        if not isinstance(name, str):
            raise TypeError(f"the format comes first, a name such as 'onnx', got {name!r:.80}")
        with self._lock:
            exporter = self.load_exporter(name)
            if exporter is not None:
                return exporter
            origin = self.exporter_origin(name)
            names = self.exporter_names()
            listed = ", ".join(f"{known} ({self.exporter_origin(known)})" for known in names)
            installed = f"Installed exporters: {listed or 'none'}."
            failures = [
                f for f in self._failures.values() if (f.name, f.distribution) == (name, origin)
            ]
            if not failures and name in find_plugins(EXPORTERS, self._source)[0]:
                raise ExporterUnavailableError(
                    f"the exporter of {name!r} is left out by the option disabled_plugins="
                    f"{disabled_plugins.value!r}, which DOVETAIL_DISABLED_PLUGINS sets: remove it "
                    "there"
                )
            if not failures:
                near = close_matches(name.lower(), names)
                suggestion = f" Did you mean {near[0]!r}?" if near else ""
                hint = "\nTo install it: pip install dovetail-onnx" if name == "onnx" else ""
                raise ExporterUnavailableError(
                    f"unknown format {name!r}: no exporter of that name is installed.{suggestion}\n"
                    f"{installed}{hint}"
                )
            error = ExporterUnavailableError(
                f"the format {name!r} cannot be used: {failures[-1]}\n{installed}\nUpdate or "
                f"reinstall {origin.split()[0]}; `python -m dovetail doctor` shows every plug-in."
            )
            raise error from failures[-1].error

    def export(self, exporter: LoadedExporter, request: ExportRequest) -> ExportedProgram:
        """Have an exporter write a program.

        Exceptions reach the caller: they are the exporter's verdict on the user's program.

        Args:
            exporter: the exporter.
            request: the program.

        Raises:
            TypeError: what it returned is no `ExportedProgram`.
        """
        from dovetail._core.plugins.exports import ExportedProgram  # deferred: few processes export

        # Without the lock, as for `compile`.
        exported = self._call(exporter, "dovetail_export", request=request)
        if not isinstance(exported, ExportedProgram):
            raise TypeError(
                f"dovetail_export of {exporter.name} (from {exporter.origin}) returned "
                f"{exported!r:.80}, which is no ExportedProgram"
            )
        return exported

    # ------------------------------------------------------------------------------- extensions

    def array_methods(self) -> ArrayMethods:
        """Operators, methods and properties of arrays, merged over all extensions."""
        with self._lock:
            self.load_extensions()
            if self._array_methods is None:
                merged = ArrayMethods()
                for extension in self.extensions():
                    with self._isolated(extension, "array methods"):
                        for answer in self._call(extension, "dovetail_array_methods"):
                            merged = merged_methods(merged, answer)
                self._array_methods = merged
            return self._array_methods

    def primitives(self) -> tuple[object, ...]:
        """Primitives added by extensions, in the order of the extensions' names."""
        with self._lock:
            primitives: list[object] = []
            for extension in self.load_extensions():
                with self._isolated(extension, "primitives"):
                    for answer in self._call(extension, "dovetail_primitives"):
                        primitives.extend(answer or ())
            return tuple(primitives)

    # -------------------------------------------------------------------------------- messages

    def _forget_choices(self) -> None:
        self._probed.clear()
        self._choices.clear()
        self._forget_extended()

    def _forget_extended(self) -> None:
        self._lowerings.clear()
        self._array_methods = None

    def _loaded_or_raise(self, platform: str) -> LoadedBackend:
        name = self.canonical(platform)
        backend = self.load(name)
        if backend is None:
            raise self._unavailable(platform, self._refused[name])
        return backend

    def _failed(self, backend: LoadedBackend, phase: Phase) -> BackendUnavailableError:
        """The error for a backend that has just failed in a phase."""
        failure = self._failure(backend, phase)
        assert failure is not None, "a phase without a result has a failure"
        return self._unavailable(backend.platform, failure)

    def _unavailable(self, platform: str, failure: PluginFailure) -> BackendUnavailableError:
        """The error for a requested platform that failed, with the plug-in's error as its cause."""
        source = failure.distribution
        reason = str(failure)
        own = failure.phase in ("probe", "client")
        if own and isinstance(failure.error, BackendUnavailableError):
            # The plug-in's own message already says what is wrong and what to do.
            reason = str(failure.error)
            advice = "`python -m dovetail doctor` shows every plug-in."
        elif source == IN_PROCESS:
            advice = "Mend the plug-in that was registered in this process."
        elif source == VARIABLE:
            advice = f"Mend the environment variable {VARIABLE}, or what it names."
        else:
            advice = (
                f"Update or reinstall {source.split()[0]}; `python -m dovetail doctor` shows "
                "every plug-in."
            )
        error = BackendUnavailableError(
            f"platform {platform!r} cannot be used: {reason}\n{self._installed_text()}\n{advice}"
        )
        error.__cause__ = failure.error
        return error

    def _unknown_text(self, platform: str) -> str:
        names = {*self.backend_names(), *(a for b in self.load_all() for a in b.info.aliases)}
        near = close_matches(platform.lower(), names)
        suggestion = f" Did you mean {near[0]!r}?" if near else ""
        hint = install_hint(platform)
        return (
            f"unknown platform {platform!r}: no backend of that name is installed.{suggestion}\n"
            + self._installed_text()
            + (f"\n{hint}" if hint else "")
        )

    def _installed_text(self) -> str:
        names = self.backend_names()
        listed = ", ".join(f"{name} ({self.origin(name)})" for name in names)
        return f"Installed backends: {listed or 'none'}."


def _check_hashable(devices: Iterable[Device]) -> None:
    """Raise unless each device is hashable: devices are keys of shardings and programs.

    Args:
        devices: the backend's devices.

    Raises:
        TypeError: a device is not hashable.
    """
    for device in devices:
        try:
            hash(device)
        except TypeError as error:
            raise TypeError(
                f"the device {device!r} cannot be hashed ({error}): give {type(device).__name__} a "
                "__hash__ that goes with its __eq__, or neither of them"
            ) from error


def add_new(
    table: dict[str, Callable[..., Any]], more: Mapping[str, Callable[..., Any]], verb: str
) -> None:
    """Add one extension's entries to the table: all of them or, on a conflict, none."""
    twice = sorted(set(table) & set(more))
    if twice:
        raise ValueError(f"another extension {verb} {', '.join(twice)} already")
    table.update(more)


def merged_methods(merged: ArrayMethods, answer: ArrayMethods | None) -> ArrayMethods:
    """Array methods merged with those of one more extension."""
    if answer is None:
        return merged
    if not isinstance(answer, ArrayMethods):
        raise TypeError(f"dovetail_array_methods returned {answer!r}: return an ArrayMethods")
    kinds = ("operators", "methods", "properties")
    taken = {name: _taken for kind in kinds for name in getattr(merged, kind)}
    tables: dict[str, dict[str, Callable[..., Any]]] = {}
    for kind in kinds:
        add_new(taken, getattr(answer, kind), "defines for arrays")
        tables[kind] = {**getattr(merged, kind), **getattr(answer, kind)}
    return ArrayMethods(**tables, compiled=merged.compiled | answer.compiled)


def _taken() -> None:
    """A placeholder for a name that is already defined; it is never called."""


_manager: PluginManager | None = None
_manager_lock = shared_lock()


def use_manager(chosen: PluginManager) -> None:
    """Give this process another manager, before it has used one.

    Args:
        chosen: the manager.
    """
    global _manager
    _manager = chosen


def manager() -> PluginManager:
    """The plug-in manager of this process, created on first use."""
    global _manager
    if _manager is None:
        with _manager_lock:
            if _manager is None:
                _manager = PluginManager()
    return _manager
