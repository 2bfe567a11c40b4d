"""Compiling modules: options, a process-wide table of executables, and the disk cache.

Executables are keyed by the module's content, so a function that is redefined but gives the same
program is compiled only once. Each program is compiled by one thread; other threads that need it
wait.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail._core.base import caches, config, events, monitoring
from dovetail._core.base.bindings import JaxRuntimeError, xla_client
from dovetail._core.base.interrupts import is_interrupt
from dovetail._core.base.locks import shared_lock
from dovetail._core.base.option_kinds import CompilerEffortLevel
from dovetail._core.base.runtime_errors import CompilerOptionError
from dovetail._core.ir.effects import host_effects
from dovetail._core.plugins.hookspecs import CompileRequest, OptionValue
from dovetail._core.plugins.manager import manager
from dovetail._core.plugins.protocols import is_pjrt
from dovetail._core.runtime.devices import clients, process_ends
from dovetail._core.runtime.devices.address_space import compiler_is_loaded, reserve_for_compiler
from dovetail._core.runtime.devices.plugin_buffers import PluginProgram
from dovetail._core.runtime.programs import disk_cache
from dovetail._core.runtime.programs.callbacks import on_host
from dovetail._core.runtime.programs.dumps import dump

if TYPE_CHECKING:
    from dovetail._core.lower.equations import EquationProgram
    from dovetail._core.lower.lowering import LoweredModule

__all__ = [
    "Statistics",
    "backend_compile_and_load",
    "check_options",
    "clear",
    "compile_executable",
    "compile_options",
    "deserialized",
    "serialized",
    "statistics",
    "with_own_names",
]

CompilerOptions = Mapping[str, OptionValue]

# Even a small executable takes some 300 kB; programs beyond this number are recompiled if needed.
_MAX_EXECUTABLES: Final = 2048

_CACHE_EVENTS: Final = "/jax/compilation_cache"


@dataclass(slots=True)
class Statistics:
    """The cost of compilation in this process.

    Attributes:
        compiled: the number of programs compiled.
        compile_seconds: the time spent compiling.
        loaded: the number of programs read from the disk cache.
        load_seconds: the time spent reading.
        reused: the number of requests served by a program in memory.
    """

    compiled: int = 0
    compile_seconds: float = 0.0
    loaded: int = 0
    load_seconds: float = 0.0
    reused: int = 0


_statistics: Final = Statistics()


def statistics() -> Statistics:
    """The cost of compilation in this process so far."""
    with _lock:
        return Statistics(
            _statistics.compiled,
            _statistics.compile_seconds,
            _statistics.loaded,
            _statistics.load_seconds,
            _statistics.reused,
        )


# -------------------------------------------------------------------------------------------
# options


_EFFORTS: Final = {level.name: level.value for level in CompilerEffortLevel}


@caches.lru_cache(maxsize=256)
def _compile_options(
    platform: str,
    device_ids: tuple[int, ...],
    wanted: tuple[tuple[str, OptionValue], ...],
    memory_fitting: int,
) -> tuple[Any, bytes]:
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    options.num_replicas = build.num_replicas = 1
    options.num_partitions = build.num_partitions = len(device_ids)
    if len(device_ids) > 1:  # of results that say nothing
        build.allow_spmd_sharding_propagation_to_output = [True]
    build.use_spmd_partitioning = len(device_ids) > 1
    build.use_shardy_partitioner = True
    build.memory_fitting_level = memory_fitting
    options.device_assignment = xla_client.DeviceAssignment.create(
        np.array(device_ids, np.int32).reshape(1, -1)
    )
    overrides = []
    for name, value in wanted:
        if name == _EXTRA_OPTIONS:
            continue
        if not name.startswith("xla_") and hasattr(build, name):
            _set_build_option(build, name, value)
        else:
            overrides.append((name, value))
    options.env_option_overrides = overrides
    extra = dict(wanted).get(_EXTRA_OPTIONS)
    if extra:
        options = _with_extra_options(options, str(extra))
    return options, options.SerializeAsString()


_EXTRA_OPTIONS: Final = "xla_backend_extra_options"
#: XLA's option that names passes of its compiler which are left out, with commas between them.
_DISABLED_PASSES: Final = "xla_disable_hlo_passes"
_REMATERIALIZATION: Final = "rematerialization"


def _with_extra_options(options: Any, extra: str) -> Any:
    """Add extra options, written as in ``XLA_FLAGS``, that XLA keeps in a table of its own.

    Neither overrides nor attributes can set this table. Concatenated protocol buffers of the same
    type are merged, so one that holds only the table is appended.

    Raises:
        ValueError: a name does not begin with ``xla_``.
    """
    table = b""
    for entry in extra.split(","):
        name, _, value = entry.strip().partition("=")
        if not name.startswith("xla_"):  # others would make LLVM end the process
            raise ValueError(
                f"the compiler option {_EXTRA_OPTIONS!r} takes names that begin with 'xla_', with "
                f"values after '=', separated by commas; got {name!r}"
            )
        table += _field(500, _field(1, name.encode()) + _field(2, value.encode()))
    # In CompileOptionsProto, field 3 is the build options, whose field 3 is DebugOptions.
    return xla_client.CompileOptions.ParseFromString(
        options.SerializeAsString() + _field(3, _field(3, table))
    )


def _field(number: int, content: bytes) -> bytes:
    """A protocol buffer field with bytes, text or a nested message."""

    def varint(value: int) -> bytes:
        low, high = value & 0x7F, value >> 7
        return bytes([low | 0x80]) + varint(high) if high else bytes([low])

    return varint(number << 3 | 2) + varint(len(content)) + content


def _set_build_option(build: Any, name: str, value: OptionValue) -> None:
    try:
        setattr(build, name, value)
    except TypeError:
        raise TypeError(
            f"the compiler option {name!r} does not take {value!r} of type {type(value).__name__}"
        ) from None


def check_options(wanted: Mapping[str, Any]) -> None:
    """Raise TypeError unless names are strings and values bools, numbers or strings."""
    for name, value in wanted.items():
        if not isinstance(name, str) or not isinstance(value, (bool, int, float, str)):
            raise TypeError(
                "compiler_options maps names of options to bools, numbers or strings; "
                f"got {name!r}: {value!r}"
            )


def compile_options(
    platform: str,
    devices: Sequence[Any],
    wanted: CompilerOptions | None = None,
    lowered: LoweredModule | EquationProgram | None = None,
) -> tuple[Any, bytes]:
    """The compile options for a program: the backend's, overridden by the user's.

    Args:
        platform: the platform's name.
        devices: the devices that the program runs on.
        wanted: the user's options, by the names of XLA's flags or build options.
        lowered: the program, if there is one yet.

    Returns:
        jaxlib's options object, which must not be changed, or the options by name for a backend
        written in Python; and the same as bytes.

    Raises:
        TypeError: an option's name is not a string, or its value is not a bool, number or string.
    """
    check_options(wanted or {})
    requested = dict(wanted or {})
    if effort := _EFFORTS[config.optimization_level.value]:
        requested.setdefault("optimization_level", effort)
    operations = frozenset[str]() if lowered is None else lowered.operations()
    shapes = frozenset[tuple[int, ...]]() if lowered is None else lowered.shapes()
    merged = manager().compile_options(platform, requested, operations, shapes)
    remat = config.compiler_enable_remat_pass.value or not is_pjrt(devices[0].client)
    if not remat and _DISABLED_PASSES not in requested:
        others = merged.get(_DISABLED_PASSES)
        merged[_DISABLED_PASSES] = (
            f"{others},{_REMATERIALIZATION}" if others else _REMATERIALIZATION
        )
    ids = tuple([device.id for device in devices])
    if not is_pjrt(devices[0].client):
        return merged, repr((ids, sorted(merged.items()))).encode()
    fitting = _EFFORTS[config.memory_fitting_level.value]
    result: tuple[Any, bytes] = _compile_options(
        platform, ids, tuple(sorted(merged.items())), fitting
    )
    return result


# ---------------------------------------------------------------------------------------------
# table


class _Entry:
    """A table entry: an executable, or the thread that is compiling it.

    Attributes:
        executable: the executable, when it is there.
        names: a hash of the names and source locations that it shows, None if they are unknown.
        maker: the thread.
        making: held while it compiles; released in one call, which no interrupt can divide.
    """

    __slots__ = ("executable", "maker", "making", "names")

    def __init__(self) -> None:
        self.executable: Any = None
        self.names: bytes | None = None
        self.maker = threading.get_ident()
        self.making = threading.Lock()
        self.making.acquire()


_lock: Final = shared_lock()
_table: Final[OrderedDict[Any, _Entry]] = OrderedDict()


def clear() -> None:
    """Drop the executables in memory; those on disk stay."""
    with _lock:
        for key in _finished():
            _table.pop(key, None)


caches.register(clear)


def _finished() -> list[Any]:
    """The keys of the executables that are there, those that were used last at the end."""
    while True:
        try:
            entries = list(_table.items())
        except RuntimeError:  # garbage was collected meanwhile, and another thread added an entry
            continue
        return [key for key, entry in entries if not entry.making.locked()]


def _once(key: Any, make: Callable[[], tuple[Any, bytes | None]]) -> Any:
    """The executable of a key, made by the first thread that asks, with the hash of its names.

    Errors reach only that thread.
    """
    mine = _Entry()
    try:
        while (entry := _table.setdefault(key, mine)) is not mine:
            if entry.executable is not None:
                with _lock:
                    if key in _table:
                        _table.move_to_end(key)
                    _statistics.reused += 1
                return entry.executable
            if entry.maker == threading.get_ident() and entry.making.locked():
                return make()[0]  # a compiling plug-in requests the program that it is compiling
            with entry.making:
                if entry.executable is None and _table.get(key) is entry:
                    del _table[key]
        mine.executable, mine.names = make()
    finally:
        if mine.executable is None and _table.get(key) is mine:
            del _table[key]
        mine.making.release()
    with _lock:
        excess = len(_table) - _MAX_EXECUTABLES
        if excess > 0:
            for old in _finished()[:excess]:
                _table.pop(old, None)
    return mine.executable


def compile_executable(
    lowered: LoweredModule | EquationProgram,
    sharding: Any,
    compiler_options: CompilerOptions | None = None,
) -> Any:
    """The executable of a module: from memory, from disk, or compiled.

    Args:
        lowered: the module.
        sharding: where it runs.
        compiler_options: the user's compiler options.

    Returns:
        jaxlib's loaded executable, or the backend's.

    Raises:
        JaxRuntimeError: the compiler rejects the program.
        ValueError: there is no such compiler option.
    """
    devices = tuple(sharding._internal_device_list)
    client = devices[0].client
    device_list = sharding._internal_device_list if is_pjrt(client) else devices
    platform = clients.platform_of(client)
    options, option_bytes = compile_options(platform, devices, compiler_options, lowered)

    process_ends.check()
    dump(lowered)

    def make() -> tuple[Any, bytes | None]:
        return _load_or_compile(
            lowered, platform, client, device_list, options, option_bytes, compiler_options
        )

    if not lowered.cacheable:
        return make()[0]
    made: list[None] = []

    def make_once() -> tuple[Any, bytes | None]:
        made.append(None)
        return make()

    executable = _once((lowered.key(), option_bytes, id(client)), make_once)
    if not made:
        events.emit("reuse", lowered.name, 0.0)
    return executable


def _load_or_compile(
    lowered: LoweredModule | EquationProgram,
    platform: str,
    client: Any,
    device_list: Any,
    options: Any,
    option_bytes: bytes,
    compiler_options: CompilerOptions | None,
) -> tuple[Any, bytes | None]:
    """An executable, and the hash of its names if it was compiled here."""
    # A compile-only program cannot be loaded here, so it is not cached on disk.
    load = not clients.is_compile_only(client)
    if load:
        for prepare in lowered.preparations:
            prepare()
    cache = disk_cache.current() if load and _is_stored(lowered, client) else None
    key = ""
    if cache is not None:
        named = config.compilation_cache_include_metadata_in_key.value
        module_key = lowered.names_key() if named else lowered.key()
        key = disk_cache.entry_key(module_key, option_bytes, platform, client, device_list)
        monitoring.record_event(f"{_CACHE_EVENTS}/compile_requests_use_cache")
        executable = _load(cache, key, lowered, client, device_list, options)
        if executable is not None:
            monitoring.record_event(f"{_CACHE_EVENTS}/cache_hits")
            _read.add((lowered.key(), option_bytes))
            return executable, None
    start = time.perf_counter()
    executable = _compile(lowered, platform, client, device_list, options, compiler_options)
    seconds = time.perf_counter() - start
    with _lock:
        _statistics.compiled += 1
        _statistics.compile_seconds += seconds
    monitoring.log_duration("compiled", lowered.name, seconds)
    events.emit("compile", lowered.name, seconds)
    if cache is not None and seconds >= config.persistent_cache_min_compile_time_secs.value:
        cache.store(key, executable, lowered.name)
        monitoring.record_event(f"{_CACHE_EVENTS}/cache_misses")
    return executable, lowered.names_key() if lowered.cacheable else None


def _is_stored(lowered: LoweredModule | EquationProgram, client: Any) -> bool:
    """Whether a program may be on disk.

    Callbacks are bound by their numbers where it is loaded, by clients that are known to do so.
    """
    if not is_pjrt(client) or not lowered.storable:
        return False
    return not lowered.host_callbacks or client.platform == "cpu"


def _compile(
    lowered: LoweredModule | EquationProgram,
    platform: str,
    client: Any,
    device_list: Any,
    options: Any,
    compiler_options: CompilerOptions | None,
) -> Any:
    load = not clients.is_compile_only(client)
    jaxpr = lowered.equations
    request = CompileRequest(
        platform=platform,
        client=client,
        module=_module(lowered, load) if jaxpr is None else None,
        devices=device_list,
        options=options,
        host_callbacks=tuple(map(on_host, lowered.host_callbacks)),
        name=lowered.name,
        load=load,
        jaxpr=jaxpr,
        donated=lowered.donated,
    )
    reserve_for_compiler(lowered.name)
    try:
        executable = backend_compile_and_load(client, request)
        compiler_is_loaded()
        return executable if not load else _callable(executable, lowered, platform, client)
    except JaxRuntimeError as error:
        if "No such compile option" in str(error) or "compile option" in str(error).lower():
            raise CompilerOptionError(
                f"compiler_options={dict(compiler_options or {})!r}: {error}"
            ) from error
        if "RESOURCE_EXHAUSTED" in str(error):
            error.add_note(
                f"The program {lowered.name} needs more memory than {device_list[0]!r} has"
            )
        raise


def backend_compile_and_load(backend: Any, request: CompileRequest) -> Any:
    """Have a backend compile a program.

    Every program passes here but those of its pieces that the compiler asks for. The name and the
    first argument are JAX's: tools that watch or forbid compilation replace the function.

    Args:
        backend: the client.
        request: the program.
    """
    return manager().compile(request)


def _callable(executable: Any, lowered: Any, platform: str, client: Any) -> Any:
    """Wrap an executable in jaxlib's interface."""
    if is_pjrt(client):
        return executable
    count = len(lowered.out_avals) + bool(host_effects(lowered.effects))
    return PluginProgram(executable, lowered.name, platform, lowered.donated, count)


