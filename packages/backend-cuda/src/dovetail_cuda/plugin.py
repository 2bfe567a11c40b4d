"""The hooks by which core finds and starts the CUDA backend."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

from dovetail.extend import (
    BackendInfo,
    Client,
    Device,
    Executable,
    LoweringTable,
    ProcessGroup,
    hookimpl,
)
from dovetail_cuda.capabilities import CAPABILITIES, find_plugin, missing_hardware, require_plugin


@hookimpl
def dovetail_backend_info() -> BackendInfo:
    """Describe the backend: NVIDIA GPUs, preferred over the CPU."""
    return BackendInfo(
        platform="cuda",
        api=(1, 2),
        priority=200,
        aliases=("gpu",),
        description="NVIDIA GPUs, through XLA's PJRT library for CUDA",
        capabilities=CAPABILITIES,
    )


@hookimpl
def dovetail_probe(platform: str) -> str:
    """Look for a GPU's device files, then for the wheels; a GPU without wheels raises."""
    missing = missing_hardware()
    if not missing:
        require_plugin()
    return missing


@hookimpl
def dovetail_make_client(
    platform: str, options: Mapping[str, object], processes: ProcessGroup | None
) -> Client:
    """Load the PJRT library and create the client.

    Args:
        platform: `"cuda"`.
        options: `visible_devices` (`"all"`, numbers such as `"0,2"`, or a list of them),
            `memory_fraction` (float between 0 and 1), `preallocate` (bool), `allocator` (str) and
            others, see `dovetail_cuda.options`. They win over the environment variables.
        processes: the processes whose GPUs the client has; NCCL finds the others through it.
    """
    from dovetail_cuda.runtime import make_client  # deferred: loads jaxlib

    return make_client(options, processes)


@hookimpl
def dovetail_lowerings(platform: str) -> LoweringTable:
    """Lowerings to NVIDIA's libraries and to the kernels of the plug-in."""
    from dovetail_cuda.lowerings import LOWERINGS  # deferred: needed once a program is lowered

    return LOWERINGS


@hookimpl
def dovetail_compile_options(platform: str) -> Mapping[str, str]:
    """The folder of NVIDIA's compiler, if it is installed where the plug-in does not look."""
    from dovetail_cuda.libraries import compiler_folder  # deferred: needed once one is compiled

    plugin = find_plugin()
    folder = compiler_folder(plugin) if plugin is not None else None
    return {} if folder is None else {"xla_gpu_cuda_data_dir": str(folder)}


@hookimpl(wrapper=True)
def dovetail_compile() -> Generator[None, Executable, Executable]:
    """Say what to install if the compiler lacks something on this machine."""
    try:
        return (yield)
    except RuntimeError as error:
        from dovetail_cuda.explanations import Situation, why_not_compiled  # deferred: seldom

        plugin = find_plugin()
        sentence = why_not_compiled(str(error), Situation(plugin.generation if plugin else 13))
        if sentence is None:
            raise
        raise RuntimeError(sentence) from error


@hookimpl
def dovetail_topology(
    platform: str, name: str, options: Mapping[str, object]
) -> Sequence[Device] | None:
    """GPUs to compile for that need not be present, see `dovetail_cuda.topology`."""
    from dovetail_cuda.topology import devices  # deferred: loads jaxlib

    return devices(name, options)
