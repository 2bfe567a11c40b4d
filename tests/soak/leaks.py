"""Measures one pattern: how resident memory and the number of Python's objects grow.

    python leaks.py LIBRARY ITERATIONS SECONDS PATTERN...

writes one line of JSON for each pattern. A pattern is repeated so often, or so long, whichever
comes first; a quarter more before the first measurement. It imports nothing of ours but `patterns`,
so that the Python of an environment with JAX runs it, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import resource
import sys
import time
from dataclasses import asdict, dataclass
from typing import Final

from patterns import PATTERNS, Library

PAGE: Final = resource.getpagesize()

#: The share of iterations and seconds that is run before the first measurement, and the fewest:
#: more than the failures of callbacks that are remembered.
WARM_UP: Final = 0.25
FEWEST: Final = 20


@dataclass(frozen=True, slots=True)
class Growth:
    """What a pattern left behind.

    Attributes:
        name: the pattern.
        iterations: how many there were between the two measurements.
        megabytes: the growth of resident memory.
        objects: the growth of the number of Python's objects.
        seconds: how long the iterations took.
    """

    name: str
    iterations: int
    megabytes: float
    objects: int
    seconds: float

    @property
    def megabytes_per_10000(self) -> float:
        """Growth of memory in 10,000 iterations."""
        return self.megabytes / self.iterations * 1e4


def resident() -> float:
    """Resident memory, in megabytes, after what the allocator holds back was given up."""
    with contextlib.suppress(OSError, AttributeError):  # another C library than glibc
        ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * PAGE / 2**20


def objects() -> int:
    """The number of objects that the garbage collector knows, with nothing left to collect."""
    for _ in range(3):
        gc.collect()
    return len(gc.get_objects())


def measure(library: Library, name: str, iterations: int, seconds: float) -> Growth:
    """Run a pattern, and say what it left behind.

    Args:
        library: what it is run on.
        name: the pattern.
        iterations: how often its step is run at most.
        seconds: how long it is run at most.
    """
    entry = PATTERNS[name]
    step = entry.make(library)

    def repeat(share: float) -> int:
        end = time.perf_counter() + share * seconds
        for number in range(max(FEWEST, int(share * iterations))):
            step(number)
            if number >= FEWEST and time.perf_counter() > end:
                break
        return number + 1

    def look() -> tuple[int, float]:
        if entry.fills:
            library.top.clear_caches()
            step(0)
        return objects(), resident()

    repeat(WARM_UP)
    look()  # the measurement itself makes objects when it is taken first
    count, memory = look()
    start = time.perf_counter()
    done = repeat(1.0)
    lasted = time.perf_counter() - start
    after, later = look()
    return Growth(name, done, later - memory, after - count, lasted)


def main() -> None:
    """Measure the patterns of the command line."""
    library, iterations, seconds, *names = sys.argv[1:]
    loaded = Library.load(library)
    for name in names:
        print(
            json.dumps(asdict(measure(loaded, name, int(iterations), float(seconds)))), flush=True
        )


if __name__ == "__main__":
    main()
