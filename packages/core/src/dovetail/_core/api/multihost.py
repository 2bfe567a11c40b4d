"""Values that processes exchange, and places at which they wait for each other."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from dovetail._core.api.jit import jit
from dovetail._core.base import dtypes, pytree
from dovetail._core.base.bindings import _jax
from dovetail._core.base.config import process_timeout
from dovetail._core.base.errors import DistributedError
from dovetail._core.base.typing import PyTree
from dovetail._core.ir.partition_spec import PartitionSpec
from dovetail._core.runtime.arrays.array import Array, wrap_as
from dovetail._core.runtime.arrays.assembly import (
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from dovetail._core.runtime.arrays.transfer import device_put
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.mesh import Mesh
from dovetail._core.runtime.devices.named_sharding import NamedSharding
from dovetail._core.runtime.processes import group

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "live_devices",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]

NDArray = np.ndarray[Any, Any]

#: Bytes from all processes that go by way of the coordinator, rather than that of the devices.
_SMALL: Final = 1 << 16
#: How much of which digests processes tell each other where they have found a difference.
_SHORT: Final = 16
_MOST_LEAVES: Final = 2000


def _is_spread(leaf: Any) -> bool:
    return isinstance(leaf, Array) and not leaf.is_fully_addressable


def _on_host(leaf: Any) -> NDArray:
    """A leaf as a NumPy array; Python's numbers as those that programs take."""
    value = np.asarray(leaf)
    if isinstance(leaf, (bool, int, float, complex)) and not isinstance(leaf, np.generic):
        return value.astype(dtypes.canonicalize_dtype(value.dtype))
    return value


def _number_and_count() -> tuple[int, int]:
    processes = group.current()
    return (0, 1) if processes is None else (processes.process_index, processes.process_count)


# --------------------------------------------------------------------------------- all to all


def process_allgather(in_tree: PyTree, tiled: bool = False) -> PyTree:
    """What all processes have, in every process.

    Every process calls it, with values of the same shapes and dtypes.

    Args:
        in_tree: arrays and numbers, or a tree of them. Of an array over devices of several
            processes, which all of them have, it is the whole value.
        tiled: whether to join the values along their first dimension, rather than stack them along
            a new one.

    Returns:
        The values as NumPy arrays, in the order of the processes.

    Raises:
        ValueError: processes have values of other shapes or dtypes, or `tiled` is False and an
            array is over devices of several processes.
        DistributedError: a process has died, or does not come within the option
            ``process_timeout``.

    Differs:
        NumPy arrays of 64 bits are gathered as they are. Whoever has another shape or dtype is
        named.

        >>> from dovetail.experimental import multihost_utils
        >>> print(multihost_utils.process_allgather(np.arange(2), tiled=True).dtype)
        int64

    Example:
        >>> from dovetail.experimental import multihost_utils
        >>> print(multihost_utils.process_allgather(np.arange(3)))  # with one process
        [[0 1 2]]
    """
    leaves, tree = pytree.flatten(in_tree)
    results: list[Any] = [None] * len(leaves)
    for number, leaf in enumerate(leaves):
        if _is_spread(leaf):
            if not tiled:
                raise ValueError(
                    "process_allgather: an array over devices of several processes has one value, "
                    "which is gathered with tiled=True; tiled=False would stack those of processes"
                )
            results[number] = _whole(leaf)
    own = [n for n, leaf in enumerate(leaves) if not _is_spread(leaf)]
    gathered = _exchanged([_on_host(leaves[n]) for n in own], str(tree), "process_allgather")
    for position, number in enumerate(own):
        values = [values[position] for values in gathered]
        tile = tiled and values[0].ndim
        results[number] = np.concatenate(values) if tile else np.stack(values)
    return tree.unflatten(results)


def _whole(array: Array) -> NDArray:
    if array.is_fully_replicated:
        return np.array(array)
    return np.array(device_put(array, array.sharding.update(spec=PartitionSpec())))


