"""Gives freed memory back that the C library keeps for later arrays (glibc).

The option `cpu_retained_memory` makes glibc keep what is freed at the end of its heap. What is
freed in the midst of it stays in any case, however much it is. Both are of no use to a process that
computes nothing, and harmful where the process is ended for taking too much memory. So a thread
looks once a second.

The heap grows in huge pages as far as the option goes, where the system makes them for those who
ask. What is given back at its end is asked for again, by `dovetail-native`, for which the main
thread does it: elsewhere the C library would take another heap.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from typing import Any, Final

from dovetail._core.base import native
from dovetail._core.runtime.devices.control_groups import memory_left, memory_limits

__all__ = ["FreedMemory", "most_retained", "watch"]

#: Seconds between two looks.
_INTERVAL: Final = 1.0
#: How many looks in a row must find the process idle.
_IDLE_LOOKS: Final = 5
#: The part of a processor that an idle process takes at most.
_IDLE: Final = 0.02
#: Bytes that are not worth giving back.
_LITTLE: Final = 32 * 2**20
#: The size of a huge page, and the advice by which `madvise` is asked for them.
_HUGE_PAGE: Final = 2 * 2**20
_MADV_HUGEPAGE: Final = 14
#: glibc maps larger blocks apart from its heap: its limit is an int.
_LARGEST_BLOCK: Final = 2**31 - 1
#: What part of a control group's memory is kept at most, and must be free.
_PART: Final = 8


def most_retained(wanted: int) -> int:
    """How much freed memory is kept: what the option says, or less in a small control group."""
    return min([wanted, *(limit // _PART for limit in memory_limits())])


class _Statistics(ctypes.Structure):
    """What glibc's `mallinfo2` returns."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


class FreedMemory:
    """What the C library keeps of the memory that was freed.

    Args:
        most: how many bytes it may keep while the process computes.
        library: the C library.

    Raises:
        AttributeError: it is not glibc 2.33 or later.
    """

    def __init__(self, most: int, library: Any = None) -> None:
        library = ctypes.CDLL(None) if library is None else library
        self._trim = library.malloc_trim
        self._allocate, self._free = library.malloc, library.free
        self._allocate.argtypes, self._allocate.restype = (ctypes.c_size_t,), ctypes.c_void_p
        self._free.argtypes, self._free.restype = (ctypes.c_void_p,), None
        self._advise = library.madvise
        self._advise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        self._statistics = library.mallinfo2
        self._statistics.restype = _Statistics
        self._most = most
        self._growth = min(most, _LARGEST_BLOCK) - _HUGE_PAGE
        self._idle_looks = 0
        self._time = time.process_time()
        self._others = 0
        self._others = self._resident(self._statistics())

    def _resident(self, now: _Statistics) -> int:
        """Resident bytes that are the allocator's, and not in use."""
        with open("/proc/self/statm", encoding="utf-8") as file:
            _, resident, shared, *_ = map(int, file.read().split())
        private = (resident - shared) * os.sysconf("SC_PAGE_SIZE")
        return private - int(now.uordblks) - int(now.hblkhd) - self._others

    def retained(self) -> int:
        """How many bytes are kept, about: free blocks whose pages are there."""
        now = self._statistics()
        return max(0, min(int(now.fordblks), self._resident(now)))

    def grow_in_huge_pages(self) -> None:
        """Ask for huge pages where the heap will grow: a large block, that is freed untouched.

        Its end stays the heap's, since as much may be kept. Each array then takes a few page
        faults instead of thousands, and addresses are found faster.
        """
        size = self._growth
        block = self._allocate(size) if size > _HUGE_PAGE else None
        if block is not None:
            start = -(-block // _HUGE_PAGE) * _HUGE_PAGE
            self._advise(start, (block + size - start) // _HUGE_PAGE * _HUGE_PAGE, _MADV_HUGEPAGE)
            self._free(block)

    def give_back(self) -> None:
        """Give everything back that makes a page."""
        self._trim(0)
        if native.calls is not None and self._growth > _HUGE_PAGE:
            native.calls.grow_heap(self._growth)
        self._others += self._resident(self._statistics())

    def look(self, seconds: float = _INTERVAL) -> bool:
        """Give back what is too much, or of no use any more.

        Args:
            seconds: how long ago the last look was.

        Returns:
            Whether something was given back.
        """
        before, self._time = self._time, time.process_time()
        idle = self._time - before < _IDLE * seconds
        self._idle_looks = self._idle_looks + 1 if idle else 0
        kept = self.retained()
        if kept < _LITTLE:
            return False
        left = memory_left()
        scarce = left is not None and left[0] < left[1] // _PART
        if kept > self._most or scarce or self._idle_looks == _IDLE_LOOKS:
            self.give_back()
            self._time = time.process_time()
            return True
        return False


_watcher: threading.Thread | None = None


def watch(most: int) -> None:
    """Begin to look once a second, if the C library is one that can be asked, unless this is done.

    Args:
        most: how many bytes of freed memory may be kept while the process computes.
    """
    global _watcher
    if _watcher is not None and _watcher.is_alive():
        return
    try:
        memory = FreedMemory(most)
    except (AttributeError, OSError):
        return

    memory.grow_in_huge_pages()
    ended = threading.Event()

    def loop() -> None:
        while not ended.wait(_INTERVAL):
            memory.look()

    _watcher = watcher = threading.Thread(target=loop, name="dovetail freed memory", daemon=True)

    @atexit.register
    def end() -> None:
        ended.set()
        if watcher.ident is not None:
            watcher.join()

    # Last: a process that exits meanwhile would wait for a thread whose end it does not know.
    watcher.start()
