"""Clients of the platforms, created on first use, and their devices."""

from __future__ import annotations

import atexit
import gc
import os
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from dovetail._core.base import caches, config, source
from dovetail._core.base.bindings import _jax, immortalize
from dovetail._core.base.errors import BackendUnavailableError
from dovetail._core.base.option_kinds import Pairs
from dovetail._core.base.process_options import StartupOption
from dovetail._core.plugins.loading import plugin_lock
from dovetail._core.plugins.manager import manager
from dovetail._core.plugins.protocols import is_pjrt
from dovetail._core.runtime.devices import freed_memory, process_ends
from dovetail._core.runtime.devices.address_space import reserve_for_client
from dovetail._core.runtime.devices.plugin_buffers import live_plugin_buffers
from dovetail._core.runtime.devices.threads import thread_count
from dovetail._core.runtime.processes import group

__all__ = [
    "add_topology",
    "backend",
    "check_runs",
    "clear_backends",
    "default_backend",
    "default_device",
    "default_platform",
    "describe_device",
    "device_count",
    "devices",
    "first_device",
    "host_count",
    "host_id",
    "host_ids",
    "is_addressable",
    "is_compile_only",
    "is_device",
    "live_buffers",
    "local_device_count",
    "local_devices",
    "on_clear",
    "platform_of",
    "process_count",
    "process_index",
    "process_indices",
    "runs_here",
    "started",
]

Device = Any
Client = Any

_clients: Final[dict[str, Client]] = {}
# With the plug-in that failed: another may be registered under its name.
_failures: Final[dict[str, tuple[BackendUnavailableError, object]]] = {}
_default_device: Device | None = None
_clear_functions: Final[list[Callable[[], object]]] = []


# Whether the plug-ins' lock was taken for the fork that is under way: no other thread may be making
# a client meanwhile, of which the child would have a part.
_forking: Final[list[bool]] = []


def _before_fork() -> None:
    plugin_lock.acquire()
    _forking.append(True)
    if any(map(is_pjrt, _clients.values())):
        source.warn(
            "this process forks after dovetail has started its threads: whatever computes in the "
            'child raises an error. Start processes with multiprocessing.get_context("spawn") or '
            'multiprocessing.get_context("forkserver") instead',
            RuntimeWarning,
        )
        _jax.collect_garbage()  # the next call would, behind a lock, if there were much
        process_ends.settle()


def _after_fork() -> None:
    if _forking:
        _forking.pop()
        plugin_lock.release()


def _in_child() -> None:
    _after_fork()
    started = [client for client in (*_clients.values(), *_compilers()) if is_pjrt(client)]
    if not started:
        return
    for client in started:
        immortalize(client)  # to end it, its threads would be waited for
    if _release_host_memory in gc.callbacks:
        gc.callbacks.remove(_release_host_memory)
    process_ends.end_in_child()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_in_child)


def _release_host_memory(phase: str, info: Mapping[str, int]) -> None:
    # jaxlib frees the host memory of finished transfers only on request, by a holder of the GIL.
    if phase == "stop":
        _jax.collect_garbage()


# The framework's options for creating clients, by platform and by the backend's name for them.
_CLIENT_OPTIONS: Final[Mapping[str, Mapping[str, StartupOption[Any]]]] = {
    "cpu": {
        "asynchronous": config.cpu_enable_async_dispatch,
        "collectives": config.cpu_collectives_implementation,
        "global_topology_timeout": config.cpu_get_global_topology_timeout_minutes,
        "local_topology_timeout": config.cpu_get_local_topology_timeout_minutes,
        "num_devices": config.num_cpu_devices,
        "num_threads": config.num_threads,
        "retained_memory": config.cpu_retained_memory,
    },
    "cuda": {"visible_devices": config.cuda_visible_devices},
}
# Those of them that say how processes find each other.
_OF_GROUPS: Final = ("collectives", "global_topology_timeout", "local_topology_timeout")


