"""Creates the TPU client from libtpu."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dovetail.extend import BackendUnavailableError, Client
from dovetail.extend.pjrt import PjrtError, Plugin, load_plugin
from dovetail_tpu.capabilities import count_chips, find_library

OPTIONS: Final = ("max_inflight_computations",)


def client_options(options: Mapping[str, object]) -> dict[str, str | int]:
    """The options passed to libtpu.

    Args:
        options: the user's options.

    Raises:
        TypeError: an option is unknown or of the wrong type.
        ValueError: an option has an invalid value.
    """
    checked: dict[str, str | int] = {"ml_framework_name": "dovetail"}
    for name, value in options.items():
        if name not in OPTIONS:
            raise TypeError(f"the tpu backend has no option {name}; it has {', '.join(OPTIONS)}")
        if type(value) is not int:
            raise TypeError(f"tpu option {name} must be an int, got {value!r}")
        if value < 1:
            raise ValueError(f"tpu option {name} must be at least 1, got {value}")
        checked[name] = value
    return checked


def library() -> Plugin:
    """libtpu, loaded on the first call.

    jax uses the same name and checks whether it is taken. libtpu is therefore initialised once in a
    process, as its interface requires, by whoever is first.
    """
    return load_plugin("tpu", find_library())


def make_client(options: Mapping[str, object]) -> Client:
    """Create a TPU client; the chips then belong to this process until it ends.

    Args:
        options: see `client_options`.

    Returns:
        jaxlib's client for libtpu's C API.

    Raises:
        BackendUnavailableError: libtpu cannot use the chips.
    """
    checked = client_options(options)
    plugin = library()
    try:
        client: Client = plugin.make_client(checked)
    except PjrtError as error:
        raise BackendUnavailableError(
            f"libtpu cannot use the {count_chips()} TPU chips of this machine. Only one process "
            "can use them at a time: look whether another one does, and whether this one may open "
            f"their files (/dev/accel* or /dev/vfio/*). libtpu says: {error.__cause__ or error}"
        ) from error
    return client
