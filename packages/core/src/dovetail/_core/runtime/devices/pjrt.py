"""PJRT plug-ins: loading them, checking them before they can crash the process, making clients.

Only the shared library of a plug-in's wheel is used; none of its Python code runs.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from dovetail._core.base.bindings import JaxRuntimeError, _jax, load_pjrt_plugin, xla_client
from dovetail._core.base.locks import shared_lock
from dovetail._core.base.records import record
from dovetail._core.ops.callbacks.native_targets import NativeTarget, targets_for
from dovetail._core.runtime.devices.client_libraries import note_library
from dovetail._core.runtime.devices.pjrt_api import (
    GPU_EXTENSION,
    PROFILER_EXTENSION,
    STAGES,
    Api,
    PjrtError,
    capsule_address,
    open_library,
    register_handler,
)

__all__ = ["PjrtError", "PjrtPlugin", "load_plugin", "loaded_plugins"]

_NO_OPTIONS: Final[Mapping[str, object]] = MappingProxyType({})
_lock: Final = shared_lock()
_plugins: Final[dict[str, PjrtPlugin]] = {}


@record
class PjrtPlugin:
    """A PJRT plug-in loaded into this process; libraries are never unloaded.

    Attributes:
        name: the name it was loaded under.
        library: the path of its shared library.
        api_version: its version of the PJRT C API, such as ``(0, 81)``.
        capsule: the capsule around its `PJRT_Api`, for jaxlib's functions.
    """

    name: str
    library: Path
    api_version: tuple[int, int]
    capsule: Any
    _api: Api = field(repr=False)

    def make_client(
        self, options: Mapping[str, object] = _NO_OPTIONS, distributed_client: Any = None
    ) -> Any:
        """Create a jaxlib client on the plug-in.

        Args:
            options: the plug-in's options: numbers, strings, booleans and lists of integers, where
                integers have 64 bits. Many plug-ins reject unknown names.
            distributed_client: `ProcessGroup.client`, through which the plug-in finds the devices
                of other processes; None for one process.

        Raises:
            PjrtError: the plug-in cannot create one (for example, there is no device), does not
                know an option, or reads no StableHLO version that this jaxlib writes; or an option
                has a type that no plug-in accepts.
        """
        self._check_options(options)
        try:
            client = xla_client.make_c_api_client(self.name, dict(options), distributed_client)
        except JaxRuntimeError as error:
            raise PjrtError(
                f"the PJRT plug-in {self.name!r} ({self.library}) made no client: {error}"
            ) from error
        except (RuntimeError, TypeError, ValueError) as error:  # jaxlib's, about the options
            raise PjrtError(
                f"the PJRT plug-in {self.name!r} ({self.library}) made no client: an option has "
                f"another type than it expects ({error}); the options are {dict(options)}"
            ) from error
        self._check_stablehlo(client)
        file = self.library.stat()
        version = f"{self.library.name} {file.st_size} {_dotted(self.api_version)}"
        note_library(client, version, f"{file.st_mtime_ns} {sorted(options.items())}")
        return client

    def _check_options(self, options: Mapping[str, object]) -> None:
        """Reject types that the C API lacks: jaxlib would drop them or raise an obscure error."""
        for name, value in options.items():
            if not _is_text(name):
                raise PjrtError(
                    f"an option of the PJRT plug-in {self.name!r} is named {name!r}: give a str "
                    "that can be written as UTF-8"
                )
            if not _is_option(value):
                raise PjrtError(
                    f"the option {name} of the PJRT plug-in {self.name!r} is {value!r}: give a "
                    "bool, int, float, str or a list of ints, where ints have 64 bits and a str "
                    "can be written as UTF-8"
                )

    def _check_stablehlo(self, client: Any) -> None:
        """Reject a plug-in that reads no StableHLO version that this jaxlib writes."""
        from dovetail._core.hlo.mlir import stablehlo  # deferred: MLIR is only needed from here on

        newest = _version(client, "stablehlo_current_version")
        oldest = _version(client, "stablehlo_minimum_version")
        writes_from, writes_to = stablehlo.get_minimum_version(), stablehlo.get_current_version()
        if newest and newest < _numbers(writes_from):
            raise PjrtError(
                f"the PJRT plug-in {self.name!r} ({self.library}) reads StableHLO up to "
                f"{_dotted(newest)}, and this jaxlib writes {writes_from} at the oldest: update "
                "the plug-in"
            )
        if oldest and oldest > _numbers(writes_to):
            raise PjrtError(
                f"the PJRT plug-in {self.name!r} ({self.library}) reads StableHLO from "
                f"{_dotted(oldest)} on, and this jaxlib writes {writes_to} at the newest: update "
                "jaxlib"
            )

    def register_ffi_target(
        self,
        name: str,
        handler: object | Mapping[str, object],
        *,
        platform: str,
        traits: int = 0,
    ) -> None:
        """Register the handler of a custom call with the plug-in.

        Args:
            name: the target of the custom call.
            handler: a capsule around a handler of XLA's typed FFI; or capsules by stage:
                ``"instantiate"``, ``"prepare"``, ``"initialize"``, ``"execute"``.
            platform: the platform's name in the plug-in's compiler, such as ``"Host"`` or
                ``"CUDA"``.
            traits: XLA's trait bits for the handler. Plug-ins ignore bits that they do not know.

        Raises:
            TypeError: a handler is not a capsule.
            ValueError: a stage is unknown, or the stage "execute" is missing.
            PjrtError: the plug-in accepts no handlers, or rejects this one. A plug-in that is older
                than the handler may also accept it silently and not find it when it compiles.
        """
        capsules = handler if isinstance(handler, Mapping) else {"execute": handler}
        unknown = sorted(map(str, set(capsules) - set(STAGES)))
        if unknown or "execute" not in capsules:
            raise ValueError(
                f"the stages of the custom call {name!r} are {sorted(map(str, capsules))}: give "
                f"'execute', and others out of {', '.join(STAGES)}"
            )
        addresses = {stage: capsule_address(capsule) for stage, capsule in capsules.items()}
        register_handler(self._api, name, addresses, platform, traits)

    def take(self, target: NativeTarget) -> None:
        """`register_ffi_target` of what a user has registered for the platform.

        A library that does not compute on GPUs may compute on the host, as its compiler calls it.
        """
        names = [target.platform.upper()]
        if GPU_EXTENSION not in self._api.extensions():
            names.append("Host")
        for name in names:
            self.register_ffi_target(
                target.name, target.handler, platform=name, traits=target.traits
            )

    @property
    def records_profiles(self) -> bool:
        """Whether the library records what its devices do, for profiles."""
        return PROFILER_EXTENSION in self._api.extensions()

    def topology_devices(self, name: str = "", /, **options: object) -> list[Any]:
        """Compile-only devices of hardware that need not be on this machine.

        Args:
            name: the plug-in's name for the hardware, such as ``"v5e:2x2"``. Positional-only,
                since an option may be called "name".
            **options: the plug-in's options for it, of the types that `make_client` accepts.

        Returns:
            Devices whose client can only compile.

        Raises:
            PjrtError: the plug-in does not know the hardware, or cannot compile ahead of time; or
                an option has a type that no plug-in accepts.
        """
        shown = f" {name!r}" if name else ""
        if not _is_text(name):
            raise PjrtError(
                f"the PJRT plug-in {self.name!r} has no topology{shown}: give a str that can be "
                "written as UTF-8"
            )
        self._check_options(options)
        try:
            # Not `make_c_api_device_topology`: options may clash with its parameter names.
            topology = _jax.get_c_api_topology(self.capsule, name, dict(options))
            return list(topology._make_compile_only_devices())
        except (JaxRuntimeError, TypeError, ValueError) as error:
            raise PjrtError(
                f"the PJRT plug-in {self.name!r} ({self.library}) has no topology{shown}: {error}"
            ) from error


def load_plugin(name: str, library: str | os.PathLike[str]) -> PjrtPlugin:
    """Load a PJRT plug-in, once for each name.

    The library's version is checked before jaxlib uses it: a plug-in that claims functions which
    it does not have would crash the process.

    Args:
        name: the name to load it under; case does not matter.
        library: the path of its shared library.

    Returns:
        The plug-in; the same object if it was loaded before.

    Raises:
        PjrtError: the library cannot be used, or another one was loaded under this name.
    """
    path = Path(os.path.realpath(library))
    with _lock:
        loaded = _plugins.get(name.lower())
        if loaded is not None:
            if loaded.library != path:
                raise PjrtError(
                    f"a PJRT plug-in named {name!r} was loaded from {loaded.library}, so {path} "
                    "cannot be in this process by that name: give it another"
                )
            return loaded
        api = open_library(path)
        try:
            capsule = load_pjrt_plugin(name.lower(), str(path), api.address)
        except JaxRuntimeError as error:
            raise PjrtError(f"jaxlib cannot use the PJRT plug-in {path}: {error}") from error
        plugin = PjrtPlugin(name.lower(), path, api.version, capsule, api)
        for target in targets_for(plugin.name):
            plugin.take(target)
        _plugins[name.lower()] = plugin
        return plugin


def loaded_plugins() -> list[PjrtPlugin]:
    """The plug-ins that are in this process."""
    with _lock:
        return list(_plugins.values())


def _is_option(value: object) -> bool:
    """Whether the C API has a type for an option's value."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return all(map(_is_integer, value))
    return isinstance(value, float) or _is_integer(value) or _is_text(value)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and -(2**63) <= value < 2**63


def _is_text(value: object) -> bool:
    """Whether a value is text that C++ accepts: a lone surrogate has no UTF-8 encoding."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _version(client: Any, attribute: str) -> tuple[int, ...]:
    """A version among the plug-in's attributes; empty if there is none."""
    return tuple(getattr(client, attribute, None) or ())


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
