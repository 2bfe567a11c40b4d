"""Native kernels in processes: threads, serialised programs, the disk cache, too little memory."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail.experimental.serialize_executable import serialize
from dovetail_cpu.kernel_library import library

pytestmark = pytest.mark.skipif(
    library() is None, reason="no kernels were built: there is no C++ compiler"
)


THREADS = """
import os, sys, threading
if sys.argv[1] == "one":
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import numpy as np
import dovetail as dt
import dovetail.numpy as jnp
devices = dt.devices()
assert len(devices) == 8
one_row = np.random.default_rng(0).integers(0, 1000, 200_000).astype(np.float32)
rows = one_row.reshape(50, -1)
expected = np.sort(one_row), np.argsort(rows, axis=1, kind="stable")
done = []

def sort_often(device):
    whole, divided = dt.device_put(one_row, device), dt.device_put(rows, device)
    for _ in range(4):
        found = jnp.sort(whole), jnp.argsort(divided, axis=1)
        for one, other in zip(found, expected):
            np.testing.assert_array_equal(one, other)
    done.append(device)

threads = [threading.Thread(target=sort_often, args=(d,)) for d in [*devices, *devices]]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert len(done) == 16
"""


@pytest.mark.parametrize("processors", ["one", "all"])
def test_many_threads_sort_on_many_devices(processors: str, run: Callable[..., str]) -> None:
    """More callers than there are threads in the pool, all of which wait for parts of a sort."""
    run(THREADS, processors, DOVETAIL_NUM_CPU_DEVICES="8")


LOADING = """
import pickle, sys
import numpy as np
from dovetail.experimental.serialize_executable import deserialize_and_load
from dovetail_cpu import kernel_library
payload, *trees, x = pickle.load(open(sys.argv[1], "rb"))
there = kernel_library.library
kernel_library.library = lambda: None
try:
    deserialize_and_load(payload, *trees)
except RuntimeError as error:
    print(error)
kernel_library.library = there
program = deserialize_and_load(payload, *trees)
np.testing.assert_array_equal(program(x), np.argsort(x, kind="stable"))
"""


def test_a_serialized_program_finds_its_kernels(tmp_path: Path, run: Callable[..., str]) -> None:
    x = np.random.default_rng(1).standard_normal(3000).astype(np.float32)
    file = tmp_path / "program"
    file.write_bytes(pickle.dumps((*serialize(dt.jit(jnp.argsort).lower(x).compile()), x)))
    assert "are not installed here: install a wheel that has them" in run(LOADING, str(file))


CACHED = """
import numpy as np
import dovetail as dt
import dovetail.numpy as jnp
from dovetail._core.runtime.programs import compilation
x = np.random.default_rng(2).standard_normal(3000).astype(np.float32)
x[::7] = -0.0
for native in (True, False):
    with dt.cpu_kernels(native):
        assert ("dovetail_sort" in dt.jit(jnp.argsort).lower(x).as_text()) == native
        np.testing.assert_array_equal(dt.jit(jnp.argsort)(x), np.argsort(x, kind="stable"))
done = compilation.statistics()
print(done.compiled, done.loaded)
"""


def test_the_disk_cache_tells_programs_with_kernels_apart(
    tmp_path: Path, run: Callable[..., str]
) -> None:
    assert run(CACHED, DOVETAIL_COMPILATION_CACHE_DIR=str(tmp_path)).split() == ["2", "0"]
    assert run(CACHED, DOVETAIL_COMPILATION_CACHE_DIR=str(tmp_path)).split() == ["0", "2"]


SHORT_OF_MEMORY = """
import re, resource
import numpy as np
import dovetail as dt
import dovetail.numpy as jnp
few = jnp.arange(1000.0)[::-1]
many = jnp.zeros((2**24,), jnp.int8)
places = dt.jit(lambda x: jnp.argsort(x)[0])
places(jnp.zeros((2**17,), jnp.int8)).block_until_ready()
places = places.lower(many).compile()
used = int(re.search(r"VmSize:\\s*(\\d+)", open("/proc/self/status").read())[1]) << 10
# Enough for the positions (64 MiB each), but not for what the kernel needs beside them (256 MiB).
limits = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (used + (250 << 20), limits[1]))
try:
    places(many).block_until_ready()
except MemoryError as error:
    print(type(error).__name__, error)
resource.setrlimit(resource.RLIMIT_AS, limits)
np.testing.assert_array_equal(jnp.sort(few), np.arange(1000.0))
assert places(many) == 0
"""


def test_too_little_memory_is_an_error_that_the_process_survives(run: Callable[..., str]) -> None:
    # The address space of what is kept was reserved before the limit.
    found = run(SHORT_OF_MEMORY, DOVETAIL_CPU_RETAINED_MEMORY="0")
    assert found.startswith("OutOfMemoryError")
    assert "out of memory in a native kernel" in found
