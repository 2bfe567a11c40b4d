"""Finds plug-ins, loads them one at a time, and keeps what failed.

Nothing here runs at `import dovetail`. A backend is imported when it is asked for by name, or when
the default platform is chosen; its drivers are loaded when its client is made. Whatever a plug-in
raises, `SystemExit` included, becomes a `PluginFailure`; only `KeyboardInterrupt` passes.
"""

from __future__ import annotations

import difflib
import os
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import pluggy

from dovetail.core.base.config import platforms
from dovetail.core.base.errors import BackendUnavailableError
from dovetail.core.plugins import hookspecs
from dovetail.core.plugins.discovery import (
    BACKENDS,
    EXTENSIONS,
    FoundPlugin,
    PluginSource,
    find_plugins,
    installed_plugins,
)
from dovetail.core.plugins.failures import Phase, PluginFailure
from dovetail.core.plugins.hookspecs import (
    PLUGIN_API,
    ArrayMethods,
    BackendInfo,
    CompileRequest,
    LoweringRule,
    OptionValue,
    hookimpl,
)
from dovetail.core.plugins.platforms import (
    PlatformChoice,
    PlatformRequest,
    configured_request,
    install_hint,
    parse_request,
)
from dovetail.core.plugins.protocols import Client, Executable, missing_members

_IN_PROCESS = "this process"


@dataclass(frozen=True, slots=True)
class LoadedBackend:
    """A backend whose description was read and accepted.

    Attributes:
        info: what it says about itself.
        plugin: the module or object that implements its hooks.
        plugin_name: its name in the hook machinery.
        origin: distribution and version, or `"this process"`.
    """

    info: BackendInfo
    plugin: object
    plugin_name: str
    origin: str

    @property
    def platform(self) -> str:
        """Name of the platform."""
        return self.info.platform


class _DefaultCompiler:
    """The answer to `dovetail_compile` when no plug-in gives another."""

    @hookimpl(trylast=True)
    def dovetail_compile(self, request: CompileRequest) -> Executable:
        return request.client.compile_and_load(
            request.module, request.devices, request.options, request.host_callbacks
        )


