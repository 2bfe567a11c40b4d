"""Tests of kernels say themselves when there are to be none: `.ci/run` switches them off once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import dovetail as dt


@pytest.fixture(autouse=True)
def with_kernels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("DOVETAIL_CPU_KERNELS", "1")  # for the processes that a test starts
    with dt.cpu_kernels(True):
        yield
