"""Profiles of the memory on devices, for pprof."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from dovetail._core.runtime.devices import clients

__all__ = ["device_memory_profile", "save_device_memory_profile"]


def device_memory_profile(backend: str | None = None) -> bytes:
    """What holds memory on the devices now: arrays and programs, by the code that made them.

    Args:
        backend: the platform; the default one by default.

    Returns:
        A profile in the form of pprof, compressed by gzip.

    Raises:
        BackendUnavailableError: there is no such platform.
        NotImplementedError: its backend does not say.

    Example:
        >>> import dovetail as dt
        >>> type(dt.profiler.device_memory_profile("cpu"))
        <class 'bytes'>
    """
    client = clients.backend(backend)
    profile = getattr(client, "heap_profile", None)
    if profile is None:
        raise NotImplementedError(
            f"the backend of {clients.platform_of(client)} does not say what holds its memory; "
            "dovetail.live_arrays() lists the arrays"
        )
    return gzip.compress(profile())


def save_device_memory_profile(
    filename: os.PathLike[str] | str, backend: str | None = None
) -> None:
    """Write `device_memory_profile` to a file, for ``pprof --web FILE``.

    Args:
        filename: the file.
        backend: the platform; the default one by default.

    Raises:
        BackendUnavailableError: there is no such platform.
        OSError: the file cannot be written.
    """
    Path(filename).write_bytes(device_memory_profile(backend))
