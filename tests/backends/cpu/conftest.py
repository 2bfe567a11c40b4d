"""Tests of kernels say themselves when there are to be none: `.ci/run` switches them off once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import dovetail as dt


@pytest.fixture(autouse=True)
def with_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DOVETAIL_CPU_KERNELS", "1")  # for the processes that a test starts
    with dt.cpu_kernels(True):
        yield


@pytest.fixture
def directly() -> Iterator[None]:
    """Calls are computed without a program, of whatever size, if they can be."""
    with dt.direct_calls("all"):
        yield


@pytest.fixture
def run() -> Callable[..., str]:
    """Runs code in a process of its own, which must end well, and gives what it prints."""

    def run_code(code: str, *words: str, **variables: str) -> str:
        ended = subprocess.run(
            [sys.executable, "-c", code, *words],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    return run_code


@pytest.fixture
def drawn() -> Callable[..., Any]:
    """Draws normal numbers, always the same of one shape."""

    def draw(dtype: str, *shape: int) -> Any:
        return np.random.default_rng(sum(shape)).normal(size=shape).astype(dtype)

    return draw


@pytest.fixture
def by_kernel(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """Runs a compiled function that calls the module's `KERNEL`, or, if so asked, does not."""

    def run(function: Any, *operands: Any, kernel: bool = True) -> Any:
        with dt.enable_x64(True):
            jitted = dt.jit(function)
            assert (request.module.KERNEL in jitted.lower(*operands).as_text()) == kernel
            return dt.tree.map(np.asarray, jitted(*operands))

    return run
