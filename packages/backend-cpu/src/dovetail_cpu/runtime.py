"""Creates the CPU client from jaxlib's own."""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from jaxlib import _jax, version, xla_client

from dovetail.extend import BackendUnavailableError, Client, ProcessGroup
from dovetail_cpu import blas, company, kernels

OPTIONS: Final = ("asynchronous", "num_devices", "num_threads", "retained_memory")

GROUP_OPTIONS: Final = ("collectives", "global_topology_timeout", "local_topology_timeout")
"""Those that matter where several processes compute together."""

# Where XLA reads the size of its thread pools; the default is the number of processors.
_POOL_SIZE: Final = ("PJRT_NPROC", "NPROC")

_VERSION: Final = tuple(map(int, version.__version__.split(".")[:2]))

#: Of a pool of so many, the thread that calls takes the place of one.
_FEW_THREADS: Final = 2

TILES_ARE_SLOW: Final = _VERSION < (0, 12)
"""Whether loops over tiles of elements take longer than others; if not, they compile faster."""

_M_TRIM_THRESHOLD: Final = -1
_M_MMAP_THRESHOLD: Final = -3
_LARGEST_INT: Final = 2**31 - 1

#: Whether the client that was made last has one thread and one device, and the threads of its pool.
_alone: Final[list[bool]] = [False]
_threads: Final[list[int]] = [0]


def make_client(options: Mapping[str, object], processes: ProcessGroup | None = None) -> Client:
    """Create a CPU client.

    Args:
        options: the names in `OPTIONS` and `GROUP_OPTIONS`; all optional.
        processes: the processes whose devices the client has.

    With one device and one thread, programs run in the thread that calls them, and with two they do
    unless `asynchronous` is True: to hand each to another thread, and to wait for it, takes as long
    as a small program, and gains little where the other has no processor of its own.

    Returns:
        jaxlib's client.

    Raises:
        TypeError: an option is unknown or of the wrong type.
        ValueError: `num_devices` or `num_threads` is not positive, or another option out of range.
        BackendUnavailableError: what the processes are to exchange data by is not there.
    """
    known = (*OPTIONS, *GROUP_OPTIONS)
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise TypeError(
            f"the cpu backend has no option {', '.join(unknown)}; it has {', '.join(known)}"
        )
    num_devices = _positive("num_devices", options)
    num_threads = _positive("num_threads", options)
    asynchronous = options.get("asynchronous")
    if not isinstance(asynchronous, bool | None):
        raise TypeError(
            f"cpu option asynchronous must be True, False or None, got {asynchronous!r}"
        )
    retained = options.get("retained_memory", 0)
    if type(retained) is not int or retained < 0:
        kind = TypeError if type(retained) is not int else ValueError
        raise kind(f"cpu option retained_memory must be a number of bytes, got {retained!r}")
    if retained:
        keep_freed_memory(retained)
    if num_threads is not None:
        blas.set_most_threads(num_threads)
    kernels.set_most_threads(num_threads)
    arguments, note = _group_arguments(options, processes)
    only = processes is None and _is_one(num_devices)
    _alone[:] = [only and num_threads == 1]
    with pool_of(num_threads, fewest=fewest_threads(num_devices or 1)) as threads:
        _threads[:] = [threads]
        if asynchronous is None:
            asynchronous = not only or threads > _FEW_THREADS
        client: Client = xla_client.make_cpu_client(
            asynchronous=asynchronous and not computes_alone(),
            num_devices=num_devices,
            **arguments,
        )
    note()
    if processes is None and not computes_alone():
        company.invite(client)
    else:
        company.dismiss()
    return client


def computes_alone() -> bool:
    """Whether programs run in the thread that calls them, and no other could take a part."""
    return _alone[0]


