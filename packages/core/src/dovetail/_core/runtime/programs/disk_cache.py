"""The disk cache of compiled programs, for later processes.

An entry is a file: a header with a checksum, then the serialised executable. Files are written
under another name and renamed, so readers see either a complete file or none. Any other damage
counts as a miss, and the file is removed. Loading an entry runs its code, so the folder and every
file must belong to the user or the administrator and be writable by nobody else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform as host_platform
import stat
import struct
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from dovetail._core.base import caches, config
from dovetail._core.base.errors import CompilationCacheWarning
from dovetail._core.base.folders import user_folder
from dovetail._core.base.interrupts import is_interrupt
from dovetail._core.plugins.manager import manager
from dovetail._core.runtime.devices.client_libraries import library_text

__all__ = ["DiskCache", "current", "default_folder", "entry_key", "host_processor"]

# Increased whenever files of an earlier dovetail must no longer be read.
FORMAT: Final = 1

_MAGIC: Final = b"dovetail program\x00" + bytes([FORMAT])
_HEADER: Final = struct.Struct(f"<{len(_MAGIC)}sQ32s")  # magic, length, SHA-256 of the payload
_SUFFIX: Final = ".program"
_TEMPORARY: Final = ".partial"
_STALE_SECONDS: Final = 3600.0
_MAX_FILES: Final = 16384
# Eviction removes old entries until usage is down to this share of the limits.
_KEPT_SHARE: Final = 0.8


def default_folder() -> Path:
    """The default folder for compiled programs, inside the user's cache folder."""
    return Path(user_folder())


# -----------------------------------------------------------------------------------------------
# keys


