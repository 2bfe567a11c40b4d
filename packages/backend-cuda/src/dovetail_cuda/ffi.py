"""Gives the PJRT library the kernels of the plug-in's wheel, by the names that programs call."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from typing import Any, Final

from dovetail.extend.pjrt import Plugin as PjrtPlugin
from dovetail_cuda.capabilities import Plugin

PLATFORM: Final = "CUDA"
"""The platform's name as XLA's compiler knows it."""

# Modules of jaxlib that know with which version of the interface each kernel was made.
_LISTED: Final = ("gpu_linalg", "gpu_prng", "gpu_solver", "gpu_sparse")
# Modules of the wheel that nothing lists. All their kernels are typed.
_OTHERS: Final = ("_rnn", "_triton")

_lock: Final = threading.Lock()
_done: Final[set[int]] = set()


def targets(plugin: Plugin) -> Iterator[tuple[str, Any, int]]:
    """Name, capsule (or capsules by stage) and version of the interface of every kernel."""
    for name in _LISTED:
        yield from importlib.import_module(f"jaxlib.{name}").registrations()[PLATFORM]
    for name in _OTHERS:
        module = importlib.import_module(f"{plugin.kernels}.{name}")
        yield from ((target, value, 1) for target, value in module.registrations().items())
    extension = importlib.import_module(f"{plugin.kernels}.cuda_plugin_extension")
    yield from ((target, value, 1) for target, value in extension.ffi_handlers().items())


def register(plugin: Plugin, library: PjrtPlugin) -> None:
    """Give the library every kernel, and the types of what they keep between calls, once.

    jaxlib's own tables are left alone: another framework in the process may fill them.

    Args:
        plugin: the wheels.
        library: the PJRT library in this process.
    """
    with _lock:
        if id(library) in _done:
            return
        extension = importlib.import_module(f"{plugin.kernels}.cuda_plugin_extension")
        for name, value in extension.ffi_types().items():
            extension.register_custom_type(library.capsule, name, value)
        for name, value, version in targets(plugin):
            extension.register_custom_call_target(
                library.capsule, name, value, PLATFORM, api_version=version
            )
        _done.add(id(library))
