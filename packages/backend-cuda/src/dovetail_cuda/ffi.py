"""Registers the kernels of the plug-in's wheel with the PJRT library, by name."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from typing import Any, Final

from dovetail.extend import BackendUnavailableError
from dovetail.extend.pjrt import Plugin as PjrtPlugin
from dovetail_cuda.capabilities import CudaPlugin, reinstall

PLATFORM: Final = "CUDA"
"""The platform's name as XLA's compiler knows it."""

MODULES: Final = ("_hybrid", "_linalg", "_prng", "_rnn", "_solver", "_sparse", "_triton")
"""Modules of the wheel that list their kernels."""

# The typed interface, which all kernels use in every version that this backend supports.
_TYPED: Final = 1

_lock: Final = threading.RLock()
_done: Final[set[int]] = set()


def targets(plugin: CudaPlugin) -> Iterator[tuple[str, Any]]:
    """Name and capsule (or capsules by stage) of every kernel.

    They come from the wheel that belongs to the library. jaxlib's own lists use whichever wheel it
    finds, which is the wrong one if two generations of CUDA are installed.

    Args:
        plugin: the wheels.

    Raises:
        BackendUnavailableError: the wheel lacks a module.
    """
    for name in MODULES:
        yield from _module(plugin, name).registrations().items()
    yield from _module(plugin, "cuda_plugin_extension").ffi_handlers().items()


def register_kernels(plugin: CudaPlugin, library: PjrtPlugin) -> None:
    """Register every kernel, and the types of their state, with the library, once.

    jaxlib's own tables are left alone: another framework in the process may fill them.

    Args:
        plugin: the wheels.
        library: the PJRT library in this process.

    Raises:
        BackendUnavailableError: the wheel with the kernels lacks a module.
    """
    with _lock:
        if id(library) in _done:
            return
        extension = _module(plugin, "cuda_plugin_extension")
        kernels = list(targets(plugin))  # all or none, so that a later call starts from nothing
        for name, value in extension.ffi_types().items():
            extension.register_custom_type(library.capsule, name, value)
        for name, value in kernels:
            extension.register_custom_call_target(
                library.capsule, name, value, PLATFORM, api_version=_TYPED
            )
        _done.add(id(library))


def _module(plugin: CudaPlugin, name: str) -> Any:
    try:
        return importlib.import_module(f"{plugin.kernels}.{name}")
    except ImportError as error:
        raise BackendUnavailableError(
            f"the kernels of {plugin.wheel} cannot be loaded ({error}): {reinstall(plugin)}."
        ) from error
