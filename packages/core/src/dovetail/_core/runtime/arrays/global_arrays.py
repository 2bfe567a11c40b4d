"""Arrays over devices of several processes, of which each process holds its parts alone."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.base import caches
from dovetail._core.base.bindings import JaxRuntimeError, _jax
from dovetail._core.base.config import process_timeout
from dovetail._core.base.errors import DeviceMismatchError, DistributedError
from dovetail._core.ir.jaxpr import ClosedJaxpr, DebugInfo, Jaxpr, Var, no_effects
from dovetail._core.runtime.arrays.parts import is_local
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.placement import Placement
from dovetail._core.runtime.devices.sharding import Index
from dovetail._core.runtime.processes import group

__all__ = [
    "check_equal",
    "check_free",
    "check_own",
    "lost",
    "own_parts",
    "processes_of",
    "put_own",
    "redivided",
    "unreadable",
    "wait_until_ready",
]

_COPY_DURING_CALL: Final = _jax.HostBufferSemantics.IMMUTABLE_ONLY_DURING_CALL
_SHARE: Final = _jax.HostBufferSemantics.ZERO_COPY
#: Seconds between looks at an array that is computed, at first and at most, and the part that they
#: are in between of the time so far.
_PAUSES: Final = (1e-5, 1e-3, 0.02)
#: Seconds until what waits for a process that has died gets an error, where the backend can end
#: that; and those that computations on this process's own devices have after a death, most of which
#: do not depend on others.
_LATEST: Final = 10.0
#: Seconds until a death is known after the connection to the process has gone.
_NEWS: Final = 3.0
_OF_PEERS: Final = r"[Gg]loo|NCCL|[Pp]eer|MPI"


def processes_of(sharding: Any) -> frozenset[int]:
    """The numbers of the processes that have the devices of a sharding."""
    return frozenset(sharding._internal_device_list.process_indices)


def own_parts(sharding: Any, shape: tuple[int, ...]) -> list[tuple[Any, Index]]:
    """The devices of a sharding that are this process's, in their order, with their parts."""
    parts = sharding.devices_indices_map(shape)
    return [(device, index) for device, index in parts.items() if clients.is_addressable(device)]


def check_own(sharding: Any, what: str = "data") -> None:
    """Raise unless this process has one of the devices.

    Raises:
        DeviceMismatchError: all of them are other processes'.
    """
    devices = sharding._device_list
    if any(map(clients.is_addressable, devices)):
        return
    owners = sorted(processes_of(sharding))
    own = devices[0].client.process_index()
    shown = repr(devices[0]) if len(devices) == 1 else f"all devices of {sharding}"
    raise DeviceMismatchError(
        f"{shown} belong{'s' if len(devices) == 1 else ''} to process "
        f"{', '.join(map(str, owners))}, so process {own} places no {what} there: it has "
        "dovetail.local_devices(), and shardings over devices of several processes that it is in"
    )


def put_own(value: Any, aval: Any, sharding: Any, committed: bool) -> Any:
    """Copy this process's parts of a host value, which is the same in all processes."""
    check_own(sharding)
    value = np.asarray(value)
    own = own_parts(sharding, value.shape)
    parts, semantics = [value[index] for _, index in own], _COPY_DURING_CALL
    if len({str(index) for _, index in own}) < len(own):
        # jaxlib does not copy parts that share memory, so that each device gets its own.
        parts, semantics = [np.array(part) for part in parts], _SHARE
    devices = [device for device, _ in own]
    return _jax.batched_device_put(
        aval, sharding, parts, devices, committed, False, semantics, True
    )


def redivided(buffer: Any, sharding: Any, committed: bool) -> Any:
    """The data of a buffer divided in another way, by a program of all processes.

    Raises:
        DeviceMismatchError: it is over other devices, or in another order.
    """
    present = buffer._sharding
    if present._device_list != sharding._device_list:
        raise DeviceMismatchError(
            "an array over devices of several processes stays on them: it has the sharding "
            f"{present}, and {sharding} has other devices, or another order. "
            "dovetail.experimental.multihost_utils.process_allgather(x, tiled=True) gives its value"
        )
    program = dividing_program(buffer.aval, present, sharding, False)
    return program.execute([buffer], committed)[0]._buffer


