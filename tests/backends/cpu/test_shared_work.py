"""Kernels whose work several threads share, from one call or from several at once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
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
