"""The hooks by which core finds and starts the TPU backend."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.extend import BackendInfo, Client, hookimpl
from dovetail_tpu.capabilities import CAPABILITIES, PCI_FOLDER, count_chips, find_library


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    """Describe the backend: Google's TPUs, chosen over everything else."""
    return BackendInfo(
        platform="tpu",
        api=(1, 0),
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
    """Keep libtpu from asking the cloud about a machine without chips.

    Where there are none (programs are then only compiled ahead of time), each question to the
    metadata server takes half a minute to fail.
    """
    return {} if count_chips() else {"TPU_SKIP_MDS_QUERY": "1"}


@hookimpl
def dovetail_make_client(platform: str, options: Mapping[str, object]) -> Client:
    """Load libtpu and create the client.

    Args:
        platform: `"tpu"`.
        options: `max_inflight_computations` (int).
    """
    from dovetail_tpu.runtime import make_client  # deferred: loads jaxlib

    return make_client(options)
