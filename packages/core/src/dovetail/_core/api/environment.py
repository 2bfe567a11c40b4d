"""Describes the installation and the process, for people and for bug reports."""

from __future__ import annotations

import os
import sys

from dovetail._core.base import native
from dovetail._core.base.errors import BackendUnavailableError
from dovetail._core.plugins import doctor
from dovetail._core.plugins.manager import manager
from dovetail._core.plugins.protocols import Client
from dovetail._core.plugins.trials import PATIENCE, TriedPlugins
from dovetail._core.runtime.devices import clients
from dovetail._core.runtime.devices.threads import describe_threads
from dovetail._core.runtime.programs import disk_cache


def cache_state() -> str:
    """The folder of the compilation cache on disk, with number and size of its files."""
    cache = disk_cache.current()
    if cache is None:
        return "off"
    try:
        entries = [entry for entry in os.scandir(cache.folder) if entry.is_file()]
        size = sum(entry.stat().st_size for entry in entries)
    except FileNotFoundError:
        return f"{cache.folder} (made when the first program is stored)"
    except OSError as error:
        return f"{cache.folder} (cannot be read: {error.strerror})"
    if not os.access(cache.folder, os.W_OK):
        return f"{cache.folder} (cannot be written; programs are read from it only)"
    limit = "no limit" if cache.max_bytes < 0 else f"limit {cache.max_bytes / 2**20:.0f} MiB"
    return f"{cache.folder} ({len(entries)} files, {size / 2**20:.1f} MiB, {limit})"


def calls_state() -> str:
    """Whether calls take the compiled path."""
    if native.calls is not None:
        return "compiled, by dovetail-native"
    return f"in Python, which takes longer for small programs: {native.reason}"


def run_doctor(*, as_data: bool, patience: float = PATIENCE) -> int:
    """Examine this installation and print the findings.

    Args:
        as_data: print JSON instead of text.
        patience: seconds that each plug-in has, in a process of its own.

    Returns:
        1 if a part of the installation is broken, else 0.
    """
    tried = TriedPlugins(patience=patience)

    def connect(platform: str) -> Client:
        tried.resolve_platforms()  # without a default platform none is started
        return tried.make_client(platform)

    settings = {
        "Calls": calls_state(),
        "Threads on the CPU": describe_threads(),
        "Compilation cache": cache_state(),
    }
    report = doctor.examine(tried, settings, connect)
    text = doctor.as_json(report) if as_data else doctor.as_text(report)
    sys.stdout.write(text + "\n")
    return report.exit_code


def print_environment_info(return_string: bool = False) -> str | None:
    """Print the facts for a bug report: versions, platforms and devices.

    Args:
        return_string: return the text instead of printing it.

    Returns:
        The text, or None when it was printed.

    Example:
        >>> import dovetail
        >>> text = dovetail.print_environment_info(return_string=True)
        >>> "jaxlib" in text
        True
    """
    lines = [f"{name}: {version}" for name, version in doctor.versions().items()]
    try:
        choice = manager().choose()
        lines.append(f"default platform: {choice.platforms[0]} ({choice.reason})")
        for platform in choice.platforms:
            devices = ", ".join(str(device) for device in clients.devices(platform))
            lines.append(f"{platform} devices: {devices}")
        lines += [f"{name} is not used: {why}" for name, why in choice.refused.items()]
    except BackendUnavailableError as error:
        lines.append(f"no devices: {error}")
    lines += [f"plug-in {failure}" for failure in manager().failures]
    lines.append(f"threads on the CPU: {describe_threads()}")
    lines.append(f"compilation cache: {cache_state()}")
    text = "\n".join(lines)
    if return_string:
        return text
    sys.stdout.write(text + "\n")
    return None