def _exchanged(
    own: Sequence[NDArray], structure: str, function: str, source: bool | None = None
) -> list[list[NDArray]]:
    """The arrays of all processes, or of the only one that is the source.

    Args:
        own: those of this process.
        structure: of the tree, for the comparison.
        function: the public function's name, for messages.
        source: whether this process is the source; None if all are.

    Raises:
        ValueError: their shapes or dtypes differ, or there is not one source.
        DistributedError: a process does not come.
    """
    _, count = _number_and_count()
    kinds = [structure, *(f"{array.dtype}{list(array.shape)}" for array in own)]
    if count == 1:
        if source is False:
            raise ValueError(f"{function}: no process has is_source=True")
        return [[np.array(array) for array in own]]
    packed = b"".join([array.tobytes() for array in own])
    senders = count if source is None else 1
    small = len(packed) * senders <= _SMALL
    sent = base64.b64encode(packed).decode() if small and source in (None, True) else ""
    told = group.meet(
        function,
        f"multihost_utils.{function}",
        process_timeout.value,
        value=json.dumps([kinds, source, sent]),
    )
    all_of = {n: json.loads(told[n]) for n in sorted(told)}
    for other, (their, _, _) in all_of.items():
        if their != all_of[0][0]:
            raise ValueError(
                f"{function}: all processes must have values of the same shapes and dtypes; "
                f"process {other} has {_shown(their)}, and process 0 has {_shown(all_of[0][0])}"
            )
    sources = [n for n, (_, is_source, _) in all_of.items() if is_source is not False]
    if source is not None and len(sources) != 1:
        raise ValueError(
            f"{function}: one process must have is_source=True, and {len(sources) or 'none'} "
            f"of {count} ha{'ve' if sources else 's'}"
        )
    if small:
        bytes_of = {n: base64.b64decode(all_of[n][2]) for n in sources}
    else:
        rows = _rows(np.frombuffer(packed, np.uint8), None if source is None else sources[0])
        bytes_of = {n: row.tobytes() for n, row in zip(sources, rows, strict=True)}
    return [_unpacked(bytes_of[n], own) for n in sources]


def _shown(kinds: Sequence[str]) -> str:
    return ", ".join(kinds[1:])[:200] + f" in {kinds[0]}"[:100]


def _unpacked(packed: bytes, like: Sequence[NDArray]) -> list[NDArray]:
    arrays, start = [], 0
    for array in like:
        part = packed[start : start + array.nbytes]
        arrays.append(np.frombuffer(part, array.dtype).reshape(array.shape).copy())
        start += array.nbytes
    return arrays


def _rows(row: NDArray, source: int | None) -> NDArray:
    """The rows of all processes, by way of their first devices; that of the source if not None."""
    number, count = _number_and_count()
    firsts: dict[int, Any] = {}
    for device in clients.devices():
        firsts.setdefault(device.process_index, device)
    mesh = Mesh([firsts[n] for n in range(count)], "processes")
    rows = NamedSharding(mesh, PartitionSpec("processes"))
    part = device_put(row[None], firsts[number])
    array = make_array_from_single_device_arrays((count, row.size), rows, [part])
    everywhere = NamedSharding(mesh, PartitionSpec())
    if source is None:
        return np.asarray(device_put(array, everywhere))
    chosen = jit(lambda x: x[source : source + 1], out_shardings=everywhere)
    return np.asarray(chosen(array))


def broadcast_one_to_all(in_tree: PyTree, is_source: bool | None = None) -> PyTree:
    """What one process has, in every process.

    Every process calls it, with values of the same shapes and dtypes.

    Args:
        in_tree: arrays and numbers, or a tree of them; what counts is that of the source.
        is_source: whether this process is the source; by default process 0 is.

    Returns:
        The values of the source, as NumPy arrays.

    Raises:
        ValueError: not exactly one process is the source, or values have other shapes or dtypes.
        DistributedError: a process has died, or does not come within the option
            ``process_timeout``.

    Example:
        >>> from dovetail.experimental import multihost_utils
        >>> multihost_utils.broadcast_one_to_all({"seed": np.array([3])})
        {'seed': array([3])}
    """
    number, _ = _number_and_count()
    leaves, tree = pytree.flatten(in_tree)
    source = number == 0 if is_source is None else bool(is_source)
    own = [_on_host(leaf) for leaf in leaves]
    (values,) = _exchanged(own, str(tree), "broadcast_one_to_all", source)
    return tree.unflatten(values)