@caches.lru_cache(maxsize=1)
def host_processor() -> str:
    """The processor's model and instruction sets: code for one CPU may not run on another."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = file.read().split("\n\n", 1)[0].splitlines()
    except OSError:
        return f"{host_platform.machine()} {host_platform.processor()}"
    fields = ("vendor_id", "model name", "cpu family", "model", "flags", "Features", "CPU part")
    return "\n".join(line for line in lines if line.split(":")[0].strip() in fields)


def _backend_fingerprint(platform: str, client: Any, device_list: Any) -> str:
    import dovetail  # deferred: the package may still be importing when this module loads

    devices = list(device_list)
    bindings_version = _jaxlib_version()
    parts = [
        f"format {FORMAT}",
        f"dovetail {getattr(dovetail, '__version__', '')}",
        f"jaxlib {bindings_version}",
        f"platform {platform} from {manager().origin(platform)}",
        f"version {client.platform_version}",
        f"library {library_text(client, exact=True)}",
        f"kinds {[device.device_kind for device in devices]}",
        f"devices {len(client.devices())} processes {sorted({d.process_index for d in devices})}",
        f"coordinates {[getattr(device, 'coords', None) for device in devices]}",
        f"flags {os.environ.get('XLA_FLAGS', '')} {os.environ.get('LIBTPU_INIT_ARGS', '')}",
    ]
    if "cpu" in (platform, getattr(client, "platform", "")):  # some plug-ins compile for the host
        parts.append(host_processor())
    return "\n".join(parts)


def _jaxlib_version() -> str:
    import jaxlib.version  # deferred: only read for a key

    return str(jaxlib.version.__version__)


_fingerprints: Final[dict[Any, str]] = {}


def entry_key(
    module_key: bytes, options: bytes, platform: str, client: Any, device_list: Any
) -> str:
    """The name of a program's entry: a hash of everything that affects its compilation.

    Args:
        module_key: the hash of the module without source locations.
        options: the compile options as bytes.
        platform: the platform's name.
        client: its client.
        device_list: the devices that the program runs on.
    """
    key = (id(client), device_list, os.environ.get("XLA_FLAGS"))
    fingerprint = _fingerprints.get(key)
    if fingerprint is None:
        fingerprint = _fingerprints[key] = _backend_fingerprint(platform, client, device_list)
    digest = hashlib.sha256()
    for part in (module_key, options, fingerprint.encode()):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.hexdigest()


caches.register(_fingerprints.clear)


# --------------------------------------------------------------------------------------------
# folders


def _user_ids() -> tuple[int, ...]:
    """Ids of users whose files are trusted: this one and the administrator; none on Windows."""
    return (os.geteuid(), 0) if hasattr(os, "geteuid") else ()


def _folder_problem(folder: Path) -> str:
    """Why a folder must not be used; empty if it may."""
    status = os.stat(folder)
    if not stat.S_ISDIR(status.st_mode):
        return "it is not a folder"
    users = _user_ids()
    if not users:
        return ""
    if status.st_uid not in users:
        return (
            f"it belongs to another user (id {status.st_uid}), who could put programs there that "
            "would run as you"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH) and not status.st_mode & stat.S_ISVTX:
        return (
            f"others may write to it (mode {stat.S_IMODE(status.st_mode):o}), and could put "
            f"programs there that would run as you; chmod 700 {folder} makes it yours alone"
        )
    return ""


class DiskCache:
    """Compiled programs in one folder.

    Any number of processes may use it at once: nothing is locked, and an entry that disappears is a
    miss.

    Args:
        folder: the folder; it is created when the first program is stored.
        max_bytes: the size above which the least recently used programs are removed; -1 for no
            limit.
    """

    def __init__(self, folder: Path, max_bytes: int = -1) -> None:
        self.folder = folder
        self.max_bytes = max_bytes
        self._usable: bool | None = None
        self._writable = True
        self._stored = -1  # bytes in the folder, as far as this process knows; -1 if unknown
        self._files = 0
        self._warned = False
        self._lock = threading.RLock()

    # -------------------------------------------------------------------------------- reading

    def read(self, key: str) -> bytes | None:
        """The program stored under a key, or None. A damaged entry is removed."""
        path = self._path(key)
        if self._usable is None and not self._open(make=False):
            return None
        if not self._usable:
            return None
        try:
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())
                if not _is_trusted(status):
                    return None
                header = file.read(_HEADER.size)
                payload = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            if is_interrupt(error):
                raise
            self._warn(f"it cannot be read: {error}")
            return None
        problem = _damage(header, payload)
        if problem:
            self.discard(key, problem)
            return None
        # Marks the entry as used, since many systems do not record access times. It fails if
        # another process has removed the file, or if the folder is read-only.
        with contextlib.suppress(OSError):
            os.utime(path)
        return payload

    def discard(self, key: str, reason: str) -> None:
        """Remove an entry that cannot be used."""
        if config.raise_persistent_cache_errors.value:
            raise RuntimeError(f"the cached program {self._path(key)} cannot be used: {reason}")
        _remove(self._path(key))

    # -------------------------------------------------------------------------------- writing

    def store(self, key: str, executable: Any, name: str) -> None:
        """Store a program, if the backend can serialize it.

        Args:
            key: its key.
            executable: the loaded executable.
            name: its name, for messages.
        """
        if not self._writable or not self._open(make=True):
            return
        try:
            payload: bytes = executable.serialize()
        except Exception as error:
            if is_interrupt(error):
                raise
            # Backends need not support this; their programs are compiled in every process.
            if config.raise_persistent_cache_errors.value:
                raise RuntimeError(f"the program {name} cannot be written down: {error}") from error
            return
        if len(payload) < config.persistent_cache_min_entry_size_bytes.value:
            return
        header = _HEADER.pack(_MAGIC, len(payload), hashlib.sha256(payload).digest())
        try:
            self._write(self._path(key), header + payload)
        except OSError as error:
            if is_interrupt(error):
                raise
            # What is there can still be read: others may have filled a folder that all read.
            self._writable = False
            self._warn(f"it cannot be written to: {error}", "read, but no more written to")
            return
        self._evict_beyond_limits(len(header) + len(payload))

    def _write(self, path: Path, data: bytes) -> None:
        """Write a file atomically."""
        import tempfile  # deferred: unused by a process that finds all its programs on disk

        descriptor, temporary = tempfile.mkstemp(_TEMPORARY, path.name[:16], self.folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.replace(temporary, path)
        except BaseException:
            _remove(temporary)
            raise

    def _evict_beyond_limits(self, added: int) -> None:
        """Keep the folder within its limits after ``added`` bytes were written."""
        with self._lock:
            if self._stored < 0:
                sizes = [size for _, size, _ in self._entries()]
                self._stored, self._files = sum(sizes), len(sizes)
            else:
                self._stored += added
                self._files += 1
            over = 0 <= self.max_bytes < self._stored or self._files > _MAX_FILES
            if over:
                self.evict()

    def evict(self) -> None:
        """Remove the least recently used entries until the folder is well within its limits."""
        entries = sorted(self._entries(), key=lambda entry: entry[2])
        total, count = sum(size for _, size, _ in entries), len(entries)
        limit = self.max_bytes if self.max_bytes >= 0 else total
        if total > limit or count > _MAX_FILES:
            for path, size, _ in entries:
                if total <= limit * _KEPT_SHARE and count <= _MAX_FILES * _KEPT_SHARE:
                    break
                _remove(path)
                total -= size
                count -= 1
        self._stored, self._files = total, count

    def _entries(self) -> Iterator[tuple[str, int, float]]:
        """Path, size and time of last use of every entry; files left by a crash are removed."""
        now = time.time()
        try:
            with os.scandir(self.folder) as items:
                for item in items:
                    try:
                        status = item.stat(follow_symlinks=False)
                    except OSError:
                        continue  # removed by another process
                    if item.name.endswith(_SUFFIX):
                        yield item.path, status.st_size, status.st_mtime
                    elif item.name.endswith(_TEMPORARY) and now - status.st_mtime > _STALE_SECONDS:
                        _remove(item.path)
        except OSError:
            return

    # ------------------------------------------------------------------------------- plumbing

    def _path(self, key: str) -> Path:
        return self.folder / (key + _SUFFIX)

    def _open(self, *, make: bool) -> bool:
        """Whether the folder can be used; checked once, with a warning if it cannot."""
        if self._usable is not None:
            return self._usable
        try:
            if make:
                if not self.folder.is_dir():
                    self.folder.parent.mkdir(parents=True, exist_ok=True)
                    self.folder.mkdir(mode=0o700, exist_ok=True)
            elif not self.folder.exists():
                return False
            problem = _folder_problem(self.folder)
        except OSError as error:
            problem = f"it cannot be made or read: {error}"
        self._usable = not problem
        if problem:
            self._warn(problem)
        return self._usable

    def _warn(self, problem: str, what: str = "not used") -> None:
        text = (
            f"the folder for compiled programs {self.folder} is {what}: {problem}. Programs are "
            "compiled again in every process; DOVETAIL_COMPILATION_CACHE_DIR names another folder, "
            "DOVETAIL_ENABLE_COMPILATION_CACHE=0 switches it off"
        )
        if config.raise_persistent_cache_errors.value:
            raise RuntimeError(text)
        if not self._warned:
            self._warned = True
            warnings.warn(text, CompilationCacheWarning, stacklevel=2)


def _is_trusted(status: os.stat_result) -> bool:
    """Whether only trusted users can have written a file."""
    users = _user_ids()
    if not users:
        return True
    return status.st_uid in users and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _damage(header: bytes, payload: bytes) -> str:
    """What is wrong with the content of a file; empty if it is valid."""
    if len(header) < _HEADER.size:
        return "the file is too short"
    magic, length, checksum = _HEADER.unpack(header)
    if magic != _MAGIC:
        return "it is no program of this version of dovetail"
    if length != len(payload):
        return "the file is cut off"
    if hashlib.sha256(payload).digest() != checksum:
        return "its content is damaged"
    return ""


def _remove(path: str | Path) -> None:
    # It fails if another process was faster, or if the folder is read-only.
    with contextlib.suppress(OSError):
        os.unlink(path)


# -------------------------------------------------------------------------------------------
# current


_caches: Final[dict[tuple[str, int], DiskCache]] = {}


def current() -> DiskCache | None:
    """The cache selected by the options, or None if it is switched off."""
    if not config.enable_compilation_cache.value:
        return None
    configured = config.compilation_cache_dir.value
    key = (configured or "", config.compilation_cache_max_size.value)
    cache = _caches.get(key)
    if cache is None:
        try:
            folder = Path(configured).expanduser() if configured else default_folder()
        except RuntimeError:
            return None  # a user without a home folder
        cache = _caches.setdefault(key, DiskCache(folder.absolute(), key[1]))
    return cache


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Set the folder for compiled programs: the option `compilation_cache_dir`.

    Args:
        path: the folder, which is made when the first program is stored.

    Example:
        >>> import dovetail as dt
        >>> from dovetail.experimental.compilation_cache import compilation_cache
        >>> before = dt.config.compilation_cache_dir
        >>> compilation_cache.set_cache_dir("programs")
        >>> dt.config.compilation_cache_dir
        'programs'
        >>> dt.config.update("compilation_cache_dir", before)
    """
    config.config.update("compilation_cache_dir", os.fspath(path))


def reset_cache() -> None:
    """Look at the folder for compiled programs anew, as if the process had just started.

    A folder that could not be used, of which a warning said so, is tried again. Programs in memory
    and on disk stay.
    """
    _caches.clear()
