"""Kernels whose work several threads share, from one call or from several at once."""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail import lax
from dovetail._core.runtime.arrays.held_values import held_value
from dovetail_cpu import runtime
from dovetail_cpu.kernel_library import library

pytestmark = pytest.mark.skipif(
    library() is None, reason="no kernels were built: there is no C++ compiler"
)

Calls = list[tuple[Callable[[], dt.Array], np.ndarray]]

SIZE = 600_000  # so many elements are divided


@pytest.fixture(scope="module")
def calls() -> Calls:
    """Compiled functions of no arguments, and their results."""
    x = dt.device_put(np.linspace(-3, 3, SIZE, dtype="float32"))
    functions = [
        dt.jit(lambda: jnp.sin(x)),
        dt.jit(lambda: jnp.cumsum(x)),
        dt.jit(lambda: jnp.sort(x[::-1] * 1)),
        dt.jit(lambda: jnp.max(jnp.tan(x).reshape(-1, 1000), axis=1)),
    ]
    with dt.direct_calls("none"):
        return [(function, np.asarray(function())) for function in functions]


@pytest.mark.parametrize("callers", [1, 2, 5])
def test_calls_at_once_and_after_pauses(calls: Calls, callers: int) -> None:
    """A thread that looks for work gives up after 0.1 ms: pauses are shorter, as long, longer."""

    def call(seed: int) -> int:
        chosen = random.Random(seed)
        wrong = 0
        for _ in range(120 // callers):
            function, expected = chosen.choice(calls)
            wrong += not np.array_equal(function(), expected)
            time.sleep(chosen.choice([0, 5e-5, 1e-4, 1e-3]))
        return wrong

    with ThreadPoolExecutor(callers) as pool:
        assert sum(pool.map(call, range(callers))) == 0


LONG = (2**16 - 1, 2**16, 100_003)  # from the second on, calls without a program are divided
#: By dtype, with the number of operands.
FUNCTIONS: list[tuple[str, int, Callable[..., dt.Array]]] = [
    ("float32", 1, jnp.exp),
    ("float32", 1, jnp.sin),
    ("float32", 2, jnp.arctan2),
    ("float32", 2, lax.rem),
    ("float32", 2, lax.lt),
    ("float32", 1, lax.is_finite),
    ("float32", 1, lambda x: x + 2.5),
    ("float32", 1, lambda x: 2.5 / x),
    ("float32", 3, lax.clamp),
    ("float64", 2, jnp.add),
    ("float64", 1, jnp.exp),
    ("float64", 1, jnp.sqrt),
    ("int32", 2, jnp.multiply),
    ("int32", 2, lax.shift_right_logical),
    ("int32", 1, jnp.negative),
    ("bool", 2, jnp.logical_xor),
    ("bool", 3, lax.select),
    ("complex64", 2, jnp.multiply),
    ("float32", 1, jnp.sum),
    ("float32", 1, jnp.prod),
    ("float32", 1, jnp.max),
    ("float32", 1, jnp.argmin),
    ("float32", 1, lambda x: x**3),
    ("float64", 2, jnp.dot),
    ("int32", 1, jnp.min),
    ("int8", 1, jnp.max),
    ("uint8", 1, jnp.min),
    ("float16", 2, jnp.add),
    ("float16", 2, lax.div),
]


@pytest.mark.parametrize("size", LONG)
@pytest.mark.parametrize("callers", [1, 3])
def test_long_calls_without_a_program(size: int, callers: int, directly: None) -> None:
    """Many in a row, so that threads come to help, by one caller and by several."""
    numbers = 4 * np.random.default_rng(size).normal(size=(3, size))
    calls: Calls = []
    for dtype, count, function in FUNCTIONS:
        with dt.enable_x64(True):
            given = [dt.device_put(x) for x in numbers[:count].astype(dtype)]
            with dt.direct_calls("none"):
                expected = np.asarray(function(*given))
        calls.append((functools.partial(function, *given), expected))

    def call(_: int) -> list[str]:
        with dt.enable_x64(True), dt.direct_calls("all"):
            return [
                str(function)
                for function, expected in calls
                for _ in range(20)
                if not np.array_equal(np.asarray(function()), expected, equal_nan=True)
            ]

    with ThreadPoolExecutor(callers) as pool:
        assert not list(chain(*pool.map(call, range(callers))))


@pytest.mark.parametrize("callers", [1, 3])
@pytest.mark.parametrize(
    ("name", "shape"),
    [("fft", (3000, 60)), ("rfft", (150, 1000)), ("irfft", (150, 513)), ("fftn", (32, 64, 64))],
)
def test_long_transforms_without_a_program(
    name: str,
    shape: tuple[int, ...],
    callers: int,
    directly: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtime, "num_threads", lambda: 2)
    parts = np.random.default_rng(0).normal(size=(*shape, 2)).astype("float32")
    x = parts.view("complex64")[..., 0]
    given = dt.device_put(x.real if name == "rfft" else x)
    transform = dt.jit(getattr(jnp.fft, name))
    with dt.direct_calls("none"):
        expected = np.asarray(transform(given))
    transform(given)
    assert held_value(transform(given)) is not None, "a program was run"
    bound = 1e-6 * np.abs(expected).max()

    def call(_: int) -> bool:
        with dt.direct_calls("all"):
            return all(np.abs(transform(given) - expected).max() < bound for _ in range(100))

    with ThreadPoolExecutor(callers) as pool:
        assert all(pool.map(call, range(callers)))


@pytest.mark.parametrize("shape", [(2, 2**16), (3, 2**15), (300, 301), (2**15, 3), (1, 2**16)])
@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_long_calls_of_rows(shape: tuple[int, int], dtype: str, directly: None) -> None:
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(dtype)
    row, column = x[:1], x[:, 1:2]
    functions: list[Callable[..., dt.Array]] = [
        lambda x, row, column: x + row,
        lambda x, row, column: lax.ge(column, x),
        lambda x, row, column: jnp.where(x > 0, row, column),
        lambda x, row, column: row * column,
    ]
    for function in functions:
        given = dt.device_put((x, row, column))
        with dt.direct_calls("none"):
            expected = np.asarray(function(*given))
        compiled = dt.jit(function)
        for _ in range(50):
            np.testing.assert_array_equal(compiled(*given), expected)


def test_threads_may_still_run_everywhere(run: Callable[..., str]) -> None:
    """Those that help leave the processor of their caller for a moment only."""
    code = """
import os
import numpy as np
import dovetail as dt, dovetail.numpy as jnp
x = dt.device_put(np.ones(2**20, np.float32))
for _ in range(300):
    dt.jit(jnp.sort)(x).block_until_ready()
threads = map(int, os.listdir("/proc/self/task"))
print({frozenset(os.sched_getaffinity(t)) for t in threads} == {frozenset(os.sched_getaffinity(0))})
"""
    assert run(code, DOVETAIL_NUM_THREADS="2") == "True\n"


def test_threads_come_to_help_calls_without_a_program(run: Callable[..., str]) -> None:
    """The program that brings them is compiled, and what is called for it is no error."""
    code = """
import os, sys
import numpy as np
import dovetail as dt
from dovetail_cpu import company
sys.unraisablehook = lambda error: os._exit(3)
x = dt.device_put(np.ones(2**17, np.float32))
assert dt.jit(lambda x: x @ x)(x) == 2**17  # there is a client
company.learn()
for _ in range(3000):
    y = x + x
print(np.all(np.asarray(y) == 2))
"""
    assert run(code, DOVETAIL_NUM_THREADS="2") == "True\n"
