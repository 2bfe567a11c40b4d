"""Memory for the compiler itself, which the process must not run out of.

XLA, LLVM and MLIR end the process where a thread cannot be started or memory is not there, and
loading their modules fails halfway. What they take is asked of the system beforehand: with a limit
of the process's address space (``ulimit -v``) or without overcommitment it says no in time.
"""

from __future__ import annotations

import mmap
import os
from typing import Final

from dovetail._core.base.runtime_errors import OutOfMemoryError
from dovetail._core.base.source import describe

__all__ = ["compiler_is_loaded", "reserve_for_client", "reserve_for_compiler"]

# Measured on the CPU with jaxlib 0.10 and 0.12, and rounded up: libraries, arenas of the allocator
# (64 MiB for a thread), stacks.
_CLIENT: Final = 512 * 2**20
_FOR_EACH_CORE: Final = 64 * 2**20
_FIRST_PROGRAM: Final = 640 * 2**20
_NEXT_PROGRAM: Final = 192 * 2**20
_compiled: Final[list[bool]] = []


def reserve_for_client(platform: str) -> None:
    """Raise unless a client can be started.

    Raises:
        OutOfMemoryError: the address space is too small.
    """
    _reserve(
        _CLIENT + _FIRST_PROGRAM + (os.cpu_count() or 1) * _FOR_EACH_CORE,
        f"starting the platform {platform!r} and its compiler",
    )
    # Where memory is short later, half of it would be loaded.
    import hashlib  # deferred: only programs need it # noqa: F401


def reserve_for_compiler(name: str) -> None:
    """Raise unless a program can be compiled; takes microseconds.

    Args:
        name: the program.

    Raises:
        OutOfMemoryError: the address space is too small.
    """
    _reserve(_NEXT_PROGRAM if _compiled else _FIRST_PROGRAM, f"compiling {name}")


def compiler_is_loaded() -> None:
    """From now on a program takes less: the compiler has run."""
    if not _compiled:
        _compiled.append(True)


def _reserve(count: int, what: str) -> None:
    if os.name != "posix":
        return
    try:
        mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, MemoryError):
        raise OutOfMemoryError(
            f"RESOURCE_EXHAUSTED: the system refuses {count / 2**20:.0f} MiB of memory for {what}, "
            f"at {describe()}. The compiler would end the process where it runs out of memory: "
            "free some, compute something before large data is loaded, or raise the limit "
            "(ulimit -v)"
        ) from None
