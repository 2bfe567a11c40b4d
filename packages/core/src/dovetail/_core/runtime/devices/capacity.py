"""How much memory there is: what can never fit is refused before it is computed.

A system that promises more memory than it has lets a program fill it for minutes, and then ends a
process. Only the total is asked for, not what is free: others may give some back.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from dovetail._core.base.bindings import JaxRuntimeError
from dovetail._core.base.runtime_errors import OutOfMemoryError
from dovetail._core.base.source import describe
from dovetail._core.plugins.protocols import is_pjrt
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.control_groups import memory_limits

__all__ = ["FEWEST", "device_memory", "host_memory", "require_host_memory"]

#: Bytes below which nobody needs to ask, for reading these figures takes tens of microseconds.
FEWEST: Final = 2**30


def device_memory(device: Any) -> int | None:
    """The bytes of a device's memory; None if they are not known."""
    if "cpu" in (clients.platform_of(device), device.platform):
        return host_memory()
    try:
        stats = device.memory_stats()
    except (JaxRuntimeError, AttributeError, NotImplementedError):
        stats = None
    limit = (stats or {}).get("bytes_limit")
    if limit:
        return int(limit)
    return None if is_pjrt(device.client) else host_memory()


def host_memory() -> int | None:
    """The bytes that this process can have at most, with what is swapped; None if not known."""
    limits = [*_physical(), *memory_limits(), *_address_space()]
    return min(limits, default=None)


def require_host_memory(count: int, what: str) -> None:
    """Raise where the host would be asked for more memory than there is.

    NumPy fills what it is given, so that this is called before NumPy is.

    Args:
        count: how many bytes.
        what: what takes them, such as ``the indices of pad``.

    Raises:
        OutOfMemoryError: there is less.
    """
    if count < FEWEST:
        return
    there = host_memory()
    if there is not None and count > there:
        raise OutOfMemoryError(
            f"RESOURCE_EXHAUSTED: {what} would take {count / 2**30:.1f} GiB of the host's memory, "
            f"and there are {there / 2**30:.1f} GiB, at {describe()}"
        )


def _physical() -> list[int]:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="utf-8").splitlines()
        sizes = {line.split(":")[0]: line.split()[1] for line in lines}
        return [1024 * (int(sizes["MemTotal"]) + int(sizes["SwapTotal"]))]
    except (OSError, LookupError, ValueError):
        pass
    try:  # what other systems have besides, is not known: they swap to files
        return [16 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    except (AttributeError, OSError, ValueError):
        return []


def _address_space() -> list[int]:
    try:
        import resource  # deferred: not on every system
    except ImportError:
        return []
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    return [] if limit == resource.RLIM_INFINITY else [limit]
