"""Errors about memory that does not suffice: their class, what they say, and the process after."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.runtime.devices import capacity, control_groups
from dovetail._core.runtime.programs import program
from dovetail.errors import JaxRuntimeError, OutOfMemoryError

HUGE = 2**44
X = np.ones(3, np.float32)
WIDE = np.broadcast_to(np.float32(1), (HUGE,))
WIDER = np.broadcast_to(np.float64(1), (HUGE,))


def grow(x: Any) -> Any:
    return jnp.broadcast_to(x, (HUGE, 3))


def sort(x: Any) -> Any:
    return jnp.sort(grow(x), axis=0)[0]


jitted = dt.jit(grow)
jitted_sort = dt.jit(sort)
of_wide = dt.jit(lambda first, second: first["a"][0] + second)
calling = dt.jit(
    lambda x: dt.pure_callback(lambda x: x, dt.ShapeDtypeStruct((HUGE,), np.float32), x)
)

#: What asks for too much, and what the error must say besides.
CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "eager": (lambda: jnp.ones(HUGE), r"running broadcast_in_dim.*needs: .*64\.0 TiB of results"),
    "operator": (lambda: grow(X) + 1, r"made by broadcast_in_dim at test_memory_errors.py"),
    "jit": (
        lambda: jitted(X),
        r"running grow, at .*192\.0 TiB: f32\[17592186044416,3\]",
    ),
    "compiled": (lambda: jitted.lower(X).compile()(X), r"running grow.*the argument x"),
    "grad": (lambda: dt.grad(lambda x: jnp.sum(sort(x)))(X), r"f32\[17592186044416,3\]"),
    "vmap": (lambda: dt.vmap(grow)(X.reshape(3, 1)), r"test_memory_errors.py:\d+ \(grow\)"),
    "device_put": (lambda: dt.device_put({"a": [1, WIDE]}), r"value: x\['a'\]\[1\] of device_put"),
    "asarray": (lambda: jnp.asarray(WIDE), r"placing on the device f32\[17592186044416\]"),
    "conversion": (lambda: jnp.asarray(WIDER), r"converting the argument of array from float64"),
    "an argument": (lambda: of_wide({"a": WIDE}, 1.0), r"value: the argument first\['a'\] of"),
    "a callback's result": (lambda: calling(X), r"made by pure_callback at test_memory_errors"),
    "waited for": (lambda: jitted_sort(X).block_until_ready(), r"running sort, started at"),
    "read": (lambda: np.asarray(jitted_sort(X)), r"made by sort at .*\(sort\).*seen:  at"),
    "used": (lambda: (jitted_sort(X) + 1).block_until_ready(), r"running sort, started at"),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_error_says_what_was_wanted(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    call, text = CALLS[name]
    monkeypatch.setattr(capacity, "host_memory", lambda: None)  # nothing is refused beforehand
    dt.clear_caches()
    kept = jnp.ones((5, 7))
    for _ in range(2):  # the second call is one that C++ might serve
        with pytest.raises(OutOfMemoryError) as caught:
            call()
        error = caught.value
        assert isinstance(error, MemoryError)
        assert isinstance(error, JaxRuntimeError)
        assert error.error_code_string == "RESOURCE_EXHAUSTED"
        assert str(error).startswith("RESOURCE_EXHAUSTED: ")
        assert re.search(text, str(error), re.DOTALL), str(error)
        assert re.search(r"alive: \d+ arrays? of .*", str(error))
        assert "test_memory_errors.py" in str(error)
    assert float(dt.jit(jnp.sum)(kept)) == 35.0


def test_an_error_of_a_callback_is_the_users_own() -> None:
    def greedy(x: Any) -> Any:
        return np.ones(HUGE * 4)

    shape = dt.ShapeDtypeStruct((3,), np.float32)
    with pytest.raises(MemoryError, match="Unable to allocate") as caught:
        np.asarray(dt.jit(lambda x: dt.pure_callback(greedy, shape, x))(X))
    assert not isinstance(caught.value, OutOfMemoryError)


LIMITED = """
import resource
import time
import numpy as np
import dovetail as dt, dovetail.numpy as jnp
dt.config.update("enable_compilation_cache", False)
{before}
time.sleep(0.3)  # a thread of XLA's that begins under the limit would end the process
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + {room} * 2**20
before = resource.getrlimit(resource.RLIMIT_AS)
resource.setrlimit(resource.RLIMIT_AS, (limit, before[1]))
try:
    print(float(dt.jit(lambda x: jnp.sum(jnp.sin(x) @ x))(np.ones((3, 3), np.float32))))
except (MemoryError, ImportError) as error:
    print("refused", error)
