"""Makes the CPU client out of jaxlib's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from jaxlib import xla_client

from dovetail.extend import Client

OPTIONS: Final = ("asynchronous", "num_devices")


def make_client(options: Mapping[str, object]) -> Client:
    """Create a CPU client.

    Args:
        options: `num_devices` and `asynchronous`, each of them optional.

    Returns:
        jaxlib's client.

    Raises:
        TypeError: an option is unknown or of the wrong type.
        ValueError: `num_devices` is not positive.
    """
    unknown = sorted(set(options) - set(OPTIONS))
    if unknown:
        raise TypeError(
            f"the cpu backend has no option {', '.join(unknown)}; it has {', '.join(OPTIONS)}"
        )
    num_devices = options.get("num_devices")
    if num_devices is not None and (type(num_devices) is not int or num_devices < 1):
        kind = TypeError if type(num_devices) is not int else ValueError
        raise kind(f"cpu option num_devices must be a positive int or None, got {num_devices!r}")
    asynchronous = options.get("asynchronous", True)
    if not isinstance(asynchronous, bool):
        raise TypeError(f"cpu option asynchronous must be True or False, got {asynchronous!r}")
    client: Client = xla_client.make_cpu_client(asynchronous=asynchronous, num_devices=num_devices)
    return client
