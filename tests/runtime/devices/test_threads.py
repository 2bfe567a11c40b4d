"""How many threads programs on the CPU compute with: options, variables, control groups, BLAS."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dovetail as dt
from dovetail._core.base import config
from dovetail._core.runtime.devices import control_groups, threads

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has control groups")


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("PJRT_NPROC", "NPROC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(config.num_threads, "reader", None)
    before = dt.config.num_threads
    dt.set_num_threads(0)
    yield
    dt.set_num_threads(before)


def quotas(root: Path, name: str, controller: str, files: dict[str, str]) -> None:
    """Control groups of one kind, with this process in a group below the root."""
    folder = root / controller / name
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        (folder / file).write_text(text + "\n")


@on_linux
@pytest.mark.parametrize(
    ("controller", "files", "processors"),
    [
        ("", {"cpu.max": "max 100000"}, 8),
        ("", {"cpu.max": "200000 100000"}, 2),
        ("", {"cpu.max": "250000 100000"}, 3),
        ("", {"cpu.max": "20000 100000"}, 1),
        ("", {"cpu.max": "1600000 100000"}, 8),
        ("", {"cpu.max": "nonsense"}, 8),
        ("", {}, 8),
        ("cpu", {"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"}, 8),
        ("cpu", {"cpu.cfs_quota_us": "150000", "cpu.cfs_period_us": "50000"}, 3),
        ("cpu", {"cpu.cfs_quota_us": "150000", "cpu.cfs_period_us": "0"}, 8),
        ("cpu", {"cpu.cfs_quota_us": "150000"}, 8),
    ],
)
@pytest.mark.parametrize("place", ["", "of_a_service"])
def test_the_default_is_what_the_process_may_keep_busy(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    controller: str,
    files: dict[str, str],
    processors: int,
    place: str,
) -> None:
    """The quota stands at the root, as in a container, or in the group itself."""
    quotas(tmp_path, place, controller, files)
    mine = "\n".join(["5:cpu,cpuacct:/of_a_service", "0::/of_a_service"])
    read = Path.read_text

    def read_text(file: Path, *args: object, **kwargs: object) -> str:
        return mine if str(file) == "/proc/self/cgroup" else read(file, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "read_text", read_text)
    monkeypatch.setattr(control_groups, "_ROOT", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert threads.usable_processors() == processors
    assert dt.get_num_threads() == processors


@on_linux
def test_an_affinity_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    assert threads.usable_processors() == 1
    monkeypatch.delattr(os, "sched_getaffinity")
    limits = [math.ceil(limit) for limit in control_groups.processor_limits()]
    assert threads.usable_processors() == min([os.cpu_count() or 1, *limits])


def test_options_come_before_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPROC", "6")
    assert threads.describe_threads() == "6 (the variable NPROC)"
    monkeypatch.setenv("PJRT_NPROC", "5")
    assert dt.get_num_threads() == 5
    dt.set_num_threads(7)
    assert dt.config.num_threads == dt.get_num_threads() == 7
    assert threads.describe_threads() == "7 (the option num_threads)"
    monkeypatch.setenv("PJRT_NPROC", "many")
    dt.set_num_threads(0)
    assert dt.get_num_threads() == 6


@pytest.mark.parametrize(
    ("value", "error"), [(-1, ValueError), ("2", TypeError), (None, TypeError)]
)
def test_wrong_numbers(value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="'num_threads' takes a number of threads"):
        dt.set_num_threads(value)  # type: ignore[arg-type]


IN_A_PROCESS = """
import os, sys
import numpy as np
import dovetail as dt
import dovetail.numpy as jnp

{before}
x = jnp.asarray(np.random.default_rng(0).normal(size=(300, 300)))
(x @ x).block_until_ready(), jnp.linalg.inv(x).block_until_ready()
from dovetail_cpu import blas
names = [open(f"/proc/self/task/{{task}}/comm").read() for task in os.listdir("/proc/self/task")]
pool = sum("XLAEigen" in name for name in names)
print(dt.get_num_threads(), pool, blas.threads())
try:
    dt.set_num_threads(5)
except RuntimeError as error:
    print(error)
print("PJRT_NPROC" in os.environ)
"""


WITH_ONE_THREAD = """
import faulthandler
faulthandler.dump_traceback_later(100, exit=True)
import numpy as np
import dovetail as dt
import dovetail.numpy as jnp

inner = dt.jit(lambda x: jnp.sin(x @ x) / len(x) + jnp.sort(x, axis=0))

@dt.jit
def outer(x):
    y = inner(x)
    y = dt.pure_callback(lambda z: np.asarray(inner(jnp.asarray(z))), y, y)
    return y @ x

x = jnp.ones((400, 400))
print(dt.get_num_threads(), outer(x).is_ready())
print("outer_dimension_partitions" in dt.jit(lambda x: x * 2 + 1).lower(x).compile().as_text())
"""


def run(program: str, **environment: str) -> list[str]:
    ends = ("NPROC", "THREADS", "XLA_FLAGS", "NUM_CPU_DEVICES")
    clean = {name: value for name, value in os.environ.items() if not name.endswith(ends)}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@on_linux
@pytest.mark.parametrize(
    ("before", "environment", "count"),
    [
        ("dt.set_num_threads(3)", {"DOVETAIL_NUM_THREADS": "2"}, 3),
        ("", {"DOVETAIL_NUM_THREADS": "1", "PJRT_NPROC": "4"}, 1),
    ],
)
def test_pool_and_blas_have_so_many_threads(
    before: str, environment: dict[str, str], count: int
) -> None:
    first, error, variable = run(IN_A_PROCESS.format(before=before), **environment)
    said, pool, blas = first.split()
    assert int(said) == count
    # A pool of one thread could be held by a callback.
    assert int(pool) == max(count, 2)
    assert blas == "None" or 1 <= int(blas) <= count
    assert "'num_threads' is read when the platform 'cpu' starts" in error
    assert "DOVETAIL_NUM_THREADS" in error
    assert variable == str("PJRT_NPROC" in environment)


@pytest.mark.parametrize("kernels", ["0", "1"])
def test_one_thread_computes_where_it_is_called_and_callbacks_compute(kernels: str) -> None:
    found = run(WITH_ONE_THREAD, DOVETAIL_NUM_THREADS="1", DOVETAIL_CPU_KERNELS=kernels)
    assert found == ["1 True", "False"]
