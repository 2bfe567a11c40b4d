"""Makes the TPU client out of libtpu."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jaxlib import xla_client

from dovetail.extend import Client
from dovetail_tpu.capabilities import find_library

PLUGIN: Final = "tpu"
OPTIONS: Final = ("max_inflight_computations",)


def client_options(options: Mapping[str, object]) -> dict[str, str | int]:
    """The options that libtpu is given.

    Args:
        options: what the user asked for.

    Raises:
        TypeError: an option is unknown or of the wrong type.
    """
    checked: dict[str, str | int] = {"ml_framework_name": "dovetail"}
    for name, value in options.items():
        if name not in OPTIONS:
            raise TypeError(f"the tpu backend has no option {name}; it has {', '.join(OPTIONS)}")
        if not isinstance(value, int):
            raise TypeError(f"tpu option {name} must be an int, got {value!r}")
        checked[name] = value
    return checked


def make_client(options: Mapping[str, object]) -> Client:
    """Create a TPU client; the chips then belong to this process until it ends.

    Args:
        options: see `client_options`.

    Returns:
        jaxlib's client on libtpu's C API.
    """
    if not xla_client.pjrt_plugin_loaded(PLUGIN):
        xla_client.load_pjrt_plugin_dynamically(PLUGIN, str(find_library()))
    if not xla_client.pjrt_plugin_initialized(PLUGIN):
        xla_client.initialize_pjrt_plugin(PLUGIN)
    client: Client = xla_client.make_c_api_client(PLUGIN, client_options(options))
    return client
