"""Loads the PJRT library for CUDA with its kernels, and creates its client."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Mapping
from pathlib import Path

from dovetail.extend import BackendUnavailableError, Client, ProcessGroup
from dovetail.extend.pjrt import PjrtError, load_plugin
from dovetail.extend.pjrt import Plugin as PjrtPlugin
from dovetail_cuda import explanations, ffi, libraries
from dovetail_cuda.capabilities import CudaPlugin, require_plugin
from dovetail_cuda.options import client_options

XLA_NAME = "cuda"
"""What jaxlib looks for when it loads a compiled program from bytes."""

NAME = "dovetail_cuda"
"""What jaxlib knows the library by where jax takes "cuda": it refuses a name twice in a process."""


def library_name() -> str:
    """What jaxlib is to know the library by.

    Where jax is installed it may be imported later, and could not take "cuda" then. Until it is,
    compiled programs are not loaded from disk there, but compiled again in each process.
    """
    found = importlib.util.find_spec("jax")
    # The alias of `dovetail.as_jax` is no other jax.
    is_there = found is not None and "dovetail" not in Path(found.origin or "").parts
    return NAME if is_there else XLA_NAME


def load(*, compiling: bool = False) -> tuple[CudaPlugin, PjrtPlugin]:
    """Load the library, and register every kernel; once in a process.

    Args:
        compiling: whether it only compiles, which needs fewer packages.

    Raises:
        BackendUnavailableError: a wheel is missing, or its version is not that of jaxlib.
        PjrtError: the library cannot be used.
    """
    plugin = require_plugin(compiling=compiling)
    libraries.preload(plugin)
    library = load_plugin(library_name(), plugin.library)
    ffi.register_kernels(plugin, library)
    return plugin, library


def make_client(options: Mapping[str, object], processes: ProcessGroup | None = None) -> Client:
    """Create a CUDA client.

    Args:
        options: see `client_options`.
        processes: the processes whose GPUs the client has.

    Returns:
        jaxlib's client for the library's C API.

    Raises:
        BackendUnavailableError: there is none, for the reason in the message.
        TypeError: an option is unknown or of the wrong type.
        ValueError: an option or an environment variable has an invalid value.
    """
    chosen = client_options(_with_group(options, processes))
    plugin, library = load()
    problem = libraries.problem(plugin)
    if problem:
        raise BackendUnavailableError(problem)
    try:
        client: Client = library.make_client(
            chosen, None if processes is None else processes.client
        )
    except PjrtError as error:
        situation = explanations.Situation(
            generation=plugin.generation,
            options=chosen,
            visible=os.environ.get("CUDA_VISIBLE_DEVICES"),
        )
        message = str(error)
        if explanations.hides_the_reason(message):
            message = libraries.why_no_devices(plugin) or message
        sentence = explanations.why_no_client(message, situation)
        if sentence is None:
            raise
        raise BackendUnavailableError(sentence) from error
    return client


def _with_group(
    options: Mapping[str, object], processes: ProcessGroup | None
) -> Mapping[str, object]:
    """The options, with what the library is told of the processes."""
    if processes is None:
        return options
    told: dict[str, object] = {
        "node_id": processes.process_index,
        "num_nodes": processes.process_count,
    }
    if processes.slice_index is not None:
        told["partition_index"] = processes.slice_index
    if processes.local_device_ids is not None and options.get("visible_devices", "all") == "all":
        told["visible_devices"] = list(processes.local_device_ids)
    return {**options, **told}