def _module(lowered: Any, load: bool) -> Any:
    """The module in the form that clients take."""
    return lowered.bytecode() if load and not lowered.host_callbacks else lowered.module


# Programs read from the disk cache: XLA cannot serialize an executable that it has deserialized,
# the code would be missing.
_read: Final[set[tuple[bytes, bytes]]] = set()


def serialized(
    executable: Any,
    lowered: LoweredModule | EquationProgram,
    sharding: Any,
    compiler_options: CompilerOptions | None = None,
) -> bytes:
    """Serialize an executable; one that came from the disk cache is compiled again first.

    Args:
        executable: the result of `compile_executable` for the other arguments.
        lowered: the module.
        sharding: where it runs.
        compiler_options: the user's compiler options.

    Raises:
        JaxRuntimeError: the backend does not serialize executables.
    """
    process_ends.check()
    device_list = sharding._internal_device_list
    client = sharding._device.client
    platform = clients.platform_of(client)
    options, option_bytes = compile_options(platform, tuple(device_list), compiler_options, lowered)
    if (lowered.key(), option_bytes) in _read:
        executable = _compile(lowered, platform, client, device_list, options, compiler_options)
    payload: bytes = executable.serialize()
    return payload


def with_own_names(
    executable: Any,
    lowered: LoweredModule | EquationProgram,
    sharding: Any,
    compiler_options: CompilerOptions | None = None,
) -> Any:
    """An executable that shows the names and source locations of its own module.

    Equal programs share an executable, which shows those of the first. One that shows others, or
    comes from the disk cache, is compiled again, and kept nowhere.

    Args:
        executable: the result of `compile_executable` for the other arguments.
        lowered: the module.
        sharding: where it runs.
        compiler_options: the user's compiler options.
    """
    process_ends.check()
    device_list = sharding._internal_device_list
    client = sharding._device.client
    if not lowered.storable or not is_pjrt(client):
        return executable
    platform = clients.platform_of(client)
    options, option_bytes = compile_options(platform, tuple(device_list), compiler_options, lowered)
    if not lowered.cacheable and (lowered.key(), option_bytes) not in _read:
        return executable
    with _lock:
        entry = _table.get((lowered.key(), option_bytes, id(client)))
    names = entry.names if entry is not None and entry.executable is executable else None
    if names is not None and names == lowered.names_key():
        return executable
    return _compile(lowered, platform, client, device_list, options, compiler_options)


