"""Makes the CUDA client out of the PJRT library for CUDA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from jaxlib import xla_client

from dovetail.extend import Client
from dovetail_cuda.capabilities import find_library

PLUGIN: Final = "cuda"
OPTIONS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "allocator": str,
    "memory_fraction": (int, float),
    "preallocate": bool,
    "visible_devices": list,
}


def client_options(options: Mapping[str, object]) -> dict[str, Any]:
    """The options that the library is given: those of its environment variables, then `options`.

    Args:
        options: what the user asked for.

    Raises:
        TypeError: an option is unknown or of the wrong type.
    """
    for name, value in options.items():
        if name not in OPTIONS:
            raise TypeError(
                f"the cuda backend has no option {name}; it has {', '.join(sorted(OPTIONS))}"
            )
        if not isinstance(value, OPTIONS[name]):
            raise TypeError(f"cuda option {name} has the wrong type: {value!r}")
    return {**xla_client.generate_pjrt_gpu_plugin_options(), **options}


def make_client(options: Mapping[str, object]) -> Client:
    """Create a CUDA client.

    Args:
        options: see `client_options`.

    Returns:
        jaxlib's client on the library's C API.
    """
    if not xla_client.pjrt_plugin_loaded(PLUGIN):
        xla_client.load_pjrt_plugin_dynamically(PLUGIN, str(find_library()))
    if not xla_client.pjrt_plugin_initialized(PLUGIN):
        xla_client.initialize_pjrt_plugin(PLUGIN)
    client: Client = xla_client.make_c_api_client(PLUGIN, client_options(options))
    return client