def _client_options(platform: str) -> dict[str, Any]:
    """The framework's options for creating a platform's client."""
    options: dict[str, Any] = {}
    if platform != "cpu":
        options |= Pairs.pairs(config.pjrt_client_create_options.value)
    options |= {name: option.value for name, option in _CLIENT_OPTIONS.get(platform, {}).items()}
    if options.get("num_devices") == config.num_cpu_devices.default:
        del options["num_devices"]
    if platform == "cpu":
        options["num_threads"] = thread_count()
        options["retained_memory"] = freed_memory.most_retained(config.cpu_retained_memory.value)
    if group.current() is None:
        options = {name: value for name, value in options.items() if name not in _OF_GROUPS}
    return options


def _fix_options(platform: str, *, started: bool) -> None:
    """Refuse later changes of the options that a client was made with, or allow them again."""
    options = list(_CLIENT_OPTIONS.get(platform, {}).values())
    if platform != "cpu":
        options.append(config.pjrt_client_create_options)
    for option in options:
        option.reader = platform if started else None


def _platforms() -> list[str]:
    """The platforms of this process, the default first."""
    return manager().resolve_platforms()


def _client(platform: str) -> Client:
    """The client of a platform, by the platform's own name."""
    client = _clients.get(platform)
    if client is not None:
        return client
    process_ends.check()  # holds no thread that has the lock
    with plugin_lock:
        if platform in _clients:
            return _clients[platform]
        failure, failed = _failures.get(platform, (None, None))
        if failure is not None and failed is manager().load(platform):
            raise BackendUnavailableError(*failure.args) from failure.__cause__
        reserve_for_client(platform)
        try:
            options = _client_options(platform)
            client = manager().make_client(platform, options, group.current())
        except BackendUnavailableError as error:
            _failures[platform] = error, manager().load(platform)
            raise
        if _release_host_memory not in gc.callbacks:
            gc.callbacks.append(_release_host_memory)
            process_ends.end_calls_at_exit()
            # Last registered, first called: it ends a thread that would be waited for.
            atexit.register(group.leave_at_exit)
        if platform == "cpu" and options["retained_memory"]:
            # Its end is registered behind the others, which would wait for the thread.
            freed_memory.watch(options["retained_memory"])
        from dovetail._core.runtime.devices.memory_statistics import extend  # deferred: a circle

        extend()
        _clients[platform] = client
        _fix_options(platform, started=True)
        if _clients.get(platform_of(client)) is not client:  # if it is, it serves two platforms
            _note(client, platform)
        return client


def started() -> list[str]:
    """The platforms that have a client."""
    return list(_clients)


def backend(platform: str | Client | None = None) -> Client:
    """The client of a platform, created on first use.

    Args:
        platform: a platform's name or alias; None for the default platform. A client is returned
            unchanged.

    Returns:
        The client.

    Raises:
        BackendUnavailableError: the platform is not installed, or cannot run here.
    """
    if platform is None:
        with plugin_lock:
            return _client(_platforms()[0])
    if isinstance(platform, str):
        if platform in _clients:
            return _clients[platform]
        with plugin_lock:
            _platforms()  # so that a platform excluded by DOVETAIL_PLATFORMS raises an error
            return _client(manager().canonical(platform))
    if hasattr(platform, "local_devices"):
        return platform
    raise TypeError(
        f"a backend is given by its platform's name, such as 'cpu', or as None; got {platform!r}"
    )


def default_backend() -> str:
    """The name of the default platform.

    Example:
        >>> import dovetail
        >>> dovetail.default_backend()
        'cpu'
    """
    with plugin_lock:
        platform = _platforms()[0]
        _client(platform)
        return platform


def default_platform() -> str:
    """The name of the default platform, without creating its client."""
    with plugin_lock:
        return _platforms()[0]


class _Origin(NamedTuple):
    """Where a client comes from.

    Attributes:
        hold: a weak reference to the client, or the client itself if its class does not allow one.
        platform: the name of the platform.
        topology: the requested topology, for messages; empty for a client that can run programs.
    """

    hold: object
    platform: str
    topology: str


