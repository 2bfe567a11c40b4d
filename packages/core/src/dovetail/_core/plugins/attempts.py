"""Notes on disk that a plug-in is running: how a later process learns that one ended meanwhile.

A note is a file in the user's folder, which exists while a phase of a plug-in runs. Its process
holds a lock on it, which the system drops however the process ends: a note without a lock is of a
process that did not come to the end of the phase. Whether the plug-in is to blame cannot be known,
since the process may have been killed. Where files cannot be written or locked, there are no notes.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from itertools import count
from typing import Final, NamedTuple
from zlib import crc32

from dovetail._core.base.folders import user_folder

__all__ = ["Attempt", "Ended", "begin", "earlier", "end", "folder"]

_SUFFIX: Final = ".attempt"
_HIDDEN: Final = ".new"  # a note that is not locked yet
_STALE_SECONDS: Final = 30 * 24 * 3600.0
_numbers: Final = count()


class Ended(NamedTuple):
    """What notes say of earlier processes that ended while a plug-in ran.

    Attributes:
        phase: the phase that the last of them was in; empty if there was none.
        times: how many there were since a process came to the end.
    """

    phase: str = ""
    times: int = 0


class Attempt(NamedTuple):
    """A note of this process.

    Attributes:
        file: its open file, which holds the lock.
        number: the number of the file on its disk.
        path: where it is.
    """

    file: int
    number: int
    path: str


def folder() -> str:
    """Where notes are kept.

    Raises:
        RuntimeError: the user has no home folder.
    """
    return os.path.join(user_folder(), "plug-ins")


def _ending(name: str, origin: str) -> str:
    """How the names of a plug-in's notes end: other environments and machines have others."""
    # Homes are shared by machines, which may not share locks.
    machine = os.uname().nodename
    text = "\n".join((sys.prefix, sys.version, machine, name, origin))
    return f"-{crc32(text.encode(errors='replace')):08x}{_SUFFIX}"


def earlier(name: str, origin: str) -> Ended:
    """Take the notes of processes that ended while a plug-in ran.

    Args:
        name: name of the plug-in.
        origin: distribution and version.
    """
    ended = Ended()
    with suppress(OSError, RuntimeError, ImportError):
        import fcntl as fcntl  # deferred: as below; no notes without it

        place, ending = folder(), _ending(name, origin)
        for entry in os.listdir(place):
            path = os.path.join(place, entry)
            if entry.endswith(ending):
                found = _taken(path)
                if found.times:
                    ended = Ended(found.phase, ended.times + found.times)
            elif entry.endswith((_SUFFIX, _HIDDEN)):
                _remove_stale(path)
    return ended


def _taken(path: str) -> Ended:
    """What a note says, which is removed; nothing if its process is alive."""
    import fcntl  # deferred: most processes have no note to read

    try:
        file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return Ended()
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        phase, _, times = os.read(file, 200).decode(errors="replace").partition("\n")
        os.unlink(path)
        return Ended(phase, int(times)) if times.strip().isdecimal() else Ended()
    except OSError:  # its process holds the lock, or another one takes the note
        return Ended()
    finally:
        os.close(file)


def _remove_stale(path: str) -> None:
    """Remove a note of an environment that may be gone."""
    with suppress(OSError):
        if time.time() - os.stat(path).st_mtime > _STALE_SECONDS:
            os.unlink(path)


def begin(name: str, origin: str, phase: str, times: int) -> Attempt | None:
    """Write that a phase of a plug-in begins.

    Args:
        name: name of the plug-in.
        origin: distribution and version.
        phase: the phase.
        times: how many processes have ended in this plug-in, this one included.

    Returns:
        The note, for `end`; None if it cannot be written.
    """
    try:
        import fcntl  # deferred: only where a plug-in of others is installed

        place = folder()
        os.makedirs(place, mode=0o700, exist_ok=True)
        path = os.path.join(place, f"{os.getpid()}-{next(_numbers)}{_ending(name, origin)}")
        hidden = path + _HIDDEN
        file = os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except (OSError, RuntimeError, ImportError):
        return None
    attempt = Attempt(file, os.fstat(file).st_ino, hidden)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(file, f"{phase}\n{times}\n".encode())
        os.rename(hidden, path)
    except OSError:
        end(attempt)
        return None
    return attempt._replace(path=path)


def end(attempt: Attempt | None) -> None:
    """Remove a note: its phase is over, with success or with an exception."""
    if attempt is not None:
        with suppress(OSError):
            os.unlink(attempt.path)
        with suppress(OSError):
            # A plug-in may have closed every file, and then opened its own.
            if os.fstat(attempt.file).st_ino == attempt.number:
                os.close(attempt.file)
