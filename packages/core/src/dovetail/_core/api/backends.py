"""Clients of platforms, compile options, and backends that a process makes itself."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np

from dovetail._core.base.bindings import xla_client
from dovetail._core.base.typing import Device
from dovetail._core.plugins.hookspecs import PLUGIN_API, BackendInfo, hookimpl
from dovetail._core.plugins.manager import manager
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.programs import compilation

__all__ = [
    "backend_xla_version",
    "backends",
    "clear_backends",
    "clear_in_memory_compilation_cache",
    "get_backend",
    "get_compile_options",
    "get_default_device",
    "register_backend_cache",
    "register_backend_factory",
]


class ClearedCache(Protocol):
    """A cache that can be emptied, such as that of a function of `functools.lru_cache`."""

    def cache_clear(self) -> object:
        """Forget everything."""


def backends() -> dict[str, Any]:
    """The clients of all platforms that can be used here, the default one first.

    Example:
        >>> from dovetail.extend import backend
        >>> "cpu" in backend.backends()
        True
    """
    return {name: clients.backend(name) for name in manager().resolve_platforms()}


def get_backend(platform: Any = None) -> Any:
    """The client of a platform, created on first use.

    Args:
        platform: its name or alias; the default one by default. A client is returned as it is.

    Raises:
        BackendUnavailableError: the platform is not installed, or cannot run here.

    Example:
        >>> from dovetail.extend import backend
        >>> backend.get_backend("cpu").platform
        'cpu'
    """
    return clients.backend(platform)


def get_default_device() -> Device:
    """The device on which data is placed that is committed to none.

    Example:
        >>> import dovetail as dt
        >>> from dovetail.extend import backend
        >>> with dt.default_device(dt.devices("cpu")[-1]):
        ...     backend.get_default_device() == dt.devices("cpu")[-1]
        True
    """
    return clients.default_device()


def backend_xla_version(platform: str | None = None) -> int | None:
    """The version of XLA in a backend's library; None if it does not say, or is jaxlib's own.

    Args:
        platform: its name or alias; the default one by default.

    Raises:
        BackendUnavailableError: the platform is not installed, or cannot run here.
    """
    version = getattr(clients.backend(platform), "xla_version", None)
    return None if version is None else int(version)


def clear_backends(_crash: bool = False) -> None:
    """Drop every client and all caches; the next use creates new ones.

    Arrays that are there keep their client, and do not mix with later ones.

    Args:
        _crash: whether to raise if a backend cannot be dropped, which does not happen here.
    """
    clients.clear_backends()


def clear_in_memory_compilation_cache() -> None:
    """Drop the compiled programs that no function refers to; those on disk stay."""
    compilation.clear()


_caches: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


def register_backend_cache(cache: ClearedCache, for_what: str) -> None:
    """Have a cache emptied by `clear_backends`, for what belongs to clients.

    Args:
        cache: an object with a method `cache_clear`, which is not kept alive.
        for_what: what is in it.

    Raises:
        TypeError: it has no such method.

    Example:
        >>> import functools
        >>> from dovetail.extend import backend
        >>> @functools.lru_cache
        ... def devices_of(client):
        ...     return client.devices()
        >>> backend.register_backend_cache(devices_of, "devices by client")
    """
    if not callable(getattr(cache, "cache_clear", None)):
        raise TypeError(f"the cache for {for_what} needs a method cache_clear(), got {cache!r:.80}")
    clients.on_clear(_clear_caches)
    _caches.add(cache)


def _clear_caches() -> None:
    for cache in list(_caches):
        cache.cache_clear()


def get_compile_options(
    num_replicas: int,
    num_partitions: int,
    device_assignment: Any = None,
    env_options_overrides: Mapping[str, Any] | None = None,
    fdo_profile: bytes | None = None,
    detailed_logging: bool = True,
    backend: Any = None,
) -> Any:
    """Options for compiling a module by a client's own method `compile`.

    Args:
        num_replicas: how often the program runs at a time.
        num_partitions: on how many devices each of these is divided.
        device_assignment: the numbers of the devices, of shape (replicas, partitions).
        env_options_overrides: options of XLA by the names of its flags.
        fdo_profile: a profile that guides the compiler.
        detailed_logging: whether it logs in detail.
        backend: the client; makes no difference here.

    Returns:
        jaxlib's `CompileOptions`.

    Raises:
        ValueError: there are not so many devices.

    Example:
        >>> from dovetail.extend import backend
        >>> backend.get_compile_options(1, 2, device_assignment=[0, 1]).num_partitions
        2
    """
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = num_replicas
    options.num_partitions = build.num_partitions = num_partitions
    build.use_spmd_partitioning = num_partitions > 1
    build.use_shardy_partitioner = True
    if device_assignment is not None:
        numbers = np.asarray(device_assignment, np.int32)
        if numbers.size != num_replicas * num_partitions:
            raise ValueError(
                f"get_compile_options: {num_replicas} replicas of {num_partitions} partitions run "
                f"on {num_replicas * num_partitions} devices, and device_assignment has "
                f"{numbers.size}"
            )
        options.device_assignment = xla_client.DeviceAssignment.create(
            numbers.reshape(num_replicas, num_partitions)
        )
    if env_options_overrides:
        options.env_option_overrides = list(env_options_overrides.items())
    if fdo_profile is not None:
        build.fdo_profile = fdo_profile
    build.debug_options.xla_detailed_logging = detailed_logging
    return options


class _FactoryBackend:
    """A backend whose client a function makes."""

    def __init__(
        self,
        info: BackendInfo,
        factory: Callable[[], Any],
        make_topology: Callable[..., Any] | None,
    ) -> None:
        self._info, self._factory, self._make_topology = info, factory, make_topology

    @hookimpl
    def dovetail_backend_info(self) -> BackendInfo:
        """What is known of it."""
        return self._info

    @hookimpl
    def dovetail_make_client(self, platform: str) -> Any:
        """Its client."""
        return self._factory() if platform == self._info.platform else None

    @hookimpl
    def dovetail_topology(
        self, platform: str, name: str, options: Mapping[str, object]
    ) -> Sequence[Any] | None:
        """Devices to compile for."""
        if platform != self._info.platform or self._make_topology is None:
            return None
        return list(self._make_topology(name, **options)._make_compile_only_devices())


def register_backend_factory(
    name: str,
    factory: Callable[[], Any],
    *,
    priority: int = 0,
    fail_quietly: bool = True,
    experimental: bool = False,
    make_topology: Callable[..., Any] | None = None,
    c_api: Any = None,
) -> None:
    """Make a platform of a function that creates a client.

    Plug-ins do this by an entry point, as docs/write-a-backend.md shows; this is for a process that
    makes its own, before it uses any platform.

    Args:
        name: the name of the platform.
        factory: called without arguments when the platform is first used. Its client is one of
            jaxlib's, or satisfies `dovetail.extend.Client`.
        priority: the platform with the highest priority is the default.
        fail_quietly: whether it is no problem that the client cannot be made, unless the platform
            is asked for by name.
        experimental: whether the description says so.
        make_topology: makes jaxlib's topology of a name and options, for
            `dovetail.experimental.topologies`.
        c_api: None: `dovetail.extend.pjrt.load_plugin` loads a PJRT library.

    Raises:
        ValueError: there is a platform of the name.
        NotImplementedError: `c_api` is given.

    Example:
        >>> import dovetail as dt
        >>> from dovetail.extend import backend
        >>> backend.register_backend_factory("acme", lambda: dt.devices("cpu")[0].client)
        >>> dt.devices("acme")[0].platform
        'cpu'
        >>> dt.extend.manager().unregister("acme")
    """
    if c_api is not None:
        raise NotImplementedError(
            f"register_backend_factory of {name!r}: c_api is not taken; load the library in the "
            "factory, dovetail.extend.pjrt.load_plugin(name, path).make_client()"
        )
    info = BackendInfo(
        platform=name,
        api=PLUGIN_API,
        priority=min(priority, -1) if fail_quietly and priority <= 0 else priority,
        description="experimental, made by this process" if experimental else "of this process",
    )
    manager().register(_FactoryBackend(info, factory, make_topology), name)