def assert_equal(in_tree: PyTree, fail_message: str = "") -> None:
    """Raise in every process unless all of them have the same values.

    Args:
        in_tree: arrays and numbers, or a tree of them.
        fail_message: what the message begins with.

    Raises:
        AssertionError: a process has others, which the message names.
        DistributedError: a process has died, or does not come within the option
            ``process_timeout``.

    Differs:
        Values are compared by their bytes, so that NaN equals itself.

        >>> from dovetail.experimental import multihost_utils
        >>> print(multihost_utils.assert_equal(np.nan))
        None

    Example:
        >>> from dovetail.experimental import multihost_utils
        >>> multihost_utils.assert_equal({"step": 3}, "steps differ")
    """
    _, count = _number_and_count()
    named, tree = pytree.flatten_with_path(in_tree)
    digests = {}
    for path, leaf in named:
        value = _on_host(leaf)
        kind = f"{value.dtype}{list(value.shape)} "
        digest = hashlib.sha256(kind.encode() + value.tobytes()).hexdigest()
        digests[pytree.keystr(path)] = digest
    if count == 1:
        return
    place, seconds = ("assert_equal", "multihost_utils.assert_equal"), process_timeout.value
    whole = hashlib.sha256(json.dumps([str(tree), digests]).encode()).hexdigest()
    if len(set(group.meet(*place, seconds, value=whole).values())) == 1:
        return
    shown = {path: digest[:_SHORT] for path, digest in list(digests.items())[:_MOST_LEAVES]}
    short = hashlib.sha256(str(tree).encode()).hexdigest()
    told = group.meet(*place, seconds, value=json.dumps([short, shown]))
    first_tree, first = json.loads(told[0])
    for other in sorted(told):
        their_tree, their = json.loads(told[other])
        apart = [path for path, digest in their.items() if digest != first.get(path)]
        if their_tree != first_tree or apart:
            what = "another value" + (f" of {apart[0]}" if apart and apart[0] else "")
            if their_tree != first_tree:
                what = "another tree"
            raise AssertionError(
                f"{fail_message + ': ' if fail_message else ''}process {other} has {what} than "
                "process 0"
            )
    raise AssertionError(
        f"{fail_message + ': ' if fail_message else ''}processes have other values, beyond the "
        f"first {_MOST_LEAVES} leaves of the tree"
    )


def sync_global_devices(name: str) -> None:
    """Wait until all processes have come to the same place.

    Args:
        name: the place.

    Raises:
        DistributedError: a process has died, is at another place, or does not come within the
            option ``process_timeout``; the message says who is missing.

    Example:
        >>> from dovetail.experimental import multihost_utils
        >>> multihost_utils.sync_global_devices("the checkpoint is written")
    """
    if _number_and_count()[1] > 1:
        group.meet(
            f"sync_global_devices {name}",
            f"multihost_utils.sync_global_devices({name!r})",
            process_timeout.value,
        )


# ------------------------------------------------------------------- arrays of one and of all


def host_local_array_to_global_array(
    local_inputs: PyTree, global_mesh: Mesh, pspecs: PyTree
) -> PyTree:
    """Arrays over the devices of all processes, of the parts that each process has.

    Args:
        local_inputs: an array, or a tree of them: what the devices of this process hold, together.
        global_mesh: the devices.
        pspecs: how each array is divided over them: a `PartitionSpec`, or a tree of them that is a
            prefix of `local_inputs`.

    Returns:
        The arrays; what is over devices of several processes already stays as it is.

    Raises:
        ValueError: an array cannot be divided so.

    Example:
        >>> from dovetail.experimental import multihost_utils
        >>> from dovetail.sharding import Mesh, PartitionSpec as P
        >>> mesh = Mesh(dt.devices()[:1], "x")
        >>> x = multihost_utils.host_local_array_to_global_array(np.arange(3), mesh, P("x"))
        >>> x.shape, x.sharding.spec
        ((3,), P('x'))
    """
    function = "host_local_array_to_global_array"
    leaves, tree, specs = _with_specs(function, local_inputs, global_mesh, pspecs)
    made = []
    for leaf, spec in zip(leaves, specs, strict=True):
        if _is_spread(leaf):
            made.append(leaf)
            continue
        place = NamedSharding(global_mesh, spec)
        made.append(make_array_from_process_local_data(place, leaf))
    return tree.unflatten(made)


def global_array_to_host_local_array(
    global_inputs: PyTree, global_mesh: Mesh, pspecs: PyTree
) -> PyTree:
    """The parts that this process has of arrays over the devices of all processes.

    Args:
        global_inputs: an array, or a tree of them.
        global_mesh: the devices.
        pspecs: how each array is divided over them: a `PartitionSpec`, or a tree of them that is a
            prefix of `global_inputs`.

    Returns:
        Arrays over the devices of this process, divided likewise.

    Raises:
        ValueError: an array cannot be divided so.

    Example:
        >>> from dovetail.experimental import multihost_utils
        >>> from dovetail.sharding import Mesh, PartitionSpec as P
        >>> mesh = Mesh(dt.devices()[:1], "x")
        >>> x = multihost_utils.host_local_array_to_global_array(np.arange(3), mesh, P("x"))
        >>> print(multihost_utils.global_array_to_host_local_array(x, mesh, P("x")))
        [0 1 2]
    """
    function = "global_array_to_host_local_array"
    leaves, tree, specs = _with_specs(function, global_inputs, global_mesh, pspecs)
    return tree.unflatten(
        [_own_part(leaf, global_mesh, spec) for leaf, spec in zip(leaves, specs, strict=True)]
    )


