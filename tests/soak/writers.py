"""Processes that are killed while they write the disk cache: what they leave serves or is skipped.

    python writers.py KILLS [SEED]

kills processes by SIGKILL at random times after they have begun to write. Then one process runs
every program, with warnings as errors of its results alone, and the folder is looked at.
"""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: How many programs the writers draw from.
PROGRAMS: Final = 40

#: Compiles programs for ever, in another order each time, and empties the memory between.
WRITER: Final = f"""
import os, random, sys
import numpy as np
import dovetail as dt
draw = random.Random(int(sys.argv[1]))
x = np.arange(3, dtype=np.float32)
dt.jit(lambda x: x)(dt.jit(lambda x: dt.lax.sin(x))(x))
print("ready", flush=True)
while True:
    n = draw.randrange({PROGRAMS})
    dt.clear_caches()
    if draw.random() < 0.05:  # so that there is always something to write
        for entry in os.scandir(os.environ["DOVETAIL_COMPILATION_CACHE_DIR"]):
            if entry.name.endswith(".program") and draw.random() < 0.5:
                try:
                    os.unlink(entry)
                except FileNotFoundError:
                    pass
    dt.jit(lambda x: dt.lax.mul(dt.lax.sin(x), float(n)))(x)
"""

#: Runs every program, and says how many it had to compile.
READER: Final = f"""
import numpy as np
import dovetail as dt
from dovetail._core.runtime.programs import compilation
x = np.arange(3, dtype=np.float32)
for n in range({PROGRAMS}):
    out = dt.jit(lambda x: dt.lax.mul(dt.lax.sin(x), float(n)))(x)
    np.testing.assert_allclose(out, np.sin(x) * n, rtol=1e-5, atol=1e-6)
done = compilation.statistics()
print(done.compiled, done.loaded)
"""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What killed writers left.

    Attributes:
        kills: how many were killed while they ran.
        first: how many programs the next process compiled, and how many it read.
        second: the same of the process after that.
        temporary: how many unfinished files there are.
        megabytes: the size of the folder.
    """

    kills: int
    first: tuple[int, int]
    second: tuple[int, int]
    temporary: int
    megabytes: float


def environment(folder: Path) -> dict[str, str]:
    """The environment of writers and readers."""
    return {
        **os.environ,
        "DOVETAIL_COMPILATION_CACHE_DIR": str(folder),
        "DOVETAIL_ENABLE_COMPILATION_CACHE": "1",
        "DOVETAIL_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }


def read(folder: Path) -> tuple[int, int]:
    """Run every program in a new process: how many were compiled, and how many read."""
    done = subprocess.run(
        [sys.executable, "-c", READER],
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    compiled, loaded = map(int, done.stdout.split())
    return compiled, loaded


@contextlib.contextmanager
def writer(folder: Path, seed: int) -> Iterator[subprocess.Popen[str]]:
    """A process that writes, from when it begins to; killed at the end."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(seed)],
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield process
        finally:
            process.kill()


def kill_writers(folder: Path, kills: int, seed: int = 0) -> Outcome:
    """Kill processes that write to a folder, and look at what they left.

    Args:
        folder: the folder of the cache.
        kills: how many are killed, two at a time.
        seed: of the random times.
    """
    draw = random.Random(seed)
    killed = 0
    while killed < kills:
        with writer(folder, killed) as first, writer(folder, killed + 1) as second:
            time.sleep(draw.random() * 0.3)
            alive = [process.poll() is None for process in (first, second)]
        assert all(alive), "a writer ended by itself"
        killed += 2
    before = read(folder)
    after = read(folder)
    files = list(folder.iterdir())
    temporary = sum(path.name.endswith(".partial") for path in files)
    size = sum(path.stat().st_size for path in files) / 2**20
    return Outcome(killed, before, after, temporary, size)


def main() -> None:
    """Kill the writers of the command line."""
    with tempfile.TemporaryDirectory() as folder:
        print(kill_writers(Path(folder) / "cache", *map(int, sys.argv[1:])))


if __name__ == "__main__":
    main()