# By the client's `id`, since clients written in Python may define equality and have no hash.
# `clear_backends` does not clear this table: older arrays, programs and devices still use their
# clients. An entry is dropped with its client, before the `id` can be reused; a client that does
# not support weak references is kept alive instead.
_origins: Final[dict[int, _Origin]] = {}


def _note(client: Client, platform: str, topology: str = "") -> None:
    """Record where a client comes from, for as long as the client exists."""
    number = id(client)

    def forget(_: object, origins: dict[int, _Origin] = _origins) -> None:
        origins.pop(number, None)  # at exit, this module may be gone before the client

    try:
        hold: object = weakref.ref(client, forget)
    except TypeError:
        hold = client
    _origins[number] = _Origin(hold, platform, topology)


def platform_of(owner: Device | Client) -> str:
    """The name of the platform of a device or a client: its entry point's name."""
    client = getattr(owner, "client", owner)
    origin = _origins.get(id(client))
    return str(getattr(client, "platform", "unknown")) if origin is None else origin.platform


# -------------------------------------------------------------------------------------------
# devices that are only compiled for


def add_topology(client: Client, platform: str, text: str) -> None:
    """Register a compile-only client.

    Args:
        client: the client.
        platform: the platform's own name.
        text: the requested topology, for messages.
    """
    _note(client, platform, text)


def _compilers() -> list[Client]:
    """The compile-only clients that there are."""
    holds = [origin.hold for origin in _origins.values() if origin.topology]
    return [hold() if isinstance(hold, weakref.ref) else hold for hold in holds]


def is_compile_only(owner: Device | Client) -> bool:
    """Whether a device, or a client, is compile-only."""
    origin = _origins.get(id(getattr(owner, "client", owner)))
    return origin is not None and bool(origin.topology)


def runs_here(device: Device) -> bool:
    """Whether a device is one of this process, of a client that this framework has made."""
    ours = any(client is device.client for client in list(_clients.values()))
    return ours and is_addressable(device)


def describe_device(device: Device) -> str:
    """A device for messages: devices of different topologies or platforms can look alike."""
    origin = _origins.get(id(device.client))
    if origin is not None and origin.topology:
        return f"{device!r} of the topology {origin.topology}"
    platform = platform_of(device)
    # Two platforms may use the same kind of client: each then has, say, a CpuDevice(id=0).
    return repr(device) + ("" if platform == device.platform else f" of the platform {platform!r}")


def check_runs(device: Device, what: str, advice: str = "") -> None:
    """Raise if a device is compile-only.

    Args:
        device: the device.
        what: what cannot be done, as a clause that follows "so".
        advice: what to do instead, as a clause.

    Raises:
        BackendUnavailableError: the device is compile-only.
    """
    if is_compile_only(device):
        advice = advice or "use a device of this process, out of dovetail.devices()"
        raise BackendUnavailableError(
            f"{describe_device(device)} is only compiled for, so {what}; {advice}"
        )


def devices(backend: str | Client | None = None) -> list[Device]:
    """All devices of a platform, including other processes' devices.

    Args:
        backend: the platform's name; the default platform if None.

    Returns:
        The devices, by increasing id.

    Raises:
        BackendUnavailableError: the platform is not installed, or cannot run here.

    Differs:
        A platform that is asked for by name and cannot be used is an error with the reason,
        never another device.

        >>> try:
        ...     dt.devices("tpv")
        ... except RuntimeError as error:
        ...     print("tpv" in str(error))
        True

    Example:
        >>> import dovetail
        >>> dovetail.devices()[0].platform
        'cpu'
    """
    return list(_backend(backend).devices())


def local_devices(
    process_index: int | None = None,
    backend: str | Client | None = None,
    host_id: int | None = None,
) -> list[Device]:
    """The devices that one process can address.

    Args:
        process_index: the number of the process; this one if None.
        backend: the platform's name; the default platform if None.
        host_id: the old name of `process_index`.

    Returns:
        The devices, by increasing id.

    Raises:
        BackendUnavailableError: the platform is not installed, or cannot run here.
        ValueError: there is no such process, or both of its names are given.
    """
    if host_id is not None:
        if process_index is not None:
            raise ValueError(
                "local_devices takes process_index or host_id, its old name, not both; got "
                f"{process_index=} and {host_id=}"
            )
        source.warn("host_id of local_devices is the old name of process_index; write that")
        process_index = host_id
    client = _backend(backend)
    if process_index is None:
        return list(client.local_devices())
    addressable = [d for d in client.devices() if d.process_index == process_index]
    if not addressable:
        indices = sorted({device.process_index for device in client.devices()})
        raise ValueError(f"there is no process {process_index}; the processes are {indices}")
    return addressable


