"""The hooks by which core finds and starts the TPU backend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dovetail.extend import BackendInfo, Client, Device, LoweringTable, hookimpl
from dovetail_tpu.capabilities import (
    CAPABILITIES,
    ENVIRONMENT_WITHOUT_CHIPS,
    PCI_FOLDER,
    count_chips,
    find_library,
)


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    """Describe the backend: Google's TPUs, preferred over everything else."""
    return BackendInfo(
        platform="tpu",
        api=(1, 1),
        priority=300,
        description="Google TPUs, through libtpu",
        capabilities=CAPABILITIES,
    )


@hookimpl
def dovetail_probe(platform: str) -> str:
    """Look for TPU chips on the PCI bus, then for libtpu; chips without libtpu raise."""
    if not count_chips():
        return f"there is no TPU on this machine (no TPU chip under {PCI_FOLDER})."
    find_library()
    return ""


@hookimpl
def dovetail_environment(platform: str) -> Mapping[str, str]:
    """Keep libtpu from looking for things that a machine without chips does not have."""
    return {} if count_chips() else ENVIRONMENT_WITHOUT_CHIPS


@hookimpl
def dovetail_make_client(platform: str, options: Mapping[str, object]) -> Client:
    """Load libtpu and create the client.

    Args:
        platform: `"tpu"`.
        options: `max_inflight_computations` (int): the maximum number of programs in flight.
    """
    from dovetail_tpu.runtime import make_client  # deferred: loads jaxlib

    return make_client(options)


@hookimpl
def dovetail_lowerings(platform: str) -> LoweringTable:
    """Rules for operations that the TPU compiler cannot compile otherwise."""
    from dovetail_tpu.lowerings import TABLE  # deferred: needed by programs only

    return TABLE


@hookimpl
def dovetail_topology(platform: str, name: str, options: Mapping[str, object]) -> Sequence[Device]:
    """Describe TPUs to compile for; libtpu does so without a chip.

    Args:
        platform: `"tpu"`.
        name: the generation and the number of chips in each direction, such as `"v4:2x2x1"`; `""`
            for `"v5e:2x2"`.
        options: `chips_per_host_bounds` (three ints), `num_slices` (int), `wrap` (three bools: the
            directions in which the chips form a ring).
    """
    from dovetail_tpu.topologies import topology_devices  # deferred: loads jaxlib

    return topology_devices(name, options)