class PluginManager:
    """All plug-ins of a process. Use `manager()`; tests make their own.

    Args:
        source: gives the plug-ins of a group; those of the installed distributions by default.
    """

    def __init__(self, source: PluginSource = installed_plugins) -> None:
        self._source = source
        self._lock = threading.RLock()
        self._hooks = pluggy.PluginManager("dovetail")
        self._hooks.add_hookspecs(hookspecs)
        self._hooks.register(_DefaultCompiler(), name="default compiler")
        self._found: dict[str, FoundPlugin] | None = None
        self._backends: dict[str, LoadedBackend] = {}
        self._extensions: dict[str, str] | None = None
        self._in_process_extensions: dict[str, str] = {}
        self._refused: dict[str, PluginFailure] = {}
        self._failures: dict[tuple[str, str, Phase], PluginFailure] = {}
        self._probed: dict[str, str] = {}
        self._choices: dict[PlatformRequest, PlatformChoice] = {}
        self._lowerings: dict[str, Mapping[str, LoweringRule]] = {}
        self._array_methods: ArrayMethods | None = None
        self._warned: set[PluginFailure] = set()

    # ---------------------------------------------------------------------------- what there is

    def backend_names(self) -> tuple[str, ...]:
        """Names of the installed and registered backends, sorted; imports none of them."""
        with self._lock:
            return tuple(sorted({*self._entries(), *self._backends}))

    @property
    def failures(self) -> tuple[PluginFailure, ...]:
        """Everything that failed so far, in the order it happened."""
        with self._lock:
            return tuple(self._failures.values())

    def extensions(self) -> dict[str, str]:
        """Distribution and version of every extension loaded so far, by name."""
        with self._lock:
            both = {**(self._extensions or {}), **self._in_process_extensions}
            return dict(sorted(both.items()))

    def origin(self, name: str) -> str:
        """Distribution and version that bring the backend of this name, loaded or not."""
        with self._lock:
            if name in self._backends:
                return self._backends[name].origin
            found = self._entries().get(name)
            return found.origin if found else ""

    def _entries(self) -> dict[str, FoundPlugin]:
        if self._found is None:
            self._found, duplicates = find_plugins(BACKENDS, self._source)
            for failure in duplicates:
                self._keep(failure)
        return self._found

    # ---------------------------------------------------------------------------------- loading

    def load(self, platform: str) -> LoadedBackend | None:
        """Import one backend and read its description.

        Args:
            platform: the platform's own name, not an alias.

        Returns:
            The backend; None when it is not installed or failed, which `failures` then tells.
        """
        with self._lock:
            if platform in self._backends or platform in self._refused:
                return self._backends.get(platform)
            found = self._entries().get(platform)
            if found is None:
                return None
            plugin_name = f"backend {platform}"
            plugin = self._import(found, plugin_name)
            if plugin is not None:
                self._describe(platform, plugin, plugin_name, found.origin)
            failure = self._last_failure(platform, found.origin)
            if platform not in self._backends and failure is not None:
                self._refused[platform] = failure
                self._forget(plugin_name)
            return self._backends.get(platform)

    def load_all(self) -> tuple[LoadedBackend, ...]:
        """Load every backend, by name; those that work, by descending priority, then name."""
        with self._lock:
            loaded = [backend for name in self.backend_names() if (backend := self.load(name))]
            return tuple(sorted(loaded, key=lambda b: (-b.info.priority, b.platform)))

    def _import(self, found: FoundPlugin, plugin_name: str) -> object | None:
        """Import a plug-in and register its hooks; None after a failure."""
        plugin: object | None = None
        with self._isolated(found.name, found.origin, "import"):
            plugin = found.load()
        if plugin is None:
            return None
        registered = False
        with self._isolated(found.name, found.origin, "register"):
            self._register_hooks(plugin, plugin_name)
            registered = True
        return plugin if registered else None

    def _register_hooks(self, plugin: object, plugin_name: str) -> None:
        """Register with pluggy, and refuse hooks that would never be called."""
        known = {name for name in vars(hookspecs) if name.startswith("dovetail_")}
        try:
            self._hooks.register(plugin, name=plugin_name)
            implemented = {caller.name for caller in self._hooks.get_hookcallers(plugin) or ()}
            for name in sorted(vars(plugin) if isinstance(plugin, ModuleType) else dir(plugin)):
                value = getattr(plugin, name, None)
                if not name.startswith("dovetail_") or not callable(value):
                    continue
                if name not in known:
                    near = difflib.get_close_matches(name, known, n=1)
                    hint = f"; did you mean {near[0]}?" if near else ""
                    raise TypeError(f"there is no hook {name}{hint} The hooks: {sorted(known)}")
                if name not in implemented:
                    raise TypeError(f"{name} is not marked: write @hookimpl above it")
            if not implemented:
                raise TypeError(
                    "it implements no hook: mark functions named dovetail_... with "
                    "dovetail.extend.hookimpl"
                )
        except BaseException:
            self._forget(plugin_name)
            raise

    def _describe(self, platform: str, plugin: object, plugin_name: str, origin: str) -> None:
        """Ask a registered plug-in for its description, and accept or refuse it."""
        info: object = None
        with self._isolated(platform, origin, "info"):
            info = self._call(plugin_name, "dovetail_backend_info")
            _check_info(info, platform)
        if not isinstance(info, BackendInfo) or self._last_failure(platform, origin, "info"):
            return
        with self._isolated(platform, origin, "version"):
            _check_version(info)
            self._backends[platform] = LoadedBackend(info, plugin, plugin_name, origin)

    def register(self, plugin: object, name: str) -> None:
        """Register a plug-in made in this process: a test's, or a notebook's.

        Args:
            plugin: an object or module with functions marked by `hookimpl`. With
                `dovetail_backend_info` it is a backend, otherwise an extension.
            name: name of the plug-in, for messages and `unregister`.

        Raises:
            ValueError: the name, or the backend's platform, is taken.
            TypeError: it implements no hook, an unknown one, or one with wrong arguments.
            BackendUnavailableError: it wants another version of the plug-in API.
        """
        with self._lock:
            if self._hooks.has_plugin(name):
                raise ValueError(f"a plug-in named {name!r} is registered already")
            try:
                self._register_hooks(plugin, name)
            except pluggy.PluginValidationError as error:
                raise TypeError(f"plug-in {name!r}: {error}") from error
            try:
                if callable(getattr(plugin, "dovetail_backend_info", None)):
                    info = self._call(name, "dovetail_backend_info")
                    platform = info.platform if isinstance(info, BackendInfo) else name
                    _check_info(info, platform)
                    _check_version(info)
                    if platform in self.backend_names():
                        raise ValueError(
                            f"plug-in {name!r}: the platform {platform!r} is there already, from "
                            f"{self.origin(platform)}; give the backend another platform name"
                        )
                    self._backends[platform] = LoadedBackend(info, plugin, name, _IN_PROCESS)
                else:
                    self._in_process_extensions[name] = _IN_PROCESS
            except BaseException:
                self._forget(name)
                raise
            self._clear_answers()

    def unregister(self, name: str) -> None:
        """Undo `register`; clients that the plug-in made stay alive.

        Args:
            name: the name given to `register`.

        Raises:
            KeyError: no plug-in of this name was registered in this process.
        """
        with self._lock:
            platforms = [p for p, b in self._backends.items() if b.plugin_name == name]
            if not platforms and name not in self._in_process_extensions:
                raise KeyError(f"no plug-in named {name!r} was registered in this process")
            for platform in platforms:
                del self._backends[platform]
            self._in_process_extensions.pop(name, None)
            self._forget(name)
            self._clear_answers()

    def load_extensions(self) -> tuple[str, ...]:
        """Import every extension once, by name.

        Returns:
            Names of those that work; `failures` tells about the others.
        """
        with self._lock:
            if self._extensions is None:
                self._extensions = {}
                found, duplicates = find_plugins(EXTENSIONS, self._source)
                for failure in duplicates:
                    self._keep(failure)
                for name, extension in found.items():
                    if self._import(extension, f"extension {name}") is not None:
                        self._extensions[name] = extension.origin
                self._clear_answers()
            return tuple(self.extensions())

    # -------------------------------------------------------------------------------- platforms

    def canonical(self, platform: str) -> str:
        """The platform that a name or an alias stands for.

        Args:
            platform: a platform's name, or an alias such as `"gpu"`.

        Returns:
            The platform's own name. Of several backends with the alias, the first that can run
            counts, by priority; when none can, the first.

        Raises:
            BackendUnavailableError: nothing of that name is installed.
        """
        with self._lock:
            if platform in self.backend_names():
                return platform
            aliased = [b.platform for b in self.load_all() if platform in b.info.aliases]
            for name in aliased:
                if not self.probe(name):
                    return name
            if aliased:
                return aliased[0]
            raise BackendUnavailableError(self._unknown_text(platform))

    def require(self, platform: str) -> LoadedBackend:
        """The backend of a platform that was asked for by name, ready to make a client.

        Args:
            platform: a platform's name or alias.

        Returns:
            The loaded backend; its probe found nothing missing.

        Raises:
            BackendUnavailableError: it is not installed, failed, cannot run on this machine, or
                is left out by `DOVETAIL_PLATFORMS`. The message says which, and what to do.
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
            failure = self._last_failure(name, backend.origin, "probe")
            if failure is not None:
                raise self._unavailable(name, failure)
            raise BackendUnavailableError(
                f"platform {name!r} cannot run on this machine: {reason}\n{self._installed_text()}"
            )
        return backend

    def probe(self, platform: str) -> str:
        """Whether a backend can run here, from its own probe; asked once for each process.

        Args:
            platform: the platform's own name.

        Returns:
            `""` when it can, otherwise why not.
        """
        with self._lock:
            if platform in self._probed:
                return self._probed[platform]
            backend = self.load(platform)
            if backend is None:
                refused = self._refused.get(platform)
                return str(refused) if refused else "it is not installed"
            answer: object = None
            with self._isolated(platform, backend.origin, "probe"):
                answer = self._call(backend.plugin_name, "dovetail_probe", platform=platform)
                if not isinstance(answer, str | None):
                    raise TypeError(
                        f"dovetail_probe returned {answer!r}: return '' or one sentence"
                    )
            failure = self._last_failure(platform, backend.origin, "probe")
            self._probed[platform] = str(failure) if failure else str(answer or "")
            return self._probed[platform]

    def resolve_platforms(self, requested: str | None = None) -> list[str]:
        """The platforms of this process, the default first.

        Args:
            requested: a comma-separated list of platforms; None takes the option `platforms`,
                which the environment variable `DOVETAIL_PLATFORMS` sets.

        Returns:
            Names of platforms, aliases resolved. Where platforms were asked for, exactly these in
            their order; otherwise every platform that can run here, by descending priority, then
            name.

        Raises:
            BackendUnavailableError: a platform that was asked for cannot be used, or nothing was
                asked for and nothing can run.
        """
        with self._lock:
            return list(self.choose(requested).platforms)

    def choose(self, requested: str | None = None) -> PlatformChoice:
        """`resolve_platforms` with the reasons; the doctor prints it."""
        with self._lock:
            request = configured_request()
            if requested is not None and requested != platforms.value:
                request = parse_request(requested, f"platforms={requested!r}")
            if request not in self._choices:
                choose = self._choose_requested if request.names else self._choose_by_priority
                self._choices[request] = choose(request)
            return self._choices[request]

    def is_requested(self, platform: str) -> bool:
        """Whether a platform may be used: always, unless the option `platforms` leaves it out."""
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
        wanted = self._canonical_names(request)
        for platform in wanted:
            try:
                self._runnable(platform)
            except BackendUnavailableError as error:
                raise BackendUnavailableError(f"{request.source}: {error}") from error.__cause__
        left_out = [name for name in self.backend_names() if name not in wanted]
        refused = dict.fromkeys(left_out, f"{request.source} leaves it out")
        return PlatformChoice(wanted, f"{request.source} names it first", refused)

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
        """Say once what is broken: a silent fallback would leave the user guessing."""
        for failure in self._failures.values():
            if failure not in self._warned:
                self._warned.add(failure)
                warnings.warn(
                    f"dovetail plug-in {failure}; {consequence}. `python -m dovetail doctor` "
                    "shows more",
                    RuntimeWarning,
                    stacklevel=4,
                )

    # ------------------------------------------------------------------------- backends at work

    def make_client(self, platform: str, options: Mapping[str, object] | None = None) -> Client:
        """Create a platform's client. The runtime calls this once for each platform.

        Args:
            platform: a platform's name or alias.
            options: options for the backend, such as `num_devices`.

        Returns:
            The client.

        Raises:
            BackendUnavailableError: as `require`, or the backend failed to create it; the
                backend's exception is the cause.
        """
        with self._lock:
            backend = self.require(platform)
            for variable, value in self.environment(backend.platform).items():
                os.environ.setdefault(variable, value)
            client: Any = None
            with self._isolated(backend.platform, backend.origin, "client"):
                client = self._call(
                    backend.plugin_name,
                    "dovetail_make_client",
                    platform=backend.platform,
                    options=dict(options or {}),
                )
                missing = missing_members(client, Client)
                if missing:
                    raise TypeError(
                        f"dovetail_make_client returned {client!r}, which is no Client: it lacks "
                        f"{', '.join(missing)}"
                    )
            failure = self._last_failure(backend.platform, backend.origin, "client")
            if failure is not None:
                raise self._unavailable(platform, failure)
            made: Client = client
            return made

    def environment(self, platform: str) -> Mapping[str, str]:
        """Environment variables that a backend wants when its driver is loaded."""
        with self._lock:
            backend = self._loaded_or_raise(platform)
            merged: dict[str, str] = {}
            with self._isolated(backend.platform, backend.origin, "environment"):
                answers = self._call(
                    backend.plugin_name, "dovetail_environment", platform=backend.platform
                )
                for answer in answers:
                    merged.update(answer or {})
            failure = self._last_failure(backend.platform, backend.origin, "environment")
            if failure is not None:
                raise self._unavailable(platform, failure)
            return merged

    def lowerings(self, platform: str) -> Mapping[str, LoweringRule]:
        """Lowering rules of a platform by primitive name: its backend's, then the extensions'.

        An extension's rule takes the place of the backend's; two extensions with a rule for one
        primitive are a failure of the second.

        Args:
            platform: the platform's own name. It need not be able to run here: modules for a
                platform can be lowered anywhere.

        Raises:
            BackendUnavailableError: the platform is unknown, or its backend's table is broken.
        """
        with self._lock:
            if platform not in self._lowerings:
                backend = self._loaded_or_raise(platform)
                rules = self._tables(backend.platform, backend.origin, backend.plugin_name)
                failure = self._last_failure(backend.platform, backend.origin, "lowerings")
                if failure is not None:
                    raise self._unavailable(platform, failure)
                added: dict[str, LoweringRule] = {}
                for name, origin, plugin_name in self._extension_plugins():
                    for primitive, rule in self._tables(
                        name, origin, plugin_name, backend.platform
                    ).items():
                        if primitive in added:
                            error = ValueError(
                                f"another extension has a rule for {primitive!r} on {platform!r}"
                            )
                            self._keep(PluginFailure(name, origin, "lowerings", error))
                        else:
                            added[primitive] = rule
                self._lowerings[platform] = {**rules, **added}
            return self._lowerings[platform]

    def _tables(
        self, name: str, origin: str, plugin_name: str, platform: str | None = None
    ) -> dict[str, LoweringRule]:
        """One plug-in's lowering rules; empty after a failure."""
        rules: dict[str, LoweringRule] = {}
        with self._isolated(name, origin, "lowerings"):
            for table in self._call(plugin_name, "dovetail_lowerings", platform=platform or name):
                for primitive, rule in (table or {}).items():
                    if not isinstance(primitive, str) or not callable(rule):
                        raise TypeError(
                            f"dovetail_lowerings returned {primitive!r}: {rule!r}; it maps names "
                            "of primitives to functions"
                        )
                    rules[primitive] = rule
        return rules

    def compile_options(
        self, platform: str, options: Mapping[str, OptionValue] | None = None
    ) -> dict[str, OptionValue]:
        """Compiler options for a platform: its backend's, the extensions', then the user's.

        Args:
            platform: the platform's own name.
            options: the user's, which win.

        Raises:
            BackendUnavailableError: the platform is unknown, or its backend's answer is broken.
        """
        with self._lock:
            backend = self._loaded_or_raise(platform)
            wanted = dict(options or {})
            merged: dict[str, OptionValue] = {}
            plugins = [
                (backend.platform, backend.origin, backend.plugin_name),
                *self._extension_plugins(),
            ]
            for name, origin, plugin_name in plugins:
                with self._isolated(name, origin, "compile options"):
                    for answer in self._call(
                        plugin_name,
                        "dovetail_compile_options",
                        platform=backend.platform,
                        options=wanted,
                    ):
                        merged.update(answer or {})
            failure = self._last_failure(backend.platform, backend.origin, "compile options")
            if failure is not None:
                raise self._unavailable(platform, failure)
            return {**merged, **wanted}

    def compile(self, request: CompileRequest) -> Executable:
        """Compile through the hooks of the platform's backend and of every extension.

        Unlike elsewhere, an exception passes to the caller: it is the compiler's answer about the
        user's program.

        Args:
            request: the module and where it goes.

        Returns:
            The loaded executable.
        """
        with self._lock:
            own = self._backends.get(request.platform)
            others = [b.plugin for b in self._backends.values() if b is not own]
            caller = self._hooks.subset_hook_caller("dovetail_compile", remove_plugins=others)
        executable: Executable = caller(request=request)
        return executable

    # ------------------------------------------------------------------------------- extensions

    def array_methods(self) -> ArrayMethods:
        """Operators, methods and properties of arrays, from every extension, merged."""
        with self._lock:
            self.load_extensions()
            if self._array_methods is None:
                tables: dict[str, dict[str, Callable[..., Any]]] = {
                    "operators": {},
                    "methods": {},
                    "properties": {},
                }
                compiled: set[str] = set()
                for name, origin, plugin_name in self._extension_plugins():
                    with self._isolated(name, origin, "array methods"):
                        for answer in self._call(plugin_name, "dovetail_array_methods"):
                            _merge_methods(tables, answer)
                            compiled |= answer.compiled if answer is not None else frozenset()
                self._array_methods = ArrayMethods(**tables, compiled=frozenset(compiled))
            return self._array_methods

    def primitives(self) -> tuple[object, ...]:
        """Primitives that extensions add, in the order of the extensions' names."""
        with self._lock:
            self.load_extensions()
            primitives: list[object] = []
            for name, origin, plugin_name in self._extension_plugins():
                with self._isolated(name, origin, "primitives"):
                    for answer in self._call(plugin_name, "dovetail_primitives"):
                        primitives.extend(answer or ())
            return tuple(primitives)

    def _extension_plugins(self) -> list[tuple[str, str, str]]:
        """Name, origin and pluggy's name of every loaded extension, by name."""
        plugins = [(n, o, f"extension {n}") for n, o in (self._extensions or {}).items()]
        plugins += [(n, o, n) for n, o in self._in_process_extensions.items()]
        return sorted(plugins)

    # --------------------------------------------------------------------------------- plumbing

    def _call(self, plugin_name: str, hook: str, **arguments: object) -> Any:
        """Call a hook on one plug-in: pluggy stops at the first exception, so never on several."""
        others = {
            p for n, p in self._hooks.list_name_plugin() if n != plugin_name and p is not None
        }
        return self._hooks.subset_hook_caller(hook, remove_plugins=others)(**arguments)

    @contextmanager
    def _isolated(self, name: str, origin: str, phase: Phase) -> Iterator[None]:
        """Run a plug-in's code; keep whatever it raises, and let only KeyboardInterrupt out."""
        self._failures.pop((name, origin, phase), None)
        try:
            yield
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._keep(PluginFailure(name, origin, phase, error))

    def _keep(self, failure: PluginFailure) -> None:
        self._failures[failure.name, failure.distribution, failure.phase] = failure

    def _last_failure(
        self, name: str, origin: str, phase: Phase | None = None
    ) -> PluginFailure | None:
        kept = [
            failure
            for (other, source, step), failure in self._failures.items()
            if (other, source) == (name, origin) and phase in (None, step)
        ]
        return kept[-1] if kept else None

    def _forget(self, plugin_name: str) -> None:
        """Unregister, where pluggy knows the name: it may have stopped half-way."""
        if self._hooks.has_plugin(plugin_name):
            self._hooks.unregister(name=plugin_name)

    def _clear_answers(self) -> None:
        """Drop every answer that depends on which plug-ins there are."""
        self._probed.clear()
        self._choices.clear()
        self._lowerings.clear()
        self._array_methods = None

    def _loaded_or_raise(self, platform: str) -> LoadedBackend:
        name = self.canonical(platform)
        backend = self.load(name)
        if backend is None:
            raise self._unavailable(platform, self._refused[name])
        return backend

    def _unavailable(self, platform: str, failure: PluginFailure) -> BackendUnavailableError:
        """The error for a platform that was asked for and failed, with the plug-in's as cause."""
        source = failure.distribution or _IN_PROCESS
        if source == _IN_PROCESS:
            advice = "Mend the plug-in that was registered in this process."
        else:
            advice = (
                f"Update or reinstall {source.split()[0]}; `python -m dovetail doctor` shows "
                "every plug-in."
            )
        error = BackendUnavailableError(
            f"platform {platform!r} cannot be used: {failure}\n{self._installed_text()}\n{advice}"
        )
        error.__cause__ = failure.error
        return error

    def _unknown_text(self, platform: str) -> str:
        names = {*self.backend_names(), *(a for b in self.load_all() for a in b.info.aliases)}
        near = difflib.get_close_matches(platform.lower(), names, n=1)
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


