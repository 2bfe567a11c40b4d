"""``device.memory_stats()`` of devices whose backend counts nothing, such as CPUs.

jaxlib's method gives None there. In its place stands `memory_stats`, which looks at the live arrays
of the devices of this framework's clients; devices of other clients, such as jax's own, answer as
before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from dovetail._core.base.bindings import _jax
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.capacity import host_memory

__all__ = ["extend", "memory_stats"]

_of_backend: Final[Callable[[Any], Mapping[str, int] | None]] = _jax.Device.memory_stats


def memory_stats(self: Any) -> Mapping[str, int] | None:
    """What is used of the device's memory, in bytes.

    Devices with an allocator of their own (GPUs, TPUs) tell what it counts. A CPU has none, and
    these are facts about the live arrays on it, at the time of the call:

    - ``bytes_in_use``: what they take; arrays that share their memory count once. What running
      programs take besides is not among it.
    - ``num_allocs``: how many they are.
    - ``largest_alloc_size``: the largest of them.
    - ``bytes_limit``: what this process can have at most, if that is known.

    The peak is not known, and so there is no ``peak_bytes_in_use``: that of a program is told by
    `dovetail.stages.Lowered.memory`.

    Returns:
        The numbers by name; None if nothing is known.

    Example:
        >>> import dovetail as dt
        >>> import dovetail.numpy as jnp
        >>> device = dt.devices("cpu")[0]
        >>> before = device.memory_stats()["bytes_in_use"]
        >>> x = jnp.zeros(1000)
        >>> device.memory_stats()["bytes_in_use"] - before
        4000
    """
    found = _of_backend(self)
    if found is not None or not clients.runs_here(self):
        return found
    from dovetail._core.runtime.devices import live_buffers  # deferred: seldom needed

    buffers = live_buffers.alive(clients.platform_of(self))
    sizes, counts, largest = live_buffers.bytes_by_device(buffers)
    facts = {
        "bytes_in_use": sizes[self],
        "num_allocs": counts[self],
        "largest_alloc_size": largest.get(self, 0),
    }
    limit = host_memory()
    return facts if limit is None else facts | {"bytes_limit": limit}


def extend() -> None:
    """Let jaxlib's devices answer by `memory_stats`."""
    _jax.Device.memory_stats = memory_stats
