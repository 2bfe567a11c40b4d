"""The hooks by which core finds and starts the CUDA backend."""

from __future__ import annotations

from collections.abc import Mapping

from dovetail.extend import BackendInfo, Client, hookimpl
from dovetail_cuda.capabilities import CAPABILITIES, find_library, missing_hardware


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    """Describe the backend: NVIDIA GPUs, chosen over the CPU."""
    return BackendInfo(
        platform="cuda",
        api=(1, 0),
        priority=200,
        aliases=("gpu",),
        description="NVIDIA GPUs, through XLA's PJRT library for CUDA",
        capabilities=CAPABILITIES,
    )


@hookimpl
def dovetail_probe(platform: str) -> str:
    """Look for a GPU's device files, then for the library; a GPU without library raises."""
    missing = missing_hardware()
    if not missing:
        find_library()
    return missing


@hookimpl
def dovetail_make_client(platform: str, options: Mapping[str, object]) -> Client:
    """Load the PJRT library and create the client.

    Args:
        platform: `"cuda"`.
        options: `visible_devices` (list of int), `memory_fraction` (float between 0 and 1),
            `preallocate` (bool), `allocator` (str): as the library documents them.
    """
    from dovetail_cuda.runtime import make_client  # deferred: loads jaxlib

    return make_client(options)