def _with_specs(
    function: str, values: PyTree, mesh: Any, pspecs: PyTree
) -> tuple[list[Any], Any, list[Any]]:
    if not isinstance(mesh, Mesh):
        raise TypeError(f"{function}: global_mesh must be a Mesh, got {mesh!r}")
    leaves, tree = pytree.flatten(values)
    specs = pytree.flatten_up_to_prefix(f"pspecs of {function}", pspecs, tree)
    chosen = [PartitionSpec() if spec is None else spec for spec in specs]
    for spec in chosen:
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"{function}: pspecs holds {spec!r}; write PartitionSpec(...)")
    return leaves, tree, chosen


def _own_part(leaf: Any, mesh: Mesh, spec: PartitionSpec) -> Any:
    local = NamedSharding(mesh.local_mesh, spec)
    if not _is_spread(leaf):
        return device_put(leaf, local)
    array = device_put(leaf, NamedSharding(mesh, spec))
    parts = [shard.data for shard in array.addressable_shards]
    shape = tuple(
        own * (whole // part)
        for own, whole, part in zip(parts[0].shape, *_division(local, array.ndim), strict=True)
    )
    made = make_array_from_single_device_arrays(shape, local, parts)
    return wrap_as(leaf, made._buffer)


def _division(sharding: NamedSharding, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of an array that the sharding divides, and that of its parts."""
    shape = (sharding.num_devices,) * ndim
    return shape, sharding.shard_shape(shape)


# ---------------------------------------------------------------------------------- the living


@contextlib.contextmanager
def live_devices(devices: Sequence[Any]) -> Iterator[list[Any]]:
    """The devices whose processes are alive, equal in all of these.

    Every process that has one of the devices and is alive enters it. If one of them dies inside,
    leaving it raises, and programs over the devices of the others can run; arrays over devices of
    the dead are lost. Inside, processes may have got to different places before the death: what
    goes on from a checkpoint is equal in all.

    Args:
        devices: devices of several processes.

    Returns:
        A context manager that gives a list of devices.

    Raises:
        DistributedError: a process has died inside, or does not come within the option
            ``process_timeout``.

    Example:
        >>> from dovetail.experimental import multihost_utils
        >>> with multihost_utils.live_devices(dt.devices()) as living:
        ...     print(len(living) == dt.device_count())
        True
    """
    number, _ = _number_and_count()
    members = {device.process_index for device in devices}
    if number not in members:
        raise ValueError(f"live_devices: process {number} has none of the devices")
    living = members if group.current() is None else _roll_call(members)
    yield [device for device in devices if device.process_index in living]
    if group.current() is not None:
        group.meet("live_devices", _LIVE, process_timeout.value, sorted(living))


_LIVE: Final = "multihost_utils.live_devices"


def _roll_call(members: set[int]) -> set[int]:
    """Those of the processes that are alive, as all of them see it."""
    while True:
        group.check({_number_and_count()[0]})  # the others may go on without this one
        living = members - group.dead().keys()
        try:
            group.meet("live_devices", _LIVE, process_timeout.value, sorted(living))
        except DistributedError as error:
            group.wait_for_news(1.0)
            if not set(error.processes) & group.dead().keys():
                raise
        else:
            return living


_preemptions: list[Any] = []


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether all processes are to save their state at this step, since one of them will be ended.

    A process that gets SIGTERM tells the others, and all of them learn it at the same step, the
    next one that none of them has passed. Every process calls it at every step. From its first call
    on, SIGTERM no longer ends the process.

    Args:
        step_id: the number of the step, which increases.

    Returns:
        True at one step after SIGTERM, the same in all processes.

    Raises:
        RuntimeError: this process belongs to no group.

    Example:
        >>> from dovetail.experimental import multihost_utils
        >>> def train(steps):
        ...     for step in range(steps):
        ...         if multihost_utils.reached_preemption_sync_point(step):
        ...             ...  # write a checkpoint
    """
    processes = group.current()
    if processes is None:
        raise RuntimeError(
            "reached_preemption_sync_point: this process belongs to no group; call "
            "dovetail.distributed.initialize() first"
        )
    if not _preemptions or _preemptions[0] is not processes:
        manager = _jax.create_preemption_sync_manager()
        manager.initialize(processes.client)
        _preemptions[:] = [processes, manager]
    return bool(_preemptions[1].reached_sync_point(int(step_id)))