def _check_info(info: object, platform: str) -> None:
    """Raise unless a description is complete and about the right platform."""
    if info is None:
        raise TypeError("it implements no dovetail_backend_info, which every backend needs")
    if not isinstance(info, BackendInfo):
        raise TypeError(f"dovetail_backend_info returned {info!r}: return a BackendInfo")
    if info.platform != platform:
        raise ValueError(
            f"the entry point is named {platform!r} but the backend says its platform is "
            f"{info.platform!r}: make them equal"
        )
    api: object = info.api
    if not (isinstance(api, tuple) and len(api) == 2 and all(type(n) is int for n in api)):
        raise TypeError(f"BackendInfo.api is {api!r}: write two numbers, such as {PLUGIN_API}")


def _check_version(info: BackendInfo) -> None:
    """Raise unless this dovetail has the hooks that a backend was written for."""
    if info.api[0] == PLUGIN_API[0] and info.api[1] <= PLUGIN_API[1]:
        return
    wanted, here = (".".join(map(str, version)) for version in (info.api, PLUGIN_API))
    older = "dovetail" if info.api > PLUGIN_API else "the backend"
    raise BackendUnavailableError(
        f"it was written for plug-in API {wanted} and this dovetail has {here}: update {older}"
    )


def _merge_methods(
    tables: dict[str, dict[str, Callable[..., Any]]], answer: ArrayMethods | None
) -> None:
    """Add one extension's array methods; all of them or, on a conflict, none."""
    if answer is None:
        return
    if not isinstance(answer, ArrayMethods):
        raise TypeError(f"dovetail_array_methods returned {answer!r}: return an ArrayMethods")
    taken = {name for table in tables.values() for name in table}
    for kind in tables:
        twice = sorted(taken & set(getattr(answer, kind)))
        if twice:
            raise ValueError(f"another extension defines {', '.join(twice)} on arrays already")
    for kind, table in tables.items():
        table.update(getattr(answer, kind))


_manager: PluginManager | None = None
_manager_lock = threading.Lock()


def manager() -> PluginManager:
    """The plug-in manager of this process, made on first use."""
    global _manager
    if _manager is None:
        with _manager_lock:
            if _manager is None:
                _manager = PluginManager()
    return _manager