def device_count(backend: str | Client | None = None) -> int:
    """The number of a platform's devices across all processes; the default platform if None."""
    return len(_backend(backend).devices())


def local_device_count(backend: str | Client | None = None) -> int:
    """The number of a platform's devices in this process; the default platform if None."""
    return len(_backend(backend).local_devices())


def process_index(backend: str | Client | None = None) -> int:
    """The number of this process among those that share the platform."""
    return int(_backend(backend).process_index())


def process_indices(backend: str | Client | None = None) -> list[int]:
    """The numbers of the processes that share the platform."""
    return sorted({device.process_index for device in _backend(backend).devices()})


def process_count(backend: str | Client | None = None) -> int:
    """The number of processes that share the platform."""
    return len(process_indices(backend))


def host_count(backend: str | Client | None = None) -> int:
    """An old name of `process_count`."""
    return process_count(backend)


def host_id(backend: str | Client | None = None) -> int:
    """An old name of `process_index`."""
    return process_index(backend)


def host_ids(backend: str | Client | None = None) -> list[int]:
    """An old name of `process_indices`."""
    return process_indices(backend)


_backend: Final = backend  # the functions above have an argument of that name


def is_device(value: object) -> bool:
    """Whether a value is a device of a client."""
    return hasattr(value, "device_kind") and hasattr(value, "client")


def is_addressable(device: Device) -> bool:
    """Whether a device is this process's own, so that it can place data there and read them."""
    return bool(device.process_index == device.client.process_index())


def default_device() -> Device:
    """The device for uncommitted data.

    It is the option ``default_device``, or the first device of the default platform.
    """
    chosen = config.default_device.value
    if chosen is None:
        return first_device()
    if isinstance(chosen, str):
        return backend(chosen).local_devices()[0]
    if is_device(chosen):
        return chosen
    device_set = getattr(chosen, "device_set", None)
    if device_set is not None and len(device_set) == 1:
        return next(iter(device_set))
    raise ValueError(
        f"default_device must be one device or the name of a platform, and it is {chosen!r}"
    )


def first_device() -> Device:
    """The first device of the default platform."""
    return _default_device or _find_default_device()


def _find_default_device() -> Device:
    global _default_device
    process_ends.check()
    with plugin_lock:
        if _default_device is None:
            platform = _platforms()[0]
            _default_device = _client(platform).local_devices()[0]
            config.platform_name.reader = platform
        return _default_device


def on_clear(function: Callable[[], object]) -> None:
    """Register a function that drops data belonging to clients; `clear_backends` calls it."""
    if function not in _clear_functions:
        _clear_functions.append(function)


def clear_backends() -> None:
    """Drop every client and all caches; the next use creates new ones. For tests.

    Existing arrays keep their client and its platform alive. They do not mix with arrays created
    afterwards.
    """
    global _default_device
    with plugin_lock:
        caches.clear_all()
        for function in _clear_functions:
            function()
        for platform in _clients:
            _fix_options(platform, started=False)
        config.platform_name.reader = None
        _clients.clear()
        _failures.clear()
        _default_device = None


def live_buffers(platform: str | None = None) -> list[Any]:
    """The live buffers of a platform, or of all platforms that have a client."""
    if platform is not None:
        return _live(backend(platform))
    clients = {id(client): client for client in list(_clients.values())}  # one may serve two
    return [buffer for client in clients.values() for buffer in _live(client)]


def _live(client: Client) -> list[Any]:
    return list(client.live_arrays() if is_pjrt(client) else live_plugin_buffers(client))
