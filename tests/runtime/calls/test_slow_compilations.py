"""The word on stderr about programs that take long to compile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dovetail as dt
import dovetail.numpy as jnp
from dovetail._core.plugins.manager import manager
from dovetail.extend import hookimpl

F = np.float32


class Slow:
    """An extension that makes every compilation take a while."""

    @hookimpl(wrapper=True)
    def dovetail_compile(self, request: Any) -> Any:
        time.sleep(0.3)
        return (yield)


@pytest.fixture
def slow() -> Iterator[None]:
    found = Slow()
    manager().register(found, "slow of a test")
    limit, disk = map(dt.config.option, ("slow_compile_secs", "enable_compilation_cache"))
    with limit(0.05), disk(False):
        yield
    manager().unregister("slow of a test")


def small(x: Any) -> Any:
    return x * 61


def large(x: Any) -> Any:
    for n in range(300):
        x = x * n
    return x


big = np.ones((1024, 300), F)
PROGRAMS = {
    "small": (small, ["small, called at test_slow", "more than 0.05 s"], ["equations"]),
    "large": (
        large,
        ["It has 300 equations", "test_slow_compilations.py", "(large): 300", "lax.scan"],
        ["constants"],
    ),
    "constant": (
        lambda x: (x + big).sum(),
        ["constants (float32[1024,300]: 1.2 MiB)", "as arguments"],
        ["equations", "lax.scan"],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_told(name: str, slow: None, caplog: pytest.LogCaptureFixture) -> None:
    function, words, absent = PROGRAMS[name]
    dt.jit(function)(F(1))
    (message,) = [text for text in caplog.messages if "to compile" in text]
    assert all(word in message for word in words), message
    assert not any(word in message for word in absent)


def test_large_programs_are_told_of_while_they_are_compiled(
    slow: None, caplog: pytest.LogCaptureFixture
) -> None:
    start = time.time()
    dt.jit(large)(jnp.ones(2))
    (record,) = [r for r in caplog.records if "to compile" in r.getMessage()]
    assert record.threadName != "MainThread"
    assert start < record.created < time.time()


@pytest.mark.parametrize("limit", [0.0, 60.0])
def test_silence(slow: None, limit: float, caplog: pytest.LogCaptureFixture) -> None:
    with dt.config.option("slow_compile_secs")(limit):
        dt.jit(lambda x: x * 62 + limit)(F(1))
        dt.jit(lambda x: large(x) + limit)(F(1))
    assert not [text for text in caplog.messages if "to compile" in text]