def processors() -> int:
    """How many processors this process may use; 2 where the system does not say."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2


def num_threads() -> int:
    """How many threads a program has, or would have if there were a client."""
    return 1 if computes_alone() else _threads[0] or processors()


def _positive(name: str, options: Mapping[str, object]) -> int | None:
    value = options.get(name)
    if value is None:
        return None
    if type(value) is not int or value < 1:
        kind = TypeError if type(value) is not int else ValueError
        raise kind(f"cpu option {name} must be a positive int or None, got {value!r}")
    return value


def _group_arguments(
    options: Mapping[str, object], processes: ProcessGroup | None
) -> tuple[dict[str, Any], Callable[[], object]]:
    """What jaxlib's client is told of the processes; and what to call once it is there."""
    if processes is None:
        return {}, _nothing
    minutes: dict[str, object] = {}
    for name, default in (("local_topology_timeout", 2), ("global_topology_timeout", 5)):
        value = minutes[name] = options.get(name, default)
        if type(value) is not int or value < 1:
            raise ValueError(f"cpu option {name} must be a number of minutes, got {value!r}")
    collectives, note = _collectives(options.get("collectives", "gloo"), processes)
    return {
        "distributed_client": processes.client,
        "node_id": processes.process_index,
        "num_nodes": processes.process_count,
        "collectives": collectives,
        "get_local_topology_timeout_minutes": minutes["local_topology_timeout"],
        "get_global_topology_timeout_minutes": minutes["global_topology_timeout"],
    }, note


def _nothing() -> None:
    pass


def _collectives(kind: object, processes: ProcessGroup) -> tuple[Any, Callable[[], object]]:
    """What the processes exchange data by, and what to call once the client is there."""
    if kind == "gloo":
        from dovetail_cpu.connections import make_gloo  # deferred: loads sockets

        return make_gloo(processes)
    if kind == "mpi":
        mpi: Any = _jax.make_mpi_collectives()
        try:
            mpi.Init()
        except RuntimeError as error:
            raise BackendUnavailableError(
                f"the CPUs of several processes cannot exchange data by MPI: {error}. Start them "
                "by mpirun, with MPItrampoline, or set DOVETAIL_CPU_COLLECTIVES_IMPLEMENTATION=gloo"
            ) from error
        atexit.register(mpi.Finalize)
        return mpi, _nothing
    if kind in ("none", None):
        return None, _nothing
    raise ValueError(f"cpu option collectives must be 'gloo', 'mpi', 'none' or None, got {kind!r}")


def _is_one(num_devices: int | None) -> bool:
    """Whether there will be one device."""
    named = "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "")
    return num_devices == 1 or (num_devices is None and not named)


def fewest_threads(num_devices: int) -> int:
    """How many threads XLA's pool must have, with which programs divide their work.

    A callback can hold the only thread of a pool; a program that it runs would then wait forever.
    In jaxlib before 0.11 each device holds a thread while it waits for the others in a collective
    operation, and several programs may be under way.
    """
    return 2 * num_devices if num_devices > 1 and _VERSION < (0, 11) else 2


@contextlib.contextmanager
def pool_of(num_threads: int | None, *, fewest: int) -> Iterator[int]:
    """Make XLA create a pool of so many threads, and yield how many it will have.

    Args:
        num_threads: None to leave the number to XLA's variables, or the processors.
        fewest: how many there must be.
    """
    given = [os.environ[name] for name in _POOL_SIZE if name in os.environ]
    if num_threads is None and given:
        yield int(given[0]) if given[0].isdecimal() else processors()
        return
    name = _POOL_SIZE[0]
    before = os.environ.get(name)
    size = max(num_threads or processors(), fewest)
    os.environ[name] = str(size)
    try:
        yield size
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


def keep_freed_memory(limit: int) -> None:
    """Let the C library keep freed memory, up to a limit, instead of returning it at once.

    By default, glibc maps each block of more than 32 MiB anew, and returns free memory at the end
    of its heap. An array of 40 MB then costs several times as much as computing it, because the
    system clears every page again. Other C libraries are left as they are.

    Args:
        limit: Bytes.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    value = min(limit, _LARGEST_INT)
    mallopt(_M_MMAP_THRESHOLD, value)
    mallopt(_M_TRIM_THRESHOLD, value)