resource.setrlimit(resource.RLIMIT_AS, before)
print(float(dt.jit(lambda x: jnp.sum(jnp.sin(x) @ x))(np.ones((3, 3), np.float32))))
"""
BEFORE = {"nothing": "", "data": "dt.device_put(1.0)", "a program": "dt.jit(lambda x: x * 2)(1.0)"}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no limit of address space")
@pytest.mark.parametrize("room", [60, 350])
@pytest.mark.parametrize("before", BEFORE)
def test_compiling_without_memory_is_an_error_and_no_crash(before: str, room: int) -> None:
    code = LIMITED.format(before=BEFORE[before], room=room)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    first, *_, last = done.stdout.splitlines()
    assert float(last) == pytest.approx(27 * np.sin(1.0), rel=1e-5)
    refused = room == 60 or before != "a program"
    assert first.startswith("refused") == refused, done.stdout


N = 2**40
THREE = jnp.ones(3)
KEY = dt.random.key(0)

#: Calls that ask for terabytes by mistake, none of which may begin to compute.
MISTAKES: dict[str, Callable[[], Any]] = {
    "zeros": lambda: jnp.zeros(N),
    "full": lambda: jnp.full((N, 2), THREE[0]),
    "arange": lambda: jnp.arange(0.0, N),
    "linspace": lambda: jnp.linspace(0, 1, N),
    "broadcast_to": lambda: jnp.broadcast_to(THREE, (N, 3)),
    "pad": lambda: jnp.pad(THREE, N),
    "pad, edge": lambda: jnp.pad(THREE, N, mode="edge"),
    "pad, wrap": lambda: jnp.pad(THREE, N, mode="wrap"),
    "pad, reflect": lambda: jnp.pad(THREE, N, mode="reflect"),
    "tile": lambda: jnp.tile(THREE, N),
    "repeat": lambda: jnp.repeat(THREE, N),
    "repeat, each": lambda: jnp.repeat(THREE, [N, 1, 1]),
    "outer": lambda: jnp.outer(jnp.ones(2**20), jnp.ones(2**20)),
    "meshgrid": lambda: jnp.meshgrid(jnp.ones(2**20), jnp.ones(2**20)),
    "vander": lambda: jnp.vander(THREE, N),
    "polyfit": lambda: jnp.polyfit(THREE, THREE, N),
    "polyint": lambda: jnp.polyint(THREE, N),
    "array_split": lambda: jnp.array_split(THREE, N),
    "diag": lambda: jnp.diag(jnp.ones(2**20)),
    "diag_indices": lambda: jnp.diag_indices(N),
    "tril_indices": lambda: jnp.tril_indices(2**20),
    "triu_indices": lambda: jnp.triu_indices(2**20),
    "unique": lambda: jnp.unique(THREE, size=2**31 - 1),
    "bincount": lambda: jnp.bincount(jnp.array([1]), length=N),
    "fft": lambda: jnp.fft.fft(THREE, N),
    "uniform": lambda: dt.random.uniform(KEY, (N,)),
    "randint": lambda: dt.random.randint(KEY, (N,), 0, 3),
    "split": lambda: dt.random.split(KEY, N),
    "scan": lambda: lax.scan(lambda c, _: (c, c), 0.0, None, length=2**31 - 1),
    "vmap": lambda: dt.vmap(lambda x: x, in_axes=None, axis_size=N)(THREE),
    "jacfwd": lambda: dt.jacfwd(lambda x: x)(jnp.ones(2**20)),
    "jacrev": lambda: dt.jacrev(lambda x: x)(jnp.ones(2**20)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_what_can_never_fit_is_refused_before_it_is_computed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(capacity, "host_memory", lambda: 2**32)
    with pytest.raises(
        OutOfMemoryError, match=r"(?s)^RESOURCE_EXHAUSTED: .* take [0-9.]+ .*test_memory_errors.py"
    ) as caught:
        MISTAKES[name]()
    assert "Out of memory allocating" not in str(caught.value)


def test_programs_of_any_size_can_be_looked_at() -> None:
    shape = (N, 3)
    assert dt.eval_shape(grow, X).shape == (HUGE, 3)
    assert dt.make_jaxpr(grow)(X).out_avals[0].shape == (HUGE, 3)
    assert "17592186044416x3" in jitted.lower(X).as_text()
    small = dt.jit(lambda x: jnp.sum(jnp.broadcast_to(x, shape)[:2]))
    assert float(small(X)) == 6.0  # what is large is not a result


def test_results_in_the_memory_of_donated_arguments_are_not_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(capacity, "host_memory", lambda: 2**20)
    monkeypatch.setattr(program, "FEWEST", 2**10)
    ones = np.ones(2**18 - 1, np.float32)
    donating = dt.jit(lambda x, y: (x + 1, y + 1), donate_argnums=0)
    assert float(donating(jnp.asarray(ones), ones)[0][0]) == 2.0
    with pytest.raises(OutOfMemoryError, match=r"take 2.0 MiB, and .* has 1.0 MiB"):
        dt.jit(lambda x, y: (x + 1, y + 1))(ones, ones)


def test_limits_of_memory_are_those_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = capacity.host_memory()
    assert there is None or 2**28 < there < 2**60
    monkeypatch.setattr(control_groups, "_ROOT", tmp_path)
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory.max").write_text("max\n")
    assert capacity.host_memory() == there
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text(f"{2**63 - 4096}\n")
    assert capacity.host_memory() == there
    (tmp_path / "memory.max").write_text("1000000\n")
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("2000000\n")
    assert capacity.host_memory() == (1000000 if sys.platform == "linux" else there)