def deserialized(payload: bytes, lowered: Any, sharding: Any) -> Any:
    """Load an executable from the bytes of `serialized`, perhaps from another process.

    Args:
        payload: the bytes.
        lowered: the program's metadata, with the attributes of a `LoweredModule`.
        sharding: where it is to run.

    Raises:
        JaxRuntimeError: the backend cannot load it.
        NotImplementedError: the backend does not support loading executables.
    """
    process_ends.check()
    device_list = sharding._internal_device_list
    client = sharding._device.client
    platform = clients.platform_of(client)
    options, _ = compile_options(platform, tuple(device_list))
    load = getattr(client, "deserialize_executable", None)
    if load is None:
        raise NotImplementedError(
            f"the client of the platform {platform!r} has no deserialize_executable(): its "
            "backend does not offer it"
        )
    return _callable(load(payload, device_list, options), lowered, platform, client)


def _load(
    cache: disk_cache.DiskCache,
    key: str,
    lowered: LoweredModule | EquationProgram,
    client: Any,
    device_list: Any,
    options: Any,
) -> Any:
    """The executable from the disk cache, which calls this program's callbacks, or None."""
    start = time.perf_counter()
    payload = cache.read(key)
    if payload is None:
        return None
    callbacks = list(map(on_host, lowered.host_callbacks))
    bound = {"host_callbacks": callbacks} if callbacks else {}
    try:
        executable = client.deserialize_executable(payload, device_list, options, **bound)
    except Exception as error:
        if is_interrupt(error):
            raise
        # The checksum is valid, so this build of the backend cannot read what it once wrote.
        cache.discard(key, f"the backend cannot load it: {error}")
        return None
    seconds = time.perf_counter() - start
    with _lock:
        _statistics.loaded += 1
        _statistics.load_seconds += seconds
    monitoring.log_duration("loaded", lowered.name, seconds)
    events.emit("load", lowered.name, seconds)
    monitoring.record_event_duration_secs(f"{_CACHE_EVENTS}/cache_retrieval_time_sec", seconds)
    return executable
