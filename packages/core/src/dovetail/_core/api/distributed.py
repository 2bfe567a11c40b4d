"""Joining a group of processes that compute together, and leaving it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dovetail._core.base.errors import close_matches
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.processes import group
from dovetail._core.runtime.processes.clusters import METHODS, Place, detected, from_environment
from dovetail._core.runtime.processes.group import Timeouts
from dovetail._core.runtime.processes.joining import OWN_MACHINE, join

__all__ = ["initialize", "is_initialized", "shutdown"]

_FUNCTION: Final = "distributed.initialize"


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 100,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
    slice_index: int | None = None,
    partition_index: int | None = None,
    mtls_cert_file: str | None = None,
    mtls_key_file: str | None = None,
    mtls_ca_file: str | None = None,
    mtls_peer_uri_prefix: str | None = None,
    verify_secure_credentials: bool | None = None,
) -> None:
    """Join the processes that compute together, before anything is computed.

    Every process calls it, with the same arguments but for its number. Then `dovetail.devices()`
    are those of all processes, `dovetail.local_devices()` its own, and programs over meshes of them
    run in all processes at once.

    What is not given is taken from the environment: DOVETAIL_COORDINATOR_ADDRESS,
    DOVETAIL_NUM_PROCESSES, DOVETAIL_PROCESS_ID, DOVETAIL_LOCAL_DEVICE_IDS and
    DOVETAIL_COORDINATOR_BIND_ADDRESS (``JAX_`` in place of ``DOVETAIL_`` is accepted), which
    ``python -m dovetail launch`` sets; then from Slurm, Open MPI or Kubernetes if one of them has
    started this process. MPI is asked through mpi4py if `cluster_detection_method` says so.

    A process that dies does not take the others with it: what waits for it raises a
    `DistributedError` that names it. To be killed is noticed at once, to be silent after
    `heartbeat_timeout_seconds`. The coordinator is a process of its own, which process 0 starts; it
    ends with the last process. If the coordinator itself is killed, jaxlib ends all processes;
    ``python -m dovetail launch --restarts`` starts them again.

    Args:
        coordinator_address: where process 0 has its coordinator, such as ``"10.0.0.1:1234"``.
        num_processes: the number of processes.
        process_id: the number of this one, from 0 on.
        local_device_ids: the numbers of this process's devices on its machine, for GPUs; by default
            all, or under Slurm and Open MPI, where several processes are on a machine, one for
            each.
        cluster_detection_method: ``"slurm"``, ``"ompi"``, ``"k8s"`` or ``"mpi4py"`` to ask that
            one, ``"deactivate"`` for none of them; None, or ``"auto"``, for whichever has started
            this process, but mpi4py.
        initialization_timeout: seconds in which all processes have to come.
        heartbeat_timeout_seconds: seconds after which a silent process counts as dead.
        shutdown_timeout_seconds: seconds for which `shutdown` waits for the other processes.
        coordinator_bind_address: where the coordinator listens, if that is not at its port on all
            addresses of the machine (or on the machine's own, if `coordinator_address` is).
        slice_index: the slice of the hardware that this process belongs to; None to find out.
        partition_index: the newer name of `slice_index`.
        mtls_cert_file: must be None.
        mtls_key_file: must be None.
        mtls_ca_file: must be None.
        mtls_peer_uri_prefix: must be None.
        verify_secure_credentials: must be None or False.

    Raises:
        RuntimeError: this process belongs to a group already, or has a client of a backend already,
            or the coordinator cannot listen at its address.
        ValueError: an argument is missing, or out of range.
        TypeError: an argument has the wrong type.
        DistributedError: not all processes came in time, or they do not fit together; the message
            names them.
        NotImplementedError: connections are to be encrypted.

    Differs:
        What goes wrong is an error within its time-out, where jaxlib ends the process: a
        coordinator that is not there, a process that does not come or has another number of
        processes, two with one number. A process that dies does not end the others. One process
        alone on a machine has all of its GPUs, under Slurm and Open MPI too. Connections between
        processes are not encrypted.

        >>> dt.distributed.initialize("localhost:1", 2, 2)
        Traceback (most recent call last):
            ...
        ValueError: distributed.initialize: process_id=2 is out of range: with num_processes=2 ...

    Example:
        >>> import dovetail as dt
        >>> dt.distributed.initialize("localhost:1234", 4, 0)  # doctest: +SKIP
        >>> dt.process_index(), dt.process_count()  # doctest: +SKIP
        (0, 4)
    """
    for name, value in (
        ("mtls_cert_file", mtls_cert_file),
        ("mtls_key_file", mtls_key_file),
        ("mtls_ca_file", mtls_ca_file),
        ("mtls_peer_uri_prefix", mtls_peer_uri_prefix),
        ("verify_secure_credentials", verify_secure_credentials or None),
    ):
        if value is not None:
            raise NotImplementedError(
                f"{_FUNCTION}: connections between processes are not encrypted, so {name} must be "
                f"left out; got {value!r}. Use a private network"
            )
    if partition_index is not None and slice_index is not None:
        raise ValueError(
            f"{_FUNCTION} takes partition_index or slice_index, its old name, not both; got "
            f"{partition_index=} and {slice_index=}"
        )
    _check_alone()
    seconds = [
        _number(name, value, 1)
        for name, value in (
            ("initialization_timeout", initialization_timeout),
            ("heartbeat_timeout_seconds", heartbeat_timeout_seconds),
            ("shutdown_timeout_seconds", shutdown_timeout_seconds),
        )
    ]
    given = Place(
        _address("coordinator_address", coordinator_address),
        None if num_processes is None else _number("num_processes", num_processes, 1),
        None if process_id is None else _number("process_id", process_id, 0),
        _ids(local_device_ids),
        _address("coordinator_bind_address", coordinator_bind_address),
        slice_index if partition_index is None else partition_index,
    )
    if given.slice_index is not None:
        _number("slice_index", given.slice_index, 0)
    place = given.filled(from_environment())
    method = _method(cluster_detection_method)
    if method != "deactivate" and not place.is_complete():
        place = place.filled(detected(method, patience=initialization_timeout))
    place = _checked(place)
    _check_clients()
    join(place, Timeouts(*seconds))


def _check_alone() -> None:
    present = group.current()
    if present is not None:
        raise RuntimeError(
            f"{_FUNCTION} was called before, and this is process {present.process_index} of "
            f"{present.process_count}: call it once, or distributed.shutdown() first"
        )


def _check_clients() -> None:
    started = clients.started()
    if started:
        raise RuntimeError(
            f"{_FUNCTION} must be called before anything is computed and before the first look at "
            f"devices, and the platform {started[0]!r} has started already: call it right after "
            "the imports"
        )


def _number(name: str, value: Any, least: int) -> int:
    if type(value) is not int:
        raise TypeError(f"{_FUNCTION}: {name} must be an int, got {value!r}")
    if value < least:
        raise ValueError(f"{_FUNCTION}: {name} must be {least} or more, got {value}")
    return value


def _address(name: str, value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise TypeError(f"{_FUNCTION}: {name} must be a str, got {value!r}")
    host, _, port = value.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(
            f"{_FUNCTION}: {name} must be a host and a port, such as 'localhost:1234', got "
            f"{value!r}"
        )
    return value


def _ids(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    ids = (value,) if type(value) is int else value
    if not isinstance(ids, Sequence) or not all(type(n) is int and n >= 0 for n in ids):
        raise TypeError(
            f"{_FUNCTION}: local_device_ids must be a number of a device or a list of them, got "
            f"{value!r}"
        )
    if not ids:
        raise ValueError(f"{_FUNCTION}: local_device_ids is empty; leave it out for all devices")
    return tuple(ids)


def _method(method: Any) -> str | None:
    if method is None or method == "auto":
        return None
    names = (*METHODS, "auto", "deactivate")
    if not isinstance(method, str) or method not in names:
        near = close_matches(str(method), names)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"{_FUNCTION}: cluster_detection_method must be one of "
            f"{', '.join(map(repr, names))} or None, got {method!r}{hint}"
        )
    return method


def _checked(place: Place) -> Place:
    missing = [
        name
        for name in ("coordinator_address", "num_processes", "process_id")
        if getattr(place, name) is None
    ]
    if missing:
        raise ValueError(
            f"{_FUNCTION}: {' and '.join(missing)} must be given: nothing in the environment says "
            "so, and neither Slurm, Open MPI nor Kubernetes has started this process. Pass "
            f"{' and '.join(f'{name}=...' for name in missing)}, set "
            f"{' and '.join(f'DOVETAIL_{name.upper()}' for name in missing)}, or start the program "
            "by python -m dovetail launch -n 2 program.py"
        )
    address, count, number = place.coordinator_address, place.num_processes, place.process_id
    assert address is not None
    assert count is not None
    assert number is not None
    _address("coordinator_address", address)
    if _number("process_id", number, 0) >= _number("num_processes", count, 1):
        raise ValueError(
            f"{_FUNCTION}: process_id={number} is out of range: with num_processes={count} the "
            f"numbers are 0 to {count - 1}"
        )
    if place.coordinator_bind_address is not None:
        _address("coordinator_bind_address", place.coordinator_bind_address)
        return place
    host, _, port = address.rpartition(":")
    # Whoever names this machine by its own address asks for nobody else's.
    bind = f"{host}:{port}" if host in OWN_MACHINE else f"[::]:{port}"
    bind = bind.replace("localhost:", "127.0.0.1:").replace("::1:", "[::1]:", int(host == "::1"))
    return place.filled(Place(coordinator_bind_address=bind))


def is_initialized() -> bool:
    """Whether this process belongs to a group, which `initialize` has made.

    Example:
        >>> import dovetail as dt
        >>> dt.distributed.is_initialized()
        False
    """
    return group.current() is not None


def shutdown() -> None:
    """Leave the group of processes, when all of them do.

    It is called by itself when the interpreter exits. Processes that do not come are waited for as
    long as `shutdown_timeout_seconds` of `initialize` says; then a warning names them. Arrays and
    programs over devices of other processes cannot be used afterwards. Without a group it does
    nothing.

    Example:
        >>> import dovetail as dt
        >>> dt.distributed.shutdown()
    """
    group.leave()