@caches.lru_cache(maxsize=512)
def dividing_program(aval: Any, present: Any, sharding: Any, donate: bool) -> Any:
    """A program that divides an array in another way over the same devices.

    Args:
        aval: the type of the array.
        present: the sharding that it has.
        sharding: the one to give it.
        donate: whether the memory of the array may be used again.
    """
    from dovetail._core.runtime.calls.dispatch import compile_jaxpr  # deferred: cycle

    x = Var(aval)
    jaxpr = Jaxpr([], [x], [x], [], no_effects, DebugInfo("moving", "move"))
    place = Placement([present], [sharding])
    return compile_jaxpr(ClosedJaxpr(jaxpr, []), place, name="move", donated=[donate])


def check_equal(value: Any, sharding: Any, what: str) -> None:
    """Raise unless all processes of a sharding have the same value.

    Args:
        value: a NumPy array or scalar.
        sharding: where it is to be placed.
        what: a phrase for it, for messages.

    Raises:
        ValueError: they have not.
        DistributedError: one of them does not come here.
    """
    check_own(sharding)
    import hashlib  # deferred: groups of processes need it

    array = np.asarray(value)
    kind = f"{array.dtype}{list(array.shape)}"
    digest = hashlib.sha256(f"{kind} ".encode() + array.tobytes()).hexdigest()
    members = sorted(processes_of(sharding))
    told = group.meet(
        "device_put", f"device_put of {kind}", process_timeout.value, members, value=digest
    )
    others = [number for number, their in told.items() if their != told[members[0]]]
    if others:
        raise ValueError(
            f"device_put: {what} must be the same in all processes of the sharding, and process "
            f"{others[0]} has another one than process {members[0]}. Where each has its own part, "
            "write dovetail.make_array_from_process_local_data(sharding, part)"
        )


def unreadable(aval: Any, sharding: Any) -> RuntimeError:
    """The error for an array whose value this process does not have."""
    own = sharding._device.client.process_index()
    return RuntimeError(
        f"the array of shape {aval.shape} lies on devices of several processes, and process {own} "
        "holds a part of it. dovetail.experimental.multihost_utils.process_allgather(x, tiled=True)"
        " gives all of it, in every process; x.addressable_shards are the parts that are here"
    )


# --------------------------------------------------------------------------------------- waiting


def wait_until_ready(buffers: Sequence[Any]) -> None:
    """Wait until buffers are computed, or never will be.

    jaxlib's own waiting cannot be interrupted, and has no end if a process has died.

    Raises:
        DistributedError: a process has died.
    """
    for buffer in buffers:
        _watch(buffer)


def _watch(buffer: Any) -> None:
    since, begun, apart = 0.0, time.monotonic(), False
    least, most, part = _PAUSES
    while not (buffer.is_deleted() or buffer.is_ready()):
        now = time.monotonic()
        time.sleep(min(max(least, part * (now - begun)), most))
        if not group.dead():
            group.check_calls()
            continue
        since = since or now
        place = buffer._sharding
        if is_local(place):
            # It may stand behind what waits for others.
            if now - since > _LATEST and not group.disconnect():
                group.check()
            continue
        if not apart and now - since > group.GRACE:
            apart = bool(group.dead().keys() & processes_of(place)) and group.disconnect()
        if now - since > (_LATEST if apart else group.GRACE):
            _stuck.append(buffer)
            group.check(processes_of(place))
            _stuck.pop()
            check_free()


# What will never be computed, since it waits for a process that has died and the backend cannot end
# that. It holds on to the devices, and so does all that is started on them later.
_stuck: Final[list[Any]] = []


def check_free() -> None:
    """Raise if this process's devices wait for a process that has died, and will for ever.

    Raises:
        DistributedError: they do.
    """
    for buffer in list(_stuck):
        if buffer.is_deleted() or buffer.is_ready():
            with contextlib.suppress(ValueError):
                _stuck.remove(buffer)
            continue
        members = processes_of(buffer._sharding)
        found = sorted(group.dead().keys() & members)
        raise DistributedError(
            f"the devices of this process wait for ever for process {', '.join(map(str, found))}, "
            "which has died: leave, and start again",
            tuple(found),
        )


def lost(error: BaseException) -> BaseException:
    """The error to raise where a computation failed; another one if a process has died."""
    if group.current() is None or not isinstance(error, (JaxRuntimeError, ValueError)):
        return error
    if not group.dead():
        if not re.search(_OF_PEERS, str(error)):
            return error
        group.wait_for_news(_NEWS)
    try:
        group.check_calls()
        group.check()
    except DistributedError as death:
        death.__cause__ = error
        return death
    return error
